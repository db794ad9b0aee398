/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TLS server of the unit tests: one thread a connection, blocking.  It
 * asserts nothing; it stops the program if its own world cannot be made.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include "tls_peer.h"

#define MAX_CONNS 512
#define DAY 86400L
#define SOCKET_BUFFER 65536 /* small enough to fill */

static struct {
    EVP_PKEY *ca_key, *key, *stranger_key;
    X509 *ca, *stranger, *cert[CERT_COUNT];
    char dir[64], file[80];
} world;

struct peer_t {
    peer_setup_t setup;
    SSL_CTX *ssl;
    int listener, port, go[2];
    pthread_t acceptor, conn[MAX_CONNS];
    int clean[MAX_CONNS]; /* read when its thread has ended */
    int n;
};

typedef struct {
    const peer_t *p;
    int fd;
    int *clean;
} conn_t;

static void must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        abort();
    }
}

/* ---- certificates ------------------------------------------------------ */

typedef struct {
    const char *cn, *san, *usage;
    long from, until; /* seconds from now */
} wish_t;

static EVP_PKEY *make_key(void)
{
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
    EVP_PKEY *key = NULL;

    must(EVP_PKEY_keygen_init(c) == 1
             && EVP_PKEY_CTX_set_ec_paramgen_curve_nid(c, NID_X9_62_prime256v1)
                    == 1
             && EVP_PKEY_keygen(c, &key) == 1,
         "key");
    EVP_PKEY_CTX_free(c);
    return key;
}

static void extend(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX c;
    X509_EXTENSION *e;

    X509V3_set_ctx(&c, issuer, x, NULL, NULL, 0);
    e = X509V3_EXT_conf_nid(NULL, &c, nid, value);
    must(e != NULL && X509_add_ext(x, e, -1) == 1, value);
    X509_EXTENSION_free(e);
}

/* issuer NULL: by itself. */
static X509 *issue(wish_t w, EVP_PKEY *key, X509 *issuer, EVP_PKEY *by)
{
    static long serial;
    X509 *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);

    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x), w.from);
    X509_gmtime_adj(X509_getm_notAfter(x), w.until);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               (const unsigned char *)w.cn, -1, -1, 0);
    X509_set_issuer_name(x, issuer != NULL ? X509_get_subject_name(issuer)
                                           : name);
    if (w.san != NULL)
        extend(x, issuer, NID_subject_alt_name, w.san);
    else
        extend(x, issuer, NID_basic_constraints, "critical,CA:TRUE");
    if (w.usage != NULL)
        extend(x, issuer, NID_ext_key_usage, w.usage);
    must(X509_sign(x, by, EVP_sha256()) > 0, "sign");
    return x;
}

static void make_certs(void)
{
    const char *name = "DNS:llm.test";
    const wish_t ca = {"Test CA", NULL, NULL, -DAY, DAY};
    const wish_t unknown = {"Unknown CA", NULL, NULL, -DAY, DAY};
    const wish_t good = {"good",
                         "DNS:llm.test,DNS:*.wild.test,"
                         "IP:127.0.0.1,IP:::1",
                         "serverAuth", -DAY, DAY};
    const wish_t other = {"other", "DNS:other.test", NULL, -DAY, DAY};
    const wish_t expired = {"expired", name, NULL, -2 * DAY, -DAY};
    const wish_t future = {"future", name, NULL, DAY, 2 * DAY};
    const wish_t plain = {"plain", name, NULL, -DAY, DAY};
    const wish_t client = {"client", name, "clientAuth", -DAY, DAY};
    X509 **c = world.cert;

    world.ca = issue(ca, world.ca_key, NULL, world.ca_key);
    world.stranger =
        issue(unknown, world.stranger_key, NULL, world.stranger_key);
    c[CERT_GOOD] = issue(good, world.key, world.ca, world.ca_key);
    c[CERT_OTHER] = issue(other, world.key, world.ca, world.ca_key);
    c[CERT_EXPIRED] = issue(expired, world.key, world.ca, world.ca_key);
    c[CERT_FUTURE] = issue(future, world.key, world.ca, world.ca_key);
    c[CERT_SELF] = issue(plain, world.key, NULL, world.key);
    c[CERT_STRANGER] =
        issue(plain, world.key, world.stranger, world.stranger_key);
    c[CERT_FORGED] = issue(plain, world.key, world.ca, world.stranger_key);
    c[CERT_CLIENT] = issue(client, world.key, world.ca, world.ca_key);
}

const char *peer_world_create(void)
{
    const char *tmp = getenv("TMPDIR");
    FILE *f;

    world.ca_key = make_key();
    world.key = make_key();
    world.stranger_key = make_key();
    make_certs();
    snprintf(world.dir, sizeof(world.dir), "%s/aigw-tls-XXXXXX",
             tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp");
    must(mkdtemp(world.dir) != NULL, "mkdtemp");
    snprintf(world.file, sizeof(world.file), "%s/ca.pem", world.dir);
    f = fopen(world.file, "w");
    must(f != NULL && PEM_write_X509(f, world.ca) == 1 && fclose(f) == 0,
         world.file);
    return world.file;
}

void peer_world_destroy(void)
{
    int i;

    for (i = 0; i < CERT_COUNT; i++)
        X509_free(world.cert[i]);
    X509_free(world.ca);
    X509_free(world.stranger);
    EVP_PKEY_free(world.ca_key);
    EVP_PKEY_free(world.key);
    EVP_PKEY_free(world.stranger_key);
    unlink(world.file);
    rmdir(world.dir);
}

/* ---- a connection ------------------------------------------------------ */

static void say(SSL *ssl, const char *text)
{
    SSL_write(ssl, text, (int)strlen(text));
}

static void tell(SSL *ssl)
{
    const unsigned char *alpn;
    const char *sni = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    unsigned n;
    char line[200];

    SSL_get0_alpn_selected(ssl, &alpn, &n);
    snprintf(line, sizeof(line), "reused=%d %s alpn=%.*s sni=%s",
             SSL_session_reused(ssl), SSL_get_version(ssl), (int)n,
             n > 0 ? (const char *)alpn : "", sni != NULL ? sni : "none");
    say(ssl, line);
}

static void send_large(SSL *ssl)
{
    unsigned char *all = malloc(PEER_LARGE);
    int i;

    must(all != NULL, "malloc");
    for (i = 0; i < PEER_LARGE; i++)
        all[i] = i % 251;
    SSL_write(ssl, all, PEER_LARGE);
    free(all);
}

static void take_large(SSL *ssl, int go)
{
    unsigned char part[16384];
    char byte;
    int i, n, total = 0, good = 1;

    must(read(go, &byte, 1) == 1, "go");
    while (total < PEER_LARGE) {
        n = SSL_read(ssl, part, sizeof(part));
        if (n <= 0)
            return;
        for (i = 0; i < n; i++)
            good &= part[i] == (total + i) % 251;
        total += n;
    }
    say(ssl, good && total == PEER_LARGE ? "yes" : "no");
}

static void set_reset(int fd)
{
    struct linger now = {1, 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

/* @return 0: the connection is over */
static int obey(SSL *ssl, char order, const peer_t *p)
{
    switch (order) {
    case 'i':
        tell(ssl);
        return 1;
    case 'p':
        say(ssl, "pong");
        return 1;
    case '2':
        say(ssl, "one");
        say(ssl, "two");
        return 1;
    case 'l':
        send_large(ssl);
        return 1;
    case 'u':
        take_large(ssl, p->go[0]);
        return 1;
    case 'k':
        SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
        return SSL_do_handshake(ssl) == 1;
    case 'c':
        SSL_shutdown(ssl);
        return 0;
    case 'a':
        say(ssl, "early");
        /* fall through */
    case 'r':
        set_reset(SSL_get_fd(ssl));
        return 0;
    default:
        return 0;
    }
}

static void serve_tls(const conn_t *c)
{
    SSL *ssl = SSL_new(c->p->ssl);
    char order;

    SSL_set_fd(ssl, c->fd);
    if (SSL_accept(ssl) == 1)
        while (SSL_read(ssl, &order, 1) == 1 && obey(ssl, order, c->p))
            ;
    *c->clean = (SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
}

static const char plain[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

static void swallow(int fd)
{
    char buf[1000];

    while (read(fd, buf, sizeof(buf)) > 0)
        ;
}

static void *serve(void *data)
{
    conn_t *c = data;
    char hello[1000];

    switch (c->p->setup.manner) {
    case PEER_PLAIN:
        if (read(c->fd, hello, sizeof(hello)) > 0
            && write(c->fd, plain, sizeof(plain) - 1) > 0)
            swallow(c->fd);
        break;
    case PEER_EARLY:
        if (write(c->fd, plain, sizeof(plain) - 1) > 0)
            serve_tls(c);
        break;
    case PEER_SILENT:
        swallow(c->fd);
        break;
    case PEER_HANGS_UP:
        must(read(c->fd, hello, sizeof(hello)) > 0, "read");
        break;
    default:
        serve_tls(c);
    }
    close(c->fd);
    free(c);
    return NULL;
}

/* ---- the listener ------------------------------------------------------ */

static void *accept_all(void *data)
{
    struct timeval limit = {20, 0};
    peer_t *p = data;
    conn_t *c;
    int fd, one = 1;

    while ((fd = accept(p->listener, NULL, NULL)) >= 0) {
        must(p->n < MAX_CONNS, "too many connections");
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        c = malloc(sizeof(*c));
        must(c != NULL, "malloc");
        c->p = p;
        c->fd = fd;
        c->clean = &p->clean[p->n];
        must(pthread_create(&p->conn[p->n++], NULL, serve, c) == 0, "thread");
    }
    return NULL;
}

static int choose_alpn(SSL *ssl, const unsigned char **out,
                       unsigned char *outlen, const unsigned char *in,
                       unsigned inlen, void *data)
{
    const char *mine = data;

    (void)ssl;
    (void)inlen;
    *out = mine != NULL ? (const unsigned char *)mine : in + 1;
    *outlen = mine != NULL ? strlen(mine) : in[0];
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_ctx(const peer_setup_t *setup)
{
    SSL_CTX *ssl = SSL_CTX_new(TLS_server_method());

    must(SSL_CTX_use_certificate(ssl, world.cert[setup->cert]) == 1
             && SSL_CTX_use_PrivateKey(ssl, world.key) == 1,
         "certificate");
    if (setup->version != 0) {
        if (setup->version < TLS1_2_VERSION)
            SSL_CTX_set_cipher_list(ssl, "DEFAULT:@SECLEVEL=0");
        SSL_CTX_set_min_proto_version(ssl, setup->version);
        SSL_CTX_set_max_proto_version(ssl, setup->version);
    }
    SSL_CTX_set_alpn_select_cb(ssl, choose_alpn, (void *)setup->alpn);
    return ssl;
}

static void start_listening(peer_t *p)
{
    struct sockaddr_in a;
    socklen_t len = sizeof(a);
    int few = SOCKET_BUFFER;

    memset(&a, 0, sizeof(a));
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p->listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(p->listener, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few));
    must(bind(p->listener, (struct sockaddr *)&a, sizeof(a)) == 0
             && listen(p->listener, 512) == 0
             && getsockname(p->listener, (struct sockaddr *)&a, &len) == 0,
         "listen");
    p->port = ntohs(a.sin_port);
}

peer_t *peer_start(peer_setup_t setup)
{
    peer_t *p = calloc(1, sizeof(*p));

    must(p != NULL && pipe(p->go) == 0, "pipe");
    p->setup = setup;
    p->ssl = make_ctx(&setup);
    start_listening(p);
    must(pthread_create(&p->acceptor, NULL, accept_all, p) == 0, "thread");
    return p;
}

int peer_stop(peer_t *p)
{
    int i, clean = 0;

    shutdown(p->listener, SHUT_RDWR);
    pthread_join(p->acceptor, NULL);
    for (i = 0; i < p->n; i++) {
        pthread_join(p->conn[i], NULL);
        clean += p->clean[i];
    }
    close(p->listener);
    close(p->go[0]);
    close(p->go[1]);
    SSL_CTX_free(p->ssl);
    free(p);
    return clean;
}

void peer_go(peer_t *p)
{
    must(write(p->go[1], "", 1) == 1, "go");
}

int peer_dial(const peer_t *p)
{
    struct sockaddr_in a;
    int fd = socket(AF_INET, SOCK_STREAM, 0), few = SOCKET_BUFFER;

    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &few, sizeof(few));
    memset(&a, 0, sizeof(a));
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(p->port);
    must(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0, "connect");
    must(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
    return fd;
}
