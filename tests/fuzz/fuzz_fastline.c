/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast reader of usage records beside the one that is right by
 * construction: whatever it takes, the other takes, with the same value in
 * every member; what it leaves, it leaves as it was.  The same reader goes on
 * from line to line, as what it learned of one must not show in the next.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <apr_general.h>
#include <apr_strings.h>
#include "../../calc/fastline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

static void same_text(const char *a, const char *b)
{
    must((a == NULL) == (b == NULL));
    must(a == NULL || strcmp(a, b) == 0);
}

static void same_strings(const aigw_record_t *a, const aigw_record_t *b)
{
    same_text(a->id, b->id);
    same_text(a->host, b->host);
    same_text(a->tenant, b->tenant);
    same_text(a->key, b->key);
    same_text(a->client, b->client);
    same_text(a->api, b->api);
    same_text(a->model, b->model);
    same_text(a->served, b->served);
    same_text(a->upstream, b->upstream);
    same_text(a->upstream_id, b->upstream_id);
    same_text(a->finish, b->finish);
    same_text(a->error, b->error);
    same_text(a->tier, b->tier);
    same_text(a->currency, b->currency);
    same_text(a->cost_stated, b->cost_stated);
    same_text(a->prices, b->prices);
}

static void same_record(const aigw_record_t *a, const aigw_record_t *b)
{
    same_strings(a, b);
    must(a->ts == b->ts && a->stream == b->stream && a->tries == b->tries);
    must(a->status == b->status && a->end == b->end);
    must(a->upstream_status == b->upstream_status);
    must(a->reason == b->reason && a->flags == b->flags);
    must(memcmp(a->usage.n, b->usage.n, sizeof(a->usage.n)) == 0);
    must(a->usage.known == b->usage.known);
    must(a->usage.source == b->usage.source);
    must(a->has_cost == b->has_cost && a->cost == b->cost);
    must(a->first_us == b->first_us && a->total_us == b->total_us);
    must(a->own_us == b->own_us && a->events == b->events);
    must(a->bytes_in == b->bytes_in && a->bytes_out == b->bytes_out);
}

static void one_line(aigw_fast_t *fast, const char *data, size_t size,
                     apr_pool_t *pool)
{
    char *line = malloc(size + AIGW_FAST_SLACK), *spare = malloc(size + 1);
    char *at = spare;
    aigw_record_t ours, theirs;
    const char *why;
    aigw_rc_t want;

    must(line != NULL && spare != NULL);
    memcpy(line, data, size);
    memset(line + size, '7', AIGW_FAST_SLACK); /* no end by itself */
    want = aigw_record_read(aigw_slice(data, size), &theirs, pool, &why);
    if (aigw_fast_read(fast, line, size, &at, &ours) == AIGW_OK) {
        must(want == AIGW_OK);
        must(at >= spare && at <= spare + size);
        same_record(&ours, &theirs);
    }
    else {
        must(memcmp(line, data, size) == 0);
    }
    free(line);
    free(spare);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static apr_pool_t *pool, *line_pool;
    static aigw_fast_t *fast;
    const char *p = (const char *)data, *end = p + size, *nl;

    if (!pool) {
        apr_initialize();
        apr_pool_create(&pool, NULL);
        apr_pool_create(&line_pool, pool);
        fast = aigw_fast_make(pool);
    }
    for (; p < end; p = nl + 1) {
        nl = memchr(p, '\n', (size_t)(end - p));
        nl = nl ? nl : end;
        one_line(fast, p, (size_t)(nl - p), line_pool);
        apr_pool_clear(line_pool);
    }
    return 0;
}
