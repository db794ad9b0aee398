/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of some logs, one after the other.  A line that is no record
 * is never passed over in silence: it is counted, the first ones are named
 * with file and line, and under --strict the first one ends the run.  A
 * record whose id was there before is counted and left out.
 */
#ifndef AIGW_CALC_LOGS_H
#define AIGW_CALC_LOGS_H

#include "options.h"
#include "record.h"

typedef struct {
    apr_uint64_t records;
    apr_uint64_t bad;
    apr_uint64_t duplicates;
    int window_passed; /* duplicates that lie far apart may have been missed */
    struct aigw_feed_t *feed;
} aigw_logs_t;

/**
 * Called with each record, in the order of the logs; it and its strings die
 * with the call. With --threads it is called from several threads, never two
 * at a time.
 * @return AIGW_OK, or AIGW_TOO_BIG to end the run
 */
typedef aigw_rc_t (*aigw_logs_fn)(void *ctx, const aigw_record_t *rec);

/**
 * Read opt->files. What is wrong is told on standard error.
 * @return AIGW_EXIT_OK, or how the program has to end
 */
aigw_exit_t aigw_logs_read(const aigw_options_t *opt, aigw_logs_fn fn,
                           void *ctx, aigw_logs_t *logs, apr_pool_t *pool);

/**
 * To be called when the result has been written: what was read is then left
 * out by the next run with the same --state.
 * @return AIGW_EXIT_OK, or AIGW_EXIT_OUTPUT
 */
aigw_exit_t aigw_logs_done(aigw_logs_t *logs);

#endif
