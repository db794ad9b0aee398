/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ids have been seen before.  Kept are 128 bits of a keyed hash, so
 * that two ids are never mistaken for one, of at least the last
 * AIGW_DEDUP_WINDOW different ids, in at most 64 MiB.  An id that was seen
 * longer ago may be taken for a new one.
 */
#ifndef AIGW_CALC_DEDUP_H
#define AIGW_CALC_DEDUP_H

#include <apr_pools.h>
#include "slice.h"

#define AIGW_DEDUP_WINDOW 1500000

typedef struct {
    apr_uint64_t a, b;
} aigw_dedup_id_t;

typedef struct aigw_dedup_t aigw_dedup_t;

/** @param pool it is let go of with it */
aigw_dedup_t *aigw_dedup_make(apr_pool_t *pool);

/** What stands for an id; any thread may ask. */
aigw_dedup_id_t aigw_dedup_hash(const aigw_dedup_t *dedup, const char *id);

/** Fetch the memory that aigw_dedup_seen() will look at. */
void aigw_dedup_prefetch(const aigw_dedup_t *dedup, aigw_dedup_id_t id);

/** 1 if the id was given before; it is known from now on. */
int aigw_dedup_seen(aigw_dedup_t *dedup, aigw_dedup_id_t id);

/** 1 if ids had to be forgotten: the window was passed. */
int aigw_dedup_passed(const aigw_dedup_t *dedup);

#endif
