/* SPDX-License-Identifier: Apache-2.0 */
/* See health.h. */
#include "health.h"

#define COST    5   /* a retry a so many calls */
#define AT_START (10 * COST)
#define AT_MOST  (100 * COST)

void aigw_health_fail(aigw_health_t *h, apr_interval_time_t hint,
                      apr_time_t now)
{
    apr_interval_time_t rest = hint > 0 ? hint : AIGW_REST_SHORT;

    __atomic_store_n(&h->rests_until,
                     now + (rest < AIGW_REST_MAX ? rest : AIGW_REST_MAX),
                     __ATOMIC_RELAXED);
}

void aigw_health_good(aigw_health_t *h)
{
    if (__atomic_load_n(&h->rests_until, __ATOMIC_RELAXED) != 0) {
        __atomic_store_n(&h->rests_until, 0, __ATOMIC_RELAXED);
    }
}

apr_time_t aigw_health_rests_until(const aigw_health_t *h)
{
    return __atomic_load_n(&h->rests_until, __ATOMIC_RELAXED);
}

void aigw_retries_init(aigw_retries_t *b)
{
    b->tokens = AT_START;
}

void aigw_retries_call(aigw_retries_t *b)
{
    if (__atomic_load_n(&b->tokens, __ATOMIC_RELAXED) < AT_MOST) {
        __atomic_add_fetch(&b->tokens, 1, __ATOMIC_RELAXED);
    }
}

void aigw_retries_return(aigw_retries_t *b)
{
    __atomic_add_fetch(&b->tokens, COST, __ATOMIC_RELAXED);
}

int aigw_retries_take(aigw_retries_t *b)
{
    if (__atomic_sub_fetch(&b->tokens, COST, __ATOMIC_RELAXED) >= 0) {
        return 1;
    }
    aigw_retries_return(b);
    return 0;
}
