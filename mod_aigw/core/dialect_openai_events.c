/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the answers of OpenAI's other APIs are read: responses, embeddings,
 * moderations, images, speech, transcriptions.  Their events name their type
 * and their counts are called input and output; a document is read with the
 * same table.
 *
 * Usage stands at $.usage and at $.response.usage.  A stream ends with the
 * event of its API that says so, and with nothing else.
 */
#include "openai_counts.h"

/* clang-format off */
enum {
    F_USAGE_RESPONSE = AIGW_OPENAI_FIELDS,
    F_USAGE,
    F_TYPE,
    F_MODEL,
    F_TIER,
    F_STATUS,
    F_WHY,          /* an answer is incomplete */
    F_ERROR,
    F_ERROR_TYPE,
    F_ERROR_CODE,
    F_OWN_CODE,
    F_ITEM,         /* of data or output */
    F_ITEM_TYPE,
    F_SECONDS,
    F_DURATION,
    F_TEXT
};

/* Types of events. */
enum { T_NONE = 0, T_OTHER, T_IDLE, T_END, T_IMAGE, T_FAILED, T_ERROR };

/* ---- the paths ---------------------------------------------------------- */

AIGW_JSONSCAN_TABLE(cost, AIGW_OPENAI_COST);
AIGW_JSONSCAN_TABLE(cost_details, AIGW_OPENAI_COST_DETAILS);

#define INPUT_DETAILS(LEAF, WITH)                                             \
    LEAF("cached_tokens", R_CACHED)                                           \
    LEAF("cache_write_tokens", R_WRITE)                                       \
    LEAF("audio_tokens", R_AUDIO_IN)                                          \
    LEAF("image_tokens", R_IMAGE_IN)
AIGW_JSONSCAN_TABLE(input_details, INPUT_DETAILS);

#define OUTPUT_DETAILS(LEAF, WITH)                                            \
    LEAF("reasoning_tokens", R_REASONING)                                     \
    LEAF("audio_tokens", R_AUDIO_OUT)                                         \
    LEAF("image_tokens", R_IMAGE_OUT)
AIGW_JSONSCAN_TABLE(output_details, OUTPUT_DETAILS);

#define USAGE(LEAF, WITH)                                                     \
    LEAF("input_tokens", R_PROMPT)                                            \
    LEAF("output_tokens", R_COMPLETION)                                       \
    LEAF("total_tokens", R_TOTAL)                                             \
    LEAF("prompt_tokens", R_PROMPT)                                           \
    LEAF("completion_tokens", R_COMPLETION)                                   \
    WITH("input_tokens_details", -1, input_details)                           \
    WITH("input_token_details", -1, input_details)                            \
    WITH("prompt_tokens_details", -1, input_details)                          \
    WITH("output_tokens_details", -1, output_details)                         \
    WITH("output_token_details", -1, output_details)                          \
    LEAF("seconds", F_SECONDS)                                                \
    AIGW_OPENAI_COSTS(LEAF, WITH)
AIGW_JSONSCAN_TABLE(usage, USAGE);

#define ERROR(LEAF, WITH)                                                     \
    LEAF("type", F_ERROR_TYPE)                                                \
    LEAF("code", F_ERROR_CODE)
AIGW_JSONSCAN_TABLE(error, ERROR);

#define INCOMPLETE(LEAF, WITH)                                                \
    LEAF("reason", F_WHY)
AIGW_JSONSCAN_TABLE(incomplete, INCOMPLETE);

#define PART(LEAF, WITH)                                                      \
    LEAF("text", AIGW_JSONSCAN_MEASURE)                                       \
    LEAF("refusal", AIGW_JSONSCAN_MEASURE)
AIGW_JSONSCAN_TABLE(part, PART);

#define PARTS(LEAF, WITH)                                                     \
    WITH("*", -1, part)
AIGW_JSONSCAN_TABLE(parts, PARTS);

/* The items of a document are its only text; ... */
#define ITEM(LEAF, WITH)                                                      \
    LEAF("type", F_ITEM_TYPE)                                                 \
    WITH("content", -1, parts)                                                \
    WITH("summary", -1, parts)                                                \
    LEAF("arguments", AIGW_JSONSCAN_MEASURE)
AIGW_JSONSCAN_TABLE(item, ITEM);

#define ITEMS(LEAF, WITH)                                                     \
    WITH("*", F_ITEM, item)
AIGW_JSONSCAN_TABLE(items, ITEMS);

/* ... those of a last event repeat what went by. */
#define LAST_ITEM(LEAF, WITH)                                                 \
    LEAF("type", F_ITEM_TYPE)
AIGW_JSONSCAN_TABLE(last_item, LAST_ITEM);

#define LAST_ITEMS(LEAF, WITH)                                                \
    WITH("*", F_ITEM, last_item)
AIGW_JSONSCAN_TABLE(last_items, LAST_ITEMS);

#define RESPONSE(LEAF, WITH)                                                  \
    LEAF("model", F_MODEL)                                                    \
    LEAF("status", F_STATUS)                                                  \
    LEAF("service_tier", F_TIER)                                              \
    WITH("usage", F_USAGE_RESPONSE, usage)                                    \
    WITH("error", F_ERROR, error)                                             \
    WITH("incomplete_details", -1, incomplete)                                \
    WITH("output", -1, last_items)
AIGW_JSONSCAN_TABLE(response, RESPONSE);

#define ANSWER(LEAF, WITH)                                                    \
    LEAF("type", F_TYPE)                                                      \
    LEAF("delta", AIGW_JSONSCAN_MEASURE)                                      \
    LEAF("text", F_TEXT)                                                      \
    LEAF("model", F_MODEL)                                                    \
    LEAF("status", F_STATUS)                                                  \
    LEAF("service_tier", F_TIER)                                              \
    WITH("usage", F_USAGE, usage)                                             \
    WITH("response", -1, response)                                            \
    WITH("error", F_ERROR, error)                                             \
    WITH("incomplete_details", -1, incomplete)                                \
    WITH("output", -1, items)                                                 \
    WITH("data", -1, items)                                                   \
    LEAF("code", F_OWN_CODE)                                                  \
    LEAF("duration", F_DURATION)
AIGW_JSONSCAN_TABLE(answer, ANSWER);
/* clang-format on */

static const aigw_jsonscan_node_t document = {"", 0, -1, &answer_table};

/* ---- values of an event ------------------------------------------------- */

static unsigned char event_type(aigw_slice_t text)
{
    static const struct {
        const char *name;
        unsigned char type;
    } types[] = {
        {"response.completed", T_END},
        {"response.incomplete", T_END},
        {"response.failed", T_FAILED},
        {"error", T_ERROR},
        {"image_generation.completed", T_IMAGE},
        {"image_edit.completed", T_IMAGE},
        {"speech.audio.done", T_END},
        {"transcript.text.done", T_END},
        {"keepalive", T_IDLE},
        {"ping", T_IDLE},
    };
    apr_size_t i;

    for (i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        if (aigw_slice_is(text, types[i].name)) {
            return types[i].type;
        }
    }
    return T_OTHER;
}

/* The states of an answer that goes no further; a reason that was given
 * tells more than the state. */
static void take_status(aigw_dialect_state_t *s,
                        const aigw_jsonscan_value_t *v)
{
    if (aigw_answer_is_text(v) && s->part_type == 0
        && (aigw_slice_is(v->text, "completed")
            || aigw_slice_is(v->text, "incomplete")
            || aigw_slice_is(v->text, "failed")
            || aigw_slice_is(v->text, "cancelled"))) {
        AIGW_ANSWER_KEEP(s->choice_finish, v);
    }
}

static void take_why(aigw_dialect_state_t *s, const aigw_jsonscan_value_t *v)
{
    if (aigw_answer_is_text(v)) {
        AIGW_ANSWER_KEEP(s->choice_finish, v);
        s->part_type = 1;
    }
}

/* A time in seconds, begun ones are whole; 0 if it is none. */
static int read_seconds(const aigw_jsonscan_value_t *v, apr_uint64_t *seconds)
{
    static const aigw_money_t one = 1000000000000000;
    aigw_money_t time;

    if (!aigw_answer_money(v, &time)
        || time > (aigw_money_t)AIGW_COUNT_MAX * one) {
        return 0;
    }
    *seconds = (apr_uint64_t)((time + one - 1) / one);
    return 1;
}

static void take_seconds(aigw_meter_t *m, const aigw_jsonscan_value_t *v)
{
    aigw_dialect_state_t *s = &m->state;

    if (!s->usage_live) {
        return;
    }
    if (read_seconds(v, &s->raw[R_SECONDS])) {
        s->have |= 1u << R_SECONDS;
    }
    else {
        m->seen.bad_number = 1;
    }
}

static void take_item(aigw_meter_t *m, int field,
                      const aigw_jsonscan_value_t *v)
{
    int counts =
        field == F_ITEM
            ? v->kind == AIGW_JSON_OBJECT && m->answer->output != 0
            : m->answer->searches && aigw_slice_is(v->text, "web_search_call");

    m->state.event_choice = 1;
    m->state.items += counts != 0;
}

static void take_error(aigw_meter_t *m, int field,
                       const aigw_jsonscan_value_t *v)
{
    if (field == F_ERROR) {
        aigw_answer_error_here(m, "error", v);
    }
    else {
        aigw_answer_error_word(m, field == F_ERROR_TYPE ? 2 : 3, v);
    }
}

static void take(void *ctx, int field, const aigw_jsonscan_value_t *v)
{
    aigw_meter_t *m = ctx;
    aigw_dialect_state_t *s = &m->state;

    switch (field) {
    case F_USAGE_RESPONSE:
    case F_USAGE:
        aigw_answer_usage(s, (unsigned)(field - F_USAGE_RESPONSE + 1), v);
        break;
    case F_TYPE:
        s->type = event_type(v->text);
        break;
    case F_MODEL:
        AIGW_ANSWER_KEEP(m->seen.model, v);
        break;
    case F_TIER:
        AIGW_ANSWER_KEEP(m->seen.tier, v);
        break;
    case F_STATUS:
        take_status(s, v);
        break;
    case F_WHY:
        take_why(s, v);
        break;
    case F_ERROR:
    case F_ERROR_TYPE:
    case F_ERROR_CODE:
        take_error(m, field, v);
        break;
    case F_OWN_CODE:
        if (v->kind == AIGW_JSON_NUMBER || aigw_answer_is_text(v)) {
            aigw_answer_copy(s->word, sizeof(s->word), v->text);
        }
        break;
    case F_ITEM:
    case F_ITEM_TYPE:
        take_item(m, field, v);
        break;
    case F_SECONDS:
        take_seconds(m, v);
        break;
    case F_DURATION:
        s->part_have = read_seconds(v, &s->part) & 1;
        break;
    case F_TEXT:
        s->event_choice = 1;
        if (m->kind == AIGW_METER_JSON && v->kind == AIGW_JSON_STRING) {
            m->json.measured += v->end - v->at - 2;
        }
        break;
    case F_COST:
    case F_COST_TICKS:
    case F_COST_BESIDE:
    case F_BYOK:
        aigw_openai_cost(m, field, v);
        break;
    default:
        aigw_answer_count(m, field, v);
        break;
    }
}

/* ---- events ------------------------------------------------------------- */

static void event_start(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;

    aigw_answer_event_start(m);
    s->choice_finish[0] = '\0';
    s->type = T_NONE;
    s->part_type = 0;
    s->part_have = 0;
    s->items = 0;
}

/* Errors that are told by the event's type, by the document's state or by a
 * code that stands where an answer should. */
static void find_error(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;
    int alone = m->kind == AIGW_METER_JSON && s->word[0] != '\0'
                && strcmp(s->word, "0") != 0 && strcmp(s->word, "200") != 0
                && !s->event_choice && !s->event_usage && !s->event_error;

    if (alone || (s->type == T_ERROR && s->word[0] != '\0')) {
        aigw_answer_error(m, 3, s->word, strlen(s->word));
    }
    else if (s->type == T_ERROR || s->type == T_FAILED
             || strcmp(s->choice_finish, "failed") == 0) {
        aigw_answer_error(m, 0, "failed", 6);
    }
}

/* What is counted one by one. */
static void add_items(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;
    int i = m->answer->output == AIGW_U_OUTPUT_IMAGE ? R_IMAGES : R_SEARCHES;

    if (s->type == T_IMAGE) {
        s->items = 1;
    }
    if (s->items > 0 && (i == R_IMAGES || m->answer->searches)) {
        s->last[i] =
            s->type == T_IMAGE ? aigw_answer_merged(s, i) + 1 : s->items;
        s->last_have |= 1u << i;
    }
}

/* Seconds that the document states, where nothing else tells how much. */
static void add_duration(aigw_dialect_state_t *s)
{
    if (s->part_have && !aigw_answer_known(s, R_PROMPT)
        && !aigw_answer_known(s, R_SECONDS)) {
        s->last[R_SECONDS] = s->part;
        s->last_have |= 1u << R_SECONDS;
    }
}

static void event_end(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;
    int last = s->type >= T_END && s->type <= T_FAILED;

    if (aigw_answer_whole(m)) {
        find_error(m);
    }
    if (!s->event_error && s->type != T_IDLE) {
        m->seen.saw_content = 1;
    }
    if (aigw_answer_whole(m) && (last || m->kind == AIGW_METER_JSON)) {
        m->seen.saw_end |= last;
        if (s->choice_finish[0] != '\0') {
            memcpy(m->seen.finish, s->choice_finish, sizeof(m->seen.finish));
        }
        add_items(m);
    }
    if (aigw_openai_merge(m)) {
        s->usage_last = last & 1;
    }
    add_duration(s);
}

/* ---- the APIs ----------------------------------------------------------- */

#define READ_SO                                                    \
    .paths = &document, .value = take, .event_start = event_start, \
    .event_end = event_end, .is_end = aigw_answer_done_is_noise,   \
    .settle = aigw_openai_settle, .own_reasoning = 1

const aigw_answer_t aigw_openai_responses = {READ_SO, .searches = 1};
const aigw_answer_t aigw_openai_document = {READ_SO};
const aigw_answer_t aigw_openai_transcription = {READ_SO};
const aigw_answer_t aigw_openai_images = {READ_SO,
                                          .output = AIGW_U_OUTPUT_IMAGE};
const aigw_answer_t aigw_openai_speech = {READ_SO,
                                          .output = AIGW_U_OUTPUT_AUDIO};
