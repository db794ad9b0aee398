/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the raw counts of OpenAI's language to buckets that do not overlap.
 * What includes what: prompt_tokens includes what was read from and written
 * to a cache, unless the counts prove otherwise; completion_tokens includes
 * reasoning, unless total_tokens proves otherwise.  What neither explains is
 * flagged and not guessed.
 */
#include "openai_counts.h"

/* ---- money -------------------------------------------------------------- */

void aigw_openai_cost(aigw_meter_t *m, int field,
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
        if (aigw_jsonscan_count(v, &ticks) == AIGW_OK) {
            s->cost = (aigw_money_t)ticks * 100000;
            s->cost_have = 1;
        }
    }
    else if (aigw_answer_money(v, &money)) {
        *(field == F_COST ? &s->cost : &s->cost_beside) = money;
        s->cost_have |= field == F_COST;
    }
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
        aigw_answer_copy(m->seen.cost_stated, sizeof(m->seen.cost_stated),
                         aigw_slice(text, n));
    }
}

int aigw_openai_merge(aigw_meter_t *m)
{
    if (!aigw_answer_merge(&m->state)) {
        return 0;
    }
    if (m->state.cost_have) {
        state_cost(m);
    }
    return 1;
}

/* ---- from raw counts to buckets ----------------------------------------- */

/* The raw counts of an answer, by meaning; what is unknown is 0. */
typedef struct {
    int has_prompt, has_completion, has_total;
    apr_uint64_t prompt, completion, total;
    apr_uint64_t cached, write, write_5m, write_1h, reasoning;
    int cache_outside, reasoning_outside;
} sums_t;

static apr_uint64_t either(const aigw_dialect_state_t *s, int i, int alias)
{
    apr_uint64_t n = aigw_answer_merged(s, i);

    return n ? n : aigw_answer_merged(s, alias);
}

static void sum_up(const aigw_dialect_state_t *s, sums_t *t)
{
    memset(t, 0, sizeof(*t));
    t->has_prompt = aigw_answer_known(s, R_PROMPT);
    t->has_completion = aigw_answer_known(s, R_COMPLETION);
    t->has_total = aigw_answer_known(s, R_TOTAL);
    t->prompt = aigw_answer_merged(s, R_PROMPT);
    t->completion = aigw_answer_merged(s, R_COMPLETION);
    t->total = aigw_answer_merged(s, R_TOTAL);
    t->cached = either(s, R_CACHED, R_CACHED_ALIAS);
    t->write = either(s, R_WRITE, R_WRITE_ALIAS);
    t->write_5m = aigw_answer_merged(s, R_WRITE_5M);
    t->write_1h = aigw_answer_merged(s, R_WRITE_1H);
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
    if (output > AIGW_COUNT_MAX) {
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

/* An output that is not stated is what the total has beyond the input. */
static void derive_output(sums_t *t)
{
    apr_uint64_t input = t->prompt;

    if (t->cache_outside) {
        input += t->cached + t->write;
    }
    if (!t->has_completion && t->has_prompt && t->has_total
        && t->total >= input) {
        t->completion = t->total - input;
        t->has_completion = 1;
    }
}

/* What the output is made of, where the answer does not say. */
static void set_kind(aigw_meter_t *m)
{
    aigw_usage_field_t kind = (aigw_usage_field_t)m->answer->output;
    apr_uint64_t n;

    if (kind != 0 && aigw_usage_get(&m->seen.usage, AIGW_U_OUTPUT, &n)
        && !(m->seen.usage.known >> kind & 1)) {
        aigw_answer_set_any(&m->seen.usage, kind, n);
    }
}

/* Reasoning is added where the dialect or the sums say that it is outside. */
static void weigh(aigw_meter_t *m, sums_t *t)
{
    aigw_reasoning_t how = m->answer->own_reasoning ? AIGW_REASONING_INSIDE
                                                    : m->dialect->reasoning;

    derive_output(t);
    if (how == AIGW_REASONING_OUTSIDE
        || (how == AIGW_REASONING_UNTOLD && !t->has_total)) {
        t->reasoning_outside = 1;
    }
    if (t->has_prompt && t->has_completion && t->has_total) {
        m->seen.odd_total = !explain_total(how, t);
    }
}

void aigw_openai_settle(aigw_meter_t *m)
{
    const aigw_dialect_state_t *s = &m->state;
    aigw_usage_t *u = &m->seen.usage;
    sums_t t;

    sum_up(s, &t);
    weigh(m, &t);
    if (t.has_prompt) {
        set_input(m, &t);
        aigw_answer_set_any(u, AIGW_U_INPUT_AUDIO,
                            aigw_answer_merged(s, R_AUDIO_IN));
        aigw_answer_set_any(u, AIGW_U_INPUT_IMAGE,
                            aigw_answer_merged(s, R_IMAGE_IN));
    }
    if (t.has_completion) {
        set_output(m, &t);
        aigw_answer_set_any(u, AIGW_U_OUTPUT_AUDIO,
                            aigw_answer_merged(s, R_AUDIO_OUT));
        aigw_answer_set_any(u, AIGW_U_OUTPUT_IMAGE,
                            aigw_answer_merged(s, R_IMAGE_OUT));
        set_kind(m);
    }
    aigw_answer_set_any(u, AIGW_U_SEARCHES, aigw_answer_merged(s, R_SEARCHES));
    aigw_answer_set_any(u, AIGW_U_IMAGES, aigw_answer_merged(s, R_IMAGES));
    aigw_answer_set_any(u, AIGW_U_AUDIO_SECONDS,
                        aigw_answer_merged(s, R_SECONDS));
}
