/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the three files of the exchange's state machine and for nobody
 * else: exchange.c (the machine, its ends, another try), exchange_request.c
 * (connect, tunnel, TLS, send) and exchange_answer.c (head, body).  Each step
 * goes as far as it goes without waiting and says what it came to.
 */
#ifndef AIGW_EXCHANGE_STEP_H
#define AIGW_EXCHANGE_STEP_H

#include "exchange.h"
#include "../upstream/upconn.h"

/** What one step of the machine came to. */
typedef enum {
    AIGW_STEP_ON = 0, /* look at the state again */
    AIGW_STEP_RETRY,  /* the same, with another upstream */
    AIGW_STEP_WAIT,   /* nothing more goes now */
    AIGW_STEP_ENDED
} aigw_step_t;

/* A split head is collected up to this. */
#define AIGW_HEAD_MAX (64 * 1024)

/* -- exchange.c ----------------------------------------------------------- */

/** The phase's deadline; the exchange's own bounds it. */
void aigw_step_deadline(aigw_exchange_t *x, apr_time_t at);
void aigw_step_enter(aigw_exchange_t *x, aigw_xstate_t state);
void aigw_step_drop_upstream(aigw_exchange_t *x);
/** Addresses and a split head: of no use once an answer has begun. */
void aigw_step_forget_buffers(aigw_exchange_t *x);
/** The first end that is noted counts. */
void aigw_step_note_end(aigw_exchange_t *x, aigw_end_t end, aigw_reason_t why);
int aigw_step_ok_status(const aigw_exchange_t *x);

/** Every way out: @a end_of_body as in aigw_downstream_push(). */
aigw_step_t aigw_step_end(aigw_exchange_t *x, int end_of_body);
/** The client has its last bytes already. */
aigw_step_t aigw_step_ended(aigw_exchange_t *x);
aigw_step_t aigw_step_client_gone(aigw_exchange_t *x);

/** Before the commit point another candidate may do better.
 * @param why of the one that failed, for the log
 * @return 1: it is being tried */
int aigw_step_try_next(aigw_exchange_t *x, const char *why, apr_time_t now);

/** The upstream failed.  Before the first byte another one is tried, or the
 * client gets an error of ours; after it, a visible truncation and never a
 * clean end. @param detail for the log; NULL: none */
aigw_step_t aigw_step_fail(aigw_exchange_t *x, aigw_end_t end,
                           aigw_reason_t why, const char *detail);

/* -- exchange_request.c --------------------------------------------------- */

void aigw_step_start_connect(aigw_exchange_t *x, apr_time_t now);
aigw_step_t aigw_step_connect(aigw_exchange_t *x);
aigw_step_t aigw_step_proxy(aigw_exchange_t *x, char *buf, apr_size_t size);
aigw_step_t aigw_step_tls(aigw_exchange_t *x);
aigw_step_t aigw_step_send(aigw_exchange_t *x, apr_time_t now);
/** An I/O call said AGAIN: that direction is used up. */
aigw_step_t aigw_step_wait_for(aigw_exchange_t *x, int want);
/** Collect a head that comes in pieces: AIGW_OK, AIGW_TOO_BIG, AIGW_FAILED. */
aigw_rc_t aigw_step_keep_head(aigw_exchange_t *x, const char *p, apr_size_t n);
/** A pooled connection that died before it answered is replaced once. */
aigw_step_t aigw_step_replace_or_fail(aigw_exchange_t *x, aigw_reason_t why,
                                      const char *detail, apr_time_t now);

/* -- exchange_answer.c ---------------------------------------------------- */

/** One read of the answer, if there is something to read. */
aigw_step_t aigw_step_read(aigw_exchange_t *x, char *buf, apr_size_t size,
                           apr_time_t now);
/** Hand down what was collected, unless it is to be held back. */
aigw_step_t aigw_step_push(aigw_exchange_t *x, apr_time_t now);

#endif
