/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request body through the JSON scanner, with a table of four paths.
 * What a value means is checked here; that the whole body is JSON is the
 * scanner's word.  The first fault in the order of the bytes is the one that
 * is told, but a body that is not JSON is always told as such.
 */
#include "reqbody.h"
#include "jsonscan.h"

enum { F_BODY = 0, F_MODEL, F_STREAM, F_OPTIONS, F_INCLUDE };

#define OPTIONS(LEAF, WITH) LEAF("include_usage", F_INCLUDE)
AIGW_JSONSCAN_TABLE(options, OPTIONS);

#define BODY(LEAF, WITH)     \
    LEAF("model", F_MODEL)   \
    LEAF("stream", F_STREAM) \
    WITH("stream_options", F_OPTIONS, options)
AIGW_JSONSCAN_TABLE(body, BODY);

static const aigw_jsonscan_node_t document = {"", 0, F_BODY, &body_table};

typedef struct {
    aigw_reqbody_t *out;
    aigw_body_fault_t fault;
    unsigned seen; /* bit per field */
} scan_t;

static void blame(scan_t *s, aigw_body_fault_t fault, apr_uint64_t at)
{
    if (s->fault == AIGW_BODY_OK) {
        s->fault = fault;
        s->out->fault_at = (apr_size_t)at;
    }
}

/* 1 if this is the first value of that field. */
static int first(scan_t *s, int field, apr_uint64_t at)
{
    if (s->seen & (1u << field)) {
        blame(s, AIGW_BODY_DUPLICATE, at);
        return 0;
    }
    s->seen |= 1u << field;
    return 1;
}

static void take_model(scan_t *s, const aigw_jsonscan_value_t *v)
{
    aigw_reqbody_t *out = s->out;
    apr_size_t i;

    if (v->kind != AIGW_JSON_STRING || v->cut || v->text.n == 0
        || v->text.n >= sizeof(out->model)) {
        blame(s, AIGW_BODY_BAD_MODEL, v->at);
        return;
    }
    for (i = 0; i < v->text.n; ++i) {
        if ((unsigned char)v->text.p[i] < 0x20 || v->text.p[i] == 0x7f) {
            blame(s, AIGW_BODY_BAD_MODEL, v->at);
            return;
        }
    }
    memcpy(out->model, v->text.p, v->text.n);
    out->model[v->text.n] = '\0';
    out->model_at = (apr_size_t)v->at;
    out->model_len = (apr_size_t)(v->end - v->at);
}

static void take_stream(scan_t *s, const aigw_jsonscan_value_t *v)
{
    if (v->kind > AIGW_JSON_TRUE) {
        blame(s, AIGW_BODY_BAD_STREAM, v->at);
        return;
    }
    s->out->stream = v->kind == AIGW_JSON_TRUE;
}

static void take_options(scan_t *s, const aigw_jsonscan_value_t *v)
{
    if (v->kind != AIGW_JSON_OBJECT && v->kind != AIGW_JSON_NULL) {
        blame(s, AIGW_BODY_BAD_OPTIONS, v->at);
        return;
    }
    s->out->options_at = (apr_size_t)v->at;
    s->out->options_len = (apr_size_t)(v->end - v->at);
    s->out->options_null = v->kind == AIGW_JSON_NULL;
}

static void take_include(scan_t *s, const aigw_jsonscan_value_t *v)
{
    if (v->kind > AIGW_JSON_TRUE) {
        blame(s, AIGW_BODY_BAD_OPTIONS, v->at);
        return;
    }
    s->out->include_usage = v->kind == AIGW_JSON_TRUE;
    s->out->include_at = (apr_size_t)v->at;
    s->out->include_len = (apr_size_t)(v->end - v->at);
}

static void take_body(scan_t *s, const aigw_jsonscan_value_t *v)
{
    if (v->kind != AIGW_JSON_OBJECT) {
        blame(s, AIGW_BODY_NOT_JSON, v->at);
        return;
    }
    s->out->object_at = (apr_size_t)v->end;
}

static void take(void *ctx, int field, const aigw_jsonscan_value_t *v)
{
    scan_t *s = ctx;

    if (v->kind == AIGW_JSON_CLOSE) {
        if (field == F_OPTIONS && s->fault == AIGW_BODY_OK) {
            s->out->options_len = (apr_size_t)v->end - s->out->options_at;
        }
        return;
    }
    if (!first(s, field, v->at)) {
        return;
    }
    switch (field) {
    case F_MODEL:
        take_model(s, v);
        break;
    case F_STREAM:
        take_stream(s, v);
        break;
    case F_OPTIONS:
        take_options(s, v);
        break;
    case F_INCLUDE:
        take_include(s, v);
        break;
    default:
        take_body(s, v);
        break;
    }
}

/* 1 if nothing but white space is between the braces of stream_options. */
static int empty_options(const char *body, const aigw_reqbody_t *rb)
{
    apr_size_t i = rb->options_at + 1;

    while (body[i] == ' ' || body[i] == '\t' || body[i] == '\n'
           || body[i] == '\r') {
        ++i;
    }
    return body[i] == '}';
}

aigw_body_fault_t aigw_reqbody_scan(const char *body, apr_size_t n,
                                    aigw_reqbody_t *out)
{
    aigw_jsonscan_t js;
    aigw_jsonscan_end_t end;
    scan_t s;

    memset(out, 0, sizeof(*out));
    out->include_usage = -1;
    memset(&s, 0, sizeof(s));
    s.out = out;
    aigw_jsonscan_init(&js, &document);
    js.nulls = 1;
    aigw_jsonscan_feed(&js, body, n, take, &s);
    end = aigw_jsonscan_finish(&js, take, &s);
    if (end != AIGW_JSONSCAN_WHOLE) {
        int known = end == AIGW_JSONSCAN_BAD || end == AIGW_JSONSCAN_DEEP;

        out->fault_at = known ? (apr_size_t)js.bad_at : n;
        return end == AIGW_JSONSCAN_DEEP ? AIGW_BODY_TOO_DEEP
                                         : AIGW_BODY_NOT_JSON;
    }
    if (s.fault == AIGW_BODY_OK && !(s.seen & (1u << F_MODEL))) {
        blame(&s, AIGW_BODY_NO_MODEL, n);
    }
    if (s.fault == AIGW_BODY_OK && out->options_len > 0
        && !out->options_null) {
        out->options_empty = empty_options(body, out);
    }
    return s.fault;
}

/* ---- edits -------------------------------------------------------------- */

#define INCLUDE "\"include_usage\":true"

static aigw_edit_t edit(apr_size_t at, apr_size_t cut, const char *put)
{
    aigw_edit_t e;

    e.at = at;
    e.cut = cut;
    e.put = aigw_slice(put, strlen(put));
    return e;
}

/* The splice that asks for usage; 0 if the body already does. The body has a
 * model, so that a comma after what is put first is always right. */
static int ask_edit(const aigw_reqbody_t *rb, aigw_edit_t *e)
{
    if (rb->include_usage == 1) {
        return 0;
    }
    if (rb->include_len > 0) {
        *e = edit(rb->include_at, rb->include_len, "true");
    }
    else if (rb->options_len == 0) {
        *e = edit(rb->object_at, 0, "\"stream_options\":{" INCLUDE "},");
    }
    else if (rb->options_null) {
        *e = edit(rb->options_at, rb->options_len, "{" INCLUDE "}");
    }
    else {
        *e = edit(rb->options_at + 1, 0,
                  rb->options_empty ? INCLUDE : INCLUDE ",");
    }
    return 1;
}

int aigw_reqbody_edits(const aigw_reqbody_t *rb, int ask_usage,
                       aigw_slice_t rename, aigw_edit_t *edits)
{
    int n = 0;

    if (ask_usage && rb->stream) {
        n = ask_edit(rb, &edits[0]);
    }
    if (rename.p != NULL) {
        edits[n].at = rb->model_at;
        edits[n].cut = rb->model_len;
        edits[n].put = rename;
        ++n;
    }
    if (n == 2 && edits[1].at < edits[0].at) {
        aigw_edit_t later = edits[0];

        edits[0] = edits[1];
        edits[1] = later;
    }
    return n;
}
