/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc prices: what a month of so many calls of so many tokens costs,
 * by model, from the price file.  Every figure has its formula below the
 * table; no rate of exchange is assumed that was not given.
 */
#include <stdio.h>
#include <apr_strings.h>
#include "commands.h"
#include "logs.h"

#define DIGITS 2

/* Work in progress. */
typedef struct {
    aigw_options_t opt;
    aigw_catalog_t *cat;
    const char *path;
    apr_time_t when;
    apr_int64_t calls; /* a month */
    apr_pool_t *pool;
    aigw_table_t *table;
    int unpriced, other_currency; /* rows that lack a figure */
    aigw_logs_t logs;
    /* sums over the calls of the logs */
    apr_uint64_t n, input, cached, output;
} work_t;

enum {
    COL_MODEL = 0,
    COL_CURRENCY,
    COL_INPUT_PRICE,
    COL_CACHED_PRICE,
    COL_OUTPUT_PRICE,
    COL_INPUT_COST,
    COL_OUTPUT_COST,
    COL_MONTH,
    COL_FROM,
    COL_SOURCE,
    COL_CHECKED,
    COL_AT_RATE,
    COL_AT_RELAY,
    COL_DIFFERENCE
};

/* -- tokens of a call from logs ------------------------------------------ */

static aigw_rc_t add(apr_uint64_t *sum, const aigw_usage_t *u,
                     aigw_usage_field_t field)
{
    apr_uint64_t n;

    aigw_usage_get(u, field, &n);
    if (n > APR_INT64_MAX - *sum) {
        return AIGW_TOO_BIG;
    }
    *sum += n;
    return AIGW_OK;
}

static aigw_rc_t take_record(void *ctx, const aigw_record_t *rec)
{
    const aigw_usage_t *u = &rec->usage;
    work_t *w = ctx;
    int f;

    if (u->source != AIGW_USAGE_REPORTED) {
        return AIGW_OK;
    }
    w->n++;
    for (f = AIGW_U_INPUT_UNCACHED; f <= AIGW_U_CACHE_WRITE_OTHER; f++) {
        if (add(&w->input, u, (aigw_usage_field_t)f) != AIGW_OK) {
            return AIGW_TOO_BIG;
        }
    }
    return add(&w->cached, u, AIGW_U_CACHE_READ) == AIGW_OK
               ? add(&w->output, u, AIGW_U_OUTPUT)
               : AIGW_TOO_BIG;
}

/* Half up; sum is below 2^63. */
static apr_uint64_t mean(apr_uint64_t sum, apr_uint64_t n)
{
    return sum / n + (sum % n >= n - sum % n);
}

static aigw_exit_t read_logs(work_t *w)
{
    aigw_exit_t end;

    if (w->opt.n_files == 0) {
        return AIGW_EXIT_OK;
    }
    end = aigw_logs_read(&w->opt, take_record, w, &w->logs, w->pool);
    if (end == AIGW_EXIT_OK && w->n == 0) {
        fputs("aigw-calc: no call with reported usage is in the logs\n",
              stderr);
        end = AIGW_EXIT_INPUT;
    }
    if (end == AIGW_EXIT_OK) {
        w->opt.input = mean(w->input, w->n);
        w->opt.cached = mean(w->cached, w->n);
        w->opt.output = mean(w->output, w->n);
    }
    return end;
}

/* -- columns ------------------------------------------------------------- */

static const char *rate_text(work_t *w, aigw_money_t rate)
{
    char *text = apr_palloc(w->pool, AIGW_MONEY_TEXT);

    aigw_money_text(rate, text);
    return text;
}

static void add_rate_columns(work_t *w)
{
    aigw_table_t *t = w->table;
    const char *to = w->opt.rate.to;

    if (w->opt.has_rate) {
        aigw_table_column(t, "at_rate",
                          apr_pstrcat(w->pool, to, " at ",
                                      rate_text(w, w->opt.rate.rate), NULL),
                          AIGW_CELL_DECIMAL)
            ->drop = 3;
    }
    if (w->opt.has_relay) {
        aigw_table_column(t, "at_relay_rate",
                          apr_pstrcat(w->pool, to, " at ",
                                      rate_text(w, w->opt.relay.rate), NULL),
                          AIGW_CELL_DECIMAL)
            ->drop = 4;
        aigw_table_column(t, "difference",
                          apr_pstrcat(w->pool, "difference ", to, NULL),
                          AIGW_CELL_DECIMAL);
    }
}

static void add_columns(work_t *w)
{
    static const struct {
        const char *key, *head;
        aigw_cell_t kind;
        int machine_only, drop;
    } rows[] = {{"model", "model", AIGW_CELL_TEXT, 0, 0},
                {"currency", "currency", AIGW_CELL_TEXT, 0, 0},
                {"input_per_mtok", "input/MTok", AIGW_CELL_DECIMAL, 0, 2},
                {"cache_read_per_mtok", "cached/MTok", AIGW_CELL_DECIMAL, 0,
                 5},
                {"output_per_mtok", "output/MTok", AIGW_CELL_DECIMAL, 0, 1},
                {"input_cost", "month input", AIGW_CELL_DECIMAL, 0, 7},
                {"output_cost", "month output", AIGW_CELL_DECIMAL, 0, 6},
                {"month_cost", "month", AIGW_CELL_DECIMAL, 0, 0},
                {"from", "from", AIGW_CELL_TEXT, 1, 0},
                {"source", "source", AIGW_CELL_TEXT, 1, 0},
                {"checked", "checked", AIGW_CELL_TEXT, 1, 0}};
    aigw_column_t *c;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        c = aigw_table_column(w->table, rows[i].key, rows[i].head,
                              rows[i].kind);
        c->machine_only = rows[i].machine_only;
        c->drop = rows[i].drop;
        if (i == COL_CACHED_PRICE && !w->opt.cached) {
            c->machine_only = 1;
        }
    }
    add_rate_columns(w);
}

/* -- a row --------------------------------------------------------------- */

/* A price with at least two decimals and all that it has. */
static const char *price_text(work_t *w, const aigw_price_t *price,
                              aigw_usage_field_t f)
{
    char *text = apr_palloc(w->pool, AIGW_MONEY_TEXT);
    const char *point;

    if (!(price->known & (1u << f))) {
        return NULL;
    }
    aigw_money_text(price->per_mtok[f], text);
    point = strchr(text, '.');
    if (!point || strlen(point) < 3) {
        aigw_money_round_text(price->per_mtok[f], 2, AIGW_ROUND_HALF_EVEN,
                              text);
    }
    return text;
}

/* What the month's tokens of some kinds cost; known says which kinds. */
static aigw_rc_t month_of(const work_t *w, const aigw_price_t *price,
                          apr_uint32_t known, aigw_money_t *cost)
{
    aigw_usage_t u;
    aigw_money_t one;
    aigw_rc_t rc;

    memset(&u, 0, sizeof(u));
    u.n[AIGW_U_INPUT_UNCACHED] = w->opt.input - w->opt.cached;
    u.n[AIGW_U_CACHE_READ] = w->opt.cached;
    u.n[AIGW_U_OUTPUT] = w->opt.output;
    u.known = known;
    rc = aigw_price_cost(price, &u, &one);
    return rc == AIGW_OK ? aigw_money_mul(one, w->calls, cost) : rc;
}

static const char *money(work_t *w, aigw_money_t amount)
{
    return aigw_command_money(&w->opt, DIGITS, amount, w->pool);
}

static aigw_rc_t add_converted(work_t *w, const char **cells,
                               const aigw_price_t *price, aigw_money_t month)
{
    aigw_money_t rates[3], out;
    int n = w->opt.has_relay ? 3 : w->opt.has_rate, i;

    if (n && strcmp(price->currency, w->opt.rate.from) != 0) {
        w->other_currency++;
        return AIGW_OK;
    }
    rates[0] = w->opt.rate.rate;
    rates[1] = w->opt.relay.rate;
    rates[2] = rates[0] - rates[1];
    for (i = 0; i < n; i++) {
        if (aigw_rate_apply(month, rates[i], &out) != AIGW_OK) {
            return AIGW_TOO_BIG;
        }
        cells[COL_AT_RATE + i] = money(w, out);
    }
    return AIGW_OK;
}

static aigw_rc_t add_costs(work_t *w, const char **cells,
                           const aigw_price_t *price)
{
    aigw_money_t input, output, month;
    aigw_rc_t in =
        month_of(w, price,
                 1u << AIGW_U_INPUT_UNCACHED | 1u << AIGW_U_CACHE_READ,
                 &input);
    aigw_rc_t out = month_of(w, price, 1u << AIGW_U_OUTPUT, &output);

    if (in == AIGW_TOO_BIG || out == AIGW_TOO_BIG) {
        return AIGW_TOO_BIG;
    }
    cells[COL_INPUT_COST] = in == AIGW_OK ? money(w, input) : NULL;
    cells[COL_OUTPUT_COST] = out == AIGW_OK ? money(w, output) : NULL;
    if (in != AIGW_OK || out != AIGW_OK) {
        w->unpriced++;
        return AIGW_OK;
    }
    if (aigw_money_add(input, output, &month) != AIGW_OK) {
        return AIGW_TOO_BIG;
    }
    cells[COL_MONTH] = money(w, month);
    return add_converted(w, cells, price, month);
}

static const char *from_text(work_t *w, const aigw_price_t *price)
{
    char text[APR_RFC822_DATE_LEN];
    apr_time_exp_t tm;

    if (!price->from) {
        return NULL;
    }
    apr_time_exp_gmt(&tm, price->from);
    apr_snprintf(text, sizeof(text), "%04d-%02d-%02d", tm.tm_year + 1900,
                 tm.tm_mon + 1, tm.tm_mday);
    return apr_pstrdup(w->pool, text);
}

static aigw_rc_t add_row(work_t *w, const char *model,
                         const aigw_price_t *price)
{
    const char **cells = aigw_table_cells(w->table);

    cells[COL_MODEL] = model;
    cells[COL_CURRENCY] = price->currency;
    cells[COL_INPUT_PRICE] = price_text(w, price, AIGW_U_INPUT_UNCACHED);
    cells[COL_CACHED_PRICE] = price_text(w, price, AIGW_U_CACHE_READ);
    cells[COL_OUTPUT_PRICE] = price_text(w, price, AIGW_U_OUTPUT);
    cells[COL_FROM] = from_text(w, price);
    cells[COL_SOURCE] = price->source;
    cells[COL_CHECKED] = price->checked;
    aigw_table_row(w->table, cells);
    return add_costs(w, cells, price);
}

/* -- all rows ------------------------------------------------------------ */

static aigw_exit_t too_big(const char *model, apr_pool_t *pool)
{
    fprintf(stderr, "aigw-calc: %s: the month's cost is too large\n",
            aigw_text_safe(pool, model));
    return AIGW_EXIT_TOO_BIG;
}

static aigw_exit_t add_all(work_t *w)
{
    const aigw_price_t *p;
    int i;

    for (i = 0; (p = aigw_catalog_row(w->cat, i)); i++) {
        if (w->when < p->from || (p->to && w->when >= p->to)) {
            continue;
        }
        if (add_row(w, p->model, p) != AIGW_OK) {
            return too_big(p->model, w->pool);
        }
    }
    return AIGW_EXIT_OK;
}

static aigw_exit_t add_named(work_t *w)
{
    const aigw_price_t *p;
    const char *name;
    int i;

    for (i = 0; i < w->opt.models->nelts; i++) {
        name = APR_ARRAY_IDX(w->opt.models, i, const char *);
        p = aigw_catalog_find(w->cat, name, w->when);
        if (!p) {
            fprintf(stderr, "aigw-calc: %s: no price in force for '%s'\n",
                    aigw_text_safe(w->pool, w->path),
                    aigw_text_safe(w->pool, name));
            return AIGW_EXIT_INPUT;
        }
        if (add_row(w, name, p) != AIGW_OK) {
            return too_big(name, w->pool);
        }
    }
    return AIGW_EXIT_OK;
}

/* -- notes --------------------------------------------------------------- */

static void fact(work_t *w, const char *key, apr_uint64_t n)
{
    aigw_table_fact(w->table, key,
                    apr_psprintf(w->pool, "%" APR_UINT64_T_FMT, n),
                    AIGW_CELL_COUNT);
}

static void add_facts(work_t *w)
{
    aigw_table_fact(w->table, "prices", aigw_catalog_version(w->cat),
                    AIGW_CELL_TEXT);
    fact(w, "calls_per_day", w->opt.calls);
    fact(w, "days", w->opt.days);
    fact(w, "input", w->opt.input);
    fact(w, "cached", w->opt.cached);
    fact(w, "output", w->opt.output);
    aigw_table_fact(w->table, "rate",
                    w->opt.has_rate ? rate_text(w, w->opt.rate.rate) : NULL,
                    AIGW_CELL_DECIMAL);
    aigw_table_fact(w->table, "relay_rate",
                    w->opt.has_relay ? rate_text(w, w->opt.relay.rate) : NULL,
                    AIGW_CELL_DECIMAL);
    aigw_table_fact(w->table, "rate_currency",
                    w->opt.has_rate ? w->opt.rate.to : NULL, AIGW_CELL_TEXT);
}

static void note_formula(work_t *w)
{
    aigw_table_note(w->table,
                    apr_psprintf(w->pool,
                                 "month = %" APR_UINT64_T_FMT
                                 " calls a day x %" APR_UINT64_T_FMT
                                 " days x (%" APR_UINT64_T_FMT
                                 " input x input price + %" APR_UINT64_T_FMT
                                 " cached x cached price + %" APR_UINT64_T_FMT
                                 " output x output price) / 1000000",
                                 w->opt.calls, w->opt.days,
                                 w->opt.input - w->opt.cached, w->opt.cached,
                                 w->opt.output));
    if (w->opt.cached) {
        aigw_table_note(w->table, "Cached tokens of a model without a cached "
                                  "price cost its input price.");
    }
}

static void note_rates(work_t *w)
{
    const char *to = w->opt.rate.to, *rate, *relay;

    if (!w->opt.has_rate) {
        return;
    }
    rate = rate_text(w, w->opt.rate.rate);
    if (!w->opt.has_relay) {
        aigw_table_note(w->table,
                        apr_psprintf(w->pool,
                                     "%s at %s = month x "
                                     "%s, a rate given on the command line.",
                                     to, rate, rate));
        return;
    }
    relay = rate_text(w, w->opt.relay.rate);
    aigw_table_note(
        w->table,
        apr_psprintf(
            w->pool,
            "difference = month x (%s - %s) %s: what the same month costs "
            "less "
            "where one %s is paid with %s %s instead of %s. Both rates were "
            "given on the command line.",
            rate, relay, to, w->opt.rate.from, relay, to, rate));
}

static void note_missing(work_t *w)
{
    if (w->n) {
        aigw_table_note(
            w->table,
            apr_psprintf(w->pool,
                         "Tokens of a call: the mean of %" APR_UINT64_T_FMT
                         " call%s with reported usage, rounded to whole "
                         "tokens.",
                         w->n, w->n == 1 ? "" : "s"));
    }
    if (w->logs.bad) {
        aigw_table_note(
            w->table,
            apr_psprintf(w->pool,
                         "Left out: %" APR_UINT64_T_FMT
                         " bad line%s; standard error names the first.",
                         w->logs.bad, w->logs.bad == 1 ? "" : "s"));
    }
    if (w->unpriced) {
        aigw_table_note(
            w->table,
            apr_psprintf(
                w->pool,
                "No month for %d "
                "model%s: a price of tokens that are counted here is missing.",
                w->unpriced, w->unpriced == 1 ? "" : "s"));
    }
    if (w->other_currency) {
        aigw_table_note(
            w->table,
            apr_psprintf(w->pool,
                         "Not converted: %d "
                         "row%s priced in another currency than %s.",
                         w->other_currency, w->other_currency == 1 ? "" : "s",
                         w->opt.rate.from));
    }
}

static void add_notes(work_t *w)
{
    char day[11];

    aigw_day_text(aigw_day_of(w->when), day);
    add_facts(w);
    note_formula(w);
    note_rates(w);
    note_missing(w);
    aigw_table_note(
        w->table,
        apr_psprintf(w->pool,
                     "Prices: %s, version %s, "
                     "in force on %s. MTok: a million tokens. Check a price "
                     "at its source "
                     "(--format=json states it) before you rely on it.",
                     aigw_text_safe(w->pool, w->path),
                     aigw_text_safe(w->pool, aigw_catalog_version(w->cat)),
                     day));
}

/* -- the command --------------------------------------------------------- */

/* Prices change at midnight UTC: so do the days here. */
static apr_time_t moment(aigw_day_t on)
{
    apr_time_t when = apr_time_now();
    char text[24];

    if (on) {
        aigw_day_text(on, text);
        memcpy(text + 10, "T00:00:00Z", 11);
        aigw_record_time(text, &when);
    }
    return when;
}

static aigw_exit_t month_calls(work_t *w)
{
    aigw_money_t product;

    if (aigw_money_mul((aigw_money_t)w->opt.calls, (apr_int64_t)w->opt.days,
                       &product)
            != AIGW_OK
        || product > APR_INT64_MAX) {
        fputs("aigw-calc: calls a day times days is too large\n", stderr);
        return AIGW_EXIT_TOO_BIG;
    }
    w->calls = (apr_int64_t)product;
    return AIGW_EXIT_OK;
}

static aigw_exit_t run(work_t *w)
{
    aigw_exit_t end = month_calls(w);

    if (end == AIGW_EXIT_OK) {
        end = read_logs(w);
    }
    if (end != AIGW_EXIT_OK) {
        return end;
    }
    w->path = w->opt.prices ? w->opt.prices : AIGW_PRICES_FILE;
    w->cat = aigw_command_catalog(w->path, w->pool);
    if (!w->cat) {
        return AIGW_EXIT_INPUT;
    }
    w->table = aigw_table_make("prices", w->pool);
    add_columns(w);
    end = w->opt.models->nelts ? add_named(w) : add_all(w);
    if (end != AIGW_EXIT_OK) {
        return end;
    }
    add_notes(w);
    return aigw_command_print(w->table, &w->opt);
}

aigw_exit_t aigw_command_prices(int argc, char **argv, apr_pool_t *pool)
{
    work_t w;
    aigw_rc_t rc;

    memset(&w, 0, sizeof(w));
    w.pool = pool;
    rc = aigw_options_prices(&w.opt, argc, argv, pool);
    if (rc != AIGW_OK) {
        return rc == AIGW_DONE ? AIGW_EXIT_OK : AIGW_EXIT_USAGE;
    }
    aigw_day_zone("UTC");
    w.when = moment(w.opt.on);
    return run(&w);
}
