/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that reads the usage log from its standard input, started as
 * CustomLog starts its own, with one difference: it is never killed at a
 * restart.  Streams outlive the generation that began them, and their
 * records must still be read.  It sees the end of its input when the last
 * child that may write to it has ended, and then ends by itself.
 */
#ifndef AIGW_LOG_PROGRAM_H
#define AIGW_LOG_PROGRAM_H

#include <httpd.h>

typedef struct aigw_log_program_t aigw_log_program_t;

/**
 * Start it (parent, open_logs). When it ends too early it is started again,
 * on the same pipe, and an error line tells.
 * @param spec "|program arguments", "||" likewise, "|$command" by the shell;
 *             in ServerRoot
 * @param why  on failure what failed
 * @return NULL on failure; pconf: when that goes, the pipe is closed here
 */
aigw_log_program_t *aigw_log_program_start(const char *spec, server_rec *s,
                                           apr_pool_t *pconf,
                                           const char **why);

/** The descriptor to write to. */
int aigw_log_program_fd(const aigw_log_program_t *prog);

/** In a child: let go of the end that only the parent needs, so that a write
 * to a program that is gone fails and does not wait for ever. */
void aigw_log_program_child_init(aigw_log_program_t *prog);

#endif
