/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenAI's chat completions and the many servers that speak like it.
 *
 * Where usage stands: $.usage, $.choices[*].usage, $.x_groq.usage, in this
 * order of trust, one per event.  Every usage object is a snapshot: a field
 * of a later one replaces the earlier value, null and malformed values change
 * nothing, and a snapshot of zeros never replaces one that has a number.
 *
 * What includes what: prompt_tokens includes what was read from and written
 * to a cache, unless the counts prove otherwise; completion_tokens includes
 * reasoning, unless total_tokens proves otherwise.  What neither explains is
 * flagged and not guessed.
 */
#include "meter.h"

#define COUNT_MAX ((apr_uint64_t)1 << 53)

/* Places of the raw counts. */
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
    /* what is no count */
    F_USAGE_GROQ = AIGW_DIALECT_COUNTS,
    F_USAGE_CHOICE,
    F_USAGE,
    F_COST,
    F_COST_TICKS,
    F_COST_BESIDE,
    F_BYOK,
    F_MODEL,
    F_TIER,
    F_CHOICES,
    F_CHOICE,
    F_INDEX,
    F_FINISH,
    F_ERROR,
    F_ERROR_TYPE,
    F_ERROR_CODE,
    F_GROQ_ERROR
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

#define COST(LEAF, WITH)                                                      \
    LEAF("total_cost", F_COST)
AIGW_JSONSCAN_TABLE(cost, COST);

#define COST_DETAILS(LEAF, WITH)                                              \
    LEAF("upstream_inference_cost", F_COST_BESIDE)
AIGW_JSONSCAN_TABLE(cost_details, COST_DETAILS);

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
    WITH("cost", F_COST, cost)                                                \
    LEAF("cost_in_usd_ticks", F_COST_TICKS)                                   \
    WITH("cost_details", -1, cost_details)                                    \
    LEAF("is_byok", F_BYOK)
AIGW_JSONSCAN_TABLE(usage, USAGE);

#define CHOICE(LEAF, WITH)                                                    \
    LEAF("index", F_INDEX)                                                    \
    LEAF("finish_reason", F_FINISH)                                           \
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

#define ANSWER(LEAF, WITH)                                                    \
    LEAF("model", F_MODEL)                                                    \
    WITH("choices", F_CHOICES, choices)                                       \
    WITH("usage", F_USAGE, usage)                                             \
    WITH("error", F_ERROR, error)                                             \
    WITH("x_groq", -1, groq)                                                  \
    LEAF("service_tier", F_TIER)
AIGW_JSONSCAN_TABLE(answer, ANSWER);
/* clang-format on */

static const aigw_jsonscan_node_t document = {"", 0, -1, &answer_table};

/* ---- values of an event ------------------------------------------------- */

/* Text into a fixed field, cut where it is longer. */
static void copy_text(char *to, apr_size_t size, aigw_slice_t text)
{
    apr_size_t n = text.n < size ? text.n : size - 1;

    memcpy(to, text.p, n);
    to[n] = '\0';
}

static int is_text(const aigw_jsonscan_value_t *v)
{
    return v->kind == AIGW_JSON_STRING && v->text.n > 0;
}

/* A usage object begins; rank 1 to 3. A second one of the same rank is the
 * last of its kind and replaces the first. */
static void take_usage(aigw_dialect_state_t *s, unsigned rank,
                       const aigw_jsonscan_value_t *v)
{
    if (v->kind == AIGW_JSON_CLOSE) {
        s->usage_whole |= s->usage_live;
        s->usage_live = 0;
        return;
    }
    if (v->kind != AIGW_JSON_OBJECT) {
        return;
    }
    s->event_usage = 1;
    s->usage_live = rank >= s->usage_rank;
    if (s->usage_live) {
        s->usage_rank = rank;
        s->usage_whole = 0;
        s->have = 0;
        s->cost_have = 0;
        s->cost_adds = 0;
        s->cost_beside = 0;
    }
}

static void take_count(aigw_meter_t *m, int field,
                       const aigw_jsonscan_value_t *v)
{
    aigw_dialect_state_t *s = &m->state;
    apr_uint64_t count;

    if (!s->usage_live || v->kind == AIGW_JSON_CLOSE) {
        return;
    }
    switch (aigw_jsonscan_count(v, &count)) {
    case AIGW_OK:
        s->raw[field] = count;
        s->have |= 1u << field;
        break;
    case AIGW_DONE:
        break;
    default:
        m->seen.bad_number = 1;
        break;
    }
}

/* An amount of money, not negative; 0 if it is none. */
static int read_money(const aigw_jsonscan_value_t *v, aigw_money_t *money)
{
    return (v->kind == AIGW_JSON_NUMBER || is_text(v)) && !v->cut
           && aigw_money_parse(v->text, money) == AIGW_OK && *money >= 0;
}

static void take_cost(aigw_meter_t *m, int field,
                      const aigw_jsonscan_value_t *v)
{
    aigw_dialect_state_t *s = &m->state;
    apr_uint64_t ticks;
    aigw_money_t money;

    if (!s->usage_live) {
        return;
    }
    if (field == F_BYOK) {
        s->cost_adds = v->kind == AIGW_JSON_TRUE;
    }
    else if (field == F_COST_TICKS) {
        /* 10^-10 USD each */
        if (aigw_jsonscan_count(v, &ticks) == AIGW_OK) {
            s->cost = (aigw_money_t)ticks * 100000;
            s->cost_have = 1;
        }
    }
    else if (read_money(v, &money)) {
        *(field == F_COST ? &s->cost : &s->cost_beside) = money;
        s->cost_have |= field == F_COST;
    }
}

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

/* An error was seen; the most telling word for it is kept. */
static void take_error(aigw_meter_t *m, unsigned rank, aigw_slice_t word)
{
    m->state.event_error = 1;
    if (!m->state.choice_before) {
        m->seen.error_first = 1;
    }
    m->state.usage_final = 0; /* unless this event brings one */
    if (!m->seen.saw_error || rank > m->state.error_rank) {
        copy_text(m->seen.error, sizeof(m->seen.error), word);
        m->state.error_rank = rank & 3;
    }
    m->seen.saw_error = 1;
}

static aigw_slice_t word(const char *text)
{
    return aigw_slice(text, strlen(text));
}

/* The message is left alone: it may repeat what the caller wrote. */
static void take_error_part(aigw_meter_t *m, int field,
                            const aigw_jsonscan_value_t *v)
{
    switch (field) {
    case F_ERROR:
        if (v->kind == AIGW_JSON_OBJECT || is_text(v)) {
            take_error(m, 0, word("error"));
        }
        break;
    case F_GROQ_ERROR:
        if (v->kind == AIGW_JSON_OBJECT || is_text(v)) {
            take_error(m, 0, word("x_groq.error"));
        }
        break;
    case F_ERROR_TYPE:
        if (is_text(v)) {
            take_error(m, 2, v->text);
        }
        break;
    default:
        if (is_text(v)) {
            take_error(m, 3, v->text);
        }
        else if (v->kind == AIGW_JSON_NUMBER) {
            take_error(m, 1, v->text);
        }
        break;
    }
}

static void take_finish(aigw_meter_t *m, const aigw_jsonscan_value_t *v)
{
    if (!is_text(v)) {
        return;
    }
    copy_text(m->state.choice_finish, sizeof(m->state.choice_finish), v->text);
    if (aigw_slice_is(v->text, "error")) {
        take_error(m, 0, word("error"));
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
        if (is_text(v)) {
            copy_text(m->seen.model, sizeof(m->seen.model), v->text);
        }
        break;
    case F_TIER:
        if (is_text(v)) {
            copy_text(m->seen.tier, sizeof(m->seen.tier), v->text);
        }
        break;
    case F_USAGE_GROQ:
    case F_USAGE_CHOICE:
    case F_USAGE:
        take_usage(&m->state, (unsigned)(field - F_USAGE_GROQ + 1), v);
        break;
    case F_COST:
    case F_COST_TICKS:
    case F_COST_BESIDE:
    case F_BYOK:
        take_cost(m, field, v);
        break;
    case F_ERROR:
    case F_ERROR_TYPE:
    case F_ERROR_CODE:
    case F_GROQ_ERROR:
        take_error_part(m, field, v);
        break;
    default:
        take_count(m, field, v);
        break;
    }
}

/* ---- events ------------------------------------------------------------- */

static void event_start(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;

    s->have = 0;
    s->usage_rank = 0;
    s->usage_live = 0;
    s->usage_whole = 0;
    s->cost_have = 0;
    s->event_usage = 0;
    s->event_choice = 0;
    s->event_error = 0;
    s->choice_before = m->seen.saw_content;
}

static int all_zero(const apr_uint64_t *counts, apr_uint32_t have)
{
    int i;

    for (i = 0; i < AIGW_DIALECT_COUNTS; ++i) {
        if ((have >> i & 1) && counts[i] != 0) {
            return 0;
        }
    }
    return 1;
}

static void state_cost(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;
    aigw_money_t cost = s->cost;
    char text[AIGW_MONEY_TEXT];
    apr_size_t n;

    if (s->cost_adds
        && aigw_money_add(cost, s->cost_beside, &cost) != AIGW_OK) {
        return;
    }
    n = aigw_money_text(cost, text);
    if (n < sizeof(m->seen.cost_stated)) {
        copy_text(m->seen.cost_stated, sizeof(m->seen.cost_stated),
                  aigw_slice(text, n));
    }
}

static void event_end(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;
    int i;

    if (!s->usage_whole || s->have == 0
        || (all_zero(s->raw, s->have) && !all_zero(s->last, s->last_have))) {
        return;
    }
    for (i = 0; i < AIGW_DIALECT_COUNTS; ++i) {
        if (s->have >> i & 1) {
            s->last[i] = s->raw[i];
        }
    }
    s->last_have |= s->have;
    s->usage_final = 1;
    s->usage_last = !s->event_choice && m->seen.finish[0] != '\0';
    if (s->cost_have) {
        state_cost(m);
    }
}

static int is_end(const char *data, apr_size_t n)
{
    return n == 6 && memcmp(data, "[DONE]", 6) == 0;
}

/* ---- from raw counts to buckets ----------------------------------------- */

/* The raw counts of an answer, by meaning; what is unknown is 0. */
typedef struct {
    int has_prompt, has_completion, has_total;
    apr_uint64_t prompt, completion, total;
    apr_uint64_t cached, write, write_5m, write_1h, reasoning;
    int cache_outside, reasoning_outside;
} sums_t;

static apr_uint64_t merged(const aigw_dialect_state_t *s, int i)
{
    return s->last_have >> i & 1 ? s->last[i] : 0;
}

static apr_uint64_t either(const aigw_dialect_state_t *s, int i, int alias)
{
    apr_uint64_t n = merged(s, i);

    return n ? n : merged(s, alias);
}

static void sum_up(const aigw_dialect_state_t *s, sums_t *t)
{
    memset(t, 0, sizeof(*t));
    t->has_prompt = (int)(s->last_have >> R_PROMPT & 1);
    t->has_completion = (int)(s->last_have >> R_COMPLETION & 1);
    t->has_total = (int)(s->last_have >> R_TOTAL & 1);
    t->prompt = merged(s, R_PROMPT);
    t->completion = merged(s, R_COMPLETION);
    t->total = merged(s, R_TOTAL);
    t->cached = either(s, R_CACHED, R_CACHED_ALIAS);
    t->write = either(s, R_WRITE, R_WRITE_ALIAS);
    t->write_5m = merged(s, R_WRITE_5M);
    t->write_1h = merged(s, R_WRITE_1H);
    if (t->write < t->write_5m + t->write_1h) {
        t->write = t->write_5m + t->write_1h;
    }
    t->reasoning = either(s, R_REASONING, R_REASONING_ALIAS);
    t->cache_outside = t->has_prompt && t->cached + t->write > t->prompt;
}

/* What the total has beyond prompt and completion tells what these two leave
 * out. @return 1 if that explains it. */
static int explain_total(aigw_reasoning_t how, sums_t *t)
{
    apr_uint64_t parts = t->prompt + t->completion;
    apr_uint64_t cache = t->cached + t->write;
    apr_uint64_t gap = t->total - parts;

    if (t->total < parts) {
        return 0;
    }
    if (gap == 0) {
        return 1;
    }
    if (gap == t->reasoning) {
        t->reasoning_outside = 1;
    }
    else if (gap == cache) {
        t->cache_outside = 1;
    }
    else if (gap == cache + t->reasoning) {
        t->cache_outside = 1;
        t->reasoning_outside = 1;
    }
    else if (how == AIGW_REASONING_HIDDEN) {
        t->reasoning = gap;
        t->reasoning_outside = 1;
    }
    else {
        return 0;
    }
    return 1;
}

static void set_if_any(aigw_usage_t *u, aigw_usage_field_t field,
                       apr_uint64_t n)
{
    if (n > 0) {
        aigw_usage_set(u, field, n);
    }
}

static void set_input(aigw_meter_t *m, const sums_t *t)
{
    aigw_usage_t *u = &m->seen.usage;
    apr_uint64_t cache = t->cached + t->write;

    m->seen.cache_outside = t->cache_outside != 0;
    aigw_usage_set(u, AIGW_U_INPUT_UNCACHED,
                   t->cache_outside ? t->prompt : t->prompt - cache);
    aigw_usage_set(u, AIGW_U_CACHE_READ, t->cached);
    aigw_usage_set(u, AIGW_U_CACHE_WRITE_5M, t->write_5m);
    aigw_usage_set(u, AIGW_U_CACHE_WRITE_1H, t->write_1h);
    aigw_usage_set(u, AIGW_U_CACHE_WRITE_OTHER,
                   t->write - t->write_5m - t->write_1h);
}

static void set_output(aigw_meter_t *m, sums_t *t)
{
    aigw_usage_t *u = &m->seen.usage;
    apr_uint64_t output = t->completion;

    if (t->reasoning_outside) {
        output += t->reasoning;
    }
    if (output > COUNT_MAX) {
        m->seen.bad_number = 1;
        output = t->completion;
    }
    if (t->reasoning > output) {
        m->seen.odd_total = 1;
        t->reasoning = output;
    }
    aigw_usage_set(u, AIGW_U_OUTPUT, output);
    aigw_usage_set(u, AIGW_U_REASONING, t->reasoning);
}

static void settle(aigw_meter_t *m)
{
    const aigw_dialect_state_t *s = &m->state;
    aigw_reasoning_t how = m->dialect->reasoning;
    aigw_usage_t *u = &m->seen.usage;
    sums_t t;

    sum_up(s, &t);
    if (how == AIGW_REASONING_OUTSIDE
        || (how == AIGW_REASONING_UNTOLD && !t.has_total)) {
        t.reasoning_outside = 1;
    }
    if (t.has_prompt && t.has_completion && t.has_total) {
        m->seen.odd_total = !explain_total(how, &t);
    }
    if (t.has_prompt) {
        set_input(m, &t);
        set_if_any(u, AIGW_U_INPUT_AUDIO, merged(s, R_AUDIO_IN));
        set_if_any(u, AIGW_U_INPUT_IMAGE, merged(s, R_IMAGE_IN));
    }
    if (t.has_completion) {
        set_output(m, &t);
        set_if_any(u, AIGW_U_OUTPUT_AUDIO, merged(s, R_AUDIO_OUT));
        set_if_any(u, AIGW_U_OUTPUT_IMAGE, merged(s, R_IMAGE_OUT));
    }
    set_if_any(u, AIGW_U_SEARCHES, merged(s, R_SEARCHES));
}

/* ---- error bodies ------------------------------------------------------- */

typedef struct {
    char *p;
    char *end; /* one byte is kept for the NUL */
} out_t;

static void put(out_t *o, const char *text)
{
    apr_size_t n = strlen(text);

    if (n <= (apr_size_t)(o->end - o->p)) {
        memcpy(o->p, text, n);
        o->p += n;
    }
}

/* Text inside quotes, as much of it as leaves @a spare bytes. What is not
 * printable ASCII has no place in a sentence of ours. */
static void put_escaped(out_t *o, const char *text, apr_size_t spare)
{
    for (; *text != '\0' && (apr_size_t)(o->end - o->p) >= spare + 2; ++text) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\') {
            *o->p++ = '\\';
        }
        *o->p++ = c < 0x20 || c > 0x7e ? '?' : (char)c;
    }
}

/* The form has no place for the request's id: a header carries it. */
static apr_size_t error_body(char *buf, apr_size_t size,
                             const aigw_reason_info_t *info,
                             const char *message, const char *id)
{
    out_t o;

    (void)id;
    o.p = buf;
    o.end = buf + size - 1;
    put(&o, "{\"error\":{\"message\":\"");
    put_escaped(&o, message != NULL ? message : info->message, 160);
    put(&o, "\",\"type\":\"");
    put(&o, info->type);
    put(&o, "\",\"param\":null,\"code\":\"");
    put(&o, info->code != NULL ? info->code : info->word);
    put(&o, "\"}}\n");
    *o.p = '\0';
    return (apr_size_t)(o.p - buf);
}

/* ---- the dialects ------------------------------------------------------- */

static const aigw_endpoint_t endpoints[] = {
    {AIGW_API_OPENAI_CHAT, "/chat/completions", "POST", 1},
    {AIGW_API_OTHER, NULL, NULL, 0},
};

#define OPENAI(NAME, REASONING)                                         \
    {                                                                   \
        .name = NAME, .reasoning = REASONING, .endpoints = endpoints,   \
        .error_body = error_body, .error_type = "application/json",     \
        .answer = &document, .value = take, .event_start = event_start, \
        .event_end = event_end, .is_end = is_end, .settle = settle      \
    }

const aigw_dialect_t aigw_dialect_openai =
    OPENAI("openai", AIGW_REASONING_INSIDE);
const aigw_dialect_t aigw_dialect_openai_gemini =
    OPENAI("gemini-openai", AIGW_REASONING_HIDDEN);
const aigw_dialect_t aigw_dialect_openai_perplexity =
    OPENAI("perplexity", AIGW_REASONING_OUTSIDE);
const aigw_dialect_t aigw_dialect_openai_xai =
    OPENAI("xai", AIGW_REASONING_UNTOLD);
