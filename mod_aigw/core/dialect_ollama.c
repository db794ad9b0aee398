/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ollama's own language: /chat and /generate, answered as one JSON document
 * or, unless asked otherwise, as one a line.  The counts stand on the last
 * line, which says "done":true; old servers leave out the count of a prompt
 * that was cached.
 */
#include "answer.h"

/* clang-format off */
enum {
    R_PROMPT = 0,
    R_CACHED,       /* part of it */
    R_OUTPUT,
    /* what is no count */
    F_MODEL = AIGW_DIALECT_COUNTS,
    F_DONE,
    F_FINISH,
    F_MESSAGE,
    F_ERROR
};

#define MESSAGE(LEAF, WITH)                                                   \
    LEAF("content", AIGW_JSONSCAN_MEASURE)                                    \
    LEAF("thinking", AIGW_JSONSCAN_MEASURE)
AIGW_JSONSCAN_TABLE(message, MESSAGE);

#define ANSWER(LEAF, WITH)                                                    \
    LEAF("model", F_MODEL)                                                    \
    WITH("message", F_MESSAGE, message)                                       \
    LEAF("response", AIGW_JSONSCAN_MEASURE)                                   \
    LEAF("thinking", AIGW_JSONSCAN_MEASURE)                                   \
    LEAF("done", F_DONE)                                                      \
    LEAF("done_reason", F_FINISH)                                             \
    LEAF("prompt_eval_count", R_PROMPT)                                       \
    LEAF("prompt_eval_cached_count", R_CACHED)                                \
    LEAF("eval_count", R_OUTPUT)                                              \
    LEAF("error", F_ERROR)
AIGW_JSONSCAN_TABLE(answer, ANSWER);
/* clang-format on */

static const aigw_jsonscan_node_t document = {"", 0, -1, &answer_table};

/* The counts stand at the top: the whole document is the usage object. */
static void event_start(aigw_meter_t *m)
{
    aigw_answer_event_start(m);
    m->state.have = 0;
    m->state.usage_live = 1;
    m->state.usage_whole = 1;
    m->state.type = 0;
}

static void take(void *ctx, int field, const aigw_jsonscan_value_t *v)
{
    aigw_meter_t *m = ctx;

    switch (field) {
    case F_MODEL:
        AIGW_ANSWER_KEEP(m->seen.model, v);
        break;
    case F_FINISH:
        AIGW_ANSWER_KEEP(m->seen.finish, v);
        break;
    case F_DONE:
        m->state.type = v->kind == AIGW_JSON_TRUE;
        break;
    case F_MESSAGE:
        break;
    case F_ERROR:
        aigw_answer_error_here(m, "error", v);
        break;
    default:
        aigw_answer_count(m, field, v);
        break;
    }
}

static void event_end(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;

    m->seen.saw_content |= !s->event_error;
    m->seen.saw_end |= s->type && aigw_answer_whole(m);
    if (aigw_answer_merge(s)) {
        s->usage_last = s->type & 1;
    }
}

static void settle(aigw_meter_t *m)
{
    const aigw_dialect_state_t *s = &m->state;
    aigw_usage_t *u = &m->seen.usage;
    apr_uint64_t prompt = aigw_answer_merged(s, R_PROMPT);
    apr_uint64_t cached = aigw_answer_merged(s, R_CACHED);

    if (s->last_have & (1u << R_PROMPT | 1u << R_CACHED)) {
        m->seen.cache_outside = cached > prompt;
        aigw_usage_set(u, AIGW_U_INPUT_UNCACHED,
                       cached > prompt ? prompt : prompt - cached);
        aigw_usage_set(u, AIGW_U_CACHE_READ, cached);
        aigw_usage_set(u, AIGW_U_CACHE_WRITE_5M, 0);
        aigw_usage_set(u, AIGW_U_CACHE_WRITE_1H, 0);
        aigw_usage_set(u, AIGW_U_CACHE_WRITE_OTHER, 0);
    }
    if (aigw_answer_known(s, R_OUTPUT)) {
        aigw_usage_set(u, AIGW_U_OUTPUT, aigw_answer_merged(s, R_OUTPUT));
        aigw_usage_set(u, AIGW_U_REASONING, 0);
    }
}

static apr_size_t error_body(char *buf, apr_size_t size,
                             const aigw_reason_info_t *info,
                             const char *message, const char *id)
{
    aigw_errout_t o;

    (void)id;
    o.p = buf;
    o.end = buf + size - 1;
    aigw_errout_put(&o, "{\"error\":\"");
    aigw_errout_escaped(&o, message != NULL ? message : info->message, 8);
    aigw_errout_put(&o, "\"}\n");
    *o.p = '\0';
    return (apr_size_t)(o.p - buf);
}

static const aigw_answer_t chat = {
    .paths = &document,
    .value = take,
    .event_start = event_start,
    .event_end = event_end,
    .is_end = aigw_answer_done_is_noise,
    .settle = settle,
};

static const aigw_endpoint_t endpoints[] = {
    {.api = AIGW_API_OLLAMA_CHAT,
     .path = "/chat",
     .method = "POST",
     .stream_default = 1,
     .answer = &chat},
    {.api = AIGW_API_OLLAMA_CHAT,
     .path = "/generate",
     .method = "POST",
     .stream_default = 1,
     .answer = &chat},
    {.path = NULL},
};

const aigw_dialect_t aigw_dialect_ollama = {
    .name = "ollama",
    .language = "ollama",
    .endpoints = endpoints,
    .text_factor = 300,
    .error_body = error_body,
    .error_type = "application/json",
};
