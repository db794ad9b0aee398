/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model without a price costs the host money that no bill shows: it is
 * said in the error log, once a model and child.
 */
#ifndef AIGW_UNPRICED_H
#define AIGW_UNPRICED_H

#include "../aigw.h"

/** child_init. */
apr_status_t aigw_unpriced_child_init(apr_pool_t *pchild);

/** Warn of a model (NULL: unknown) unless that was done. Any worker. At most
 * AIGW_UNPRICED_MAX names are remembered, as clients choose them. */
void aigw_unpriced_warn(const aigw_exchange_t *x, const char *model);

#define AIGW_UNPRICED_MAX 1000

#endif
