/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS server on loopback for unit tests: good and bad certificates, made
 * when the program starts and never written to disk (but for the CA's
 * certificate), and a peer that does what the byte it receives tells it.
 */
#ifndef TLS_PEER_H
#define TLS_PEER_H

#include <openssl/ssl.h>

typedef enum {
    CERT_GOOD,     /* llm.test, *.wild.test, 127.0.0.1, ::1 */
    CERT_OTHER,    /* other.test */
    CERT_EXPIRED,  /* llm.test, until yesterday */
    CERT_FUTURE,   /* llm.test, from tomorrow */
    CERT_SELF,     /* llm.test, signed by itself */
    CERT_STRANGER, /* llm.test, of a CA that nobody knows */
    CERT_FORGED,   /* llm.test, as if of the CA, signed with another key */
    CERT_CLIENT,   /* llm.test, for clients only */
    CERT_COUNT
} cert_t;

/*
 * What the peer does with a byte of application data:
 *   i  tells what it saw: "reused=0 TLSv1.3 alpn=http/1.1 sni=llm.test"
 *   p  says "pong"
 *   2  says "one" and "two" in two records
 *   l  sends PEER_LARGE bytes, the i-th is i % 251
 *   u  reads PEER_LARGE bytes of that kind once peer_go was called, says
 *      "yes" or "no"
 *   k  asks for new traffic keys (TLS 1.3)
 *   c  sends close_notify and closes
 *   f  closes without close_notify
 *   r  resets the connection
 *   a  says "early" and resets the connection
 */
#define PEER_LARGE 3000000

typedef enum {
    PEER_TLS,
    PEER_PLAIN,   /* answers the first bytes in plain HTTP */
    PEER_EARLY,   /* plain HTTP first, then a handshake as if nothing was */
    PEER_SILENT,  /* accepts, reads, says nothing */
    PEER_HANGS_UP /* reads, then closes */
} peer_manner_t;

typedef struct {
    cert_t cert;
    peer_manner_t manner;
    int version;      /* 0, or the only one it speaks */
    const char *alpn; /* NULL: as the client wants; or what it insists on */
} peer_setup_t;

typedef struct peer_t peer_t;

/** Make keys and certificates. @return the CA's certificate as a file */
const char *peer_world_create(void);
void peer_world_destroy(void);

peer_t *peer_start(peer_setup_t setup);
/** Close all and wait for its threads.
 * @return how many clients ended with close_notify */
int peer_stop(peer_t *p);
/** Let it read on after 'u'. */
void peer_go(peer_t *p);
/** A connected socket, non-blocking. */
int peer_dial(const peer_t *p);

#endif
