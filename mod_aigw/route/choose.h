/* SPDX-License-Identifier: Apache-2.0 */
/* Which upstream serves a model: the configured rows, nothing of the
 * request's but its model name. */
#ifndef AIGW_CHOOSE_H
#define AIGW_CHOOSE_H

#include "../config/config.h"

/**
 * The first matching AIGWModel row decides.
 * @param remote set to the model name to send instead, or NULL
 * @return NULL if no row matches, or the row denies
 */
aigw_upstream_t *aigw_choose(const aigw_server_t *conf, const char *model,
                             const char **remote);

#endif
