/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to an upstream, plain or TLS, never blocking, and the pools
 * in which idle ones wait.  A connection is pooled only by someone who knows
 * that its last answer was read to its exact end; a pooled one that shows
 * any sign of life is closed, never used.  It knows no HTTP.
 */
#ifndef AIGW_UPCONN_H
#define AIGW_UPCONN_H

#include <apr_thread_mutex.h>
#include "../aigw.h"
#include "tls.h"

typedef struct aigw_upconn_t aigw_upconn_t;

struct aigw_upconn_t {
    int fd;
    int error;               /* errno of the last failure */
    aigw_tls_t *tls;         /* NULL: plain, or not begun */
    aigw_upstream_t *up;
    aigw_exchange_t *x;      /* who uses it; NULL in a pool */
    aigw_watch_t watch;      /* relay thread only */
    aigw_timer_t timer;      /* ends an idle wait; relay thread only */
    apr_time_t idle_until;
    aigw_upconn_t *prev, *next; /* in a pool */
};

/** What a child knows of an upstream while it runs. pchild. */
typedef struct aigw_upstream_rt_t {
    int resolver_slot;
    apr_uint32_t active;     /* atomic: exchanges that hold a place */
    apr_time_t key_warned;   /* atomic: when its refusal of our key was last
                                logged */
    aigw_health_t health;    /* up->health points here */
    aigw_upconn_t *idle;     /* the relay thread's own pool, newest first */
    int n_idle;
    apr_thread_mutex_t *mutex;
    aigw_upconn_t *sync_idle; /* the workers' pool, under the mutex */
    int n_sync_idle;
} aigw_upstream_rt_t;

#define AIGW_POOL_MAX 256    /* idle connections an upstream and pool */

/** child_init: the runtime side of an upstream. */
apr_status_t aigw_upconn_child_init(aigw_upstream_t *up, apr_pool_t *pchild);

/**
 * Begin to connect (one socket, TCP_NODELAY, close-on-exec).
 * @return AIGW_OK or AIGW_AGAIN: *uc is set, wait for writability;
 *         AIGW_FAILED: *uc NULL, *err holds the errno
 */
aigw_rc_t aigw_upconn_open(aigw_upstream_t *up, const aigw_addr_t *addr,
                           aigw_upconn_t **uc, int *err);

/** The socket became writable: did the connect succeed? AIGW_OK, AIGW_AGAIN
 * (still under way) or AIGW_FAILED (uc->error). */
aigw_rc_t aigw_upconn_connected(aigw_upconn_t *uc);

/** Drive the TLS handshake; AIGW_OK at once for a plain upstream. */
aigw_rc_t aigw_upconn_handshake(aigw_upconn_t *uc, int *want);

/** @return AIGW_OK (*n > 0), AIGW_AGAIN (*want), AIGW_DONE (a clean end),
 * AIGW_TRUNCATED (TLS ended without close_notify), AIGW_FAILED */
aigw_rc_t aigw_upconn_read(aigw_upconn_t *uc, char *buf, apr_size_t size,
                           apr_size_t *n, int *want);

/** Write what goes of the pieces, starting @a off bytes into the first.
 * @return AIGW_OK (*n bytes taken), AIGW_AGAIN (*want), AIGW_FAILED */
aigw_rc_t aigw_upconn_write(aigw_upconn_t *uc, const aigw_slice_t *piece,
                            int n_pieces, apr_size_t off, apr_size_t *n,
                            int *want);

/** 1 if nothing may be sent on this idle connection any more. */
int aigw_upconn_stale(aigw_upconn_t *uc);

/** Words for the log: the TLS failure or strerror. Static or in uc. */
const char *aigw_upconn_why(const aigw_upconn_t *uc, char *buf,
                            apr_size_t size);

/** Close socket and TLS now; the struct stays until free(): an event for it
 * may still be in the batch that the relay is working through. */
void aigw_upconn_shut(aigw_upconn_t *uc);

/** Shut and free. */
void aigw_upconn_close(aigw_upconn_t *uc);

/** Worker threads: a usable idle connection, or NULL. */
aigw_upconn_t *aigw_upconn_sync_take(aigw_upstream_t *up, apr_time_t now);
/** Worker threads: give one back; closes it when the pool is full. */
void aigw_upconn_sync_give(aigw_upconn_t *uc, apr_time_t now);

#endif
