/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for people: a table by libsmartcols, sentences below it.  A terminal
 * that is too narrow loses whole columns, the least telling ones first, and
 * is told so: no figure is ever cut or broken over two lines.  Into a file or
 * a pipe every line is as long as it has to be.
 */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>
#include <libsmartcols.h>
#include "tables.h"

#define GAP "  "

/* A table being printed. */
typedef struct {
    const aigw_table_t *t;
    char *shown; /* per column */
    int dropped;
} view_t;

static const aigw_column_t *column(const view_t *v, int i)
{
    return &APR_ARRAY_IDX(v->t->columns, i, aigw_column_t);
}

static const char **row(const view_t *v, int i)
{
    return APR_ARRAY_IDX(v->t->rows, i, const char **);
}

/* In the total's line "total" stands where the first key would. */
static const char *cell_text(const view_t *v, const char **cells, int i)
{
    if (cells[i]) {
        return aigw_text_safe(v->t->pool, cells[i]);
    }
    return cells == v->t->total && i == 0 ? "total" : "-";
}

/* -- which columns ------------------------------------------------------- */

static int is_nothing(const char *cell)
{
    return !cell || strspn(cell, "0.") == strlen(cell);
}

static int is_wanted(const view_t *v, int i)
{
    const aigw_column_t *c = column(v, i);
    int at;

    if (c->machine_only || !c->optional) {
        return !c->machine_only;
    }
    for (at = 0; at < v->t->rows->nelts; at++) {
        if (!is_nothing(row(v, at)[i])) {
            return 1;
        }
    }
    return v->t->total && !is_nothing(v->t->total[i]);
}

/* Places that the text takes on a terminal. */
static int text_width(const char *text)
{
    wchar_t wide[256];
    size_t n = mbstowcs(wide, text, 255);
    int width;

    wide[255] = L'\0';
    width = n == (size_t)-1 ? -1 : wcswidth(wide, 255);
    return width < 0 ? (int)strlen(text) : width;
}

static int column_width(const view_t *v, int i)
{
    int width = text_width(column(v, i)->head), at, w;

    for (at = 0; at < v->t->rows->nelts; at++) {
        w = text_width(cell_text(v, row(v, at), i));
        width = w > width ? w : width;
    }
    w = v->t->total ? text_width(cell_text(v, v->t->total, i)) : 0;
    return w > width ? w : width;
}

static int table_width(const view_t *v)
{
    int width = -(int)strlen(GAP), i;

    for (i = 0; i < v->t->columns->nelts; i++) {
        if (v->shown[i]) {
            width += column_width(v, i) + (int)strlen(GAP);
        }
    }
    return width;
}

/* The column to lose next, -1 if none may go. */
static int next_to_drop(const view_t *v)
{
    int i, found = -1;

    for (i = 0; i < v->t->columns->nelts; i++) {
        if (v->shown[i] && column(v, i)->drop
            && (found < 0 || column(v, i)->drop > column(v, found)->drop)) {
            found = i;
        }
    }
    return found;
}

static void choose_columns(view_t *v, int width)
{
    int i;

    for (i = 0; i < v->t->columns->nelts; i++) {
        v->shown[i] = (char)is_wanted(v, i);
    }
    while (width > 0 && table_width(v) > width && (i = next_to_drop(v)) >= 0) {
        v->shown[i] = 0;
        v->dropped++;
    }
}

/* 0 if it is not a terminal. */
static int terminal_width(FILE *out)
{
    struct winsize size;

    return isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0
               ? size.ws_col
               : 0;
}

/* -- libsmartcols -------------------------------------------------------- */

static int add_columns(const view_t *v, struct libscols_table *tb)
{
    int i;

    for (i = 0; i < v->t->columns->nelts; i++) {
        if (v->shown[i]
            && !scols_table_new_column(tb, column(v, i)->head, 0,
                                       column(v, i)->kind == AIGW_CELL_TEXT
                                           ? 0
                                           : SCOLS_FL_RIGHT)) {
            return 0;
        }
    }
    return 1;
}

static int add_line(const view_t *v, struct libscols_table *tb,
                    const char **cells)
{
    struct libscols_line *line = scols_table_new_line(tb, NULL);
    size_t at = 0;
    int i;

    for (i = 0; line && i < v->t->columns->nelts; i++) {
        if (v->shown[i]
            && scols_line_set_data(line, at++, cell_text(v, cells, i))) {
            return 0;
        }
    }
    return line != NULL;
}

static int fill(const view_t *v, struct libscols_table *tb)
{
    int i;

    for (i = 0; i < v->t->rows->nelts; i++) {
        if (!add_line(v, tb, row(v, i))) {
            return 0;
        }
    }
    return !v->t->total || add_line(v, tb, v->t->total);
}

static int print_table(const view_t *v, FILE *out)
{
    struct libscols_table *tb = scols_new_table();
    int ok;

    if (!tb) {
        return 0;
    }
    scols_table_set_stream(tb, out);
    scols_table_set_column_separator(tb, GAP);
    scols_table_set_termforce(tb, SCOLS_TERMFORCE_NEVER);
    ok = add_columns(v, tb) && fill(v, tb) && scols_print_table(tb) == 0;
    scols_unref_table(tb);
    return ok;
}

int aigw_render_text(const aigw_table_t *t, FILE *out)
{
    view_t v = {t, NULL, 0};
    int ok = 1, i;

    v.shown = apr_pcalloc(t->pool, (apr_size_t)t->columns->nelts + 1);
    if (t->rows->nelts) {
        choose_columns(&v, terminal_width(out));
        ok = print_table(&v, out);
    }
    for (i = 0; i < t->notes->nelts; i++) {
        fprintf(out, "%s%s\n", i || !t->rows->nelts ? "" : "\n",
                APR_ARRAY_IDX(t->notes, i, const char *));
    }
    if (v.dropped) {
        fprintf(out, "%d column%s left out: the terminal is too narrow.\n",
                v.dropped, v.dropped == 1 ? "" : "s");
    }
    return ok;
}
