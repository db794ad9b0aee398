/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents of OpenAI's chat API: chunks of a stream, the JSON answer,
 * usage, errors, the list of models.  Bodies only: no HTTP, no pacing.
 */
#ifndef SIM_CHAT_H
#define SIM_CHAT_H

#include <stdint.h>

#include "buf.h"
#include "params.h"
#include "request.h"

typedef struct sim_chat_t {
    const sim_params_t *par;  /* borrowed, outlives this */
    const sim_request_t *req; /* borrowed, outlives this */
    sim_buf_t prefix;         /* what all chunks of this stream begin with */
    char id[40];
    long created;
    uint64_t word;   /* next word of the built-in text */
    uint64_t marked; /* contents that carry the request's own word */
} sim_chat_t;

/** Begin an answer; serial makes its id. */
void sim_chat_init(sim_chat_t *c, const sim_params_t *par,
                   const sim_request_t *req, uint64_t serial);

/** Free what sim_chat_init made. */
void sim_chat_done(sim_chat_t *c);

/** Append the first event, which names the role. */
void sim_chat_role(sim_chat_t *c, sim_buf_t *b);

/** Append the next content event. */
void sim_chat_content(sim_chat_t *c, sim_buf_t *b);

/** Append the event with finish_reason. */
void sim_chat_finish(sim_chat_t *c, sim_buf_t *b);

/** Append the event with usage and no choices. */
void sim_chat_usage(sim_chat_t *c, sim_buf_t *b);

/** Append `data: [DONE]`. */
void sim_chat_end(sim_buf_t *b);

/** Append an error as an event. */
void sim_chat_error_event(sim_buf_t *b);

/** Append the whole JSON answer. */
void sim_chat_json(sim_chat_t *c, sim_buf_t *b);

/**
 * Append an error document.
 * @param message  text, or NULL for the one that goes with the status
 */
void sim_chat_error(sim_buf_t *b, int status, const char *message);

/** Append the list of models. */
void sim_chat_models(sim_buf_t *b);

/** @return what the answer states as prompt_tokens */
uint64_t sim_chat_prompt_tokens(const sim_chat_t *c);

/** @return what the answer states as completion_tokens */
uint64_t sim_chat_completion_tokens(const sim_chat_t *c);

#endif
