/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of every API through the meter.  Each body of tests/data/metering
 * has a .want beside it: the path that was called, how the answer came, and
 * what must be seen.  Every body is fed whole, cut at every place, in steps
 * and at random; what is seen must be the same, and the client must get every
 * byte.  It is not about withheld events, of which test_meter is.
 *
 * A .want is three lines:
 *   /messages anthropic sse          path, upstream's dialect, kind, "cut" if
 *                                    the framing did not end rightly
 *   reported 12 200 0 0 0 57 0 ...   source; input uncached, read, written 5m,
 *                                    1h, other; output, reasoning; the rest
 *                                    where known; the texts; the flags
 *   text 4                           bytes of what the model said
 */
#include <dirent.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "meter.h"
#include "pieces.h"

#define FOLDER TEST_DATA "/metering"

typedef struct {
    char name[160]; /* of the body's file */
    char path[80], dialect[24], kind[12], cut[8];
    char seen[400];
    unsigned long text;
} want_t;

/* ---- the client --------------------------------------------------------- */

typedef struct {
    aigw_meter_t m;
    const char *body;
    size_t n, at;
} client_t;

static void sink_pass(void *ctx, const char *p, apr_size_t n)
{
    client_t *c = ctx;

    assert_true(n > 0 && n <= c->n - c->at);
    assert_memory_equal(c->body + c->at, p, n);
    c->at += n;
}

static void sink_keep(void *ctx, const char *p, apr_size_t n)
{
    (void)ctx;
    (void)p;
    (void)n;
    fail_msg("nothing may be kept");
}

static void sink_never(void *ctx)
{
    (void)ctx;
    fail_msg("nothing was kept");
}

static const aigw_meter_sink_t sink = {sink_pass, sink_keep, sink_never,
                                       sink_never};

static void feed(void *ctx, const char *p, size_t n)
{
    client_t *c = ctx;

    aigw_meter_feed(&c->m, p, n, &sink, c);
}

/* ---- what was seen, as text --------------------------------------------- */

static size_t say(char *buf, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static size_t say(char *buf, size_t size, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(buf, size, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < size);
    return (size_t)n;
}

static size_t say_counts(const aigw_usage_t *u, char *buf, size_t size)
{
    size_t n = say(buf, size, "%s", aigw_usage_source_name(u->source));
    int tokens = (u->known & ((1u << AIGW_U_SEARCHES) - 1)) != 0;
    apr_uint64_t value;
    int f;

    for (f = tokens ? 0 : AIGW_U_SEARCHES; f < AIGW_U_MAX; ++f) {
        int known = aigw_usage_get(u, (aigw_usage_field_t)f, &value);

        if (f > AIGW_U_REASONING && known) {
            n += say(buf + n, size - n,
                     " %s=", aigw_usage_field_name((aigw_usage_field_t)f));
        }
        else if (f <= AIGW_U_REASONING) {
            n += say(buf + n, size - n, known ? " " : " -");
        }
        if (known) {
            n += say(buf + n, size - n, "%llu", (unsigned long long)value);
        }
    }
    return n;
}

static void describe(const aigw_meter_seen_t *s, char *buf, size_t size)
{
    const struct {
        const char *name, *text;
    } texts[] = {
        {"model", s->model}, {"finish", s->finish},    {"error", s->error},
        {"tier", s->tier},   {"cost", s->cost_stated},
    };
    const struct {
        const char *name;
        int on;
    } flags[] = {
        {"end", s->saw_end},           {"ended", s->ended},
        {"failed", s->saw_error},      {"at_once", s->error_first},
        {"content", s->saw_content},   {"bad_json", s->bad_json},
        {"bad_number", s->bad_number}, {"cache_outside", s->cache_outside},
        {"odd_total", s->odd_total},   {"other_model", s->other_model},
    };
    size_t n = say_counts(&s->usage, buf, size), i;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        if (texts[i].text[0] != '\0') {
            n +=
                say(buf + n, size - n, " %s=%s", texts[i].name, texts[i].text);
        }
    }
    for (i = 0; i < sizeof(flags) / sizeof(flags[0]); ++i) {
        if (flags[i].on) {
            n += say(buf + n, size - n, " %s", flags[i].name);
        }
    }
}

/* ---- one body ----------------------------------------------------------- */

static aigw_meter_kind_t kind_of(const want_t *w)
{
    if (strcmp(w->kind, "sse") == 0) {
        return AIGW_METER_SSE;
    }
    if (strcmp(w->kind, "ndjson") == 0) {
        return AIGW_METER_NDJSON;
    }
    assert_string_equal(w->kind, "json");
    return AIGW_METER_JSON;
}

static void one_way(client_t *c, const want_t *w, const pieces_t *way)
{
    aigw_match_t match;
    char seen[600];

    assert_int_equal(aigw_endpoint_match(w->path, NULL, &match), AIGW_OK);
    assert_non_null(aigw_dialect_find(w->dialect));
    aigw_meter_init_for(&c->m, kind_of(w), aigw_dialect_find(w->dialect),
                        match.endpoint, 0);
    c->at = 0;
    pieces_feed(way, c->body, c->n, feed, c);
    aigw_meter_finish(&c->m, w->cut[0] == '\0', &sink, c);
    assert_int_equal(c->at, c->n);
    describe(&c->m.seen, seen, sizeof(seen));
    assert_string_equal(seen, w->seen);
    assert_int_equal(c->m.seen.text_bytes, w->text);
}

static void an_answer(void **state)
{
    const want_t *w = *state;
    client_t *c = calloc(1, sizeof(*c));
    pieces_t way = {0, 0, 0};
    char *body = pieces_file(FOLDER, w->name, &c->n);

    assert_non_null(body);
    c->body = body;
    do {
        one_way(c, w, &way);
    } while (pieces_next(&way, c->n));
    free(body);
    free(c);
}

static void a_stream_holds_no_more_than_a_page_or_so(void **state)
{
    (void)state;
    assert_true(sizeof(aigw_meter_t) < 2250);
}

/* ---- all of them -------------------------------------------------------- */

#define MAX 200

static want_t wants[MAX];
static char titles[MAX][160];

static int is_want(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return n > 5 && n < 150 && strcmp(e->d_name + n - 5, ".want") == 0;
}

static int read_want(const char *file, want_t *w)
{
    size_t n;
    char *text = pieces_file(FOLDER, file, &n);
    int got;

    if (text == NULL) {
        return 0;
    }
    got = sscanf(text, "%79s %23s %11s%*[ ]%7[a-z]", w->path, w->dialect,
                 w->kind, w->cut);
    if (got >= 3) {
        got = sscanf(text, "%*[^\n]\n%399[^\n]\ntext %lu", w->seen, &w->text);
    }
    snprintf(w->name, sizeof(w->name), "%.*s", (int)strlen(file) - 5, file);
    free(text);
    return got == 2;
}

/* "a-name.sse.want" is the test a_name. */
static void title_of(const char *file, char *title)
{
    size_t i;

    for (i = 0; file[i] != '.' && file[i] != '\0'; ++i) {
        title[i] = file[i];
        if (title[i] == '-') {
            title[i] = '_';
        }
    }
}

int main(void)
{
    static struct CMUnitTest tests[MAX + 1];
    struct dirent **files;
    int n = scandir(FOLDER, &files, is_want, alphasort), i;

    if (n < 1 || n > MAX) {
        fprintf(stderr, "%s: %d bodies\n", FOLDER, n);
        return 1;
    }
    for (i = 0; i < n; ++i) {
        if (!read_want(files[i]->d_name, &wants[i])) {
            fprintf(stderr, "%s: not to be read\n", files[i]->d_name);
            return 1;
        }
        title_of(files[i]->d_name, titles[i]);
        tests[i].name = titles[i];
        tests[i].test_func = an_answer;
        tests[i].initial_state = &wants[i];
        free(files[i]);
    }
    free(files);
    tests[n].name = "a_stream_holds_no_more_than_a_page_or_so";
    tests[n].test_func = a_stream_holds_no_more_than_a_page_or_so;
    return _cmocka_run_group_tests("answers", tests, (size_t)n + 1, NULL,
                                   NULL);
}
