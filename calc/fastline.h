/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage records read at the speed of memory: one pass, strings left where
 * they stand.  It only says yes: whatever it is not sure of, wrong lines
 * included, is for aigw_record_read(), whose answer it never contradicts.
 */
#ifndef AIGW_CALC_FASTLINE_H
#define AIGW_CALC_FASTLINE_H

#include "record.h"

/** Bytes behind a line that have to be readable, whatever they are. */
#define AIGW_FAST_SLACK 32

typedef struct aigw_fast_t aigw_fast_t;

/** @param pool it is allocated from it; one a thread */
aigw_fast_t *aigw_fast_make(apr_pool_t *pool);

/**
 * Read one line, keys in any order, fastest in the order of the last line.
 * @param line without its newline; on success its strings are ended with NULs
 *             inside it and @a rec points there, otherwise it is as it was
 * @param spare room for line.n bytes, for strings with escapes; *spare moves
 *             on behind what was taken
 * @return AIGW_OK, or AIGW_AGAIN: ask aigw_record_read()
 */
aigw_rc_t aigw_fast_read(aigw_fast_t *fast, char *line, apr_size_t n,
                         char **spare, aigw_record_t *rec);

#endif
