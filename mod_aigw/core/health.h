/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How upstreams are: which of them rests after a failure, and whether there
 * is still room for a retry.  A rest only changes the order in which
 * candidates are tried; it never refuses a request that has no other way.
 * Any thread; atomics, no lock.
 */
#ifndef AIGW_HEALTH_H
#define AIGW_HEALTH_H

#include <apr_time.h>

/** One an upstream and child. */
typedef struct {
    apr_int64_t rests_until; /* atomic; apr_time_t, 0: it does not */
} aigw_health_t;

/** One a child: retries stay a fifth of the calls, ten more at the start. */
typedef struct {
    apr_int64_t tokens; /* atomic; a call earns one, a retry costs five */
} aigw_retries_t;

#define AIGW_REST_SHORT apr_time_from_sec(2)  /* no hint was given */
#define AIGW_REST_MAX   apr_time_from_sec(60) /* whatever the hint says */

/** It failed, or asked for a rest of @a hint (0: it gave no hint). */
void aigw_health_fail(aigw_health_t *h, apr_interval_time_t hint,
                      apr_time_t now);

/** It answered well: no more rest. */
void aigw_health_good(aigw_health_t *h);

/** Until when it rests; 0 or past: it does not. */
apr_time_t aigw_health_rests_until(const aigw_health_t *h);

void aigw_retries_init(aigw_retries_t *b);
/** A request came. */
void aigw_retries_call(aigw_retries_t *b);
/** May one more be tried? 1: yes, and it is paid for. */
int aigw_retries_take(aigw_retries_t *b);
/** It was not made after all. */
void aigw_retries_return(aigw_retries_t *b);

#endif
