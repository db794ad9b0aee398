/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other driver: the worker itself sees one exchange through, with
 * poll(2), where the connection can't be let go.  Same machine, same record,
 * fewer streams: one a worker.
 */
#ifndef AIGW_SYNC_H
#define AIGW_SYNC_H

#include "../aigw.h"

/** Drive x from its start to its end. Worker thread; returns OK. */
int aigw_sync_drive(aigw_exchange_t *x);

#endif
