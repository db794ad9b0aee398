/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact money: a signed 128-bit count of 10^-15 of a currency unit.  Decimal
 * text in, decimal text out; overflow is an error, rounding happens only
 * when printing, and no floating point comes near.
 */
#ifndef AIGW_DECIMAL_H
#define AIGW_DECIMAL_H

#include "slice.h"

/* APR's pools align to 8 bytes; a plain __int128 in memory of theirs would be
 * read by instructions that fault there. */
typedef __int128 aigw_money_t __attribute__((aligned(8)));

#define AIGW_MONEY_SCALE 15
#define AIGW_MONEY_TEXT 48 /* room for any value as text, NUL included */

typedef enum {
    AIGW_ROUND_HALF_EVEN = 0,
    AIGW_ROUND_HALF_UP,
    AIGW_ROUND_TRUNC
} aigw_round_t;

/**
 * Read decimal text: optional '-', digits, optional fraction, optional
 * exponent (JSON's number form, also inside quotes elsewhere).
 * @return AIGW_OK; AIGW_MALFORMED (not a number); AIGW_TOO_BIG (too large,
 *         or digits below 10^-15 that are not zero)
 */
aigw_rc_t aigw_money_parse(aigw_slice_t text, aigw_money_t *out);

/** sum = a + b; AIGW_TOO_BIG on overflow (sum untouched). */
aigw_rc_t aigw_money_add(aigw_money_t a, aigw_money_t b, aigw_money_t *sum);

/** out = a * n; AIGW_TOO_BIG on overflow. */
aigw_rc_t aigw_money_mul(aigw_money_t a, apr_int64_t n, aigw_money_t *out);

/**
 * The whole exact value as plain decimal text, no exponent, no trailing
 * zeros ("0.000104").
 * @param buf room for AIGW_MONEY_TEXT
 * @return length
 */
apr_size_t aigw_money_text(aigw_money_t m, char *buf);

/** As text with exactly @a digits (0..15) after the point, rounded. */
apr_size_t aigw_money_round_text(aigw_money_t m, int digits,
                                 aigw_round_t mode, char *buf);

#endif
