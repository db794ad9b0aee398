/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: what each command takes, its help text, and the exit
 * codes.  It checks form and range; it opens nothing.
 */
#ifndef AIGW_CALC_OPTIONS_H
#define AIGW_CALC_OPTIONS_H

#include <apr_pools.h>
#include <apr_tables.h>
#include "currency.h"
#include "day.h"
#include "decimal.h"
#include "tables.h"
#include "tally.h"

/** How aigw-calc ends; documented in its manual page. */
typedef enum {
    AIGW_EXIT_OK = 0,
    AIGW_EXIT_BAD_LINES = 1, /* under --strict */
    AIGW_EXIT_USAGE = 2,     /* the command line is wrong */
    AIGW_EXIT_INPUT = 3,   /* a log or price file can't be read or is wrong */
    AIGW_EXIT_TOO_BIG = 4, /* a figure does not fit: nothing is printed */
    AIGW_EXIT_OUTPUT = 5   /* the result could not be written */
} aigw_exit_t;

typedef struct {
    /* both commands */
    aigw_format_t format;
    aigw_round_t round;
    int digits;         /* -1: as fits the format */
    const char *prices; /* price file; NULL: none given */
    const char **files; /* logs, "-" is standard input */
    int n_files;
    /* how logs are read */
    const char *log_format; /* NULL: usage logs */
    const char *state;      /* file; NULL: none */
    int strict, threads, rotated, follow, keep_duplicates;
    /* usage */
    aigw_by_t by[AIGW_BY_MAX];
    int n_by;
    aigw_day_t since, until; /* 0: open; both days inclusive */
    const char *tz;
    apr_uint64_t max_groups;
    /* prices */
    apr_uint64_t calls, days, input, output, cached;
    int tokens_given;           /* --input, --output or --cached was */
    apr_array_header_t *models; /* of const char * */
    aigw_rate_t rate, relay;
    int has_rate, has_relay;
    aigw_day_t on; /* 0: today */
} aigw_options_t;

/**
 * Read the options of a command.
 * @param argv argv[0] is the command's name
 * @return AIGW_OK     go on
 *         AIGW_DONE   help was asked for and printed
 *         AIGW_REFUSED the reason was printed on standard error
 */
aigw_rc_t aigw_options_usage(aigw_options_t *opt, int argc, char **argv,
                             apr_pool_t *pool);
aigw_rc_t aigw_options_prices(aigw_options_t *opt, int argc, char **argv,
                              apr_pool_t *pool);

/** What holds where no option says otherwise. */
void aigw_options_defaults(aigw_options_t *opt, apr_pool_t *pool);

/* The values of options that every command has: NULL, or what is allowed. */
const char *aigw_options_format(aigw_options_t *opt, const char *text);
const char *aigw_options_round(aigw_options_t *opt, const char *text);
const char *aigw_options_digits(aigw_options_t *opt, const char *text);

/** Print what aigw-calc does and which commands it has. */
void aigw_options_help(FILE *out);

#endif
