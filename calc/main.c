/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc: a table of commands and what they share.  It works on files and
 * standard streams alone: no network, no server, no state.
 */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <apr_general.h>
#include <apr_strings.h>
#include "commands.h"

static const struct {
    const char *name;
    aigw_exit_t (*run)(int argc, char **argv, apr_pool_t *pool);
} commands[] = {{"usage", aigw_command_usage},
                {"prices", aigw_command_prices},
                {"audit", aigw_command_audit},
                {"fx", aigw_command_fx},
                {"perf", aigw_command_perf},
                {"servers", aigw_command_servers},
                {"breakeven", aigw_command_breakeven},
                {"providers", aigw_command_providers},
                {"invoice", aigw_command_invoice},
                {"forecast", aigw_command_forecast},
                {"report", aigw_command_report}};

#define N_COMMANDS ((int)(sizeof(commands) / sizeof(commands[0])))

aigw_catalog_t *aigw_command_catalog(const char *path, apr_pool_t *pool)
{
    aigw_catalog_t *cat;
    const char *err;

    if (aigw_catalog_load(&cat, path, pool, &err) != APR_SUCCESS) {
        fprintf(stderr, "aigw-calc: %s\n", aigw_text_safe(pool, err));
        if (strcmp(path, AIGW_PRICES_FILE) == 0) {
            fputs("aigw-calc: this is where the installed price file should "
                  "be; --prices FILE names another\n",
                  stderr);
        }
        return NULL;
    }
    return cat;
}

const char *aigw_command_money(const aigw_options_t *opt, int digits,
                               aigw_money_t amount, apr_pool_t *pool)
{
    char *text = apr_palloc(pool, AIGW_MONEY_TEXT);

    if (opt->digits < 0
        && (opt->format == AIGW_FORMAT_JSON
            || opt->format == AIGW_FORMAT_CSV)) {
        aigw_money_text(amount, text);
        return text;
    }
    aigw_money_round_text(amount, opt->digits < 0 ? digits : opt->digits,
                          opt->round, text);
    return text;
}

aigw_exit_t aigw_command_print(const aigw_table_t *table,
                               const aigw_options_t *opt)
{
    if (!aigw_table_print(table, opt->format, stdout)) {
        fputs("aigw-calc: the result could not be written\n", stderr);
        return AIGW_EXIT_OUTPUT;
    }
    return AIGW_EXIT_OK;
}

/* Names are UTF-8 whatever the locale is, as under cron it is "C". */
static void choose_locale(void)
{
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0) {
        setlocale(LC_CTYPE, "C.UTF-8");
    }
}

static aigw_exit_t run_command(int argc, char **argv, apr_pool_t *pool)
{
    const char *all = commands[0].name;
    int i;

    for (i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[0], commands[i].name) == 0) {
            return commands[i].run(argc, argv, pool);
        }
    }
    for (i = 1; i < N_COMMANDS; i++) {
        all = apr_pstrcat(pool, all, i + 1 < N_COMMANDS ? ", " : " and ",
                          commands[i].name, NULL);
    }
    fprintf(stderr,
            "aigw-calc: '%s' is not a command; there are %s\n"
            "Try 'aigw-calc --help'.\n",
            aigw_text_safe(pool, argv[0]), all);
    return AIGW_EXIT_USAGE;
}

static aigw_exit_t run(int argc, char **argv, apr_pool_t *pool)
{
    if (argc < 2) {
        aigw_options_help(stderr);
        return AIGW_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        aigw_options_help(stdout);
        return AIGW_EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("aigw-calc " AIGW_VERSION);
        return AIGW_EXIT_OK;
    }
    return run_command(argc - 1, argv + 1, pool);
}

int main(int argc, char **argv)
{
    apr_pool_t *pool;
    aigw_exit_t end;

    choose_locale();
    if (apr_initialize() != APR_SUCCESS
        || apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        fputs("aigw-calc: out of memory\n", stderr);
        return AIGW_EXIT_INPUT;
    }
    end = run(argc, argv, pool);
    apr_pool_destroy(pool);
    apr_terminate();
    if (fflush(stdout) != 0 && end == AIGW_EXIT_OK) {
        end = AIGW_EXIT_OUTPUT;
    }
    return (int)end;
}
