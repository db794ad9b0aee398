/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Non-blocking reads and writes, and the TLS set-up.  A TLS write may be
 * partial and may move in memory between tries.
 */
#include "io.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static char chunk[65536]; /* scratch of one read */

static sim_io_t ssl_result(sim_conn_t *c, int rc, uint32_t *mask)
{
    switch (SSL_get_error(c->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        *mask = EPOLLIN;
        return SIM_IO_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        *mask = EPOLLOUT;
        return SIM_IO_AGAIN;
    default:
        ERR_clear_error();
        return SIM_IO_GONE;
    }
}

static sim_io_t ssl_read(sim_conn_t *c, size_t *n)
{
    uint32_t mask;
    int rc;

    ERR_clear_error();
    rc = SSL_read_ex(c->ssl, chunk, sizeof(chunk), n);
    return rc > 0 ? SIM_IO_OK : ssl_result(c, rc, &mask);
}

static sim_io_t sys_result(ssize_t rc)
{
    if (rc > 0) {
        return SIM_IO_OK;
    }
    return rc < 0 && (errno == EAGAIN || errno == EINTR) ? SIM_IO_AGAIN
                                                         : SIM_IO_GONE;
}

sim_io_t sim_io_read(sim_conn_t *c)
{
    sim_io_t rc;
    size_t n = 0;

    if (c->ssl) {
        rc = ssl_read(c, &n);
    }
    else {
        ssize_t got = recv(c->fd, chunk, sizeof(chunk), 0);

        rc = sys_result(got);
        n = got > 0 ? (size_t)got : 0;
    }
    if (rc == SIM_IO_OK) {
        sim_buf_add(&c->in, chunk, n);
        c->sim->stats.bytes_read += n;
    }
    return rc;
}

sim_io_t sim_io_write(sim_conn_t *c, size_t n, size_t *done)
{
    uint32_t mask;
    ssize_t put;
    int rc;

    *done = 0;
    if (c->ssl) {
        ERR_clear_error();
        rc = SSL_write_ex(c->ssl, SIM_BUF_AT(&c->out), n, done);
        return rc > 0 ? SIM_IO_OK : ssl_result(c, rc, &mask);
    }
    put = send(c->fd, SIM_BUF_AT(&c->out), n, MSG_NOSIGNAL);
    *done = put > 0 ? (size_t)put : 0;
    return sys_result(put);
}

static void count_handshake(sim_conn_t *c)
{
    sim_stats_t *st = &c->sim->stats;
    const char *name = SSL_get_servername(c->ssl, TLSEXT_NAMETYPE_host_name);

    if (SSL_session_reused(c->ssl)) {
        st->tls_resumed++;
    }
    else {
        st->tls_full++;
    }
    snprintf(st->tls_sni, sizeof(st->tls_sni), "%s", name ? name : "");
}

sim_io_t sim_io_handshake(sim_conn_t *c, uint32_t *mask)
{
    sim_io_t rc;
    int ok;

    ERR_clear_error();
    ok = SSL_accept(c->ssl);
    if (ok == 1) {
        count_handshake(c);
        return SIM_IO_OK;
    }
    rc = ssl_result(c, ok, mask);
    if (rc == SIM_IO_GONE) {
        c->sim->stats.tls_failed++;
    }
    return rc;
}

void sim_io_finish(sim_conn_t *c, int clean)
{
    if (c->ssl && clean) {
        ERR_clear_error();
        SSL_shutdown(c->ssl);
    }
    shutdown(c->fd, SHUT_WR);
}

static int alpn(SSL *ssl, const unsigned char **out, unsigned char *outlen,
                const unsigned char *in, unsigned int inlen, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *picked;

    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&picked, outlen, ours, 9, in, inlen)
        != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = picked;
    return SSL_TLSEXT_ERR_OK;
}

int sim_io_tls(sim_t *sim, const char *cert, const char *key)
{
    static const unsigned char context[] = "aigw-sim";
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    const char *what = NULL;

    if (!ctx || SSL_CTX_use_certificate_chain_file(ctx, cert) != 1) {
        what = cert;
    }
    else if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1
             || SSL_CTX_check_private_key(ctx) != 1) {
        what = key;
    }
    if (what) {
        fprintf(stderr, "aigw-sim: --tls: cannot use %s: %s\n", what,
                ERR_reason_error_string(ERR_peek_last_error()));
        SSL_CTX_free(ctx);
        return -1;
    }
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE
                              | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                              | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_id_context(ctx, context, sizeof(context) - 1);
    SSL_CTX_set_alpn_select_cb(ctx, alpn, NULL);
    sim->tls = ctx;
    return 0;
}
