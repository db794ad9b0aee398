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

/** Length of the well-formed UTF-8 character of 2 to 4 bytes at @a s, 0 if it
 * is none; up to 3 bytes behind it are read. */
int aigw_fast_utf8(const unsigned char *s);

/** The index of a key of the usage record ("tenant"), -1 if there is none. */
int aigw_fast_key(const aigw_fast_t *fast, const char *name);

/** Where in the record its member is: the same for no two keys. */
apr_size_t aigw_fast_member(const aigw_fast_t *fast, int key);

/**
 * Set a key's member from plain text, as a note of an access log has it.
 * @param text ends with a NUL, which is not counted in @a n; kept by @a rec
 * @return 1, or 0 if it is no value of this key
 */
int aigw_fast_set(aigw_fast_t *fast, int key, char *text, apr_size_t n,
                  aigw_record_t *rec);

#endif
