/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read this first: the exchange, which is one request on its way through
 * the gateway, and the client connection that carries it.
 *
 *   worker thread                relay thread               worker thread
 *   identify admit choose start  connect send head body     settle log
 *
 * Every field is tagged with the station that writes it.  Between the
 * suspend_connection hook and the hand-back the relay thread alone touches
 * the exchange, its request_rec and its conn_rec; before and after that one
 * worker does.  The inbox and the hand-back list, each under its mutex, are
 * the only two doors between them.
 */
#ifndef AIGW_H
#define AIGW_H

#include <httpd.h>
#include <http_connection.h>
#include <http_core.h>
#include <http_config.h>
#include <http_protocol.h>
#include <http_request.h>
#include <scoreboard.h>
#include <util_filter.h>
#include <apr_strings.h>

#include "log.h"
#include "config/config.h"
#include "admit/identify.h"
#include "core/reason.h"
#include "core/http1.h"
#include "core/meter.h"
#include "core/record.h"
#include "core/reqbody.h"
#include "upstream/buffer.h"
#include "upstream/resolve.h"

struct aigw_relay_t;
struct aigw_upconn_t;
typedef struct aigw_exchange_t aigw_exchange_t;
typedef struct aigw_conn_t aigw_conn_t;

#define AIGW_ID_LEN 24

/** Where an exchange stands. The names are those of the traces. */
typedef enum {
    AIGW_X_NEW = 0,  /* on the worker */
    AIGW_X_CONNECT,  /* TCP handshake under way */
    AIGW_X_PROXY,    /* a proxy is asked for a tunnel */
    AIGW_X_TLS,      /* TLS handshake under way */
    AIGW_X_SEND,     /* the request is going out */
    AIGW_X_HEAD,     /* waiting for the answer's head */
    AIGW_X_BODY,     /* the answer is going through */
    AIGW_X_ENDED     /* nothing more will happen upstream */
} aigw_xstate_t;

/** A deadline in the relay's heap. */
typedef struct aigw_timer_t aigw_timer_t;
struct aigw_timer_t {
    apr_time_t at;
    int index;       /* place in the heap, -1: not in it */
    void (*fire)(aigw_timer_t *t, apr_time_t now);
    void *owner;
};

/** Something with a descriptor in the relay's epoll set. */
typedef struct aigw_watch_t aigw_watch_t;
struct aigw_watch_t {
    void (*ready)(aigw_watch_t *w, apr_uint32_t events);
    void *owner;
};

/**
 * What the state machine asks of whoever drives it: the relay thread or a
 * worker.  Both keep the same promise: after a connection was given to
 * open(), its readiness reaches x->up_readable and x->up_writable.
 */
typedef struct {
    /** An idle connection to x->upstream, or NULL. */
    struct aigw_upconn_t *(*take)(aigw_exchange_t *x, apr_time_t now);
    /** A socket that connects: watch it. AIGW_FAILED if that can't be. */
    aigw_rc_t (*open)(aigw_exchange_t *x, struct aigw_upconn_t *uc);
    /** Its answer was read to the exact end: keep it or close it. */
    void (*give)(aigw_exchange_t *x, struct aigw_upconn_t *uc,
                 apr_time_t now);
    /** It is of no more use. */
    void (*drop)(aigw_exchange_t *x, struct aigw_upconn_t *uc);
} aigw_driver_t;

#define AIGW_OUT_PIECES (2 * AIGW_REQBODY_EDITS + 2)

struct aigw_exchange_t {
    /* -- handler: who, what, where to ------------------------------------ */
    request_rec *r;
    conn_rec *c;
    aigw_conn_t *conn;           /* NULL on an HTTP/2 stream */
    const aigw_server_t *sconf;
    const aigw_dir_t *dconf;
    aigw_identity_t who;
    aigw_match_t match;          /* what is called, in which language */
    const aigw_endpoint_t *endpoint; /* of it; NULL: not known yet */
    const aigw_dialect_t *dialect; /* of the caller */
    const char *target;          /* what the upstream is sent behind its
                                    URL's path; r->pool */
    const aigw_model_row_t *row; /* whose candidates may be tried */
    apr_uint32_t tried;          /* bit per candidate that was */
    aigw_upstream_t *upstream;   /* the one that is being tried */
    /** Turn to the next candidate (the handler's; runs where the exchange
     * is driven, and does not block): AIGW_OK, upstream and request are
     * changed; AIGW_REFUSED: there is none, or no more retries may be. */
    aigw_rc_t (*next)(aigw_exchange_t *x, apr_time_t now);
    aigw_reqbody_t *req;         /* r->pool */
    char id[AIGW_ID_LEN + 1];
    unsigned withhold:1;         /* we asked, it did not */

    /* the request as it goes out: head and body pieces, nothing copied;
     * given back at the commit point: no retry comes after it */
    aigw_buffer_t out_head;      /* holds the upstream's key */
    aigw_buffer_t body;
    aigw_slice_t out[AIGW_OUT_PIECES];
    int out_n, out_at;           /* pieces; the one that is next */
    apr_size_t out_off;          /* bytes of it already sent */
    apr_size_t tunnel_off;       /* bytes of the CONNECT already sent */
    aigw_addrs_t *addrs;         /* malloc; freed once connected */
    int addr_at;

    /* -- exchange: the state machine ------------------------------------- */
    const aigw_driver_t *driver; /* who waits for it */
    aigw_xstate_t state;
    struct aigw_upconn_t *up;    /* NULL: none */
    int want;                    /* AIGW_WANT_* of the upstream, for drivers */
    unsigned up_readable:1;      /* edge seen and not yet used up */
    unsigned up_writable:1;
    unsigned up_eof:1;           /* a hang-up was seen: read to the end */
    unsigned reused:1;           /* the connection came from the pool */
    unsigned answered:1;         /* a byte of the answer has come */
    unsigned committed:1;        /* a byte was given to the client */
    unsigned held_back:1;        /* the answer has begun, but only with what
                                    is no content: it waits for the commit */
    unsigned blocked:1;          /* the client does not take more now */
    unsigned sync:1;             /* a worker drives */
    unsigned must_flush:1;       /* a filter above ours keeps small pieces
                                    until it sees FLUSH (mod_ssl does) */
    unsigned gone:1;             /* the client has left */
    unsigned draining:1;         /* and the upstream is read on (AIGWDrain) */
    unsigned replaced:1;         /* a dead pooled connection was replaced */
    unsigned keep_upstream:1;    /* it may be pooled if the end is exact */
    int n_1xx;
    aigw_buffer_t head;          /* only while an answer's head is split */
    apr_size_t head_scanned;
    aigw_http1_body_t frame;
    aigw_meter_t meter;
    aigw_buffer_t held;          /* only while withhold is undecided */
    apr_bucket_brigade *bb;      /* r->pool; downstream's */
    apr_time_t deadline;         /* of the phase; total_at bounds it */
    apr_time_t total_at;
    apr_time_t hold_until;       /* what is held back goes out then */
    apr_off_t drain_left;        /* bytes that may still be read then */

    /* -- relay: the async driver ----------------------------------------- */
    aigw_timer_t timer;
    unsigned on_ready:1;         /* in the relay's list for the next turn */
    unsigned live:1;             /* counted and in the child's list */
    aigw_exchange_t *ready_next;
    aigw_exchange_t *live_prev, *live_next; /* child's list, under its mutex */

    /* -- account ---------------------------------------------------------- */
    aigw_record_t rec;           /* strings from r->pool */
    const char *why;             /* detail of a failure, for the error log;
                                    r->pool; NULL: none */
    apr_time_t *key_warned;      /* of the upstream; NULL: none yet */
    const char *passed_over;     /* upstreams that failed before the one that
                                    was settled on; r->pool; NULL: none */
    apr_time_t entered;          /* the handler began */
    apr_time_t body_wait;        /* time spent waiting for the body */
    apr_time_t posted;           /* given to the relay */
    unsigned counted:1;          /* holds a place in child->streams */
    unsigned counted_up:1;       /* holds a place in upstream->rt->active */
    unsigned settled:1;          /* the record is written */
};

/**
 * A client connection (HTTP/1.x), from pre_connection until its pool goes.
 * c->pool.
 */
struct aigw_conn_t {
    conn_rec *c;
    int fd;
    ap_filter_t *filter;         /* our network filter */
    unsigned armed:1;            /* the filter writes itself, never blocks */
    unsigned ours:1;             /* suspended once: the MPM has let it go */
    unsigned in_epoll:1;
    unsigned lingering:1;
    ap_sb_handle_t *sbh;         /* borrowed scoreboard handle; c->pool */
    aigw_exchange_t *x;          /* the exchange that is under way */
    const server_rec *last_server; /* of the last request: its
                                    KeepAliveTimeout counts */
    apr_time_t suspended_at;     /* guards the pool's end: see handback.c */
    unsigned busy:1;             /* in handback.c's list of those that are on
                                    a worker */
    aigw_conn_t *busy_prev, *busy_next; /* under that list's mutex */

    /* relay thread only */
    aigw_watch_t watch;
    aigw_timer_t timer;
    int waiting;                 /* AIGW_WAIT_* or AIGW_TASK_*, 0: a worker
                                    has it */
    apr_interval_time_t wait_time; /* of the wait that is posted */
    aigw_conn_t *idle_prev, *idle_next; /* keep-alive waits, oldest first */
    aigw_conn_t *next;           /* inbox, hand-back list or graveyard */
    int task;                    /* what the receiver of that list should do */
};

/* -- handler.c ------------------------------------------------------------ */

/** translate_name, before everybody else: a request to an engine Location is
 * identified, and its credentials are taken out of it. */
int aigw_translate(request_rec *r);

/** The content handler. */
int aigw_handler(request_rec *r);

/** The exchange of a request, NULL if it has none. */
aigw_exchange_t *aigw_exchange_of(request_rec *r);

/* -- local.c -------------------------------------------------------------- */

/** Answer an endpoint that no upstream is asked for (GET /models). */
int aigw_local_answer(aigw_exchange_t *x);

/* -- refuse.c ------------------------------------------------------------- */

/**
 * Answer with an error body of our own in the caller's dialect and note why.
 * Nothing may have gone to the client yet.  Through the filters it goes as
 * one brigade with EOS; never blocks when the connection's filter is armed.
 * @param detail a sentence for the caller, NULL for the reason's own
 * @return OK, as handlers do
 */
int aigw_refuse(aigw_exchange_t *x, aigw_reason_t reason, const char *detail);

/** The same for an error that the upstream put in place of an answer: its
 * word for it (seen.error) becomes the code, and a status. */
int aigw_refuse_upstream_error(aigw_exchange_t *x, const char *word);

#endif
