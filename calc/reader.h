/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log as pieces of whole lines, in memory that does not grow with the log.
 * It knows nothing of what a line means.
 */
#ifndef AIGW_CALC_READER_H
#define AIGW_CALC_READER_H

#include <apr_pools.h>
#include "slice.h"

/** A longer line is told of as too long and skipped to its end. */
#define AIGW_LINE_MAX (1024 * 1024)

/** Bytes of a piece, as long as no line is longer. */
#define AIGW_CHUNK_SIZE (64 * 1024)

/** Bytes behind a piece that may be read and written. */
#define AIGW_CHUNK_SLACK 64

/** Whole lines, each with its newline. Its memory is used again and again. */
typedef struct {
    char *buf;
    apr_size_t room;   /* without the slack */
    apr_size_t n;      /* bytes of lines */
    unsigned torn : 1; /* the last one has no newline: the log ends in it */
    unsigned too_long : 1; /* behind them a line was skipped */
} aigw_chunk_t;

/** An empty piece whose memory ends with @a pool. */
aigw_chunk_t *aigw_chunk_make(apr_pool_t *pool);

typedef struct aigw_reader_t aigw_reader_t;

/**
 * Open a log, packed or not; "-" is standard input.
 * @param pool everything is allocated from it, and closing is its cleanup
 * @return APR_SUCCESS or what the system said
 */
apr_status_t aigw_reader_open(aigw_reader_t **reader, const char *path,
                              apr_pool_t *pool);

/** Whether a last line without a newline is handed out (it is, unless told
 * otherwise) or left, as it may still be being written. */
void aigw_reader_keep_torn(aigw_reader_t *reader, int keep);

/**
 * The next lines.
 * @return AIGW_OK
 *         AIGW_DONE     nothing more is there; if the log grows, more may
 *                       come, unless it is packed
 *         AIGW_FAILED   it can't be read further; see aigw_reader_why()
 */
aigw_rc_t aigw_reader_next(aigw_reader_t *reader, aigw_chunk_t *chunk);

/** Read over the first bytes of an opened log. As aigw_reader_next(). */
aigw_rc_t aigw_reader_skip(aigw_reader_t *reader, apr_uint64_t bytes);

/** Unpacked bytes up to the end of the lines handed out. */
apr_uint64_t aigw_reader_offset(const aigw_reader_t *reader);

/** Bytes of a line without an end that were left. */
apr_size_t aigw_reader_left(const aigw_reader_t *reader);

int aigw_reader_is_packed(const aigw_reader_t *reader);
int aigw_reader_fd(const aigw_reader_t *reader);

/** Why reading failed, a phrase. */
const char *aigw_reader_why(const aigw_reader_t *reader);

#endif
