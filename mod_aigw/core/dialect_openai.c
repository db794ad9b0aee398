/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenAI's language: its endpoints, its error bodies, and how the answers of
 * chat completions (and of the older completions) are read, from OpenAI and
 * from the many servers that speak like it.
 *
 * Where usage stands: $.usage, $.choices[*].usage, $.x_groq.usage, in this
 * order of trust, one per event.  Every usage object is a snapshot: a field
 * of a later one replaces the earlier value, null and malformed values change
 * nothing, and a snapshot of zeros never replaces one that has a number.
 * What the counts mean is in openai_counts.c.
 */
#include "openai_counts.h"

/* What is neither count nor cost. */
/* clang-format off */
enum {
    F_USAGE_GROQ = AIGW_OPENAI_FIELDS,
    F_USAGE_CHOICE,
    F_USAGE,
    F_MODEL,
    F_TIER,
    F_CHOICES,
    F_CHOICE,
    F_INDEX,
    F_FINISH,
    F_ERROR,
    F_ERROR_TYPE,
    F_ERROR_CODE,
    F_GROQ_ERROR,
    F_OWN_CODE
};
/* clang-format on */

/* ---- the paths ---------------------------------------------------------- */

/* clang-format off */
#define CREATION(LEAF, WITH)                                                  \
    LEAF("ephemeral_5m_input_tokens", R_WRITE_5M)                             \
    LEAF("ephemeral_1h_input_tokens", R_WRITE_1H)
AIGW_JSONSCAN_TABLE(creation, CREATION);

#define PROMPT_DETAILS(LEAF, WITH)                                            \
    LEAF("cached_tokens", R_CACHED)                                           \
    LEAF("cache_write_tokens", R_WRITE)                                       \
    LEAF("cache_creation_input_tokens", R_WRITE_ALIAS)                        \
    WITH("cache_creation", -1, creation)                                      \
    LEAF("audio_tokens", R_AUDIO_IN)                                          \
    LEAF("image_tokens", R_IMAGE_IN)
AIGW_JSONSCAN_TABLE(prompt_details, PROMPT_DETAILS);

#define MISTRAL_DETAILS(LEAF, WITH)                                           \
    LEAF("cached_tokens", R_CACHED_ALIAS)
AIGW_JSONSCAN_TABLE(mistral_details, MISTRAL_DETAILS);

#define COMPLETION_DETAILS(LEAF, WITH)                                        \
    LEAF("reasoning_tokens", R_REASONING)                                     \
    LEAF("audio_tokens", R_AUDIO_OUT)                                         \
    LEAF("image_tokens", R_IMAGE_OUT)
AIGW_JSONSCAN_TABLE(completion_details, COMPLETION_DETAILS);

AIGW_JSONSCAN_TABLE(cost, AIGW_OPENAI_COST);
AIGW_JSONSCAN_TABLE(cost_details, AIGW_OPENAI_COST_DETAILS);

#define USAGE(LEAF, WITH)                                                     \
    LEAF("prompt_tokens", R_PROMPT)                                           \
    LEAF("completion_tokens", R_COMPLETION)                                   \
    LEAF("total_tokens", R_TOTAL)                                             \
    WITH("prompt_tokens_details", -1, prompt_details)                         \
    WITH("completion_tokens_details", -1, completion_details)                 \
    LEAF("cached_tokens", R_CACHED_ALIAS)                                     \
    LEAF("num_cached_tokens", R_CACHED_ALIAS)                                 \
    LEAF("prompt_cache_hit_tokens", R_CACHED_ALIAS)                           \
    WITH("prompt_token_details", -1, mistral_details)                         \
    LEAF("reasoning_tokens", R_REASONING_ALIAS)                               \
    LEAF("num_search_queries", R_SEARCHES)                                    \
    AIGW_OPENAI_COSTS(LEAF, WITH)
AIGW_JSONSCAN_TABLE(usage, USAGE);

/* What the model said, to be measured. */
#define FUNCTION(LEAF, WITH)                                                  \
    LEAF("arguments", AIGW_JSONSCAN_MEASURE)                                  \
    LEAF("name", AIGW_JSONSCAN_MEASURE)
AIGW_JSONSCAN_TABLE(function, FUNCTION);

#define CALL(LEAF, WITH)                                                      \
    WITH("function", -1, function)
AIGW_JSONSCAN_TABLE(call, CALL);

#define CALLS(LEAF, WITH)                                                     \
    WITH("*", -1, call)
AIGW_JSONSCAN_TABLE(calls, CALLS);

#define PART(LEAF, WITH)                                                      \
    LEAF("text", AIGW_JSONSCAN_MEASURE)
AIGW_JSONSCAN_TABLE(part, PART);

#define PARTS(LEAF, WITH)                                                     \
    WITH("*", -1, part)
AIGW_JSONSCAN_TABLE(parts, PARTS);

#define MESSAGE(LEAF, WITH)                                                   \
    WITH("content", AIGW_JSONSCAN_MEASURE, parts)                             \
    LEAF("reasoning_content", AIGW_JSONSCAN_MEASURE)                          \
    LEAF("reasoning", AIGW_JSONSCAN_MEASURE)                                  \
    LEAF("refusal", AIGW_JSONSCAN_MEASURE)                                    \
    WITH("tool_calls", -1, calls)                                             \
    WITH("function_call", -1, function)
AIGW_JSONSCAN_TABLE(message, MESSAGE);

#define CHOICE(LEAF, WITH)                                                    \
    LEAF("index", F_INDEX)                                                    \
    WITH("delta", -1, message)                                                \
    LEAF("finish_reason", F_FINISH)                                           \
    WITH("message", -1, message)                                              \
    LEAF("text", AIGW_JSONSCAN_MEASURE)                                       \
    WITH("usage", F_USAGE_CHOICE, usage)
AIGW_JSONSCAN_TABLE(choice, CHOICE);

#define CHOICES(LEAF, WITH)                                                   \
    WITH("*", F_CHOICE, choice)
AIGW_JSONSCAN_TABLE(choices, CHOICES);

#define GROQ(LEAF, WITH)                                                      \
    LEAF("error", F_GROQ_ERROR)                                               \
    WITH("usage", F_USAGE_GROQ, usage)
AIGW_JSONSCAN_TABLE(groq, GROQ);

#define ERROR(LEAF, WITH)                                                     \
    LEAF("type", F_ERROR_TYPE)                                                \
    LEAF("code", F_ERROR_CODE)
AIGW_JSONSCAN_TABLE(error, ERROR);

#define BASE_RESP(LEAF, WITH)                                                 \
    LEAF("status_code", F_OWN_CODE)
AIGW_JSONSCAN_TABLE(base_resp, BASE_RESP);

#define ANSWER(LEAF, WITH)                                                    \
    LEAF("model", F_MODEL)                                                    \
    WITH("choices", F_CHOICES, choices)                                       \
    WITH("usage", F_USAGE, usage)                                             \
    WITH("error", F_ERROR, error)                                             \
    WITH("x_groq", -1, groq)                                                  \
    LEAF("service_tier", F_TIER)                                              \
    LEAF("code", F_OWN_CODE)                                                  \
    WITH("base_resp", -1, base_resp)
AIGW_JSONSCAN_TABLE(answer, ANSWER);
/* clang-format on */

static const aigw_jsonscan_node_t document = {"", 0, -1, &answer_table};

/* ---- values of an event ------------------------------------------------- */

static void close_choice(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;

    if (s->choice_index == 0 && s->choice_finish[0] != '\0') {
        memcpy(m->seen.finish, s->choice_finish, sizeof(m->seen.finish));
    }
    ++s->choice_place;
}

static void take_choice(aigw_meter_t *m, const aigw_jsonscan_value_t *v)
{
    aigw_dialect_state_t *s = &m->state;

    if (v->kind == AIGW_JSON_CLOSE) {
        close_choice(m);
        return;
    }
    s->event_choice = 1;
    s->choice_index = s->choice_place;
    s->choice_finish[0] = '\0';
    m->seen.saw_content = 1;
}

/* Only an empty array or null holds no choice. */
static void take_choices(aigw_meter_t *m, const aigw_jsonscan_value_t *v)
{
    if (v->kind == AIGW_JSON_ARRAY) {
        m->state.choice_place = 0;
    }
    else if (v->kind != AIGW_JSON_NULL && v->kind != AIGW_JSON_CLOSE) {
        m->state.event_choice = 1;
    }
}

static void take_error_part(aigw_meter_t *m, int field,
                            const aigw_jsonscan_value_t *v)
{
    switch (field) {
    case F_ERROR:
        aigw_answer_error_here(m, "error", v);
        break;
    case F_GROQ_ERROR:
        aigw_answer_error_here(m, "x_groq.error", v);
        break;
    default:
        aigw_answer_error_word(m, field == F_ERROR_TYPE ? 2 : 3, v);
        break;
    }
}

/* A code that stands alone: whether it is an error shows when the event has
 * ended without an answer. 0 and 200 are success. */
static void take_own_code(aigw_meter_t *m, const aigw_jsonscan_value_t *v)
{
    if ((v->kind == AIGW_JSON_NUMBER || aigw_answer_is_text(v))
        && !aigw_slice_is(v->text, "0") && !aigw_slice_is(v->text, "200")) {
        aigw_answer_copy(m->state.word, sizeof(m->state.word), v->text);
    }
}

static void take_finish(aigw_meter_t *m, const aigw_jsonscan_value_t *v)
{
    if (!aigw_answer_is_text(v)) {
        return;
    }
    AIGW_ANSWER_KEEP(m->state.choice_finish, v);
    if (aigw_slice_is(v->text, "error")) {
        aigw_answer_error(m, 0, "error", 5);
    }
}

static void take(void *ctx, int field, const aigw_jsonscan_value_t *v)
{
    aigw_meter_t *m = ctx;

    switch (field) {
    case F_CHOICE:
        take_choice(m, v);
        break;
    case F_CHOICES:
        take_choices(m, v);
        break;
    case F_INDEX:
        aigw_jsonscan_count(v, &m->state.choice_index);
        break;
    case F_FINISH:
        take_finish(m, v);
        break;
    case F_MODEL:
        AIGW_ANSWER_KEEP(m->seen.model, v);
        break;
    case F_TIER:
        AIGW_ANSWER_KEEP(m->seen.tier, v);
        break;
    case F_USAGE_GROQ:
    case F_USAGE_CHOICE:
    case F_USAGE:
        aigw_answer_usage(&m->state, (unsigned)(field - F_USAGE_GROQ + 1), v);
        break;
    case F_COST:
    case F_COST_TICKS:
    case F_COST_BESIDE:
    case F_BYOK:
        aigw_openai_cost(m, field, v);
        break;
    case F_ERROR:
    case F_ERROR_TYPE:
    case F_ERROR_CODE:
    case F_GROQ_ERROR:
        take_error_part(m, field, v);
        break;
    case F_OWN_CODE:
        take_own_code(m, v);
        break;
    default:
        aigw_answer_count(m, field, v);
        break;
    }
}

/* ---- events ------------------------------------------------------------- */

/* A code alone, in an event that brought nothing else, is an error. */
static void judge_own_code(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;

    if (aigw_answer_whole(m) && !s->event_choice && !s->event_usage
        && !s->event_error) {
        aigw_answer_error(m, 1, s->word, strlen(s->word));
    }
}

static void event_end(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;

    if (s->word[0] != '\0') {
        judge_own_code(m);
    }
    if (s->usage_whole && aigw_openai_merge(m)) {
        s->usage_last = !s->event_choice && m->seen.finish[0] != '\0';
    }
}

static int is_end(const char *data, apr_size_t n)
{
    return n == 6 && memcmp(data, "[DONE]", 6) == 0;
}

static const aigw_answer_t chat = {
    .paths = &document,
    .value = take,
    .event_start = aigw_answer_event_start,
    .event_end = event_end,
    .is_end = is_end,
    .settle = aigw_openai_settle,
    .may_lack_end = 1,
};

/* ---- error bodies ------------------------------------------------------- */

/* The form has no place for the request's id: a header carries it. */
static apr_size_t error_body(char *buf, apr_size_t size,
                             const aigw_reason_info_t *info,
                             const char *message, const char *id)
{
    aigw_errout_t o;

    (void)id;
    o.p = buf;
    o.end = buf + size - 1;
    aigw_errout_put(&o, "{\"error\":{\"message\":\"");
    aigw_errout_escaped(&o, message != NULL ? message : info->message, 160);
    aigw_errout_put(&o, "\",\"type\":\"");
    aigw_errout_put(&o, info->type);
    aigw_errout_put(&o, "\",\"param\":null,\"code\":\"");
    aigw_errout_escaped(&o, info->code != NULL ? info->code : info->word, 8);
    aigw_errout_put(&o, "\"}}\n");
    *o.p = '\0';
    return (apr_size_t)(o.p - buf);
}

/* ---- the dialects ------------------------------------------------------- */

#define POST(API, PATH, ANSWER) \
    .api = API, .path = PATH, .method = "POST", .answer = &(ANSWER)

/* clang-format off */
static const aigw_endpoint_t endpoints[] = {
    {POST(AIGW_API_OPENAI_CHAT, "/chat/completions", chat), .ask_usage = 1},
    {POST(AIGW_API_OPENAI_COMPLETIONS, "/completions", chat), .ask_usage = 1},
    {POST(AIGW_API_OPENAI_RESPONSES, "/responses", aigw_openai_responses)},
    {POST(AIGW_API_OPENAI_EMBEDDINGS, "/embeddings", aigw_openai_document)},
    {POST(AIGW_API_OPENAI_MODERATIONS, "/moderations",
          aigw_openai_document)},
    {POST(AIGW_API_OPENAI_IMAGES, "/images/generations", aigw_openai_images)},
    {POST(AIGW_API_OPENAI_IMAGES, "/images/edits", aigw_openai_images),
     .model = AIGW_MODEL_FORM},
    {POST(AIGW_API_OPENAI_AUDIO, "/audio/speech", aigw_openai_speech),
     .format_streams = 1},
    {POST(AIGW_API_OPENAI_AUDIO, "/audio/transcriptions",
          aigw_openai_transcription), .model = AIGW_MODEL_FORM},
    {POST(AIGW_API_OPENAI_AUDIO, "/audio/translations",
          aigw_openai_transcription), .model = AIGW_MODEL_FORM},
    {.api = AIGW_API_OPENAI_MODELS, .path = "/models", .method = "GET",
     .answer = &aigw_openai_document, .local = 1, .model = AIGW_MODEL_NONE},
    {.path = NULL},
};
/* clang-format on */

#define OPENAI(NAME, REASONING)                                               \
    {                                                                         \
        .name = NAME, .language = "openai", .reasoning = REASONING,           \
        .endpoints = endpoints, .text_factor = 380, .error_body = error_body, \
        .error_type = "application/json"                                      \
    }

const aigw_dialect_t aigw_dialect_openai =
    OPENAI("openai", AIGW_REASONING_INSIDE);
const aigw_dialect_t aigw_dialect_openai_gemini =
    OPENAI("gemini-openai", AIGW_REASONING_HIDDEN);
const aigw_dialect_t aigw_dialect_openai_perplexity =
    OPENAI("perplexity", AIGW_REASONING_OUTSIDE);
const aigw_dialect_t aigw_dialect_openai_xai =
    OPENAI("xai", AIGW_REASONING_UNTOLD);
