/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files read whole, and rows of CSV out of them.  Not for logs, which
 * have no bound.
 */
#ifndef AIGW_CALC_TEXTFILE_H
#define AIGW_CALC_TEXTFILE_H

#include <apr_pools.h>
#include <apr_tables.h>
#include "slice.h"

/**
 * Read a regular file of at most @a max bytes; a NUL stands behind it and no
 * NUL is in it.
 * @param err on failure a sentence that names the file
 * @return AIGW_OK, or AIGW_FAILED
 */
aigw_rc_t aigw_textfile_read(char **text, const char *path, apr_size_t max,
                             apr_pool_t *pool, const char **err);

/**
 * The next row of CSV: commas, quotes doubled inside quotes, LF or CRLF;
 * blanks around a field that is not quoted are no part of it.
 * @param p    where to go on; moved. The text is changed.
 * @param line counted on
 * @return array of const char *, NULL at the end
 */
apr_array_header_t *aigw_csv_row(char **p, int *line, apr_pool_t *pool);

#endif
