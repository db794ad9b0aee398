/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options by table.  It checks form and range and opens nothing.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <apr_strings.h>
#include "args.h"

#define ROWS_MAX 40
#define FIRST 256

static const aigw_arg_t common[] = {{"format", AIGW_ARG_TEXT, 0, "FORMAT",
                                     "text (default), markdown, csv, "
                                     "json"},
                                    {"digits", AIGW_ARG_TEXT, 0, "N",
                                     "decimals, 0 to 15"},
                                    {"round", AIGW_ARG_TEXT, 0, "MODE",
                                     "half-even (default), half-up, trunc"},
                                    {"help", AIGW_ARG_FLAG, 0, NULL,
                                     "this text"}};

#define AT(member) offsetof(aigw_options_t, member)

static const aigw_arg_t of_logs[] =
    {{"log-format", AIGW_ARG_TEXT, AT(log_format), "F",
      "access logs: common, combined, ...; see usage"},
     {"rotated", AIGW_ARG_FLAG, AT(rotated), NULL,
      "the rotated logs beside each FILE too, by age"},
     {"keep-duplicates", AIGW_ARG_FLAG, AT(keep_duplicates), NULL,
      "count a record again whose id was there before"},
     {"strict", AIGW_ARG_FLAG, AT(strict), NULL,
      "stop at the first bad line, with status 1"}};

enum { N_OF_LOGS = 4 };

enum { FORMAT = 0, DIGITS, ROUND, HELP, N_COMMON };

static int count_listed(const aigw_args_t *args)
{
    int n = 0;

    while (args->rows[n].name) {
        n++;
    }
    return n;
}

/* Without the common ones. */
static int count_rows(const aigw_args_t *args)
{
    return count_listed(args) + (args->logs ? N_OF_LOGS : 0);
}

static const aigw_arg_t *row_at(const aigw_args_t *args, int i)
{
    int listed = count_listed(args), n = count_rows(args);

    if (i < listed) {
        return &args->rows[i];
    }
    return i < n ? &of_logs[i - listed] : &common[i - n];
}

/* -- help ---------------------------------------------------------------- */

static void help_row(const aigw_arg_t *row)
{
    const char *line = row->help, *end;
    int n = printf("  --%s%s%s", row->name, row->form ? "=" : "",
                   row->form ? row->form : "");

    if (n > 24) {
        putchar('\n');
        n = 0;
    }
    for (;; line = end + 1) {
        end = strchr(line, '\n');
        printf("%*s%.*s\n", 26 - n, "",
               (int)(end ? end - line : (long)strlen(line)), line);
        n = 0;
        if (!end) {
            return;
        }
    }
}

static void help(const aigw_args_t *args)
{
    int n = count_rows(args) + N_COMMON, i;

    printf("Usage: aigw-calc %s %s\n\n%s\n", args->name, args->takes,
           args->about);
    for (i = 0; i < n; i++) {
        help_row(row_at(args, i));
    }
    printf("\nExample: %s\n", args->example);
}

/* -- values -------------------------------------------------------------- */

static aigw_slice_t whole(const char *text)
{
    return aigw_slice(text, strlen(text));
}

static const char *read_decimal(const char *text, aigw_arg_decimal_t *to)
{
    if (aigw_money_parse(whole(text), &to->value) != AIGW_OK
        || to->value < 0) {
        return "must be a decimal number that is not negative";
    }
    to->given = 1;
    return NULL;
}

static const char *read_money(const char *text, aigw_arg_money_t *to)
{
    if (strlen(text) < 5 || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 3
        || text[3] != ':'
        || aigw_money_parse(whole(text + 4), &to->amount) != AIGW_OK
        || to->amount < 0) {
        return "must be an amount such as CNY:100";
    }
    memcpy(to->currency, text, 3);
    to->currency[3] = '\0';
    to->given = 1;
    return NULL;
}

static const char *read_count(const char *text, apr_uint64_t *to)
{
    return aigw_slice_u64(whole(text), to) != AIGW_OK
                   || *to > APR_UINT64_C(9007199254740992)
               ? "must be a whole number from 0 to 9007199254740992"
               : NULL;
}

static const char *read_zone(const char *text, const char **to)
{
    *to = text;
    return aigw_day_zone(text) == AIGW_OK
               ? NULL
               : "must be local, UTC or a name of the time zone data base "
                 "such as Europe/Berlin (Debian package tzdata)";
}

static const char *read_list(const char *text, apr_array_header_t **to)
{
    APR_ARRAY_PUSH(*to, const char *) = text;
    return NULL;
}

/* NULL, or what is allowed. */
static const char *read_row(const aigw_arg_t *row, char *base,
                            const char *text)
{
    void *to = base + row->at;

    switch (row->kind) {
    case AIGW_ARG_LIST:
        return read_list(text, to);
    case AIGW_ARG_FLAG:
        *(int *)to = 1;
        return NULL;
    case AIGW_ARG_COUNT:
        return read_count(text, to);
    case AIGW_ARG_DAY:
        return aigw_day_parse(text, to) == AIGW_OK
                   ? NULL
                   : "must be a day such as 2026-11-30";
    case AIGW_ARG_DECIMAL:
        return read_decimal(text, to);
    case AIGW_ARG_MONEY:
        return read_money(text, to);
    case AIGW_ARG_ZONE:
        return read_zone(text, to);
    default:
        *(const char **)to = text;
        return NULL;
    }
}

static const char *read_common(aigw_options_t *opt, int which,
                               const char *text)
{
    switch (which) {
    case FORMAT:
        return aigw_options_format(opt, text);
    case ROUND:
        return aigw_options_round(opt, text);
    default:
        return aigw_options_digits(opt, text);
    }
}

/* -- a command line ------------------------------------------------------ */

static aigw_rc_t refuse(const aigw_args_t *args, const char *what,
                        const char *value, const char *allowed)
{
    fprintf(stderr, "aigw-calc %s: %s%s%s%s %s\n", args->name,
            value ? "--" : "", what, value ? "=" : "", value ? value : "",
            allowed);
    fprintf(stderr, "Try 'aigw-calc %s --help'.\n", args->name);
    return AIGW_REFUSED;
}

static void fill(const aigw_args_t *args, struct option *options, int n)
{
    const aigw_arg_t *row;
    int i;

    memset(options, 0, sizeof(*options) * ((size_t)n + 1));
    for (i = 0; i < n; i++) {
        row = row_at(args, i);
        options[i].name = row->name;
        options[i].has_arg = row->form ? required_argument : no_argument;
        options[i].val = FIRST + i;
    }
}

static aigw_rc_t read_all(const aigw_args_t *args, aigw_options_t *opt,
                          int argc, char **argv)
{
    struct option options[ROWS_MAX + 1];
    const char *allowed;
    int own = count_rows(args), which;

    fill(args, options, own + N_COMMON);
    optind = 1;
    opterr = 0;
    while ((which = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (which == ':' || which == '?') {
            return refuse(args, argv[optind - 1], NULL,
                          which == ':' ? "needs a value"
                                       : "is not an option of this command");
        }
        which -= FIRST;
        if (which == own + HELP) {
            help(args);
            return AIGW_DONE;
        }
        allowed = which < own
                      ? read_row(row_at(args, which), (char *)opt, optarg)
                      : read_common(opt, which - own, optarg);
        if (allowed) {
            return refuse(args, options[which].name, optarg, allowed);
        }
    }
    return AIGW_OK;
}

aigw_rc_t aigw_args_read(const aigw_args_t *args, aigw_options_t *opt,
                         int argc, char **argv, apr_pool_t *pool)
{
    aigw_rc_t rc;
    int i;

    aigw_options_defaults(opt, pool);
    for (i = 0; args->rows[i].name; i++) {
        if (args->rows[i].kind == AIGW_ARG_LIST) {
            *(apr_array_header_t **)((char *)opt + args->rows[i].at) =
                apr_array_make(pool, 4, sizeof(const char *));
        }
    }
    rc = read_all(args, opt, argc, argv);
    if (rc != AIGW_OK) {
        return rc;
    }
    opt->files = (const char **)argv + optind;
    opt->n_files = argc - optind;
    if (opt->n_files < args->least || opt->n_files > args->most) {
        return refuse(args, "its form is:", NULL, args->takes);
    }
    return AIGW_OK;
}

aigw_exit_t aigw_args_refuse(const aigw_args_t *args, const char *why)
{
    refuse(args, why, NULL, "");
    return AIGW_EXIT_USAGE;
}

aigw_exit_t aigw_args_fail(const char *why, apr_pool_t *pool)
{
    fprintf(stderr, "aigw-calc: %s\n", aigw_text_safe(pool, why));
    return AIGW_EXIT_INPUT;
}
