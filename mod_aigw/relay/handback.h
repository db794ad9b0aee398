/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only file that knows how a connection leaves httpd's event MPM and
 * comes back.  It leaves in the suspend_connection hook; its end is brought
 * to a worker by a timed callback; from then on the MPM has forgotten it,
 * and keep-alive, later requests and the lingering close are looked after
 * here until its pool is destroyed.  It knows nothing of what is relayed.
 */
#ifndef AIGW_HANDBACK_H
#define AIGW_HANDBACK_H

#include "../aigw.h"

/** pre_connection: the context of a client connection. */
void aigw_handback_attach(conn_rec *c);

/** The context, NULL on an HTTP/2 stream. */
aigw_conn_t *aigw_handback_conn(conn_rec *c);

/**
 * May this request's connection be let go?  Not under another MPM, not an
 * HTTP/2 stream, a subrequest or an internal redirect (whose caller knows no
 * SUSPENDED), a clogging or a foreign filter, nor a new connection in a child
 * that is ending.
 * @param filter set to the filter's name if that is why not, else NULL
 */
int aigw_handback_possible(request_rec *r, const char **filter);

/** suspend_connection hook. */
void aigw_handback_suspend(conn_rec *c, request_rec *r);

/**
 * Relay thread: let a worker go on with the connection.
 * aigw_handback_flush() at the end of the turn wakes one.
 */
void aigw_handback_give(aigw_conn_t *cc, int why);
void aigw_handback_flush(void);

/** Relay thread: 1 while no worker has taken what was given back. A worker
 * that is stuck (in a log's pipe, say) may hold the callback that should have
 * carried it: the relay flushes again after a little while. */
int aigw_handback_waiting(void);

/** Relay thread: close the client's socket now; its memory goes later. */
void aigw_handback_close_socket(aigw_conn_t *cc);

apr_status_t aigw_handback_child_init(apr_pool_t *pchild);

/** httpd stops at once: cut what workers are reading for us. */
void aigw_handback_interrupt(void);

#endif
