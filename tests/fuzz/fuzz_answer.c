/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of any bytes, in each dialect and however they came.  The first
 * byte chooses the API and the kind, the second how the rest is cut.  What
 * must hold: the client gets every byte; what is seen is the same for every
 * cut; parts are no larger than their whole; a source is stated only with
 * counts.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "meter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

static const char *const paths[] = {
    "/chat/completions",
    "/responses",
    "/embeddings",
    "/images/generations",
    "/audio/speech",
    "/audio/transcriptions",
    "/messages",
    "/messages/count_tokens",
    "/models/m:streamGenerateContent",
    "/models/m:countTokens",
    "/chat",
};

#define PATHS (sizeof(paths) / sizeof(paths[0]))

static void sink_pass(void *ctx, const char *p, apr_size_t n)
{
    (void)p;
    *(size_t *)ctx += n;
}

static void sink_never(void *ctx)
{
    (void)ctx;
    abort();
}

static void sink_keep(void *ctx, const char *p, apr_size_t n)
{
    (void)ctx;
    (void)p;
    (void)n;
    abort();
}

static const aigw_meter_sink_t sink = {sink_pass, sink_keep, sink_never,
                                       sink_never};

/* @param step bytes a feed; 0: all at once */
static void run(aigw_meter_t *m, unsigned what, const uint8_t *data,
                size_t size, size_t step)
{
    aigw_meter_kind_t kind = (aigw_meter_kind_t)(what / PATHS % 4);
    aigw_match_t match;
    size_t at, passed = 0;

    must(aigw_endpoint_match(paths[what % PATHS], NULL, &match) == AIGW_OK);
    aigw_meter_init_for(m, kind, match.dialect, match.endpoint, 0);
    for (at = 0; at < size; at += step) {
        size_t n = step == 0 || step > size - at ? size - at : step;
        char *copy = malloc(n);

        memcpy(copy, data + at, n);
        aigw_meter_feed(m, copy, n, &sink, &passed);
        free(copy);
        if (step == 0) {
            break;
        }
    }
    aigw_meter_finish(m, what / PATHS / 4 % 2 == 0, &sink, &passed);
    must(passed == size);
}

static apr_uint64_t field(const aigw_usage_t *u, aigw_usage_field_t f)
{
    apr_uint64_t n;

    aigw_usage_get(u, f, &n);
    must(n <= (apr_uint64_t)1 << 54);
    return n;
}

static void check(const aigw_meter_seen_t *s)
{
    const aigw_usage_t *u = &s->usage;
    apr_uint32_t tokens = u->known & ((1u << AIGW_U_SEARCHES) - 1);
    int f;

    for (f = 0; f < AIGW_U_MAX; f++) {
        field(u, (aigw_usage_field_t)f);
    }
    must((tokens == 0) == (u->source == AIGW_USAGE_NONE));
    must(u->source != AIGW_USAGE_ESTIMATED);
    must(field(u, AIGW_U_REASONING) <= field(u, AIGW_U_OUTPUT));
    must(s->saw_error == (s->error[0] != '\0'));
    must(!s->error_first || s->saw_error);
}

static void same(const aigw_meter_seen_t *a, const aigw_meter_seen_t *b)
{
    must(memcmp(&a->usage, &b->usage, sizeof(a->usage)) == 0);
    must(strcmp(a->model, b->model) == 0);
    must(strcmp(a->finish, b->finish) == 0);
    must(strcmp(a->error, b->error) == 0);
    must(strcmp(a->tier, b->tier) == 0);
    must(strcmp(a->cost_stated, b->cost_stated) == 0);
    must(a->events == b->events && a->text_bytes == b->text_bytes);
    must(a->saw_end == b->saw_end && a->ended == b->ended);
    must(a->saw_content == b->saw_content);
    must(a->error_first == b->error_first);
    must(a->bad_json == b->bad_json && a->bad_number == b->bad_number);
    must(a->cache_outside == b->cache_outside);
    must(a->odd_total == b->odd_total && a->other_model == b->other_model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static aigw_meter_t whole, cut;
    size_t step;

    if (size < 2) {
        return 0;
    }
    step = data[1] % 32 + 1u;
    run(&whole, data[0], data + 2, size - 2, 0);
    check(&whole.seen);
    run(&cut, data[0], data + 2, size - 2, step);
    same(&whole.seen, &cut.seen);
    return 0;
}
