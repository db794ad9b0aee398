/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes in and out of a connection, plain or TLS, never blocking.  Nothing
 * here knows HTTP.
 */
#ifndef SIM_IO_H
#define SIM_IO_H

#include "sim.h"

typedef enum sim_io_t {
    SIM_IO_OK = 0,
    SIM_IO_AGAIN, /* would block */
    SIM_IO_GONE   /* the peer closed, or an error */
} sim_io_t;

/** Read what is there, up to 64 KiB, and append it to c->in. */
sim_io_t sim_io_read(sim_conn_t *c);

/** Write the first n bytes of c->out, or fewer; *done says how many. */
sim_io_t sim_io_write(sim_conn_t *c, size_t n, size_t *done);

/** Go on with the TLS handshake; *mask receives the events to wait for. */
sim_io_t sim_io_handshake(sim_conn_t *c, uint32_t *mask);

/** End our side: close_notify when clean, then FIN. */
void sim_io_finish(sim_conn_t *c, int clean);

/**
 * Make the TLS side of the server: certificate, ALPN http/1.1, tickets.
 * @return 0, or -1 with a sentence on stderr
 */
int sim_io_tls(sim_t *sim, const char *cert, const char *key);

#endif
