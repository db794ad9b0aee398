/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc report: one page of HTML for people who have no terminal: cost by
 * day and model, tokens by kind, latencies, and tables by day, model and
 * tenant.  Lengths in the charts are whole numbers made of exact sums; the
 * figures beside them are the exact sums, rounded.
 */
#include <stdio.h>
#include <apr_strings.h>
#include "args.h"
#include "commands.h"
#include "html.h"
#include "logs.h"

#define TALLIES 4
#define MODELS_SHOWN 6 /* the others are one colour */
#define HEIGHT 200
#define BUCKETS 24 /* of latency: 1 ms and below, 2, 4, ... */
#define BARS_MAX 400
#define DIGITS 6

typedef struct {
    aigw_options_t opt;
    const char *title;
    apr_pool_t *pool;
    aigw_catalog_t *cat;
    aigw_tally_t *tally[TALLIES]; /* day, model, tenant, day and model */
    aigw_logs_t logs;
    apr_uint64_t latency[BUCKETS];
    const char **currencies;
    int n_currencies;
    aigw_group_t **models; /* by cost, dearest first */
    int n_models;
} work_t;

/* -- records ------------------------------------------------------------- */

static void take_latency(work_t *w, apr_int64_t us)
{
    int at = 0;

    if (us < 0) {
        return;
    }
    while (at < BUCKETS - 1 && us > APR_INT64_C(1000) << at) {
        at++;
    }
    w->latency[at]++;
}

static aigw_rc_t take_record(void *ctx, const aigw_record_t *rec)
{
    work_t *w = ctx;
    aigw_day_t day = aigw_day_of(rec->ts);
    const char *currency = NULL;
    aigw_money_t cost;
    aigw_rc_t rc;
    int i;

    if ((w->opt.since && day < w->opt.since)
        || (w->opt.until && day > w->opt.until)) {
        return AIGW_OK;
    }
    rc = aigw_command_cost(w->cat, rec, &cost, &currency);
    if (rc != AIGW_OK && rc != AIGW_AGAIN) {
        return rc;
    }
    if (!aigw_tally_is_error(rec)) {
        take_latency(w, rec->total_us);
    }
    for (i = 0; i < TALLIES; i++) {
        if (aigw_tally_add(w->tally[i], rec, day, rc == AIGW_OK ? &cost : NULL,
                           currency)
            != AIGW_OK) {
            return AIGW_TOO_BIG;
        }
    }
    return AIGW_OK;
}

/* -- tables -------------------------------------------------------------- */

static const char *count(const work_t *w, apr_uint64_t n)
{
    return apr_psprintf(w->pool, "%" APR_UINT64_T_FMT, n);
}

static const struct {
    aigw_tally_field_t field;
    const char *head;
} counted[] = {{AIGW_T_REQUESTS, "requests"},
               {AIGW_T_ERRORS, "errors"},
               {AIGW_T_INPUT, "input"},
               {AIGW_T_CACHE_READ, "cache read"},
               {AIGW_T_CACHE_WRITE, "cache write"},
               {AIGW_T_OUTPUT, "output"}};

#define N_COUNTED ((int)(sizeof(counted) / sizeof(counted[0])))

static const char **cells_of(work_t *w, aigw_table_t *t, const aigw_group_t *g,
                             const char *key)
{
    const char **cells = aigw_table_cells(t);
    const aigw_sum_t *sum;
    int i;

    cells[0] = key;
    for (i = 0; i < N_COUNTED; i++) {
        if (g->known & 1u << counted[i].field) {
            cells[1 + i] = count(w, g->n[counted[i].field]);
        }
    }
    for (i = 0; i < w->n_currencies; i++) {
        sum = aigw_group_sum(g, w->currencies[i]);
        if (sum) {
            cells[1 + N_COUNTED + i] =
                aigw_command_money(&w->opt, DIGITS, sum->amount, w->pool);
        }
    }
    return cells;
}

static void put_table(work_t *w, aigw_tally_t *tally, const char *key)
{
    aigw_table_t *t = aigw_table_make("report", w->pool);
    aigw_group_t **groups;
    int n, i;

    aigw_table_column(t, key, key, AIGW_CELL_TEXT);
    for (i = 0; i < N_COUNTED; i++) {
        aigw_table_column(t, counted[i].head, counted[i].head,
                          AIGW_CELL_COUNT);
    }
    for (i = 0; i < w->n_currencies; i++) {
        aigw_table_column(t, w->currencies[i],
                          apr_pstrcat(w->pool, "cost ", w->currencies[i],
                                      NULL),
                          AIGW_CELL_DECIMAL);
    }
    groups = aigw_tally_groups(tally, &n);
    for (i = 0; i < n; i++) {
        aigw_table_row(t,
                       cells_of(w, t, groups[i],
                                groups[i]->key[0] ? groups[i]->key[0] : "-"));
    }
    t->total = cells_of(w, t, aigw_tally_total(tally), NULL);
    printf("<h2>By %s</h2>\n", key);
    aigw_html_table(t, stdout);
}

/* -- charts -------------------------------------------------------------- */

/* amount * length / most, without leaving whole numbers; 0 to length. */
static int scaled(aigw_money_t amount, aigw_money_t most, int length)
{
    while (most > APR_INT64_MAX / 1024) {
        most /= 1024;
        amount /= 1024;
    }
    return most > 0 && amount > 0 ? (int)(amount * length / most) : 0;
}

static aigw_money_t cost_in(const work_t *w, const aigw_group_t *g)
{
    const aigw_sum_t *sum =
        w->n_currencies ? aigw_group_sum(g, w->currencies[0]) : NULL;

    return sum ? sum->amount : 0;
}

/* Its colour: the place among the dearest. */
static int colour_of(const work_t *w, const char *model)
{
    int i;

    for (i = 0; i < w->n_models && i < MODELS_SHOWN; i++) {
        const char *name = w->models[i]->key[0];

        if (name == model || (name && model && strcmp(name, model) == 0)) {
            return i;
        }
    }
    return MODELS_SHOWN;
}

static void begin_chart(const char *title, int width, int height)
{
    printf("<h2>%s</h2>\n<figure><svg viewBox=\"0 0 %d %d\" width=\"%d\" "
           "height=\"%d\" role=\"img\" aria-label=\"%s\">\n",
           title, width, height, width, height, title);
}

static void put_bar(work_t *w, const int box[4], int colour, const char *tip)
{
    printf("<rect class=\"k%d\" x=\"%d\" y=\"%d\" width=\"%d\" "
           "height=\"%d\"><title>",
           colour, box[0], box[1], box[2], box[3]);
    aigw_html_text(w->pool, tip, stdout);
    puts("</title></rect>");
}

static void put_text(work_t *w, int x, int y, const char *text)
{
    printf("<text x=\"%d\" y=\"%d\">", x, y);
    aigw_html_text(w->pool, text, stdout);
    puts("</text>");
}

/* Colours of the models below the chart. */
static void put_legend(work_t *w)
{
    int i, n = w->n_models < MODELS_SHOWN ? w->n_models : MODELS_SHOWN;

    fputs("<figcaption>", stdout);
    for (i = 0; i < n + (w->n_models > n); i++) {
        printf("<svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect "
               "class=\"k%d\" width=\"12\" height=\"12\"></rect></svg> ",
               i);
        aigw_html_text(w->pool,
                       i == n                 ? "others"
                       : w->models[i]->key[0] ? w->models[i]->key[0]
                                              : "(no model)",
                       stdout);
        fputs(" &#160; ", stdout);
    }
    puts("</figcaption></figure>");
}

static const char *tip_of(work_t *w, const aigw_group_t *g)
{
    return apr_pstrcat(w->pool, g->key[0], " ",
                       g->key[1] ? g->key[1] : "(no model)", ": ",
                       aigw_command_money(&w->opt, DIGITS, cost_in(w, g),
                                          w->pool),
                       " ", w->currencies[0], NULL);
}

/* One column a day, its models one above the other. */
static void put_costs(work_t *w)
{
    aigw_group_t **days, **parts;
    aigw_money_t most = 0;
    int n, n_parts, i, k = 0, y, wide;

    days = aigw_tally_groups(w->tally[0], &n);
    parts = aigw_tally_groups(w->tally[3], &n_parts);
    for (i = 0; i < n; i++) {
        most = cost_in(w, days[i]) > most ? cost_in(w, days[i]) : most;
    }
    if (most == 0 || n > BARS_MAX) {
        puts("<h2>Cost by day and model</h2>\n<p>No chart: there are no "
             "costs, or too many days.</p>");
        return;
    }
    wide = n > 90 ? 8 : 900 / (n < 10 ? 10 : n);
    begin_chart("Cost by day and model", wide * n + 10, HEIGHT + 40);
    for (i = 0; i < n; i++) {
        for (y = HEIGHT + 15;
             k < n_parts && strcmp(parts[k]->key[0], days[i]->key[0]) == 0;
             k++) {
            int h = scaled(cost_in(w, parts[k]), most, HEIGHT);
            int box[4] = {5 + i * wide, y - h, wide - 2, h};

            y -= h;
            if (h) {
                put_bar(w, box, colour_of(w, parts[k]->key[1]),
                        tip_of(w, parts[k]));
            }
        }
        if (i % (80 / wide + 1) == 0) {
            put_text(w, 5 + i * wide, HEIGHT + 32, days[i]->key[0]);
        }
    }
    puts("</svg>");
    put_legend(w);
}

static void put_tokens(work_t *w)
{
    const aigw_group_t *g = aigw_tally_total(w->tally[0]);
    apr_uint64_t most = 1;
    int i;

    for (i = 2; i < N_COUNTED; i++) {
        apr_uint64_t n = g->n[counted[i].field];
        most = n > most ? n : most;
    }
    begin_chart("Tokens by kind", 900, (N_COUNTED - 2) * 30 + 10);
    for (i = 2; i < N_COUNTED; i++) {
        apr_uint64_t n = g->n[counted[i].field];
        int y = (i - 2) * 30 + 5,
            length = scaled((aigw_money_t)n, (aigw_money_t)most, 620);
        int box[4] = {100, y, length, 22};

        put_text(w, 0, y + 16, counted[i].head);
        put_bar(w, box, i - 2, count(w, n));
        put_text(w, 106 + length, y + 16,
                 g->known & 1u << counted[i].field ? count(w, n) : "-");
    }
    puts("</svg></figure>");
}

static void put_latencies(work_t *w)
{
    apr_uint64_t most = 0;
    int i, first = BUCKETS, last = -1;

    for (i = 0; i < BUCKETS; i++) {
        most = w->latency[i] > most ? w->latency[i] : most;
        if (w->latency[i]) {
            first = i < first ? i : first;
            last = i;
        }
    }
    if (!most) {
        puts("<h2>Latency</h2>\n<p>No latency is in the logs.</p>");
        return;
    }
    begin_chart("Latency of answers without error",
                (last - first + 1) * 80 + 30, HEIGHT + 40);
    for (i = first; i <= last; i++) {
        int h =
            scaled((aigw_money_t)w->latency[i], (aigw_money_t)most, HEIGHT);
        int box[4] = {5 + (i - first) * 80, HEIGHT + 15 - h, 70, h};

        put_bar(w, box, 0, count(w, w->latency[i]));
        put_text(w, box[0], HEIGHT + 32,
                 apr_psprintf(w->pool, "%s%d ms",
                              i == BUCKETS - 1 ? "above " : "to ",
                              1 << (i == BUCKETS - 1 ? i - 1 : i)));
    }
    puts("</svg></figure>");
}

/* -- the page ------------------------------------------------------------ */

static void put_notes(work_t *w)
{
    const aigw_group_t *g = aigw_tally_total(w->tally[0]);
    const char *models = aigw_tally_unpriced(w->tally[0]);

    printf("<p>Not in the cost: %" APR_UINT64_T_FMT
           " requests whose usage is not known, %" APR_UINT64_T_FMT
           " without a price",
           g->n[AIGW_T_NO_USAGE], g->n[AIGW_T_UNPRICED]);
    if (models) {
        fputs(" (", stdout);
        aigw_html_text(w->pool, models, stdout);
        fputs(")", stdout);
    }
    printf(". Lower bounds: %" APR_UINT64_T_FMT
           "; estimated: %" APR_UINT64_T_FMT
           ". Bad lines left out: %" APR_UINT64_T_FMT
           ". Days are of the zone ",
           g->n[AIGW_T_PARTIAL], g->n[AIGW_T_ESTIMATED], w->logs.bad);
    aigw_html_text(w->pool, w->opt.tz, stdout);
    puts(".</p>");
    if (w->n_currencies > 1) {
        fputs("<p>The chart of costs shows ", stdout);
        aigw_html_text(w->pool, w->currencies[0], stdout);
        puts(" only.</p>");
    }
}

/* Dearest first, by insertion: there are few models, or the order of the
 * rest does not show. */
static void rank_models(work_t *w)
{
    int i, k;

    w->models = aigw_tally_groups(w->tally[1], &w->n_models);
    for (i = 1; i < w->n_models && i < 1000; i++) {
        aigw_group_t *g = w->models[i];

        for (k = i; k > 0 && cost_in(w, w->models[k - 1]) < cost_in(w, g);
             k--) {
            w->models[k] = w->models[k - 1];
        }
        w->models[k] = g;
    }
}

static aigw_exit_t put_page(work_t *w)
{
    w->currencies =
        aigw_tally_currencies(w->tally[0], &w->n_currencies, w->pool);
    rank_models(w);
    aigw_html_begin(w->pool, w->title ? w->title : "Use of the AI gateway",
                    stdout);
    put_notes(w);
    put_costs(w);
    put_tokens(w);
    put_latencies(w);
    put_table(w, w->tally[0], "day");
    put_table(w, w->tally[1], "model");
    put_table(w, w->tally[2], "tenant");
    aigw_html_end(stdout);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("aigw-calc: the result could not be written\n", stderr);
        return AIGW_EXIT_OUTPUT;
    }
    return AIGW_EXIT_OK;
}

static aigw_exit_t run(work_t *w)
{
    static const aigw_by_t by[TALLIES][2] = {{AIGW_BY_DAY, AIGW_BY_DAY},
                                             {AIGW_BY_MODEL, AIGW_BY_DAY},
                                             {AIGW_BY_TENANT, AIGW_BY_DAY},
                                             {AIGW_BY_DAY, AIGW_BY_MODEL}};
    aigw_exit_t end;
    int i;

    if (w->opt.prices) {
        w->cat = aigw_command_catalog(w->opt.prices, w->pool);
        if (!w->cat) {
            return AIGW_EXIT_INPUT;
        }
    }
    for (i = 0; i < TALLIES; i++) {
        w->tally[i] = aigw_tally_make(by[i], i == 3 ? 2 : 1, w->pool);
    }
    end = aigw_logs_read(&w->opt, take_record, w, &w->logs, w->pool);
    for (i = 0; i < TALLIES && end == AIGW_EXIT_OK; i++) {
        if (aigw_tally_close(w->tally[i]) != AIGW_OK) {
            fputs("aigw-calc: a figure is too large\n", stderr);
            end = AIGW_EXIT_TOO_BIG;
        }
    }
    return end == AIGW_EXIT_OK ? put_page(w) : end;
}

#define AT(member) offsetof(work_t, member)

static const aigw_arg_t rows[] = {{"title", AIGW_ARG_TEXT, AT(title), "TEXT",
                                   "of the page"},
                                  {"since", AIGW_ARG_DAY, AT(opt.since), "DAY",
                                   "from this day on, itself included"},
                                  {"until", AIGW_ARG_DAY, AT(opt.until), "DAY",
                                   "up to this day, itself included"},
                                  {"tz", AIGW_ARG_ZONE, AT(opt.tz), "ZONE",
                                   "whose days: local (default), UTC, ..."},
                                  {"prices", AIGW_ARG_TEXT, AT(opt.prices),
                                   "FILE", "price each record anew"},
                                  {NULL, 0, 0, NULL, NULL}};

static const aigw_args_t args =
    {"report",
     "[OPTION...] FILE...",
     "One page of HTML: cost by day and model, tokens, latencies, and tables\n"
     "by day, model and tenant. It is always HTML.\n",
     "aigw-calc report --since=2026-11-01 usage.log >report.html",
     rows,
     1,
     100000,
     1};

aigw_exit_t aigw_command_report(int argc, char **argv, apr_pool_t *pool)
{
    work_t w;
    aigw_rc_t rc;

    memset(&w, 0, sizeof(w));
    w.pool = pool;
    rc = aigw_args_read(&args, &w.opt, argc, argv, pool);
    if (rc != AIGW_OK) {
        return rc == AIGW_DONE ? AIGW_EXIT_OK : AIGW_EXIT_USAGE;
    }
    w.opt.format = AIGW_FORMAT_TEXT; /* money is rounded as there */
    return run(&w);
}
