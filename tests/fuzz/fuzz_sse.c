/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event streams of any bytes, through the scanner and through the meter.
 * What must hold: the events are those that a plain reader of the whole
 * stream finds, however the bytes are cut; and whatever the meter withholds,
 * every cut of the bytes gives the same counts and the same client's bytes,
 * which are all of the stream where nothing is to be withheld.
 * The first byte of the input tells how the rest is cut.
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

/* Bytes; a NUL is written twice, and NUL 1 is the end of an event. */
typedef struct {
    char *p;
    size_t n;
} text_t;

static void add(text_t *t, const char *p, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        t->p[t->n++] = p[i];
        if (p[i] == '\0') {
            t->p[t->n++] = '\0';
        }
    }
}

static void add_end(text_t *t)
{
    t->p[t->n++] = '\0';
    t->p[t->n++] = '\1';
}

/* ---- the plain reader --------------------------------------------------- */

typedef struct {
    text_t *t;
    int open, lines;
} plain_t;

/* A line without its end; @a whole 0 if the stream ended inside it. */
static void plain_line(plain_t *r, const char *p, size_t n, int whole)
{
    if (n == 0) {
        if (r->open) {
            add_end(r->t);
        }
        r->open = r->lines = 0;
        return;
    }
    if (*p == ':') {
        return;
    }
    r->open = 1;
    if (n < 4 || memcmp(p, "data", 4) != 0 || (n > 4 && p[4] != ':')
        || (!whole && n <= 5)) {
        return;
    }
    if (r->lines++ > 0) {
        add(r->t, "\n", 1);
    }
    p += 4;
    n -= 4;
    if (n > 0) {
        p++;
        n--;
    }
    if (n > 0 && *p == ' ') {
        p++;
        n--;
    }
    add(r->t, p, n);
}

static void plain_read(const char *p, size_t n, text_t *t)
{
    const char *end = p + n;
    plain_t r = {t, 0, 0};

    if (n < 3 && memcmp(p, "\xef\xbb\xbf", n) == 0) {
        return;
    }
    if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
        p += 3;
    }
    while (p < end) {
        const char *eol = p;

        while (eol < end && *eol != '\n' && *eol != '\r') {
            eol++;
        }
        plain_line(&r, p, (size_t)(eol - p), eol < end);
        if (eol + 1 < end && eol[0] == '\r' && eol[1] == '\n') {
            eol++;
        }
        p = eol < end ? eol + 1 : end;
    }
    if (r.open) {
        add_end(t);
    }
}

/* ---- the scanner -------------------------------------------------------- */

/* The size of the next piece. */
static size_t piece(uint32_t *x, unsigned how, size_t left)
{
    size_t n = left;

    if (how > 0 && how < 32) {
        n = how;
    }
    else if (how >= 32) {
        *x ^= *x << 13;
        *x ^= *x >> 17;
        *x ^= *x << 5;
        n = 1 + *x % how;
    }
    return n < left ? n : left;
}

static void scan_piece(aigw_sse_t *sse, const char *p, size_t n, text_t *t)
{
    const char *end = p + n;
    aigw_slice_t run;

    while (p < end) {
        const char *before = p;

        switch (aigw_sse_next(sse, &p, end, &run)) {
        case AIGW_SSE_DATA:
            must(run.n > 0);
            add(t, run.p, run.n);
            break;
        case AIGW_SSE_END:
            must(p > before);
            add_end(t);
            break;
        case AIGW_SSE_START:
            must(p < end);
            break;
        case AIGW_SSE_MORE:
            must(p == end);
            break;
        }
    }
}

static void scan(const char *p, size_t n, unsigned how, int tell, text_t *t)
{
    aigw_sse_t sse;
    uint32_t x = 2463534242u;
    size_t at = 0;

    aigw_sse_init(&sse, tell);
    while (at < n) {
        size_t size = piece(&x, how, n - at);
        char *copy = malloc(size);

        memcpy(copy, p + at, size);
        scan_piece(&sse, copy, size, t);
        free(copy);
        at += size;
    }
    if (aigw_sse_finish(&sse) == AIGW_SSE_END) {
        add_end(t);
    }
}

/* ---- the meter ---------------------------------------------------------- */

typedef struct {
    aigw_meter_t m;
    char *out;
    size_t n, kept;
} client_t;

static void sink_pass(void *ctx, const char *p, apr_size_t n)
{
    client_t *c = ctx;

    must(n > 0 && c->kept == 0);
    memcpy(c->out + c->n, p, n);
    c->n += n;
}

static void sink_keep(void *ctx, const char *p, apr_size_t n)
{
    client_t *c = ctx;

    must(n > 0 && c->m.withhold);
    memcpy(c->out + c->n, p, n);
    c->n += n;
    c->kept += n;
    must(c->kept <= 64 * 1024);
}

static void sink_release(void *ctx)
{
    client_t *c = ctx;

    must(c->kept > 0);
    c->kept = 0;
}

static void sink_drop(void *ctx)
{
    client_t *c = ctx;

    must(c->kept > 0);
    c->n -= c->kept;
    c->kept = 0;
}

static const aigw_meter_sink_t sink = {sink_pass, sink_keep, sink_release,
                                       sink_drop};

static void meter(client_t *c, const char *p, size_t n, unsigned how,
                  int withhold)
{
    uint32_t x = 88172645u;
    size_t at = 0;

    c->n = c->kept = 0;
    aigw_meter_init(&c->m, AIGW_METER_SSE, &aigw_dialect_openai, withhold);
    while (at < n) {
        size_t size = piece(&x, how, n - at);
        char *copy = malloc(size);

        memcpy(copy, p + at, size);
        aigw_meter_feed(&c->m, copy, size, &sink, c);
        free(copy);
        at += size;
    }
    aigw_meter_finish(&c->m, 1, &sink, c);
    must(c->kept == 0);
}

static void same_seen(const aigw_meter_seen_t *a, const aigw_meter_seen_t *b)
{
    must(memcmp(&a->usage, &b->usage, sizeof(a->usage)) == 0);
    must(strcmp(a->model, b->model) == 0);
    must(strcmp(a->finish, b->finish) == 0);
    must(strcmp(a->error, b->error) == 0);
    must(strcmp(a->tier, b->tier) == 0);
    must(strcmp(a->cost_stated, b->cost_stated) == 0);
    must(a->events == b->events && a->saw_end == b->saw_end);
    must(a->saw_error == b->saw_error && a->saw_content == b->saw_content);
    must(a->bad_json == b->bad_json && a->bad_number == b->bad_number);
    must(a->cache_outside == b->cache_outside && a->odd_total == b->odd_total);
}

static void check_meter(const char *p, size_t n, unsigned how)
{
    client_t *whole = calloc(1, sizeof(*whole));
    client_t *cut = calloc(1, sizeof(*cut));
    int withhold;

    whole->out = malloc(n + 1);
    cut->out = malloc(n + 1);
    for (withhold = 0; withhold < 2; withhold++) {
        meter(whole, p, n, 0, withhold);
        meter(cut, p, n, how, withhold);
        same_seen(&whole->m.seen, &cut->m.seen);
        must(withhold || (cut->n == n && memcmp(cut->out, p, n) == 0));
        /* an undecided event of over 64 KiB passes only if it is cut */
        if (n < 64 * 1024) {
            must(whole->n == cut->n
                 && memcmp(whole->out, cut->out, cut->n) == 0);
        }
    }
    free(whole->out);
    free(cut->out);
    free(whole);
    free(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned how = size > 0 ? data[0] : 0;
    const char *p = (const char *)data + (size > 0);
    size_t n = size - (size > 0);
    text_t want = {malloc(4 * n + 4), 0}, got = {malloc(4 * n + 4), 0};
    int tell;

    plain_read(p, n, &want);
    for (tell = 0; tell < 2; tell++) {
        got.n = 0;
        scan(p, n, tell ? how : 0, tell, &got);
        must(got.n == want.n && memcmp(got.p, want.p, got.n) == 0);
        got.n = 0;
        scan(p, n, tell ? 0 : how, tell, &got);
        must(got.n == want.n && memcmp(got.p, want.p, got.n) == 0);
    }
    free(want.p);
    free(got.p);
    check_meter(p, n, how);
    return 0;
}
