/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc breakeven: when an outlay is paid back.  Without an outlay there
 * is nothing to pay back and no such time; a saving over a profit is a rise
 * in profit and is called that.
 */
#include <stdio.h>
#include <apr_strings.h>
#include "args.h"
#include "commands.h"
#include "ratio.h"

typedef struct {
    aigw_options_t opt;
    aigw_arg_money_t outlay, saving, running, profit;
    apr_pool_t *pool;
    aigw_table_t *table;
} work_t;

enum { COL_FIGURE = 0, COL_VALUE, COL_UNIT, COL_FORMULA };

static void add(work_t *w, const char *figure, const char *value,
                const char *unit, const char *formula)
{
    const char **cells = aigw_table_cells(w->table);

    cells[COL_FIGURE] = figure;
    cells[COL_VALUE] = value;
    cells[COL_UNIT] = unit;
    cells[COL_FORMULA] = formula;
    aigw_table_row(w->table, cells);
}

static const char *plain(const work_t *w, aigw_money_t m)
{
    char *text = apr_palloc(w->pool, AIGW_MONEY_TEXT);

    aigw_money_text(m, text);
    return text;
}

static void add_months(work_t *w, aigw_money_t net)
{
    aigw_ratio_t months;
    const char *formula;

    if (!w->outlay.given || !w->outlay.amount) {
        add(w, "months to pay back", NULL, "not defined",
            "no outlay was given: there is nothing to pay back");
        return;
    }
    formula = apr_psprintf(w->pool, "%s / %s", plain(w, w->outlay.amount),
                           plain(w, net));
    if (net <= 0
        || aigw_ratio_div(aigw_ratio_money(w->outlay.amount),
                          aigw_ratio_money(net), &months)
               != AIGW_OK) {
        add(w, "months to pay back", NULL, "never",
            "the saving does not pass the running cost");
        return;
    }
    add(w, "months to pay back",
        aigw_ratio_text(months, w->opt.digits < 0 ? 2 : w->opt.digits,
                        w->opt.round, w->pool),
        "months", formula);
    months.num = aigw_ratio_ceil(months);
    months.den = 1;
    add(w, "whole months",
        aigw_ratio_text(months, 0, AIGW_ROUND_TRUNC, w->pool), "months",
        "the month in which it is paid back");
}

static void add_uplift(work_t *w, aigw_money_t net)
{
    aigw_ratio_t share;

    if (!w->profit.given || !w->profit.amount
        || aigw_ratio_div(aigw_ratio_money(net),
                          aigw_ratio_money(w->profit.amount), &share)
               != AIGW_OK
        || aigw_ratio_mul(share, aigw_ratio_of(100), &share) != AIGW_OK) {
        return;
    }
    add(w, "rise in profit",
        aigw_ratio_text(share, w->opt.digits < 0 ? 1 : w->opt.digits,
                        w->opt.round, w->pool),
        "%",
        apr_psprintf(w->pool, "%s / %s: not a time to pay back", plain(w, net),
                     plain(w, w->profit.amount)));
}

static aigw_exit_t run(work_t *w)
{
    aigw_money_t net;
    aigw_table_t *t = w->table = aigw_table_make("breakeven", w->pool);

    if (aigw_money_add(w->saving.amount, -w->running.amount, &net)
        != AIGW_OK) {
        return AIGW_EXIT_TOO_BIG;
    }
    aigw_table_column(t, "figure", "figure", AIGW_CELL_TEXT);
    aigw_table_column(t, "value", "value", AIGW_CELL_DECIMAL);
    aigw_table_column(t, "unit", "unit", AIGW_CELL_TEXT);
    aigw_table_column(t, "formula", "formula", AIGW_CELL_TEXT)->drop = 1;
    add(w, "net saving a month", aigw_command_money(&w->opt, 2, net, w->pool),
        w->saving.currency,
        apr_psprintf(w->pool, "%s saving - %s running cost",
                     plain(w, w->saving.amount), plain(w, w->running.amount)));
    add_months(w, net);
    add_uplift(w, net);
    return aigw_command_print(t, &w->opt);
}

#define AT(member) offsetof(work_t, member)

static const aigw_arg_t rows[] =
    {{"saving", AIGW_ARG_MONEY, AT(saving), "CNY:4000", "saved a month"},
     {"outlay", AIGW_ARG_MONEY, AT(outlay), "CNY:20000",
      "what had to be spent once for it"},
     {"running-cost", AIGW_ARG_MONEY, AT(running), "CNY:500",
      "what it costs a month from then on"},
     {"profit", AIGW_ARG_MONEY, AT(profit), "CNY:50000",
      "a month's profit, to tell by how much it rises"},
     {NULL, 0, 0, NULL, NULL}};

static const aigw_args_t args = {
    "breakeven",
    "--saving=CUR:AMOUNT [OPTION...]",
    "When an outlay is paid back by a monthly saving. All amounts are in one\n"
    "currency.\n",
    "aigw-calc breakeven --saving=CNY:4000 --outlay=CNY:20000",
    rows,
    0,
    0,
    0};

static int differs(const work_t *w, const aigw_arg_money_t *m)
{
    return m->given && strcmp(m->currency, w->saving.currency) != 0;
}

aigw_exit_t aigw_command_breakeven(int argc, char **argv, apr_pool_t *pool)
{
    work_t w;
    aigw_rc_t rc;

    memset(&w, 0, sizeof(w));
    w.pool = pool;
    rc = aigw_args_read(&args, &w.opt, argc, argv, pool);
    if (rc != AIGW_OK) {
        return rc == AIGW_DONE ? AIGW_EXIT_OK : AIGW_EXIT_USAGE;
    }
    if (!w.saving.given) {
        return aigw_args_refuse(&args, "--saving must be given");
    }
    if (differs(&w, &w.outlay) || differs(&w, &w.running)
        || differs(&w, &w.profit)) {
        return aigw_args_refuse(&args, "all amounts must be in one currency");
    }
    return run(&w);
}
