/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access logs of httpd, read by the LogFormat that wrote them.  What a
 * directive says about a request goes into the usage record; the others are
 * read over, and one that httpd does not have is refused by name.
 */
#ifndef AIGW_CALC_LOGFORMAT_H
#define AIGW_CALC_LOGFORMAT_H

#include "fastline.h"

typedef struct aigw_logformat_t aigw_logformat_t;

/**
 * @param text "common", "combined", "vhost_combined", or a format as it
 *             stands in httpd.conf, with or without the backslashes before
 *             its quotes
 * @param fast for the notes; borrowed
 * @param why  on failure a phrase
 * @return the format, for one thread, or NULL
 */
aigw_logformat_t *aigw_logformat_make(const char *text, aigw_fast_t *fast,
                                      apr_pool_t *pool, const char **why);

/**
 * Read one line.
 * @param line without its newline, with AIGW_FAST_SLACK bytes behind it; its
 *             strings are ended with NULs inside it, the last one behind it
 * @param pool @a why is allocated from it
 * @return AIGW_OK, or AIGW_MALFORMED with *why, a phrase
 */
aigw_rc_t aigw_logformat_read(aigw_logformat_t *format, char *line,
                              apr_size_t n, aigw_record_t *rec,
                              apr_pool_t *pool, const char **why);

#endif
