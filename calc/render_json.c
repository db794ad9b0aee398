/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON: one object, keys in a fixed order, one row a line.  Counts are
 * numbers, money is a string so that no reader makes a binary fraction of
 * it, what is unknown is null.
 */
#include "tables.h"

static void put_cell(const aigw_table_t *t, const char *text, aigw_cell_t kind,
                     FILE *out)
{
    if (!text) {
        fputs("null", out);
    }
    else if (kind == AIGW_CELL_COUNT) {
        fputs(text, out);
    }
    else {
        fprintf(out, "\"%s\"", aigw_text_json(t->pool, text));
    }
}

static void put_row(const aigw_table_t *t, const char **cells, FILE *out)
{
    const aigw_column_t *c = (const aigw_column_t *)t->columns->elts;
    int i;

    fputc('{', out);
    for (i = 0; i < t->columns->nelts; i++) {
        fprintf(out, "%s\"%s\":", i ? "," : "",
                aigw_text_json(t->pool, c[i].key));
        put_cell(t, cells[i], c[i].kind, out);
    }
    fputc('}', out);
}

static void put_facts(const aigw_table_t *t, FILE *out)
{
    const aigw_fact_t *facts = (const aigw_fact_t *)t->facts->elts;
    int i;

    for (i = 0; i < t->facts->nelts; i++) {
        fprintf(out, ",\n\"%s\":", facts[i].key);
        put_cell(t, facts[i].text, facts[i].kind, out);
    }
}

static void put_notes(const aigw_table_t *t, FILE *out)
{
    int i;

    fputs(",\n\"notes\":[", out);
    for (i = 0; i < t->notes->nelts; i++) {
        fputs(i ? ",\n" : "\n", out);
        put_cell(t, APR_ARRAY_IDX(t->notes, i, const char *), AIGW_CELL_TEXT,
                 out);
    }
    fputs("]", out);
}

int aigw_render_json(const aigw_table_t *t, FILE *out)
{
    int i;

    fprintf(out, "{\"command\":\"%s\",\n\"format\":1", t->command);
    put_facts(t, out);
    fputs(",\n\"rows\":[", out);
    for (i = 0; i < t->rows->nelts; i++) {
        fputs(i ? ",\n" : "\n", out);
        put_row(t, APR_ARRAY_IDX(t->rows, i, const char **), out);
    }
    fputs("]", out);
    if (t->total) {
        fputs(",\n\"total\":", out);
        put_row(t, t->total, out);
    }
    put_notes(t, out);
    fputs("}\n", out);
    return 1;
}
