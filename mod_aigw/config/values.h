/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values that directives take, from text to numbers.  Each parser reads
 * the whole word or refuses it; it never rounds, guesses or clamps.  No
 * httpd header comes in here, so that they are tested alone.
 *
 * A refusal is a static phrase that says what is allowed, with one example:
 * the caller puts what was read in front of it.
 */
#ifndef AIGW_VALUES_H
#define AIGW_VALUES_H

#include <apr_pools.h>
#include <apr_time.h>
#include "../core/slice.h"

/**
 * A time: digits and ms, s, m or h; a bare number is seconds. At most 24 h.
 * @return NULL and *out in microseconds, or what is allowed
 */
const char *aigw_value_duration(const char *text, apr_interval_time_t *out);

/** A size: digits and nothing, K, M or G (1024 each), in bytes. */
const char *aigw_value_size(const char *text, apr_off_t *out);

/** on or off, in any case. */
const char *aigw_value_flag(const char *text, int *out);

/** A decimal number from @a min to @a max. */
const char *aigw_value_count(const char *text, int min, int max, int *out);

/** A name: letters, digits, '.', '_' and '-', 1 to 64 of them. */
const char *aigw_value_name(const char *text);

/**
 * Split at the first '='.
 * @return 1 with both parts (key from @a pool, value inside @a arg); 0 if
 *         there is no '=' or nothing before it
 */
int aigw_value_split(apr_pool_t *pool, const char *arg, const char **key,
                     const char **value);

/**
 * The number of the word in a list that ends with NULL, compared as it
 * stands. @return -1 if it is not one of them
 */
int aigw_value_choice(const char *text, const char *const *words);

/** "a, b or c". */
const char *aigw_value_words(apr_pool_t *pool, const char *const *words);

#endif
