/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request gets: which endpoint it meets, whether its key is right,
 * what its overrides say.
 */
#ifndef SIM_ROUTE_H
#define SIM_ROUTE_H

#include "sim.h"

/** Begin the answer in c->ans to the complete request in c->req. */
void sim_route(sim_conn_t *c);

/** @return 1 for requests to the simulator itself, which are not counted */
int sim_route_own(const sim_conn_t *c);

#endif
