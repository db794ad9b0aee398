/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of any bytes.  What must hold: every cut of the bytes gives the
 * same head, the same body and the same verdict at the same byte; a head that
 * is taken can be written anew without a byte that ends a line in it; a
 * chunked body that is taken, written as one chunk, gives the same bytes.
 * The first byte of the input tells how the rest is cut.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

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

/* ---- heads -------------------------------------------------------------- */

/* The head found in a buffer that grows by pieces. */
static aigw_rc_t grow(const char *p, size_t n, unsigned how,
                      aigw_http1_head_t *head)
{
    aigw_rc_t rc = AIGW_AGAIN;
    apr_size_t scanned = 0;
    uint32_t x = 2463534242u;
    size_t have = 0;

    while (rc == AIGW_AGAIN && have < n) {
        char *copy;

        have += piece(&x, how, n - have);
        copy = malloc(have);
        memcpy(copy, p, have);
        rc = aigw_http1_head(copy, have, &scanned, head);
        must(rc != AIGW_OK || head->size <= have);
        free(copy);
    }
    return rc;
}

static void check_text(aigw_slice_t s)
{
    must(memchr(s.p, '\r', s.n) == NULL && memchr(s.p, '\n', s.n) == NULL
         && memchr(s.p, '\0', s.n) == NULL);
}

static void check_head(const aigw_http1_head_t *head)
{
    int i;

    must(head->status >= 100 && head->status <= 599);
    must(head->n_fields <= AIGW_HTTP1_FIELDS);
    must(head->frame != AIGW_FRAME_CLOSE || !head->keep_alive);
    must(head->frame != AIGW_FRAME_LENGTH || head->length > 0);
    for (i = 0; i < head->n_fields; i++) {
        aigw_slice_t v = head->field[i].value;

        must(head->field[i].name.n > 0);
        check_text(head->field[i].name);
        check_text(v);
        must(memchr(head->field[i].name.p, ':', head->field[i].name.n)
             == NULL);
        must(v.n == 0
             || (v.p[0] != ' ' && v.p[0] != '\t' && v.p[v.n - 1] != ' '
                 && v.p[v.n - 1] != '\t'));
    }
}

/* ---- bodies ------------------------------------------------------------- */

typedef struct {
    aigw_rc_t rc;
    size_t used, n;
    char *out;
} body_t;

static void decode(const aigw_http1_head_t *head, const char *p, size_t n,
                   unsigned how, body_t *r)
{
    aigw_http1_body_t b;
    uint32_t x = 88172645u;

    r->used = r->n = 0;
    r->out = malloc(n + 1);
    aigw_http1_body_init(&b, head);
    do {
        size_t size = piece(&x, how, n - r->used);
        char *copy = malloc(size + 1);
        const char *at = copy;
        aigw_slice_t run;

        memcpy(copy, p + r->used, size);
        while ((r->rc = aigw_http1_body_next(&b, &at, copy + size, &run))
               == AIGW_OK) {
            must(run.n > 0 && run.p >= copy && run.p + run.n == at);
            memcpy(r->out + r->n, run.p, run.n);
            r->n += run.n;
        }
        r->used += (size_t)(at - copy);
        must(r->rc != AIGW_AGAIN || at == copy + size);
        free(copy);
    } while (r->rc == AIGW_AGAIN && r->used < n);
    must(r->rc == AIGW_DONE || r->rc == AIGW_AGAIN || r->rc == AIGW_MALFORMED);
    must((aigw_http1_body_eof(&b) == AIGW_DONE)
         == (r->rc == AIGW_DONE
             || (r->rc == AIGW_AGAIN && head->frame == AIGW_FRAME_CLOSE)));
}

/* The body as one chunk is the same body. */
static void check_again(const aigw_http1_head_t *head, const body_t *r)
{
    char *wire = malloc(r->n + 64);
    size_t n = (size_t)snprintf(wire, 64, "%zx\r\n", r->n);
    body_t again;

    memcpy(wire + n, r->out, r->n);
    n += r->n;
    memcpy(wire + n, "\r\n0\r\n\r\n", 7);
    n += 7;
    decode(head, wire, n, 0, &again);
    must(again.rc == AIGW_DONE && again.used == n && again.n == r->n
         && memcmp(again.out, r->out, r->n) == 0);
    free(again.out);
    free(wire);
}

static void check_body(const aigw_http1_head_t *head, const char *p, size_t n,
                       unsigned how)
{
    body_t whole, cut;

    decode(head, p, n, 0, &whole);
    decode(head, p, n, how, &cut);
    must(whole.rc == cut.rc && whole.used == cut.used && whole.n == cut.n
         && memcmp(whole.out, cut.out, cut.n) == 0);
    if (whole.rc == AIGW_DONE && head->frame == AIGW_FRAME_CHUNKED
        && whole.n > 0) {
        check_again(head, &whole);
    }
    free(whole.out);
    free(cut.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static aigw_http1_head_t whole, cut;
    unsigned how = size > 0 ? data[0] : 0;
    const char *p = (const char *)data + (size > 0);
    size_t n = size - (size > 0);
    apr_size_t scanned = 0;
    aigw_rc_t rc = aigw_http1_head(p, n, &scanned, &whole);

    must(scanned <= n);
    must(grow(p, n, how, &cut) == rc);
    if (rc == AIGW_OK) {
        must(whole.size <= n && whole.size == cut.size);
        must(whole.status == cut.status && whole.frame == cut.frame
             && whole.length == cut.length
             && whole.keep_alive == cut.keep_alive
             && whole.n_fields == cut.n_fields);
        check_head(&whole);
        check_body(&whole, p + whole.size, n - whole.size, how);
    }
    /* the rest as a chunked body too, so that a head need not be found */
    memset(&whole, 0, sizeof(whole));
    whole.frame = AIGW_FRAME_CHUNKED;
    check_body(&whole, p, n, how);
    return 0;
}
