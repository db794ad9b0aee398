/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a connection: reading, answering, pacing of writes, leaving.
 * The only file that frees connections.  A function that says so may free
 * the connection; its caller must not touch it afterwards.
 */
#ifndef SIM_CONN_H
#define SIM_CONN_H

#include "sim.h"

/** Take over an accepted, non-blocking socket. */
void sim_conn_open(sim_t *sim, int fd);

/** epoll has events for it; may free the connection. */
void sim_conn_ready(sim_conn_t *c, uint32_t events);

/** Its timer is due and was cleared; may free the connection. */
void sim_conn_due(sim_conn_t *c);

/** Close and free it, without a word to the peer or to the ledger. */
void sim_conn_free(sim_conn_t *c);

#endif
