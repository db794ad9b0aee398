/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP/1.1 request as it came: the head is kept byte for byte for the
 * ledger, the body is decoded and kept until it was looked at.  The reader
 * is strict where a lenient one would hide a mistake of the gateway under
 * test: bare LF, obs-fold, two framings and control bytes are refused.
 */
#ifndef SIM_REQUEST_H
#define SIM_REQUEST_H

#include <stdint.h>

#include "buf.h"

#define SIM_HEAD_MAX 65536
#define SIM_BODY_MAX ((uint64_t)256 << 20)
#define SIM_BODY_KEEP 4096 /* the ledger shows bodies below this */

typedef struct sim_request_t {
    sim_buf_t head; /* request line and fields, with the empty line */
    sim_slice_t method, target, path, query; /* point into head */
    int minor;                               /* HTTP/1.minor */
    int keep;                                /* the peer wants to go on */
    int expect;                              /* waits for 100 Continue */
    int chunked;
    uint64_t length; /* Content-Length, or what is left of the chunk */
    int step;        /* of the body's decoder */
    sim_buf_t body;
    uint64_t body_bytes;
    char sha256[65];   /* of the decoded body, hex */
    int body_shown;    /* body is kept, and is UTF-8 */
    sim_buf_t model;   /* as in the body: JSON-escaped, no quotes */
    int stream;        /* "stream":true at depth 1 */
    int include_usage; /* 0, 1, or -1: not said */
    int json;          /* the body is a JSON object */
    int error_status;  /* of a request that is refused */
    const char *error; /* a sentence, or NULL */
} sim_request_t;

/**
 * Take a request head out of in, if it is there.
 * @return 1 the head is complete and consumed; 0 more bytes are needed;
 *         -1 refused: error and error_status are set
 */
int sim_request_head(sim_request_t *r, sim_buf_t *in);

/** As sim_request_head, for the body; call it until it returns 1 or -1. */
int sim_request_body(sim_request_t *r, sim_buf_t *in);

/** Look into the complete body: hash, model, stream, stream_options. */
void sim_request_look(sim_request_t *r);

/**
 * Walk over the header fields.
 * @param at  0 at first; moved on by each call
 * @return 1 and a field, or 0 at the end; a line without colon is a field
 *         without a name
 */
int sim_request_field(const sim_request_t *r, size_t *at, sim_slice_t *name,
                      sim_slice_t *value);

/** @return 1 when the field is there, and its first value */
int sim_request_find(const sim_request_t *r, const char *name,
                     sim_slice_t *value);

/** Free what the request holds and make it ready for the next one. */
void sim_request_reset(sim_request_t *r);

#endif
