/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger's file: opened as root at start, one write(2) a record.
 * It knows bytes, not what they mean.  A program that reads the log can
 * lose records by standing still, but it never holds a caller.
 */
#ifndef AIGW_USAGE_LOG_H
#define AIGW_USAGE_LOG_H

#include <httpd.h>
#include "../core/slice.h"

typedef struct aigw_usage_log_t aigw_usage_log_t;

/**
 * Open every AIGWUsageLog of the configuration (open_logs hook): a file
 * (append, relative to ServerRoot) or "|program" (see log_program.h).
 * The same file or program named twice is opened once.
 * @return OK, or !OK after an error line that names the file
 */
int aigw_usage_log_open_all(apr_pool_t *pconf, apr_pool_t *plog,
                            apr_pool_t *ptemp, server_rec *s);

/**
 * child_init: let go of what only the parent needs.  When pchild goes, what
 * still waits is written for 5 s at most, and the rest counted as lost.
 * Called before the relay's own child_init, so that this happens after the
 * relay has ended and its last records were settled (cleanups run in
 * reverse).
 */
void aigw_usage_log_child_init(apr_pool_t *pchild);

/**
 * Append one line (its newline included, PIPE_BUF bytes at most) by one
 * write(2).  Never waits for a program: what its pipe does not take is
 * copied into a queue of this child and written later, in order; a queue
 * that is full (16 MiB) loses the line.  A file is written to at once, and
 * its disk may block: never called on the relay thread.
 * @return APR_SUCCESS for written or queued, or the error, which was
 *         logged (once a minute at most)
 */
apr_status_t aigw_usage_log_write(aigw_usage_log_t *log, const char *line,
                                  apr_size_t n);

#endif
