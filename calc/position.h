/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far logs have been read, kept in a file between two runs.  A log is
 * known by its first bytes, so that it is found again when it was renamed,
 * copied or packed, and is not mistaken for the log that took its name or
 * its inode.
 */
#ifndef AIGW_CALC_POSITION_H
#define AIGW_CALC_POSITION_H

#include <apr_pools.h>
#include <apr_tables.h>

/** First bytes of a log that are looked at. */
#define AIGW_HEAD_SIZE 4096

typedef struct {
    apr_uint64_t n; /* bytes; 0: nothing is known */
    apr_uint64_t hash;
} aigw_head_t;

typedef struct {
    aigw_head_t head;
    apr_uint64_t offset; /* unpacked bytes that have been read */
    apr_uint64_t device, inode;
    const char *path;
    int found; /* in this run */
} aigw_position_t;

aigw_head_t aigw_head_of(const char *bytes, apr_size_t n);

/** The first bytes of a log that can be opened by name, unpacked. @return
 * their number, 0 if it can't be read */
apr_size_t aigw_head_read(const char *path, char *buf, apr_pool_t *pool);

/**
 * Read a state file; one that is not there holds nothing.
 * @param all aigw_position_t are pushed onto it
 * @return NULL, or what is wrong
 */
const char *aigw_position_load(const char *path, apr_array_header_t *all,
                               apr_pool_t *pool);

/**
 * Write a state file anew, in one step.
 * @return NULL, or what is wrong
 */
const char *aigw_position_save(const char *path, const apr_array_header_t *all,
                               apr_pool_t *pool);

/** The one that a log with these first bytes is at, the furthest of several;
 * NULL if it was never read. */
aigw_position_t *aigw_position_find(const apr_array_header_t *all,
                                    const char *bytes, apr_size_t n);

#endif
