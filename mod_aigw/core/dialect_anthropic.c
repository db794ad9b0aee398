/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anthropic's language: messages and the counting of tokens.
 *
 * Usage stands at $.message.usage of message_start and, cumulative, at
 * $.usage of message_delta; a document has $.usage.  Snapshots replace one
 * another field by field, but input counts that are all 0 do not replace
 * others: no request has no input.  Nothing includes anything: input_tokens,
 * what was read from a cache and what was written to it are beside one
 * another; what is written is split by lifetime in cache_creation, and what
 * is not split lives 5 minutes.
 *
 * usage.iterations lists the passes of a request.  The top level is the sum
 * of its "message" passes, so "compaction" passes are added to it, unless a
 * "fallback_message" pass says that the top level has all.  An
 * "advisor_message" pass ran on another model: it is flagged, not added.
 *
 * A stream ends with message_stop and with nothing else.
 */
#include "answer.h"

/* clang-format off */
enum {
    R_INPUT = 0,
    R_READ,
    R_WRITE,
    R_WRITE_5M,    /* parts of it */
    R_WRITE_1H,
    R_OUTPUT,
    R_THINKING,    /* part of it */
    R_SEARCHES,
    R_ADDED,       /* the first six again: passes that are to be added */
    R_PASS = R_ADDED + 6, /* and those of the pass that is open */
    R_END = R_PASS + 6,
    /* what is no count */
    F_USAGE_START = AIGW_DIALECT_COUNTS,
    F_USAGE,
    F_PASSES,
    F_PASS,
    F_PASS_TYPE,
    F_TYPE,
    F_CONTENT,
    F_MODEL,
    F_TIER,
    F_SPEED,
    F_FINISH,
    F_ERROR,
    F_ERROR_TYPE
};

typedef char counts_fit[R_END <= AIGW_DIALECT_COUNTS ? 1 : -1];

enum { T_OTHER = 0, T_PING, T_ERROR, T_STOP };
enum { P_OTHER = 0, P_MESSAGE, P_COMPACTION, P_ADVISOR, P_FALLBACK };

/* ---- the paths ---------------------------------------------------------- */

#define PASS_CREATION(LEAF, WITH)                                             \
    LEAF("ephemeral_5m_input_tokens", R_PASS + R_WRITE_5M)                    \
    LEAF("ephemeral_1h_input_tokens", R_PASS + R_WRITE_1H)
AIGW_JSONSCAN_TABLE(pass_creation, PASS_CREATION);

#define PASS(LEAF, WITH)                                                      \
    LEAF("type", F_PASS_TYPE)                                                 \
    LEAF("input_tokens", R_PASS + R_INPUT)                                    \
    LEAF("output_tokens", R_PASS + R_OUTPUT)                                  \
    LEAF("cache_read_input_tokens", R_PASS + R_READ)                          \
    LEAF("cache_creation_input_tokens", R_PASS + R_WRITE)                     \
    WITH("cache_creation", -1, pass_creation)
AIGW_JSONSCAN_TABLE(pass, PASS);

#define PASSES(LEAF, WITH)                                                    \
    WITH("*", F_PASS, pass)
AIGW_JSONSCAN_TABLE(passes, PASSES);

#define CREATION(LEAF, WITH)                                                  \
    LEAF("ephemeral_5m_input_tokens", R_WRITE_5M)                             \
    LEAF("ephemeral_1h_input_tokens", R_WRITE_1H)
AIGW_JSONSCAN_TABLE(creation, CREATION);

#define OUTPUT_DETAILS(LEAF, WITH)                                            \
    LEAF("thinking_tokens", R_THINKING)
AIGW_JSONSCAN_TABLE(output_details, OUTPUT_DETAILS);

#define SERVER_TOOLS(LEAF, WITH)                                              \
    LEAF("web_search_requests", R_SEARCHES)
AIGW_JSONSCAN_TABLE(server_tools, SERVER_TOOLS);

#define USAGE(LEAF, WITH)                                                     \
    LEAF("input_tokens", R_INPUT)                                             \
    LEAF("output_tokens", R_OUTPUT)                                           \
    LEAF("cache_read_input_tokens", R_READ)                                   \
    LEAF("cache_creation_input_tokens", R_WRITE)                              \
    WITH("cache_creation", -1, creation)                                      \
    WITH("output_tokens_details", -1, output_details)                         \
    WITH("server_tool_use", -1, server_tools)                                 \
    WITH("iterations", F_PASSES, passes)                                      \
    LEAF("service_tier", F_TIER)                                              \
    LEAF("speed", F_SPEED)
AIGW_JSONSCAN_TABLE(usage, USAGE);

#define BLOCK(LEAF, WITH)                                                     \
    LEAF("text", AIGW_JSONSCAN_MEASURE)                                       \
    LEAF("thinking", AIGW_JSONSCAN_MEASURE)
AIGW_JSONSCAN_TABLE(block, BLOCK);

#define BLOCKS(LEAF, WITH)                                                    \
    WITH("*", -1, block)
AIGW_JSONSCAN_TABLE(blocks, BLOCKS);

#define DELTA(LEAF, WITH)                                                     \
    LEAF("text", AIGW_JSONSCAN_MEASURE)                                       \
    LEAF("thinking", AIGW_JSONSCAN_MEASURE)                                   \
    LEAF("partial_json", AIGW_JSONSCAN_MEASURE)                               \
    LEAF("stop_reason", F_FINISH)
AIGW_JSONSCAN_TABLE(delta, DELTA);

#define MESSAGE(LEAF, WITH)                                                   \
    LEAF("model", F_MODEL)                                                    \
    LEAF("stop_reason", F_FINISH)                                             \
    WITH("usage", F_USAGE_START, usage)
AIGW_JSONSCAN_TABLE(message, MESSAGE);

#define ERROR(LEAF, WITH)                                                     \
    LEAF("type", F_ERROR_TYPE)
AIGW_JSONSCAN_TABLE(error, ERROR);

#define ANSWER(LEAF, WITH)                                                    \
    LEAF("type", F_TYPE)                                                      \
    WITH("delta", F_CONTENT, delta)                                           \
    WITH("message", F_CONTENT, message)                                       \
    WITH("content", -1, blocks)                                               \
    LEAF("model", F_MODEL)                                                    \
    LEAF("stop_reason", F_FINISH)                                             \
    WITH("usage", F_USAGE, usage)                                             \
    WITH("error", F_ERROR, error)
AIGW_JSONSCAN_TABLE(answer, ANSWER);

/* The number that count_tokens answers is not used by anybody. */
#define COUNTED(LEAF, WITH)                                                   \
    LEAF("type", F_TYPE)                                                      \
    WITH("error", F_ERROR, error)
AIGW_JSONSCAN_TABLE(counted, COUNTED);
/* clang-format on */

static const aigw_jsonscan_node_t document = {"", 0, -1, &answer_table};
static const aigw_jsonscan_node_t counted = {"", 0, -1, &counted_table};

/* ---- values of an event ------------------------------------------------- */

static unsigned char event_type(aigw_slice_t text)
{
    if (aigw_slice_is(text, "ping")) {
        return T_PING;
    }
    if (aigw_slice_is(text, "message_stop")) {
        return T_STOP;
    }
    return aigw_slice_is(text, "error") ? T_ERROR : T_OTHER;
}

static unsigned char pass_type(aigw_slice_t text)
{
    if (aigw_slice_is(text, "message")) {
        return P_MESSAGE;
    }
    if (aigw_slice_is(text, "compaction")) {
        return P_COMPACTION;
    }
    if (aigw_slice_is(text, "advisor_message")) {
        return P_ADVISOR;
    }
    return aigw_slice_is(text, "fallback_message") ? P_FALLBACK : P_OTHER;
}

/* Passes begin anew with each snapshot that lists them. */
static void start_passes(aigw_dialect_state_t *s)
{
    int i;

    for (i = R_ADDED; i < R_ADDED + 6; ++i) {
        s->raw[i] = 0;
        s->have |= 1u << i;
    }
    s->no_adds = 0;
}

#define PASS_BITS (0x3fu << R_PASS)

static void add_pass(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;
    int i;

    for (i = 0; i < 6; ++i) {
        apr_uint64_t n = s->have >> (R_PASS + i) & 1 ? s->raw[R_PASS + i] : 0;

        if (s->raw[R_ADDED + i] + n > AIGW_COUNT_MAX) {
            m->seen.bad_number = 1;
        }
        else {
            s->raw[R_ADDED + i] += n;
        }
    }
}

static void take_pass(aigw_meter_t *m, const aigw_jsonscan_value_t *v)
{
    aigw_dialect_state_t *s = &m->state;

    if (!s->usage_live) {
        return;
    }
    if (v->kind != AIGW_JSON_CLOSE) {
        s->have &= ~PASS_BITS;
        s->part_type = P_OTHER;
    }
    else if (s->part_type == P_COMPACTION) {
        add_pass(m);
    }
    else if (s->part_type == P_FALLBACK) {
        s->no_adds = 1;
    }
    else if (s->part_type == P_ADVISOR) {
        m->seen.other_model = 1;
    }
}

/* A speed other than the usual one has prices of its own. */
static void take_tier(aigw_meter_t *m, int field,
                      const aigw_jsonscan_value_t *v)
{
    if (field == F_TIER ? strcmp(m->seen.tier, "fast") != 0
                        : aigw_slice_is(v->text, "fast")) {
        AIGW_ANSWER_KEEP(m->seen.tier, v);
    }
}

static void take_other(aigw_meter_t *m, int field,
                       const aigw_jsonscan_value_t *v)
{
    switch (field) {
    case F_PASS:
        take_pass(m, v);
        break;
    case F_PASSES:
        if (v->kind == AIGW_JSON_ARRAY && m->state.usage_live) {
            start_passes(&m->state);
        }
        break;
    case F_PASS_TYPE:
        m->state.part_type = pass_type(v->text);
        break;
    case F_TIER:
    case F_SPEED:
        take_tier(m, field, v);
        break;
    case F_ERROR:
        aigw_answer_error_here(m, "error", v);
        break;
    case F_ERROR_TYPE:
        aigw_answer_error_word(m, 2, v);
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
    case F_TYPE:
        m->state.type = event_type(v->text);
        break;
    case F_CONTENT:
        if (v->kind == AIGW_JSON_OBJECT) {
            m->seen.saw_content = 1;
        }
        break;
    case F_MODEL:
        AIGW_ANSWER_KEEP(m->seen.model, v);
        break;
    case F_FINISH:
        AIGW_ANSWER_KEEP(m->seen.finish, v);
        break;
    case F_USAGE_START:
    case F_USAGE:
        aigw_answer_usage(&m->state, (unsigned)(field - F_USAGE_START + 1), v);
        break;
    default:
        take_other(m, field, v);
        break;
    }
}

/* ---- events ------------------------------------------------------------- */

static void event_start(aigw_meter_t *m)
{
    aigw_answer_event_start(m);
    m->state.type = T_OTHER;
}

#define INPUT_BITS (1u << R_INPUT | 1u << R_READ | 1u << R_WRITE)
#define SPLIT_BITS (1u << R_WRITE_5M | 1u << R_WRITE_1H)

/* Input counts that are all 0 are left out, if others are known. */
static void drop_zero_input(aigw_dialect_state_t *s)
{
    apr_uint32_t input = s->have & INPUT_BITS;

    if (input != 0 && aigw_answer_all_zero(s->raw, input)
        && !aigw_answer_all_zero(s->last, s->last_have & INPUT_BITS)) {
        s->have &= ~(INPUT_BITS | SPLIT_BITS);
    }
}

static void event_end(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;
    int i;

    if (s->type == T_ERROR && !s->event_error) {
        aigw_answer_error(m, 0, "error", 5);
    }
    m->seen.saw_end |= s->type == T_STOP && aigw_answer_whole(m);
    s->have &= ~PASS_BITS;
    if (s->no_adds) {
        for (i = R_ADDED; i < R_ADDED + 6; ++i) {
            s->raw[i] = 0;
        }
    }
    drop_zero_input(s);
    if (aigw_answer_merge(s)) {
        s->usage_last = m->seen.finish[0] != '\0';
    }
}

/* ---- from raw counts to buckets ----------------------------------------- */

/* A count with what the added passes have of it. */
static apr_uint64_t whole(aigw_meter_t *m, int i)
{
    apr_uint64_t n = aigw_answer_merged(&m->state, i);
    apr_uint64_t sum = n + aigw_answer_merged(&m->state, R_ADDED + i);

    if (sum > AIGW_COUNT_MAX) {
        m->seen.bad_number = 1;
        return n;
    }
    return sum;
}

/* What is written is the sum of its two parts, or more: the rest lives 5
 * minutes. Where the parts are more, the later sum is trusted. */
static void settle_writes(aigw_meter_t *m)
{
    aigw_usage_t *u = &m->seen.usage;
    apr_uint64_t hour = whole(m, R_WRITE_1H);
    apr_uint64_t parts = whole(m, R_WRITE_5M) + hour;
    apr_uint64_t all = parts;

    if (aigw_answer_known(&m->state, R_WRITE)) {
        all = whole(m, R_WRITE);
        if (all == 0 && parts > 0) {
            all = parts;
        }
        m->seen.odd_total |= all < parts;
    }
    if (hour > all) {
        hour = all;
    }
    aigw_usage_set(u, AIGW_U_CACHE_WRITE_5M, all - hour);
    aigw_usage_set(u, AIGW_U_CACHE_WRITE_1H, hour);
    aigw_usage_set(u, AIGW_U_CACHE_WRITE_OTHER, 0);
}

static void settle(aigw_meter_t *m)
{
    const aigw_dialect_state_t *s = &m->state;
    aigw_usage_t *u = &m->seen.usage;
    apr_uint64_t output = whole(m, R_OUTPUT);
    apr_uint64_t thinking = aigw_answer_merged(s, R_THINKING);

    if (s->last_have & INPUT_BITS) {
        aigw_usage_set(u, AIGW_U_INPUT_UNCACHED, whole(m, R_INPUT));
        aigw_usage_set(u, AIGW_U_CACHE_READ, whole(m, R_READ));
        settle_writes(m);
    }
    if (aigw_answer_known(s, R_OUTPUT)) {
        if (thinking > output) {
            m->seen.odd_total = 1;
            thinking = output;
        }
        aigw_usage_set(u, AIGW_U_OUTPUT, output);
        aigw_usage_set(u, AIGW_U_REASONING, thinking);
    }
    aigw_answer_set_any(u, AIGW_U_SEARCHES, aigw_answer_merged(s, R_SEARCHES));
}

static void settle_nothing(aigw_meter_t *m)
{
    (void)m;
}

/* ---- error bodies ------------------------------------------------------- */

static const char *error_type(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 402:
        return "billing_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 413:
        return "request_too_large";
    case 429:
        return "rate_limit_error";
    case 504:
        return "timeout_error";
    case 503:
    case 529:
        return "overloaded_error";
    default:
        return status < 500 ? "invalid_request_error" : "api_error";
    }
}

static apr_size_t error_body(char *buf, apr_size_t size,
                             const aigw_reason_info_t *info,
                             const char *message, const char *id)
{
    aigw_errout_t o;

    o.p = buf;
    o.end = buf + size - 1;
    aigw_errout_put(&o, "{\"type\":\"error\",\"error\":{\"type\":\"");
    aigw_errout_put(&o, error_type(info->status));
    aigw_errout_put(&o, "\",\"message\":\"");
    aigw_errout_escaped(&o, message != NULL ? message : info->message, 160);
    aigw_errout_put(&o, "\"}");
    if (id != NULL) {
        aigw_errout_put(&o, ",\"request_id\":\"");
        aigw_errout_escaped(&o, id, 8);
        aigw_errout_put(&o, "\"");
    }
    aigw_errout_put(&o, "}\n");
    *o.p = '\0';
    return (apr_size_t)(o.p - buf);
}

/* ---- the dialect -------------------------------------------------------- */

static const aigw_answer_t messages = {
    .paths = &document,
    .value = take,
    .event_start = event_start,
    .event_end = event_end,
    .is_end = aigw_answer_done_is_noise,
    .settle = settle,
};

static const aigw_answer_t count_tokens = {
    .paths = &counted,
    .value = take,
    .event_start = event_start,
    .event_end = event_end,
    .is_end = aigw_answer_done_is_noise,
    .settle = settle_nothing,
};

static const aigw_endpoint_t endpoints[] = {
    {.api = AIGW_API_ANTHROPIC_MESSAGES,
     .path = "/messages",
     .method = "POST",
     .answer = &messages},
    {.api = AIGW_API_ANTHROPIC_COUNT_TOKENS,
     .path = "/messages/count_tokens",
     .method = "POST",
     .answer = &count_tokens},
    {.path = NULL},
};

const aigw_dialect_t aigw_dialect_anthropic = {
    .name = "anthropic",
    .language = "anthropic",
    .endpoints = endpoints,
    .text_factor = 300,
    .error_body = error_body,
    .error_type = "application/json",
    .overloaded = 529,
};
