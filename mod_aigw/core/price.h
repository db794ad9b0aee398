/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prices as data: a dated file of exact decimals, and the one function that
 * turns token counts into money, used by the module for the record and by
 * aigw-calc for its tables.  A model without a price has no cost: never 0.
 */
#ifndef AIGW_PRICE_H
#define AIGW_PRICE_H

#include <apr_pools.h>
#include <apr_time.h>
#include "slice.h"
#include "usage.h"
#include "decimal.h"

typedef struct aigw_catalog_t aigw_catalog_t;

/** One row: what a model costs per million tokens while it is in force. */
typedef struct {
    const char *model;    /* as written in the file */
    const char *currency; /* "USD" */
    const char *source;   /* where the price was read; may be NULL */
    const char *checked;  /* the day it was read there; may be NULL */
    apr_time_t from, to;  /* in force: from <= t < to; 0 = open */
    apr_uint32_t known;   /* bit per aigw_usage_field_t */
    aigw_money_t per_mtok[AIGW_U_MAX]; /* of 10^-15 currency per 10^6 tokens,
                                  a multiple of 10^6 so that one token has an
                                  exact price (per item for the fields that
                                  are not tokens) */
} aigw_price_t;

/**
 * Read a price file (conf/prices.json is the form's example, docs/prices.md
 * its text). Strict: a duplicate or unknown key, a negative or malformed
 * price, a price too fine for an exact token, two rows in force at once for
 * a model are errors.
 * @param err on failure a sentence "FILE:LINE: place: what was read and what
 *            is allowed"; from @a pool
 * @return APR_SUCCESS or the reason (APR_EINVAL for bad content)
 */
apr_status_t aigw_catalog_load(aigw_catalog_t **cat, const char *path,
                               apr_pool_t *pool, const char **err);

/**
 * The same from bytes in memory.
 * @param path what to call them in an error
 * @param text a NUL stands behind it; not kept
 */
apr_status_t aigw_catalog_parse(aigw_catalog_t **cat, const char *path,
                                aigw_slice_t text, apr_pool_t *pool,
                                const char **err);

/** The file's own version text (for the record's "prices"). */
const char *aigw_catalog_version(const aigw_catalog_t *cat);

/**
 * The price in force for a model at a time: the exact name first, then the
 * longest row whose name ends with '*'. NULL if there is none (and for a
 * model that is NULL). Reentrant; no allocation.
 */
const aigw_price_t *aigw_catalog_find(const aigw_catalog_t *cat,
                                      const char *model, apr_time_t when);

/**
 * The price of a request: that of the model that the answer names, or, where
 * that one has none, of the model that was asked for. Either may be NULL.
 * Module and aigw-calc both ask here, so that a record's cost and a later
 * pricing of the record agree.
 */
const aigw_price_t *aigw_catalog_price(const aigw_catalog_t *cat,
                                       const char *served, const char *model,
                                       apr_time_t when);

/** Walk all rows in file order, from 0; NULL at the end. */
const aigw_price_t *aigw_catalog_row(const aigw_catalog_t *cat, int index);

/**
 * 1 if this field counts tokens (a price per million), 0 if it counts items
 * (searches, images, seconds of audio: a price for one).
 */
int aigw_price_is_token(aigw_usage_field_t field);

/**
 * What these counts cost. Parts of a bucket that have a price of their own
 * (reasoning, audio, image) are priced at it and taken out of the bucket;
 * without one they cost what the bucket costs. Parts of the input are taken
 * out of the uncached input; what is more than that was read from a cache
 * and costs what the cache costs. A cache read or write without a price of
 * its own costs the input rate. Images and seconds of audio without a price
 * cost nothing beside counted tokens; searches never do.
 * @return AIGW_OK
 *         AIGW_AGAIN     a count that is not zero has no price, or nothing
 *                        is known: there is no cost
 *         AIGW_MALFORMED the parts of the output are more than the output:
 *                        there is no cost
 *         AIGW_TOO_BIG   overflow
 */
aigw_rc_t aigw_price_cost(const aigw_price_t *price, const aigw_usage_t *u,
                          aigw_money_t *cost);

#endif
