/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function a command: from its command line to its exit status.
 */
#ifndef AIGW_CALC_COMMANDS_H
#define AIGW_CALC_COMMANDS_H

#include "options.h"
#include "price.h"
#include "record.h"

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

/** A month's bill of one tenant. */
aigw_exit_t aigw_command_invoice(int argc, char **argv, apr_pool_t *pool);

/** What this month will have cost. */
aigw_exit_t aigw_command_forecast(int argc, char **argv, apr_pool_t *pool);

/** One page of HTML. */
aigw_exit_t aigw_command_report(int argc, char **argv, apr_pool_t *pool);

/**
 * Load a price file, telling on standard error what is wrong with it.
 * @return the catalog, NULL on failure
 */
aigw_catalog_t *aigw_command_catalog(const char *path, apr_pool_t *pool);

/**
 * What a record costs: its own cost, or, with a catalog, the price in force
 * when it was made.
 * @return AIGW_OK; AIGW_AGAIN if it has no cost; AIGW_TOO_BIG
 */
aigw_rc_t aigw_command_cost(const aigw_catalog_t *cat,
                            const aigw_record_t *rec, aigw_money_t *cost,
                            const char **currency);

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
