/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc perf: the same thing measured before and after a change, from two
 * usage logs.  Every change has an interval or says that it has none; one
 * that could be nothing is called no difference.
 */
#include <stdio.h>
#include <apr_strings.h>
#include "args.h"
#include "commands.h"
#include "logs.h"
#include "ratio.h"
#include "stats.h"

#define DIGITS 3
#define LOAD_PERCENT 5 /* loads that differ by more are not the same */

/* One log. */
typedef struct {
    apr_array_header_t *times, *total, *first; /* of apr_int64_t */
    apr_uint64_t n, errors;
    aigw_logs_t logs;
} side_t;

typedef struct {
    aigw_options_t opt;
    aigw_arg_decimal_t cpu[2];
    side_t side[2]; /* before, after */
    apr_pool_t *pool;
    aigw_table_t *table;
    int no_interval;
} work_t;

/* One line of the table. */
typedef struct {
    const char *metric, *unit;
    int known[2];
    aigw_ratio_t value[2];
    aigw_span_t span; /* of the change */
    int in_points;    /* the span is, not in per cent */
    int up_is_better; /* -1: neither is */
    int is_rate;      /* a percentage: its change is told in points too */
} metric_t;

enum {
    COL_METRIC = 0,
    COL_UNIT,
    COL_BEFORE,
    COL_AFTER,
    COL_CHANGE,
    COL_POINTS,
    COL_LOW,
    COL_HIGH,
    COL_SPAN_UNIT,
    COL_VERDICT
};

/* -- reading ------------------------------------------------------------- */

static void keep(apr_array_header_t *to, apr_int64_t value)
{
    APR_ARRAY_PUSH(to, apr_int64_t) = value;
}

static aigw_rc_t take_record(void *ctx, const aigw_record_t *rec)
{
    side_t *s = ctx;

    s->n++;
    keep(s->times, rec->ts);
    if (aigw_tally_is_error(rec)) {
        s->errors++;
        return AIGW_OK;
    }
    if (rec->total_us >= 0) {
        keep(s->total, rec->total_us);
    }
    if (rec->first_us >= 0) {
        keep(s->first, rec->first_us);
    }
    return s->n < APR_INT32_MAX / 2 ? AIGW_OK : AIGW_TOO_BIG;
}

static apr_int64_t *values(const apr_array_header_t *from)
{
    return (apr_int64_t *)from->elts;
}

static aigw_exit_t read_side(work_t *w, int i)
{
    aigw_options_t opt = w->opt;
    side_t *s = &w->side[i];
    aigw_exit_t end;

    s->times = apr_array_make(w->pool, 1024, sizeof(apr_int64_t));
    s->total = apr_array_make(w->pool, 1024, sizeof(apr_int64_t));
    s->first = apr_array_make(w->pool, 1024, sizeof(apr_int64_t));
    opt.files = w->opt.files + i;
    opt.n_files = 1;
    end = aigw_logs_read(&opt, take_record, s, &s->logs, w->pool);
    aigw_stats_sort(values(s->times), (apr_uint64_t)s->times->nelts);
    aigw_stats_sort(values(s->total), (apr_uint64_t)s->total->nelts);
    aigw_stats_sort(values(s->first), (apr_uint64_t)s->first->nelts);
    if (end == AIGW_EXIT_OK && s->n == 0) {
        return aigw_args_fail(apr_pstrcat(w->pool, w->opt.files[i],
                                          ": holds no record", NULL),
                              w->pool);
    }
    return end;
}

/* -- metrics ------------------------------------------------------------- */

static apr_int64_t span_us(const side_t *s)
{
    return values(s->times)[s->n - 1] - values(s->times)[0];
}

static void throughput(const work_t *w, metric_t *m)
{
    aigw_span_t spans[2];
    int i;

    m->metric = "throughput";
    m->unit = "requests/s";
    m->up_is_better = 1;
    for (i = 0; i < 2; i++) {
        const side_t *s = &w->side[i];

        m->known[i] = aigw_ratio_make((aigw_money_t)s->n * 1000000, span_us(s),
                                      &m->value[i])
                      == AIGW_OK;
        spans[i] = aigw_stats_rate_span(values(s->times), s->n);
    }
    m->span = aigw_stats_change(spans[0], spans[1]);
}

static void quantile(const work_t *w, metric_t *m, int first, int per_mille)
{
    aigw_span_t spans[2];
    int i;

    m->unit = "ms";
    for (i = 0; i < 2; i++) {
        const apr_array_header_t *from =
            first ? w->side[i].first : w->side[i].total;
        apr_uint64_t n = (apr_uint64_t)from->nelts;

        m->known[i] = n > 0;
        if (n) {
            aigw_ratio_make(aigw_stats_quantile(values(from), n, per_mille),
                            1000, &m->value[i]);
        }
        spans[i] = aigw_stats_quantile_span(values(from), n, per_mille);
    }
    m->span = aigw_stats_change(spans[0], spans[1]);
}

static void error_rate(const work_t *w, metric_t *m)
{
    const side_t *b = &w->side[0], *a = &w->side[1];
    int i;

    m->metric = "error rate";
    m->unit = "%";
    m->in_points = m->is_rate = 1;
    for (i = 0; i < 2; i++) {
        m->known[i] = 1;
        aigw_ratio_make((aigw_money_t)w->side[i].errors * 100,
                        (aigw_money_t)w->side[i].n, &m->value[i]);
    }
    m->span = aigw_stats_points(b->errors, b->n, a->errors, a->n);
}

static void cpu(const work_t *w, metric_t *m)
{
    int i;

    m->metric = "CPU";
    m->unit = "%";
    m->is_rate = 1;
    m->up_is_better = -1;
    for (i = 0; i < 2; i++) {
        m->known[i] = w->cpu[i].given;
        m->value[i] = aigw_ratio_money(w->cpu[i].value);
    }
}

/* Both metrics are known. */
static void per_cpu(const metric_t *rate, const metric_t *load, metric_t *m)
{
    int i;

    m->metric = "throughput per CPU point";
    m->unit = "requests/s";
    m->up_is_better = 1;
    for (i = 0; i < 2; i++) {
        m->known[i] =
            rate->known[i] && load->known[i]
            && aigw_ratio_div(rate->value[i], load->value[i], &m->value[i])
                   == AIGW_OK;
    }
}

/* -- rows ---------------------------------------------------------------- */

static const char *text_of(const work_t *w, aigw_ratio_t value, int digits)
{
    return aigw_ratio_text(value, w->opt.digits < 0 ? digits : w->opt.digits,
                           w->opt.round, w->pool);
}

static aigw_rc_t change_of(const metric_t *m, aigw_ratio_t *change)
{
    aigw_rc_t rc;

    if (!m->known[0] || !m->known[1]) {
        return AIGW_AGAIN;
    }
    rc = aigw_ratio_div(m->value[1], m->value[0], change);
    rc =
        rc == AIGW_OK ? aigw_ratio_sub(*change, aigw_ratio_of(1), change) : rc;
    return rc == AIGW_OK ? aigw_ratio_mul(*change, aigw_ratio_of(100), change)
                         : rc;
}

static const char *verdict(work_t *w, const metric_t *m)
{
    if (!m->span.known) {
        w->no_interval++;
        return "no interval";
    }
    if (m->span.low <= 0 && m->span.high >= 0) {
        return "no difference";
    }
    return (m->span.low > 0) == m->up_is_better ? "better" : "worse";
}

static void add_span(work_t *w, const char **cells, const metric_t *m)
{
    int digits = w->opt.digits < 0 ? 2 : w->opt.digits;

    if (m->span.known) {
        cells[COL_LOW] = apr_psprintf(w->pool, "%.*f", digits, m->span.low);
        cells[COL_HIGH] = apr_psprintf(w->pool, "%.*f", digits, m->span.high);
        cells[COL_SPAN_UNIT] = m->in_points ? "points" : "%";
    }
}

static void add_metric(work_t *w, const metric_t *m)
{
    const char **cells = aigw_table_cells(w->table);
    aigw_ratio_t d;
    int i;

    cells[COL_METRIC] = m->metric;
    cells[COL_UNIT] = m->unit;
    for (i = 0; i < 2; i++) {
        if (m->known[i]) {
            cells[COL_BEFORE + i] = text_of(w, m->value[i], DIGITS);
        }
    }
    if (change_of(m, &d) == AIGW_OK) {
        cells[COL_CHANGE] = text_of(w, d, 2);
    }
    if (m->is_rate && m->known[0] && m->known[1]
        && aigw_ratio_sub(m->value[1], m->value[0], &d) == AIGW_OK) {
        cells[COL_POINTS] = text_of(w, d, 2);
    }
    add_span(w, cells, m);
    cells[COL_VERDICT] = verdict(w, m);
    aigw_table_row(w->table, cells);
}

/* -- notes --------------------------------------------------------------- */

static void note_side(work_t *w, int i, const char *which)
{
    const side_t *s = &w->side[i];
    aigw_ratio_t seconds;

    aigw_ratio_make(span_us(s), 1000000, &seconds);
    aigw_table_fact(w->table, apr_pstrcat(w->pool, which, "_requests", NULL),
                    apr_psprintf(w->pool, "%" APR_UINT64_T_FMT, s->n),
                    AIGW_CELL_COUNT);
    aigw_table_fact(w->table, apr_pstrcat(w->pool, which, "_bad_lines", NULL),
                    apr_psprintf(w->pool, "%" APR_UINT64_T_FMT, s->logs.bad),
                    AIGW_CELL_COUNT);
    aigw_table_note(w->table,
                    apr_psprintf(w->pool,
                                 "%s: %s, %" APR_UINT64_T_FMT
                                 " requests in %s s, "
                                 "%" APR_UINT64_T_FMT
                                 " of them errors; %" APR_UINT64_T_FMT
                                 " bad lines left out.",
                                 which,
                                 aigw_text_safe(w->pool, w->opt.files[i]),
                                 s->n,
                                 aigw_ratio_text(seconds, 3,
                                                 AIGW_ROUND_HALF_EVEN,
                                                 w->pool),
                                 s->errors, s->logs.bad));
}

/* Latencies at different loads say nothing about each other. */
static void note_load(work_t *w, const metric_t *rate)
{
    aigw_ratio_t change;
    int above = 0, below = 0, known = change_of(rate, &change) == AIGW_OK;

    if (known) {
        aigw_ratio_order(change, aigw_ratio_of(LOAD_PERCENT), &above);
        aigw_ratio_order(change, aigw_ratio_of(-LOAD_PERCENT), &below);
    }
    if (!known) {
        aigw_table_note(w->table, "Load: a log of one moment has no rate; "
                                  "whether the loads were the same is not "
                                  "known.");
        return;
    }
    aigw_table_fact(w->table, "equal_load",
                    above <= 0 && below >= 0 ? "yes" : "no", AIGW_CELL_TEXT);
    aigw_table_note(w->table,
                    above <= 0 && below >= 0
                        ? "Load: the same within 5 %."
                        : "Load: it differs by more than 5 %. Latencies and "
                          "error rates of different loads do not compare, "
                          "unless the clients offered the same load and the "
                          "server was what limited it.");
}

static void note_cpu(work_t *w, const metric_t *rate, const metric_t *per)
{
    aigw_ratio_t all, own;

    if (change_of(rate, &all) == AIGW_OK && change_of(per, &own) == AIGW_OK) {
        aigw_table_note(w->table,
                        apr_psprintf(w->pool,
                                     "CPU: of %s %% more throughput, %s %% "
                                     "come from the work done per point of "
                                     "CPU; the rest is CPU that was idle "
                                     "before.",
                                     text_of(w, all, 2), text_of(w, own, 2)));
    }
}

static void add_notes(work_t *w)
{
    aigw_table_note(w->table,
                    "Latencies are of requests without error, by nearest "
                    "rank. change = after / before - 1; points = after - "
                    "before.");
    aigw_table_note(w->table,
                    "low to high: 95 % interval of the change (quantiles by "
                    "order statistics, error rates by Wilson and Newcombe, "
                    "throughput by 20 batches). No outlier is removed.");
    if (w->no_interval) {
        aigw_table_note(w->table, "no interval: the sample is too small, or "
                                  "shorter than 20 whole seconds, or a "
                                  "figure was given by hand.");
    }
    aigw_table_note(w->table,
                    "One run each (n = 1): the intervals hold for what "
                    "varies inside a run. How far two runs of the same thing "
                    "differ is not known; repeat both to learn it.");
}

/* -- the command --------------------------------------------------------- */

static void add_columns(work_t *w)
{
    static const struct {
        const char *key, *head;
        aigw_cell_t kind;
        int drop;
    } cols[] = {{"metric", "metric", AIGW_CELL_TEXT, 0},
                {"unit", "unit", AIGW_CELL_TEXT, 0},
                {"before", "before", AIGW_CELL_DECIMAL, 0},
                {"after", "after", AIGW_CELL_DECIMAL, 0},
                {"change_percent", "change %", AIGW_CELL_DECIMAL, 0},
                {"points", "points", AIGW_CELL_DECIMAL, 1},
                {"low", "low", AIGW_CELL_DECIMAL, 4},
                {"high", "high", AIGW_CELL_DECIMAL, 3},
                {"interval_unit", "of", AIGW_CELL_TEXT, 2},
                {"verdict", "verdict", AIGW_CELL_TEXT, 0}};
    size_t i;

    for (i = 0; i < sizeof(cols) / sizeof(cols[0]); i++) {
        aigw_table_column(w->table, cols[i].key, cols[i].head, cols[i].kind)
            ->drop = cols[i].drop;
    }
}

static void make_table(work_t *w)
{
    metric_t m[7];

    memset(m, 0, sizeof(m));
    throughput(w, &m[0]);
    m[1].metric = "P50 latency";
    quantile(w, &m[1], 0, 500);
    m[2].metric = "P99 latency";
    quantile(w, &m[2], 0, 990);
    m[3].metric = "P50 first byte";
    quantile(w, &m[3], 1, 500);
    error_rate(w, &m[4]);
    cpu(w, &m[5]);
    per_cpu(&m[0], &m[5], &m[6]);
    w->table = aigw_table_make("perf", w->pool);
    add_columns(w);
    for (int i = 0; i < (w->cpu[0].given ? 7 : 5); i++) {
        add_metric(w, &m[i]);
    }
    note_side(w, 0, "before");
    note_side(w, 1, "after");
    note_load(w, &m[0]);
    if (w->cpu[0].given) {
        note_cpu(w, &m[0], &m[6]);
    }
    add_notes(w);
}

#define AT(member) offsetof(work_t, member)

static const aigw_arg_t rows[] = {{"cpu-before", AIGW_ARG_DECIMAL, AT(cpu[0]),
                                   "PERCENT",
                                   "CPU in use before, as measured elsewhere"},
                                  {"cpu-after", AIGW_ARG_DECIMAL, AT(cpu[1]),
                                   "PERCENT", "and after"},
                                  {NULL, 0, 0, NULL, NULL}};

aigw_exit_t aigw_command_perf(int argc, char **argv, apr_pool_t *pool)
{
    static const aigw_args_t args = {"perf",
                                     "[OPTION...] BEFORE AFTER",
                                     "Compares two usage logs: throughput, "
                                     "latencies, first byte and error\n"
                                     "rate, each change with its interval.\n",
                                     "aigw-calc perf before.log after.log",
                                     rows,
                                     2,
                                     2,
                                     1};
    aigw_exit_t end;
    aigw_rc_t rc;
    work_t w;

    memset(&w, 0, sizeof(w));
    w.pool = pool;
    rc = aigw_args_read(&args, &w.opt, argc, argv, pool);
    if (rc != AIGW_OK) {
        return rc == AIGW_DONE ? AIGW_EXIT_OK : AIGW_EXIT_USAGE;
    }
    if (w.cpu[0].given != w.cpu[1].given) {
        return aigw_args_refuse(&args, "--cpu-before and --cpu-after go "
                                       "together");
    }
    end = read_side(&w, 0);
    end = end == AIGW_EXIT_OK ? read_side(&w, 1) : end;
    if (end != AIGW_EXIT_OK) {
        return end;
    }
    make_table(&w);
    return aigw_command_print(w.table, &w.opt);
}
