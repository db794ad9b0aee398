/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formulas written as text in a data file: numbers, names, + - * / and
 * brackets, ceil(x).  They are evaluated exactly, as fractions; there is no
 * loop, no assignment and no way to reach anything outside.
 */
#ifndef AIGW_CALC_FORMULA_H
#define AIGW_CALC_FORMULA_H

#include "ratio.h"

/**
 * The value of a name.
 * @return AIGW_OK, or AIGW_AGAIN if it has none
 */
typedef aigw_rc_t (*aigw_formula_fn)(void *ctx, const char *name,
                                     aigw_ratio_t *value);

/**
 * Evaluate a formula.
 * @param why on failure a phrase, from @a pool; with AIGW_AGAIN the name
 * @return AIGW_OK
 *         AIGW_AGAIN     a name has no value
 *         AIGW_MALFORMED it is no formula, or divides by 0
 *         AIGW_TOO_BIG   a value does not fit
 */
aigw_rc_t aigw_formula_eval(const char *text, aigw_formula_fn fn, void *ctx,
                            aigw_ratio_t *value, const char **why,
                            apr_pool_t *pool);

#endif
