/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table between those who fill it and those who print it.  Cells are text;
 * a column says what kind of thing its cells are, so that each renderer can
 * do right by it.  An absent cell is NULL and never a 0 or an empty string.
 */
#ifndef AIGW_CALC_TABLES_H
#define AIGW_CALC_TABLES_H

#include <stdio.h>
#include <apr_pools.h>
#include <apr_tables.h>

typedef enum {
    AIGW_CELL_TEXT = 0, /* names: from outside, not to be trusted */
    AIGW_CELL_COUNT,    /* a whole number */
    AIGW_CELL_DECIMAL   /* a decimal number, as text */
} aigw_cell_t;

typedef struct {
    const char *key;  /* in JSON and CSV: stable */
    const char *head; /* above the column in text */
    aigw_cell_t kind;
    int optional;     /* text leaves it out while all cells are 0 or absent */
    int machine_only; /* text never shows it */
    int drop;         /* a narrow terminal loses the highest first; 0: never */
} aigw_column_t;

/** What the table was made with or came upon; JSON states it by its key. */
typedef struct {
    const char *key;
    const char *text; /* NULL: null */
    aigw_cell_t kind;
} aigw_fact_t;

typedef struct {
    apr_pool_t *pool;
    const char *command;         /* "usage" */
    const char *title;           /* of a page of HTML; NULL: the command */
    apr_array_header_t *columns; /* of aigw_column_t */
    apr_array_header_t *rows;    /* of const char ** */
    const char **total;          /* NULL: none */
    apr_array_header_t *facts;   /* of aigw_fact_t */
    apr_array_header_t *notes;   /* of const char * */
} aigw_table_t;

/** An empty table; everything of it is allocated from @a pool. */
aigw_table_t *aigw_table_make(const char *command, apr_pool_t *pool);

/** Add a column; before any row. */
aigw_column_t *aigw_table_column(aigw_table_t *table, const char *key,
                                 const char *head, aigw_cell_t kind);

/** Cells for a row, all absent; not yet in the table. */
const char **aigw_table_cells(aigw_table_t *table);

/** Take the cells in as the next row. */
void aigw_table_row(aigw_table_t *table, const char **cells);

/** Add a fact ("tz", "UTC"). */
void aigw_table_fact(aigw_table_t *table, const char *key, const char *text,
                     aigw_cell_t kind);

/** A sentence below the table. */
void aigw_table_note(aigw_table_t *table, const char *sentence);

/**
 * Text from outside made fit for a terminal and for one line: control
 * characters, line ends of all kinds and characters that turn the direction
 * of writing become \\u escapes, bytes that are not UTF-8 become \\ufffd.
 */
const char *aigw_text_safe(apr_pool_t *pool, const char *text);

/** The same as the inside of a JSON string: quotes and backslashes too. */
const char *aigw_text_json(apr_pool_t *pool, const char *text);

typedef enum {
    AIGW_FORMAT_TEXT = 0,
    AIGW_FORMAT_JSON,
    AIGW_FORMAT_CSV,
    AIGW_FORMAT_MARKDOWN,
    AIGW_FORMAT_HTML
} aigw_format_t;

/**
 * Print the table. Text drops columns where a terminal is too narrow, and
 * says so; CSV prints the notes on standard error, as they have no place in
 * it.
 * @return 1; 0 if it could not be written
 */
int aigw_table_print(const aigw_table_t *table, aigw_format_t format,
                     FILE *out);

/* The renderers behind aigw_table_print(). */
int aigw_render_text(const aigw_table_t *table, FILE *out);
int aigw_render_json(const aigw_table_t *table, FILE *out);
int aigw_render_csv(const aigw_table_t *table, FILE *out);
int aigw_render_markdown(const aigw_table_t *table, FILE *out);
int aigw_render_html(const aigw_table_t *table, FILE *out);

#endif
