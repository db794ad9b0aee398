/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read this first: the server and its connections.  One thread, one epoll.
 * A connection reads one request, answers it, and only then looks at the
 * next: while it answers it reads nothing, so that the peer's leaving is
 * seen as EPOLLRDHUP at once and pipelined requests wait in their order.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <openssl/ssl.h>
#include <stdint.h>

#include "answer.h"
#include "buf.h"
#include "params.h"
#include "request.h"
#include "timers.h"

typedef struct sim_stats_t {
    uint64_t accepted, open;
    uint64_t requests;
    uint64_t nth_max; /* most requests on one connection */
    uint64_t streams, streams_active, streams_active_max;
    uint64_t complete, aborted, faults, refused;
    uint64_t abort_us_last, abort_us_max; /* from last write to detection */
    uint64_t events;
    uint64_t bytes_read, bytes_sent;
    uint64_t writes;      /* successful write calls of answers */
    uint64_t late_us_max; /* of a paced event */
    uint64_t tls_full, tls_resumed, tls_failed;
    char tls_sni[256];
} sim_stats_t;

typedef struct sim_conn_t sim_conn_t;

typedef struct sim_t {
    int ep;
    int listener;
    int signals;       /* signalfd */
    int alarm;         /* timerfd, armed for the first timer */
    int ledger;        /* -1: none */
    SSL_CTX *tls;      /* NULL: plain */
    const char *key;   /* the one accepted, or NULL */
    const char *files; /* folder to play from, or NULL */
    sim_params_t par;  /* defaults of all requests */
    sim_timers_t timers;
    uint64_t now;      /* when this turn of the loop began */
    sim_conn_t *conns; /* all of them */
    uint64_t serial;   /* answers begun */
    uint64_t last_no;  /* number of the newest connection */
    sim_stats_t stats;
} sim_t;

typedef enum sim_state_t {
    SIM_STATE_TLS = 0, /* handshake */
    SIM_STATE_READ,    /* idle, or a request is coming in */
    SIM_STATE_ANSWER,
    SIM_STATE_LINGER /* FIN was sent; waits for the peer's */
} sim_state_t;

struct sim_conn_t {
    sim_timer_t timer; /* first member: the heap's timer is the connection */
    sim_t *sim;
    int fd;
    SSL *ssl; /* NULL: plain */
    sim_state_t state;
    uint32_t mask;        /* events asked of epoll */
    uint64_t no;          /* number of the connection, from 1 */
    uint64_t nth;         /* number of the request on it, from 1 */
    int blocked;          /* the last write would have blocked */
    uint64_t pause_until; /* next write of a split answer */
    int head_done;        /* the request's head was read */
    int reuse_trap;       /* the next request's bytes close the connection */
    uint64_t idle_fault;  /* what the timer does while idle: sim_fault_t */
    sim_buf_t in, out;
    sim_request_t req;
    sim_params_t par;
    sim_answer_t ans;
    uint64_t began;      /* request complete, or being read */
    uint64_t last_write; /* last successful write of this answer */
    uint64_t bytes_sent; /* of this answer */
    uint64_t events_sent;
    sim_conn_t *prev, *next;
};

#endif
