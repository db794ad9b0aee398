/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The price file: read once, checked whole, then only looked at.  It refuses
 * whatever could be read in two ways: JSON numbers as prices (a binary
 * fraction is not what was written), unknown keys (a misspelt one would be a
 * missing price), and two rows in force at the same time.  A load either
 * gives a catalog without doubt in it or a sentence with a line number.
 *
 *   { "format": 1, "version": "...", "currency": "USD", "note": "...",
 *     "prices": [ { "model": "gpt-4.1", "from": "2025-04-14", "to": "...",
 *                   "currency": "...", "source": "...", "checked": "...",
 *                   "note": "...",
 *                   "per_mtok": { "input": "2.00", "output": "8.00", ... },
 *                   "per_item": { "searches": "0.01", ... } } ] }
 */
#include <stdlib.h>
#include <apr_strings.h>
#include "json.h"
#include "price.h"
#include "record.h"

#define FILE_MAX (16 * 1024 * 1024)
#define NAME_MAX_BYTES 256
#define NOTE_MAX_BYTES 4096 /* notes are for people and not kept */
#define TOKEN_STEP 1000000  /* a token price is a multiple of 10^-9 */

struct aigw_catalog_t {
    const char *version;
    aigw_price_t *rows; /* file order */
    int n;
    const aigw_price_t **exact; /* by name, then by date */
    int n_exact;
    const aigw_price_t **wild; /* longest name first, then by date */
    int n_wild;
};

/* A load in progress; places are texts such as "prices[3].per_mtok". */
typedef struct {
    aigw_json_t doc;
    aigw_catalog_t *cat;
    const char *currency; /* of rows that state none */
    apr_pool_t *pool;
    const char **err;
} load_t;

/* -- errors -------------------------------------------------------------- */

/* A place may hold a key of the file: nothing but printable ASCII of it. */
static const char *printable(apr_pool_t *pool, const char *place)
{
    char *text = apr_pstrndup(pool, place, 80), *p;

    for (p = text; *p; p++) {
        *p = *p >= 0x20 && *p < 0x7f ? *p : '?';
    }
    return text;
}

/* Always 0, so that a check can end with `return wrong(...)`. */
static int wrong(load_t *l, const char *place, const char *what)
{
    *l->err =
        apr_psprintf(l->pool, "%s:%d: %s: %s", l->doc.path,
                     aigw_json_line(&l->doc, place),
                     *place ? printable(l->pool, place) : "the file", what);
    return 0;
}

/* key may stand alone at the top of the file. */
static const char *at_key(load_t *l, const char *place, const char *key)
{
    return *place ? apr_pstrcat(l->pool, place, ".", key, NULL) : key;
}

static const char *at_row(load_t *l, int index)
{
    return apr_psprintf(l->pool, "prices[%d]", index);
}

/* -- pieces -------------------------------------------------------------- */

static int check_keys(load_t *l, const char *place, json_t *obj,
                      const char *const *allowed)
{
    const char *key, *list = "";
    void *it;
    int i;

    for (it = json_object_iter(obj); it; it = json_object_iter_next(obj, it)) {
        key = json_object_iter_key(it);
        for (i = 0; allowed[i] && strcmp(allowed[i], key) != 0; i++) {
        }
        if (allowed[i]) {
            continue;
        }
        for (i = 0; allowed[i]; i++) {
            list = apr_pstrcat(l->pool, list, i ? ", " : "", allowed[i], NULL);
        }
        return wrong(l, at_key(l, place, key),
                     apr_psprintf(l->pool, "unknown key %s; allowed: %s",
                                  aigw_json_quote(l->pool, key), list));
    }
    return 1;
}

static int is_plain_text(const char *s, apr_size_t max)
{
    apr_size_t n = strlen(s), i;

    for (i = 0; i < n; i++) {
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f) {
            return 0;
        }
    }
    return n > 0 && n <= max;
}

static int get_sized(load_t *l, const char *place, json_t *obj,
                     const char *key, int max, const char **text)
{
    json_t *v = json_object_get(obj, key);

    *text = NULL;
    if (!v) {
        return 1;
    }
    if (!json_is_string(v)
        || !is_plain_text(json_string_value(v), (apr_size_t)max)) {
        return wrong(l, at_key(l, place, key),
                     apr_psprintf(l->pool,
                                  "must be text of 1 to %d bytes "
                                  "without control characters; read %s",
                                  max, aigw_json_say(l->pool, v)));
    }
    *text = apr_pstrdup(l->pool, json_string_value(v));
    return 1;
}

/* A string of the object, NULL if it has none. */
static int get_text(load_t *l, const char *place, json_t *obj, const char *key,
                    const char **text)
{
    return get_sized(l, place, obj, key, NAME_MAX_BYTES, text);
}

static int check_note(load_t *l, const char *place, json_t *obj)
{
    const char *note;

    return get_sized(l, place, obj, "note", NOTE_MAX_BYTES, &note);
}

static int need_text(load_t *l, const char *place, json_t *obj,
                     const char *key, const char **text)
{
    if (!get_text(l, place, obj, key, text)) {
        return 0;
    }
    return *text ? 1
                 : wrong(l, place,
                         apr_psprintf(l->pool, "\"%s\" is missing", key));
}

static int get_currency(load_t *l, const char *place, json_t *obj,
                        const char **currency)
{
    const char *text;

    if (!get_text(l, place, obj, "currency", &text)) {
        return 0;
    }
    if (text
        && (strlen(text) != 3
            || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 3)) {
        return wrong(l, at_key(l, place, "currency"),
                     apr_psprintf(l->pool,
                                  "must be three capital letters "
                                  "such as \"USD\"; read %s",
                                  aigw_json_quote(l->pool, text)));
    }
    *currency = text ? text : *currency;
    return 1;
}

/* "2026-11-30" (midnight UTC) or "2026-11-30T12:00:00Z"; 0 if absent. */
static int get_date(load_t *l, const char *place, json_t *obj, const char *key,
                    apr_time_t *when)
{
    const char *text;

    *when = 0;
    if (!get_text(l, place, obj, key, &text)) {
        return 0;
    }
    if (!text) {
        return 1;
    }
    if (aigw_record_time(strlen(text) == 10
                             ? apr_pstrcat(l->pool, text, "T00:00:00Z", NULL)
                             : text,
                         when)
        != AIGW_OK) {
        return wrong(l, at_key(l, place, key),
                     apr_psprintf(l->pool,
                                  "must be a date such as "
                                  "\"2026-11-30\" (00:00 UTC) or a UTC time "
                                  "such as \"2026-11-30T12:00:00Z\"; read "
                                  "%s",
                                  aigw_json_quote(l->pool, text)));
    }
    return 1;
}

/* -- prices -------------------------------------------------------------- */

static const char *price_key(aigw_usage_field_t f)
{
    return f == AIGW_U_INPUT_UNCACHED ? "input" : aigw_usage_field_name(f);
}

static int read_price(load_t *l, const char *place, json_t *v,
                      aigw_usage_field_t f, aigw_price_t *row)
{
    const char *s = json_string_value(v), *said = aigw_json_say(l->pool, v);
    aigw_money_t m;
    aigw_rc_t rc;

    if (!s) {
        return wrong(l, place,
                     apr_psprintf(l->pool,
                                  "a price is decimal "
                                  "text in quotes such as \"2.50\"; read %s",
                                  said));
    }
    rc = aigw_money_parse(aigw_slice(s, strlen(s)), &m);
    if (rc == AIGW_MALFORMED || (rc == AIGW_OK && m < 0) || *s == '-') {
        return wrong(l, place,
                     apr_psprintf(l->pool,
                                  "a price is a decimal "
                                  "number from 0 up such as \"2.50\"; read %s",
                                  said));
    }
    if (rc == AIGW_OK && aigw_price_is_token(f) && m % TOKEN_STEP != 0) {
        return wrong(
            l, place,
            apr_psprintf(
                l->pool,
                "a price per million "
                "tokens has at most 9 decimals, so that one token has "
                "an exact price; read %s",
                said));
    }
    if (rc != AIGW_OK) {
        return wrong(
            l, place,
            apr_psprintf(l->pool,
                         "a price has at most "
                         "%d decimals and must be below 10^23; read %s",
                         aigw_price_is_token(f) ? 9 : AIGW_MONEY_SCALE, said));
    }
    row->per_mtok[f] = m;
    row->known |= 1u << f;
    return 1;
}

static int read_group(load_t *l, const char *place, json_t *row_obj,
                      const char *group, aigw_price_t *row)
{
    const char *allowed[AIGW_U_MAX + 1];
    int tokens = strcmp(group, "per_mtok") == 0, f, n = 0;
    json_t *obj = json_object_get(row_obj, group), *v;

    if (!obj) {
        return 1;
    }
    place = at_key(l, place, group);
    if (!json_is_object(obj)) {
        return wrong(l, place,
                     apr_psprintf(l->pool,
                                  "must be an object "
                                  "{...}; read %s",
                                  aigw_json_say(l->pool, obj)));
    }
    for (f = 0; f < AIGW_U_MAX; f++) {
        if (aigw_price_is_token((aigw_usage_field_t)f) != tokens) {
            continue;
        }
        allowed[n++] = price_key((aigw_usage_field_t)f);
        v = json_object_get(obj, allowed[n - 1]);
        if (v
            && !read_price(l, at_key(l, place, allowed[n - 1]), v,
                           (aigw_usage_field_t)f, row)) {
            return 0;
        }
    }
    allowed[n] = NULL;
    return check_keys(l, place, obj, allowed);
}

/* -- rows ---------------------------------------------------------------- */

static int read_model(load_t *l, const char *place, json_t *obj,
                      aigw_price_t *row)
{
    const char *star;

    if (!need_text(l, place, obj, "model", &row->model)) {
        return 0;
    }
    star = strchr(row->model, '*');
    return !star || !star[1]
               ? 1
               : wrong(l, at_key(l, place, "model"),
                       apr_psprintf(l->pool,
                                    "'*' may stand at the end of a "
                                    "name only; read %s",
                                    aigw_json_quote(l->pool, row->model)));
}

static int read_when(load_t *l, const char *place, json_t *obj,
                     aigw_price_t *row)
{
    apr_time_t checked;

    if (!get_date(l, place, obj, "from", &row->from)
        || !get_date(l, place, obj, "to", &row->to)
        || !get_date(l, place, obj, "checked", &checked)
        || !get_text(l, place, obj, "checked", &row->checked)) {
        return 0;
    }
    return !row->to || row->from < row->to
               ? 1
               : wrong(l, at_key(l, place, "to"),
                       "must be later than \"from\": it is the first moment "
                       "at which the price is no longer in force");
}

static int read_row(load_t *l, json_t *obj, int index)
{
    static const char *const allowed[] = {"model",    "from",     "to",
                                          "currency", "source",   "checked",
                                          "note",     "per_mtok", "per_item",
                                          NULL};
    aigw_price_t *row = &l->cat->rows[index];
    const char *place = at_row(l, index);

    if (!json_is_object(obj)) {
        return wrong(l, place,
                     apr_psprintf(l->pool,
                                  "a row is an object "
                                  "{...}; read %s",
                                  aigw_json_say(l->pool, obj)));
    }
    row->currency = l->currency;
    if (!check_keys(l, place, obj, allowed) || !read_model(l, place, obj, row)
        || !read_when(l, place, obj, row)
        || !get_currency(l, place, obj, &row->currency)
        || !get_text(l, place, obj, "source", &row->source)
        || !check_note(l, place, obj)
        || !read_group(l, place, obj, "per_mtok", row)
        || !read_group(l, place, obj, "per_item", row)) {
        return 0;
    }
    if (!row->currency) {
        return wrong(l, place,
                     "\"currency\" is missing, here and at the "
                     "top of the file");
    }
    return row->known ? 1
                      : wrong(l, place,
                              "has no price: \"per_mtok\" or "
                              "\"per_item\" must hold one");
}

static int read_rows(load_t *l)
{
    json_t *list = json_object_get(l->doc.root, "prices");
    int i;

    if (!json_is_array(list)) {
        return wrong(l, list ? "prices" : "",
                     "\"prices\" must be a list "
                     "[...] of rows");
    }
    l->cat->n = (int)json_array_size(list);
    l->cat->rows = apr_pcalloc(l->pool, sizeof(aigw_price_t)
                                            * (json_array_size(list) + 1));
    for (i = 0; i < l->cat->n; i++) {
        if (!read_row(l, json_array_get(list, (size_t)i), i)) {
            return 0;
        }
    }
    return 1;
}

static int read_top(load_t *l)
{
    static const char *const allowed[] = {"format", "version", "currency",
                                          "note",   "prices",  NULL};
    json_t *format = json_object_get(l->doc.root, "format");

    if (!json_is_integer(format) || json_integer_value(format) != 1) {
        return wrong(l, format ? "format" : "",
                     "\"format\" must be 1: this version reads no other");
    }
    return check_keys(l, "", l->doc.root, allowed)
           && need_text(l, "", l->doc.root, "version", &l->cat->version)
           && check_note(l, "", l->doc.root)
           && get_currency(l, "", l->doc.root, &l->currency);
}

/* -- the index ----------------------------------------------------------- */

static int is_wild(const aigw_price_t *row)
{
    return row->model[strlen(row->model) - 1] == '*';
}

static int by_date(const aigw_price_t *a, const aigw_price_t *b)
{
    return a->from < b->from ? -1 : a->from > b->from;
}

static int by_name(const void *a, const void *b)
{
    const aigw_price_t *x = *(const aigw_price_t *const *)a;
    const aigw_price_t *y = *(const aigw_price_t *const *)b;
    int order = strcmp(x->model, y->model);

    return order ? order : by_date(x, y);
}

static int by_length(const void *a, const void *b)
{
    apr_size_t x = strlen((*(const aigw_price_t *const *)a)->model);
    apr_size_t y = strlen((*(const aigw_price_t *const *)b)->model);

    return x != y ? (x < y) - (x > y) : by_name(a, b);
}

static int check_overlaps(load_t *l, const aigw_price_t **sorted, int n)
{
    const aigw_price_t *a, *b;
    int i;

    for (i = 1; i < n; i++) {
        a = sorted[i - 1];
        b = sorted[i];
        if (strcmp(a->model, b->model) == 0
            && (a->to == 0 || a->to > b->from)) {
            return wrong(
                l, at_row(l, (int)(b - l->cat->rows)),
                apr_psprintf(l->pool,
                             "is in force at the same "
                             "time as prices[%d] on line %d for %s: end one "
                             "with \"to\" where the other begins",
                             (int)(a - l->cat->rows),
                             aigw_json_line(&l->doc,
                                            at_row(l,
                                                   (int)(a - l->cat->rows))),
                             aigw_json_quote(l->pool, b->model)));
        }
    }
    return 1;
}

static int make_index(load_t *l)
{
    aigw_catalog_t *cat = l->cat;
    apr_size_t room = sizeof(*cat->exact) * ((apr_size_t)cat->n + 1);
    int i;

    cat->exact = apr_palloc(l->pool, room);
    cat->wild = apr_palloc(l->pool, room);
    for (i = 0; i < cat->n; i++) {
        if (is_wild(&cat->rows[i])) {
            cat->wild[cat->n_wild++] = &cat->rows[i];
        }
        else {
            cat->exact[cat->n_exact++] = &cat->rows[i];
        }
    }
    qsort(cat->exact, (size_t)cat->n_exact, sizeof(*cat->exact), by_name);
    qsort(cat->wild, (size_t)cat->n_wild, sizeof(*cat->wild), by_length);
    return check_overlaps(l, cat->exact, cat->n_exact)
           && check_overlaps(l, cat->wild, cat->n_wild);
}

static apr_status_t build(load_t *l, aigw_catalog_t **cat)
{
    l->currency = NULL;
    l->cat = apr_pcalloc(l->pool, sizeof(*l->cat));
    if (!read_top(l) || !read_rows(l) || !make_index(l)) {
        return APR_EINVAL;
    }
    *cat = l->cat;
    return APR_SUCCESS;
}

/* The catalog has copies of its texts: the tree goes with a pool of its own.
 * text NULL: the file is read. */
static apr_status_t load(aigw_catalog_t **cat, const char *path,
                         const aigw_slice_t *text, apr_pool_t *pool,
                         const char **err)
{
    apr_pool_t *tree_pool;
    apr_status_t rv;
    load_t l;

    *cat = NULL;
    *err = NULL;
    l.pool = pool;
    l.err = err;
    apr_pool_create(&tree_pool, pool);
    rv = text ? aigw_json_parse(&l.doc, path, *text, tree_pool, err)
              : aigw_json_load(&l.doc, path, FILE_MAX, tree_pool, err);
    if (rv == APR_SUCCESS) {
        rv = build(&l, cat);
    }
    else {
        *err = apr_pstrdup(pool, *err);
    }
    apr_pool_destroy(tree_pool);
    return rv;
}

apr_status_t aigw_catalog_load(aigw_catalog_t **cat, const char *path,
                               apr_pool_t *pool, const char **err)
{
    return load(cat, path, NULL, pool, err);
}

apr_status_t aigw_catalog_parse(aigw_catalog_t **cat, const char *path,
                                aigw_slice_t text, apr_pool_t *pool,
                                const char **err)
{
    return load(cat, path, &text, pool, err);
}

/* -- looking up ---------------------------------------------------------- */

static int in_force(const aigw_price_t *row, apr_time_t when)
{
    return when >= row->from && (row->to == 0 || when < row->to);
}

/* The first of the exact rows whose name is not before the model's. */
static int lower_bound(const aigw_catalog_t *cat, const char *model)
{
    int low = 0, high = cat->n_exact, mid;

    while (low < high) {
        mid = low + (high - low) / 2;
        if (strcmp(cat->exact[mid]->model, model) < 0) {
            low = mid + 1;
        }
        else {
            high = mid;
        }
    }
    return low;
}

const aigw_price_t *aigw_catalog_find(const aigw_catalog_t *cat,
                                      const char *model, apr_time_t when)
{
    const aigw_price_t *row;
    int i;

    if (!model) {
        return NULL;
    }
    for (i = lower_bound(cat, model); i < cat->n_exact; i++) {
        row = cat->exact[i];
        if (strcmp(row->model, model) != 0) {
            break;
        }
        if (in_force(row, when)) {
            return row;
        }
    }
    for (i = 0; i < cat->n_wild; i++) {
        row = cat->wild[i];
        if (strncmp(row->model, model, strlen(row->model) - 1) == 0
            && in_force(row, when)) {
            return row;
        }
    }
    return NULL;
}

const aigw_price_t *aigw_catalog_price(const aigw_catalog_t *cat,
                                       const char *served, const char *model,
                                       apr_time_t when)
{
    const aigw_price_t *row = aigw_catalog_find(cat, served, when);

    return row ? row : aigw_catalog_find(cat, model, when);
}

const char *aigw_catalog_version(const aigw_catalog_t *cat)
{
    return cat->version;
}

const aigw_price_t *aigw_catalog_row(const aigw_catalog_t *cat, int index)
{
    return index >= 0 && index < cat->n ? &cat->rows[index] : NULL;
}
