/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one exit: what an exchange came to is counted, priced, noted for
 * LogFormat and written to the usage log, once.  Whoever is last calls it;
 * it knows nothing of how the exchange went.
 */
#ifndef AIGW_SETTLE_H
#define AIGW_SETTLE_H

#include "../aigw.h"

/**
 * Settle an exchange; does nothing the second time. Never on the relay
 * thread: the log may block. The request and its pool must still be there.
 */
void aigw_settle(aigw_exchange_t *x);

#endif
