/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS towards upstreams, non-blocking, on OpenSSL.  Name and chain are
 * verified (unless verify=off), SNI is sent (not for IP addresses), ALPN
 * says http/1.1, sessions are reused per upstream.  No byte of the upstream
 * counts before the handshake has ended.  It touches no global state of
 * OpenSSL, which the process shares with mod_ssl, and never blocks.
 *
 * OpenSSL writes to the socket with write(), so that the process has to
 * ignore SIGPIPE.  httpd does (os/unix/unixd.c), and modules must not change
 * that (ap_mpm.h).
 */
#ifndef AIGW_TLS_H
#define AIGW_TLS_H

#include <apr_pools.h>
#include "../core/slice.h"

typedef struct aigw_tls_ctx_t aigw_tls_ctx_t; /* one an upstream; threads may
                                                 share it */
typedef struct aigw_tls_t aigw_tls_t;         /* one a connection; malloc; one
                                                 thread at a time */

/** What the transport waits for. */
#define AIGW_WANT_READ 1
#define AIGW_WANT_WRITE 2

/**
 * @param host   name or IP address to verify and to send as SNI
 * @param ca     PEM file, NULL for the system's default locations
 * @param verify 0: accept any certificate
 * @param err    on failure one sentence (from @a pool) that names the file
 * @return NULL on failure; freed with @a pool, after its last connection
 */
aigw_tls_ctx_t *aigw_tls_ctx_create(apr_pool_t *pool, const char *host,
                                    const char *ca, int verify,
                                    const char **err);

/** A connection over a connected non-blocking socket, which stays the
 * caller's. NULL: no memory. Offers the last session of the upstream. */
aigw_tls_t *aigw_tls_open(aigw_tls_ctx_t *ctx, int fd);

/**
 * Never waits, but computes: about 1 ms of CPU on the relay thread for a full
 * handshake, half of it for a resumed one. Whoever opens many connections
 * in one turn of the loop holds up the streams for that long.
 * @return AIGW_OK; AIGW_AGAIN (*want says for what); AIGW_FAILED (see
 * aigw_tls_why) */
aigw_rc_t aigw_tls_handshake(aigw_tls_t *t, int *want);

/** @return AIGW_OK (*n > 0); AIGW_AGAIN; AIGW_DONE (close_notify came);
 * AIGW_TRUNCATED (EOF without it); AIGW_FAILED. Not before the handshake is
 * AIGW_OK (AIGW_FAILED). Read until AIGW_AGAIN, or ask aigw_tls_pending. */
aigw_rc_t aigw_tls_read(aigw_tls_t *t, char *buf, apr_size_t size,
                        apr_size_t *n, int *want);

/** @return AIGW_OK (*n > 0 bytes taken); AIGW_AGAIN; AIGW_FAILED. A retry
 * may come with another buffer holding the same bytes (and more, but not
 * fewer). Not before the handshake is AIGW_OK (AIGW_FAILED). */
aigw_rc_t aigw_tls_write(aigw_tls_t *t, const char *buf, apr_size_t size,
                         apr_size_t *n, int *want);

/** 1 if the next read may return something that epoll does not see, as it
 * left the socket already. 0 after a read that said AIGW_AGAIN. */
int aigw_tls_pending(aigw_tls_t *t);

/** 1 if an idle connection is unusable: peer closed, or sent a byte of
 * application data nobody asked for. Session tickets are read over. */
int aigw_tls_stale(aigw_tls_t *t);

/** Why it failed, for the log: static or inside @a t. Holds no secret. */
const char *aigw_tls_why(const aigw_tls_t *t);

/** Send close_notify if that does not block, and free. NULL is fine. */
void aigw_tls_close(aigw_tls_t *t);

#endif
