/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gemini's language: generateContent and its stream (events, or one JSON
 * array whose elements are taken as events), countTokens, embedContent.
 *
 * Usage stands at usageMetadata of a chunk, inside "response" too where a
 * wrapper is around it; it is a running total, and a count of 0 is left out.
 * promptTokenCount includes what was read from a cache; beside it stands
 * toolUsePromptTokenCount, and beside candidatesTokenCount stands
 * thoughtsTokenCount, unless the total says otherwise.
 *
 * There is no end marker: a stream has ended when a candidate has a
 * finishReason or the prompt was blocked.
 */
#include "answer.h"

/* clang-format off */
enum {
    R_PROMPT = 0,
    R_CACHED,
    R_TOOL,
    R_OUTPUT,
    R_THOUGHTS,
    R_TOTAL,
    R_AUDIO_IN,
    R_IMAGE_IN,
    R_AUDIO_OUT,
    R_IMAGE_OUT,
    /* what is no count */
    F_USAGE_WRAPPED = AIGW_DIALECT_COUNTS,
    F_USAGE,
    F_CHUNK,        /* an element of the array */
    F_CANDIDATE,
    F_INDEX,
    F_FINISH,
    F_BLOCKED,
    F_INPUT_PARTS,  /* counts by modality */
    F_OUTPUT_PARTS,
    F_PART,
    F_MODALITY,
    F_PART_COUNT,
    F_MODEL,
    F_TIER,
    F_ERROR,
    F_ERROR_CODE,
    F_ERROR_STATUS
};

/* Modalities, and which list is open. */
enum { M_OTHER = 0, M_AUDIO = 1, M_IMAGE = 2, M_OUTPUT = 16 };

/* ---- the paths ---------------------------------------------------------- */

#define PART(LEAF, WITH)                                                      \
    LEAF("modality", F_MODALITY)                                              \
    LEAF("tokenCount", F_PART_COUNT)
AIGW_JSONSCAN_TABLE(part, PART);

#define PARTS(LEAF, WITH)                                                     \
    WITH("*", F_PART, part)
AIGW_JSONSCAN_TABLE(parts, PARTS);

#define USAGE(LEAF, WITH)                                                     \
    LEAF("promptTokenCount", R_PROMPT)                                        \
    LEAF("candidatesTokenCount", R_OUTPUT)                                    \
    LEAF("totalTokenCount", R_TOTAL)                                          \
    LEAF("cachedContentTokenCount", R_CACHED)                                 \
    LEAF("thoughtsTokenCount", R_THOUGHTS)                                    \
    LEAF("toolUsePromptTokenCount", R_TOOL)                                   \
    WITH("promptTokensDetails", F_INPUT_PARTS, parts)                         \
    WITH("candidatesTokensDetails", F_OUTPUT_PARTS, parts)                    \
    LEAF("trafficType", F_TIER)                                               \
    LEAF("serviceTier", F_TIER)
AIGW_JSONSCAN_TABLE(usage, USAGE);

#define TEXT(LEAF, WITH)                                                      \
    LEAF("text", AIGW_JSONSCAN_MEASURE)
AIGW_JSONSCAN_TABLE(text, TEXT);

#define TEXTS(LEAF, WITH)                                                     \
    WITH("*", -1, text)
AIGW_JSONSCAN_TABLE(texts, TEXTS);

#define CONTENT(LEAF, WITH)                                                   \
    WITH("parts", -1, texts)
AIGW_JSONSCAN_TABLE(content, CONTENT);

#define CANDIDATE(LEAF, WITH)                                                 \
    WITH("content", -1, content)                                              \
    LEAF("index", F_INDEX)                                                    \
    LEAF("finishReason", F_FINISH)
AIGW_JSONSCAN_TABLE(candidate, CANDIDATE);

#define CANDIDATES(LEAF, WITH)                                                \
    WITH("*", F_CANDIDATE, candidate)
AIGW_JSONSCAN_TABLE(candidates, CANDIDATES);

#define FEEDBACK(LEAF, WITH)                                                  \
    LEAF("blockReason", F_BLOCKED)
AIGW_JSONSCAN_TABLE(feedback, FEEDBACK);

#define ERROR(LEAF, WITH)                                                     \
    LEAF("code", F_ERROR_CODE)                                                \
    LEAF("status", F_ERROR_STATUS)
AIGW_JSONSCAN_TABLE(error, ERROR);

/* A chunk with its usage at one place or the other. */
#define CHUNK(LEAF, WITH, USAGE_FIELD)                                        \
    WITH("candidates", -1, candidates)                                        \
    WITH("usageMetadata", USAGE_FIELD, usage)                                 \
    LEAF("modelVersion", F_MODEL)                                             \
    WITH("promptFeedback", -1, feedback)                                      \
    WITH("error", F_ERROR, error)

#define WRAPPED(LEAF, WITH)                                                   \
    CHUNK(LEAF, WITH, F_USAGE_WRAPPED)
AIGW_JSONSCAN_TABLE(wrapped, WRAPPED);

#define ELEMENT(LEAF, WITH)                                                   \
    CHUNK(LEAF, WITH, F_USAGE)                                                \
    WITH("response", -1, wrapped)
AIGW_JSONSCAN_TABLE(element, ELEMENT);

#define ANSWER(LEAF, WITH)                                                    \
    WITH("*", F_CHUNK, element)                                               \
    ELEMENT(LEAF, WITH)
AIGW_JSONSCAN_TABLE(answer, ANSWER);

/* The number that countTokens answers is not used by anybody. */
#define COUNTED(LEAF, WITH)                                                   \
    WITH("error", F_ERROR, error)
AIGW_JSONSCAN_TABLE(counted, COUNTED);
/* clang-format on */

static const aigw_jsonscan_node_t document = {"", 0, -1, &answer_table};
static const aigw_jsonscan_node_t counted = {"", 0, -1, &counted_table};

/* ---- values of an event ------------------------------------------------- */

static void event_end(aigw_meter_t *m);

/* An element of the array is an event of its own. */
static void take_chunk(aigw_meter_t *m, const aigw_jsonscan_value_t *v)
{
    if (v->kind == AIGW_JSON_CLOSE) {
        event_end(m);
    }
    aigw_answer_event_start(m);
}

static void take_candidate(aigw_meter_t *m, const aigw_jsonscan_value_t *v)
{
    aigw_dialect_state_t *s = &m->state;

    if (v->kind != AIGW_JSON_CLOSE) {
        s->choice_index = s->event_choice ? s->choice_place : 0;
        s->choice_place = s->choice_index;
        s->choice_finish[0] = '\0';
        s->event_choice = 1;
        m->seen.saw_content = 1;
        return;
    }
    ++s->choice_place;
    if (s->choice_finish[0] != '\0') {
        m->seen.saw_end = 1;
        if (s->choice_index == 0) {
            memcpy(m->seen.finish, s->choice_finish, sizeof(m->seen.finish));
        }
    }
}

static void take_blocked(aigw_meter_t *m, const aigw_jsonscan_value_t *v)
{
    if (aigw_answer_is_text(v)) {
        AIGW_ANSWER_KEEP(m->seen.finish, v);
        m->seen.saw_end = 1;
        m->seen.saw_content = 1;
    }
}

/* A list of counts by modality begins: what it does not name is unknown. */
static void start_parts(aigw_dialect_state_t *s, int output)
{
    int audio = output ? R_AUDIO_OUT : R_AUDIO_IN;
    int image = output ? R_IMAGE_OUT : R_IMAGE_IN;

    if (s->usage_live) {
        s->have &= ~(1u << audio | 1u << image);
    }
    s->part_type = output ? M_OUTPUT : 0;
}

static void end_part(aigw_dialect_state_t *s)
{
    int field;

    switch (s->part_type) {
    case M_AUDIO:
        field = R_AUDIO_IN;
        break;
    case M_IMAGE:
        field = R_IMAGE_IN;
        break;
    case M_OUTPUT | M_AUDIO:
        field = R_AUDIO_OUT;
        break;
    case M_OUTPUT | M_IMAGE:
        field = R_IMAGE_OUT;
        break;
    default:
        return;
    }
    if (s->usage_live && s->part_have) {
        s->raw[field] = s->part;
        s->have |= 1u << field;
    }
}

static void take_part(aigw_meter_t *m, int field,
                      const aigw_jsonscan_value_t *v)
{
    aigw_dialect_state_t *s = &m->state;

    switch (field) {
    case F_PART:
        if (v->kind == AIGW_JSON_CLOSE) {
            end_part(s);
        }
        s->part_type &= M_OUTPUT;
        s->part_have = 0;
        break;
    case F_MODALITY:
        s->part_type &= M_OUTPUT;
        s->part_type |= aigw_slice_is(v->text, "AUDIO")   ? M_AUDIO
                        : aigw_slice_is(v->text, "IMAGE") ? M_IMAGE
                                                          : M_OTHER;
        break;
    default:
        s->part_have = aigw_jsonscan_count(v, &s->part) == AIGW_OK;
        m->seen.bad_number |= !s->part_have;
        break;
    }
}

static void take_error(aigw_meter_t *m, int field,
                       const aigw_jsonscan_value_t *v)
{
    if (field == F_ERROR) {
        aigw_answer_error_here(m, "error", v);
    }
    else {
        aigw_answer_error_word(m, field == F_ERROR_STATUS ? 3 : 1, v);
    }
}

static void take_other(aigw_meter_t *m, int field,
                       const aigw_jsonscan_value_t *v)
{
    switch (field) {
    case F_INPUT_PARTS:
    case F_OUTPUT_PARTS:
        if (v->kind == AIGW_JSON_ARRAY) {
            start_parts(&m->state, field == F_OUTPUT_PARTS);
        }
        break;
    case F_PART:
    case F_MODALITY:
    case F_PART_COUNT:
        take_part(m, field, v);
        break;
    case F_BLOCKED:
        take_blocked(m, v);
        break;
    case F_ERROR:
    case F_ERROR_CODE:
    case F_ERROR_STATUS:
        take_error(m, field, v);
        break;
    default:
        aigw_answer_count(m, field, v);
        break;
    }
}

static void take(void *ctx, int field, const aigw_jsonscan_value_t *v)
{
    aigw_meter_t *m = ctx;

    switch (field) {
    case F_CHUNK:
        take_chunk(m, v);
        break;
    case F_CANDIDATE:
        take_candidate(m, v);
        break;
    case F_INDEX:
        aigw_jsonscan_count(v, &m->state.choice_index);
        break;
    case F_FINISH:
        AIGW_ANSWER_KEEP(m->state.choice_finish, v);
        break;
    case F_MODEL:
        AIGW_ANSWER_KEEP(m->seen.model, v);
        break;
    case F_TIER:
        AIGW_ANSWER_KEEP(m->seen.tier, v);
        break;
    case F_USAGE_WRAPPED:
    case F_USAGE:
        aigw_answer_usage(&m->state, (unsigned)(field - F_USAGE_WRAPPED + 1),
                          v);
        break;
    default:
        take_other(m, field, v);
        break;
    }
}

static void event_end(aigw_meter_t *m)
{
    if (aigw_answer_merge(&m->state)) {
        m->state.usage_last = m->seen.saw_end;
    }
}

/* ---- from raw counts to buckets ----------------------------------------- */

typedef struct {
    apr_uint64_t prompt, cached, tool, output, thoughts;
} sums_t;

/* What stands beside what; the total can say otherwise. */
static void explain_total(aigw_meter_t *m, sums_t *t)
{
    const aigw_dialect_state_t *s = &m->state;
    apr_uint64_t total = aigw_answer_merged(s, R_TOTAL);
    apr_uint64_t base = t->prompt + t->output;

    if (!aigw_answer_known(s, R_OUTPUT)
        && total > base + t->tool + t->thoughts) {
        t->output = total - base - t->tool - t->thoughts;
        return;
    }
    if (total == base + t->tool + t->thoughts) {
        return;
    }
    if (total == base + t->tool) {
        t->output -= t->thoughts < t->output ? t->thoughts : t->output;
    }
    else if (total == base + t->thoughts) {
        t->tool = 0;
    }
    else if (t->cached > 0
             && total == base + t->tool + t->thoughts + t->cached) {
        m->seen.cache_outside = 1;
    }
    else {
        m->seen.odd_total = 1;
    }
}

static void set_counts(aigw_meter_t *m, const sums_t *t)
{
    const aigw_dialect_state_t *s = &m->state;
    aigw_usage_t *u = &m->seen.usage;
    apr_uint64_t input = t->prompt;

    m->seen.cache_outside |= t->cached > t->prompt;
    if (!m->seen.cache_outside) {
        input -= t->cached;
    }
    aigw_usage_set(u, AIGW_U_INPUT_UNCACHED, input + t->tool);
    aigw_usage_set(u, AIGW_U_CACHE_READ, t->cached);
    aigw_usage_set(u, AIGW_U_CACHE_WRITE_5M, 0);
    aigw_usage_set(u, AIGW_U_CACHE_WRITE_1H, 0);
    aigw_usage_set(u, AIGW_U_CACHE_WRITE_OTHER, 0);
    aigw_answer_set_any(u, AIGW_U_INPUT_AUDIO,
                        aigw_answer_merged(s, R_AUDIO_IN));
    aigw_answer_set_any(u, AIGW_U_INPUT_IMAGE,
                        aigw_answer_merged(s, R_IMAGE_IN));
    if (s->last_have & (1u << R_OUTPUT | 1u << R_THOUGHTS | 1u << R_TOTAL)) {
        aigw_usage_set(u, AIGW_U_OUTPUT, t->output + t->thoughts);
        aigw_usage_set(u, AIGW_U_REASONING, t->thoughts);
        aigw_answer_set_any(u, AIGW_U_OUTPUT_AUDIO,
                            aigw_answer_merged(s, R_AUDIO_OUT));
        aigw_answer_set_any(u, AIGW_U_OUTPUT_IMAGE,
                            aigw_answer_merged(s, R_IMAGE_OUT));
    }
}

static void settle(aigw_meter_t *m)
{
    const aigw_dialect_state_t *s = &m->state;
    sums_t t;

    if (!aigw_answer_known(s, R_PROMPT) && !aigw_answer_known(s, R_TOTAL)) {
        return;
    }
    t.prompt = aigw_answer_merged(s, R_PROMPT);
    t.cached = aigw_answer_merged(s, R_CACHED);
    t.tool = aigw_answer_merged(s, R_TOOL);
    t.output = aigw_answer_merged(s, R_OUTPUT);
    t.thoughts = aigw_answer_merged(s, R_THOUGHTS);
    if (aigw_answer_known(s, R_TOTAL)) {
        explain_total(m, &t);
    }
    if (t.prompt + t.tool > AIGW_COUNT_MAX
        || t.output + t.thoughts > AIGW_COUNT_MAX) {
        m->seen.bad_number = 1;
        return;
    }
    set_counts(m, &t);
}

static void settle_nothing(aigw_meter_t *m)
{
    (void)m;
}

/* ---- error bodies ------------------------------------------------------- */

static const char *error_status(int status)
{
    switch (status) {
    case 401:
        return "UNAUTHENTICATED";
    case 403:
        return "PERMISSION_DENIED";
    case 404:
        return "NOT_FOUND";
    case 408:
    case 504:
        return "DEADLINE_EXCEEDED";
    case 429:
        return "RESOURCE_EXHAUSTED";
    case 499:
        return "CANCELLED";
    case 500:
        return "INTERNAL";
    default:
        return status < 500 ? "INVALID_ARGUMENT" : "UNAVAILABLE";
    }
}

static void put_number(aigw_errout_t *o, int n)
{
    char text[12];
    char *p = text + sizeof(text) - 1;

    *p = '\0';
    do {
        *--p = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    aigw_errout_put(o, p);
}

#define DETAIL "{\"@type\":\"type.googleapis.com/google.rpc."

/* SDKs read the wait here, not in Retry-After. */
static void put_details(aigw_errout_t *o, const aigw_reason_info_t *info,
                        const char *id)
{
    aigw_errout_put(o, ",\"details\":[");
    if (info->retry_after > 0) {
        aigw_errout_put(o, DETAIL "RetryInfo\",\"retryDelay\":\"");
        put_number(o, info->retry_after);
        aigw_errout_put(o, id != NULL ? "s\"}," : "s\"}");
    }
    if (id != NULL) {
        aigw_errout_put(o, DETAIL "RequestInfo\",\"requestId\":\"");
        aigw_errout_escaped(o, id, 8);
        aigw_errout_put(o, "\"}");
    }
    aigw_errout_put(o, "]");
}

static void put_error(aigw_errout_t *o, const aigw_reason_info_t *info,
                      const char *message, const char *id)
{
    aigw_errout_put(o, "{\"error\":{\"code\":");
    put_number(o, info->status);
    aigw_errout_put(o, ",\"message\":\"");
    aigw_errout_escaped(o, message != NULL ? message : info->message, 320);
    aigw_errout_put(o, "\",\"status\":\"");
    aigw_errout_put(o, error_status(info->status));
    aigw_errout_put(o, "\"");
    put_details(o, info, id);
    aigw_errout_put(o, "}}");
}

static apr_size_t error_body(char *buf, apr_size_t size,
                             const aigw_reason_info_t *info,
                             const char *message, const char *id)
{
    aigw_errout_t o;

    o.p = buf;
    o.end = buf + size - 1;
    put_error(&o, info, message, id);
    aigw_errout_put(&o, "\n");
    *o.p = '\0';
    return (apr_size_t)(o.p - buf);
}

/* Where a stream is an array, so are its errors. */
static apr_size_t error_array(char *buf, apr_size_t size,
                              const aigw_reason_info_t *info,
                              const char *message, const char *id)
{
    aigw_errout_t o;

    o.p = buf;
    o.end = buf + size - 1;
    aigw_errout_put(&o, "[");
    put_error(&o, info, message, id);
    aigw_errout_put(&o, "]\n");
    *o.p = '\0';
    return (apr_size_t)(o.p - buf);
}

/* ---- the dialect -------------------------------------------------------- */

static const aigw_answer_t generate = {
    .paths = &document,
    .value = take,
    .event_start = aigw_answer_event_start,
    .event_end = event_end,
    .is_end = aigw_answer_done_is_noise,
    .settle = settle,
    .bare_json = 1,
};

static const aigw_answer_t count_tokens = {
    .paths = &counted,
    .value = take,
    .event_start = aigw_answer_event_start,
    .event_end = event_end,
    .is_end = aigw_answer_done_is_noise,
    .settle = settle_nothing,
};

#define POST(API, METHOD, ANSWER)                              \
    .api = API, .path = "/models/*:" METHOD, .method = "POST", \
    .model = AIGW_MODEL_PATH, .answer = &(ANSWER)

/* clang-format off */
static const aigw_endpoint_t endpoints[] = {
    {POST(AIGW_API_GEMINI_GENERATE, "generateContent", generate)},
    {POST(AIGW_API_GEMINI_GENERATE, "streamGenerateContent", generate),
     .streams = 1, .alt_sse = 1},
    {POST(AIGW_API_GEMINI_COUNT_TOKENS, "countTokens", count_tokens)},
    {POST(AIGW_API_GEMINI_EMBED, "embedContent", generate)},
    {POST(AIGW_API_GEMINI_EMBED, "batchEmbedContents", generate)},
    {.path = NULL},
};
/* clang-format on */

const aigw_dialect_t aigw_dialect_gemini = {
    .name = "gemini",
    .language = "gemini",
    .endpoints = endpoints,
    .text_factor = 380,
    .error_body = error_body,
    .error_type = "application/json; charset=UTF-8",
};
const aigw_dialect_t aigw_dialect_gemini_array = {
    .name = "gemini",
    .language = "gemini",
    .endpoints = endpoints,
    .text_factor = 380,
    .error_body = error_array,
    .error_type = "application/json; charset=UTF-8",
};
