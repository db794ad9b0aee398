/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc forecast: what a month will have cost, from its days so far, with
 * a range from how much the days differ.  Whole numbers throughout: money
 * meets no binary fraction, the square root included.  Few days make a wide
 * range, one day makes none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <apr_strings.h>
#include "args.h"
#include "commands.h"
#include "logs.h"
#include "ratio.h"

#define DAYS_MAX 31
#define FEW_DAYS 7
#define MICRO 1000000000 /* of 10^-15 units: the range is counted in 10^-6 */
#define DIGITS 2

typedef struct {
    const char *currency;
    aigw_money_t day[DAYS_MAX + 1]; /* from 1 */
} costs_t;

typedef struct {
    aigw_options_t opt;
    const char *month, *tenant;
    apr_pool_t *pool;
    aigw_catalog_t *cat;
    aigw_table_t *table;
    apr_array_header_t *costs;   /* of costs_t */
    int year_month, first, days; /* first: day of the first record */
    int until;                   /* the last day that counts */
    apr_uint64_t records, uncosted;
    aigw_logs_t logs;
} work_t;

enum {
    COL_CURRENCY = 0,
    COL_SO_FAR,
    COL_DAYS,
    COL_PER_DAY,
    COL_LEFT,
    COL_LOW,
    COL_FORECAST,
    COL_HIGH
};

/* -- records ------------------------------------------------------------- */

static costs_t *costs_of(work_t *w, const char *currency)
{
    costs_t *c = (costs_t *)w->costs->elts;
    int i;

    for (i = 0; i < w->costs->nelts; i++) {
        if (strcmp(c[i].currency, currency) == 0) {
            return &c[i];
        }
    }
    c = apr_array_push(w->costs);
    memset(c, 0, sizeof(*c));
    c->currency = apr_pstrdup(w->pool, currency);
    return c;
}

static aigw_rc_t take_record(void *ctx, const aigw_record_t *rec)
{
    work_t *w = ctx;
    aigw_day_t day = aigw_day_of(rec->ts);
    const char *currency = NULL;
    aigw_money_t cost, *sum;
    aigw_rc_t rc;

    if (day / 100 != w->year_month || day % 100 > w->until
        || (w->tenant
            && (!rec->tenant || strcmp(rec->tenant, w->tenant) != 0))) {
        return AIGW_OK;
    }
    w->records++;
    w->first = day % 100 < w->first ? day % 100 : w->first;
    rc = aigw_command_cost(w->cat, rec, &cost, &currency);
    if (rc == AIGW_AGAIN) {
        w->uncosted += rec->usage.source != AIGW_USAGE_NONE;
        return AIGW_OK;
    }
    sum = rc == AIGW_OK ? &costs_of(w, currency)->day[day % 100] : NULL;
    return rc == AIGW_OK ? aigw_money_add(*sum, cost, sum) : rc;
}

/* -- the range ----------------------------------------------------------- */

typedef unsigned __int128 wide_t;

static wide_t root(wide_t n)
{
    wide_t low = 0, high = (wide_t)1 << 64, mid;

    while (high - low > 1) {
        mid = (low + high) / 2;
        if (mid <= n / mid) {
            low = mid;
        }
        else {
            high = mid;
        }
    }
    return low;
}

/* Student's factor for 95 %, in thousandths, by the number of days. */
static unsigned student(int days)
{
    static const unsigned t[] = {12706, 4303, 3182, 2776, 2571, 2447,
                                 2365,  2306, 2262, 2228, 2201, 2179,
                                 2160,  2145, 2131, 2120, 2110, 2101,
                                 2093,  2086, 2080, 2074, 2069, 2064,
                                 2060,  2056, 2052, 2048, 2045, 2042};

    return t[days - 2];
}

/*
 * How far the sum of the days left may be from so many times the mean:
 * t * sqrt(s^2 * left * (n + left) / n), with s^2 = sum of squares / (n - 1).
 */
static aigw_rc_t reach_of(const costs_t *c, int first, int n, int left,
                          aigw_money_t *reach)
{
    wide_t squares = 0, d;
    aigw_money_t mean = 0;
    int i;

    for (i = first; i < first + n; i++) {
        mean += c->day[i] / MICRO;
    }
    mean /= n;
    for (i = first; i < first + n; i++) {
        aigw_money_t far = c->day[i] / MICRO - mean;

        d = far < 0 ? (wide_t)-far : (wide_t)far;
        if (d >> 52) {
            return AIGW_TOO_BIG;
        }
        squares += d * d;
    }
    d = root(squares * (unsigned)left * (unsigned)(n + left)
             / (unsigned)(n * (n - 1)));
    *reach = (aigw_money_t)(d * student(n) / 1000) * MICRO;
    return AIGW_OK;
}

/* -- rows ---------------------------------------------------------------- */

static const char *money(work_t *w, aigw_money_t m)
{
    return aigw_command_money(&w->opt, DIGITS, m, w->pool);
}

static aigw_rc_t add_range(work_t *w, const char **cells, const costs_t *c,
                           aigw_money_t so_far, aigw_money_t expected)
{
    int n = w->until - w->first + 1, left = w->days - w->until;
    aigw_money_t reach, low;

    if (n < 2) {
        return AIGW_OK;
    }
    if (reach_of(c, w->first, n, left, &reach) != AIGW_OK
        || aigw_money_add(expected, -reach, &low) != AIGW_OK
        || aigw_money_add(expected, reach, &reach) != AIGW_OK) {
        return AIGW_TOO_BIG;
    }
    cells[COL_LOW] = money(w, low < so_far ? so_far : low);
    cells[COL_HIGH] = money(w, reach);
    return AIGW_OK;
}

static aigw_rc_t add_row(work_t *w, const costs_t *c)
{
    int n = w->until - w->first + 1, left = w->days - w->until, i;
    const char **cells = aigw_table_cells(w->table);
    aigw_money_t sum = 0, more;
    aigw_ratio_t mean;
    aigw_rc_t rc = AIGW_OK;

    for (i = 1; i <= DAYS_MAX && rc == AIGW_OK; i++) {
        rc = aigw_money_add(sum, c->day[i], &sum);
    }
    rc = rc == AIGW_OK ? aigw_ratio_make(sum, n, &mean) : rc;
    rc = rc == AIGW_OK
             ? aigw_ratio_div(mean, aigw_ratio_of(1000000000000000), &mean)
             : rc;
    rc = rc == AIGW_OK ? aigw_money_mul(sum, left, &more) : rc;
    rc = rc == AIGW_OK ? aigw_money_add(sum, more / n, &more) : rc;
    if (rc != AIGW_OK) {
        return rc;
    }
    cells[COL_CURRENCY] = c->currency;
    cells[COL_SO_FAR] = money(w, sum);
    cells[COL_DAYS] = apr_psprintf(w->pool, "%d", n);
    cells[COL_PER_DAY] =
        aigw_ratio_text(mean,
                        w->opt.digits >= 0 ? w->opt.digits
                        : w->opt.format == AIGW_FORMAT_JSON
                                || w->opt.format == AIGW_FORMAT_CSV
                            ? AIGW_MONEY_SCALE
                            : DIGITS,
                        w->opt.round, w->pool);
    cells[COL_LEFT] = apr_psprintf(w->pool, "%d", left);
    cells[COL_FORECAST] = money(w, more);
    aigw_table_row(w->table, cells);
    return add_range(w, cells, c, sum, more);
}

/* -- notes --------------------------------------------------------------- */

static void add_notes(work_t *w)
{
    int n = w->until - w->first + 1;

    aigw_table_fact(w->table, "month", w->month, AIGW_CELL_TEXT);
    aigw_table_fact(w->table, "tz", w->opt.tz, AIGW_CELL_TEXT);
    aigw_table_note(
        w->table,
        apr_psprintf(w->pool,
                     "%s, zone %s: days %d to %d, both included, of %d; "
                     "%" APR_UINT64_T_FMT " requests. forecast = so far + "
                     "days left x mean of a day.",
                     w->month, w->opt.tz, w->first, w->until, w->days,
                     w->records));
    aigw_table_note(w->table,
                    "low to high: 95 % if the days left vary as the days so "
                    "far did; a trend, a weekend and a new customer are not "
                    "in it.");
    if (n < FEW_DAYS) {
        aigw_table_fact(w->table, "few_days", "yes", AIGW_CELL_TEXT);
        aigw_table_note(w->table,
                        apr_psprintf(w->pool,
                                     "Warning: %d day%s of data, less than a "
                                     "week: do not rely on it.",
                                     n, n == 1 ? "" : "s"));
    }
    if (w->uncosted) {
        aigw_table_note(w->table, apr_psprintf(w->pool,
                                               "Not in it: %" APR_UINT64_T_FMT
                                               " requests without a price.",
                                               w->uncosted));
    }
    if (w->logs.bad) {
        aigw_table_note(w->table, apr_psprintf(w->pool,
                                               "Left out: %" APR_UINT64_T_FMT
                                               " bad lines.",
                                               w->logs.bad));
    }
}

/* -- the command --------------------------------------------------------- */

static void add_columns(aigw_table_t *t)
{
    aigw_table_column(t, "currency", "currency", AIGW_CELL_TEXT);
    aigw_table_column(t, "so_far", "so far", AIGW_CELL_DECIMAL);
    aigw_table_column(t, "days", "days", AIGW_CELL_COUNT)->drop = 2;
    aigw_table_column(t, "per_day", "a day", AIGW_CELL_DECIMAL)->drop = 1;
    aigw_table_column(t, "days_left", "left", AIGW_CELL_COUNT)->drop = 3;
    aigw_table_column(t, "low", "low", AIGW_CELL_DECIMAL);
    aigw_table_column(t, "forecast", "forecast", AIGW_CELL_DECIMAL);
    aigw_table_column(t, "high", "high", AIGW_CELL_DECIMAL);
}

static int by_currency(const void *a, const void *b)
{
    return strcmp(((const costs_t *)a)->currency,
                  ((const costs_t *)b)->currency);
}

static aigw_exit_t run(work_t *w)
{
    aigw_exit_t end = AIGW_EXIT_OK;
    int i;

    if (w->opt.prices) {
        w->cat = aigw_command_catalog(w->opt.prices, w->pool);
        end = w->cat ? end : AIGW_EXIT_INPUT;
    }
    end = end == AIGW_EXIT_OK
              ? aigw_logs_read(&w->opt, take_record, w, &w->logs, w->pool)
              : end;
    if (end != AIGW_EXIT_OK) {
        return end;
    }
    if (!w->records) {
        return aigw_args_fail("no record of a whole day of the month is in "
                              "the logs",
                              w->pool);
    }
    w->table = aigw_table_make("forecast", w->pool);
    add_columns(w->table);
    qsort(w->costs->elts, (size_t)w->costs->nelts, sizeof(costs_t),
          by_currency);
    for (i = 0; i < w->costs->nelts; i++) {
        if (add_row(w, &APR_ARRAY_IDX(w->costs, i, costs_t)) != AIGW_OK) {
            fputs("aigw-calc: a figure is too large\n", stderr);
            return AIGW_EXIT_TOO_BIG;
        }
    }
    add_notes(w);
    return aigw_command_print(w->table, &w->opt);
}

#define AT(member) offsetof(work_t, member)

static const aigw_arg_t rows[] =
    {{"on", AIGW_ARG_DAY, AT(opt.on), "DAY",
      "the day that is not over yet (default: today):\n"
      "the days before it count"},
     {"tenant", AIGW_ARG_TEXT, AT(tenant), "NAME", "only this one"},
     {"tz", AIGW_ARG_ZONE, AT(opt.tz), "ZONE",
      "whose days: local (default), UTC, ..."},
     {"prices", AIGW_ARG_TEXT, AT(opt.prices), "FILE",
      "price each record anew"},
     {NULL, 0, 0, NULL, NULL}};

static const aigw_args_t args =
    {"forecast",
     "[OPTION...] FILE...",
     "What this month will have cost, from its whole days so far, with a\n"
     "range.\n",
     "aigw-calc forecast --tenant=acme usage.log",
     rows,
     1,
     100000,
     1};

/* The month of the last whole day. */
static void set_days(work_t *w)
{
    aigw_day_t on = w->opt.on ? w->opt.on : aigw_day_of(apr_time_now()), any;
    int year = on / 10000, month = on / 100 % 100;

    w->until = on % 100 - 1;
    if (w->until == 0) {
        year -= month == 1;
        month = month == 1 ? 12 : month - 1;
    }
    w->month = apr_psprintf(w->pool, "%04d-%02d", year, month);
    w->year_month = year * 100 + month;
    for (w->days = DAYS_MAX;
         aigw_day_parse(apr_psprintf(w->pool, "%s-%02d", w->month, w->days),
                        &any)
         != AIGW_OK;
         w->days--) {
    }
    w->until = w->until ? w->until : w->days;
    w->first = w->until;
}

aigw_exit_t aigw_command_forecast(int argc, char **argv, apr_pool_t *pool)
{
    work_t w;
    aigw_rc_t rc;

    memset(&w, 0, sizeof(w));
    w.pool = pool;
    w.costs = apr_array_make(pool, 2, sizeof(costs_t));
    rc = aigw_args_read(&args, &w.opt, argc, argv, pool);
    if (rc != AIGW_OK) {
        return rc == AIGW_DONE ? AIGW_EXIT_OK : AIGW_EXIT_USAGE;
    }
    set_days(&w);
    return run(&w);
}
