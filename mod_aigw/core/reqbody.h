/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the gateway must know of a request body, found by scanning and never
 * by building a tree: model, stream, stream_options, at depth 1 only, or the
 * parts of a form that are called so.  The bytes that were checked are the
 * bytes that are sent: the only change is a splice, described here as an edit
 * list and carried out by the caller.
 */
#ifndef AIGW_REQBODY_H
#define AIGW_REQBODY_H

#include "slice.h"
#include "dialect.h"

typedef enum {
    AIGW_BODY_OK = 0,
    AIGW_BODY_NOT_JSON,       /* not one JSON object, or trailing bytes */
    AIGW_BODY_TOO_DEEP,       /* nesting over 64 */
    AIGW_BODY_DUPLICATE,      /* model, stream or stream_options twice at
                                 depth 1, or include_usage twice */
    AIGW_BODY_NO_MODEL,       /* absent */
    AIGW_BODY_BAD_MODEL,      /* not a string, empty, over 256 bytes, or with
                                 control characters after unescaping */
    AIGW_BODY_BAD_STREAM,     /* stream not true/false/null */
    AIGW_BODY_BAD_OPTIONS,    /* stream_options neither object nor null, or
                                 include_usage not true/false/null */
    AIGW_BODY_NOT_FORM        /* Content-Type says a form with parts, and the
                                 body is none, or one that readers may take
                                 differently */
} aigw_body_fault_t;

/** One splice: at @a at, @a cut bytes go and @a put comes (static text or
 * the caller's). Edits are sorted by @a at and do not overlap. */
typedef struct {
    apr_size_t at;
    apr_size_t cut;
    aigw_slice_t put;
} aigw_edit_t;

#define AIGW_REQBODY_EDITS 4

typedef struct {
    char model[257];        /* unescaped, NUL-terminated */
    int stream;             /* 1 if "stream":true */
    int include_usage;      /* -1 not said, 0 false or null, 1 true */
    apr_size_t fault_at;    /* offset of what made the fault */
    /* where things stand in the body, for the splices */
    apr_size_t model_at, model_len;    /* the model's value with its quotes */
    apr_size_t options_at, options_len; /* of stream_options; len 0: none */
    int options_null;       /* 1: it is null, to be replaced */
    int options_empty;      /* 1: "{}", so no comma is needed */
    apr_size_t include_at, include_len; /* of include_usage; len 0: none */
    apr_size_t object_at;   /* the offset just after the opening brace */
    apr_uint64_t text_bytes; /* of what was asked, unescaped: messages,
                                instructions, prompts, no pictures; for an
                                estimate */
} aigw_reqbody_t;

/**
 * Scan a whole body. Linear in @a n, no allocation, no recursion.
 * @param body the bytes as they came; not changed, not kept
 * @param out  filled in; on a fault only fault_at (and what was found
 *             before it) holds
 */
aigw_body_fault_t aigw_reqbody_scan(const char *body, apr_size_t n,
                                    aigw_reqbody_t *out);

/**
 * The same for any endpoint, by where its requests name their model. In a
 * form, model_at and model_len are the bare name's, without quotes; where
 * the path names the model, model_len is 0 and there is nothing to splice.
 * @param match what aigw_endpoint_match() found
 * @param type  the request's Content-Type, or NULL
 */
aigw_body_fault_t aigw_reqbody_read(const aigw_match_t *match,
                                    const char *type, const char *body,
                                    apr_size_t n, aigw_reqbody_t *out);

/**
 * The splices that make a streamed chat request ask for its usage
 * (stream_options.include_usage true: inserted, or an explicit false or null
 * replaced), and optionally rename the model.
 * @param ask_usage   1: see above; does nothing unless rb->stream
 * @param rename      a model name to send instead, as JSON text with its
 *                    quotes (for a form: bare), or {NULL,0}
 * @param edits       room for AIGW_REQBODY_EDITS
 * @return number of edits; 0 means the body goes as it is
 */
int aigw_reqbody_edits(const aigw_reqbody_t *rb, int ask_usage,
                       aigw_slice_t rename, aigw_edit_t *edits);

#endif
