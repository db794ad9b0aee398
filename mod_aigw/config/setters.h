/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of config/ share and nobody else needs: the directives'
 * setters, the rule of where a directive may stand, and the list of
 * Locations that the cross-checks walk.
 *
 * Setters answer with a sentence (what was read, what is allowed, one
 * example); httpd puts file and line in front of it.
 */
#ifndef AIGW_SETTERS_H
#define AIGW_SETTERS_H

#include "config.h"

/** Where a directive may stand. */
#define AIGW_IN_SERVER   1
#define AIGW_IN_VHOST    2
#define AIGW_IN_LOCATION 4

/** The columns of directives.def that httpd's command_rec has no room for;
 * cmd->info points here. */
typedef struct {
    int places;
    const char *syntax;
} aigw_directive_info_t;

/**
 * The first thing every setter asks: may this directive stand here?
 * A Location counts only if it is a literal one.
 * @return NULL, or a sentence that names the section and what is allowed
 */
const char *aigw_config_place(cmd_parms *cmd);

/** "file:line" of the directive, in cmd->pool. */
const char *aigw_config_where(cmd_parms *cmd);

/** Is the directive inside a Location (so that it belongs to the
 * aigw_dir_t)? */
int aigw_config_in_location(cmd_parms *cmd);

/** A Location that holds AIGWEngine or AIGWKeyFile; read by check.c. */
typedef struct {
    server_rec *server;
    const char *path;
    aigw_dir_t *dir;
} aigw_place_t;

/** Remember the Location of the directive (once). */
void aigw_config_note_location(cmd_parms *cmd, aigw_dir_t *dir);

/** httpd gives a setter at most so many words and drops the others without a
 * word: a directive with that many is refused. */
#define AIGW_MAX_ARGS 64

/* The setters of the longer directives; the short ones are static. */
const char *aigw_config_set_upstream(cmd_parms *cmd, void *dir, int argc,
                                     char *const argv[]);
const char *aigw_config_set_model(cmd_parms *cmd, void *dir, int argc,
                                  char *const argv[]);

/** Start with an empty aigw_main_t (merge.c). */
void aigw_config_forget(apr_pool_t *pconf);

/** The upstream of that name, NULL if there is none. */
aigw_upstream_t *aigw_config_upstream(const char *name);

/** The server's own aigw_server_t. */
aigw_server_t *aigw_config_server_of(cmd_parms *cmd);

/** Work out max_streams_default (capacity.c). */
void aigw_capacity_work_out(aigw_main_t *conf);

/** Warn where AIGWMaxStreams asks for more than the MPM's settings and the
 * descriptor limit carry. */
void aigw_capacity_warn(const aigw_main_t *conf, server_rec *s);

#endif
