/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc audit: a published table against its own stated inputs.  Each
 * claim is shown as printed and as computed from a formula that stands in a
 * footnote; the verdict follows from the figures alone.  It does not search
 * for a formula that would make a claim come out right.
 */
#include <stdio.h>
#include <apr_strings.h>
#include "args.h"
#include "claims.h"
#include "commands.h"

typedef struct {
    aigw_options_t opt;
    aigw_claims_t *claims;
    apr_pool_t *pool;
    aigw_table_t *table;
    int count[AIGW_VERDICT_MAX];
    apr_uint64_t notes;
} work_t;

enum {
    COL_ABOUT = 0,
    COL_CLAIM,
    COL_PRINTED,
    COL_COMPUTED,
    COL_DIFFERENCE,
    COL_RATIO,
    COL_LEAST,
    COL_MOST,
    COL_VERDICT,
    COL_NOTE
};

static void add_columns(work_t *w)
{
    static const struct {
        const char *key, *head;
        aigw_cell_t kind;
        int drop;
    } rows[] = {{"about", "about", AIGW_CELL_TEXT, 6},
                {"claim", "claim", AIGW_CELL_TEXT, 0},
                {"printed", "as printed", AIGW_CELL_TEXT, 0},
                {"computed", "as computed", AIGW_CELL_DECIMAL, 0},
                {"difference", "difference", AIGW_CELL_DECIMAL, 1},
                {"printed_of_computed", "ratio", AIGW_CELL_DECIMAL, 2},
                {"range_low", "inputs allow", AIGW_CELL_DECIMAL, 3},
                {"range_high", "to", AIGW_CELL_DECIMAL, 4},
                {"verdict", "verdict", AIGW_CELL_TEXT, 0},
                {"note", "note", AIGW_CELL_COUNT, 0}};
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        aigw_table_column(w->table, rows[i].key, rows[i].head, rows[i].kind)
            ->drop = rows[i].drop;
    }
}

/* -- a row --------------------------------------------------------------- */

static const char *text_of(const work_t *w, aigw_ratio_t value, int digits)
{
    return aigw_ratio_text(value, w->opt.digits < 0 ? digits : w->opt.digits,
                           w->opt.round, w->pool);
}

static void add_figures(work_t *w, const char **cells,
                        const aigw_claim_t *claim)
{
    int digits = claim->digits + 2;
    aigw_ratio_t d;

    if (!claim->has_value) {
        return;
    }
    cells[COL_COMPUTED] = text_of(w, claim->value, digits);
    if (claim->has_printed) {
        if (aigw_ratio_sub(claim->printed, claim->value, &d) == AIGW_OK) {
            cells[COL_DIFFERENCE] = text_of(w, d, digits);
        }
        if (aigw_ratio_div(claim->printed, claim->value, &d) == AIGW_OK) {
            cells[COL_RATIO] = aigw_ratio_text(d, 4, w->opt.round, w->pool);
        }
    }
    if (claim->has_range) {
        cells[COL_LEAST] = text_of(w, claim->low, digits);
        cells[COL_MOST] = text_of(w, claim->high, digits);
    }
}

static const char *remarks(work_t *w, const aigw_claim_t *claim)
{
    const char *said = "";

    if (claim->missing) {
        said =
            apr_pstrcat(w->pool, said, "; not stated: ", claim->missing, NULL);
    }
    if (claim->verdict == AIGW_VERDICT_MISLABELLED) {
        said = apr_pstrcat(w->pool, said, "; what is printed is ",
                           claim->instead, " = ",
                           text_of(w, claim->instead_value, claim->digits + 2),
                           NULL);
    }
    if (claim->not_earned) {
        said = apr_pstrcat(w->pool, said,
                           "; the inputs do not earn the last digit", NULL);
    }
    return claim->note ? apr_pstrcat(w->pool, said, "; ", claim->note, NULL)
                       : said;
}

static void add_note(work_t *w, const aigw_claim_t *claim)
{
    const char *with = aigw_claim_inputs(w->claims, claim, w->pool);

    aigw_table_note(w->table,
                    aigw_text_safe(w->pool,
                                   apr_psprintf(w->pool,
                                                "[%" APR_UINT64_T_FMT
                                                "] %s: %s%s%s%s",
                                                w->notes, claim->name,
                                                claim->formula
                                                    ? claim->formula
                                                    : "no formula given",
                                                *with ? ", with " : "", with,
                                                remarks(w, claim))));
}

static void add_row(work_t *w, const aigw_claim_t *claim)
{
    const char **cells = aigw_table_cells(w->table);

    w->notes++;
    w->count[claim->verdict]++;
    cells[COL_ABOUT] = claim->about;
    cells[COL_CLAIM] = claim->name;
    cells[COL_PRINTED] = claim->printed_text;
    cells[COL_VERDICT] = aigw_claim_verdict(claim, w->pool);
    cells[COL_NOTE] = apr_psprintf(w->pool, "%" APR_UINT64_T_FMT, w->notes);
    add_figures(w, cells, claim);
    aigw_table_row(w->table, cells);
    add_note(w, claim);
}

/* -- the command --------------------------------------------------------- */

static void add_facts(work_t *w)
{
    const char *said = "";
    int i;

    aigw_table_fact(w->table, "title", w->claims->title, AIGW_CELL_TEXT);
    aigw_table_fact(w->table, "source", w->claims->source, AIGW_CELL_TEXT);
    for (i = 0; i < AIGW_VERDICT_MAX; i++) {
        const char *n = apr_psprintf(w->pool, "%d", w->count[i]);

        aigw_table_fact(w->table, aigw_verdict_key((aigw_verdict_t)i), n,
                        AIGW_CELL_COUNT);
        if (w->count[i]) {
            said = apr_pstrcat(w->pool, said, *said ? ", " : "", n, " ",
                               aigw_verdict_name((aigw_verdict_t)i), NULL);
        }
    }
    aigw_table_note(w->table, apr_psprintf(w->pool, "%d claims: %s.",
                                           w->claims->claims->nelts, said));
}

static void add_notes(work_t *w)
{
    if (w->claims->runs == 1) {
        aigw_table_note(w->table,
                        "One run each (n = 1): how far two runs of the same "
                        "thing differ is not known, and no figure here has "
                        "an interval. \"inputs allow\" is what the rounding "
                        "of the printed inputs leaves open, and no more.");
    }
    aigw_table_note(w->table,
                    "difference = printed - computed; ratio = printed / "
                    "computed. truncated: the digits were cut, not rounded. "
                    "slip xK: computed is K times what is printed.");
    add_facts(w);
}

aigw_exit_t aigw_command_audit(int argc, char **argv, apr_pool_t *pool)
{
    static const aigw_arg_t rows[] = {{NULL, 0, 0, NULL, NULL}};
    static const aigw_args_t args = {
        "audit",
        "[OPTION...] CLAIMS",
        "Checks a published table against its own stated inputs. CLAIMS is a\n"
        "file of inputs, claims and formulas; the form is shown by the\n"
        "claims.json that comes with aigw-calc.\n",
        "aigw-calc audit --round=trunc claims.json",
        rows,
        1,
        1,
        0};
    work_t w;
    const char *err;
    aigw_rc_t rc;
    int i;

    memset(&w, 0, sizeof(w));
    w.pool = pool;
    rc = aigw_args_read(&args, &w.opt, argc, argv, pool);
    if (rc != AIGW_OK) {
        return rc == AIGW_DONE ? AIGW_EXIT_OK : AIGW_EXIT_USAGE;
    }
    if (aigw_claims_load(&w.claims, w.opt.files[0], pool, &err) != AIGW_OK) {
        return aigw_args_fail(err, pool);
    }
    w.table = aigw_table_make("audit", pool);
    add_columns(&w);
    for (i = 0; i < w.claims->claims->nelts; i++) {
        add_row(&w, APR_ARRAY_IDX(w.claims->claims, i, aigw_claim_t *));
    }
    add_notes(&w);
    return aigw_command_print(w.table, &w.opt);
}
