/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS towards upstreams against a real OpenSSL server on loopback: who is
 * accepted, what is resumed, what each end of a connection is called, and
 * that nothing ever blocks.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <cmocka.h>
#include <apr_general.h>
#include <apr_strings.h>
#include <openssl/err.h>
#include "tls_peer.h"
#include "upstream/tls_int.h"

#define PATIENCE_MS 10000

typedef struct {
    int fd;
    aigw_tls_t *t;
} client_t;

static apr_pool_t *pool;
static const char *ca_file;

/* ---- driving a connection ---------------------------------------------- */

static void wait_for(int fd, int want)
{
    struct pollfd p;

    p.fd = fd;
    p.events = want == AIGW_WANT_WRITE ? POLLOUT : POLLIN;
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static aigw_tls_ctx_t *context(const char *host, const char *ca, int verify)
{
    const char *err = "not set";
    aigw_tls_ctx_t *ctx = aigw_tls_ctx_create(pool, host, ca, verify, &err);

    assert_null(err);
    assert_non_null(ctx);
    return ctx;
}

static client_t dial(aigw_tls_ctx_t *ctx, const peer_t *p)
{
    client_t c;

    c.fd = peer_dial(p);
    c.t = aigw_tls_open(ctx, c.fd);
    assert_non_null(c.t);
    return c;
}

static void hang_up(client_t *c)
{
    aigw_tls_close(c->t);
    close(c->fd);
}

static aigw_rc_t shake(client_t *c)
{
    aigw_rc_t rc;
    int want = 0;

    while ((rc = aigw_tls_handshake(c->t, &want)) == AIGW_AGAIN)
        wait_for(c->fd, want);
    return rc;
}

static client_t connected(aigw_tls_ctx_t *ctx, const peer_t *p)
{
    client_t c = dial(ctx, p);

    assert_int_equal(shake(&c), AIGW_OK);
    assert_string_equal(aigw_tls_why(c.t), "");
    return c;
}

static void order(client_t *c, char what)
{
    apr_size_t n = 0;
    int want = 0;

    assert_int_equal(aigw_tls_write(c->t, &what, 1, &n, &want), AIGW_OK);
    assert_int_equal(n, 1);
}

/* One read that is not AIGW_AGAIN, as a string. */
static aigw_rc_t get(client_t *c, char *buf, apr_size_t size)
{
    apr_size_t n = 0;
    aigw_rc_t rc;
    int want = 0;

    while ((rc = aigw_tls_read(c->t, buf, size - 1, &n, &want)) == AIGW_AGAIN)
        wait_for(c->fd, want);
    buf[n] = '\0';
    return rc;
}

static void assert_answer(client_t *c, char what, const char *expected)
{
    char buf[200];

    order(c, what);
    assert_int_equal(get(c, buf, sizeof(buf)), AIGW_OK);
    assert_string_equal(buf, expected);
}

/* Connect, ask the peer what it saw, and part properly. */
static void assert_peer_saw(aigw_tls_ctx_t *ctx, const peer_t *p,
                            const char *expected)
{
    client_t c = connected(ctx, p);
    char buf[10];

    assert_answer(&c, 'i', expected);
    order(&c, 'c');
    assert_int_equal(get(&c, buf, sizeof(buf)), AIGW_DONE);
    hang_up(&c);
}

static peer_t *peer_of(cert_t cert)
{
    peer_setup_t setup = {cert, PEER_TLS, 0, NULL};

    return peer_start(setup);
}

static peer_t *peer_speaking(int version)
{
    peer_setup_t setup = {CERT_GOOD, PEER_TLS, version, NULL};

    return peer_start(setup);
}

/* ---- whom it accepts --------------------------------------------------- */

static void good_chain_and_name_are_accepted(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);

    (void)state;
    assert_peer_saw(context("llm.test", ca_file, 1), p,
                    "reused=0 TLSv1.3 alpn=http/1.1 sni=llm.test");
    peer_stop(p);
}

static void wildcard_is_accepted_for_one_label(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    client_t c;

    (void)state;
    assert_peer_saw(context("a.wild.test", ca_file, 1), p,
                    "reused=0 TLSv1.3 alpn=http/1.1 sni=a.wild.test");
    c = dial(context("a.b.wild.test", ca_file, 1), p);
    assert_int_equal(shake(&c), AIGW_FAILED);
    hang_up(&c);
    peer_stop(p);
}

static void last_dot_of_a_name_is_neither_verified_nor_sent(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);

    (void)state;
    assert_peer_saw(context("llm.test.", ca_file, 1), p,
                    "reused=0 TLSv1.3 alpn=http/1.1 sni=llm.test");
    peer_stop(p);
}

static void ip_address_is_verified_and_not_sent(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);

    (void)state;
    assert_peer_saw(context("127.0.0.1", ca_file, 1), p,
                    "reused=0 TLSv1.3 alpn=http/1.1 sni=none");
    assert_peer_saw(context("::1", ca_file, 1), p,
                    "reused=0 TLSv1.3 alpn=http/1.1 sni=none");
    peer_stop(p);
}

static void assert_refused(cert_t cert, const char *host, const char *why)
{
    peer_t *p = peer_of(cert);
    client_t c = dial(context(host, ca_file, 1), p);
    apr_size_t n = 1;
    int want = 0;

    assert_int_equal(shake(&c), AIGW_FAILED);
    assert_string_equal(aigw_tls_why(c.t), why);
    assert_int_equal(shake(&c), AIGW_FAILED);
    assert_int_equal(aigw_tls_write(c.t, "x", 1, &n, &want), AIGW_FAILED);
    assert_int_equal(n, 0);
    assert_string_equal(aigw_tls_why(c.t), why);
    hang_up(&c);
    peer_stop(p);
}

static void wrong_name_is_refused(void **state)
{
    (void)state;
    assert_refused(CERT_OTHER, "llm.test",
                   "certificate verify failed: hostname mismatch");
}

static void wrong_ip_address_is_refused(void **state)
{
    (void)state;
    assert_refused(CERT_GOOD, "127.0.0.2",
                   "certificate verify failed: IP address mismatch");
}

static void expired_certificate_is_refused(void **state)
{
    (void)state;
    assert_refused(CERT_EXPIRED, "llm.test",
                   "certificate verify failed: certificate has expired");
}

static void certificate_of_tomorrow_is_refused(void **state)
{
    (void)state;
    assert_refused(CERT_FUTURE, "llm.test",
                   "certificate verify failed: certificate is not yet valid");
}

static void self_signed_certificate_is_refused(void **state)
{
    (void)state;
    assert_refused(CERT_SELF, "llm.test",
                   "certificate verify failed: self-signed certificate");
}

static void unknown_ca_is_refused(void **state)
{
    (void)state;
    assert_refused(CERT_STRANGER, "llm.test",
                   "certificate verify failed: "
                   "unable to get local issuer certificate");
}

static void forged_signature_is_refused(void **state)
{
    (void)state;
    assert_refused(CERT_FORGED, "llm.test",
                   "certificate verify failed: "
                   "certificate signature failure");
}

static void client_certificate_is_no_server(void **state)
{
    (void)state;
    assert_refused(CERT_CLIENT, "llm.test",
                   "certificate verify failed: "
                   "unsuitable certificate purpose");
}

static void verify_off_accepts_any_certificate(void **state)
{
    peer_t *p;
    int cert;

    (void)state;
    for (cert = 0; cert < CERT_COUNT; cert++) {
        p = peer_of(cert);
        assert_peer_saw(context("llm.test", NULL, 0), p,
                        "reused=0 TLSv1.3 alpn=http/1.1 sni=llm.test");
        peer_stop(p);
    }
}

static void without_ca_the_system_s_locations_count(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    client_t c = dial(context("llm.test", NULL, 1), p);

    (void)state;
    assert_int_equal(shake(&c), AIGW_FAILED);
    hang_up(&c);
    setenv("SSL_CERT_FILE", ca_file, 1);
    assert_peer_saw(context("llm.test", NULL, 1), p,
                    "reused=0 TLSv1.3 alpn=http/1.1 sni=llm.test");
    unsetenv("SSL_CERT_FILE");
    peer_stop(p);
}

static void unusable_ca_file_is_named(void **state)
{
    const char *err = NULL;
    const char *empty = "/dev/null";

    (void)state;
    assert_null(
        aigw_tls_ctx_create(pool, "llm.test", "/nowhere/ca.pem", 1, &err));
    assert_string_equal(err, "the CA file \"/nowhere/ca.pem\" cannot be used:"
                             " No such file or directory");
    assert_null(aigw_tls_ctx_create(pool, "llm.test", empty, 1, &err));
    assert_non_null(strstr(err, "the CA file \"/dev/null\" cannot be used: "
                                "no certificate"));
    assert_int_equal(ERR_peek_error(), 0);
}

static void tls_older_than_1_2_is_refused(void **state)
{
    peer_t *p = peer_speaking(TLS1_1_VERSION);
    client_t c = dial(context("llm.test", ca_file, 1), p);

    (void)state;
    assert_int_equal(shake(&c), AIGW_FAILED);
    assert_non_null(strstr(aigw_tls_why(c.t), "TLS handshake: "));
    assert_non_null(strstr(aigw_tls_why(c.t), "protocol version"));
    hang_up(&c);
    peer_stop(p);
}

static void protocol_that_was_not_offered_is_refused(void **state)
{
    peer_setup_t setup = {CERT_GOOD, PEER_TLS, 0, "h2"};
    peer_t *p = peer_start(setup);
    client_t c = dial(context("llm.test", ca_file, 1), p);

    (void)state;
    assert_int_equal(shake(&c), AIGW_FAILED);
    /* OpenSSL's words, or ours where an older one lets it pass. */
    assert_true(strstr(aigw_tls_why(c.t), "bad extension") != NULL
                || strstr(aigw_tls_why(c.t), "another protocol") != NULL);
    hang_up(&c);
    peer_stop(p);
}

/* ---- sessions ---------------------------------------------------------- */

static void assert_second_is_resumed(int version, const char *first,
                                     const char *second)
{
    peer_t *p = peer_speaking(version);
    aigw_tls_ctx_t *ctx = context("llm.test", ca_file, 1);

    assert_peer_saw(ctx, p, first);
    assert_peer_saw(ctx, p, second);
    assert_peer_saw(ctx, p, second);
    peer_stop(p);
}

static void second_connection_is_resumed_in_tls_1_3(void **state)
{
    (void)state;
    assert_second_is_resumed(TLS1_3_VERSION,
                             "reused=0 TLSv1.3 alpn=http/1.1 sni=llm.test",
                             "reused=1 TLSv1.3 alpn=http/1.1 sni=llm.test");
}

static void second_connection_is_resumed_in_tls_1_2(void **state)
{
    (void)state;
    /* The server has SNI from the session then, where it kept none. */
    assert_second_is_resumed(TLS1_2_VERSION,
                             "reused=0 TLSv1.2 alpn=http/1.1 sni=llm.test",
                             "reused=1 TLSv1.2 alpn=http/1.1 sni=none");
}

/* A break after each connection: 'f' or 'r'. */
static void assert_resumed_after(int version, char how, aigw_rc_t expected)
{
    peer_t *p = peer_speaking(version);
    aigw_tls_ctx_t *ctx = context("llm.test", ca_file, 1);
    char buf[200];
    client_t c;
    int i;

    for (i = 0; i < 3; i++) {
        c = connected(ctx, p);
        order(&c, 'i');
        assert_int_equal(get(&c, buf, sizeof(buf)), AIGW_OK);
        assert_int_equal(buf[strlen("reused=")], i == 0 ? '0' : '1');
        order(&c, how);
        assert_int_equal(get(&c, buf, sizeof(buf)), expected);
        hang_up(&c);
    }
    peer_stop(p);
}

static void broken_connection_leaves_the_session_usable(void **state)
{
    (void)state;
    assert_resumed_after(TLS1_3_VERSION, 'f', AIGW_TRUNCATED);
    assert_resumed_after(TLS1_2_VERSION, 'f', AIGW_TRUNCATED);
    assert_resumed_after(TLS1_3_VERSION, 'r', AIGW_FAILED);
    assert_resumed_after(TLS1_2_VERSION, 'r', AIGW_FAILED);
}

static void session_that_the_server_forgot_leads_to_a_new_one(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    aigw_tls_ctx_t *ctx = context("llm.test", ca_file, 1);

    (void)state;
    assert_peer_saw(ctx, p, "reused=0 TLSv1.3 alpn=http/1.1 sni=llm.test");
    peer_stop(p);
    p = peer_of(CERT_GOOD);
    assert_peer_saw(ctx, p, "reused=0 TLSv1.3 alpn=http/1.1 sni=llm.test");
    assert_peer_saw(ctx, p, "reused=1 TLSv1.3 alpn=http/1.1 sni=llm.test");
    peer_stop(p);
}

static void forgotten_session_does_not_carry_a_bad_certificate(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    aigw_tls_ctx_t *ctx = context("llm.test", ca_file, 1);
    client_t c;

    (void)state;
    assert_peer_saw(ctx, p, "reused=0 TLSv1.3 alpn=http/1.1 sni=llm.test");
    peer_stop(p);
    p = peer_of(CERT_OTHER);
    c = dial(ctx, p);
    assert_int_equal(shake(&c), AIGW_FAILED);
    assert_null(ctx->session);
    hang_up(&c);
    peer_stop(p);
}

static void certificate_is_seen_again_after_an_hour(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    aigw_tls_ctx_t *ctx = context("llm.test", ca_file, 1);

    (void)state;
    assert_peer_saw(ctx, p, "reused=0 TLSv1.3 alpn=http/1.1 sni=llm.test");
    ctx->verified -= apr_time_from_sec(3590);
    assert_peer_saw(ctx, p, "reused=1 TLSv1.3 alpn=http/1.1 sni=llm.test");
    ctx->verified -= apr_time_from_sec(10);
    assert_peer_saw(ctx, p, "reused=0 TLSv1.3 alpn=http/1.1 sni=llm.test");
    assert_peer_saw(ctx, p, "reused=1 TLSv1.3 alpn=http/1.1 sni=llm.test");
    peer_stop(p);
}

typedef struct {
    aigw_tls_ctx_t *ctx;
    const peer_t *p;
    int resumed;
} runner_t;

static void *run(void *data)
{
    runner_t *r = data;
    char buf[200];
    client_t c;
    int i;

    for (i = 0; i < 10; i++) {
        c = connected(r->ctx, r->p);
        order(&c, 'i');
        assert_int_equal(get(&c, buf, sizeof(buf)), AIGW_OK);
        r->resumed += strncmp(buf, "reused=1", 8) == 0;
        hang_up(&c);
    }
    return NULL;
}

static void threads_share_an_upstream(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    aigw_tls_ctx_t *ctx = context("llm.test", ca_file, 1);
    runner_t r[8];
    pthread_t id[8];
    int i, resumed = 0;

    (void)state;
    for (i = 0; i < 8; i++) {
        r[i].ctx = ctx;
        r[i].p = p;
        r[i].resumed = 0;
        assert_int_equal(pthread_create(&id[i], NULL, run, &r[i]), 0);
    }
    for (i = 0; i < 8; i++) {
        pthread_join(id[i], NULL);
        resumed += r[i].resumed;
    }
    assert_in_range(resumed, 80 - 8, 80 - 1);
    peer_stop(p);
}

/* ---- before the handshake has ended ------------------------------------ */

static void assert_handshake_fails(peer_manner_t manner, const char *why)
{
    peer_setup_t setup = {CERT_GOOD, manner, 0, NULL};
    peer_t *p = peer_start(setup);
    client_t c = dial(context("llm.test", ca_file, 0), p);
    apr_size_t n = 7;
    char buf[100];
    int want = 0;

    assert_int_equal(shake(&c), AIGW_FAILED);
    assert_non_null(strstr(aigw_tls_why(c.t), why));
    assert_int_equal(aigw_tls_read(c.t, buf, sizeof(buf), &n, &want),
                     AIGW_FAILED);
    assert_int_equal(n, 0);
    assert_int_equal(aigw_tls_pending(c.t), 0);
    assert_int_equal(aigw_tls_stale(c.t), 1);
    hang_up(&c);
    peer_stop(p);
}

static void plain_server_is_told_as_such(void **state)
{
    (void)state;
    assert_handshake_fails(PEER_PLAIN, "the server does not answer in TLS");
}

static void plain_bytes_before_the_handshake_fail_it(void **state)
{
    (void)state;
    assert_handshake_fails(PEER_EARLY, "the server does not answer in TLS");
}

static void server_that_hangs_up_fails_the_handshake(void **state)
{
    (void)state;
    assert_handshake_fails(PEER_HANGS_UP,
                           "the server closed during the TLS handshake");
}

static void silent_server_is_waited_for_without_blocking(void **state)
{
    peer_setup_t setup = {CERT_GOOD, PEER_SILENT, 0, NULL};
    peer_t *p = peer_start(setup);
    client_t c = dial(context("llm.test", ca_file, 1), p);
    apr_time_t begin = apr_time_now();
    int i, want;

    (void)state;
    for (i = 0; i < 100; i++) {
        want = 0;
        assert_int_equal(aigw_tls_handshake(c.t, &want), AIGW_AGAIN);
        assert_int_equal(want, AIGW_WANT_READ);
    }
    assert_true(apr_time_now() - begin < apr_time_from_sec(1));
    assert_int_equal(aigw_tls_pending(c.t), 0);
    hang_up(&c);
    peer_stop(p);
}

static void data_before_the_handshake_has_ended_is_a_mistake(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    aigw_tls_ctx_t *ctx = context("llm.test", ca_file, 1);
    client_t c = dial(ctx, p);
    apr_size_t n = 1;
    int want = 0;

    (void)state;
    assert_int_equal(aigw_tls_write(c.t, "key", 3, &n, &want), AIGW_FAILED);
    assert_int_equal(n, 0);
    assert_string_equal(aigw_tls_why(c.t),
                        "used before the TLS handshake ended");
    assert_int_equal(aigw_tls_handshake(c.t, &want), AIGW_FAILED);
    hang_up(&c);
    peer_stop(p);
}

/* ---- a man in the middle ----------------------------------------------- */

/* The client's socket is one end of a pair; what comes out of the other end
 * and what the peer sends is moved by hand. */
typedef struct {
    client_t c;
    int near, far; /* the client's other end; the peer's socket */
} middle_t;

static middle_t between(aigw_tls_ctx_t *ctx, const peer_t *p)
{
    middle_t m;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair),
                     0);
    m.c.fd = pair[0];
    m.near = pair[1];
    m.far = peer_dial(p);
    m.c.t = aigw_tls_open(ctx, m.c.fd);
    assert_non_null(m.c.t);
    return m;
}

static void part(middle_t *m)
{
    hang_up(&m->c);
    close(m->near);
    close(m->far);
}

static void move_to_peer(middle_t *m)
{
    char buf[4096];
    ssize_t n;

    while ((n = read(m->near, buf, sizeof(buf))) > 0)
        assert_int_equal(write(m->far, buf, n), n);
}

/* Exactly n bytes, waiting for them. */
static void take_from_peer(middle_t *m, char *buf, int n)
{
    int got = 0;
    ssize_t part_n;

    while (got < n) {
        wait_for(m->far, AIGW_WANT_READ);
        part_n = read(m->far, buf + got, n - got);
        assert_true(part_n > 0);
        got += part_n;
    }
}

static void move_one_byte(middle_t *m)
{
    char byte;

    take_from_peer(m, &byte, 1);
    assert_int_equal(write(m->near, &byte, 1), 1);
}

static void assert_bytewise(int version)
{
    peer_t *p = peer_speaking(version);
    middle_t m = between(context("llm.test", ca_file, 1), p);
    char buf[100];
    apr_size_t n;
    aigw_rc_t rc;
    int want = 0, again = 0;

    while ((rc = aigw_tls_handshake(m.c.t, &want)) == AIGW_AGAIN) {
        assert_int_equal(want, AIGW_WANT_READ);
        assert_int_equal(aigw_tls_pending(m.c.t), 0);
        move_to_peer(&m);
        move_one_byte(&m);
        again++;
    }
    assert_int_equal(rc, AIGW_OK);
    assert_true(again > 500);
    order(&m.c, 'p');
    move_to_peer(&m);
    while ((rc = aigw_tls_read(m.c.t, buf, sizeof(buf), &n, &want))
           == AIGW_AGAIN) {
        assert_int_equal(n, 0);
        assert_int_equal(aigw_tls_pending(m.c.t), 0);
        move_one_byte(&m);
    }
    assert_int_equal(rc, AIGW_OK);
    assert_int_equal(n, 4);
    assert_memory_equal(buf, "pong", 4);
    part(&m);
    peer_stop(p);
}

static void bytewise_delivery_changes_nothing(void **state)
{
    (void)state;
    assert_bytewise(TLS1_3_VERSION);
    assert_bytewise(TLS1_2_VERSION);
}

/* Put bytes behind the peer's first record, which is the ServerHello. */
static void assert_injection_fails(int version, const char *bytes, size_t n)
{
    peer_t *p = peer_speaking(version);
    middle_t m = between(context("llm.test", ca_file, 0), p);
    unsigned char record[5 + 16384];
    aigw_rc_t rc = AIGW_AGAIN;
    char buf[100];
    int len, want = 0;

    assert_int_equal(aigw_tls_handshake(m.c.t, &want), AIGW_AGAIN);
    move_to_peer(&m);
    take_from_peer(&m, (char *)record, 5);
    assert_int_equal(record[0], 22);
    len = record[3] * 256 + record[4];
    assert_in_range(len, 1, 16384);
    take_from_peer(&m, (char *)record + 5, len);
    assert_int_equal(write(m.near, record, 5 + len), 5 + len);
    assert_int_equal(write(m.near, bytes, n), n);
    while (rc == AIGW_AGAIN) {
        rc = aigw_tls_handshake(m.c.t, &want);
        move_to_peer(&m);
        if (rc == AIGW_AGAIN)
            move_one_byte(&m);
    }
    assert_int_equal(rc, AIGW_FAILED);
    assert_int_equal(get(&m.c, buf, sizeof(buf)), AIGW_FAILED);
    assert_string_equal(buf, "");
    part(&m);
    peer_stop(p);
}

static void plain_bytes_amid_the_handshake_fail_it(void **state)
{
    static const char text[] = "HTTP/1.1 200 OK\r\n\r\n";
    static const char record[] = "\x17\x03\x03\x00\x13HTTP/1.1 200 OK\r\n\r\n";

    (void)state;
    assert_injection_fails(TLS1_3_VERSION, text, sizeof(text) - 1);
    assert_injection_fails(TLS1_2_VERSION, text, sizeof(text) - 1);
    assert_injection_fails(TLS1_3_VERSION, record, sizeof(record) - 1);
    assert_injection_fails(TLS1_2_VERSION, record, sizeof(record) - 1);
}

/* ---- reading and writing ----------------------------------------------- */

static void reading_ends_where_close_notify_came(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    client_t c = connected(context("llm.test", ca_file, 1), p);
    char buf[10];

    (void)state;
    assert_answer(&c, 'p', "pong");
    order(&c, 'c');
    assert_int_equal(get(&c, buf, sizeof(buf)), AIGW_DONE);
    assert_int_equal(get(&c, buf, sizeof(buf)), AIGW_DONE);
    hang_up(&c);
    peer_stop(p);
}

static void assert_broken_by(int version, char how, aigw_rc_t expected,
                             const char *why)
{
    peer_t *p = peer_speaking(version);
    client_t c = connected(context("llm.test", ca_file, 1), p);
    apr_size_t n = 1;
    char buf[10];
    int want = 0;

    assert_answer(&c, 'p', "pong");
    order(&c, how);
    assert_int_equal(get(&c, buf, sizeof(buf)), expected);
    assert_string_equal(aigw_tls_why(c.t), why);
    assert_int_equal(get(&c, buf, sizeof(buf)), expected);
    assert_int_equal(aigw_tls_write(c.t, "x", 1, &n, &want), expected);
    assert_int_equal(n, 0);
    assert_int_equal(ERR_peek_error(), 0);
    hang_up(&c);
    peer_stop(p);
}

static void end_without_close_notify_is_a_truncation(void **state)
{
    const char *why = "the server closed without close_notify";

    (void)state;
    assert_broken_by(TLS1_3_VERSION, 'f', AIGW_TRUNCATED, why);
    assert_broken_by(TLS1_2_VERSION, 'f', AIGW_TRUNCATED, why);
}

static void reset_is_a_failure(void **state)
{
    (void)state;
    assert_broken_by(TLS1_3_VERSION, 'r', AIGW_FAILED,
                     "TLS: Connection reset by peer");
}

static void assert_pattern(client_t *c, int total)
{
    char buf[5000];
    apr_size_t n, i;
    aigw_rc_t rc;
    int at = 0, want = 0;

    while (at < total) {
        rc = aigw_tls_read(c->t, buf, sizeof(buf), &n, &want);
        if (rc == AIGW_AGAIN) {
            assert_int_equal(aigw_tls_pending(c->t), 0);
            wait_for(c->fd, want);
            continue;
        }
        assert_int_equal(rc, AIGW_OK);
        for (i = 0; i < n; i++)
            if ((unsigned char)buf[i] != (at + i) % 251)
                fail_msg("byte %d is wrong", (int)(at + i));
        at += n;
    }
    assert_int_equal(at, total);
}

static void large_answer_arrives_whole(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    client_t c = connected(context("llm.test", ca_file, 1), p);

    (void)state;
    order(&c, 'l');
    assert_pattern(&c, PEER_LARGE);
    assert_answer(&c, 'p', "pong");
    hang_up(&c);
    peer_stop(p);
}

#define PIECE 20000

/* Each call comes from another buffer than the one before, as the relay's
 * bytes move. */
static aigw_rc_t write_from_elsewhere(client_t *c, int at, apr_size_t *n,
                                      int *want)
{
    static char place[2][PIECE];
    static int turn;
    apr_size_t size = PEER_LARGE - at, i;
    char *from = place[turn++ % 2];

    if (size > PIECE)
        size = PIECE;
    memset(place, 'x', sizeof(place));
    for (i = 0; i < size; i++)
        from[i] = (at + i) % 251;
    return aigw_tls_write(c->t, from, size, n, want);
}

static void slow_reader_is_waited_for_with_a_moving_buffer(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    client_t c = connected(context("llm.test", ca_file, 1), p);
    int at = 0, again = 0, want = 0;
    aigw_rc_t rc;
    apr_size_t n;
    char buf[10];

    (void)state;
    order(&c, 'u');
    while (at < PEER_LARGE) {
        rc = write_from_elsewhere(&c, at, &n, &want);
        if (rc == AIGW_AGAIN) {
            assert_int_equal(want, AIGW_WANT_WRITE);
            assert_int_equal(n, 0);
            if (again++ == 0)
                peer_go(p);
            wait_for(c.fd, want);
            continue;
        }
        assert_int_equal(rc, AIGW_OK);
        assert_in_range(n, 1, at == 0 ? 16384 : PIECE); /* a record */
        at += n;
    }
    assert_true(again > 0);
    assert_int_equal(get(&c, buf, sizeof(buf)), AIGW_OK);
    assert_string_equal(buf, "yes");
    hang_up(&c);
    peer_stop(p);
}

static void early_answer_is_read_after_the_write_failed(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    client_t c = connected(context("llm.test", ca_file, 1), p);
    aigw_rc_t rc = AIGW_OK;
    char buf[10];
    apr_size_t n;
    int i, want = 0;

    (void)state;
    order(&c, 'a');
    for (i = 0; i < 1000 && rc != AIGW_FAILED; i++) {
        rc = write_from_elsewhere(&c, 0, &n, &want);
        if (rc == AIGW_AGAIN)
            wait_for(c.fd, want);
        usleep(1000);
    }
    assert_int_equal(rc, AIGW_FAILED);
    assert_int_equal(get(&c, buf, sizeof(buf)), AIGW_OK);
    assert_string_equal(buf, "early");
    hang_up(&c);
    peer_stop(p);
}

static void second_record_is_pending_until_it_is_read(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    middle_t m = between(context("llm.test", ca_file, 1), p);
    char buf[10], two[2 * (5 + 3 + 17)];
    apr_size_t n;
    int want = 0;

    (void)state;
    while (aigw_tls_handshake(m.c.t, &want) == AIGW_AGAIN) {
        move_to_peer(&m);
        move_one_byte(&m);
    }
    order(&m.c, 'p');
    move_to_peer(&m);
    while (aigw_tls_read(m.c.t, buf, 4, &n, &want) == AIGW_AGAIN)
        move_one_byte(&m);
    order(&m.c, '2');
    move_to_peer(&m);
    take_from_peer(&m, two, sizeof(two));
    /* Both records but for the last byte of the second. */
    assert_int_equal(write(m.near, two, sizeof(two) - 1), sizeof(two) - 1);
    assert_int_equal(aigw_tls_read(m.c.t, buf, 2, &n, &want), AIGW_OK);
    assert_memory_equal(buf, "on", 2);
    assert_int_equal(aigw_tls_pending(m.c.t), 1);
    assert_int_equal(aigw_tls_read(m.c.t, buf, 2, &n, &want), AIGW_OK);
    assert_int_equal(buf[0], 'e');
    assert_int_equal(aigw_tls_pending(m.c.t), 1);
    assert_int_equal(aigw_tls_read(m.c.t, buf, 2, &n, &want), AIGW_AGAIN);
    assert_int_equal(aigw_tls_pending(m.c.t), 0);
    assert_int_equal(write(m.near, two + sizeof(two) - 1, 1), 1);
    assert_int_equal(aigw_tls_read(m.c.t, buf, 9, &n, &want), AIGW_OK);
    assert_memory_equal(buf, "two", 3);
    assert_int_equal(aigw_tls_pending(m.c.t), 0);
    part(&m);
    peer_stop(p);
}

static void leave_an_error(void)
{
    assert_null(BIO_new_file("/nowhere", "r"));
    assert_int_not_equal(ERR_peek_error(), 0);
}

static void errors_of_others_are_no_errors_of_ours(void **state)
{
    peer_t *p = peer_speaking(TLS1_2_VERSION);
    client_t c = dial(context("llm.test", ca_file, 1), p);
    apr_size_t n;
    char buf[10];
    int want = 0;

    (void)state;
    leave_an_error();
    assert_int_equal(shake(&c), AIGW_OK);
    leave_an_error();
    assert_int_equal(aigw_tls_read(c.t, buf, 10, &n, &want), AIGW_AGAIN);
    leave_an_error();
    assert_int_equal(aigw_tls_stale(c.t), 0);
    assert_answer(&c, 'p', "pong");
    leave_an_error();
    hang_up(&c);
    assert_int_equal(ERR_peek_error(), 0);
    peer_stop(p);
}

static void close_tells_the_server(void **state)
{
    peer_t *p = peer_of(CERT_GOOD);
    aigw_tls_ctx_t *ctx = context("llm.test", ca_file, 1);
    client_t c = connected(ctx, p);

    (void)state;
    assert_answer(&c, 'p', "pong");
    hang_up(&c);
    c = connected(ctx, p);
    assert_answer(&c, 'p', "pong");
    close(c.fd);
    c.fd = -1;
    aigw_tls_close(c.t);
    assert_int_equal(peer_stop(p), 1);
}

/* ---- memory --------------------------------------------------------- */

/* Buffers of a whole record that this thread's OpenSSL holds. */
#define RECORD_BUFFER 16384
static __thread int record_buffers;

static void *count_malloc(size_t size, const char *file, int line)
{
    void *p = malloc(size);

    (void)file;
    (void)line;
    record_buffers += p != NULL && malloc_usable_size(p) >= RECORD_BUFFER;
    return p;
}

static void count_free(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    record_buffers -= p != NULL && malloc_usable_size(p) >= RECORD_BUFFER;
    free(p);
}

static void *count_realloc(void *p, size_t size, const char *file, int line)
{
    void *q;

    record_buffers -= p != NULL && malloc_usable_size(p) >= RECORD_BUFFER;
    q = realloc(p, size);
    (void)file;
    (void)line;
    record_buffers += q != NULL && malloc_usable_size(q) >= RECORD_BUFFER;
    return q;
}

static void assert_waits_without_buffers(int version)
{
    peer_t *p = peer_speaking(version);
    client_t c = connected(context("llm.test", ca_file, 1), p);
    apr_size_t n;
    char buf[10];
    int want = 0;

    assert_answer(&c, 'p', "pong");
    assert_int_equal(aigw_tls_read(c.t, buf, 10, &n, &want), AIGW_AGAIN);
    assert_int_equal(record_buffers, 0);
    assert_int_equal(aigw_tls_stale(c.t), 0);
    assert_int_equal(record_buffers, 0);
    assert_answer(&c, 'p', "pong");
    hang_up(&c);
    peer_stop(p);
}

static void waiting_connection_holds_no_record_buffer(void **state)
{
    (void)state;
    assert_int_equal(record_buffers, 0);
    assert_waits_without_buffers(TLS1_3_VERSION);
    assert_waits_without_buffers(TLS1_2_VERSION);
}

/* ---- idle connections -------------------------------------------------- */

/* Wait until something lies in the socket. */
static void let_it_come(client_t *c)
{
    wait_for(c->fd, AIGW_WANT_READ);
    usleep(20000);
}

static void tickets_do_not_make_a_connection_stale(void **state)
{
    peer_t *p = peer_speaking(TLS1_3_VERSION);
    aigw_tls_ctx_t *ctx = context("llm.test", ca_file, 1);
    client_t c = connected(ctx, p);

    (void)state;
    let_it_come(&c); /* the tickets */
    assert_null(ctx->session);
    assert_int_equal(aigw_tls_stale(c.t), 0);
    assert_non_null(ctx->session);
    assert_int_equal(aigw_tls_stale(c.t), 0);
    assert_answer(&c, 'p', "pong");
    assert_int_equal(aigw_tls_stale(c.t), 0);
    hang_up(&c);
    peer_stop(p);
}

static void new_keys_do_not_make_a_connection_stale(void **state)
{
    peer_t *p = peer_speaking(TLS1_3_VERSION);
    client_t c = connected(context("llm.test", ca_file, 1), p);

    (void)state;
    assert_answer(&c, 'p', "pong");
    order(&c, 'k');
    let_it_come(&c);
    assert_int_equal(aigw_tls_stale(c.t), 0);
    assert_answer(&c, 'p', "pong");
    hang_up(&c);
    peer_stop(p);
}

static void assert_stale_after(int version, char what)
{
    peer_t *p = peer_speaking(version);
    client_t c = connected(context("llm.test", ca_file, 1), p);

    assert_answer(&c, 'p', "pong");
    assert_int_equal(aigw_tls_stale(c.t), 0);
    order(&c, what);
    let_it_come(&c);
    assert_int_equal(aigw_tls_stale(c.t), 1);
    hang_up(&c);
    peer_stop(p);
}

static void data_nobody_asked_for_makes_a_connection_stale(void **state)
{
    (void)state;
    assert_stale_after(TLS1_3_VERSION, 'p');
    assert_stale_after(TLS1_2_VERSION, 'p');
}

static void every_end_makes_a_connection_stale(void **state)
{
    (void)state;
    assert_stale_after(TLS1_3_VERSION, 'c');
    assert_stale_after(TLS1_2_VERSION, 'c');
    assert_stale_after(TLS1_3_VERSION, 'f');
    assert_stale_after(TLS1_2_VERSION, 'f');
    assert_stale_after(TLS1_3_VERSION, 'r');
}

static void closing_nothing_is_fine(void **state)
{
    (void)state;
    aigw_tls_close(NULL);
}

/* ---- all of it --------------------------------------------------------- */

static int begin(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN); /* as httpd does */
    ca_file = peer_world_create();
    return apr_initialize() == APR_SUCCESS ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    peer_world_destroy();
    apr_terminate();
    return 0;
}

static int with_pool(void **state)
{
    (void)state;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int without_pool(void **state)
{
    (void)state;
    apr_pool_destroy(pool);
    return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, with_pool, without_pool)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(good_chain_and_name_are_accepted),
        T(wildcard_is_accepted_for_one_label),
        T(last_dot_of_a_name_is_neither_verified_nor_sent),
        T(ip_address_is_verified_and_not_sent),
        T(wrong_name_is_refused),
        T(wrong_ip_address_is_refused),
        T(expired_certificate_is_refused),
        T(certificate_of_tomorrow_is_refused),
        T(self_signed_certificate_is_refused),
        T(unknown_ca_is_refused),
        T(forged_signature_is_refused),
        T(client_certificate_is_no_server),
        T(verify_off_accepts_any_certificate),
        T(without_ca_the_system_s_locations_count),
        T(unusable_ca_file_is_named),
        T(tls_older_than_1_2_is_refused),
        T(protocol_that_was_not_offered_is_refused),
        T(second_connection_is_resumed_in_tls_1_3),
        T(second_connection_is_resumed_in_tls_1_2),
        T(broken_connection_leaves_the_session_usable),
        T(session_that_the_server_forgot_leads_to_a_new_one),
        T(forgotten_session_does_not_carry_a_bad_certificate),
        T(certificate_is_seen_again_after_an_hour),
        T(threads_share_an_upstream),
        T(plain_server_is_told_as_such),
        T(plain_bytes_before_the_handshake_fail_it),
        T(server_that_hangs_up_fails_the_handshake),
        T(silent_server_is_waited_for_without_blocking),
        T(data_before_the_handshake_has_ended_is_a_mistake),
        T(bytewise_delivery_changes_nothing),
        T(plain_bytes_amid_the_handshake_fail_it),
        T(reading_ends_where_close_notify_came),
        T(end_without_close_notify_is_a_truncation),
        T(reset_is_a_failure),
        T(large_answer_arrives_whole),
        T(slow_reader_is_waited_for_with_a_moving_buffer),
        T(early_answer_is_read_after_the_write_failed),
        T(second_record_is_pending_until_it_is_read),
        T(close_tells_the_server),
        T(errors_of_others_are_no_errors_of_ours),
        T(waiting_connection_holds_no_record_buffer),
        T(tickets_do_not_make_a_connection_stale),
        T(new_keys_do_not_make_a_connection_stale),
        T(data_nobody_asked_for_makes_a_connection_stale),
        T(every_end_makes_a_connection_stale),
        T(closing_nothing_is_fine),
    };

    /* Only before OpenSSL's first allocation. */
    if (CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free) != 1)
        return 1;
    return cmocka_run_group_tests_name("tls", tests, begin, end);
}
