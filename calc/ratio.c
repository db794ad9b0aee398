/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fractions of 128-bit whole numbers.  Products are made of unsigned
 * magnitudes after a check by division: a checked signed product of 128 bits
 * needs a run-time library that not every compiler brings.
 */
#include "ratio.h"

typedef unsigned __int128 magnitude_t;

#define MOST ((~(magnitude_t)0) >> 1)

static magnitude_t magnitude(aigw_money_t n)
{
    return n < 0 ? (magnitude_t)0 - (magnitude_t)n : (magnitude_t)n;
}

static magnitude_t common(magnitude_t a, magnitude_t b)
{
    magnitude_t rest;

    while (b) {
        rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int times(magnitude_t a, magnitude_t b, magnitude_t *out)
{
    if (b && a > MOST / b) {
        return 0;
    }
    *out = a * b;
    return 1;
}

static void set(aigw_ratio_t *out, int negative, magnitude_t num,
                magnitude_t den)
{
    out->num = negative ? -(aigw_money_t)num : (aigw_money_t)num;
    out->den = (aigw_money_t)den;
}

aigw_ratio_t aigw_ratio_of(apr_int64_t n)
{
    aigw_ratio_t r = {n, 1};

    return r;
}

aigw_rc_t aigw_ratio_make(aigw_money_t n, aigw_money_t d, aigw_ratio_t *out)
{
    magnitude_t num = magnitude(n), den = magnitude(d), by = common(num, den);

    if (d <= 0) {
        return AIGW_MALFORMED;
    }
    if (num > MOST) {
        return AIGW_TOO_BIG;
    }
    set(out, n < 0, num / by, den / by);
    return AIGW_OK;
}

aigw_ratio_t aigw_ratio_money(aigw_money_t m)
{
    aigw_ratio_t r = {0, 1};

    /* the least of all values is out of reach of a sum of costs */
    aigw_ratio_make(m, (aigw_money_t)1000000000000000, &r);
    return r;
}

aigw_rc_t aigw_ratio_mul(aigw_ratio_t a, aigw_ratio_t b, aigw_ratio_t *out)
{
    magnitude_t an = magnitude(a.num), bn = magnitude(b.num);
    magnitude_t ad = magnitude(a.den), bd = magnitude(b.den), num, den;
    magnitude_t x = common(an, bd), y = common(bn, ad);

    if (!times(an / x, bn / y, &num) || !times(ad / y, bd / x, &den)) {
        return AIGW_TOO_BIG;
    }
    set(out, (a.num < 0) != (b.num < 0) && num, num, den);
    return AIGW_OK;
}

aigw_rc_t aigw_ratio_div(aigw_ratio_t a, aigw_ratio_t b, aigw_ratio_t *out)
{
    aigw_ratio_t turned;

    if (b.num == 0) {
        return AIGW_MALFORMED;
    }
    set(&turned, b.num < 0, magnitude(b.den), magnitude(b.num));
    return aigw_ratio_mul(a, turned, out);
}

static aigw_rc_t combine(aigw_ratio_t a, aigw_ratio_t b, int minus,
                         aigw_ratio_t *out)
{
    magnitude_t ad = magnitude(a.den), bd = magnitude(b.den);
    magnitude_t by = common(ad, bd), an, bn, den, num;
    int a_neg = a.num < 0, b_neg = (b.num < 0) != minus;

    if (!times(magnitude(a.num), bd / by, &an)
        || !times(magnitude(b.num), ad / by, &bn)
        || !times(ad, bd / by, &den)) {
        return AIGW_TOO_BIG;
    }
    if (a_neg == b_neg) {
        if (an > MOST - bn) {
            return AIGW_TOO_BIG;
        }
        num = an + bn;
    }
    else {
        num = an > bn ? an - bn : bn - an;
        a_neg = an > bn ? a_neg : b_neg;
    }
    by = common(num, den);
    set(out, a_neg && num, num / by, den / by);
    return AIGW_OK;
}

aigw_rc_t aigw_ratio_add(aigw_ratio_t a, aigw_ratio_t b, aigw_ratio_t *out)
{
    return combine(a, b, 0, out);
}

aigw_rc_t aigw_ratio_sub(aigw_ratio_t a, aigw_ratio_t b, aigw_ratio_t *out)
{
    return combine(a, b, 1, out);
}

aigw_rc_t aigw_ratio_order(aigw_ratio_t a, aigw_ratio_t b, int *order)
{
    aigw_ratio_t d;
    aigw_rc_t rc = aigw_ratio_sub(a, b, &d);

    if (rc == AIGW_OK) {
        *order = (d.num > 0) - (d.num < 0);
    }
    return rc;
}

aigw_money_t aigw_ratio_ceil(aigw_ratio_t a)
{
    return a.num / a.den + (a.num > 0 && a.num % a.den != 0);
}

static magnitude_t ten_to(int n)
{
    magnitude_t u = 1;

    while (n-- > 0) {
        u *= 10;
    }
    return u;
}

/* The next digits by long division, which needs one digit of room and no
 * more: the whole number first, then digit by digit. */
aigw_rc_t aigw_ratio_round(aigw_ratio_t a, int digits, aigw_round_t mode,
                           aigw_money_t *out)
{
    magnitude_t den = magnitude(a.den), rest = magnitude(a.num) % den;
    magnitude_t kept = magnitude(a.num) / den;
    int i;

    for (i = 0; i < digits; i++) {
        if (rest > MOST / 10 || kept > MOST / 10 - 1) {
            return AIGW_TOO_BIG;
        }
        kept = kept * 10 + rest * 10 / den;
        rest = rest * 10 % den;
    }
    if (mode != AIGW_ROUND_TRUNC
        && (rest > den - rest
            || (rest == den - rest
                && (mode == AIGW_ROUND_HALF_UP || kept % 2)))) {
        kept++;
    }
    if (!times(kept, ten_to(AIGW_MONEY_SCALE - digits), &kept)) {
        return AIGW_TOO_BIG;
    }
    *out = a.num < 0 ? -(aigw_money_t)kept : (aigw_money_t)kept;
    return AIGW_OK;
}

const char *aigw_ratio_text(aigw_ratio_t a, int digits, aigw_round_t mode,
                            apr_pool_t *pool)
{
    char *text = apr_palloc(pool, AIGW_MONEY_TEXT);
    aigw_money_t rounded;

    if (aigw_ratio_round(a, digits, mode, &rounded) != AIGW_OK) {
        return NULL;
    }
    aigw_money_round_text(rounded, digits, AIGW_ROUND_TRUNC, text);
    return text;
}
