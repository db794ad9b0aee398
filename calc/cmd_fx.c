/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc fx: what a top-up at a relay station or reseller really costs.
 * What was paid, with its fee, over the credit received, times the group
 * ratio at which the station counts it down; beside it the same list price
 * at a dated rate of exchange.  No rate is assumed.
 */
#include <stdio.h>
#include <apr_strings.h>
#include "args.h"
#include "commands.h"
#include "rates.h"

#define DIGITS 4

typedef struct {
    aigw_options_t opt;
    aigw_arg_money_t paid, credit;
    aigw_arg_decimal_t fee, ratio;
    const char *rates_path, *currency;
    apr_uint64_t max_age;
    apr_pool_t *pool;
    aigw_catalog_t *cat;
    aigw_rates_t *rates; /* NULL: none given */
    aigw_day_t on;
    aigw_ratio_t unit;   /* paid currency for one of list price */
    aigw_ratio_t factor; /* shown currency for one of list price, by top-up */
    aigw_quote_t spot;   /* credit currency to shown one */
    aigw_quote_t shown;  /* paid currency to shown one */
    aigw_table_t *table;
    int other_currency;
} work_t;

enum {
    COL_MODEL = 0,
    COL_LIST_IN,
    COL_LIST_OUT,
    COL_REAL_IN,
    COL_REAL_OUT,
    COL_SPOT_IN,
    COL_SPOT_OUT,
    COL_CHANGE
};

static const char *text_of(const work_t *w, aigw_ratio_t value, int digits)
{
    return aigw_ratio_text(value, w->opt.digits < 0 ? digits : w->opt.digits,
                           w->opt.round, w->pool);
}

static void column(work_t *w, const char *key, const char *head,
                   const char *currency, int drop)
{
    aigw_table_column(w->table, key,
                      apr_pstrcat(w->pool, head, " ", currency, NULL),
                      AIGW_CELL_DECIMAL)
        ->drop = drop;
}

static void add_columns(work_t *w)
{
    const char *list = w->credit.currency, *shown = w->currency;

    aigw_table_column(w->table, "model", "model", AIGW_CELL_TEXT);
    column(w, "list_input", "list in", list, 3);
    column(w, "list_output", "list out", list, 4);
    column(w, "real_input", "real in", shown, 0);
    column(w, "real_output", "real out", shown, 0);
    column(w, "spot_input", "spot in", shown, 1);
    column(w, "spot_output", "spot out", shown, 2);
    aigw_table_column(w->table, "change_percent", "change %",
                      AIGW_CELL_DECIMAL);
}

/* -- what one unit of list price costs ------------------------------------ */

static aigw_rc_t find_unit(work_t *w)
{
    aigw_ratio_t fee, hundred = aigw_ratio_of(100);
    aigw_rc_t rc =
        aigw_ratio_div(aigw_ratio_money(w->fee.value), hundred, &fee);

    w->unit = aigw_ratio_money(w->paid.amount);
    rc = rc == AIGW_OK ? aigw_ratio_add(fee, aigw_ratio_of(1), &fee) : rc;
    rc = rc == AIGW_OK ? aigw_ratio_mul(w->unit, fee, &w->unit) : rc;
    rc = rc == AIGW_OK
             ? aigw_ratio_div(w->unit, aigw_ratio_money(w->credit.amount),
                              &w->unit)
             : rc;
    return rc == AIGW_OK && w->ratio.given
               ? aigw_ratio_mul(w->unit, aigw_ratio_money(w->ratio.value),
                                &w->unit)
               : rc;
}

/* (real - spot) / spot in per cent; the same for every model. */
static aigw_rc_t find_change(const work_t *w, aigw_ratio_t *change)
{
    aigw_rc_t rc = aigw_ratio_div(w->factor, w->spot.value, change);

    rc =
        rc == AIGW_OK ? aigw_ratio_sub(*change, aigw_ratio_of(1), change) : rc;
    return rc == AIGW_OK ? aigw_ratio_mul(*change, aigw_ratio_of(100), change)
                         : rc;
}

/* -- rows ---------------------------------------------------------------- */

static const char *times(const work_t *w, aigw_ratio_t price, aigw_ratio_t by)
{
    return aigw_ratio_mul(price, by, &price) == AIGW_OK
               ? text_of(w, price, DIGITS)
               : NULL;
}

static void add_price(work_t *w, const char **cells, const aigw_price_t *price,
                      int output)
{
    aigw_usage_field_t f = output ? AIGW_U_OUTPUT : AIGW_U_INPUT_UNCACHED;
    aigw_ratio_t list, change;

    if (!(price->known & 1u << f)) {
        return;
    }
    list = aigw_ratio_money(price->per_mtok[f]);
    cells[COL_LIST_IN + output] = text_of(w, list, DIGITS);
    cells[COL_REAL_IN + output] = times(w, list, w->factor);
    if (w->spot.day) {
        cells[COL_SPOT_IN + output] = times(w, list, w->spot.value);
        if (find_change(w, &change) == AIGW_OK) {
            cells[COL_CHANGE] = text_of(w, change, 2);
        }
    }
}

static void add_row(work_t *w, const char *model, const aigw_price_t *price)
{
    const char **cells;

    if (strcmp(price->currency, w->credit.currency) != 0) {
        w->other_currency++;
        return;
    }
    cells = aigw_table_cells(w->table);
    cells[COL_MODEL] = model;
    add_price(w, cells, price, 0);
    add_price(w, cells, price, 1);
    aigw_table_row(w->table, cells);
}

static aigw_exit_t add_rows(work_t *w)
{
    apr_time_t when = aigw_day_moment(w->on);
    const aigw_price_t *p;
    const char *name;
    int i;

    for (i = 0; i < w->opt.models->nelts; i++) {
        name = APR_ARRAY_IDX(w->opt.models, i, const char *);
        p = aigw_catalog_find(w->cat, name, when);
        if (!p) {
            return aigw_args_fail(apr_pstrcat(w->pool,
                                              "no price in force "
                                              "for '",
                                              name, "'", NULL),
                                  w->pool);
        }
        add_row(w, name, p);
    }
    for (i = 0; !w->opt.models->nelts && (p = aigw_catalog_row(w->cat, i));
         i++) {
        if (when >= p->from && (!p->to || when < p->to)) {
            add_row(w, p->model, p);
        }
    }
    return AIGW_EXIT_OK;
}

/* -- notes --------------------------------------------------------------- */

static const char *plain(const work_t *w, aigw_money_t m)
{
    char *text = apr_palloc(w->pool, AIGW_MONEY_TEXT);

    aigw_money_text(m, text);
    return text;
}

static void fact(work_t *w, const char *key, const char *text)
{
    aigw_table_fact(w->table, key, text, AIGW_CELL_DECIMAL);
}

static void note_unit(work_t *w)
{
    const char *unit = text_of(w, w->unit, 6);

    fact(w, "paid_per_list_unit", unit);
    aigw_table_fact(w->table, "paid_currency", w->paid.currency,
                    AIGW_CELL_TEXT);
    aigw_table_fact(w->table, "credit_currency", w->credit.currency,
                    AIGW_CELL_TEXT);
    aigw_table_fact(w->table, "shown_currency", w->currency, AIGW_CELL_TEXT);
    aigw_table_note(
        w->table,
        apr_psprintf(w->pool,
                     "One %s of list price costs %s %s = %s paid x (1 + %s %% "
                     "fee) / %s credit x %s group ratio.",
                     w->credit.currency, unit, w->paid.currency,
                     plain(w, w->paid.amount), plain(w, w->fee.value),
                     plain(w, w->credit.amount),
                     w->ratio.given ? plain(w, w->ratio.value) : "1"));
}

static void quote_facts(work_t *w, const aigw_quote_t *quote, const char *rate,
                        const char *date)
{
    char day[11];

    aigw_day_text(quote->day, day);
    fact(w, rate, quote->day ? text_of(w, quote->value, 6) : NULL);
    aigw_table_fact(w->table, date,
                    quote->day ? apr_pstrdup(w->pool, day) : NULL,
                    AIGW_CELL_TEXT);
}

static void note_spot(work_t *w)
{
    aigw_ratio_t change;

    quote_facts(w, &w->spot, "spot_rate", "spot_date");
    aigw_table_fact(w->table, "spot_source", w->spot.source, AIGW_CELL_TEXT);
    if (!w->spot.day) {
        aigw_table_note(w->table, "No rate of exchange was given (--rates): "
                                  "what the list price is at spot is not "
                                  "known.");
        return;
    }
    aigw_table_note(w->table, apr_pstrcat(w->pool, "spot: ",
                                          aigw_quote_text(&w->spot, w->pool),
                                          ".", NULL));
    if (find_change(w, &change) == AIGW_OK) {
        fact(w, "change_percent", text_of(w, change, 2));
        aigw_table_note(
            w->table,
            apr_pstrcat(w->pool,
                        "change = real / spot - 1 = ", text_of(w, change, 2),
                        " %: this is the price of the credit against the "
                        "list price, whatever the seller calls it.",
                        NULL));
    }
}

static void add_notes(work_t *w)
{
    char day[11];

    aigw_day_text(w->on, day);
    note_unit(w);
    if (strcmp(w->paid.currency, w->currency) != 0) {
        aigw_table_note(w->table,
                        apr_pstrcat(w->pool, "real: converted at ",
                                    aigw_quote_text(&w->shown, w->pool), ".",
                                    NULL));
    }
    note_spot(w);
    if (w->other_currency) {
        aigw_table_note(w->table,
                        apr_psprintf(w->pool,
                                     "Left out: %d row%s priced in another "
                                     "currency than %s.",
                                     w->other_currency,
                                     w->other_currency == 1 ? "" : "s",
                                     w->credit.currency));
    }
    aigw_table_note(w->table,
                    apr_psprintf(w->pool,
                                 "All per million tokens. Prices: version %s, "
                                 "in force on %s.",
                                 aigw_text_safe(w->pool,
                                                aigw_catalog_version(w->cat)),
                                 day));
}

/* -- the command --------------------------------------------------------- */

static aigw_exit_t find_rates(work_t *w)
{
    const char *err = NULL;
    int age = (int)w->max_age;

    w->factor = w->unit;
    if (!w->rates_path && strcmp(w->paid.currency, w->currency) != 0) {
        return aigw_args_fail("--currency differs from what was paid: give "
                              "--rates",
                              w->pool);
    }
    if (!w->rates_path) {
        return AIGW_EXIT_OK;
    }
    if (aigw_rates_load(&w->rates, w->rates_path, w->pool, &err) != AIGW_OK
        || aigw_rates_find(w->rates, w->credit.currency, w->currency, w->on,
                           age, &w->spot, &err)
               != AIGW_OK
        || aigw_rates_find(w->rates, w->paid.currency, w->currency, w->on, age,
                           &w->shown, &err)
               != AIGW_OK) {
        return aigw_args_fail(err, w->pool);
    }
    return aigw_ratio_mul(w->unit, w->shown.value, &w->factor) == AIGW_OK
               ? AIGW_EXIT_OK
               : AIGW_EXIT_TOO_BIG;
}

static aigw_exit_t run(work_t *w)
{
    aigw_exit_t end;

    w->on = w->opt.on ? w->opt.on : aigw_day_of(apr_time_now());
    w->currency = w->currency ? w->currency : w->paid.currency;
    if (find_unit(w) != AIGW_OK) {
        return AIGW_EXIT_TOO_BIG;
    }
    w->cat =
        aigw_command_catalog(w->opt.prices ? w->opt.prices : AIGW_PRICES_FILE,
                             w->pool);
    end = w->cat ? find_rates(w) : AIGW_EXIT_INPUT;
    if (end != AIGW_EXIT_OK) {
        return end;
    }
    w->table = aigw_table_make("fx", w->pool);
    add_columns(w);
    end = add_rows(w);
    if (end != AIGW_EXIT_OK) {
        return end;
    }
    add_notes(w);
    return aigw_command_print(w->table, &w->opt);
}

#define AT(member) offsetof(work_t, member)

static const aigw_arg_t rows[] =
    {{"paid", AIGW_ARG_MONEY, AT(paid), "CNY:100", "what was paid"},
     {"credit", AIGW_ARG_MONEY, AT(credit), "USD:100",
      "the credit that it bought"},
     {"fee", AIGW_ARG_DECIMAL, AT(fee), "PERCENT",
      "on top of what was paid (default: 0)"},
     {"group-ratio", AIGW_ARG_DECIMAL, AT(ratio), "N",
      "how many times the list price is taken off\n"
      "the credit (default: 1)"},
     {"rates", AIGW_ARG_TEXT, AT(rates_path), "FILE",
      "rates of exchange: the ECB's XML or CSV, or\n"
      "lines of date,from,to,rate,source"},
     {"max-age", AIGW_ARG_COUNT, AT(max_age), "DAYS",
      "a rate may be so much older (default: 5)"},
     {"currency", AIGW_ARG_TEXT, AT(currency), "CODE",
      "show prices in this one (default: that of\n--paid)"},
     {"prices", AIGW_ARG_TEXT, AT(opt.prices), "FILE",
      "the price file (default: the installed one)"},
     {"model", AIGW_ARG_LIST, AT(opt.models), "NAME",
      "only this model; may be given again"},
     {"on", AIGW_ARG_DAY, AT(opt.on), "DAY",
      "prices and rates of this day (default: today)"},
     {NULL, 0, 0, NULL, NULL}};

aigw_exit_t aigw_command_fx(int argc, char **argv, apr_pool_t *pool)
{
    static const aigw_args_t args =
        {"fx",
         "--paid=CUR:AMOUNT --credit=CUR:AMOUNT [OPTION...]",
         "What a top-up really costs: the effective price per model, beside\n"
         "the list price at a dated rate of exchange.\n",
         "aigw-calc fx --paid=CNY:102 --credit=USD:100 --rates=rates.csv",
         rows,
         0,
         0,
         0};
    work_t w;
    aigw_rc_t rc;

    memset(&w, 0, sizeof(w));
    w.pool = pool;
    w.max_age = AIGW_RATES_MAX_AGE;
    rc = aigw_args_read(&args, &w.opt, argc, argv, pool);
    if (rc != AIGW_OK) {
        return rc == AIGW_DONE ? AIGW_EXIT_OK : AIGW_EXIT_USAGE;
    }
    if (!w.paid.given || !w.credit.given || w.credit.amount == 0) {
        return aigw_args_refuse(&args, "--paid and --credit must be given, "
                                       "the credit above 0");
    }
    if (w.max_age > 3650) {
        return aigw_args_refuse(&args, "--max-age must be at most 3650");
    }
    aigw_day_zone("UTC");
    return run(&w);
}
