/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See keys.h, which is the form's specification.  Rows are sorted by hash
 * and found by its first byte: that byte says nothing about a key of 256
 * random bits, everything behind it is compared in constant time.
 */
#include "keys.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <apr_file_io.h>
#include <apr_portable.h>
#include <apr_hash.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <apr_tables.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#define KEY_WORD_MAX 64
#define KEY_FILE_MAX (64 * 1024 * 1024)

struct aigw_keys_t {
    int n;
    aigw_key_t *row; /* sorted by hash */
    int start[257];  /* rows of first byte b: start[b] .. start[b+1] */
};

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Take the next word off the line; n is 0 at its end. */
static aigw_slice_t next_word(aigw_slice_t *line)
{
    aigw_slice_t word;

    while (line->n > 0 && is_blank(*line->p)) {
        line->p++;
        line->n--;
    }
    word = aigw_slice(line->p, 0);
    while (line->n > 0 && !is_blank(*line->p)) {
        line->p++;
        line->n--;
        word.n++;
    }
    return word;
}

int aigw_key_line_empty(aigw_slice_t line)
{
    aigw_slice_t word = next_word(&line);
    return word.n == 0 || *word.p == '#';
}

int aigw_key_word(const char *text)
{
    const char *p;

    for (p = text; *p; p++) {
        if (!apr_isascii(*p)
            || !(apr_isalnum(*p) || strchr("._-@", *p) != NULL)) {
            return 0;
        }
    }
    return p > text && p - text <= KEY_WORD_MAX;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, apr_tolower(c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

static int read_hash(aigw_slice_t word, unsigned char *hash)
{
    int i;

    if (word.n != 7 + 2 * AIGW_KEY_HASH || memcmp(word.p, "sha256:", 7)) {
        return 0;
    }
    for (i = 0; i < AIGW_KEY_HASH; i++) {
        int high = hex_digit(word.p[7 + 2 * i]);
        int low = hex_digit(word.p[8 + 2 * i]);
        if (high < 0 || low < 0) {
            return 0;
        }
        hash[i] = (unsigned char)(high << 4 | low);
    }
    return 1;
}

/* Exactly n digits at *p, moved past them; -1 if they are not there. */
static int digits(const char **p, int n)
{
    int value = 0;

    while (n-- > 0) {
        if (**p < '0' || **p > '9') {
            return -1;
        }
        value = value * 10 + (*(*p)++ - '0');
    }
    return value;
}

static int take(const char **p, char c)
{
    return *(*p) == c ? (*p)++, 1 : 0;
}

static int days_in_month(int y, int m)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return days[m - 1] + (m == 2 && leap);
}

/* Days from 1970-01-01, in the calendar that goes on for ever. */
static apr_int64_t day_number(int y, int m, int d)
{
    apr_int64_t days = d - 1;
    int i;

    for (i = 1; i < m; i++) {
        days += days_in_month(y, i);
    }
    y--;
    return days + y * 365 + y / 4 - y / 100 + y / 400 - 719162;
}

/* hh:mm:ss with a fraction that is read over, and the zone. */
static int read_clock(const char **p, apr_int64_t *seconds)
{
    int h = digits(p, 2), m = -1, s = -1, zh = 0, zm = 0, sign = 0;

    if (take(p, ':')) {
        m = digits(p, 2);
    }
    if (take(p, ':')) {
        s = digits(p, 2);
    }
    if (take(p, '.')) {
        if (digits(p, 1) < 0) {
            return 0;
        }
        while (digits(p, 1) >= 0) {
        }
    }
    if (!take(p, 'Z')) {
        sign = take(p, '+') ? 1 : take(p, '-') ? -1 : 0;
        zh = digits(p, 2);
        zm = take(p, ':') ? digits(p, 2) : -1;
        if (sign == 0 || zh < 0 || zh > 23 || zm < 0 || zm > 59) {
            return 0;
        }
    }
    *seconds = h * 3600 + m * 60 + s - sign * (zh * 3600 + zm * 60);
    return h >= 0 && h <= 23 && m >= 0 && m <= 59 && s >= 0 && s <= 60;
}

int aigw_key_date(const char *text, apr_time_t *when)
{
    const char *p = text;
    apr_int64_t seconds = 0;
    int y = digits(&p, 4), m = -1, d = -1;

    if (take(&p, '-')) {
        m = digits(&p, 2);
    }
    if (take(&p, '-')) {
        d = digits(&p, 2);
    }
    if (y < 1970 || m < 1 || m > 12 || d < 1 || d > days_in_month(y, m)) {
        return 0;
    }
    if (take(&p, 'T') && !read_clock(&p, &seconds)) {
        return 0;
    }
    *when = apr_time_from_sec(day_number(y, m, d) * 86400 + seconds);
    return *p == '\0';
}

static const char *read_expiry(const char *word, aigw_key_t *key)
{
    if (strncmp(word, "expires=", 8) != 0
        || !aigw_key_date(word + 8, &key->expires) || key->expires <= 0) {
        return "the word after the hash is not expires=DATE; allowed is a "
               "date or a time with its zone, such as expires=2030-12-31 or "
               "expires=2030-12-31T18:00:00Z";
    }
    key->expires_text = word + 8;
    return NULL;
}

const char *aigw_key_parse(aigw_slice_t line, aigw_key_t *key,
                           apr_pool_t *pool)
{
    aigw_slice_t id = next_word(&line), tenant = next_word(&line);
    aigw_slice_t hash = next_word(&line), expiry = next_word(&line);

    memset(key, 0, sizeof(*key));
    key->id = apr_pstrmemdup(pool, id.p, id.n);
    key->tenant = apr_pstrmemdup(pool, tenant.p, tenant.n);
    if (!aigw_key_word(key->id)) {
        return "the key id (first word) is not 1 to 64 letters, digits and "
               "._-@, such as k1";
    }
    if (!aigw_key_word(key->tenant)) {
        return "the tenant (second word) is not 1 to 64 letters, digits and "
               "._-@, such as acme";
    }
    if (!read_hash(hash, key->hash)) {
        return "the third word is not sha256: and 64 hexadecimal digits, as "
               "aigw-key writes it";
    }
    if (next_word(&line).n > 0) {
        return "it has more than four words; allowed is key-id tenant "
               "sha256:HEX [expires=DATE]";
    }
    return expiry.n == 0
               ? NULL
               : read_expiry(apr_pstrmemdup(pool, expiry.p, expiry.n), key);
}

/* NULL, or why the row may not join the others. */
static const char *add_row(apr_array_header_t *rows, apr_hash_t *ids,
                           apr_hash_t *hashes, const aigw_key_t *key)
{
    aigw_key_t *row;

    if (apr_hash_get(ids, key->id, APR_HASH_KEY_STRING)) {
        return "this key id stands on an earlier line too; allowed is each "
               "id once";
    }
    if (apr_hash_get(hashes, key->hash, AIGW_KEY_HASH)) {
        return "this hash stands on an earlier line too; allowed is each "
               "key once";
    }
    row = apr_array_push(rows);
    *row = *key;
    apr_hash_set(ids, key->id, APR_HASH_KEY_STRING, key->id);
    apr_hash_set(hashes, apr_pmemdup(rows->pool, key->hash, AIGW_KEY_HASH),
                 AIGW_KEY_HASH, key->id);
    return NULL;
}

static int by_hash(const void *a, const void *b)
{
    return memcmp(((const aigw_key_t *)a)->hash, ((const aigw_key_t *)b)->hash,
                  AIGW_KEY_HASH);
}

static aigw_keys_t *make_set(apr_array_header_t *rows, apr_pool_t *pool)
{
    aigw_keys_t *keys = apr_pcalloc(pool, sizeof(*keys));
    int i, b;

    keys->n = rows->nelts;
    keys->row = (aigw_key_t *)rows->elts;
    if (keys->n > 1) {
        qsort(keys->row, (size_t)keys->n, sizeof(aigw_key_t), by_hash);
    }
    for (b = 0, i = 0; b < 256; b++) {
        while (i < keys->n && keys->row[i].hash[0] <= b) {
            i++;
        }
        keys->start[b + 1] = i;
    }
    return keys;
}

const char *aigw_keys_parse(aigw_keys_t **keys, aigw_slice_t text,
                            const char *name, apr_pool_t *pool)
{
    apr_array_header_t *rows = apr_array_make(pool, 16, sizeof(aigw_key_t));
    apr_hash_t *ids = apr_hash_make(pool), *hashes = apr_hash_make(pool);
    const char *p = text.p, *end = text.p + text.n, *fault;
    int number;

    for (number = 1; p < end; number++) {
        const char *nl = memchr(p, '\n', (apr_size_t)(end - p));
        aigw_slice_t line = aigw_slice(p, (apr_size_t)((nl ? nl : end) - p));
        aigw_key_t key;

        p = nl ? nl + 1 : end;
        if (aigw_key_line_empty(line)) {
            continue;
        }
        fault = aigw_key_parse(line, &key, pool);
        if (!fault) {
            fault = add_row(rows, ids, hashes, &key);
        }
        if (fault) {
            return apr_psprintf(pool, "%s:%d: %s", name, number, fault);
        }
    }
    *keys = make_set(rows, pool);
    return NULL;
}

static const char *load_fault(const char *path, const char *what,
                              apr_status_t rv, apr_pool_t *pool)
{
    char why[120];
    return apr_psprintf(pool, "%s %s: %s", path, what,
                        apr_strerror(rv, why, sizeof(why)));
}

/* A file that others may write to lets them choose who may call. */
static const char *check_file(apr_file_t *file, const char *path,
                              struct stat *st, apr_pool_t *pool)
{
    apr_os_file_t fd;

    apr_os_file_get(&fd, file);
    if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode)) {
        return apr_psprintf(pool, "%s is not a regular file", path);
    }
    if (st->st_mode & S_IWOTH) {
        return apr_psprintf(pool,
                            "%s can be written to by every user of "
                            "this host (mode %03o); allowed is mode 600",
                            path, (unsigned)(st->st_mode & 0777));
    }
    if (st->st_size > KEY_FILE_MAX) {
        return apr_psprintf(pool,
                            "%s is larger than a key file can be "
                            "(%d bytes)",
                            path, KEY_FILE_MAX);
    }
    return NULL;
}

const char *aigw_keys_load(aigw_keys_t **keys, const char *path,
                           apr_pool_t *pool)
{
    apr_file_t *file;
    struct stat st;
    char *text;
    apr_size_t n = 0;
    const char *fault;
    /* Not blocking: a FIFO must not hang configtest. */
    apr_status_t rv =
        apr_file_open(&file, path, APR_FOPEN_READ | APR_FOPEN_NONBLOCK, 0,
                      pool);

    if (rv != APR_SUCCESS) {
        return load_fault(path, "cannot be opened", rv, pool);
    }
    fault = check_file(file, path, &st, pool);
    if (!fault) {
        text = apr_palloc(pool, (apr_size_t)st.st_size + 1);
        rv = apr_file_read_full(file, text, (apr_size_t)st.st_size, &n);
        fault = rv == APR_SUCCESS || APR_STATUS_IS_EOF(rv)
                    ? aigw_keys_parse(keys, aigw_slice(text, n), path, pool)
                    : load_fault(path, "cannot be read", rv, pool);
    }
    apr_file_close(file);
    return fault;
}

aigw_keys_t *aigw_keys_empty(apr_pool_t *pool)
{
    return apr_pcalloc(pool, sizeof(aigw_keys_t));
}

int aigw_keys_count(const aigw_keys_t *keys)
{
    return keys->n;
}

int aigw_key_hash(aigw_slice_t key, unsigned char hash[AIGW_KEY_HASH])
{
    return EVP_Digest(key.p, key.n, hash, NULL, EVP_sha256(), NULL) == 1;
}

const aigw_key_t *aigw_keys_find(const aigw_keys_t *keys, aigw_slice_t key)
{
    static const char no_key[] = "as long as a key that aigw-key has made ..";
    unsigned char hash[AIGW_KEY_HASH];
    const aigw_key_t *found = NULL;
    int i;

    if (!aigw_key_hash(key.n > 0 ? key : aigw_slice(no_key, sizeof(no_key)),
                       hash)) {
        return NULL;
    }
    for (i = keys->start[hash[0]]; i < keys->start[hash[0] + 1]; i++) {
        if (CRYPTO_memcmp(keys->row[i].hash, hash, AIGW_KEY_HASH) == 0) {
            found = &keys->row[i];
        }
    }
    return key.n > 0 ? found : NULL;
}
