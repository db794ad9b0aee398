/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The usage record under any bytes, twice over: as a line that is read, and
 * as the strings of a record that is written.  What must hold: a line is one
 * line, it fits, it reads back, and what was read is written the same again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <apr_general.h>
#include <apr_strings.h>
#include "record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

static apr_size_t write_line(const aigw_record_t *rec, char *buf)
{
    apr_size_t n = aigw_record_write(rec, buf);

    must(n > 2 && n <= AIGW_RECORD_MAX);
    must(memchr(buf, '\n', n) == buf + n - 1);
    must(memcmp(buf, "{\"v\":1", 6) == 0 && buf[n - 2] == '}');
    return n;
}

/* Written, read and written again: the same bytes. */
static void check_round_trip(const aigw_record_t *rec, apr_pool_t *pool)
{
    char first[AIGW_RECORD_MAX], second[AIGW_RECORD_MAX];
    apr_size_t n = write_line(rec, first), i;
    aigw_record_t back;
    const char *why;

    for (i = 0; i + 1 < n; i++) {
        must((unsigned char)first[i] >= 0x20 && first[i] != 0x7f);
    }
    must(aigw_record_read(aigw_slice(first, n - 1), &back, pool, &why)
         == AIGW_OK);
    must(write_line(&back, second) == n && memcmp(first, second, n) == 0);
    must(back.has_cost == rec->has_cost && back.cost == rec->cost);
    must(back.usage.known == rec->usage.known);
    must(memcmp(back.usage.n, rec->usage.n, sizeof(back.usage.n)) == 0);
}

static void read_it(const char *data, size_t size, apr_pool_t *pool)
{
    aigw_record_t rec;
    const char *why = NULL;

    if (aigw_record_read(aigw_slice(data, size), &rec, pool, &why)
        != AIGW_OK) {
        must(why != NULL && *why);
        return;
    }
    must(why == NULL);
    if (rec.ts) { /* the first moment of 1970 is not written */
        check_round_trip(&rec, pool);
    }
}

/* The bytes up to the next NUL are the next string; at the end it is "". */
static const char *next_string(const char **p)
{
    const char *s = *p;

    *p += strlen(s) + 1;
    return s;
}

static void fill(aigw_record_t *rec, const char *p, const char *end)
{
    const char **fields[] = {&rec->id,     &rec->host,        &rec->tenant,
                             &rec->key,    &rec->client,      &rec->api,
                             &rec->model,  &rec->served,      &rec->upstream,
                             &rec->finish, &rec->upstream_id, &rec->error,
                             &rec->tier,   &rec->cost_stated, &rec->prices};
    size_t i;

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]) && p < end; i++) {
        *fields[i] = next_string(&p);
    }
}

static void write_it(const char *data, size_t size, apr_pool_t *pool)
{
    const char *text = apr_pstrmemdup(pool, data, size);
    aigw_record_t rec;
    int f;

    aigw_record_init(&rec);
    memcpy((char *)text, data, size);
    rec.ts = (apr_time_t)size * 86400 * 1000003 + 1;
    rec.end = (aigw_end_t)(size % 7);
    rec.reason = (aigw_reason_t)(size % AIGW_REASON_MAX);
    rec.flags = (apr_uint32_t)size & ((1u << AIGW_FLAG_MAX) - 1);
    for (f = 0; f < AIGW_U_MAX; f++) {
        if (size >> f & 1) {
            aigw_usage_set(&rec.usage, (aigw_usage_field_t)f,
                           APR_UINT64_C(1) << (size % 54));
        }
    }
    rec.has_cost = 1;
    rec.cost = (aigw_money_t)size << (size % 100);
    rec.currency = "USD";
    fill(&rec, text, text + size);
    check_round_trip(&rec, pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static apr_pool_t *pool;

    if (!pool) {
        apr_initialize();
        apr_pool_create(&pool, NULL);
    }
    read_it((const char *)data, size, pool);
    write_it((const char *)data, size, pool);
    apr_pool_clear(pool);
    return 0;
}
