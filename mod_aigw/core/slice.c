/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few questions that are asked of a slice.  No locale, no copying, no
 * NUL is looked for.
 */
#include "slice.h"

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

int aigw_slice_is_nocase(aigw_slice_t s, const char *text)
{
    apr_size_t i;

    if (strlen(text) != s.n) {
        return 0;
    }
    for (i = 0; i < s.n; ++i) {
        if (lower(s.p[i]) != lower(text[i])) {
            return 0;
        }
    }
    return 1;
}

aigw_rc_t aigw_slice_u64(aigw_slice_t s, apr_uint64_t *value)
{
    apr_uint64_t v = 0;
    apr_size_t i;
    int big = 0;

    if (s.n == 0) {
        return AIGW_MALFORMED;
    }
    for (i = 0; i < s.n; ++i) {
        unsigned digit = (unsigned char)s.p[i] - (unsigned)'0';

        if (digit > 9) {
            return AIGW_MALFORMED;
        }
        big |= v > (APR_UINT64_MAX - digit) / 10;
        v = v * 10 + digit;
    }
    if (big) {
        return AIGW_TOO_BIG;
    }
    *value = v;
    return AIGW_OK;
}
