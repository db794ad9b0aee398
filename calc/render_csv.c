/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CSV (RFC 4180, but with LF).  The first column tells groups from the total,
 * so that a sum over a column can leave the total out.  A name that a
 * spreadsheet would run as a formula gets an apostrophe in front; figures of
 * our own do not, as a negative number must stay one.
 */
#include <apr_strings.h>
#include "tables.h"

static int is_formula(const char *text)
{
    return *text && strchr("=+-@\t\r", *text) != NULL;
}

static void put_quoted(const char *prefix, const char *text, FILE *out)
{
    fputc('"', out);
    fputs(prefix, out);
    for (; *text; text++) {
        if (*text == '"') {
            fputc('"', out);
        }
        fputc(*text, out);
    }
    fputc('"', out);
}

static void put_text(const aigw_table_t *t, const char *text, FILE *out)
{
    int formula = is_formula(text);
    const char *safe = aigw_text_safe(t->pool, text);

    if (formula || strpbrk(safe, ",\"' \\")) {
        put_quoted(formula ? "'" : "", safe, out);
    }
    else {
        fputs(safe, out);
    }
}

static void put_row(const aigw_table_t *t, const char *what,
                    const char **cells, FILE *out)
{
    const aigw_column_t *c = (const aigw_column_t *)t->columns->elts;
    int i;

    fputs(what, out);
    for (i = 0; i < t->columns->nelts; i++) {
        fputc(',', out);
        if (cells[i] && c[i].kind == AIGW_CELL_TEXT) {
            put_text(t, cells[i], out);
        }
        else if (cells[i]) {
            fputs(cells[i], out);
        }
    }
    fputc('\n', out);
}

int aigw_render_csv(const aigw_table_t *t, FILE *out)
{
    const aigw_column_t *c = (const aigw_column_t *)t->columns->elts;
    int i;

    fputs("row", out);
    for (i = 0; i < t->columns->nelts; i++) {
        fputc(',', out);
        put_text(t, c[i].key, out);
    }
    fputc('\n', out);
    for (i = 0; i < t->rows->nelts; i++) {
        put_row(t, "group", APR_ARRAY_IDX(t->rows, i, const char **), out);
    }
    if (t->total) {
        put_row(t, "total", t->total, out);
    }
    for (i = 0; i < t->notes->nelts; i++) {
        fprintf(stderr, "%s\n", APR_ARRAY_IDX(t->notes, i, const char *));
    }
    return 1;
}
