/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URL of an upstream, read strictly: what is not plainly a scheme, a
 * host, a port and a path is refused, so that no two readers can see two
 * different hosts in it.  No httpd header comes in here.
 */
#ifndef AIGW_URL_H
#define AIGW_URL_H

#include <apr_network_io.h>
#include <apr_pools.h>

typedef struct {
    int tls;                /* https */
    const char *host;       /* lower case, no brackets */
    apr_port_t port;
    const char *host_field; /* for Host: brackets and port where needed */
    const char *path;       /* "" or "/v1": no trailing slash */
} aigw_url_t;

/**
 * @param out filled in from @a pool
 * @return NULL, or a static phrase that says what is wrong and what is
 *         allowed
 */
const char *aigw_url_parse(const char *text, aigw_url_t *out,
                           apr_pool_t *pool);

/** The URL as a message may show it: user info and everything from '?' or
 * '#' on are left out, since people put keys there. */
const char *aigw_url_shown(apr_pool_t *pool, const char *text);

#endif
