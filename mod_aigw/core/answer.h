/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the readers of answers share: texts into fixed fields, snapshots of
 * counts that replace one another field by field, errors that are told by
 * their most telling word, and the pieces of an error body.  It knows no
 * path and no provider.
 */
#ifndef AIGW_ANSWER_H
#define AIGW_ANSWER_H

#include "meter.h"

#define AIGW_COUNT_MAX ((apr_uint64_t)1 << 53)

/** Text into a fixed field, cut where it is longer. */
static inline void aigw_answer_copy(char *to, apr_size_t size,
                                    aigw_slice_t text)
{
    apr_size_t n = text.n < size ? text.n : size - 1;

    memcpy(to, text.p, n);
    to[n] = '\0';
}

/** 1 if a value is a string with something in it. */
static inline int aigw_answer_is_text(const aigw_jsonscan_value_t *v)
{
    return v->kind == AIGW_JSON_STRING && v->text.n > 0;
}

/** Keep a string in a field of @a m (an array); others change nothing. */
#define AIGW_ANSWER_KEEP(field, v)                             \
    do {                                                       \
        if (aigw_answer_is_text(v)) {                          \
            aigw_answer_copy(field, sizeof(field), (v)->text); \
        }                                                      \
    } while (0)

/** 1 if the event that ends is whole; a cut may have broken it off. */
static inline int aigw_answer_whole(const aigw_meter_t *m)
{
    return aigw_jsonscan_state(&m->json) == AIGW_JSONSCAN_WHOLE;
}

/** What event_start() does in each dialect. The counts themselves begin anew
 * with each usage object. */
static inline void aigw_answer_event_start(aigw_meter_t *m)
{
    aigw_dialect_state_t *s = &m->state;

    s->usage_rank = 0;
    s->usage_live = 0;
    s->usage_whole = 0;
    s->event_usage = 0;
    s->event_choice = 0;
    s->event_error = 0;
    s->word[0] = '\0';
    s->choice_before = m->seen.saw_content;
}

/**
 * A usage object begins or ends. Of those in one event the one with the
 * highest rank counts; of two with the same rank the last.
 * @param rank 1 to 3
 */
void aigw_answer_usage(aigw_dialect_state_t *s, unsigned rank,
                       const aigw_jsonscan_value_t *v);

/** A count of the usage object that is open: null and bad ones change
 * nothing, bad ones are flagged. */
void aigw_answer_count(aigw_meter_t *m, int field,
                       const aigw_jsonscan_value_t *v);

/** 1 if none of the counts named by bits is other than 0. */
int aigw_answer_all_zero(const apr_uint64_t *counts, apr_uint32_t have);

/**
 * The event's snapshot into what is known, if there is one, it is whole and
 * is not zeros that would replace numbers.
 * @return 1 if it was taken
 */
int aigw_answer_merge(aigw_dialect_state_t *s);

/** A merged count, 0 if unknown. */
static inline apr_uint64_t aigw_answer_merged(const aigw_dialect_state_t *s,
                                              int i)
{
    return s->last_have >> i & 1 ? s->last[i] : 0;
}

/** 1 if a merged count is known. */
static inline int aigw_answer_known(const aigw_dialect_state_t *s, int i)
{
    return (int)(s->last_have >> i & 1);
}

/**
 * An error was seen; the most telling word for it is kept.
 * @param rank 0 that there is one, 1 a number, 2 a type, 3 a code
 */
void aigw_answer_error(aigw_meter_t *m, unsigned rank, const char *word,
                       apr_size_t n);

/** A member of an error object: @a rank of a string there; a number has
 * rank 1, an object none. The message is never asked for: it may repeat what
 * the caller wrote. */
void aigw_answer_error_word(aigw_meter_t *m, unsigned rank,
                            const aigw_jsonscan_value_t *v);

/** A member that is an error if it is an object or a text: @a word is kept
 * for it until a better one comes. */
void aigw_answer_error_here(aigw_meter_t *m, const char *word,
                            const aigw_jsonscan_value_t *v);

/** A decimal number, not negative; 0 if it is none. */
int aigw_answer_money(const aigw_jsonscan_value_t *v, aigw_money_t *money);

/** State a field of the usage if @a n is not 0. */
void aigw_answer_set_any(aigw_usage_t *u, aigw_usage_field_t field,
                         apr_uint64_t n);

/** "[DONE]" is noise in languages that end otherwise. */
int aigw_answer_done_is_noise(const char *data, apr_size_t n);

/* ---- error bodies ------------------------------------------------------- */

typedef struct {
    char *p;
    char *end; /* one byte is kept for the NUL */
} aigw_errout_t;

/** Text of ours: whole or not at all. */
void aigw_errout_put(aigw_errout_t *o, const char *text);

/** Text inside quotes, as much of it as leaves @a spare bytes. */
void aigw_errout_escaped(aigw_errout_t *o, const char *text, apr_size_t spare);

#endif
