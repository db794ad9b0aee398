/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates from files of three forms.  Strict: a rate that is no decimal above
 * 0, a day that is none and a pair that stands twice for a day are errors
 * with their line.  An empty field and N/A of the Bank's history are gaps.
 */
#include <stdlib.h>
#include <apr_strings.h>
#include <apr_xml.h>
#include "rates.h"
#include "tables.h"
#include "textfile.h"

#define FILE_MAX_BYTES (32 * 1024 * 1024)
#define ECB "ECB reference rate"

typedef struct {
    aigw_day_t day;
    char from[4], to[4];
    aigw_money_t value;
    const char *source;
} entry_t;

struct aigw_rates_t {
    apr_pool_t *pool;
    const char *path;
    apr_array_header_t *entries; /* of entry_t */
};

/* File being read. */
typedef struct {
    aigw_rates_t *rates;
    int line;
    const char *err;
} work_t;

static aigw_rc_t wrong(work_t *w, const char *what, const char *why)
{
    w->err = w->line ? apr_psprintf(w->rates->pool, "%s:%d: '%s' %s",
                                    w->rates->path, w->line, what, why)
                     : apr_psprintf(w->rates->pool, "%s: '%s' %s",
                                    w->rates->path, what, why);
    return AIGW_MALFORMED;
}

static int is_code(const char *text)
{
    return strlen(text) == 3
           && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 3;
}

static aigw_rc_t add(work_t *w, aigw_day_t day, const char *from,
                     const char *to, const char *value)
{
    entry_t *e;
    aigw_money_t m;

    if (!is_code(from) || !is_code(to)) {
        return wrong(w, is_code(from) ? to : from,
                     "is no currency's three letters");
    }
    if (aigw_money_parse(aigw_slice(value, strlen(value)), &m) != AIGW_OK
        || m <= 0) {
        return wrong(w, value, "is no rate above 0");
    }
    e = apr_array_push(w->rates->entries);
    e->day = day;
    apr_cpystrn(e->from, from, sizeof(e->from));
    apr_cpystrn(e->to, to, sizeof(e->to));
    e->value = m;
    e->source = ECB;
    return AIGW_OK;
}

/* -- XML ----------------------------------------------------------------- */

static const char *attribute(const apr_xml_elem *elem, const char *name)
{
    const apr_xml_attr *a;

    for (a = elem->attr; a; a = a->next) {
        if (strcmp(a->name, name) == 0) {
            return a->value;
        }
    }
    return NULL;
}

/* <Cube time='2026-11-27'> holds <Cube currency='USD' rate='1.16'/>. */
static aigw_rc_t walk_cubes(work_t *w, const apr_xml_elem *elem,
                            aigw_day_t day)
{
    aigw_rc_t rc = AIGW_OK;

    for (; elem && rc == AIGW_OK; elem = elem->next) {
        const char *time = attribute(elem, "time");
        const char *to = attribute(elem, "currency");
        const char *value = attribute(elem, "rate");

        if (strcmp(elem->name, "Cube") != 0) {
            continue;
        }
        if (time && aigw_day_parse(time, &day) != AIGW_OK) {
            return wrong(w, time, "is no day");
        }
        if (to && value) {
            rc = day ? add(w, day, "EUR", to, value)
                     : wrong(w, to, "stands without a day");
        }
        if (rc == AIGW_OK) {
            rc = walk_cubes(w, elem->first_child, day);
        }
    }
    return rc;
}

static aigw_rc_t read_xml(work_t *w, const char *text)
{
    apr_xml_parser *parser = apr_xml_parser_create(w->rates->pool);
    apr_xml_doc *doc = NULL;
    char said[160];
    apr_status_t rv = apr_xml_parser_feed(parser, text, strlen(text));

    if (rv == APR_SUCCESS) {
        rv = apr_xml_parser_done(parser, &doc);
    }
    if (rv != APR_SUCCESS) {
        apr_xml_parser_geterror(parser, said, sizeof(said));
        w->err = apr_psprintf(w->rates->pool, "%s: %s", w->rates->path, said);
        return AIGW_MALFORMED;
    }
    return walk_cubes(w, doc->root->first_child, 0);
}

/* -- CSV ----------------------------------------------------------------- */

static const char *field(const apr_array_header_t *row, int i)
{
    return i < row->nelts ? APR_ARRAY_IDX(row, i, const char *) : "";
}

/* The Bank's file of one day writes "27 November 2026". */
static aigw_rc_t read_day(const char *text, aigw_day_t *day)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    apr_size_t n = strspn(text, "0123456789"), word;
    const char *month = text + n + 1, *found;
    char name[4], plain[11];

    if (n < 1 || n > 2 || text[n] != ' ') {
        return aigw_day_parse(text, day);
    }
    word = strcspn(month, " ");
    apr_cpystrn(name, month, sizeof(name));
    found = strstr(months, name);
    if (word < 3 || !found || (found - months) % 3
        || strlen(month + word) != 5) {
        return AIGW_MALFORMED;
    }
    apr_snprintf(plain, sizeof(plain), "%s-%02d-%s%.*s", month + word + 1,
                 (int)(found - months) / 3 + 1, n == 1 ? "0" : "", (int)n,
                 text);
    return aigw_day_parse(plain, day);
}

static aigw_rc_t read_ecb_row(work_t *w, const apr_array_header_t *head,
                              const apr_array_header_t *row)
{
    aigw_rc_t rc = AIGW_OK;
    aigw_day_t day;
    int i;

    if (read_day(field(row, 0), &day) != AIGW_OK) {
        return wrong(w, field(row, 0), "is no day");
    }
    if (row->nelts > head->nelts) {
        return wrong(w, field(row, head->nelts), "stands below no currency");
    }
    for (i = 1; i < row->nelts && rc == AIGW_OK; i++) {
        const char *value = field(row, i);

        if (*value && strcmp(value, "N/A") != 0) {
            rc = add(w, day, "EUR", field(head, i), value);
        }
    }
    return rc;
}

static aigw_rc_t read_own_row(work_t *w, const apr_array_header_t *row)
{
    aigw_day_t day;
    aigw_rc_t rc;

    if (row->nelts < 4 || row->nelts > 5) {
        return wrong(w, field(row, 0),
                     "must be followed by from, to, rate "
                     "and perhaps a source");
    }
    if (read_day(field(row, 0), &day) != AIGW_OK) {
        return wrong(w, field(row, 0), "is no day");
    }
    rc = add(w, day, field(row, 1), field(row, 2), field(row, 3));
    if (rc == AIGW_OK) {
        ((entry_t *)w->rates->entries->elts)[w->rates->entries->nelts - 1]
            .source = *field(row, 4) ? field(row, 4) : "own file of rates";
    }
    return rc;
}

static int is_blank(const apr_array_header_t *row)
{
    return *field(row, 0) == '#' || (row->nelts == 1 && !*field(row, 0));
}

static aigw_rc_t read_csv(work_t *w, char *text)
{
    apr_array_header_t *row, *head = NULL;
    aigw_rc_t rc = AIGW_OK;
    int own = 0;

    while (rc == AIGW_OK
           && (row = aigw_csv_row(&text, &w->line, w->rates->pool))) {
        if (is_blank(row)) {
            continue;
        }
        if (head) {
            rc = own ? read_own_row(w, row) : read_ecb_row(w, head, row);
            continue;
        }
        head = row;
        own = strcmp(field(row, 0), "date") == 0
              && strcmp(field(row, 1), "from") == 0
              && strcmp(field(row, 2), "to") == 0
              && strcmp(field(row, 3), "rate") == 0;
        if (!own && strcmp(field(row, 0), "Date") != 0) {
            return wrong(w, field(row, 0),
                         "begins no file of rates: it is XML, or its first "
                         "line is Date,USD,... or date,from,to,rate,source");
        }
    }
    return rc;
}

/* -- loading ------------------------------------------------------------- */

static int by_pair(const void *a, const void *b)
{
    const entry_t *x = a, *y = b;
    int order = x->day - y->day;

    order = order ? order : strcmp(x->from, y->from);
    return order ? order : strcmp(x->to, y->to);
}

static aigw_rc_t check_twice(work_t *w)
{
    const entry_t *e = (const entry_t *)w->rates->entries->elts;
    char day[11];
    int i;

    w->line = 0;
    for (i = 1; i < w->rates->entries->nelts; i++) {
        if (by_pair(&e[i - 1], &e[i]) == 0) {
            aigw_day_text(e[i].day, day);
            return wrong(w,
                         apr_pstrcat(w->rates->pool, e[i].from, "/", e[i].to,
                                     NULL),
                         apr_pstrcat(w->rates->pool, "stands twice for ", day,
                                     NULL));
        }
    }
    return AIGW_OK;
}

aigw_rc_t aigw_rates_load(aigw_rates_t **rates, const char *path,
                          apr_pool_t *pool, const char **err)
{
    work_t w = {apr_pcalloc(pool, sizeof(**rates)), 0, NULL};
    char *text, *p;
    aigw_rc_t rc;

    *rates = w.rates;
    w.rates->pool = pool;
    w.rates->path = path;
    w.rates->entries = apr_array_make(pool, 64, sizeof(entry_t));
    if (aigw_textfile_read(&text, path, FILE_MAX_BYTES, pool, err)
        != AIGW_OK) {
        return AIGW_MALFORMED;
    }
    p = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
    rc = p[strspn(p, " \t\r\n")] == '<' ? read_xml(&w, p) : read_csv(&w, p);
    if (rc == AIGW_OK) {
        qsort(w.rates->entries->elts, (size_t)w.rates->entries->nelts,
              sizeof(entry_t), by_pair);
        rc = w.rates->entries->nelts ? check_twice(&w)
                                     : wrong(&w, path, "holds no rate");
    }
    *err = w.err;
    return rc;
}

/* -- finding ------------------------------------------------------------- */

/* The last entry of a pair that is not after a day. */
static const entry_t *last(const aigw_rates_t *rates, const char *from,
                           const char *to, aigw_day_t on)
{
    const entry_t *e = (const entry_t *)rates->entries->elts;
    int i;

    for (i = rates->entries->nelts - 1; i >= 0; i--) {
        if (e[i].day <= on && strcmp(e[i].from, from) == 0
            && strcmp(e[i].to, to) == 0) {
            return &e[i];
        }
    }
    return NULL;
}

static void take(aigw_quote_t *quote, const entry_t *e, int inverse)
{
    quote->value = aigw_ratio_money(e->value);
    if (inverse) {
        aigw_ratio_div(aigw_ratio_of(1), quote->value, &quote->value);
    }
    quote->day = e->day;
    quote->source = e->source;
}

/* base -> to over base -> from, both of one day. */
static void take_cross(const aigw_rates_t *rates, aigw_quote_t *quote,
                       aigw_day_t on)
{
    const entry_t *a = last(rates, "EUR", quote->from, on);
    const entry_t *b = last(rates, "EUR", quote->to, on);

    while (a && b && a->day != b->day) {
        if (a->day > b->day) {
            a = last(rates, "EUR", quote->from, b->day);
        }
        else {
            b = last(rates, "EUR", quote->to, a->day);
        }
    }
    if (a && b && a->day > quote->day
        && aigw_ratio_div(aigw_ratio_money(b->value),
                          aigw_ratio_money(a->value), &quote->value)
               == AIGW_OK) {
        quote->day = a->day;
        quote->source =
            apr_pstrcat(rates->pool, b->source, ", through EUR", NULL);
    }
}

static aigw_rc_t missing(const aigw_rates_t *rates, const aigw_quote_t *quote,
                         aigw_day_t on, int max_age, const char **err)
{
    char day[11], had[11];

    aigw_day_text(on, day);
    aigw_day_text(quote->day, had);
    *err = quote->day
               ? apr_psprintf(rates->pool,
                              "%s: the last rate of %s/%s up to %s is of %s, "
                              "more than %d days earlier (--max-age)",
                              rates->path, quote->from, quote->to, day, had,
                              max_age)
               : apr_psprintf(rates->pool,
                              "%s: there is no rate of %s/%s up to %s",
                              rates->path, quote->from, quote->to, day);
    return AIGW_AGAIN;
}

aigw_rc_t aigw_rates_find(const aigw_rates_t *rates, const char *from,
                          const char *to, aigw_day_t on, int max_age,
                          aigw_quote_t *quote, const char **err)
{
    const entry_t *direct, *inverse;

    memset(quote, 0, sizeof(*quote));
    apr_cpystrn(quote->from, from, sizeof(quote->from));
    apr_cpystrn(quote->to, to, sizeof(quote->to));
    quote->value = aigw_ratio_of(1);
    if (strcmp(from, to) == 0) {
        quote->day = on;
        quote->source = "the same currency";
        return AIGW_OK;
    }
    direct = last(rates, from, to, on);
    inverse = last(rates, to, from, on);
    if (direct) {
        take(quote, direct, 0);
    }
    if (inverse && inverse->day > quote->day) {
        take(quote, inverse, 1);
    }
    take_cross(rates, quote, on);
    if (!quote->day
        || aigw_day_number(on) - aigw_day_number(quote->day) > max_age) {
        return missing(rates, quote, on, max_age, err);
    }
    return AIGW_OK;
}

const char *aigw_quote_text(const aigw_quote_t *quote, apr_pool_t *pool)
{
    const char *value =
        aigw_ratio_text(quote->value, 6, AIGW_ROUND_HALF_EVEN, pool);
    char day[11];

    aigw_day_text(quote->day, day);
    return apr_psprintf(pool, "1 %s = %s %s on %s (%s)", quote->from,
                        value ? value : "?", quote->to, day,
                        aigw_text_safe(pool, quote->source));
}
