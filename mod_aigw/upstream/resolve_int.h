/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cache looks like inside: for resolve.c and its unit test, for
 * nobody else.  The test puts its own functions in the place of getaddrinfo
 * and shortens the times, before the first name is added.
 */
#ifndef AIGW_RESOLVE_INT_H
#define AIGW_RESOLVE_INT_H

#include <netdb.h>
#include <pthread.h>
#include <apr_time.h>
#include "resolve.h"

typedef struct {
    char *host;
    apr_port_t port;
    int literal;        /* known holds it for ever */
    int used;           /* asked for since the last refresh began */
    int asking;         /* somebody is in getaddrinfo for it */
    unsigned turn;      /* of the rotation */
    apr_time_t asked;   /* when known was learnt */
    apr_time_t retry;   /* a failure is remembered until then */
    const char *why;    /* of the last failure; static */
    aigw_addrs_t known; /* n == 0: cold */
} aigw_resolver_slot_t;

/* malloc, not pool: it outlives its pool when getaddrinfo hangs. All fields
 * below lock are read and written under it; times are monotonic. */
struct aigw_resolver_t {
    int (*ask)(const char *host, const char *service,
               const struct addrinfo *hints, struct addrinfo **list);
    void (*release)(struct addrinfo *list);
    apr_interval_time_t ttl;
    apr_interval_time_t failure_ttl;
    apr_interval_time_t patience; /* of a worker that has an old answer */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an answer came, a name is wanted, the end */
    int stop;
    int busy; /* threads that are in here */
    int n;
    aigw_resolver_slot_t **slot;
};

#endif
