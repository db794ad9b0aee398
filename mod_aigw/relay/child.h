/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one child process holds while it runs: the relay thread, the
 * resolver, the list of live exchanges, and the counters that bound them.
 * Made in child_init, gone with pchild.
 */
#ifndef AIGW_CHILD_H
#define AIGW_CHILD_H

#include <apr_thread_mutex.h>
#include "../aigw.h"
#include "../core/health.h"

typedef struct {
    server_rec *s;
    void (*settle)(aigw_exchange_t *x); /* for what is left at a stop */
    apr_pool_t *pool;              /* pchild */
    struct aigw_relay_t *relay;    /* NULL: every exchange is driven by its
                                      worker (worker and prefork MPM) */
    aigw_resolver_t *resolver;
    int stop_fd;                   /* eventfd: readable once httpd stops */
    apr_uint32_t stopping;         /* atomic: no new streams */
    int max_streams;
    apr_uint32_t streams;          /* atomic: exchanges past admission */
    apr_uint64_t memory_limit;     /* AIGWMemoryLimit; 0: none */
    int max_uploads;
    apr_uint32_t uploads;          /* atomic: bodies being read */
    aigw_retries_t retries;
    apr_uint32_t sync_forced;      /* atomic: exchanges that a foreign filter
                                      kept on a worker */
    apr_thread_mutex_t *mutex;     /* of the list */
    aigw_exchange_t *live;
    apr_uint64_t id_seed;
    apr_uint32_t id_count;         /* atomic */
} aigw_child_t;

/** child_init hook: make the above. Logs what fails; the child then refuses
 * every request with a 500.
 * @param settle aigw_settle() */
void aigw_child_init(apr_pool_t *pchild, server_rec *s,
                     void (*settle)(aigw_exchange_t *x));

/** child_stopping hook. */
void aigw_child_stopping(apr_pool_t *pchild, int graceful);

/** NULL before child_init. */
aigw_child_t *aigw_child(void);

/** 1 if exchanges hold more than AIGWMemoryLimit: each counts with
 * AIGW_EXCHANGE_COST, and with its buffers. Any thread. */
int aigw_child_memory_full(void);

/* What a stream holds of httpd's pools and its own state, and one upstream
 * read that its client has not taken. */
#define AIGW_EXCHANGE_COST (32 * 1024)

/** Fill x->id: unique in this host's history for all practical purposes. */
void aigw_child_new_id(char *id);

/** Enter and leave the list of live exchanges. */
void aigw_child_enlist(aigw_exchange_t *x);
void aigw_child_delist(aigw_exchange_t *x);

#endif
