/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two line buffers: one for the protocol (head, chunk sizes, trailers) and
 * one for the body's text, as a line of text may go on in the next chunk.
 * A line that does not fit its buffer is wrong.
 */
#define _GNU_SOURCE 1
#include "answer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TEXT_MAX (1 << 20)
#define BY_LENGTH 1
#define BY_CHUNKS 2

void answer_begin(answer_t *a, const char *mark)
{
    char *text = a->text;
    size_t size = a->size;
    void (*stamp)(void *, uint64_t) = a->stamp;
    void *ctx = a->ctx;

    memset(a, 0, sizeof(*a));
    a->text = text;
    a->size = size;
    a->stamp = stamp;
    a->ctx = ctx;
    a->mark = mark;
    a->keep = 1;
}

void answer_free(answer_t *a)
{
    free(a->text);
    a->text = NULL;
    a->n = a->size = 0;
}

static int keep_text(answer_t *a, const char *p, size_t n)
{
    if (a->n + n > TEXT_MAX) {
        a->state = ANSWER_BAD;
        return -1;
    }
    if (a->n + n >= a->size) {
        size_t size = (a->n + n + 1) * 2;
        char *grown = realloc(a->text, size);

        if (!grown) {
            abort();
        }
        a->text = grown;
        a->size = size;
    }
    memcpy(a->text + a->n, p, n);
    a->n += n;
    a->text[a->n] = '\0';
    return 0;
}

static void check_mark(answer_t *a, const char *p)
{
    size_t n = strcspn(p, "#");
    char *end;

    if (a->mark && strlen(a->mark) == n && memcmp(p, a->mark, n) == 0
        && p[n] == '#' && strtoull(p + n + 1, &end, 10) == a->marks
        && *end == ';') {
        a->marks++;
    }
    else {
        a->foreign++;
    }
}

static void body_line(answer_t *a)
{
    const char *s = a->text;

    if (strncmp(s, "data: ", 6) == 0) {
        a->events += s[6] == '{';
        a->ended |= strcmp(s + 6, "[DONE]") == 0;
    }
    while ((s = strchr(s, '~'))) {
        if (s[1] == 'E' && s[2] == '=') {
            check_mark(a, s + 3);
        }
        else if (s[1] == 'T' && s[2] == '=' && a->stamp) {
            a->stamp(a->ctx, strtoull(s + 3, NULL, 10));
        }
        s++;
    }
}

static void body(answer_t *a, const char *p, size_t n)
{
    const char *nl;

    a->body_bytes += n;
    while (n && (nl = memchr(p, '\n', n))) {
        size_t line = (size_t)(nl - p);

        if (keep_text(a, p, line) != 0) {
            return;
        }
        body_line(a);
        a->n = 0;
        p += line + 1;
        n -= line + 1;
    }
    if (n) {
        keep_text(a, p, n);
    }
}

static void ended(answer_t *a)
{
    if (a->n) {
        body_line(a);
    }
    a->n = 0;
    a->state = ANSWER_WHOLE;
}

static void field(answer_t *a, const char *line)
{
    const char *value = strchr(line, ':');
    size_t name;

    if (!value) {
        a->state = ANSWER_BAD;
        return;
    }
    name = (size_t)(value - line);
    value += 1 + strspn(value + 1, " \t");
    if (name == 14 && strncasecmp(line, "content-length", name) == 0) {
        a->left = strtoull(value, NULL, 10);
        a->framing |= BY_LENGTH;
    }
    else if (name == 17 && strncasecmp(line, "transfer-encoding", name) == 0) {
        a->framing |= BY_CHUNKS;
    }
    else if (name == 10 && strncasecmp(line, "connection", name) == 0) {
        a->keep = strcasestr(value, "close") == NULL;
    }
    else if (name == 12 && strncasecmp(line, "x-request-id", name) == 0) {
        strncpy(a->id, value, sizeof(a->id) - 1);
    }
}

static void head_over(answer_t *a)
{
    if (a->status < 200) { /* an interim one: the answer is still to come */
        a->status = 0;
        a->framing = 0;
    }
    else if (a->status == 204 || a->status == 304) {
        a->state = ANSWER_WHOLE;
    }
    else if (a->framing == BY_CHUNKS) {
        a->state = ANSWER_CHUNK_SIZE;
    }
    else if (a->framing == BY_LENGTH) {
        a->state = a->left ? ANSWER_COUNTED : ANSWER_WHOLE;
    }
    else if (a->framing) { /* both: no client would agree with another */
        a->state = ANSWER_BAD;
    }
    else {
        a->state = ANSWER_UNTIL_CLOSE;
        a->keep = 0;
    }
}

static void head_line(answer_t *a)
{
    if (a->status) {
        if (a->line_n) {
            field(a, a->line);
        }
        else {
            head_over(a);
        }
    }
    else if (strncmp(a->line, "HTTP/1.1 ", 9) == 0
             && isdigit((unsigned char)a->line[9])) {
        a->status = (int)strtol(a->line + 9, NULL, 10);
    }
    else {
        a->state = ANSWER_BAD;
    }
}

static void chunk_size_line(answer_t *a)
{
    char *end;

    a->left = strtoull(a->line, &end, 16);
    if (!isxdigit((unsigned char)a->line[0]) || (*end && *end != ';')) {
        a->state = ANSWER_BAD;
    }
    else {
        a->state = a->left ? ANSWER_CHUNK : ANSWER_TRAILER;
    }
}

static void protocol_line(answer_t *a)
{
    switch (a->state) {
    case ANSWER_HEAD:
        head_line(a);
        break;
    case ANSWER_CHUNK_SIZE:
        chunk_size_line(a);
        break;
    case ANSWER_CHUNK_END:
        a->state = a->line_n ? ANSWER_BAD : ANSWER_CHUNK_SIZE;
        break;
    default: /* ANSWER_TRAILER */
        if (!a->line_n) {
            ended(a);
        }
        break;
    }
}

/* A part of a protocol line, or all of it. */
static size_t feed_line(answer_t *a, const char *p, size_t n)
{
    const char *nl = memchr(p, '\n', n);
    size_t used = nl ? (size_t)(nl - p) : n;

    if (a->line_n + used >= sizeof(a->line)) {
        a->state = ANSWER_BAD;
        return n;
    }
    memcpy(a->line + a->line_n, p, used);
    a->line_n += used;
    if (!nl) {
        return n;
    }
    if (a->line_n && a->line[a->line_n - 1] == '\r') {
        a->line_n--;
    }
    a->line[a->line_n] = '\0';
    protocol_line(a);
    a->line_n = 0;
    return used + 1;
}

static size_t feed_body(answer_t *a, const char *p, size_t n)
{
    if (a->state != ANSWER_UNTIL_CLOSE && n > a->left) {
        n = (size_t)a->left;
    }
    body(a, p, n);
    if (a->state == ANSWER_UNTIL_CLOSE || a->state == ANSWER_BAD) {
        return n;
    }
    a->left -= n;
    if (!a->left && a->state == ANSWER_CHUNK) {
        a->state = ANSWER_CHUNK_END;
    }
    else if (!a->left) {
        ended(a);
    }
    return n;
}

size_t answer_feed(answer_t *a, const char *p, size_t n)
{
    size_t at = 0;

    while (at < n && a->state < ANSWER_WHOLE) {
        switch (a->state) {
        case ANSWER_COUNTED:
        case ANSWER_CHUNK:
        case ANSWER_UNTIL_CLOSE:
            at += feed_body(a, p + at, n - at);
            break;
        default:
            at += feed_line(a, p + at, n - at);
            break;
        }
    }
    return at;
}

void answer_eof(answer_t *a)
{
    if (a->state == ANSWER_UNTIL_CLOSE) {
        ended(a);
    }
}
