/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any format and any lines: the first line of the input is the format, the
 * others are read by it.  What must hold: a line is either a record whose
 * strings are UTF-8 without control characters of the line itself and which
 * can be written, or there is a phrase that says why not; and the same line
 * gives the same again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <apr_general.h>
#include <apr_strings.h>
#include "../../calc/logformat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

/* A record as it is written, or why it is none. */
static const char *read_line(aigw_logformat_t *format, const char *data,
                             size_t size, apr_size_t *n, apr_pool_t *pool)
{
    char *line = malloc(size + AIGW_FAST_SLACK);
    char *out = apr_palloc(pool, AIGW_RECORD_MAX);
    const char *why = NULL;
    aigw_record_t rec;

    must(line != NULL);
    memcpy(line, data, size);
    memset(line + size, '7', AIGW_FAST_SLACK);
    if (aigw_logformat_read(format, line, size, &rec, pool, &why) == AIGW_OK) {
        must(rec.ts >= 0);
        *n = aigw_record_write(&rec, out);
        must(*n > 2 && out[*n - 1] == '\n');
    }
    else {
        must(why != NULL && *why);
        *n = strlen(why);
        out = (char *)why;
    }
    free(line);
    return out;
}

static void read_lines(aigw_logformat_t *format, const char *p,
                       const char *end, apr_pool_t *pool)
{
    const char *nl, *first, *second;
    apr_size_t n, m;

    for (; p < end; p = nl + 1) {
        nl = memchr(p, '\n', (size_t)(end - p));
        nl = nl ? nl : end;
        first = read_line(format, p, (size_t)(nl - p), &n, pool);
        second = read_line(format, p, (size_t)(nl - p), &m, pool);
        must(n == m && memcmp(first, second, n) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static apr_pool_t *pool, *own;
    static aigw_fast_t *fast;
    const char *p = (const char *)data, *end = p + size, *nl, *why = NULL;
    aigw_logformat_t *format;

    if (!pool) {
        apr_initialize();
        apr_pool_create(&pool, NULL);
        apr_pool_create(&own, pool);
        fast = aigw_fast_make(pool);
    }
    nl = size ? memchr(p, '\n', size) : NULL;
    nl = nl ? nl : end;
    format = aigw_logformat_make(apr_pstrmemdup(own, p, (apr_size_t)(nl - p)),
                                 fast, own, &why);
    must((format == NULL) == (why != NULL));
    if (format && nl < end) {
        read_lines(format, nl + 1, end, own);
    }
    apr_pool_clear(own);
    return 0;
}
