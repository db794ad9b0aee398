/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The byte buffer of buf.h.  Invariant: off <= len <= cap, and p is NULL
 * exactly when cap is 0.
 */
#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define KEEP_MAX 4096 /* an emptied buffer up to this size is kept */

static void reserve(sim_buf_t *b, size_t n)
{
    size_t cap = b->cap ? b->cap : 256;

    if (b->off && b->len + n > b->cap) {
        memmove(b->p, b->p + b->off, b->len - b->off);
        b->len -= b->off;
        b->off = 0;
    }
    if (b->cap - b->len >= n) {
        return;
    }
    while (cap - b->len < n) {
        cap *= 2;
    }
    b->p = realloc(b->p, cap);
    if (!b->p) {
        fputs("aigw-sim: out of memory\n", stderr);
        abort();
    }
    b->cap = cap;
}

void sim_buf_add(sim_buf_t *b, const void *data, size_t n)
{
    if (!n) {
        return;
    }
    reserve(b, n);
    memcpy(b->p + b->len, data, n);
    b->len += n;
}

void sim_buf_str(sim_buf_t *b, const char *s)
{
    sim_buf_add(b, s, strlen(s));
}

void sim_buf_fmt(sim_buf_t *b, const char *fmt, ...)
{
    va_list ap;
    int n;

    reserve(b, 1024);
    va_start(ap, fmt);
    n = vsnprintf(b->p + b->len, 1024, fmt, ap);
    va_end(ap);
    if (n > 0) {
        b->len += n < 1024 ? (size_t)n : 1023;
    }
}

static void json_byte(sim_buf_t *b, unsigned char c, int utf8)
{
    if (c == '"' || c == '\\') {
        sim_buf_add(b, "\\", 1);
        sim_buf_add(b, &c, 1);
    }
    else if (c == '\n') {
        sim_buf_add(b, "\\n", 2);
    }
    else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8)) {
        sim_buf_fmt(b, "\\u%04x", c);
    }
    else {
        sim_buf_add(b, &c, 1);
    }
}

void sim_buf_json(sim_buf_t *b, const char *p, size_t n, int utf8)
{
    size_t i;

    reserve(b, n);
    for (i = 0; i < n; i++) {
        json_byte(b, (unsigned char)p[i], utf8);
    }
}

void sim_buf_drop(sim_buf_t *b, size_t n)
{
    b->off += n;
    if (b->off == b->len) {
        b->off = b->len = 0;
        if (b->cap > KEEP_MAX) {
            sim_buf_free(b);
        }
    }
}

void sim_buf_free(sim_buf_t *b)
{
    free(b->p);
    memset(b, 0, sizeof(*b));
}

int sim_slice_is(sim_slice_t s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

int sim_slice_case(sim_slice_t s, const char *text)
{
    return s.n == strlen(text) && strncasecmp(s.p, text, s.n) == 0;
}
