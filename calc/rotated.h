/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of rotated logs: usage.log.2.gz, usage.log.1, usage.log and
 * usage.log-20261129.zst are one set.  It only looks at names.
 */
#ifndef AIGW_CALC_ROTATED_H
#define AIGW_CALC_ROTATED_H

#include <apr_pools.h>
#include <apr_tables.h>

/** Sort logs of one set by time, the oldest first; a set stands where the
 * first of it stood. @param files of const char * */
void aigw_rotated_sort(apr_array_header_t *files, apr_pool_t *pool);

/** Push the other logs of a log's set that are in its folder onto @a files,
 * in any order. */
void aigw_rotated_find(const char *path, apr_array_header_t *files,
                       apr_pool_t *pool);

#endif
