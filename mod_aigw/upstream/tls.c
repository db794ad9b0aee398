/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One SSL_CTX an upstream, one SSL a connection.  Everything that OpenSSL
 * says is turned into aigw_rc_t in one place (settle), and once a connection
 * is broken it stays so: OpenSSL is not asked again.  It refuses to know
 * about sockets beyond their number, about timers and about HTTP.
 *
 * OpenSSL's error queue belongs to the thread and is shared with mod_ssl: it
 * is empty before each call and left empty after it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <apr_strings.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include "tls_int.h"

static const unsigned char alpn_http1[] = "\x08http/1.1";
#define ALPN_HTTP1_LEN (sizeof(alpn_http1) - 1)

struct aigw_tls_t {
    aigw_tls_ctx_t *ctx; /* the upstream's; borrowed */
    SSL *ssl;
    apr_time_t verified; /* of the session that was offered */
    aigw_rc_t end;       /* AIGW_OK, or how it broke: stays */
    unsigned up : 1;     /* the handshake has ended well */
    unsigned dry : 1;    /* what left the socket is no whole record */
    unsigned writing : 1;
    char why[96];
};

/* ---- the upstream ------------------------------------------------------ */

static void session_put(aigw_tls_ctx_t *ctx, SSL_SESSION *s,
                        apr_time_t verified)
{
    SSL_SESSION *old;

    apr_thread_mutex_lock(ctx->lock);
    old = ctx->session;
    ctx->session = s;
    ctx->verified = verified;
    apr_thread_mutex_unlock(ctx->lock);
    SSL_SESSION_free(old);
}

/* OpenSSL marks a connection's session as not resumable when the connection
 * breaks. The slot holds a copy, for a peer that leaves out close_notify
 * would cost a full handshake each time. */
static int session_new(SSL *ssl, SSL_SESSION *s)
{
    aigw_tls_t *t = SSL_get_app_data(ssl);
    SSL_SESSION *copy = SSL_SESSION_dup(s);

    if (copy != NULL)
        session_put(t->ctx, copy,
                    SSL_session_reused(ssl) ? t->verified : apr_time_now());
    return 0; /* no reference to s was kept */
}

static void session_offer(aigw_tls_t *t)
{
    aigw_tls_ctx_t *ctx = t->ctx;
    SSL_SESSION *copy = NULL;

    apr_thread_mutex_lock(ctx->lock);
    if (ctx->session != NULL
        && apr_time_now() - ctx->verified < AIGW_TLS_VERIFY_AGAIN) {
        copy = SSL_SESSION_dup(ctx->session);
        t->verified = ctx->verified;
    }
    apr_thread_mutex_unlock(ctx->lock);
    if (copy != NULL) {
        SSL_set_session(t->ssl, copy); /* takes a reference of its own */
        SSL_SESSION_free(copy);
    }
}

static apr_status_t ctx_free(void *data)
{
    aigw_tls_ctx_t *ctx = data;

    SSL_SESSION_free(ctx->session);
    SSL_CTX_free(ctx->ssl);
    ctx->session = NULL;
    ctx->ssl = NULL;
    return APR_SUCCESS;
}

/* OpenSSL's words for an error, which are static. */
static const char *words(unsigned long e, const char *otherwise)
{
    const char *text = e != 0 ? ERR_reason_error_string(e) : NULL;

    return text != NULL ? text : otherwise;
}

/* Of a file the oldest error is the cause. */
static const char *file_reason(char *buf, apr_size_t size)
{
    unsigned long e = ERR_peek_error();

    if (ERR_GET_LIB(e) == ERR_LIB_SYS)
        return apr_strerror(APR_FROM_OS_ERROR(ERR_GET_REASON(e)), buf, size);
    return words(e, "it holds no certificate in PEM form");
}

static void set_options(SSL_CTX *ssl)
{
    SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE
                              | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
                              | SSL_MODE_RELEASE_BUFFERS);
    /* One read() a record instead of two. */
    SSL_CTX_set_read_ahead(ssl, 1);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_CLIENT
                                            | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ssl, session_new);
}

/* Every SSL inherits the name from here. @return 0: no memory */
static int set_name(aigw_tls_ctx_t *ctx, apr_pool_t *pool, const char *host)
{
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ctx->ssl);
    apr_size_t n = strlen(host);

    if (X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
        return 1;
    ERR_clear_error();
    /* In DNS the last dot says "no search list"; certificates and SNI are
     * without it. */
    if (n > 1 && host[n - 1] == '.')
        n--;
    ctx->sni = apr_pstrmemdup(pool, host, n);
    X509_VERIFY_PARAM_set_hostflags(param,
                                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(param, ctx->sni, 0) == 1;
}

static const char *set_trust(SSL_CTX *ssl, apr_pool_t *pool, const char *ca)
{
    char text[80];

    if (ca == NULL) {
        if (SSL_CTX_set_default_verify_paths(ssl) != 1)
            return "the system's default CA locations cannot be read";
    }
    else if (SSL_CTX_load_verify_locations(ssl, ca, NULL) != 1) {
        return apr_psprintf(pool, "the CA file \"%s\" cannot be used: %s", ca,
                            file_reason(text, sizeof(text)));
    }
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    return NULL;
}

static const char *ctx_setup(aigw_tls_ctx_t *ctx, apr_pool_t *pool,
                             const char *host, const char *ca, int verify)
{
    if (apr_thread_mutex_create(&ctx->lock, APR_THREAD_MUTEX_DEFAULT, pool)
        != APR_SUCCESS)
        return "a mutex cannot be made";
    ctx->ssl = SSL_CTX_new(TLS_client_method());
    if (ctx->ssl == NULL)
        return apr_psprintf(pool, "OpenSSL gives no context: %s",
                            words(ERR_peek_error(), "no memory"));
    apr_pool_cleanup_register(pool, ctx, ctx_free, apr_pool_cleanup_null);
    set_options(ctx->ssl);
    if (SSL_CTX_set_alpn_protos(ctx->ssl, alpn_http1, ALPN_HTTP1_LEN) != 0
        || !set_name(ctx, pool, host))
        return apr_psprintf(pool, "the name \"%s\" cannot be verified", host);
    return verify ? set_trust(ctx->ssl, pool, ca) : NULL;
}

aigw_tls_ctx_t *aigw_tls_ctx_create(apr_pool_t *pool, const char *host,
                                    const char *ca, int verify,
                                    const char **err)
{
    aigw_tls_ctx_t *ctx = apr_pcalloc(pool, sizeof(*ctx));

    ERR_clear_error();
    *err = ctx_setup(ctx, pool, host, ca, verify);
    ERR_clear_error();
    return *err == NULL ? ctx : NULL;
}

/* ---- a connection ------------------------------------------------------ */

static int ssl_setup(aigw_tls_t *t, int fd)
{
    t->ssl = SSL_new(t->ctx->ssl);
    if (t->ssl == NULL)
        return 0;
    SSL_set_app_data(t->ssl, t);
    SSL_set_connect_state(t->ssl);
    if (SSL_set_fd(t->ssl, fd) != 1)
        return 0;
    return t->ctx->sni == NULL
           || SSL_set_tlsext_host_name(t->ssl, t->ctx->sni) == 1;
}

aigw_tls_t *aigw_tls_open(aigw_tls_ctx_t *ctx, int fd)
{
    aigw_tls_t *t = calloc(1, sizeof(*t));

    if (t == NULL)
        return NULL;
    t->ctx = ctx;
    ERR_clear_error();
    if (!ssl_setup(t, fd)) {
        ERR_clear_error();
        aigw_tls_close(t);
        return NULL;
    }
    session_offer(t);
    return t;
}

static void say(aigw_tls_t *t, const char *what, const char *more)
{
    apr_snprintf(t->why, sizeof(t->why), "%s%s%s", what,
                 more != NULL ? ": " : "", more != NULL ? more : "");
}

static aigw_rc_t broken(aigw_tls_t *t, aigw_rc_t rc, const char *what,
                        const char *more)
{
    say(t, what, more);
    t->end = rc;
    return rc;
}

/* A peer that speaks no TLS is the usual mistake in a URL, and OpenSSL's
 * words for it help nobody. */
static int is_not_tls(unsigned long e)
{
    switch (ERR_GET_REASON(e)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
        return 1;
    default:
        return 0;
    }
}

static int is_eof(unsigned long e)
{
#ifdef SSL_R_UNEXPECTED_EOF_WHILE_READING
    return ERR_GET_REASON(e) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
#else
    return (void)e, 0; /* OpenSSL 1.1.1 tells it as SSL_ERROR_SYSCALL */
#endif
}

static aigw_rc_t at_eof(aigw_tls_t *t)
{
    if (t->up)
        return broken(t, AIGW_TRUNCATED,
                      "the server closed without close_notify", NULL);
    return broken(t, AIGW_FAILED, "the server closed during the TLS handshake",
                  NULL);
}

/* Of a connection the newest error is libssl's; older ones are of the
 * libraries below it and say less. */
static aigw_rc_t at_protocol_error(aigw_tls_t *t)
{
    unsigned long e = ERR_peek_last_error();
    long v = SSL_get_verify_result(t->ssl);

    if (is_eof(e))
        return at_eof(t);
    if (!t->up && ERR_GET_REASON(e) == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return broken(t, AIGW_FAILED, "certificate verify failed",
                      X509_verify_cert_error_string(v));
    if (!t->up && is_not_tls(e))
        return broken(t, AIGW_FAILED, "the server does not answer in TLS",
                      words(e, NULL));
    return broken(t, AIGW_FAILED, t->up ? "TLS" : "TLS handshake",
                  words(e, "protocol error"));
}

/* A server that answers before it has read the whole request, and closes,
 * breaks the write; its answer can still be read. */
static aigw_rc_t at_system_error(aigw_tls_t *t, int err)
{
    char text[64];

    if (err == 0)
        return at_eof(t);
    say(t, t->up ? "TLS" : "TLS handshake",
        apr_strerror(APR_FROM_OS_ERROR(err), text, sizeof(text)));
    if (!t->writing)
        t->end = AIGW_FAILED;
    return AIGW_FAILED;
}

/* What a call that did not succeed means: err is errno as it left it, and
 * was 0 before. */
static aigw_rc_t settle(aigw_tls_t *t, int ret, int err, int *want)
{
    switch (SSL_get_error(t->ssl, ret)) {
    case SSL_ERROR_WANT_READ:
        *want = AIGW_WANT_READ;
        return AIGW_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        *want = AIGW_WANT_WRITE;
        return AIGW_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return AIGW_DONE;
    case SSL_ERROR_SYSCALL:
        return at_system_error(t, err);
    default:
        return at_protocol_error(t);
    }
}

static aigw_rc_t fail(aigw_tls_t *t, int ret, int *want)
{
    aigw_rc_t rc = settle(t, ret, errno, want);

    ERR_clear_error();
    return rc;
}

static void prepare(void)
{
    ERR_clear_error();
    errno = 0;
}

/* Older OpenSSL lets a server choose a protocol that was not offered. */
static aigw_rc_t check_alpn(aigw_tls_t *t)
{
    const unsigned char *name;
    unsigned n;

    SSL_get0_alpn_selected(t->ssl, &name, &n);
    if (n != 0
        && (n != ALPN_HTTP1_LEN - 1 || memcmp(name, alpn_http1 + 1, n) != 0))
        return broken(t, AIGW_FAILED,
                      "the server chose another protocol than http/1.1", NULL);
    return AIGW_OK;
}

aigw_rc_t aigw_tls_handshake(aigw_tls_t *t, int *want)
{
    aigw_rc_t rc;
    int ret;

    if (t->up || t->end != AIGW_OK)
        return t->end;
    prepare();
    ret = SSL_do_handshake(t->ssl);
    if (ret == 1) {
        rc = check_alpn(t);
        t->up = rc == AIGW_OK;
        return rc;
    }
    rc = fail(t, ret, want);
    if (rc == AIGW_DONE)
        rc = at_eof(t);
    /* Should the server have choked on the session, the next one is full. */
    if (rc == AIGW_FAILED)
        session_put(t->ctx, NULL, 0);
    return rc;
}

/* @return 1: not usable now, *rc says why */
static int unusable(aigw_tls_t *t, aigw_rc_t *rc)
{
    if (t->end == AIGW_OK && !t->up)
        broken(t, AIGW_FAILED, "used before the TLS handshake ended", NULL);
    *rc = t->end;
    return t->end != AIGW_OK;
}

/* A ticket or a key update makes OpenSSL take a write buffer of 16 KB, which
 * SSL_MODE_RELEASE_BUFFERS gives back only after the next write: for a stream
 * that is its whole life. Amid a record ("RB") it must not be asked: before
 * 3.0.14 it would free the read buffer in use. */
static void slim(aigw_tls_t *t)
{
    if (strcmp(SSL_rstate_string(t->ssl), "RH") == 0)
        SSL_free_buffers(t->ssl);
}

aigw_rc_t aigw_tls_read(aigw_tls_t *t, char *buf, apr_size_t size,
                        apr_size_t *n, int *want)
{
    aigw_rc_t rc;

    *n = 0;
    if (unusable(t, &rc))
        return rc;
    prepare();
    if (SSL_read_ex(t->ssl, buf, size, n) == 1) {
        t->dry = 0;
        return AIGW_OK;
    }
    *n = 0;
    t->dry = 1;
    rc = fail(t, 0, want);
    if (rc == AIGW_AGAIN)
        slim(t);
    return rc;
}

aigw_rc_t aigw_tls_write(aigw_tls_t *t, const char *buf, apr_size_t size,
                         apr_size_t *n, int *want)
{
    aigw_rc_t rc;

    *n = 0;
    if (unusable(t, &rc))
        return rc;
    prepare();
    if (SSL_write_ex(t->ssl, buf, size, n) == 1)
        return AIGW_OK;
    *n = 0;
    t->writing = 1;
    rc = fail(t, 0, want);
    t->writing = 0;
    return rc == AIGW_AGAIN ? rc : AIGW_FAILED;
}

int aigw_tls_pending(aigw_tls_t *t)
{
    return t->up && t->end == AIGW_OK && !t->dry && SSL_has_pending(t->ssl);
}

int aigw_tls_stale(aigw_tls_t *t)
{
    aigw_rc_t rc;
    char byte;
    int ret, want = 0;

    if (unusable(t, &rc))
        return 1;
    prepare();
    ret = SSL_peek(t->ssl, &byte, 1);
    if (ret > 0)
        return 1;
    rc = fail(t, ret, &want);
    if (rc != AIGW_AGAIN || want != AIGW_WANT_READ)
        return 1;
    slim(t);
    return 0;
}

const char *aigw_tls_why(const aigw_tls_t *t)
{
    return t->why;
}

void aigw_tls_close(aigw_tls_t *t)
{
    if (t == NULL)
        return;
    if (t->ssl != NULL) {
        ERR_clear_error();
        /* After a fatal error OpenSSL forbids it. */
        if (t->up && t->end == AIGW_OK)
            SSL_shutdown(t->ssl);
        SSL_free(t->ssl);
        ERR_clear_error();
    }
    free(t);
}
