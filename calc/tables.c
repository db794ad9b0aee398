/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables being filled, and text from outside made harmless.  It decides
 * nothing about figures and knows no format.
 */
#include <apr_strings.h>
#include "tables.h"

aigw_table_t *aigw_table_make(const char *command, apr_pool_t *pool)
{
    aigw_table_t *t = apr_pcalloc(pool, sizeof(*t));

    t->pool = pool;
    t->command = command;
    t->columns = apr_array_make(pool, 16, sizeof(aigw_column_t));
    t->rows = apr_array_make(pool, 16, sizeof(const char **));
    t->facts = apr_array_make(pool, 8, sizeof(aigw_fact_t));
    t->notes = apr_array_make(pool, 8, sizeof(const char *));
    return t;
}

aigw_column_t *aigw_table_column(aigw_table_t *t, const char *key,
                                 const char *head, aigw_cell_t kind)
{
    aigw_column_t *c = apr_array_push(t->columns);

    memset(c, 0, sizeof(*c));
    c->key = key;
    c->head = head;
    c->kind = kind;
    return c;
}

const char **aigw_table_cells(aigw_table_t *t)
{
    return apr_pcalloc(t->pool, sizeof(const char *)
                                    * ((apr_size_t)t->columns->nelts + 1));
}

void aigw_table_row(aigw_table_t *t, const char **cells)
{
    APR_ARRAY_PUSH(t->rows, const char **) = cells;
}

void aigw_table_fact(aigw_table_t *t, const char *key, const char *text,
                     aigw_cell_t kind)
{
    aigw_fact_t *fact = apr_array_push(t->facts);

    fact->key = key;
    fact->text = text;
    fact->kind = kind;
}

void aigw_table_note(aigw_table_t *t, const char *sentence)
{
    APR_ARRAY_PUSH(t->notes, const char *) = sentence;
}

int aigw_table_print(const aigw_table_t *t, aigw_format_t format, FILE *out)
{
    int ok;

    switch (format) {
    case AIGW_FORMAT_JSON:
        ok = aigw_render_json(t, out);
        break;
    case AIGW_FORMAT_CSV:
        ok = aigw_render_csv(t, out);
        break;
    case AIGW_FORMAT_MARKDOWN:
        ok = aigw_render_markdown(t, out);
        break;
    case AIGW_FORMAT_HTML:
        ok = aigw_render_html(t, out);
        break;
    default:
        ok = aigw_render_text(t, out);
    }
    return fflush(out) == 0 && !ferror(out) && ok;
}

/* -- harmless text ------------------------------------------------------- */

#define NOT_UTF8 0x110000u

static int is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* The code point at s, *n bytes long; NOT_UTF8 for a byte that is part of
 * none. */
static unsigned code_at(const unsigned char *s, int *n)
{
    *n = 1;
    if (s[0] < 0x80) {
        return s[0];
    }
    if (s[0] >= 0xc2 && s[0] < 0xe0 && is_tail(s[1])) {
        *n = 2;
        return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    }
    if (s[0] >= 0xe0 && s[0] < 0xf0 && is_tail(s[1]) && is_tail(s[2])) {
        *n = 3;
        return (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    }
    if (s[0] >= 0xf0 && s[0] < 0xf5 && is_tail(s[1]) && is_tail(s[2])
        && is_tail(s[3])) {
        *n = 4;
        return (s[0] & 0x07u) << 18 | (s[1] & 0x3fu) << 12
               | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
    }
    return NOT_UTF8;
}

static int is_harmful(unsigned c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x200e || c == 0x200f
           || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069)
           || c == 0x061c || c == 0xfeff || c == NOT_UTF8;
}

/* Also escapes what is in `more` (ASCII), with a backslash. */
static const char *escape(apr_pool_t *pool, const char *text, const char *more)
{
    const unsigned char *s = (const unsigned char *)text;
    char *out = apr_palloc(pool, strlen(text) * 6 + 1), *p = out;
    unsigned code;
    int n;

    for (; *s; s += n) {
        code = code_at(s, &n);
        if (is_harmful(code)) {
            p += apr_snprintf(p, 7, "\\u%04x",
                              code == NOT_UTF8 ? 0xfffd : code);
            continue;
        }
        if (strchr(more, *s)) {
            *p++ = '\\';
        }
        memcpy(p, s, (apr_size_t)n);
        p += n;
    }
    *p = '\0';
    return out;
}

const char *aigw_text_safe(apr_pool_t *pool, const char *text)
{
    return escape(pool, text, "");
}

const char *aigw_text_json(apr_pool_t *pool, const char *text)
{
    return escape(pool, text, "\"\\");
}
