/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dated rates of exchange from a file: the European Central Bank's reference
 * rates (XML or CSV) or a table of one's own.  A day without a rate takes the
 * last earlier one, never a later one, and no one that is too old; nothing is
 * fetched and nothing is filled in.
 */
#ifndef AIGW_CALC_RATES_H
#define AIGW_CALC_RATES_H

#include "day.h"
#include "ratio.h"

#define AIGW_RATES_MAX_AGE 5 /* days, where nothing else is said */

typedef struct aigw_rates_t aigw_rates_t;

typedef struct {
    aigw_ratio_t value; /* units of `to` for one of `from` */
    char from[4], to[4];
    aigw_day_t day;     /* of the rate */
    const char *source; /* "ECB reference rate, through EUR" */
} aigw_quote_t;

/**
 * Read a file of rates; its form is told from its content.
 * @param err on failure a sentence that names file and line
 * @return AIGW_OK, or AIGW_MALFORMED
 */
aigw_rc_t aigw_rates_load(aigw_rates_t **rates, const char *path,
                          apr_pool_t *pool, const char **err);

/**
 * The rate of a day: direct, inverse, or through the base of the file. From a
 * currency to itself it is 1.
 * @param max_age so many days earlier at most
 * @param err on failure a sentence that says what there is
 * @return AIGW_OK, or AIGW_AGAIN if there is none
 */
aigw_rc_t aigw_rates_find(const aigw_rates_t *rates, const char *from,
                          const char *to, aigw_day_t on, int max_age,
                          aigw_quote_t *quote, const char **err);

/** "1 USD = 7.1 CNY on 2026-11-27 (ECB reference rate, through EUR)". */
const char *aigw_quote_text(const aigw_quote_t *quote, apr_pool_t *pool);

#endif
