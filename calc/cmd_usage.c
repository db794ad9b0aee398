/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc usage: what was used and what it cost.  Whatever a figure leaves
 * out (unknown usage, no price, bad lines, other days) is counted and said:
 * a cost that is not known is never shown as 0.
 */
#include <stdio.h>
#include <apr_strings.h>
#include "commands.h"
#include "logs.h"
#include "ratio.h"

#define DIGITS 6

/* Work in progress. */
typedef struct {
    const aigw_options_t *opt;
    aigw_catalog_t *cat; /* NULL: the records' own cost counts */
    aigw_tally_t *tally;
    aigw_logs_t logs;
    apr_uint64_t other_days;
    apr_pool_t *pool;
    aigw_table_t *table;
    const char **currencies; /* sorted */
    int n_currencies;
} work_t;

/* -- records in ---------------------------------------------------------- */

aigw_rc_t aigw_command_cost(const aigw_catalog_t *cat,
                            const aigw_record_t *rec, aigw_money_t *cost,
                            const char **currency)
{
    const aigw_price_t *price;
    aigw_rc_t rc;

    if (!cat) {
        *cost = rec->cost;
        *currency = rec->currency;
        return rec->has_cost ? AIGW_OK : AIGW_AGAIN;
    }
    price = aigw_catalog_price(cat, rec->served, rec->model, rec->ts);
    if (!price || rec->usage.source == AIGW_USAGE_NONE) {
        return AIGW_AGAIN;
    }
    *currency = price->currency;
    rc = aigw_price_cost(price, &rec->usage, cost);
    return rc == AIGW_MALFORMED ? AIGW_AGAIN : rc;
}

static aigw_rc_t take_record(void *ctx, const aigw_record_t *rec)
{
    work_t *w = ctx;
    aigw_day_t day = aigw_day_of(rec->ts);
    const char *currency = NULL;
    aigw_money_t cost;
    aigw_rc_t rc;

    if ((w->opt->since && day < w->opt->since)
        || (w->opt->until && day > w->opt->until)) {
        w->other_days++;
        return AIGW_OK;
    }
    rc = aigw_command_cost(w->cat, rec, &cost, &currency);
    if (rc != AIGW_OK && rc != AIGW_AGAIN) {
        return rc;
    }
    return aigw_tally_add(w->tally, rec, day, rc == AIGW_OK ? &cost : NULL,
                          currency);
}

/* -- the table ----------------------------------------------------------- */

static void add_count_columns(work_t *w)
{
    static const struct {
        const char *key, *head;
        int optional, drop;
    } rows[AIGW_T_MAX] = {{"requests", "requests", 0, 0},
                          {"errors", "errors", 0, 1},
                          {"input_uncached", "input", 0, 0},
                          {"cache_read", "cache read", 0, 2},
                          {"cache_write", "cache write", 0, 3},
                          {"output", "output", 0, 0},
                          {"reasoning", "reasoning", 0, 4},
                          {"no_usage", "no usage", 1, 5},
                          {"partial", "partial", 1, 6},
                          {"estimated", "estimated", 1, 7},
                          {"unpriced", "unpriced", 1, 8}};
    aigw_column_t *c;
    int i;

    for (i = 0; i < AIGW_T_MAX; i++) {
        c = aigw_table_column(w->table, rows[i].key, rows[i].head,
                              AIGW_CELL_COUNT);
        c->optional = rows[i].optional;
        c->drop = rows[i].drop;
    }
}

/* Without any cost there still is a column that says so. */
static void add_columns(work_t *w)
{
    int i;

    for (i = 0; i < w->opt->n_by; i++) {
        aigw_table_column(w->table, aigw_by_name(w->opt->by[i]),
                          aigw_by_name(w->opt->by[i]), AIGW_CELL_TEXT);
    }
    add_count_columns(w);
    for (i = 0; i < w->n_currencies; i++) {
        aigw_table_column(w->table,
                          apr_pstrcat(w->pool, "cost_", w->currencies[i],
                                      NULL),
                          apr_pstrcat(w->pool, "cost ",
                                      aigw_text_safe(w->pool,
                                                     w->currencies[i]),
                                      NULL),
                          AIGW_CELL_DECIMAL);
    }
    if (w->n_currencies == 0) {
        aigw_table_column(w->table, "cost", "cost", AIGW_CELL_DECIMAL);
    }
}

static const char **cells_of(work_t *w, const aigw_group_t *g)
{
    const char **cells = aigw_table_cells(w->table);
    const aigw_sum_t *sum;
    int i, at = w->opt->n_by;

    for (i = 0; i < w->opt->n_by; i++) {
        cells[i] = g->key[i];
    }
    for (i = 0; i < AIGW_T_MAX; i++, at++) {
        if (g->known & (1u << i)) {
            cells[at] = apr_psprintf(w->pool, "%" APR_UINT64_T_FMT, g->n[i]);
        }
    }
    for (i = 0; i < w->n_currencies; i++, at++) {
        sum = aigw_group_sum(g, w->currencies[i]);
        if (sum) {
            cells[at] =
                aigw_command_money(w->opt, DIGITS, sum->amount, w->pool);
        }
    }
    return cells;
}

/* -- what has to be said ------------------------------------------------- */

static const char *number(work_t *w, apr_uint64_t n)
{
    return apr_psprintf(w->pool, "%" APR_UINT64_T_FMT, n);
}

static void note(work_t *w, const char *sentence)
{
    aigw_table_note(w->table, sentence);
}

static const char *requests(work_t *w, apr_uint64_t n)
{
    return apr_pstrcat(w->pool, number(w, n),
                       n == 1 ? " request" : " requests", NULL);
}

/* "3 requests (12.5 %)": so many of all of them. */
static const char *part(work_t *w, apr_uint64_t n)
{
    apr_uint64_t all = aigw_tally_total(w->tally)->n[AIGW_T_REQUESTS];
    aigw_ratio_t share;
    const char *text = NULL;

    if (aigw_ratio_make((aigw_money_t)n * 100, (aigw_money_t)all, &share)
        == AIGW_OK) {
        text = aigw_ratio_text(share, 1, AIGW_ROUND_HALF_EVEN, w->pool);
    }
    return apr_pstrcat(w->pool, requests(w, n), " (", text ? text : "?", " %)",
                       NULL);
}

static void note_days(work_t *w)
{
    char since[11], until[11];

    aigw_day_text(w->opt->since, since);
    aigw_day_text(w->opt->until, until);
    aigw_table_fact(w->table, "since",
                    w->opt->since ? apr_pstrdup(w->pool, since) : NULL,
                    AIGW_CELL_TEXT);
    aigw_table_fact(w->table, "until",
                    w->opt->until ? apr_pstrdup(w->pool, until) : NULL,
                    AIGW_CELL_TEXT);
    aigw_table_fact(w->table, "tz", w->opt->tz, AIGW_CELL_TEXT);
    aigw_table_fact(w->table, "other_days", number(w, w->other_days),
                    AIGW_CELL_COUNT);
    if (w->opt->since || w->opt->until) {
        note(w, apr_psprintf(w->pool,
                             "Days from %s to %s, both included "
                             "(zone: %s); %s of other days left out.",
                             w->opt->since ? since : "the first",
                             w->opt->until ? until : "the last", w->opt->tz,
                             requests(w, w->other_days)));
    }
}

static void note_costs(work_t *w)
{
    const char *version = w->cat ? aigw_catalog_version(w->cat) : NULL;

    aigw_table_fact(w->table, "prices", version, AIGW_CELL_TEXT);
    if (version) {
        note(w, apr_psprintf(w->pool,
                             "Cost: priced anew from %s, version "
                             "%s.",
                             aigw_text_safe(w->pool, w->opt->prices),
                             aigw_text_safe(w->pool, version)));
    }
}

static void note_excluded(work_t *w)
{
    const aigw_group_t *total = aigw_tally_total(w->tally);
    const char *models = aigw_tally_unpriced(w->tally);
    apr_uint64_t n;

    if ((n = total->n[AIGW_T_NO_USAGE])) {
        note(w, apr_psprintf(w->pool,
                             "Not in the cost: %s whose usage is "
                             "not known.",
                             part(w, n)));
    }
    if ((n = total->n[AIGW_T_UNPRICED])) {
        note(w, apr_psprintf(w->pool,
                             "Not in the cost: %s without a price "
                             "(%s).",
                             part(w, n), aigw_text_safe(w->pool, models)));
    }
    if ((n = total->n[AIGW_T_PARTIAL])) {
        note(w, apr_psprintf(w->pool,
                             "A lower bound: %s cut before the "
                             "final usage came.",
                             part(w, n)));
    }
    if ((n = total->n[AIGW_T_ESTIMATED])) {
        note(w, apr_psprintf(w->pool,
                             "Estimated, not reported: the usage "
                             "of %s.",
                             part(w, n)));
    }
}

static void note_bad_lines(work_t *w)
{
    apr_uint64_t n = w->logs.bad;

    aigw_table_fact(w->table, "records", number(w, w->logs.records),
                    AIGW_CELL_COUNT);
    aigw_table_fact(w->table, "bad_lines", number(w, n), AIGW_CELL_COUNT);
    if (n) {
        note(w, apr_psprintf(w->pool,
                             "Left out: %s bad line%s; standard "
                             "error names the first.",
                             number(w, n), n == 1 ? "" : "s"));
    }
}

static void note_left_out(work_t *w)
{
    apr_uint64_t n = w->logs.duplicates, over = aigw_tally_overflow(w->tally);

    aigw_table_fact(w->table, "duplicates", number(w, n), AIGW_CELL_COUNT);
    if (n) {
        note(w,
             apr_psprintf(w->pool, "Left out: %s whose id was there before.",
                          requests(w, n)));
    }
    if (w->logs.window_passed) {
        note(w, "Not all duplicates may have been seen: there were more ids "
                "than are kept.");
    }
    if (over) {
        note(w,
             apr_psprintf(w->pool,
                          "In " AIGW_OTHER ": %s of further groups than "
                          "the %s of --max-groups.",
                          requests(w, over), number(w, w->opt->max_groups)));
    }
}

static aigw_rc_t parse_cell(const char *cell, aigw_money_t *value)
{
    return aigw_money_parse(aigw_slice(cell, strlen(cell)), value);
}

/* What the rounded rows of a column add up to. */
static aigw_rc_t sum_rows(work_t *w, int column, aigw_money_t *sum)
{
    aigw_money_t cell;
    const char *text;
    aigw_rc_t rc = AIGW_OK;
    int i;

    *sum = 0;
    for (i = 0; i < w->table->rows->nelts && rc == AIGW_OK; i++) {
        text = APR_ARRAY_IDX(w->table->rows, i, const char **)[column];
        if (text) {
            rc = parse_cell(text, &cell);
            rc = rc == AIGW_OK ? aigw_money_add(*sum, cell, sum) : rc;
        }
    }
    return rc;
}

/* Rounded rows may not add up to the rounded total: then both are said. */
static void note_residue(work_t *w, int column, const char *currency)
{
    const char *shown = w->table->total[column];
    aigw_money_t sum, total;
    char text[AIGW_MONEY_TEXT];

    if (!shown || sum_rows(w, column, &sum) != AIGW_OK
        || parse_cell(shown, &total) != AIGW_OK || sum == total) {
        return;
    }
    aigw_money_text(sum, text);
    note(w, apr_psprintf(w->pool,
                         "Rounding: the rows of cost %s add up to %s; the "
                         "total, %s, is the rounded sum of the exact costs.",
                         aigw_text_safe(w->pool, currency), text, shown));
}

static void add_notes(work_t *w)
{
    int i;

    if (w->table->rows->nelts == 0) {
        note(w, "No records.");
    }
    note_days(w);
    note_costs(w);
    note_excluded(w);
    note_bad_lines(w);
    note_left_out(w);
    for (i = 0; i < w->n_currencies; i++) {
        note_residue(w, w->opt->n_by + AIGW_T_MAX + i, w->currencies[i]);
    }
}

static void make_table(work_t *w)
{
    aigw_group_t **groups;
    int n, i;

    w->table = aigw_table_make("usage", w->pool);
    w->currencies = aigw_tally_currencies(w->tally, &w->n_currencies, w->pool);
    add_columns(w);
    groups = aigw_tally_groups(w->tally, &n);
    for (i = 0; i < n; i++) {
        aigw_table_row(w->table, cells_of(w, groups[i]));
    }
    w->table->total = cells_of(w, aigw_tally_total(w->tally));
    add_notes(w);
}

aigw_exit_t aigw_command_usage(int argc, char **argv, apr_pool_t *pool)
{
    aigw_options_t opt;
    aigw_exit_t end;
    work_t w;
    aigw_rc_t rc = aigw_options_usage(&opt, argc, argv, pool);

    if (rc != AIGW_OK) {
        return rc == AIGW_DONE ? AIGW_EXIT_OK : AIGW_EXIT_USAGE;
    }
    memset(&w, 0, sizeof(w));
    w.opt = &opt;
    w.pool = pool;
    w.tally = aigw_tally_make(opt.by, opt.n_by, pool);
    aigw_tally_limit(w.tally, opt.max_groups);
    if (opt.prices) {
        w.cat = aigw_command_catalog(opt.prices, pool);
        if (!w.cat) {
            return AIGW_EXIT_INPUT;
        }
    }
    end = aigw_logs_read(&opt, take_record, &w, &w.logs, pool);
    if (end == AIGW_EXIT_OK && aigw_tally_close(w.tally) != AIGW_OK) {
        fputs("aigw-calc: a figure does not fit: the total is too large\n",
              stderr);
        end = AIGW_EXIT_TOO_BIG;
    }
    if (end != AIGW_EXIT_OK) {
        return end;
    }
    make_table(&w);
    end = aigw_command_print(w.table, &opt);
    return end == AIGW_EXIT_OK ? aigw_logs_done(&w.logs) : end;
}
