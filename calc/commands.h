/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function a command: from its command line to its exit status.
 */
#ifndef AIGW_CALC_COMMANDS_H
#define AIGW_CALC_COMMANDS_H

#include "options.h"
#include "price.h"

/**
 * Sum usage logs and print the table.
 * @param argv argv[0] is the command's name
 */
aigw_exit_t aigw_command_usage(int argc, char **argv, apr_pool_t *pool);

/** Print what a month costs per model. */
aigw_exit_t aigw_command_prices(int argc, char **argv, apr_pool_t *pool);

/** Check a published table against its own inputs. */
aigw_exit_t aigw_command_audit(int argc, char **argv, apr_pool_t *pool);

/** What a top-up really costs. */
aigw_exit_t aigw_command_fx(int argc, char **argv, apr_pool_t *pool);

/** Compare two logs. */
aigw_exit_t aigw_command_perf(int argc, char **argv, apr_pool_t *pool);

/** How many machines a gain in capacity saves. */
aigw_exit_t aigw_command_servers(int argc, char **argv, apr_pool_t *pool);

/** When an outlay is paid back. */
aigw_exit_t aigw_command_breakeven(int argc, char **argv, apr_pool_t *pool);

/** What providers state of themselves, and what logs measured. */
aigw_exit_t aigw_command_providers(int argc, char **argv, apr_pool_t *pool);

/**
 * Load a price file, telling on standard error what is wrong with it.
 * @return the catalog, NULL on failure
 */
aigw_catalog_t *aigw_command_catalog(const char *path, apr_pool_t *pool);

/**
 * Money as the options want it: exact in json and csv unless --digits is
 * given, else rounded.
 * @param digits of text when --digits is not given
 */
const char *aigw_command_money(const aigw_options_t *opt, int digits,
                               aigw_money_t amount, apr_pool_t *pool);

/** Print, and tell on standard error if that failed. */
aigw_exit_t aigw_command_print(const aigw_table_t *table,
                               const aigw_options_t *opt);

#endif
