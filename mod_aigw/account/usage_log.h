/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger's file: opened as root at start, one write(2) a record.
 * It knows bytes, not what they mean.
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

/** child_init: let go of what only the parent needs. */
void aigw_usage_log_child_init(void);

/**
 * Append one line (its newline included) by one write(2). May block on a
 * pipe that nobody reads: never called on the relay thread.
 * @return APR_SUCCESS or the error, which was logged (once a minute at most)
 */
apr_status_t aigw_usage_log_write(aigw_usage_log_t *log, const char *line,
                                  apr_size_t n);

#endif
