/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counts of OpenAI's language under the names that its APIs give them,
 * and their way into the buckets.  It is shared by the readers of the chat's
 * answers and of the others; nothing else knows of it.
 */
#ifndef AIGW_OPENAI_COUNTS_H
#define AIGW_OPENAI_COUNTS_H

#include "answer.h"

/* Places of the raw counts. "Prompt" is input and "completion" output
 * wherever an API says so. */
/* clang-format off */
enum {
    R_PROMPT = 0,
    R_COMPLETION,
    R_TOTAL,
    R_CACHED,       /* prompt_tokens_details.cached_tokens */
    R_CACHED_ALIAS, /* the same number under other names */
    R_WRITE,        /* prompt_tokens_details.cache_write_tokens */
    R_WRITE_ALIAS,
    R_WRITE_5M,     /* parts of it, where they are told apart */
    R_WRITE_1H,
    R_AUDIO_IN,
    R_IMAGE_IN,
    R_REASONING,
    R_REASONING_ALIAS,
    R_AUDIO_OUT,
    R_IMAGE_OUT,
    R_SEARCHES,
    R_IMAGES,       /* images made */
    R_SECONDS,      /* of audio */
    /* money */
    F_COST = AIGW_DIALECT_COUNTS,
    F_COST_TICKS,   /* 10^-10 USD each */
    F_COST_BESIDE,
    F_BYOK,
    AIGW_OPENAI_FIELDS /* the first that a reader may use for itself */
};

/* Money that a usage object may state; "cost" and "cost_details" are tables
 * of the next two lists. */
#define AIGW_OPENAI_COSTS(LEAF, WITH)                                         \
    WITH("cost", F_COST, cost)                                                \
    LEAF("cost_in_usd_ticks", F_COST_TICKS)                                   \
    WITH("cost_details", -1, cost_details)                                    \
    LEAF("is_byok", F_BYOK)
#define AIGW_OPENAI_COST(LEAF, WITH)                                          \
    LEAF("total_cost", F_COST)
#define AIGW_OPENAI_COST_DETAILS(LEAF, WITH)                                  \
    LEAF("upstream_inference_cost", F_COST_BESIDE)
/* clang-format on */

/** A value at one of the F_ fields above. */
void aigw_openai_cost(aigw_meter_t *m, int field,
                      const aigw_jsonscan_value_t *v);

/** The event's snapshot, its cost included. @return 1 if it was taken */
int aigw_openai_merge(aigw_meter_t *m);

/** The merged counts into the meter's usage. */
void aigw_openai_settle(aigw_meter_t *m);

/* How the answers of the other APIs are read. */
extern const aigw_answer_t aigw_openai_responses;
extern const aigw_answer_t aigw_openai_document; /* embeddings, moderations */
extern const aigw_answer_t aigw_openai_images;
extern const aigw_answer_t aigw_openai_speech;
extern const aigw_answer_t aigw_openai_transcription;

#endif
