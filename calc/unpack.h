/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a log, unpacked if it begins as gzip or zstd does.  What it
 * refuses: a stream that grows beyond what a log can be packed to, a zstd
 * window that would pass the memory allowed, other packers (by name), and
 * packed data that is broken or cut short.
 */
#ifndef AIGW_CALC_UNPACK_H
#define AIGW_CALC_UNPACK_H

#include <apr_pools.h>
#include "slice.h"

/** Unpacked, a log is at most so many times its packed size (the first
 * AIGW_RATIO_FREE bytes are not looked at). */
#define AIGW_RATIO_MAX 250
#define AIGW_RATIO_FREE (32 * 1024 * 1024)

typedef struct aigw_unpack_t aigw_unpack_t;

/**
 * @param fd   open for reading; stays the caller's
 * @param pool the state is allocated from it and ends with it
 */
aigw_unpack_t *aigw_unpack_make(int fd, apr_pool_t *pool);

/**
 * Read up to @a n bytes.
 * @param got 0 only at the end
 * @return AIGW_OK, or AIGW_FAILED (see aigw_unpack_why())
 */
aigw_rc_t aigw_unpack_read(aigw_unpack_t *unpack, char *buf, apr_size_t n,
                           apr_size_t *got);

/**
 * Go to a place behind the start, before anything was read.
 * @return AIGW_OK; AIGW_DONE if it is shorter, or if it has to be read over
 *         as it is packed or no file; AIGW_FAILED
 */
aigw_rc_t aigw_unpack_seek(aigw_unpack_t *unpack, apr_uint64_t offset);

/** 1 if it is packed; known after the first read. */
int aigw_unpack_is_packed(const aigw_unpack_t *unpack);

/** What failed, as a phrase. */
const char *aigw_unpack_why(const aigw_unpack_t *unpack);

#endif
