/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text as a JSON string, for the few that are written outside the record:
 * names from the configuration.
 */
#ifndef AIGW_JSONTEXT_H
#define AIGW_JSONTEXT_H

#include <apr_pools.h>

/** @a text with its quotes, escaped; from @a pool. */
const char *aigw_jsontext(apr_pool_t *pool, const char *text);

#endif
