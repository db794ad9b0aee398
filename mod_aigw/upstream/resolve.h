/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names to addresses, never on the relay thread: a per-child cache that the
 * workers ask, filled by blocking getaddrinfo only when it is cold and
 * refreshed by one background thread before it grows old.  What was known is
 * served on when a refresh fails.
 */
#ifndef AIGW_RESOLVE_H
#define AIGW_RESOLVE_H

#include <sys/socket.h>
#include <apr_network_io.h>
#include <apr_pools.h>
#include "../core/slice.h"

#define AIGW_ADDRS 8

typedef struct {
    struct sockaddr_storage sa;
    socklen_t len;
} aigw_addr_t;

typedef struct {
    int n;
    aigw_addr_t addr[AIGW_ADDRS];
} aigw_addrs_t;

typedef struct aigw_resolver_t aigw_resolver_t;

/**
 * Make the cache with its refresh thread (child_init; the thread starts in
 * the child, and ends in a cleanup of @a pchild before the pool goes).
 * getaddrinfo cannot be interrupted: the cleanup waits for it 1 s, and then
 * leaves the thread and the cache behind (the child is about to exit).
 * @param ttl how long an answer is fresh (getaddrinfo tells no TTL): 60 s
 */
apr_status_t aigw_resolver_create(aigw_resolver_t **rs,
                                  apr_interval_time_t ttl, apr_pool_t *pchild);

/** Register a name (child_init, before any get); the refresh thread asks for
 * it at once. @return its slot, the same for the same name and port; -1: no
 * memory */
int aigw_resolver_add(aigw_resolver_t *rs, const char *host, apr_port_t port);

/**
 * The addresses of a slot, copied out, rotated by one from call to call
 * within each family: which family comes first is the system's choice
 * (RFC 6724). Both families are in, without regard to what this host can
 * reach: connect() says so at once, try the next.
 * Worker threads only: blocks on a cold miss (one thread asks, others wait
 * for the same answer). A literal address never blocks. What was known but
 * fell out of use waits for the refresh thread, half a second at most, and
 * is then served as it is.
 * @return AIGW_OK (out->n >= 1) or AIGW_FAILED (*why: getaddrinfo's words,
 *         static); a failure is remembered for 5 s
 */
aigw_rc_t aigw_resolver_get(aigw_resolver_t *rs, int slot, aigw_addrs_t *out,
                            const char **why);

/**
 * What is known of a slot already, old or new. Any thread: it never waits
 * for an answer, and asks the background thread for one.
 * @return AIGW_OK (out->n >= 1) or AIGW_AGAIN: nothing is known yet
 */
aigw_rc_t aigw_resolver_peek(aigw_resolver_t *rs, int slot,
                             aigw_addrs_t *out);

#endif
