/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTML: one page that needs nothing else.  It follows the reader's light or
 * dark mode, its tables are sorted by a click, and its own policy forbids
 * every request.  All text is escaped: a name in a log can't become markup.
 */
#include <stdio.h>
#include "html.h"

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#59636e;"
    "--line:#d1d9e0;--c0:#1f6feb;--c1:#d1570a;--c2:#1a7f37;--c3:#8250df;"
    "--c4:#bf3989;--c5:#9a6700;--c6:#57606a}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;"
    "--dim:#9198a1;--line:#3d444d;--c0:#4493f8;--c1:#f0883e;--c2:#3fb950;"
    "--c3:#ab7df8;--c4:#db61a2;--c5:#d29922;--c6:#9198a1}}\n"
    "body{font:15px/1.5 system-ui,sans-serif;background:var(--bg);"
    "color:var(--fg);margin:2rem auto;max-width:75rem;padding:0 1rem}\n"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse}\n"
    "th,td{padding:.3rem .7rem;border-bottom:1px solid var(--line);"
    "text-align:left;white-space:nowrap}\n"
    "th.n,td.n{text-align:right;font-variant-numeric:tabular-nums}\n"
    "th button{all:unset;cursor:pointer;font-weight:600}\n"
    "th button:focus-visible{outline:2px solid var(--c0)}\n"
    "tfoot td{font-weight:600}p,figcaption{color:var(--dim)}\n"
    "figure{margin:1rem 0}svg{max-width:100%;height:auto}\n"
    "svg text{fill:var(--fg);font:12px system-ui,sans-serif}\n"
    "svg .axis{stroke:var(--line)}\n"
    ".k0{fill:var(--c0)}.k1{fill:var(--c1)}.k2{fill:var(--c2)}"
    ".k3{fill:var(--c3)}.k4{fill:var(--c4)}.k5{fill:var(--c5)}"
    ".k6{fill:var(--c6)}\n"
    "@media print{body{margin:0}th button{pointer-events:none}}\n";

/* Numbers by value (up to the precision of the reader's browser), names by
 * text; what is absent stands last. */
static const char script[] =
    "document.querySelectorAll('th button').forEach(function(b){\n"
    "b.addEventListener('click',function(){\n"
    "var th=b.closest('th'),t=th.closest('table'),i=th.cellIndex,\n"
    "n=th.classList.contains('n'),\n"
    "down=th.getAttribute('aria-sort')==='ascending',\n"
    "rows=Array.from(t.tBodies[0].rows);\n"
    "t.querySelectorAll('th').forEach(function(o){\n"
    "o.removeAttribute('aria-sort')});\n"
    "th.setAttribute('aria-sort',down?'descending':'ascending');\n"
    "rows.sort(function(x,y){\n"
    "var a=x.cells[i].textContent,c=y.cells[i].textContent,d;\n"
    "if(a==='-'||c==='-'){return (a==='-')-(c==='-')}\n"
    "d=n?parseFloat(a)-parseFloat(c):a.localeCompare(c);\n"
    "return down?-d:d});\n"
    "rows.forEach(function(r){t.tBodies[0].appendChild(r)})})});\n";

void aigw_html_text(apr_pool_t *pool, const char *text, FILE *out)
{
    const char *p = aigw_text_safe(pool, text);

    for (; *p; p++) {
        switch (*p) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            fputc(*p, out);
        }
    }
}

void aigw_html_begin(apr_pool_t *pool, const char *title, FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\""
          "default-src 'none'; style-src 'unsafe-inline'; "
          "script-src 'unsafe-inline'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width\">\n"
          "<meta name=\"referrer\" content=\"no-referrer\">\n<title>",
          out);
    aigw_html_text(pool, title, out);
    fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>",
            style);
    aigw_html_text(pool, title, out);
    fputs("</h1>\n", out);
}

void aigw_html_end(FILE *out)
{
    fprintf(out, "<script>\n%s</script>\n</body>\n</html>\n", script);
}

static int is_shown(const aigw_table_t *t, int i)
{
    return !APR_ARRAY_IDX(t->columns, i, aigw_column_t).machine_only;
}

static const char *class_of(const aigw_table_t *t, int i)
{
    return APR_ARRAY_IDX(t->columns, i, aigw_column_t).kind == AIGW_CELL_TEXT
               ? ""
               : " class=\"n\"";
}

static void put_row(const aigw_table_t *t, const char **cells, FILE *out)
{
    const char *absent = cells == t->total ? "total" : "-";
    int i;

    fputs("<tr>", out);
    for (i = 0; i < t->columns->nelts; i++) {
        if (is_shown(t, i)) {
            fprintf(out, "<td%s>", class_of(t, i));
            aigw_html_text(t->pool,
                           cells[i] ? cells[i]
                           : i      ? "-"
                                    : absent,
                           out);
            fputs("</td>", out);
        }
    }
    fputs("</tr>\n", out);
}

static void put_head(const aigw_table_t *t, FILE *out)
{
    int i;

    fputs("<div class=\"wide\"><table>\n<thead><tr>", out);
    for (i = 0; i < t->columns->nelts; i++) {
        if (is_shown(t, i)) {
            fprintf(out, "<th scope=\"col\"%s><button>", class_of(t, i));
            aigw_html_text(t->pool,
                           APR_ARRAY_IDX(t->columns, i, aigw_column_t).head,
                           out);
            fputs("</button></th>", out);
        }
    }
    fputs("</tr></thead>\n<tbody>\n", out);
}

void aigw_html_table(const aigw_table_t *t, FILE *out)
{
    int i;

    if (t->rows->nelts) {
        put_head(t, out);
        for (i = 0; i < t->rows->nelts; i++) {
            put_row(t, APR_ARRAY_IDX(t->rows, i, const char **), out);
        }
        fputs("</tbody>\n", out);
        if (t->total) {
            fputs("<tfoot>\n", out);
            put_row(t, t->total, out);
            fputs("</tfoot>\n", out);
        }
        fputs("</table></div>\n", out);
    }
    for (i = 0; i < t->notes->nelts; i++) {
        fputs("<p>", out);
        aigw_html_text(t->pool, APR_ARRAY_IDX(t->notes, i, const char *), out);
        fputs("</p>\n", out);
    }
}

int aigw_render_html(const aigw_table_t *t, FILE *out)
{
    aigw_html_begin(t->pool, t->title ? t->title : t->command, out);
    aigw_html_table(t, out);
    aigw_html_end(out);
    return 1;
}
