/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a log, one at a time, in memory that does not grow with the log.
 * It knows nothing of what a line means.
 */
#ifndef AIGW_CALC_READER_H
#define AIGW_CALC_READER_H

#include <apr_pools.h>
#include "slice.h"

/** A longer line is handed out as too long and skipped to its end. */
#define AIGW_LINE_MAX (1024 * 1024)

typedef struct aigw_reader_t aigw_reader_t;

/**
 * Open a log; "-" is standard input.
 * @param pool the buffer is allocated from it, and closing is its cleanup
 * @return APR_SUCCESS or what the system said
 */
apr_status_t aigw_reader_open(aigw_reader_t **reader, const char *path,
                              apr_pool_t *pool);

/**
 * The next line, without its newline. It lives until the next call.
 * @return AIGW_OK
 *         AIGW_TOO_BIG  a line of more than AIGW_LINE_MAX bytes was skipped
 *         AIGW_DONE     the log has ended
 *         AIGW_FAILED   it can't be read further; see aigw_reader_status()
 */
aigw_rc_t aigw_reader_line(aigw_reader_t *reader, aigw_slice_t *line);

/** The number of the last line handed out, from 1. */
apr_uint64_t aigw_reader_number(const aigw_reader_t *reader);

/** 1 if the last line handed out had no newline: the log ends in it. */
int aigw_reader_torn(const aigw_reader_t *reader);

/** Why reading failed. */
apr_status_t aigw_reader_status(const aigw_reader_t *reader);

#endif
