/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a self-contained page, for commands that print more than one
 * table.  Whatever comes in as text leaves escaped.
 */
#ifndef AIGW_CALC_HTML_H
#define AIGW_CALC_HTML_H

#include "tables.h"

/** The page up to its first heading, which is the title. */
void aigw_html_begin(apr_pool_t *pool, const char *title, FILE *out);

/** A table that can be sorted, and its notes. */
void aigw_html_table(const aigw_table_t *table, FILE *out);

/** Text, made harmless for HTML and its attributes. */
void aigw_html_text(apr_pool_t *pool, const char *text, FILE *out);

/** The rest of the page. */
void aigw_html_end(FILE *out);

#endif
