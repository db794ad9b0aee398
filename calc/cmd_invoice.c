/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc invoice: a month's bill of one tenant.  Lines are exact costs;
 * mark-up, rate of exchange and tax are stated with their figures.  The net
 * sum is rounded once, tax is that of the rounded net, and what can't be
 * billed (no usage, no price) is named and never billed as 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <apr_strings.h>
#include "args.h"
#include "commands.h"
#include "logs.h"
#include "rates.h"

#define DIGITS 2

typedef struct {
    aigw_options_t opt;
    const char *tenant, *month, *currency, *rates_path;
    const char *seller, *buyer, *number, *tax_text;
    aigw_arg_decimal_t markup, tax;
    apr_uint64_t max_age;
    aigw_day_t rate_day;
    apr_pool_t *pool;
    aigw_catalog_t *cat;
    aigw_rates_t *rates;
    aigw_tally_t *tally;
    aigw_logs_t logs;
    aigw_table_t *table;
    int first_month;    /* year * 100 + month */
    aigw_ratio_t sum;   /* of all lines, in the bill's currency */
    aigw_ratio_t shown; /* of the rounded lines */
    int digits;
} work_t;

enum {
    COL_LINE = 0,
    COL_MODEL,
    COL_REQUESTS,
    COL_INPUT,
    COL_CACHE_READ,
    COL_CACHE_WRITE,
    COL_OUTPUT,
    COL_COST,
    COL_CURRENCY,
    COL_AMOUNT
};

/* -- records ------------------------------------------------------------- */

static aigw_rc_t take_record(void *ctx, const aigw_record_t *rec)
{
    work_t *w = ctx;
    aigw_day_t day = aigw_day_of(rec->ts);
    const char *currency = NULL;
    aigw_money_t cost;
    aigw_rc_t rc;

    if (!rec->tenant || strcmp(rec->tenant, w->tenant) != 0
        || day / 100 != w->first_month) {
        return AIGW_OK;
    }
    rc = aigw_command_cost(w->cat, rec, &cost, &currency);
    if (rc != AIGW_OK && rc != AIGW_AGAIN) {
        return rc;
    }
    return aigw_tally_add(w->tally, rec, day, rc == AIGW_OK ? &cost : NULL,
                          currency);
}

/* -- money --------------------------------------------------------------- */

static const char *rounded(work_t *w, aigw_ratio_t value, aigw_ratio_t *exact)
{
    aigw_money_t m;

    if (aigw_ratio_round(value, w->digits, w->opt.round, &m) != AIGW_OK) {
        return NULL;
    }
    *exact = aigw_ratio_money(m);
    return aigw_ratio_text(*exact, w->digits, AIGW_ROUND_TRUNC, w->pool);
}

/* percent of value */
static aigw_rc_t part(aigw_ratio_t value, aigw_money_t percent,
                      aigw_ratio_t *out)
{
    aigw_rc_t rc = aigw_ratio_mul(value, aigw_ratio_money(percent), out);

    return rc == AIGW_OK ? aigw_ratio_div(*out, aigw_ratio_of(100), out) : rc;
}

static const char *plain(const work_t *w, aigw_money_t m)
{
    char *text = apr_palloc(w->pool, AIGW_MONEY_TEXT);

    aigw_money_text(m, text);
    return text;
}

static const char *count(const work_t *w, const aigw_group_t *g,
                         aigw_tally_field_t f)
{
    return g->known & 1u << f
               ? apr_psprintf(w->pool, "%" APR_UINT64_T_FMT, g->n[f])
               : NULL;
}

/* -- lines --------------------------------------------------------------- */

/* A cost in the bill's currency, at the rate of the bill's day. */
static aigw_exit_t convert(work_t *w, const aigw_sum_t *sum,
                           aigw_ratio_t *amount)
{
    aigw_quote_t quote;
    const char *err;

    *amount = aigw_ratio_money(sum->amount);
    if (strcmp(sum->currency, w->currency) == 0) {
        return AIGW_EXIT_OK;
    }
    if (!w->rates) {
        return aigw_args_fail(apr_pstrcat(w->pool, "a cost in ", sum->currency,
                                          " can't be billed "
                                          "in ",
                                          w->currency, " without --rates",
                                          NULL),
                              w->pool);
    }
    if (aigw_rates_find(w->rates, sum->currency, w->currency, w->rate_day,
                        (int)w->max_age, &quote, &err)
        != AIGW_OK) {
        return aigw_args_fail(err, w->pool);
    }
    return aigw_ratio_mul(*amount, quote.value, amount) == AIGW_OK
               ? AIGW_EXIT_OK
               : AIGW_EXIT_TOO_BIG;
}

static void add_counts(work_t *w, const char **cells, const aigw_group_t *g)
{
    cells[COL_LINE] = "usage";
    cells[COL_MODEL] = g->key[0] ? g->key[0] : "-";
    cells[COL_REQUESTS] = count(w, g, AIGW_T_REQUESTS);
    cells[COL_INPUT] = count(w, g, AIGW_T_INPUT);
    cells[COL_CACHE_READ] = count(w, g, AIGW_T_CACHE_READ);
    cells[COL_CACHE_WRITE] = count(w, g, AIGW_T_CACHE_WRITE);
    cells[COL_OUTPUT] = count(w, g, AIGW_T_OUTPUT);
}

static aigw_exit_t add_line(work_t *w, const aigw_group_t *g,
                            const char *currency, int first)
{
    const aigw_sum_t *sum = currency ? aigw_group_sum(g, currency) : NULL;
    const char **cells = aigw_table_cells(w->table);
    aigw_ratio_t amount, shown;
    aigw_exit_t end;

    if (first) {
        add_counts(w, cells, g);
    }
    else {
        cells[COL_LINE] = "usage";
        cells[COL_MODEL] = g->key[0];
    }
    aigw_table_row(w->table, cells);
    if (!sum) {
        return AIGW_EXIT_OK;
    }
    end = convert(w, sum, &amount);
    if (end != AIGW_EXIT_OK) {
        return end;
    }
    cells[COL_COST] = plain(w, sum->amount);
    cells[COL_CURRENCY] = apr_pstrdup(w->pool, sum->currency);
    cells[COL_AMOUNT] = rounded(w, amount, &shown);
    if (!cells[COL_AMOUNT]
        || aigw_ratio_add(w->sum, amount, &w->sum) != AIGW_OK
        || aigw_ratio_add(w->shown, shown, &w->shown) != AIGW_OK) {
        return AIGW_EXIT_TOO_BIG;
    }
    return AIGW_EXIT_OK;
}

static aigw_exit_t add_lines(work_t *w)
{
    aigw_group_t **groups;
    aigw_exit_t end = AIGW_EXIT_OK;
    const char **all;
    int n, n_all, i, k, lines;

    groups = aigw_tally_groups(w->tally, &n);
    all = aigw_tally_currencies(w->tally, &n_all, w->pool);
    for (i = 0; i < n; i++) {
        for (lines = k = 0; k < n_all && end == AIGW_EXIT_OK; k++) {
            if (aigw_group_sum(groups[i], all[k])) {
                end = add_line(w, groups[i], all[k], lines++ == 0);
            }
        }
        if (lines == 0 && end == AIGW_EXIT_OK) {
            end = add_line(w, groups[i], NULL, 1);
        }
    }
    return end;
}

static void add_sum(work_t *w, const char *line, const char *text,
                    const char *amount)
{
    const char **cells = aigw_table_cells(w->table);

    cells[COL_LINE] = line;
    cells[COL_MODEL] = text;
    cells[COL_AMOUNT] = amount;
    aigw_table_row(w->table, cells);
}

/* The net is rounded once; what stands above it adds up to it or a note says
 * so; tax and total follow from what is printed. */
static aigw_exit_t add_sums(work_t *w)
{
    aigw_ratio_t base, up = aigw_ratio_of(0), net, tax;
    const char *text = rounded(w, w->sum, &base), *net_text, *tax_text;

    if (!text || part(w->sum, w->markup.value, &up) != AIGW_OK
        || aigw_ratio_add(w->sum, up, &net) != AIGW_OK) {
        return AIGW_EXIT_TOO_BIG;
    }
    add_sum(w, "subtotal", NULL, text);
    net_text = rounded(w, net, &net);
    if (w->markup.given && aigw_ratio_sub(net, base, &up) == AIGW_OK) {
        add_sum(w, "mark-up",
                apr_pstrcat(w->pool, plain(w, w->markup.value), " %", NULL),
                rounded(w, up, &up));
    }
    add_sum(w, "net", NULL, net_text);
    if (part(net, w->tax.value, &tax) != AIGW_OK) {
        return AIGW_EXIT_TOO_BIG;
    }
    tax_text = rounded(w, tax, &tax);
    if (w->tax.given) {
        add_sum(w, "tax",
                apr_pstrcat(w->pool, plain(w, w->tax.value), " %", NULL),
                tax_text);
    }
    if (!net_text || !tax_text || aigw_ratio_add(net, tax, &net) != AIGW_OK) {
        return AIGW_EXIT_TOO_BIG;
    }
    add_sum(w, "total", w->currency, rounded(w, net, &net));
    return AIGW_EXIT_OK;
}

/* -- notes --------------------------------------------------------------- */

static void note(work_t *w, const char *key, const char *label,
                 const char *text)
{
    aigw_table_fact(w->table, key, text, AIGW_CELL_TEXT);
    if (text) {
        aigw_table_note(w->table,
                        apr_pstrcat(w->pool, label,
                                    aigw_text_safe(w->pool, text), NULL));
    }
}

static void note_left_out(work_t *w)
{
    const aigw_group_t *total = aigw_tally_total(w->tally);
    const char *models = aigw_tally_unpriced(w->tally);
    static const struct {
        aigw_tally_field_t field;
        const char *key, *said;
    } left[] = {{AIGW_T_NO_USAGE, "no_usage", "Not billed, usage not known"},
                {AIGW_T_UNPRICED, "unpriced", "Not billed, no price"},
                {AIGW_T_PARTIAL, "partial",
                 "Billed at a lower bound of the usage"},
                {AIGW_T_ESTIMATED, "estimated",
                 "Billed at an estimated usage"}};
    size_t i;

    for (i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
        apr_uint64_t n = total->n[left[i].field];
        const char *text = apr_psprintf(w->pool, "%" APR_UINT64_T_FMT, n);

        aigw_table_fact(w->table, left[i].key, text, AIGW_CELL_COUNT);
        if (n) {
            aigw_table_note(w->table,
                            apr_pstrcat(w->pool, left[i].said, ": ", text,
                                        " request", n == 1 ? "" : "s",
                                        left[i].field == AIGW_T_UNPRICED ? " ("
                                                                         : "",
                                        left[i].field == AIGW_T_UNPRICED
                                            ? aigw_text_safe(w->pool, models)
                                            : "",
                                        left[i].field == AIGW_T_UNPRICED ? ")."
                                                                         : ".",
                                        NULL));
        }
    }
    if (w->logs.bad) {
        aigw_table_note(
            w->table,
            apr_psprintf(w->pool,
                         "Bad lines in the logs: %" APR_UINT64_T_FMT ".",
                         w->logs.bad));
    }
}

static void note_rates(work_t *w)
{
    const char **all, *err;
    aigw_quote_t quote;
    int n, i;

    all = aigw_tally_currencies(w->tally, &n, w->pool);
    for (i = 0; i < n; i++) {
        if (strcmp(all[i], w->currency) != 0 && w->rates
            && aigw_rates_find(w->rates, all[i], w->currency, w->rate_day,
                               (int)w->max_age, &quote, &err)
                   == AIGW_OK) {
            note(w, apr_pstrcat(w->pool, "rate_", all[i], NULL),
                 "Rate: ", aigw_quote_text(&quote, w->pool));
        }
    }
}

static void add_notes(work_t *w)
{
    aigw_ratio_t exact;
    int order = 0;

    note(w, "number", "Invoice: ", w->number);
    note(w, "seller", "From: ", w->seller);
    note(w, "buyer", "To: ", w->buyer ? w->buyer : w->tenant);
    note(w, "tenant", "Tenant: ", w->tenant);
    note(w, "month", "Month: ",
         apr_pstrcat(w->pool, w->month, ", all days included, zone ",
                     w->opt.tz, NULL));
    aigw_table_fact(w->table, "currency", w->currency, AIGW_CELL_TEXT);
    note_rates(w);
    note(w, "tax_text", "", w->tax_text);
    note_left_out(w);
    if (aigw_tally_total(w->tally)->n[AIGW_T_REQUESTS] == 0) {
        aigw_table_note(w->table, "No record of this tenant in this month.");
    }
    if (rounded(w, w->sum, &exact)
        && aigw_ratio_order(exact, w->shown, &order) == AIGW_OK && order) {
        aigw_table_note(w->table,
                        "Rounding: the subtotal is the rounded sum of exact "
                        "costs; the rounded lines add up to something else "
                        "in the last digit.");
    }
}

/* -- the command --------------------------------------------------------- */

static void add_columns(work_t *w)
{
    static const struct {
        const char *key, *head;
        aigw_cell_t kind;
        int drop;
    } cols[] = {{"line", "line", AIGW_CELL_TEXT, 0},
                {"text", "model", AIGW_CELL_TEXT, 0},
                {"requests", "requests", AIGW_CELL_COUNT, 3},
                {"input_uncached", "input", AIGW_CELL_COUNT, 4},
                {"cache_read", "cache read", AIGW_CELL_COUNT, 6},
                {"cache_write", "cache write", AIGW_CELL_COUNT, 7},
                {"output", "output", AIGW_CELL_COUNT, 5},
                {"cost", "cost", AIGW_CELL_DECIMAL, 1},
                {"cost_currency", "", AIGW_CELL_TEXT, 2}};
    size_t i;

    for (i = 0; i < sizeof(cols) / sizeof(cols[0]); i++) {
        aigw_table_column(w->table, cols[i].key, cols[i].head, cols[i].kind)
            ->drop = cols[i].drop;
    }
    aigw_table_column(w->table, "amount",
                      apr_pstrcat(w->pool, "amount ", w->currency, NULL),
                      AIGW_CELL_DECIMAL);
}

/* Without --currency the bill is in the costs' own one. */
static aigw_exit_t choose_currency(work_t *w)
{
    const char **all;
    int n;

    all = aigw_tally_currencies(w->tally, &n, w->pool);
    if (!w->currency && n > 1) {
        return aigw_args_fail("the costs are in several currencies: give "
                              "--currency and --rates",
                              w->pool);
    }
    if (!w->currency) {
        w->currency = n ? all[0] : "USD";
    }
    return AIGW_EXIT_OK;
}

static aigw_exit_t load(work_t *w)
{
    const char *err;

    if (w->opt.prices) {
        w->cat = aigw_command_catalog(w->opt.prices, w->pool);
        if (!w->cat) {
            return AIGW_EXIT_INPUT;
        }
    }
    if (w->rates_path
        && aigw_rates_load(&w->rates, w->rates_path, w->pool, &err)
               != AIGW_OK) {
        return aigw_args_fail(err, w->pool);
    }
    return AIGW_EXIT_OK;
}

static aigw_exit_t run(work_t *w)
{
    static const aigw_by_t by[] = {AIGW_BY_MODEL};
    aigw_exit_t end = load(w);

    w->tally = aigw_tally_make(by, 1, w->pool);
    end = end == AIGW_EXIT_OK
              ? aigw_logs_read(&w->opt, take_record, w, &w->logs, w->pool)
              : end;
    if (end == AIGW_EXIT_OK && aigw_tally_close(w->tally) != AIGW_OK) {
        end = AIGW_EXIT_TOO_BIG;
    }
    end = end == AIGW_EXIT_OK ? choose_currency(w) : end;
    if (end != AIGW_EXIT_OK) {
        return end;
    }
    w->table = aigw_table_make("invoice", w->pool);
    w->table->title =
        apr_pstrcat(w->pool, "Invoice ", w->number ? w->number : "", " ",
                    w->tenant, " ", w->month, NULL);
    w->sum = w->shown = aigw_ratio_of(0);
    add_columns(w);
    end = add_lines(w);
    end = end == AIGW_EXIT_OK ? add_sums(w) : end;
    if (end == AIGW_EXIT_TOO_BIG) {
        fputs("aigw-calc: a figure is too large\n", stderr);
    }
    if (end != AIGW_EXIT_OK) {
        return end;
    }
    add_notes(w);
    return aigw_command_print(w->table, &w->opt);
}

#define AT(member) offsetof(work_t, member)

static const aigw_arg_t rows[] =
    {{"tenant", AIGW_ARG_TEXT, AT(tenant), "NAME", "whose bill"},
     {"month", AIGW_ARG_TEXT, AT(month), "MONTH", "such as 2026-11"},
     {"tz", AIGW_ARG_ZONE, AT(opt.tz), "ZONE",
      "whose days: local (default), UTC, ..."},
     {"prices", AIGW_ARG_TEXT, AT(opt.prices), "FILE",
      "price each record anew, at the price in force\n"
      "when it was made"},
     {"markup", AIGW_ARG_DECIMAL, AT(markup), "PERCENT", "added to the costs"},
     {"tax", AIGW_ARG_DECIMAL, AT(tax), "PERCENT", "added to the net"},
     {"tax-text", AIGW_ARG_TEXT, AT(tax_text), "TEXT",
      "what the bill has to say about tax"},
     {"currency", AIGW_ARG_TEXT, AT(currency), "CODE",
      "of the bill (default: that of the costs)"},
     {"rates", AIGW_ARG_TEXT, AT(rates_path), "FILE",
      "rates of exchange, as for fx"},
     {"rate-day", AIGW_ARG_DAY, AT(rate_day), "DAY",
      "whose rate (default: the month's last day)"},
     {"max-age", AIGW_ARG_COUNT, AT(max_age), "DAYS",
      "a rate may be so much older (default: 5)"},
     {"number", AIGW_ARG_TEXT, AT(number), "TEXT", "of the invoice"},
     {"seller", AIGW_ARG_TEXT, AT(seller), "TEXT", "who bills"},
     {"buyer", AIGW_ARG_TEXT, AT(buyer), "TEXT",
      "who is billed (default: the tenant)"},
     {NULL, 0, 0, NULL, NULL}};

static const aigw_args_t args =
    {"invoice",
     "--tenant=NAME --month=MONTH [OPTION...] FILE...",
     "A month's bill of one tenant, from usage logs. --format=html makes a\n"
     "page to print, --format=csv the lines for bookkeeping.\n",
     "aigw-calc invoice --tenant=acme --month=2026-11 --markup=20 usage.log",
     rows,
     1,
     100000,
     1};

static aigw_rc_t read_month(work_t *w)
{
    aigw_day_t day = 0;
    int last;

    if (!w->month || strlen(w->month) != 7
        || aigw_day_parse(apr_pstrcat(w->pool, w->month, "-01", NULL), &day)
               != AIGW_OK) {
        return AIGW_MALFORMED;
    }
    w->first_month = day / 100;
    for (last = 31; !w->rate_day; last--) {
        aigw_day_parse(apr_psprintf(w->pool, "%s-%02d", w->month, last),
                       &w->rate_day);
    }
    return AIGW_OK;
}

aigw_exit_t aigw_command_invoice(int argc, char **argv, apr_pool_t *pool)
{
    work_t w;
    aigw_rc_t rc;

    memset(&w, 0, sizeof(w));
    w.pool = pool;
    w.max_age = AIGW_RATES_MAX_AGE;
    rc = aigw_args_read(&args, &w.opt, argc, argv, pool);
    if (rc != AIGW_OK) {
        return rc == AIGW_DONE ? AIGW_EXIT_OK : AIGW_EXIT_USAGE;
    }
    if (!w.tenant || read_month(&w) != AIGW_OK) {
        return aigw_args_refuse(&args, "--tenant, and --month such as "
                                       "2026-11, must be given");
    }
    if (w.max_age > 3650) {
        return aigw_args_refuse(&args, "--max-age must be at most 3650");
    }
    w.digits = w.opt.digits < 0 ? DIGITS : w.opt.digits;
    return run(&w);
}
