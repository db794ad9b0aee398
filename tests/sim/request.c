/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading of requests: request line, fields, framing, body.  What follows a
 * request stays in the input buffer, so pipelined requests are read one by
 * one.  Nothing here answers.
 */
#define _GNU_SOURCE 1
#include "request.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

enum { STEP_SIZE = 0, STEP_DATA, STEP_DATA_END, STEP_TRAILER };

static int refuse(sim_request_t *r, int status, const char *why)
{
    r->error_status = status;
    r->error = why;
    return -1;
}

static int is_token(sim_slice_t s)
{
    size_t i;

    for (i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c <= 0x20 || c >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", c)) {
            return 0;
        }
    }
    return s.n > 0;
}

static int has_control(sim_slice_t s)
{
    size_t i;

    for (i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return 1;
        }
    }
    return 0;
}

static sim_slice_t trim(sim_slice_t s)
{
    while (s.n && (*s.p == ' ' || *s.p == '\t')) {
        s.p++;
        s.n--;
    }
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t')) {
        s.n--;
    }
    return s;
}

int sim_request_field(const sim_request_t *r, size_t *at, sim_slice_t *name,
                      sim_slice_t *value)
{
    const char *base = SIM_BUF_AT(&r->head), *line, *eol, *colon;
    size_t size = SIM_BUF_SIZE(&r->head);

    if (*at == 0 && size) {
        eol = memmem(base, size, "\r\n", 2);
        *at = eol ? (size_t)(eol - base) + 2 : size;
    }
    if (*at + 2 >= size) {
        return 0;
    }
    line = base + *at;
    eol = memmem(line, size - *at, "\r\n", 2);
    if (!eol || eol == line) {
        return 0;
    }
    *at = (size_t)(eol - base) + 2;
    colon = memchr(line, ':', (size_t)(eol - line));
    name->p = line;
    name->n = colon ? (size_t)(colon - line) : 0;
    value->p = colon ? colon + 1 : eol;
    value->n = (size_t)(eol - value->p);
    *value = trim(*value);
    return 1;
}

int sim_request_find(const sim_request_t *r, const char *name,
                     sim_slice_t *value)
{
    size_t at = 0;
    sim_slice_t n;

    while (sim_request_field(r, &at, &n, value)) {
        if (sim_slice_case(n, name)) {
            return 1;
        }
    }
    value->p = NULL;
    value->n = 0;
    return 0;
}

static int request_line(sim_request_t *r)
{
    const char *p = SIM_BUF_AT(&r->head), *sp1, *sp2, *eol, *q;

    eol = memmem(p, SIM_BUF_SIZE(&r->head), "\r\n", 2);
    sp1 = memchr(p, ' ', (size_t)(eol - p));
    sp2 = sp1 ? memchr(sp1 + 1, ' ', (size_t)(eol - sp1 - 1)) : NULL;
    if (!sp2 || eol - sp2 != 9 || memcmp(sp2 + 1, "HTTP/1.", 7) != 0
        || (sp2[8] != '0' && sp2[8] != '1')) {
        return refuse(r, 400, "the request line is malformed");
    }
    r->minor = sp2[8] - '0';
    r->method.p = p;
    r->method.n = (size_t)(sp1 - p);
    r->target.p = sp1 + 1;
    r->target.n = (size_t)(sp2 - sp1 - 1);
    q = memchr(r->target.p, '?', r->target.n);
    r->path.p = r->target.p;
    r->path.n = q ? (size_t)(q - r->target.p) : r->target.n;
    r->query.p = q ? q + 1 : sp2;
    r->query.n = (size_t)(sp2 - r->query.p);
    if (!is_token(r->method) || has_control(r->target) || !r->path.n) {
        return refuse(r, 400, "the request line is malformed");
    }
    return 0;
}

static int list_has(sim_slice_t list, const char *word)
{
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        sim_slice_t item = {list.p, comma ? (size_t)(comma - list.p) : list.n};
        size_t used = comma ? item.n + 1 : item.n;

        if (sim_slice_case(trim(item), word)) {
            return 1;
        }
        list.p += used;
        list.n -= used;
    }
    return 0;
}

static int read_length(sim_request_t *r, sim_slice_t v)
{
    size_t i;

    r->length = 0;
    for (i = 0; i < v.n; i++) {
        if (v.p[i] < '0' || v.p[i] > '9' || i > 17) {
            return refuse(r, 400, "Content-Length is not a number");
        }
        r->length = r->length * 10 + (uint64_t)(v.p[i] - '0');
    }
    if (!v.n) {
        return refuse(r, 400, "Content-Length is empty");
    }
    return r->length > SIM_BODY_MAX
               ? refuse(r, 413, "the body is larger than 256 MiB")
               : 0;
}

typedef struct seen_t {
    int host, length, te;
} seen_t;

static int field_means(sim_request_t *r, sim_slice_t n, sim_slice_t v,
                       seen_t *seen)
{
    if (!is_token(n) || has_control(v)) {
        return refuse(r, 400, "a header field is malformed");
    }
    if (sim_slice_case(n, "content-length")) {
        seen->length++;
        return read_length(r, v);
    }
    if (sim_slice_case(n, "transfer-encoding")) {
        seen->te++;
        r->chunked = 1;
        return sim_slice_case(v, "chunked")
                   ? 0
                   : refuse(r, 501, "Transfer-Encoding is not chunked");
    }
    if (sim_slice_case(n, "host")) {
        seen->host++;
    }
    else if (sim_slice_case(n, "expect")) {
        r->expect = sim_slice_case(v, "100-continue");
    }
    else if (sim_slice_case(n, "connection")) {
        if (list_has(v, "close")) {
            r->keep = 0;
        }
        else if (list_has(v, "keep-alive") && r->minor == 0) {
            r->keep = 1;
        }
    }
    return 0;
}

static int read_fields(sim_request_t *r)
{
    size_t at = 0;
    sim_slice_t n, v;
    seen_t seen = {0, 0, 0};

    r->keep = r->minor == 1;
    while (sim_request_field(r, &at, &n, &v)) {
        if (field_means(r, n, v, &seen) != 0) {
            return -1;
        }
    }
    if (seen.length + seen.te > 1) {
        return refuse(r, 400, "the body is framed twice");
    }
    if (seen.host > 1 || (r->minor == 1 && !seen.host)) {
        return refuse(r, 400, "one Host field is needed");
    }
    return 0;
}

static int bare_lf(const char *p, size_t n)
{
    const char *s = p, *end = p + n;

    while (s < end && (s = memchr(s, '\n', (size_t)(end - s)))) {
        if (s == p || s[-1] != '\r') {
            return 1;
        }
        s++;
    }
    return 0;
}

int sim_request_head(sim_request_t *r, sim_buf_t *in)
{
    const char *end;
    size_t n;

    while (SIM_BUF_SIZE(in) >= 2 && !memcmp(SIM_BUF_AT(in), "\r\n", 2)) {
        sim_buf_drop(in, 2);
    }
    if (!SIM_BUF_SIZE(in)) {
        return 0;
    }
    end = memmem(SIM_BUF_AT(in), SIM_BUF_SIZE(in), "\r\n\r\n", 4);
    n = end ? (size_t)(end - SIM_BUF_AT(in)) + 4 : SIM_BUF_SIZE(in);
    if (n > SIM_HEAD_MAX) {
        return refuse(r, 431, "the request head is larger than 64 KiB");
    }
    if (bare_lf(SIM_BUF_AT(in), n)) {
        return refuse(r, 400, "a line ends in LF without CR");
    }
    if (!end) {
        return 0;
    }
    sim_buf_add(&r->head, SIM_BUF_AT(in), n);
    sim_buf_drop(in, n);
    return request_line(r) != 0 || read_fields(r) != 0 ? -1 : 1;
}

static int take(sim_request_t *r, sim_buf_t *in)
{
    size_t n = SIM_BUF_SIZE(in);

    if (n > r->length) {
        n = (size_t)r->length;
    }
    sim_buf_add(&r->body, SIM_BUF_AT(in), n);
    sim_buf_drop(in, n);
    r->length -= n;
    return r->length == 0;
}

static int take_line(sim_buf_t *in, char *line, size_t size)
{
    const char *eol = NULL;
    size_t n = SIM_BUF_SIZE(in);

    if (n) {
        eol = memmem(SIM_BUF_AT(in), n, "\r\n", 2);
    }
    n = eol ? (size_t)(eol - SIM_BUF_AT(in)) : n;
    if (n >= size) {
        return -1;
    }
    if (!eol) {
        return 0;
    }
    memcpy(line, SIM_BUF_AT(in), n);
    line[n] = '\0';
    sim_buf_drop(in, n + 2);
    return 1;
}

static int chunk_size(sim_request_t *r, const char *line)
{
    size_t digits = strspn(line, "0123456789abcdefABCDEF");

    if (!digits || digits > 8
        || (line[digits] && !strchr("; \t", line[digits]))) {
        return refuse(r, 400, "a chunk size is malformed");
    }
    r->length = strtoull(line, NULL, 16);
    if (r->length + SIM_BUF_SIZE(&r->body) > SIM_BODY_MAX) {
        return refuse(r, 413, "the body is larger than 256 MiB");
    }
    r->step = r->length ? STEP_DATA : STEP_TRAILER;
    return 0;
}

static int chunk_line(sim_request_t *r, sim_buf_t *in)
{
    char line[1024];
    int rc = take_line(in, line, sizeof(line));

    if (rc <= 0) {
        return rc ? refuse(r, 400, "a chunk line is too long") : 0;
    }
    if (r->step == STEP_SIZE) {
        return chunk_size(r, line) ? -1 : 2;
    }
    if (r->step == STEP_TRAILER) {
        return *line ? 2 : 1;
    }
    r->step = STEP_SIZE;
    return *line ? refuse(r, 400, "a chunk is longer than it says") : 2;
}

int sim_request_body(sim_request_t *r, sim_buf_t *in)
{
    int rc = 2;

    if (!r->chunked) {
        return take(r, in);
    }
    while (rc == 2) {
        if (r->step == STEP_DATA) {
            if (!take(r, in)) {
                return 0;
            }
            r->step = STEP_DATA_END;
        }
        rc = chunk_line(r, in);
    }
    return rc;
}

static void hash(sim_request_t *r)
{
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned int n = 0, i;
    const void *p = r->body.p ? (const void *)SIM_BUF_AT(&r->body) : "";

    EVP_Digest(p, SIM_BUF_SIZE(&r->body), md, &n, EVP_sha256(), NULL);
    for (i = 0; i < n && i < 32; i++) {
        snprintf(r->sha256 + 2 * i, 3, "%02x", md[i]);
    }
}

static int good_escapes(sim_slice_t v)
{
    size_t i, k;

    for (i = 0; i < v.n; i++) {
        if (v.p[i] != '\\') {
            continue;
        }
        i++;
        if (i >= v.n || !memchr("\"\\/bfnrtu", v.p[i], 9)) {
            return 0;
        }
        for (k = 1; v.p[i] == 'u' && k <= 4; k++) {
            if (i + k >= v.n || !isxdigit((unsigned char)v.p[i + k])) {
                return 0;
            }
        }
    }
    return 1;
}

/* The model goes into JSON again as it stands: it must be fit for that. */
static int usable(sim_slice_t v)
{
    return v.n > 2 && v.n <= 258 && *v.p == '"' && !has_control(v)
           && !memchr(v.p, '\t', v.n) && good_escapes(v)
           && sim_json_utf8(v.p, v.n);
}

static void look_json(sim_request_t *r)
{
    sim_slice_t doc = {SIM_BUF_AT(&r->body), SIM_BUF_SIZE(&r->body)};
    sim_slice_t v, inner;

    r->json = sim_json_find(doc, "model", &v) >= 0;
    if (usable(v)) {
        sim_buf_add(&r->model, v.p + 1, v.n - 2);
    }
    if (sim_json_find(doc, "stream", &v) == 1) {
        r->stream = sim_slice_is(v, "true");
    }
    if (sim_json_find(doc, "stream_options", &v) == 1
        && sim_json_find(v, "include_usage", &inner) == 1) {
        r->include_usage = sim_slice_is(inner, "true");
    }
}

void sim_request_look(sim_request_t *r)
{
    r->body_bytes = SIM_BUF_SIZE(&r->body);
    hash(r);
    if (r->body_bytes) {
        look_json(r);
    }
    r->body_shown = r->body_bytes < SIM_BODY_KEEP
                    && sim_json_utf8(SIM_BUF_AT(&r->body), r->body_bytes);
}

void sim_request_reset(sim_request_t *r)
{
    sim_buf_free(&r->head);
    sim_buf_free(&r->body);
    sim_buf_free(&r->model);
    memset(r, 0, sizeof(*r));
    r->include_usage = -1;
}
