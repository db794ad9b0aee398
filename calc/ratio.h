/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact fractions: what a percentage, a rate through a third currency or a
 * quotient of two sums really is.  Nothing is rounded before it is printed,
 * and what does not fit into 127 bits is an error and never a wrong figure.
 */
#ifndef AIGW_CALC_RATIO_H
#define AIGW_CALC_RATIO_H

#include <apr_pools.h>
#include "decimal.h"

/** In lowest terms, the denominator above 0. */
typedef struct {
    aigw_money_t num, den;
} aigw_ratio_t;

/** A whole number. */
aigw_ratio_t aigw_ratio_of(apr_int64_t n);

/** Money, or a decimal number read by aigw_money_parse(). */
aigw_ratio_t aigw_ratio_money(aigw_money_t m);

/** n of d; d must be above 0. */
aigw_rc_t aigw_ratio_make(aigw_money_t n, aigw_money_t d, aigw_ratio_t *out);

/*
 * out may be one of the operands. AIGW_OK; AIGW_TOO_BIG (out untouched);
 * aigw_ratio_div() AIGW_MALFORMED where b is 0.
 */
aigw_rc_t aigw_ratio_add(aigw_ratio_t a, aigw_ratio_t b, aigw_ratio_t *out);
aigw_rc_t aigw_ratio_sub(aigw_ratio_t a, aigw_ratio_t b, aigw_ratio_t *out);
aigw_rc_t aigw_ratio_mul(aigw_ratio_t a, aigw_ratio_t b, aigw_ratio_t *out);
aigw_rc_t aigw_ratio_div(aigw_ratio_t a, aigw_ratio_t b, aigw_ratio_t *out);

/** -1, 0 or 1 as a is below, equal to or above b; AIGW_TOO_BIG if it can't
 * be told. */
aigw_rc_t aigw_ratio_order(aigw_ratio_t a, aigw_ratio_t b, int *order);

/** The least whole number that is not below a. */
aigw_money_t aigw_ratio_ceil(aigw_ratio_t a);

/**
 * The nearest multiple of 10^-digits (0..15), rounded as asked.
 * @return AIGW_OK, or AIGW_TOO_BIG
 */
aigw_rc_t aigw_ratio_round(aigw_ratio_t a, int digits, aigw_round_t mode,
                           aigw_money_t *out);

/**
 * As text with so many digits after the point, rounded; NULL if it does not
 * fit.
 */
const char *aigw_ratio_text(aigw_ratio_t a, int digits, aigw_round_t mode,
                            apr_pool_t *pool);

#endif
