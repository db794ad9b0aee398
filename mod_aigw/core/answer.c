/* SPDX-License-Identifier: Apache-2.0 */
/* See answer.h. */
#include "answer.h"

/* ---- snapshots ---------------------------------------------------------- */

void aigw_answer_usage(aigw_dialect_state_t *s, unsigned rank,
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
        s->usage_rank = rank & 3;
        s->usage_whole = 0;
        s->have = 0;
        s->cost_have = 0;
        s->cost_adds = 0;
        s->cost_beside = 0;
        s->no_adds = 0;
    }
}

void aigw_answer_count(aigw_meter_t *m, int field,
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

int aigw_answer_all_zero(const apr_uint64_t *counts, apr_uint32_t have)
{
    int i;

    for (i = 0; i < AIGW_DIALECT_COUNTS; ++i) {
        if ((have >> i & 1) && counts[i] != 0) {
            return 0;
        }
    }
    return 1;
}

int aigw_answer_merge(aigw_dialect_state_t *s)
{
    int i;

    if (!s->usage_whole || s->have == 0
        || (aigw_answer_all_zero(s->raw, s->have)
            && !aigw_answer_all_zero(s->last, s->last_have))) {
        return 0;
    }
    for (i = 0; i < AIGW_DIALECT_COUNTS; ++i) {
        if (s->have >> i & 1) {
            s->last[i] = s->raw[i];
        }
    }
    s->last_have |= s->have;
    s->usage_final = 1;
    return 1;
}

void aigw_answer_set_any(aigw_usage_t *u, aigw_usage_field_t field,
                         apr_uint64_t n)
{
    if (n > 0) {
        aigw_usage_set(u, field, n);
    }
}

int aigw_answer_money(const aigw_jsonscan_value_t *v, aigw_money_t *money)
{
    return (v->kind == AIGW_JSON_NUMBER || aigw_answer_is_text(v)) && !v->cut
           && aigw_money_parse(v->text, money) == AIGW_OK && *money >= 0;
}

int aigw_answer_done_is_noise(const char *data, apr_size_t n)
{
    return n == 6 && memcmp(data, "[DONE]", 6) == 0 ? 2 : 0;
}

/* ---- errors ------------------------------------------------------------- */

void aigw_answer_error(aigw_meter_t *m, unsigned rank, const char *word,
                       apr_size_t n)
{
    m->state.event_error = 1;
    if (!m->state.choice_before) {
        m->seen.error_first = 1;
    }
    m->state.usage_final = 0; /* unless this event brings one */
    if (!m->seen.saw_error || rank > m->state.error_rank) {
        aigw_answer_copy(m->seen.error, sizeof(m->seen.error),
                         aigw_slice(word, n));
        m->state.error_rank = rank & 3;
    }
    m->seen.saw_error = 1;
}

void aigw_answer_error_word(aigw_meter_t *m, unsigned rank,
                            const aigw_jsonscan_value_t *v)
{
    if (aigw_answer_is_text(v)) {
        aigw_answer_error(m, rank, v->text.p, v->text.n);
    }
    else if (v->kind == AIGW_JSON_NUMBER) {
        aigw_answer_error(m, 1, v->text.p, v->text.n);
    }
}

void aigw_answer_error_here(aigw_meter_t *m, const char *word,
                            const aigw_jsonscan_value_t *v)
{
    if (v->kind == AIGW_JSON_OBJECT || aigw_answer_is_text(v)) {
        aigw_answer_error(m, 0, word, strlen(word));
    }
}

/* ---- error bodies ------------------------------------------------------- */

void aigw_errout_put(aigw_errout_t *o, const char *text)
{
    apr_size_t n = strlen(text);

    if (n <= (apr_size_t)(o->end - o->p)) {
        memcpy(o->p, text, n);
        o->p += n;
    }
}

/* What is not printable ASCII has no place in a sentence of ours. */
void aigw_errout_escaped(aigw_errout_t *o, const char *text, apr_size_t spare)
{
    for (; *text != '\0' && (apr_size_t)(o->end - o->p) >= spare + 2; ++text) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\') {
            *o->p++ = '\\';
        }
        *o->p++ = c < 0x20 || c > 0x7e ? '?' : (char)c;
    }
}
