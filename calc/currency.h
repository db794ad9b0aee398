/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rate of exchange as the user states it, and money taken through it.
 * No rate is ever looked up or guessed here.
 */
#ifndef AIGW_CALC_CURRENCY_H
#define AIGW_CALC_CURRENCY_H

#include "decimal.h"

typedef struct {
    char from[4];      /* "USD" */
    char to[4];        /* "CNY" */
    aigw_money_t rate; /* of 10^-15 units of `to` for one of `from` */
} aigw_rate_t;

/**
 * Read "USD/CNY=7.3": one USD is 7.3 CNY.
 * @return AIGW_OK, or AIGW_MALFORMED (form, zero or negative), or
 *         AIGW_TOO_BIG (more than 9 decimals, or not below 10^9)
 */
aigw_rc_t aigw_rate_parse(const char *text, aigw_rate_t *rate);

/**
 * amount * rate. A product finer than 10^-15 is rounded there, half to even;
 * every coarser one is exact.
 * @return AIGW_OK, or AIGW_TOO_BIG on overflow
 */
aigw_rc_t aigw_rate_apply(aigw_money_t amount, aigw_money_t rate,
                          aigw_money_t *out);

#endif
