/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One answer, as the bytes that go on the wire, made piece by piece.  This
 * file knows HTTP framing, pacing and faults, and no socket: it appends to a
 * buffer, says when it wants to be asked again, and at the end says what
 * shall become of the connection.
 */
#ifndef SIM_ANSWER_H
#define SIM_ANSWER_H

#include <stdint.h>

#include "buf.h"
#include "chat.h"
#include "params.h"
#include "request.h"

typedef enum sim_then_t {
    SIM_THEN_MORE = 0, /* not ended: call sim_answer_step again at due */
    SIM_THEN_HOLD,     /* silent from here on, until the peer leaves */
    SIM_THEN_KEEP,     /* ended; the connection may carry another request */
    SIM_THEN_FIN,      /* ended; close for writing */
    SIM_THEN_RST       /* ended; reset */
} sim_then_t;

typedef struct sim_answer_t {
    const sim_params_t *par;  /* borrowed from the connection */
    const sim_request_t *req; /* borrowed from the connection */
    sim_chat_t chat;
    sim_buf_t body; /* of an answer that is no live stream */
    int live;       /* an event stream, made as it goes */
    int raw;        /* body is the whole answer, head and all */
    int counted;    /* a chat answer: it has token counts */
    int status;
    const char *ctype;
    const char *allow;     /* value of Allow, or NULL */
    sim_framing_t framing; /* never AUTO once begun */
    int stage;
    sim_then_t then;
    int cut;      /* the simulator broke the answer off */
    uint64_t due; /* when the next step is wanted; 0 = at once */
    uint64_t serial;
    uint64_t events;   /* content events to make */
    uint64_t made;     /* content events made so far */
    uint64_t emitted;  /* bytes of body so far */
    uint64_t declared; /* Content-Length as sent */
} sim_answer_t;

/**
 * Begin the answer to a complete request; what it shall be is still open.
 * @param par     with the request's own overrides applied
 * @param serial  number of the answer: makes its ids and its phase
 */
void sim_answer_begin(sim_answer_t *a, const sim_params_t *par,
                      const sim_request_t *req, uint64_t serial);

/** Make it a document: status, type and body; takes over the bytes of body. */
void sim_answer_document(sim_answer_t *a, int status, const char *ctype,
                         sim_buf_t *body);

/** Make it an OpenAI error document. */
void sim_answer_error(sim_answer_t *a, int status, const char *message);

/** Append the next piece to out, and set then and due. */
void sim_answer_step(sim_answer_t *a, sim_buf_t *out, uint64_t now);

/** The answer that nobody asked for, of the extra-bytes faults. */
extern const char sim_answer_extra[];

/** Free what the answer holds. */
void sim_answer_done(sim_answer_t *a);

#endif
