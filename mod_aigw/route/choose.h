/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which upstreams serve a model, and which of them is next: the configured
 * rows and how the upstreams are, nothing of the request's but its model
 * name.
 */
#ifndef AIGW_CHOOSE_H
#define AIGW_CHOOSE_H

#include "../config/config.h"

/** More candidates than these in a row are not tried. */
#define AIGW_CANDIDATES 32

/** The first matching AIGWModel row; NULL if none matches or it denies. */
const aigw_model_row_t *aigw_choose(const aigw_server_t *conf,
                                    const char *model);

/**
 * The next candidate of a row: the first in its order that was not tried and
 * does not rest. When all rest, the one that is back first, but not for a
 * retry: an upstream that asked for quiet gets no second tries.
 * @param caller the request's language: an upstream that does not speak it
 *              is none of the candidates
 * @param tried bit (1 << index) of those that were; the one that is
 *              returned is added
 * @return NULL if there is none
 */
const aigw_candidate_t *aigw_choose_next(const aigw_model_row_t *row,
                                         const aigw_dialect_t *caller,
                                         apr_uint32_t *tried, int retry,
                                         apr_time_t now);

#endif
