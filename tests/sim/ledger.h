/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: one JSON line for every request that ended, written when it
 * ended, with what came in and what went out.  It hides nothing: keys and
 * bodies stand in it, because tests must see which of them arrived.
 */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "sim.h"

typedef enum sim_end_t {
    SIM_END_COMPLETE = 0, /* all bytes that were meant to go have gone */
    SIM_END_ABORTED,      /* the peer left before */
    SIM_END_FAULT         /* the simulator broke it off, as asked */
} sim_end_t;

/** Write the line of the connection's request, with one write(2). */
void sim_ledger_write(const sim_conn_t *c, sim_end_t end);

/** Append the counters as a JSON document. */
void sim_ledger_stats(const sim_t *sim, sim_buf_t *b);

#endif
