/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines with an id of their own. The id is an argument: the list with
 * cause and remedy is docs/log-ids.md. A line about a request carries the
 * request's id. Nothing that is a key, a prompt or an answer is ever an
 * argument here.
 */
#ifndef AIGW_LOG_H
#define AIGW_LOG_H

#include <httpd.h>
#include <http_log.h>
#include <http_config.h>

APLOG_USE_MODULE(aigw);

#define AIGWNO(n) "AIGW" #n ": "

/** About a request; rid: the request's id, a string. */
#define aigw_rlog(r, rid, no, level, rv, fmt, ...)                           \
    ap_log_rerror(APLOG_MARK, level, rv, r, no "[%s] " fmt, rid,             \
                  ##__VA_ARGS__)
/** About the server. */
#define aigw_slog(s, no, level, rv, fmt, ...)                                \
    ap_log_error(APLOG_MARK, level, rv, s, no fmt, ##__VA_ARGS__)

#endif
