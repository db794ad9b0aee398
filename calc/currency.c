/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates of exchange.  A rate has at most 9 decimals, so that it is a whole
 * number of 10^-9 that fits into 64 bits and the product is one checked
 * multiplication.
 */
#include "currency.h"

#define RATE_STEP 1000000   /* 10^-15 units in 10^-9 */
#define RATE_ONE 1000000000 /* 10^-9 units in one */
#define RATE_MAX ((aigw_money_t)RATE_ONE * RATE_ONE * RATE_STEP)

static int is_code(const char *p)
{
    int i;

    for (i = 0; i < 3; i++) {
        if (p[i] < 'A' || p[i] > 'Z') {
            return 0;
        }
    }
    return 1;
}

aigw_rc_t aigw_rate_parse(const char *text, aigw_rate_t *rate)
{
    aigw_rc_t rc;

    if (strlen(text) < 9 || !is_code(text) || text[3] != '/'
        || !is_code(text + 4) || text[7] != '=') {
        return AIGW_MALFORMED;
    }
    memcpy(rate->from, text, 3);
    memcpy(rate->to, text + 4, 3);
    rate->from[3] = rate->to[3] = '\0';
    rc = aigw_money_parse(aigw_slice(text + 8, strlen(text + 8)), &rate->rate);
    if (rc == AIGW_OK && rate->rate <= 0) {
        rc = AIGW_MALFORMED;
    }
    if (rc == AIGW_OK
        && (rate->rate % RATE_STEP != 0 || rate->rate >= RATE_MAX)) {
        rc = AIGW_TOO_BIG;
    }
    return rc;
}

/* base + x / 10^9, the sum rounded half to even; |x| is far from the limits,
 * base may be at one. */
static aigw_rc_t add_divided(aigw_money_t base, aigw_money_t x,
                             aigw_money_t *out)
{
    aigw_money_t kept = x / RATE_ONE, rest = x % RATE_ONE;
    int up = rest < 0 ? -1 : 1, odd = (base % 2 + kept % 2) % 2 != 0;

    rest = rest < 0 ? -rest : rest;
    if (rest + rest > RATE_ONE || (rest + rest == RATE_ONE && odd)) {
        kept += up;
    }
    return aigw_money_add(base, kept, out);
}

/* The billions of the amount and what is left of it apart, so that only a
 * result that does not fit overflows. */
aigw_rc_t aigw_rate_apply(aigw_money_t amount, aigw_money_t rate,
                          aigw_money_t *out)
{
    apr_int64_t times = (apr_int64_t)(rate / RATE_STEP);
    aigw_money_t most, rest;
    aigw_rc_t rc = aigw_money_mul(amount / RATE_ONE, times, &most);

    if (rc == AIGW_OK) {
        rc = aigw_money_mul(amount % RATE_ONE, times, &rest);
    }
    return rc == AIGW_OK ? add_divided(most, rest, out) : rc;
}
