/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command's options as rows of a table: where a value goes and what form
 * it has.  The help text is made of the same rows, so that no option is
 * without one.  A value that is not understood is refused with what is
 * allowed; nothing is guessed.
 */
#ifndef AIGW_CALC_ARGS_H
#define AIGW_CALC_ARGS_H

#include <stddef.h>
#include "options.h"

typedef enum {
    AIGW_ARG_TEXT = 0, /* const char * */
    AIGW_ARG_LIST,     /* apr_array_header_t *, of const char *; may come
                          again */
    AIGW_ARG_FLAG,     /* int */
    AIGW_ARG_COUNT,    /* apr_uint64_t, 0 to 2^53 */
    AIGW_ARG_DAY,      /* aigw_day_t */
    AIGW_ARG_DECIMAL,  /* aigw_arg_decimal_t, not negative */
    AIGW_ARG_MONEY,    /* aigw_arg_money_t: "CNY:100" */
    AIGW_ARG_ZONE      /* const char *; the zone is set */
} aigw_arg_kind_t;

typedef struct {
    int given;
    aigw_money_t value;
} aigw_arg_decimal_t;

typedef struct {
    int given;
    char currency[4];
    aigw_money_t amount;
} aigw_arg_money_t;

typedef struct {
    const char *name;
    aigw_arg_kind_t kind;
    size_t at;        /* offset in the command's own struct */
    const char *form; /* "DAY" in the help; NULL for a flag */
    const char *help; /* one line or several, each below 50 columns */
} aigw_arg_t;

typedef struct {
    const char *name;  /* of the command */
    const char *takes; /* "[OPTION...] FILE..." */
    const char *about; /* a paragraph with line ends */
    const char *example;
    const aigw_arg_t *rows; /* the last one has no name */
    int least, most;        /* files */
    int logs;               /* 1: they are logs, with their options */
} aigw_args_t;

/**
 * Read a command line into @a opt, which is the first member of the command's
 * own struct; --format, --digits, --round and --help are read for every
 * command.
 * @param argv argv[0] is the command's name
 * @return AIGW_OK      go on
 *         AIGW_DONE    help was asked for and printed
 *         AIGW_REFUSED the reason was printed on standard error
 */
aigw_rc_t aigw_args_read(const aigw_args_t *args, aigw_options_t *opt,
                         int argc, char **argv, apr_pool_t *pool);

/** Say what is wrong with a command line; AIGW_EXIT_USAGE. */
aigw_exit_t aigw_args_refuse(const aigw_args_t *args, const char *why);

/** Say what is wrong with the input, made safe to print; AIGW_EXIT_INPUT. */
aigw_exit_t aigw_args_fail(const char *why, apr_pool_t *pool);

#endif
