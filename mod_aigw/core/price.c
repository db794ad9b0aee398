/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts times prices, exactly.  The five input buckets and the output are
 * each priced once; what lies inside a bucket only changes the rate of its
 * share.  It refuses to put 0 where a price is missing: then there is no
 * cost at all, and the record says so by having none.
 */
#include "price.h"

#define MTOK 1000000

int aigw_price_is_token(aigw_usage_field_t field)
{
    return field < AIGW_U_SEARCHES;
}

/* One bill in the making: the first fault stays. */
typedef struct {
    const aigw_price_t *price;
    const aigw_usage_t *usage;
    aigw_money_t sum;
    aigw_rc_t rc;
} bill_t;

static apr_uint64_t count(const bill_t *b, aigw_usage_field_t field)
{
    apr_uint64_t n;

    return aigw_usage_get(b->usage, field, &n) ? n : 0;
}

static int has_price(const bill_t *b, aigw_usage_field_t field)
{
    return (b->price->known & (1u << field)) != 0;
}

static void charge(bill_t *b, apr_uint64_t n, aigw_usage_field_t rate)
{
    aigw_money_t one = b->price->per_mtok[rate], part;

    if (n == 0 || b->rc != AIGW_OK) {
        return;
    }
    if (!has_price(b, rate)) {
        b->rc = AIGW_AGAIN;
        return;
    }
    if (aigw_price_is_token(rate)) {
        one /= MTOK; /* exact: the catalog takes multiples only */
    }
    if (n > APR_INT64_MAX) {
        b->rc = AIGW_TOO_BIG;
        return;
    }
    b->rc = aigw_money_mul(one, (apr_int64_t)n, &part);
    if (b->rc == AIGW_OK) {
        b->rc = aigw_money_add(b->sum, part, &b->sum);
    }
}

static void charge_cache(bill_t *b, aigw_usage_field_t field)
{
    charge(b, count(b, field),
           has_price(b, field) ? field : AIGW_U_INPUT_UNCACHED);
}

static void charge_input(bill_t *b)
{
    static const aigw_usage_field_t parts[] = {AIGW_U_INPUT_AUDIO,
                                               AIGW_U_INPUT_IMAGE};
    apr_uint64_t rest = count(b, AIGW_U_INPUT_UNCACHED), part;
    int i;

    for (i = 0; i < 2; i++) {
        part = has_price(b, parts[i]) ? count(b, parts[i]) : 0;
        part = part < rest ? part : rest;
        charge(b, part, parts[i]);
        rest -= part;
    }
    charge(b, rest, AIGW_U_INPUT_UNCACHED);
    charge_cache(b, AIGW_U_CACHE_READ);
    charge_cache(b, AIGW_U_CACHE_WRITE_5M);
    charge_cache(b, AIGW_U_CACHE_WRITE_1H);
    charge_cache(b, AIGW_U_CACHE_WRITE_OTHER);
}

static void charge_output(bill_t *b)
{
    static const aigw_usage_field_t parts[] = {AIGW_U_REASONING,
                                               AIGW_U_OUTPUT_AUDIO,
                                               AIGW_U_OUTPUT_IMAGE};
    apr_uint64_t rest = count(b, AIGW_U_OUTPUT), part;
    int i;

    for (i = 0; i < 3; i++) {
        part = has_price(b, parts[i]) ? count(b, parts[i]) : 0;
        if (part > rest) {
            b->rc = AIGW_MALFORMED;
            return;
        }
        charge(b, part, parts[i]);
        rest -= part;
    }
    charge(b, rest, AIGW_U_OUTPUT);
}

/* An image answer states its tokens and its images: it is one charge. */
static void charge_items(bill_t *b)
{
    apr_uint64_t tokens = 0;
    int f;

    for (f = AIGW_U_INPUT_UNCACHED; f <= AIGW_U_OUTPUT; f++) {
        tokens |= count(b, (aigw_usage_field_t)f);
    }
    charge(b, count(b, AIGW_U_SEARCHES), AIGW_U_SEARCHES);
    for (f = AIGW_U_IMAGES; f <= AIGW_U_AUDIO_SECONDS; f++) {
        if (!tokens || has_price(b, (aigw_usage_field_t)f)) {
            charge(b, count(b, (aigw_usage_field_t)f), (aigw_usage_field_t)f);
        }
    }
}

aigw_rc_t aigw_price_cost(const aigw_price_t *price, const aigw_usage_t *u,
                          aigw_money_t *cost)
{
    bill_t b;

    b.price = price;
    b.usage = u;
    b.sum = 0;
    b.rc = u->known ? AIGW_OK : AIGW_AGAIN;
    charge_input(&b);
    if (b.rc == AIGW_OK) {
        charge_output(&b);
    }
    charge_items(&b);
    if (b.rc == AIGW_OK) {
        *cost = b.sum;
    }
    return b.rc;
}
