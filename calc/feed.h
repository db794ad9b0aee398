/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logs named on the command line as one run of pieces: rotated logs in
 * the order of time, logs that grow followed, and what an earlier run has
 * read left out.
 */
#ifndef AIGW_CALC_FEED_H
#define AIGW_CALC_FEED_H

#include "options.h"
#include "reader.h"

typedef struct aigw_feed_t aigw_feed_t;

/** Where a piece is from. */
typedef struct {
    const char *name;    /* of the log, safe to print */
    apr_uint64_t *lines; /* of it that were dealt with; for who does so */
    const char *why;     /* what failed */
} aigw_feed_at_t;

/**
 * @param pool for the feed alone, as its thread may be another one
 * @return the feed, or NULL with a sentence on standard error
 */
aigw_feed_t *aigw_feed_make(const aigw_options_t *opt, apr_pool_t *pool);

/**
 * The next piece. One thread at a time.
 * @return AIGW_OK, AIGW_DONE, or AIGW_FAILED with at->why
 */
aigw_rc_t aigw_feed_next(aigw_feed_t *feed, aigw_chunk_t *chunk,
                         aigw_feed_at_t *at);

/**
 * Remember (--state) that all pieces have been dealt with.
 * @return 1, or 0 with a sentence on standard error
 */
int aigw_feed_save(aigw_feed_t *feed);

#endif
