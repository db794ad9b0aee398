/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See values.h.  Numbers go through one reader that knows overflow; no
 * parser looks at bytes behind the word's end.
 */
#include "values.h"

#include <apr_cstr.h>
#include <apr_lib.h>
#include <apr_strings.h>

#define DURATION_MAX (24 * APR_INT64_C(3600) * APR_USEC_PER_SEC)
#define NAME_MAX_LEN 64

/* Digits at the start of text; NULL if there are none or they pass max. */
static const char *read_number(const char *text, apr_int64_t max,
                               apr_int64_t *out)
{
    apr_int64_t n = 0;
    const char *p;

    for (p = text; *p >= '0' && *p <= '9'; p++) {
        int digit = *p - '0';
        if (n > (max - digit) / 10) {
            return NULL;
        }
        n = n * 10 + digit;
    }
    if (p == text) {
        return NULL;
    }
    *out = n;
    return p;
}

const char *aigw_value_duration(const char *text, apr_interval_time_t *out)
{
    static const char allowed[] =
        "a whole number with ms, s, m or h, at most 24h, such as 5s";
    /* clang-format off */
    static const struct {
        const char *unit;
        apr_int64_t usec;
    } units[] = {
        { "", APR_USEC_PER_SEC },
        { "ms", 1000 },
        { "s", APR_USEC_PER_SEC },
        { "m", 60 * APR_INT64_C(1000000) },
        { "h", 3600 * APR_INT64_C(1000000) },
    };
    /* clang-format on */
    apr_int64_t n;
    apr_size_t i;
    const char *rest = read_number(text, DURATION_MAX, &n);

    for (i = 0; rest && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(rest, units[i].unit) == 0) {
            if (n > DURATION_MAX / units[i].usec) {
                return allowed;
            }
            *out = n * units[i].usec;
            return NULL;
        }
    }
    return allowed;
}

const char *aigw_value_size(const char *text, apr_off_t *out)
{
    static const char allowed[] =
        "a whole number of bytes, or one with K, M or G, such as 64M";
    static const char units[] = "kmg";
    apr_int64_t n, max = APR_INT64_MAX;
    const char *rest = read_number(text, max, &n), *unit;

    if (!rest) {
        return allowed;
    }
    if (*rest) {
        unit = strchr(units, apr_tolower(*rest));
        if (!unit || rest[1]) {
            return allowed;
        }
        for (; unit >= units; unit--) {
            if (n > max / 1024) {
                return allowed;
            }
            n *= 1024;
        }
    }
    *out = (apr_off_t)n;
    return NULL;
}

const char *aigw_value_flag(const char *text, int *out)
{
    if (apr_cstr_casecmp(text, "on") == 0) {
        *out = 1;
        return NULL;
    }
    if (apr_cstr_casecmp(text, "off") == 0) {
        *out = 0;
        return NULL;
    }
    return "on or off";
}

const char *aigw_value_count(const char *text, int min, int max, int *out)
{
    apr_int64_t n;
    const char *rest = read_number(text, max, &n);

    if (!rest || *rest || n < min) {
        return "a whole number in its range";
    }
    *out = (int)n;
    return NULL;
}

const char *aigw_value_name(const char *text)
{
    static const char allowed[] =
        "1 to 64 letters, digits, '.', '_' and '-', such as openai-main";
    const char *p;

    for (p = text; *p; p++) {
        if (!apr_isascii(*p)
            || !(apr_isalnum(*p) || strchr("._-", *p) != NULL)) {
            return allowed;
        }
    }
    return p == text || p - text > NAME_MAX_LEN ? allowed : NULL;
}

int aigw_value_split(apr_pool_t *pool, const char *arg, const char **key,
                     const char **value)
{
    const char *eq = strchr(arg, '=');

    if (!eq || eq == arg) {
        return 0;
    }
    *key = apr_pstrmemdup(pool, arg, (apr_size_t)(eq - arg));
    *value = eq + 1;
    return 1;
}

int aigw_value_choice(const char *text, const char *const *words)
{
    int i;

    for (i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

const char *aigw_value_words(apr_pool_t *pool, const char *const *words)
{
    const char *text = words[0];
    int i;

    for (i = 1; words[i]; i++) {
        text = apr_pstrcat(pool, text, words[i + 1] ? ", " : " or ", words[i],
                           NULL);
    }
    return text;
}
