/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The member finder of json.h.  A cursor walks over one object; values are
 * skipped by counting brackets outside of strings.  It checks shape as far
 * as it needs it to find its way, not grammar.
 */
#include "json.h"

#include <string.h>

typedef struct cursor_t {
    const char *p, *end;
} cursor_t;

static void skip_space(cursor_t *c)
{
    while (c->p < c->end && memchr(" \t\r\n", *c->p, 4)) {
        c->p++;
    }
}

static int skip_char(cursor_t *c, char want)
{
    skip_space(c);
    if (c->p >= c->end || *c->p != want) {
        return 0;
    }
    c->p++;
    return 1;
}

static int skip_string(cursor_t *c)
{
    if (!skip_char(c, '"')) {
        return 0;
    }
    for (; c->p < c->end; c->p++) {
        if (*c->p == '\\' && c->p + 1 < c->end) {
            c->p++;
        }
        else if (*c->p == '"') {
            c->p++;
            return 1;
        }
    }
    return 0;
}

static int skip_nested(cursor_t *c)
{
    size_t depth = 0;

    while (c->p < c->end) {
        if (*c->p == '"') {
            if (!skip_string(c)) {
                return 0;
            }
            continue;
        }
        depth += (*c->p == '{' || *c->p == '[');
        depth -= (*c->p == '}' || *c->p == ']');
        c->p++;
        if (!depth) {
            return 1;
        }
    }
    return 0;
}

static int skip_value(cursor_t *c)
{
    const char *from;

    skip_space(c);
    if (c->p >= c->end) {
        return 0;
    }
    if (*c->p == '"') {
        return skip_string(c);
    }
    if (*c->p == '{' || *c->p == '[') {
        return skip_nested(c);
    }
    from = c->p;
    while (c->p < c->end && !memchr(",]} \t\r\n", *c->p, 7)) {
        c->p++;
    }
    return c->p > from;
}

static int member(cursor_t *c, sim_slice_t *key, sim_slice_t *value)
{
    skip_space(c);
    key->p = c->p;
    if (!skip_string(c)) {
        return 0;
    }
    key->p++;
    key->n = (size_t)(c->p - key->p) - 1;
    if (!skip_char(c, ':')) {
        return 0;
    }
    skip_space(c);
    value->p = c->p;
    if (!skip_value(c)) {
        return 0;
    }
    value->n = (size_t)(c->p - value->p);
    return 1;
}

int sim_json_find(sim_slice_t text, const char *name, sim_slice_t *value)
{
    cursor_t c = {text.p, text.p + text.n};
    sim_slice_t key, v;
    int found = 0;

    value->p = text.p;
    value->n = 0;
    if (!skip_char(&c, '{')) {
        return -1;
    }
    if (skip_char(&c, '}')) {
        return 0;
    }
    do {
        if (!member(&c, &key, &v)) {
            return -1;
        }
        if (sim_slice_is(key, name)) {
            *value = v;
            found = 1;
        }
    } while (skip_char(&c, ','));
    return skip_char(&c, '}') ? found : -1;
}

static size_t utf8_tail(unsigned char c)
{
    if (c < 0x80) {
        return 0;
    }
    if (c < 0xc2 || c > 0xf4) {
        return 9;
    }
    return c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
}

int sim_json_utf8(const char *p, size_t n)
{
    size_t i, k, tail;

    for (i = 0; i < n; i += tail + 1) {
        unsigned char c = (unsigned char)p[i];
        unsigned char d = i + 1 < n ? (unsigned char)p[i + 1] : 0;

        tail = utf8_tail(c);
        if (tail >= n - i) {
            return 0;
        }
        for (k = 1; k <= tail; k++) {
            if (((unsigned char)p[i + k] & 0xc0) != 0x80) {
                return 0;
            }
        }
        if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d > 0x9f)
            || (c == 0xf0 && d < 0x90) || (c == 0xf4 && d > 0x8f)) {
            return 0;
        }
    }
    return 1;
}
