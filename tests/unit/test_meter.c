/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers through the meter: each body of tests/data/answers is fed whole,
 * cut at every place, in steps and at random, with and without withholding,
 * and must be counted alike and reach the client byte for byte.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "meter.h"
#include "pieces.h"

/* ---- a sink that checks the sink's contract ----------------------------- */

typedef struct {
    aigw_meter_t m;
    char *out;
    size_t n, size;
    size_t kept, kept_at; /* bytes kept, and where they stand in out */
    size_t passes, drops;
} client_t;

static void put(client_t *c, const char *p, size_t n)
{
    assert_true(n > 0);
    assert_true(c->n + n <= c->size);
    memcpy(c->out + c->n, p, n);
    c->n += n;
}

static void sink_pass(void *ctx, const char *p, apr_size_t n)
{
    client_t *c = ctx;

    assert_int_equal(c->kept, 0);
    put(c, p, n);
    ++c->passes;
}

static void sink_keep(void *ctx, const char *p, apr_size_t n)
{
    client_t *c = ctx;

    assert_true(c->m.withhold);
    put(c, p, n);
    c->kept += n;
    assert_true(c->kept <= 64 * 1024);
}

static void sink_release(void *ctx)
{
    client_t *c = ctx;

    assert_true(c->kept > 0);
    c->kept = 0;
}

static void sink_drop(void *ctx)
{
    client_t *c = ctx;

    assert_true(c->kept > 0);
    c->n -= c->kept;
    c->kept = 0;
    ++c->drops;
}

static const aigw_meter_sink_t sink = {sink_pass, sink_keep, sink_release,
                                       sink_drop};

static void feed(void *ctx, const char *p, size_t n)
{
    client_t *c = ctx;
    size_t before = c->passes;

    aigw_meter_feed(&c->m, p, n, &sink, c);
    if (!c->m.withhold) {
        assert_int_equal(c->passes, before + 1);
    }
}

static void client_start(client_t *c, aigw_meter_kind_t kind,
                         const char *dialect, int withhold)
{
    const aigw_dialect_t *d = aigw_dialect_find(dialect);

    assert_non_null(d);
    aigw_meter_init(&c->m, kind, d, withhold);
    c->n = c->kept = c->passes = c->drops = 0;
}

/* ---- what was seen, as text --------------------------------------------- */

static int say_count(char *buf, size_t size, const aigw_usage_t *u, int field)
{
    apr_uint64_t n;

    if (!aigw_usage_get(u, (aigw_usage_field_t)field, &n)) {
        return snprintf(buf, size, "-");
    }
    return snprintf(buf, size, "%llu", (unsigned long long)n);
}

static void describe(const aigw_meter_seen_t *s, char *buf, size_t size)
{
    const struct {
        const char *name, *text;
    } texts[] = {
        {"model", s->model}, {"finish", s->finish}, {"error", s->error},
        {"tier", s->tier},   {"cost", s->cost_stated},
    };
    const struct {
        const char *name;
        int on;
    } flags[] = {
        {"end", s->saw_end},           {"failed", s->saw_error},
        {"content", s->saw_content},   {"bad_json", s->bad_json},
        {"bad_number", s->bad_number}, {"cache_outside", s->cache_outside},
        {"odd_total", s->odd_total},
    };
    size_t n = 0, i;
    int f;

    n += (size_t)snprintf(buf, size, "%s",
                          aigw_usage_source_name(s->usage.source));
    for (f = 0; s->usage.known && f <= AIGW_U_REASONING; ++f) {
        buf[n++] = ' ';
        n += (size_t)say_count(buf + n, size - n, &s->usage, f);
    }
    for (f = AIGW_U_REASONING + 1; f < AIGW_U_MAX; ++f) {
        if (s->usage.known >> f & 1) {
            n += (size_t)snprintf(
                buf + n, size - n, " %s=",
                aigw_usage_field_name((aigw_usage_field_t)f));
            n += (size_t)say_count(buf + n, size - n, &s->usage, f);
        }
    }
    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        if (texts[i].text[0] != '\0') {
            n += (size_t)snprintf(buf + n, size - n, " %s=%s", texts[i].name,
                                  texts[i].text);
        }
    }
    n += (size_t)snprintf(buf + n, size - n, " events=%d", (int)s->events);
    for (i = 0; i < sizeof(flags) / sizeof(flags[0]); ++i) {
        if (flags[i].on) {
            n += (size_t)snprintf(buf + n, size - n, " %s", flags[i].name);
        }
    }
    assert_true(n < size);
}

/* ---- bodies ------------------------------------------------------------- */

#define CUT    1 /* the framing did not end rightly */
#define ASKED  2 /* the client did not ask for usage, the gateway did */

typedef struct {
    const char *title, *file, *dialect;
    int how;
    /* source; input uncached, read, written 5m, 1h, other; output, of it
     * reasoning; the rest where known */
    const char *want;
} answer_t;

/* clang-format off */
static const answer_t answers[] = {
    {"usage_comes_in_a_last_event_without_a_choice",
     "usage-at-the-end.sse", "openai", 0,
     "reported 35 0 0 0 0 9 0 model=gpt-x-1 finish=stop events=6 end "
     "content"},
    {"usage_comes_with_the_finish_reason",
     "usage-on-finish.sse", "openai", 0,
     "reported 92 1408 0 0 0 300 250 model=r-1 finish=stop events=3 end "
     "content"},
    {"a_cache_hit_has_other_names",
     "cache-hit-alias.sse", "openai", 0,
     "reported 36 64 0 0 0 3 0 model=gpt-x-1 finish=stop events=2 end "
     "content"},
    {"running_totals_are_not_added_up",
     "running-usage.sse", "openai", 0,
     "reported 40 0 0 0 0 6 0 model=gpt-x-1 finish=length events=9 end "
     "content"},
    {"a_cut_answer_keeps_its_last_whole_snapshot",
     "cut-with-a-snapshot.sse", "openai", CUT,
     "partial 77 0 0 0 0 2 0 model=gpt-x-1 events=4 content"},
    {"a_cut_answer_without_usage_counts_nothing",
     "cut-without-usage.sse", "openai", CUT,
     "none model=gpt-x-1 events=2 content"},
    {"behind_the_end_marker_a_cut_costs_nothing",
     "cut-behind-done.sse", "openai", CUT,
     "reported 4 0 0 0 0 2 0 model=gpt-x-1 events=3 end content"},
    {"behind_the_last_usage_a_cut_costs_nothing",
     "cut-behind-the-usage.sse", "openai", CUT,
     "reported 12 0 0 0 0 2 0 model=gpt-x-1 finish=stop events=4 content"},
    {"a_usage_that_was_whole_counts_in_a_cut_event",
     "cut-behind-a-whole-usage.sse", "openai", CUT,
     "partial 9 0 0 0 0 4 0 model=gpt-x-1 events=2 content"},
    {"an_error_event_is_a_failure",
     "error-event.sse", "openai", 0,
     "none model=gpt-x-1 error=WorkerDied events=3 end failed content"},
    {"an_error_makes_an_earlier_snapshot_partial",
     "error-after-a-snapshot.sse", "openai", 0,
     "partial 5 0 0 0 0 1 0 model=gpt-x-1 error=engine_overloaded "
     "events=2 failed content"},
    {"an_error_beside_a_choice_may_bring_the_usage",
     "error-beside-a-choice.sse", "openai", 0,
     "reported 11 0 0 0 0 2 0 model=gpt-x-1 finish=error error=502 "
     "events=3 end failed content"},
    {"an_error_may_be_a_text",
     "error-as-text.json", "openai", 0,
     "none error=error events=0 failed"},
    {"an_error_may_be_the_whole_answer",
     "error-in-200.json", "openai", 0,
     "none error=429 events=0 failed"},
    {"a_null_error_is_none",
     "error-null.json", "openai", 0,
     "reported 3 0 0 0 0 1 0 model=m finish=stop events=0 content"},
    {"usage_may_stand_in_x_groq",
     "x-groq-usage.sse", "openai", 0,
     "reported 21 0 0 0 0 8 0 model=gpt-x-1 finish=stop events=3 end "
     "content"},
    {"an_error_may_stand_in_x_groq",
     "x-groq-error.sse", "openai", 0,
     "none model=gpt-x-1 error=x_groq.error events=2 failed content"},
    {"usage_may_stand_in_a_choice",
     "usage-in-a-choice.sse", "openai", 0,
     "reported 116 384 0 0 0 20 0 model=gpt-x-1 finish=stop events=3 "
     "end content"},
    {"one_usage_an_event_counts_the_outermost",
     "usage-thrice.sse", "openai", 0,
     "reported 8 0 0 0 0 8 0 model=m finish=stop events=4 end content"},
    {"usage_elsewhere_is_not_usage",
     "usage-words-in-the-text.sse", "openai", 0,
     "none model=gpt-x-1 finish=tool_calls events=6 end content"},
    {"lines_may_end_with_crlf",
     "crlf.sse", "openai", 0,
     "reported 61 0 0 0 0 5 0 model=gpt-x-1 finish=stop events=4 end "
     "content"},
    {"lines_may_end_with_cr",
     "bare-cr.sse", "openai", 0,
     "reported 62 0 0 0 0 5 0 model=gpt-x-1 finish=stop events=4 end "
     "content"},
    {"a_mark_comments_and_odd_lines_are_read_over",
     "mark-and-odd-lines.sse", "openai", 0,
     "reported 63 0 0 0 0 7 0 model=gpt-x-1 finish=stop events=5 end "
     "content"},
    {"counts_may_be_integral_floats_and_digit_strings",
     "numbers.sse", "openai", 0,
     "reported 44 0 0 0 0 25 6 model=gpt-x-1 finish=stop events=3 end "
     "content"},
    {"bad_numbers_change_nothing",
     "bad-numbers.sse", "openai", 0,
     "reported 30 0 0 0 0 6 0 model=gpt-x-1 finish=stop events=4 end "
     "content bad_number"},
    {"of_a_key_given_twice_the_last_one_counts",
     "keys-twice.sse", "openai", 0,
     "reported 71 0 0 0 0 3 0 finish=stop events=2 end content"},
    {"of_a_usage_given_twice_the_last_one_counts",
     "usage-twice.sse", "openai", 0,
     "reported 20 0 0 0 0 5 0 events=2 end"},
    {"keys_may_be_escaped",
     "escaped-keys.sse", "openai", 0,
     "reported 17 0 0 0 0 4 0 model=mé finish=stop events=2 end content"},
    {"zeros_do_not_replace_numbers",
     "zero-placeholders.sse", "openai", 0,
     "reported 250 0 0 0 0 30 0 model=gpt-x-1 finish=stop events=4 end "
     "content"},
    {"zeros_are_numbers_where_nothing_else_came",
     "only-zeros.sse", "openai", 0,
     "reported 0 0 0 0 0 0 0 model=gpt-x-1 finish=stop events=2 end "
     "content"},
    {"cached_above_prompt_is_outside_of_it",
     "cache-outside.json", "openai", 0,
     "reported 40 20000 0 0 0 12 0 model=c-1 finish=stop events=0 "
     "content cache_outside"},
    {"a_total_can_prove_the_cache_outside",
     "cache-outside-by-total.json", "openai", 0,
     "reported 400 150 0 0 50 10 0 model=c-1 finish=stop events=0 "
     "content cache_outside"},
    {"a_cache_outside_says_nothing_of_reasoning",
     "cache-outside-reasoning-inside.json", "openai", 0,
     "reported 400 200 0 0 0 10 4 model=c-1 finish=stop events=0 "
     "content cache_outside"},
    {"cache_and_reasoning_may_both_be_outside",
     "cache-and-reasoning-outside.json", "openai", 0,
     "reported 400 200 0 0 0 50 40 model=c-1 finish=stop events=0 "
     "content cache_outside"},
    {"cache_writes_are_inside_the_prompt",
     "cache-writes.sse", "openai", 0,
     "reported 1500 1000 0 0 500 100 60 input_audio=7 input_image=9 "
     "output_audio=5 output_image=2 model=gpt-x-1 tier=flex events=2 end"},
    {"cache_writes_have_lifetimes",
     "cache-writes-by-lifetime.sse", "openai", 0,
     "reported 1488 512 3000 900 100 30 0 model=gpt-x-1 events=2 end"},
    {"one_cached_count_under_three_names_counts_once",
     "mistral-names.json", "openai", 0,
     "reported 26 64 0 0 0 4 0 model=mi-1 finish=stop events=0 content"},
    {"a_total_can_prove_reasoning_outside",
     "reasoning-outside.sse", "openai", 0,
     "reported 672 128 0 0 0 350 300 model=gk-1 finish=stop "
     "cost=0.0123456789 events=4 end content"},
    {"without_a_total_reasoning_is_inside",
     "reasoning-without-total.sse", "openai", 0,
     "reported 10 0 0 0 0 5 5 model=gpt-x-1 events=2 end odd_total"},
    {"without_a_total_the_dialect_tells",
     "reasoning-without-total.sse", "xai", 0,
     "reported 10 0 0 0 0 35 30 model=gpt-x-1 events=2 end"},
    {"the_gap_is_reasoning_where_the_dialect_says_so",
     "reasoning-in-the-gap.sse", "gemini-openai", 0,
     "reported 50 0 0 0 0 662 650 model=ge-1 finish=stop events=3 end "
     "content"},
    {"a_gap_is_flagged_where_it_does_not",
     "reasoning-in-the-gap.sse", "openai", 0,
     "reported 50 0 0 0 0 12 0 model=ge-1 finish=stop events=3 end "
     "content odd_total"},
    {"reasoning_beside_the_total_is_added",
     "reasoning-beside.sse", "perplexity", 0,
     "reported 20 0 0 0 0 108 100 searches=3 model=gpt-x-1 cost=0.0125 "
     "events=2 end"},
    {"reasoning_is_no_more_than_the_output",
     "reasoning-too-large.sse", "openai", 0,
     "reported 60 0 0 0 0 128 128 model=gpt-x-1 finish=length events=3 "
     "end content odd_total"},
    {"a_total_that_nothing_explains_is_flagged",
     "odd-total.sse", "openai", 0,
     "reported 60 0 0 0 0 10 0 model=gpt-x-1 events=2 end odd_total"},
    {"the_finish_reason_is_that_of_choice_0",
     "two-choices.sse", "openai", 0,
     "reported 14 0 0 0 0 40 0 model=gpt-x-1 finish=length events=6 end "
     "content"},
    {"without_an_index_the_place_tells",
     "choice-without-index.json", "openai", 0,
     "reported 2 0 0 0 0 2 0 finish=stop events=0 content"},
    {"usage_may_follow_the_end_marker",
     "usage-behind-done.sse", "openai", 0,
     "reported 18 0 0 0 0 3 0 model=gpt-x-1 finish=stop events=3 end "
     "content"},
    {"the_last_event_may_lack_its_blank_line",
     "no-done.sse", "openai", 0,
     "reported 19 0 0 0 0 3 0 model=gpt-x-1 events=2 content"},
    {"only_the_exact_end_marker_is_one",
     "done-in-the-text.sse", "openai", 0,
     "reported 8 0 0 0 0 1 0 model=gpt-x-1 events=6 content bad_json"},
    {"an_end_marker_on_two_lines_is_none",
     "done-in-pieces.sse", "openai", 0,
     "reported 8 0 0 0 0 1 0 model=gpt-x-1 events=2 bad_json"},
    {"an_unparsable_event_does_not_end_the_count",
     "unparsable.sse", "openai", 0,
     "reported 27 0 0 0 0 2 0 model=gpt-x-1 events=7 end bad_json"},
    {"an_unparsable_event_counts_nothing",
     "unparsable-alone.sse", "openai", 0,
     "none events=3 end bad_json"},
    {"a_document_is_counted_as_a_stream_is",
     "plain.json", "openai", 0,
     "reported 176 1024 0 0 0 50 20 input_audio=40 output_audio=6 "
     "model=gpt-x-2 finish=stop tier=default events=0 content"},
    {"blank_lines_before_a_document_are_nothing",
     "blank-lines-before.json", "openai", 0,
     "reported 16 0 0 0 0 3 0 model=d-1 finish=stop events=0 content"},
    {"a_cut_document_keeps_a_whole_usage",
     "cut.json", "openai", CUT,
     "partial 16 0 0 0 0 3 0 model=d-1 events=0 content"},
    {"what_is_not_json_counts_nothing",
     "not.json", "openai", 0,
     "none events=0 bad_json"},
    {"a_stated_cost_is_kept_as_plain_decimals",
     "cost.sse", "openai", 0,
     "reported 45 0 0 0 160 22 0 model=v/m-2 finish=stop cost=0.000045 "
     "events=4 end content"},
    {"a_cost_billed_elsewhere_is_added",
     "cost-byok.sse", "openai", 0,
     "reported 5 0 0 0 0 5 0 model=gpt-x-1 cost=0.0026 events=2 end"},
    {"a_cost_that_is_none_is_not_kept",
     "cost-odd.sse", "openai", 0,
     "reported 5 0 0 0 0 5 0 model=gpt-x-1 events=2 end"},
    {"bytes_that_are_no_utf8_pass",
     "bad-utf8.sse", "openai", 0,
     "reported 22 0 0 0 0 4 0 model=gpt-x-1 events=3 end content"},
    {"the_usage_that_was_asked_for_is_withheld",
     "asked-for.sse", "openai", ASKED,
     "reported 33 0 0 0 0 3 0 model=gpt-x-1 finish=stop events=5 end "
     "content"},
    {"a_withheld_event_goes_with_its_crlf",
     "asked-for-crlf.sse", "openai", ASKED,
     "reported 34 0 0 0 0 3 0 model=gpt-x-1 events=3 end content"},
    {"a_withheld_event_goes_with_its_cr",
     "asked-for-cr.sse", "openai", ASKED,
     "reported 36 0 0 0 0 3 0 model=gpt-x-1 events=3 content"},
    {"only_usage_without_a_choice_is_withheld",
     "asked-for-or-not.sse", "openai", ASKED,
     "reported 38 0 0 0 0 3 0 model=gpt-x-1 error=x events=21 end "
     "failed content bad_json"},
    {"a_last_event_without_its_blank_line_is_withheld",
     "asked-for-unended.sse", "openai", ASKED,
     "reported 39 0 0 0 0 3 0 model=gpt-x-1 events=2 content"},
    {"a_cut_event_passes",
     "asked-for-cut.sse", "openai", ASKED | CUT,
     "none model=gpt-x-1 events=2 content"},
};
/* clang-format on */

static void one_way(client_t *c, const answer_t *a, const pieces_t *way,
                    const char *body, size_t n)
{
    int json = strstr(a->file, ".json") != NULL;
    char seen[1024];

    client_start(c, json ? AIGW_METER_JSON : AIGW_METER_SSE, a->dialect,
                 (a->how & ASKED) != 0);
    pieces_feed(way, body, n, feed, c);
    aigw_meter_finish(&c->m, !(a->how & CUT), &sink, c);
    assert_int_equal(c->kept, 0);
    describe(&c->m.seen, seen, sizeof(seen));
    assert_string_equal(seen, a->want);

    aigw_meter_finish(&c->m, 0, &sink, c);
    describe(&c->m.seen, seen, sizeof(seen));
    assert_string_equal(seen, a->want);
}

/* The body that the client must get: another file, if one is there. */
static char *client_body(const answer_t *a, const char *body, size_t n,
                         size_t *want_n)
{
    char name[200];
    char *want = NULL;

    if (a->how & ASKED) {
        snprintf(name, sizeof(name), "%.*s.client.sse",
                 (int)strcspn(a->file, "."), a->file);
        want = pieces_file(TEST_DATA "/answers", name, want_n);
    }
    if (want == NULL) {
        want = malloc(n + 1);
        memcpy(want, body, n);
        *want_n = n;
    }
    return want;
}

static void an_answer(void **state)
{
    const answer_t *a = *state;
    pieces_t way = {0, 0, 0};
    client_t *c = calloc(1, sizeof(*c));
    size_t n, want_n;
    char *body = pieces_file(TEST_DATA "/answers", a->file, &n);
    char *want;

    assert_non_null(body);
    want = client_body(a, body, n, &want_n);
    c->out = malloc(n);
    c->size = n;
    do {
        one_way(c, a, &way, body, n);
        assert_int_equal(c->n, want_n);
        assert_memory_equal(c->out, want, want_n);
    } while (pieces_next(&way, n));
    free(c->out);
    free(c);
    free(want);
    free(body);
}

/* ---- what the bodies do not show ---------------------------------------- */

static client_t *new_client(size_t size)
{
    client_t *c = calloc(1, sizeof(*c));

    c->out = malloc(size);
    c->size = size;
    return c;
}

static void feed_text(client_t *c, const char *text)
{
    feed(c, text, strlen(text));
}

static void free_client(client_t *c)
{
    free(c->out);
    free(c);
}

#define USAGE                                                                 \
    "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,"                 \
    "\"total_tokens\":13}"

/* A stream with an event of @a text bytes of content in the middle. */
static char *long_event(size_t text, size_t *n)
{
    static const char before[] =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"";
    static const char after[] =
        " \\\"usage\\\":{\\\"prompt_tokens\\\":3}\"}}]}\n\n"
        "data: {\"choices\":[]," USAGE "}\n\ndata: [DONE]\n\n";
    char *body = malloc(text + sizeof(before) + sizeof(after));

    memcpy(body, before, sizeof(before) - 1);
    memset(body + sizeof(before) - 1, 'Q', text);
    memcpy(body + sizeof(before) - 1 + text, after, sizeof(after));
    *n = sizeof(before) - 1 + text + sizeof(after) - 1;
    return body;
}

static void an_event_of_megabytes_goes_by_in_constant_memory(void **state)
{
    size_t n, way_n;
    char *body = long_event(2 * 1024 * 1024, &n);
    client_t *c = new_client(n);
    char seen[1024];

    (void)state;
    assert_true(sizeof(aigw_meter_t) < 4096);
    for (way_n = 1000; way_n < 3000000; way_n = way_n * 5 + 1) {
        pieces_t way = {2, way_n, 0};

        client_start(c, AIGW_METER_SSE, "openai", 1);
        pieces_feed(&way, body, n, feed, c);
        aigw_meter_finish(&c->m, 1, &sink, c);
        describe(&c->m.seen, seen, sizeof(seen));
        assert_string_equal(
            seen, "reported 9 0 0 0 0 4 0 events=3 end content");
        assert_true(c->n < n);
        assert_memory_equal(c->out + c->n - 14, "data: [DONE]\n\n", 14);
    }
    free_client(c);
    free(body);
}

static void an_event_with_a_choice_passes_as_soon_as_that_is_seen(void **state)
{
    static const char text[] = "id: 1\ndata: {\"id\":\"x\",\"choices\":[{";
    client_t *c = new_client(1000);
    size_t i;

    (void)state;
    client_start(c, AIGW_METER_SSE, "openai", 1);
    for (i = 0; i < sizeof(text) - 1; ++i) {
        feed(c, text + i, 1);
        assert_int_equal(c->kept, i + 2 < sizeof(text) ? i + 1 : 0);
    }
    feed_text(c, "\"index\":0");
    assert_int_equal(c->kept, 0);
    assert_int_equal(c->n, i + 9);
    free_client(c);
}

static void comments_between_events_are_never_held(void **state)
{
    static const char text[] = "\r\n: ping\r\n\r\n:\n\n\n: x";
    client_t *c = new_client(1000);
    size_t i;

    (void)state;
    client_start(c, AIGW_METER_SSE, "openai", 1);
    for (i = 0; i < sizeof(text) - 1; ++i) {
        feed(c, text + i, 1);
        assert_int_equal(c->kept, 0);
        assert_int_equal(c->n, i + 1);
    }
    free_client(c);
}

static void a_whole_event_in_a_feed_is_never_copied(void **state)
{
    static const char text[] =
        "data: {\"choices\":[{\"index\":0}]}\n\n"
        "data: {\"choices\":[]," USAGE "}\n\n: x\n\ndata: [DONE]\n\n";
    client_t *c = new_client(1000);

    (void)state;
    client_start(c, AIGW_METER_SSE, "openai", 1);
    feed(c, text, sizeof(text) - 1);
    assert_int_equal(c->passes, 2);
    assert_int_equal(c->drops, 0);
    assert_int_equal(c->kept, 0);
    free_client(c);
}

static void over_64_kib_undecided_bytes_pass(void **state)
{
    enum { SIZE = 200 * 1024 };
    static const char end[] = "\"," USAGE "}\n\n";
    client_t *c = new_client(SIZE + 1000);
    char *body = malloc(SIZE);
    size_t step;

    (void)state;
    memset(body, 'x', SIZE);
    memcpy(body, "data: {\"id\":\"", 13);
    for (step = 500; step < SIZE; step = step * 3 + 1) {
        pieces_t way = {2, step, 0};

        client_start(c, AIGW_METER_SSE, "openai", 1);
        pieces_feed(&way, body, SIZE, feed, c);
        assert_int_equal(c->kept, 0);
        feed(c, end, sizeof(end) - 1);
        aigw_meter_finish(&c->m, 1, &sink, c);
        assert_int_equal(c->n, SIZE + sizeof(end) - 1);
        assert_true(c->m.seen.usage.known);
    }
    free_client(c);
    free(body);
}

static void what_is_not_metered_is_only_passed(void **state)
{
    client_t *c = new_client(1000);
    char seen[1024];

    (void)state;
    client_start(c, AIGW_METER_OFF, "openai", 1);
    feed_text(c, "data: {" USAGE "}\n\n");
    aigw_meter_finish(&c->m, 1, &sink, c);
    describe(&c->m.seen, seen, sizeof(seen));
    assert_string_equal(seen, "none events=0");
    assert_int_equal(c->n, strlen("data: {" USAGE "}\n\n"));
    assert_true(aigw_meter_at_boundary(&c->m));
    free_client(c);
}

static void nothing_fed_is_nothing_seen(void **state)
{
    aigw_meter_kind_t kind;

    (void)state;
    for (kind = AIGW_METER_OFF; kind <= AIGW_METER_JSON; ++kind) {
        client_t *c = new_client(1);
        char seen[1024];

        client_start(c, kind, "openai", 1);
        aigw_meter_feed(&c->m, "", 0, &sink, c);
        assert_true(aigw_meter_at_boundary(&c->m));
        aigw_meter_finish(&c->m, 1, &sink, c);
        describe(&c->m.seen, seen, sizeof(seen));
        assert_string_equal(seen, "none events=0");
        free_client(c);
    }
}

static void content_is_seen_with_its_first_choice(void **state)
{
    client_t *c = new_client(1000);

    (void)state;
    client_start(c, AIGW_METER_SSE, "openai", 0);
    feed_text(c, ": x\n\ndata: {\"choices\":[],\"usage\":null}\n\n");
    assert_false(c->m.seen.saw_content);
    assert_true(aigw_meter_at_boundary(&c->m));
    feed_text(c, "data: {\"choices\":[{");
    assert_true(c->m.seen.saw_content);
    assert_false(aigw_meter_at_boundary(&c->m));
    free_client(c);
}

static void long_names_are_cut_to_their_room(void **state)
{
    char body[2000], seen[1024], want[1024];
    client_t *c = new_client(sizeof(body));
    int n;

    (void)state;
    n = snprintf(body, sizeof(body),
                 "{\"model\":\"%0200d\",\"service_tier\":\"%0100d\","
                 "\"error\":{\"code\":\"%0100d\"},\"choices\":[{"
                 "\"finish_reason\":\"%0100d\"}]}", 1, 2, 3, 4);
    snprintf(want, sizeof(want),
             "none model=%0128d finish=%032d error=%064d tier=%032d "
             "events=0 failed content", 0, 0, 0, 0);
    client_start(c, AIGW_METER_JSON, "openai", 0);
    feed(c, body, (size_t)n);
    aigw_meter_finish(&c->m, 1, &sink, c);
    describe(&c->m.seen, seen, sizeof(seen));
    assert_string_equal(seen, want);
    free_client(c);
}

int main(void)
{
    enum { ANSWERS = sizeof(answers) / sizeof(answers[0]) };
    static const struct CMUnitTest rest[] = {
        cmocka_unit_test(an_event_of_megabytes_goes_by_in_constant_memory),
        cmocka_unit_test(
            an_event_with_a_choice_passes_as_soon_as_that_is_seen),
        cmocka_unit_test(comments_between_events_are_never_held),
        cmocka_unit_test(a_whole_event_in_a_feed_is_never_copied),
        cmocka_unit_test(over_64_kib_undecided_bytes_pass),
        cmocka_unit_test(what_is_not_metered_is_only_passed),
        cmocka_unit_test(nothing_fed_is_nothing_seen),
        cmocka_unit_test(content_is_seen_with_its_first_choice),
        cmocka_unit_test(long_names_are_cut_to_their_room),
    };
    static struct CMUnitTest tests[ANSWERS + sizeof(rest) / sizeof(rest[0])];
    size_t i;

    for (i = 0; i < ANSWERS; ++i) {
        tests[i].name = answers[i].title;
        tests[i].test_func = an_answer;
        tests[i].initial_state = (void *)(uintptr_t)&answers[i];
    }
    memcpy(tests + ANSWERS, rest, sizeof(rest));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
