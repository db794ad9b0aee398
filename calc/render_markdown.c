/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markdown: the table that text shows, whole, and its sentences.  A name
 * can't become markup: what Markdown or HTML would act on is escaped.
 */
#include "tables.h"

static void put_safe(const aigw_table_t *t, const char *text, FILE *out)
{
    const char *p = aigw_text_safe(t->pool, text);

    for (; *p; p++) {
        if (*p == '<' || *p == '>' || *p == '&') {
            fputs(*p == '<' ? "&lt;" : *p == '>' ? "&gt;" : "&amp;", out);
            continue;
        }
        if (strchr("\\`*_[]|~#!", *p)) {
            fputc('\\', out);
        }
        fputc(*p, out);
    }
}

static int is_shown(const aigw_table_t *t, int i)
{
    return !APR_ARRAY_IDX(t->columns, i, aigw_column_t).machine_only;
}

static void put_row(const aigw_table_t *t, const char **cells, FILE *out)
{
    const char *absent = cells == t->total ? "total" : "-";
    int i;

    for (i = 0; i < t->columns->nelts; i++) {
        if (is_shown(t, i)) {
            fputs("| ", out);
            put_safe(t, cells[i] ? cells[i] : i ? "-" : absent, out);
            fputc(' ', out);
        }
    }
    fputs("|\n", out);
}

static void put_head(const aigw_table_t *t, FILE *out)
{
    const aigw_column_t *c = (const aigw_column_t *)t->columns->elts;
    int i;

    for (i = 0; i < t->columns->nelts; i++) {
        if (is_shown(t, i)) {
            fputs("| ", out);
            put_safe(t, c[i].head, out);
            fputc(' ', out);
        }
    }
    fputs("|\n", out);
    for (i = 0; i < t->columns->nelts; i++) {
        if (is_shown(t, i)) {
            fputs(c[i].kind == AIGW_CELL_TEXT ? "| --- " : "| ---: ", out);
        }
    }
    fputs("|\n", out);
}

int aigw_render_markdown(const aigw_table_t *t, FILE *out)
{
    int i;

    if (t->rows->nelts) {
        put_head(t, out);
        for (i = 0; i < t->rows->nelts; i++) {
            put_row(t, APR_ARRAY_IDX(t->rows, i, const char **), out);
        }
        if (t->total) {
            put_row(t, t->total, out);
        }
        fputc('\n', out);
    }
    for (i = 0; i < t->notes->nelts; i++) {
        put_safe(t, APR_ARRAY_IDX(t->notes, i, const char *), out);
        fputs("\n\n", out);
    }
    return 1;
}
