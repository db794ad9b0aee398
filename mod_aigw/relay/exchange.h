/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exchange's state machine: connect, TLS, send, head, body, end.  It is
 * written once and never blocks; two drivers call it (loop.c on the relay
 * thread, sync.c on a worker).  It decides what an answer or a failure
 * means; it does not know how the connection left httpd or comes back.
 */
#ifndef AIGW_EXCHANGE_H
#define AIGW_EXCHANGE_H

#include "../aigw.h"

/**
 * Start: an idle connection if there is one, else connect. The driver, the
 * upstream, the request and the addresses are set.
 */
void aigw_exchange_begin(aigw_exchange_t *x, apr_time_t now);

/**
 * Go as far as it goes without waiting.
 * @param buf  read buffer of the driving thread, @a size bytes; nothing of
 *             it is kept
 * @return AIGW_AGAIN  wait for the upstream (x->want), for the client
 *                     (x->blocked) and for x->deadline; or, with
 *                     x->up_readable still set, call again after giving
 *                     others a turn
 *         AIGW_DONE   x->state is AIGW_X_ENDED; the client has been given
 *                     all it will get from here
 */
aigw_rc_t aigw_exchange_run(aigw_exchange_t *x, char *buf, apr_size_t size,
                            apr_time_t now);

/** x->deadline has passed. Then, unless the exchange has ended, run: another
 * upstream may be being tried. */
void aigw_exchange_timeout(aigw_exchange_t *x, apr_time_t now);

/** The client's socket takes bytes again; then run. */
void aigw_exchange_client_ready(aigw_exchange_t *x, apr_time_t now);

/** The client has left: the upstream is closed at once. */
void aigw_exchange_client_gone(aigw_exchange_t *x);

/** Another upstream is tried: note which one failed and why, for the log. */
void aigw_exchange_passed_over(aigw_exchange_t *x, const char *upstream,
                               const char *why);

/** httpd stops: end here, with nothing more for the client. */
void aigw_exchange_abandon(aigw_exchange_t *x);

#endif
