/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc servers: how many machines a gain in capacity saves, in whole
 * machines at a stated peak.  A gain of 31 % is not a saving of 31 %, and at
 * a small peak it saves none.
 */
#include <stdio.h>
#include <apr_strings.h>
#include "args.h"
#include "commands.h"
#include "ratio.h"

typedef struct {
    aigw_options_t opt;
    aigw_arg_decimal_t peak, before, after, gain, headroom, cpu[2];
    aigw_arg_money_t cost;
    apr_uint64_t least;
    apr_pool_t *pool;
    aigw_table_t *table;
    aigw_ratio_t load;        /* peak with its headroom */
    aigw_ratio_t capacity[2]; /* of one machine, before and after */
    aigw_money_t machines[2];
} work_t;

enum { COL_WHEN = 0, COL_CAPACITY, COL_NEED, COL_MACHINES, COL_USE, COL_BILL };

static const char *text_of(const work_t *w, aigw_ratio_t value, int digits)
{
    return aigw_ratio_text(value, w->opt.digits < 0 ? digits : w->opt.digits,
                           w->opt.round, w->pool);
}

static void add_columns(work_t *w)
{
    aigw_table_t *t = w->table;

    aigw_table_column(t, "when", "when", AIGW_CELL_TEXT);
    aigw_table_column(t, "capacity", "QPS each", AIGW_CELL_DECIMAL);
    aigw_table_column(t, "need", "needed", AIGW_CELL_DECIMAL);
    aigw_table_column(t, "machines", "machines", AIGW_CELL_COUNT);
    aigw_table_column(t, "use_percent", "use at peak %", AIGW_CELL_DECIMAL);
    if (w->cost.given) {
        aigw_table_column(t, "bill",
                          apr_pstrcat(w->pool, "month ", w->cost.currency,
                                      NULL),
                          AIGW_CELL_DECIMAL);
    }
}

/* -- figures ------------------------------------------------------------- */

/* 1 + percent / 100 */
static aigw_rc_t grown(aigw_money_t percent, aigw_ratio_t *out)
{
    aigw_rc_t rc =
        aigw_ratio_div(aigw_ratio_money(percent), aigw_ratio_of(100), out);

    return rc == AIGW_OK ? aigw_ratio_add(*out, aigw_ratio_of(1), out) : rc;
}

static aigw_rc_t find_capacity(work_t *w)
{
    aigw_ratio_t by;
    aigw_rc_t rc;

    w->capacity[0] = aigw_ratio_money(w->before.value);
    w->capacity[1] = aigw_ratio_money(w->after.value);
    rc = grown(w->headroom.value, &by);
    rc = rc == AIGW_OK
             ? aigw_ratio_mul(aigw_ratio_money(w->peak.value), by, &w->load)
             : rc;
    if (rc == AIGW_OK && w->gain.given) {
        rc = grown(w->gain.value, &by);
        rc = rc == AIGW_OK
                 ? aigw_ratio_mul(w->capacity[0], by, &w->capacity[1])
                 : rc;
    }
    return rc;
}

static aigw_rc_t bill_of(work_t *w, aigw_money_t machines, const char **cell)
{
    aigw_money_t m;

    if (!w->cost.given) {
        return AIGW_OK;
    }
    if (machines > APR_INT64_MAX
        || aigw_money_mul(w->cost.amount, (apr_int64_t)machines, &m)
               != AIGW_OK) {
        return AIGW_TOO_BIG;
    }
    *cell = aigw_command_money(&w->opt, 2, m, w->pool);
    return AIGW_OK;
}

static aigw_rc_t add_side(work_t *w, int i)
{
    const char **cells = aigw_table_cells(w->table);
    aigw_ratio_t need, use;
    aigw_rc_t rc = aigw_ratio_div(w->load, w->capacity[i], &need);

    if (rc != AIGW_OK) {
        return rc;
    }
    w->machines[i] = aigw_ratio_ceil(need);
    if (w->machines[i] < (aigw_money_t)w->least) {
        w->machines[i] = (aigw_money_t)w->least;
    }
    cells[COL_WHEN] = i ? "after" : "before";
    cells[COL_CAPACITY] = text_of(w, w->capacity[i], 2);
    cells[COL_NEED] = text_of(w, need, 3);
    cells[COL_MACHINES] = aigw_ratio_text((aigw_ratio_t){w->machines[i], 1}, 0,
                                          AIGW_ROUND_TRUNC, w->pool);
    rc = aigw_ratio_make(w->machines[i], 1, &use);
    rc = rc == AIGW_OK ? aigw_ratio_mul(use, w->capacity[i], &use) : rc;
    rc = rc == AIGW_OK
             ? aigw_ratio_div(aigw_ratio_money(w->peak.value), use, &use)
             : rc;
    rc = rc == AIGW_OK ? aigw_ratio_mul(use, aigw_ratio_of(100), &use) : rc;
    if (rc != AIGW_OK || !cells[COL_MACHINES]) {
        return AIGW_TOO_BIG;
    }
    cells[COL_USE] = text_of(w, use, 1);
    aigw_table_row(w->table, cells);
    return bill_of(w, w->machines[i], &cells[COL_BILL]);
}

static aigw_rc_t add_saved(work_t *w)
{
    const char **cells = aigw_table_cells(w->table);
    aigw_money_t saved = w->machines[0] - w->machines[1], m;
    aigw_ratio_t r = {saved, 1};

    cells[COL_WHEN] = "saved";
    cells[COL_MACHINES] = aigw_ratio_text(r, 0, AIGW_ROUND_TRUNC, w->pool);
    if (w->cost.given
        && aigw_money_mul(w->cost.amount, (apr_int64_t)saved, &m) == AIGW_OK) {
        cells[COL_BILL] = aigw_command_money(&w->opt, 2, m, w->pool);
    }
    aigw_table_row(w->table, cells);
    return AIGW_OK;
}

/* -- notes --------------------------------------------------------------- */

/* The share of a large fleet that a factor g in capacity saves: 1 - 1 / g. */
static const char *share(const work_t *w, aigw_ratio_t factor)
{
    aigw_ratio_t r;

    if (aigw_ratio_div(aigw_ratio_of(1), factor, &r) != AIGW_OK
        || aigw_ratio_sub(aigw_ratio_of(1), r, &r) != AIGW_OK
        || aigw_ratio_mul(r, aigw_ratio_of(100), &r) != AIGW_OK) {
        return "?";
    }
    return text_of(w, r, 1);
}

static const char *percent(const work_t *w, aigw_ratio_t factor)
{
    aigw_ratio_t r;

    if (aigw_ratio_sub(factor, aigw_ratio_of(1), &r) != AIGW_OK
        || aigw_ratio_mul(r, aigw_ratio_of(100), &r) != AIGW_OK) {
        return "?";
    }
    return text_of(w, r, 1);
}

static void note_share(work_t *w, aigw_ratio_t gain)
{
    const char *said = share(w, gain);

    aigw_table_fact(w->table, "gain_percent", percent(w, gain),
                    AIGW_CELL_DECIMAL);
    aigw_table_fact(w->table, "share_percent", said, AIGW_CELL_DECIMAL);
    aigw_table_note(
        w->table,
        apr_psprintf(w->pool,
                     "Of a fleet of many machines, %s %% more capacity each "
                     "saves 1 - 1 / (1 + gain) = %s %%; in whole machines it "
                     "is what the table says.",
                     percent(w, gain), said));
}

/* A gain that runs the machine closer to its limit leaves less headroom. */
static void note_cpu(work_t *w, aigw_ratio_t gain)
{
    aigw_ratio_t by;

    if (!w->cpu[0].given || !w->cpu[0].value || !w->cpu[1].value
        || aigw_ratio_div(aigw_ratio_money(w->cpu[1].value),
                          aigw_ratio_money(w->cpu[0].value), &by)
               != AIGW_OK
        || aigw_ratio_div(gain, by, &by) != AIGW_OK) {
        return;
    }
    aigw_table_fact(w->table, "share_percent_same_cpu", share(w, by),
                    AIGW_CELL_DECIMAL);
    aigw_table_note(
        w->table,
        apr_psprintf(w->pool,
                     "At the same CPU: capacity per point of CPU rose by %s "
                     "%%, which saves %s %%; the rest of the gain is "
                     "headroom that was used up.",
                     percent(w, by), share(w, by)));
}

static void add_notes(work_t *w)
{
    aigw_ratio_t gain;
    char peak[AIGW_MONEY_TEXT], room[AIGW_MONEY_TEXT];

    aigw_money_text(w->peak.value, peak);
    aigw_money_text(w->headroom.value, room);
    aigw_table_note(w->table,
                    apr_psprintf(w->pool,
                                 "machines = ceil(%s QPS at peak x (1 + %s %% "
                                 "headroom) / QPS each), and at least "
                                 "%" APR_UINT64_T_FMT ".",
                                 peak, room, w->least));
    if (aigw_ratio_div(w->capacity[1], w->capacity[0], &gain) == AIGW_OK) {
        note_share(w, gain);
        note_cpu(w, gain);
    }
}

/* -- the command --------------------------------------------------------- */

#define AT(member) offsetof(work_t, member)

static const aigw_arg_t rows[] =
    {{"peak", AIGW_ARG_DECIMAL, AT(peak), "QPS", "requests a second at peak"},
     {"capacity", AIGW_ARG_DECIMAL, AT(before), "QPS",
      "what one machine carried before"},
     {"capacity-after", AIGW_ARG_DECIMAL, AT(after), "QPS",
      "and carries after"},
     {"gain", AIGW_ARG_DECIMAL, AT(gain), "PERCENT",
      "instead of --capacity-after"},
     {"headroom", AIGW_ARG_DECIMAL, AT(headroom), "PERCENT",
      "capacity kept free, on top of the peak\n(default: 0)"},
     {"least", AIGW_ARG_COUNT, AT(least), "N",
      "machines that there must be (default: 1)"},
     {"cost", AIGW_ARG_MONEY, AT(cost), "CNY:800", "of one machine a month"},
     {"cpu-before", AIGW_ARG_DECIMAL, AT(cpu[0]), "PERCENT",
      "CPU at the measured capacities: tells a gain\n"
      "from headroom that was used up"},
     {"cpu-after", AIGW_ARG_DECIMAL, AT(cpu[1]), "PERCENT", "and after"},
     {NULL, 0, 0, NULL, NULL}};

static const aigw_args_t args =
    {"servers",
     "--peak=QPS --capacity=QPS --gain=PERCENT [OPTION...]",
     "How many machines a gain in capacity saves, in whole machines.\n",
     "aigw-calc servers --peak=10000 --capacity=3210 --gain=31",
     rows,
     0,
     0,
     0};

static const char *check(const work_t *w)
{
    if (!w->peak.given || !w->before.given || !w->before.value) {
        return "--peak and --capacity must be given, the capacity above 0";
    }
    if (w->after.given == w->gain.given
        || (w->after.given && !w->after.value)) {
        return "either --capacity-after (above 0) or --gain must be given";
    }
    if (w->cpu[0].given != w->cpu[1].given) {
        return "--cpu-before and --cpu-after go together";
    }
    return NULL;
}

aigw_exit_t aigw_command_servers(int argc, char **argv, apr_pool_t *pool)
{
    work_t w;
    aigw_rc_t rc;

    memset(&w, 0, sizeof(w));
    w.pool = pool;
    w.least = 1;
    rc = aigw_args_read(&args, &w.opt, argc, argv, pool);
    if (rc != AIGW_OK) {
        return rc == AIGW_DONE ? AIGW_EXIT_OK : AIGW_EXIT_USAGE;
    }
    if (check(&w)) {
        return aigw_args_refuse(&args, check(&w));
    }
    w.table = aigw_table_make("servers", pool);
    add_columns(&w);
    rc = find_capacity(&w);
    rc = rc == AIGW_OK ? add_side(&w, 0) : rc;
    rc = rc == AIGW_OK ? add_side(&w, 1) : rc;
    rc = rc == AIGW_OK ? add_saved(&w) : rc;
    if (rc != AIGW_OK) {
        fputs("aigw-calc: a figure is too large\n", stderr);
        return AIGW_EXIT_TOO_BIG;
    }
    add_notes(&w);
    return aigw_command_print(w.table, &w.opt);
}
