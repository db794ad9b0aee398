/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request body through the JSON scanner, with a table of the paths that
 * matter, or part by part.  What a value means is checked here; that the
 * whole body is JSON is the scanner's word.  The first fault in the order of
 * the bytes is the one that is told, but a body that is not JSON is always
 * told as such.
 */
#include "reqbody.h"
#include "jsonscan.h"
#include "multipart.h"

/* clang-format off */
enum { F_BODY = 0, F_MODEL, F_STREAM, F_OPTIONS, F_INCLUDE, F_FORMAT };

/* ---- the paths ---------------------------------------------------------- */

/* What is asked, in any language: strings, or lists of parts with a text. */
#define PART(LEAF, WITH)                                                      \
    LEAF("text", AIGW_JSONSCAN_MEASURE)
AIGW_JSONSCAN_TABLE(part, PART);

#define PARTS(LEAF, WITH)                                                     \
    WITH("*", AIGW_JSONSCAN_MEASURE, part)
AIGW_JSONSCAN_TABLE(parts, PARTS);

#define MESSAGE(LEAF, WITH)                                                   \
    WITH("content", AIGW_JSONSCAN_MEASURE, parts)                             \
    WITH("parts", -1, parts)                                                  \
    LEAF("text", AIGW_JSONSCAN_MEASURE)                                       \
    LEAF("output", AIGW_JSONSCAN_MEASURE)
AIGW_JSONSCAN_TABLE(message, MESSAGE);

#define MESSAGES(LEAF, WITH)                                                  \
    WITH("*", AIGW_JSONSCAN_MEASURE, message)
AIGW_JSONSCAN_TABLE(messages, MESSAGES);

#define ASKED(LEAF, WITH)                                                     \
    WITH("messages", -1, messages)                                            \
    WITH("input", AIGW_JSONSCAN_MEASURE, messages)                            \
    WITH("system", AIGW_JSONSCAN_MEASURE, parts)                              \
    LEAF("instructions", AIGW_JSONSCAN_MEASURE)                               \
    WITH("prompt", AIGW_JSONSCAN_MEASURE, parts)                              \
    WITH("contents", -1, messages)                                            \
    WITH("content", -1, message)                                              \
    WITH("systemInstruction", -1, message)                                    \
    WITH("system_instruction", -1, message)

#define OPTIONS(LEAF, WITH)                                                   \
    LEAF("include_usage", F_INCLUDE)
AIGW_JSONSCAN_TABLE(options, OPTIONS);

#define BODY(LEAF, WITH)                                                      \
    LEAF("model", F_MODEL)                                                    \
    LEAF("stream", F_STREAM)                                                  \
    WITH("stream_options", F_OPTIONS, options)                                \
    LEAF("stream_format", F_FORMAT)                                           \
    ASKED(LEAF, WITH)
AIGW_JSONSCAN_TABLE(body, BODY);

/* Where the path says what the body says elsewhere. */
AIGW_JSONSCAN_TABLE(rest, ASKED);
/* clang-format on */

static const aigw_jsonscan_node_t document = {"", 0, F_BODY, &body_table};
static const aigw_jsonscan_node_t rest = {"", 0, F_BODY, &rest_table};

typedef struct {
    aigw_reqbody_t *out;
    aigw_body_fault_t fault;
    unsigned seen; /* bit per field */
    int format;    /* stream_format may ask for a stream */
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

/* A name of 1 to 256 bytes without control characters. @return 1 if it is */
static int keep_model(aigw_reqbody_t *out, aigw_slice_t name)
{
    apr_size_t i;

    if (name.n == 0 || name.n >= sizeof(out->model)) {
        return 0;
    }
    for (i = 0; i < name.n; ++i) {
        if ((unsigned char)name.p[i] < 0x20 || name.p[i] == 0x7f) {
            return 0;
        }
    }
    memcpy(out->model, name.p, name.n);
    out->model[name.n] = '\0';
    return 1;
}

static void take_model(scan_t *s, const aigw_jsonscan_value_t *v)
{
    aigw_reqbody_t *out = s->out;

    if (v->kind != AIGW_JSON_STRING || v->cut || !keep_model(out, v->text)) {
        blame(s, AIGW_BODY_BAD_MODEL, v->at);
        return;
    }
    out->model_at = (apr_size_t)v->at;
    out->model_len = (apr_size_t)(v->end - v->at);
}

static void take_stream(scan_t *s, const aigw_jsonscan_value_t *v)
{
    if (v->kind > AIGW_JSON_TRUE) {
        blame(s, AIGW_BODY_BAD_STREAM, v->at);
        return;
    }
    if (v->kind != AIGW_JSON_NULL) {
        s->out->stream = v->kind == AIGW_JSON_TRUE;
    }
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
    case F_FORMAT:
        s->out->stream |= s->format && aigw_slice_is(v->text, "sse");
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

/* The whole body as JSON. AIGW_BODY_OK: it is, and no fault was seen. */
static aigw_body_fault_t scan_json(scan_t *s, const aigw_jsonscan_node_t *root,
                                   const char *body, apr_size_t n)
{
    aigw_jsonscan_t js;
    aigw_jsonscan_end_t end;

    aigw_jsonscan_init(&js, root);
    js.nulls = 1;
    aigw_jsonscan_feed(&js, body, n, take, s);
    end = aigw_jsonscan_finish(&js, take, s);
    s->out->text_bytes = js.measured;
    if (end != AIGW_JSONSCAN_WHOLE) {
        int known = end == AIGW_JSONSCAN_BAD || end == AIGW_JSONSCAN_DEEP;

        s->out->fault_at = known ? (apr_size_t)js.bad_at : n;
        return end == AIGW_JSONSCAN_DEEP ? AIGW_BODY_TOO_DEEP
                                         : AIGW_BODY_NOT_JSON;
    }
    return s->fault;
}

static aigw_body_fault_t scan_named(scan_t *s, const char *body, apr_size_t n)
{
    aigw_reqbody_t *out = s->out;
    aigw_body_fault_t fault = scan_json(s, &document, body, n);

    if (fault == AIGW_BODY_OK && !(s->seen & (1u << F_MODEL))) {
        out->fault_at = n;
        return AIGW_BODY_NO_MODEL;
    }
    if (fault == AIGW_BODY_OK && out->options_len > 0 && !out->options_null) {
        out->options_empty = empty_options(body, out);
    }
    return fault;
}

static void start(scan_t *s, aigw_reqbody_t *out)
{
    memset(out, 0, sizeof(*out));
    out->include_usage = -1;
    memset(s, 0, sizeof(*s));
    s->out = out;
}

aigw_body_fault_t aigw_reqbody_scan(const char *body, apr_size_t n,
                                    aigw_reqbody_t *out)
{
    scan_t s;

    start(&s, out);
    return scan_named(&s, body, n);
}

/* ---- forms -------------------------------------------------------------- */

static int is_word(aigw_slice_t s, const char *word)
{
    return aigw_slice_is_nocase(s, word);
}

static void take_part(scan_t *s, const aigw_multipart_part_t *part,
                      apr_size_t at)
{
    aigw_reqbody_t *out = s->out;

    if (aigw_slice_is(part->name, "model")) {
        if (first(s, F_MODEL, at)
            && (part->file || !keep_model(out, part->value))) {
            blame(s, AIGW_BODY_BAD_MODEL, at);
        }
        out->model_at = at;
        out->model_len = part->value.n;
    }
    else if (aigw_slice_is(part->name, "stream")) {
        int yes = is_word(part->value, "true");

        if (first(s, F_STREAM, at)
            && (part->file || (!yes && !is_word(part->value, "false")))) {
            blame(s, AIGW_BODY_BAD_STREAM, at);
        }
        out->stream = yes;
    }
    else if (aigw_slice_is(part->name, "prompt") && !part->file) {
        out->text_bytes += part->value.n;
    }
}

static aigw_body_fault_t scan_form(scan_t *s, const char *type,
                                   const char *body, apr_size_t n)
{
    aigw_multipart_part_t part;
    aigw_multipart_t mp;
    aigw_rc_t rc = aigw_multipart_start(&mp, type, body, n);

    if (rc == AIGW_OK) {
        while ((rc = aigw_multipart_next(&mp, &part)) == AIGW_OK) {
            take_part(s, &part, (apr_size_t)(part.value.p - body));
        }
    }
    if (rc != AIGW_DONE) {
        s->out->fault_at = mp.p != NULL ? (apr_size_t)(mp.p - body) : 0;
        return AIGW_BODY_NOT_FORM;
    }
    if (s->fault == AIGW_BODY_OK && !(s->seen & (1u << F_MODEL))) {
        blame(s, AIGW_BODY_NO_MODEL, n);
    }
    return s->fault;
}

/* ---- any endpoint ------------------------------------------------------- */

static aigw_body_fault_t scan_unnamed(scan_t *s, const aigw_match_t *match,
                                      const char *body, apr_size_t n)
{
    if (!keep_model(s->out, match->model)) {
        return AIGW_BODY_BAD_MODEL;
    }
    s->out->stream = match->endpoint->streams;
    return scan_json(s, &rest, body, n);
}

aigw_body_fault_t aigw_reqbody_read(const aigw_match_t *match,
                                    const char *type, const char *body,
                                    apr_size_t n, aigw_reqbody_t *out)
{
    const aigw_endpoint_t *e = match->endpoint;
    scan_t s;

    start(&s, out);
    s.format = e->format_streams;
    out->stream = e->stream_default;
    switch (e->model) {
    case AIGW_MODEL_NONE:
        return AIGW_BODY_OK;
    case AIGW_MODEL_PATH:
        return scan_unnamed(&s, match, body, n);
    case AIGW_MODEL_FORM:
        if (aigw_multipart_is(type)) {
            return scan_form(&s, type, body, n);
        }
        break;
    case AIGW_MODEL_JSON:
        break;
    }
    return scan_named(&s, body, n);
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
