/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an upstream's TLS settings and its one session slot look like inside:
 * for tls.c and its unit test, for nobody else.
 */
#ifndef AIGW_TLS_INT_H
#define AIGW_TLS_INT_H

#include <apr_thread_mutex.h>
#include <apr_time.h>
#include <openssl/ssl.h>
#include "tls.h"

/* A resumed connection does not show its certificate again, so that one
 * withdrawn or expired would be trusted from ticket to ticket without end:
 * a chain of resumptions starts anew after this time. */
#define AIGW_TLS_VERIFY_AGAIN apr_time_from_sec(3600)

struct aigw_tls_ctx_t {
    SSL_CTX *ssl;
    const char *sni;          /* the pool of create; NULL for an IP address */
    apr_thread_mutex_t *lock; /* held for the two fields below */
    SSL_SESSION *session;     /* the newest; ours alone: copied in and out */
    apr_time_t verified;      /* when its chain was last seen */
};

#endif
