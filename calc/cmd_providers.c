/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-calc providers: what providers state of themselves, from a data file,
 * made comparable, and beside it what usage logs measured.  A figure that is
 * only stated is never shown as measured.
 */
#include <stdio.h>
#include <apr_strings.h>
#include "args.h"
#include "commands.h"
#include "json.h"
#include "logs.h"
#include "ratio.h"
#include "stats.h"

#define FILE_MAX_BYTES (1024 * 1024)
#define MODELS_MAX 16

/* "9-12" or "8". */
typedef struct {
    const char *text; /* NULL: not stated */
    aigw_ratio_t low, high;
} range_t;

typedef struct {
    const char *name, *upstream, *payment;
    range_t latency, rate, sla, first;
    range_t price[MODELS_MAX];
    apr_uint64_t n, errors;      /* measured */
    apr_array_header_t *samples; /* of apr_int64_t: first bytes in us */
} provider_t;

typedef struct {
    aigw_options_t opt;
    apr_pool_t *pool;
    aigw_json_t doc;
    const char *err;
    const char *rate_text, *title, *checked;
    apr_int64_t days;
    const char *models[MODELS_MAX];
    int n_models;
    apr_array_header_t *providers; /* of provider_t * */
    aigw_logs_t logs;
    apr_uint64_t elsewhere; /* records of an upstream without a row */
    aigw_table_t *table;
} work_t;

/* -- the data file ------------------------------------------------------- */

static aigw_rc_t wrong(work_t *w, const char *place, const char *why)
{
    w->err = apr_psprintf(w->pool, "%s:%d: %s: %s", w->doc.path,
                          aigw_json_line(&w->doc, place), place, why);
    return AIGW_MALFORMED;
}

static aigw_rc_t number(const char *text, apr_size_t n, aigw_ratio_t *out)
{
    aigw_money_t m;
    aigw_rc_t rc = aigw_money_parse(aigw_slice(text, n), &m);

    if (rc == AIGW_OK && m < 0) {
        rc = AIGW_MALFORMED;
    }
    *out = aigw_ratio_money(rc == AIGW_OK ? m : 0);
    return rc;
}

static aigw_rc_t read_range(work_t *w, json_t *value, const char *place,
                            range_t *range)
{
    const char *text = json_string_value(value), *dash;
    int order = 0;

    dash = text ? strchr(text, '-') : NULL;
    if (!text
        || number(text, dash ? (apr_size_t)(dash - text) : strlen(text),
                  &range->low)
               != AIGW_OK
        || number(dash ? dash + 1 : text, strlen(dash ? dash + 1 : text),
                  &range->high)
               != AIGW_OK
        || aigw_ratio_order(range->low, range->high, &order) != AIGW_OK
        || order > 0) {
        return wrong(w, place, "must be text such as \"8\" or \"9-12\"");
    }
    range->text = apr_pstrdup(w->pool, text);
    return AIGW_OK;
}

static int model_index(work_t *w, const char *name)
{
    int i;

    for (i = 0; i < w->n_models; i++) {
        if (strcmp(w->models[i], name) == 0) {
            return i;
        }
    }
    if (w->n_models == MODELS_MAX) {
        return -1;
    }
    w->models[w->n_models] = apr_pstrdup(w->pool, name);
    return w->n_models++;
}

static aigw_rc_t read_prices(work_t *w, provider_t *p, json_t *value,
                             const char *place)
{
    const char *model;
    json_t *price;
    aigw_rc_t rc;
    int at;

    if (!json_is_object(value)) {
        return wrong(w, place, "must be an object of model and price");
    }
    json_object_foreach(value, model, price)
    {
        at = model_index(w, model);
        rc = at < 0 ? wrong(w, place, "names more than 16 models")
                    : read_range(w, price, place, &p->price[at]);
        if (rc != AIGW_OK) {
            return rc;
        }
    }
    return AIGW_OK;
}

static const char **text_member(provider_t *p, const char *key)
{
    return strcmp(key, "name") == 0       ? &p->name
           : strcmp(key, "upstream") == 0 ? &p->upstream
           : strcmp(key, "payment") == 0  ? &p->payment
                                          : NULL;
}

static range_t *range_member(provider_t *p, const char *key)
{
    return strcmp(key, "latency_ms") == 0      ? &p->latency
           : strcmp(key, "rate") == 0          ? &p->rate
           : strcmp(key, "sla") == 0           ? &p->sla
           : strcmp(key, "first_byte_ms") == 0 ? &p->first
                                               : NULL;
}

static aigw_rc_t read_member(work_t *w, provider_t *p, const char *key,
                             json_t *value, const char *place)
{
    const char **text = text_member(p, key);

    if (text) {
        *text = apr_pstrdup(w->pool, json_string_value(value));
        return *text ? AIGW_OK : wrong(w, place, "must be text");
    }
    if (range_member(p, key)) {
        return read_range(w, value, place, range_member(p, key));
    }
    if (strcmp(key, "output_per_mtok") == 0) {
        return read_prices(w, p, value, place);
    }
    return wrong(w, place,
                 "is not a key of a provider: there are name, upstream, "
                 "payment, latency_ms, rate, sla, first_byte_ms and "
                 "output_per_mtok");
}

static aigw_rc_t read_provider(work_t *w, json_t *value, size_t index)
{
    const char *at = apr_psprintf(w->pool, "providers[%lu]",
                                  (unsigned long)index),
               *key;
    provider_t *p = apr_pcalloc(w->pool, sizeof(*p));
    aigw_rc_t rc = AIGW_OK;
    json_t *member;

    if (!json_is_object(value)) {
        return wrong(w, at, "must be an object");
    }
    json_object_foreach(value, key, member)
    {
        rc = rc == AIGW_OK
                 ? read_member(w, p, key, member,
                               apr_pstrcat(w->pool, at, ".", key, NULL))
                 : rc;
    }
    if (rc == AIGW_OK && !p->name) {
        rc = wrong(w, at, "name must be given");
    }
    p->samples = apr_array_make(w->pool, 16, sizeof(apr_int64_t));
    APR_ARRAY_PUSH(w->providers, provider_t *) = p;
    return rc;
}

static aigw_rc_t read_file(work_t *w)
{
    json_t *list = json_object_get(w->doc.root, "providers"), *value;
    json_t *days = json_object_get(w->doc.root, "days");
    aigw_rc_t rc = AIGW_OK;
    size_t i;

    if (json_integer_value(json_object_get(w->doc.root, "format")) != 1
        || !json_is_array(list)) {
        return wrong(w, "format", "must be 1, with a list of providers");
    }
    w->days = days ? json_integer_value(days) : 30;
    if (w->days < 1 || w->days > 366) {
        return wrong(w, "days", "must be from 1 to 366");
    }
    w->title =
        apr_pstrdup(w->pool,
                    json_string_value(json_object_get(w->doc.root, "title")));
    w->checked =
        apr_pstrdup(w->pool, json_string_value(
                                 json_object_get(w->doc.root, "checked")));
    w->rate_text =
        apr_pstrdup(w->pool,
                    json_string_value(json_object_get(w->doc.root, "rate")));
    json_array_foreach(list, i, value)
    {
        rc = rc == AIGW_OK ? read_provider(w, value, i) : rc;
    }
    return rc;
}

/* -- logs ---------------------------------------------------------------- */

static aigw_rc_t take_record(void *ctx, const aigw_record_t *rec)
{
    work_t *w = ctx;
    provider_t *p;
    int i;

    for (i = 0; i < w->providers->nelts; i++) {
        p = APR_ARRAY_IDX(w->providers, i, provider_t *);
        if (p->upstream && rec->upstream
            && strcmp(p->upstream, rec->upstream) == 0) {
            p->n++;
            p->errors += aigw_tally_is_error(rec) ? 1 : 0;
            if (!aigw_tally_is_error(rec) && rec->first_us >= 0) {
                APR_ARRAY_PUSH(p->samples, apr_int64_t) = rec->first_us;
            }
            return AIGW_OK;
        }
    }
    w->elsewhere++;
    return AIGW_OK;
}

/* -- the table ----------------------------------------------------------- */

static const char *text_of(const work_t *w, aigw_ratio_t value, int digits)
{
    return aigw_ratio_text(value, w->opt.digits < 0 ? digits : w->opt.digits,
                           w->opt.round, w->pool);
}

/* (x / base - 1) in per cent. */
static const char *change(const work_t *w, aigw_ratio_t x, aigw_ratio_t base)
{
    if (aigw_ratio_div(x, base, &x) != AIGW_OK
        || aigw_ratio_sub(x, aigw_ratio_of(1), &x) != AIGW_OK
        || aigw_ratio_mul(x, aigw_ratio_of(100), &x) != AIGW_OK) {
        return NULL;
    }
    return text_of(w, x, 1);
}

static const char *change_range(const work_t *w, const range_t *x,
                                const range_t *base)
{
    const char *low, *high;

    if (!x->text || !base->text || base->low.num == 0) {
        return NULL;
    }
    low = change(w, x->low, base->high);
    high = change(w, x->high, base->low);
    return low && high && strcmp(low, high) != 0
               ? apr_pstrcat(w->pool, low, " to ", high, NULL)
               : low;
}

/* Minutes that a promise of so many per cent leaves. */
static const char *minutes(const work_t *w, const range_t *sla)
{
    aigw_ratio_t m;

    if (!sla->text
        || aigw_ratio_sub(aigw_ratio_of(100), sla->low, &m) != AIGW_OK
        || aigw_ratio_mul(m, aigw_ratio_of(w->days * 24 * 60), &m) != AIGW_OK
        || aigw_ratio_div(m, aigw_ratio_of(100), &m) != AIGW_OK) {
        return NULL;
    }
    return text_of(w, m, 1);
}

static void add_columns(work_t *w)
{
    aigw_table_t *t = w->table;
    int i;

    aigw_table_column(t, "provider", "provider", AIGW_CELL_TEXT);
    aigw_table_column(t, "latency_ms", "latency ms", AIGW_CELL_TEXT)->drop = 6;
    aigw_table_column(t, "rate", "rate", AIGW_CELL_TEXT);
    aigw_table_column(t, "rate_change_percent", "rate vs first %",
                      AIGW_CELL_TEXT)
        ->drop = 2;
    aigw_table_column(t, "payment", "payment", AIGW_CELL_TEXT)->drop = 9;
    for (i = 0; i < w->n_models; i++) {
        aigw_table_column(t,
                          apr_pstrcat(w->pool, "output_", w->models[i], NULL),
                          aigw_text_safe(w->pool, w->models[i]),
                          AIGW_CELL_TEXT)
            ->drop = 4;
        aigw_table_column(t,
                          apr_pstrcat(w->pool, "output_", w->models[i],
                                      "_change_percent", NULL),
                          "vs first %", AIGW_CELL_TEXT)
            ->drop = 5;
    }
    aigw_table_column(t, "sla_percent", "SLA %", AIGW_CELL_TEXT);
    aigw_table_column(t, "sla_minutes", "min/month", AIGW_CELL_DECIMAL);
    aigw_table_column(t, "first_byte_ms", "first byte ms", AIGW_CELL_TEXT);
    aigw_table_column(t, "measured_requests", "measured", AIGW_CELL_COUNT)
        ->optional = 1;
    aigw_table_column(t, "measured_first_byte_ms", "P50 first byte ms",
                      AIGW_CELL_DECIMAL)
        ->optional = 1;
    aigw_table_column(t, "measured_percent", "without error %",
                      AIGW_CELL_DECIMAL)
        ->optional = 1;
}

static void add_measured(work_t *w, const char **cells, provider_t *p)
{
    apr_int64_t *us = (apr_int64_t *)p->samples->elts;
    apr_uint64_t n = (apr_uint64_t)p->samples->nelts;
    aigw_ratio_t r;

    if (!p->n) {
        return;
    }
    cells[0] = apr_psprintf(w->pool, "%" APR_UINT64_T_FMT, p->n);
    aigw_stats_sort(us, n);
    if (n
        && aigw_ratio_make(aigw_stats_quantile(us, n, 500), 1000, &r)
               == AIGW_OK) {
        cells[1] = text_of(w, r, 3);
    }
    if (aigw_ratio_make((aigw_money_t)(p->n - p->errors) * 100,
                        (aigw_money_t)p->n, &r)
        == AIGW_OK) {
        cells[2] = text_of(w, r, 2);
    }
}

static void add_row(work_t *w, provider_t *p, const provider_t *first)
{
    const char **cells = aigw_table_cells(w->table);
    int at = 0, i;

    cells[at++] = p->name;
    cells[at++] = p->latency.text;
    cells[at++] = p->rate.text;
    cells[at++] = p == first ? NULL : change_range(w, &p->rate, &first->rate);
    cells[at++] = p->payment;
    for (i = 0; i < w->n_models; i++) {
        cells[at++] = p->price[i].text;
        cells[at++] = p == first
                          ? NULL
                          : change_range(w, &p->price[i], &first->price[i]);
    }
    cells[at++] = p->sla.text;
    cells[at++] = minutes(w, &p->sla);
    cells[at++] = p->first.text;
    add_measured(w, cells + at, p);
    aigw_table_row(w->table, cells);
}

static void add_notes(work_t *w)
{
    aigw_table_fact(w->table, "title", w->title, AIGW_CELL_TEXT);
    aigw_table_fact(w->table, "checked", w->checked, AIGW_CELL_TEXT);
    aigw_table_note(
        w->table,
        apr_psprintf(
            w->pool,
            "Stated, not measured: %s (%s, as of %s). Prices are "
            "output per million tokens. SLA: minutes of %" APR_INT64_T_FMT
            " days that the promise leaves.",
            w->title ? aigw_text_safe(w->pool, w->title) : "-",
            aigw_text_safe(w->pool, w->doc.path),
            w->checked ? aigw_text_safe(w->pool, w->checked) : "-", w->days));
    if (w->rate_text) {
        aigw_table_note(w->table,
                        apr_pstrcat(w->pool, "rate: ",
                                    aigw_text_safe(w->pool, w->rate_text),
                                    "; against the first row it is the price "
                                    "of the credit, not an exchange.",
                                    NULL));
    }
    if (w->opt.n_files > 1) {
        aigw_table_note(
            w->table,
            apr_psprintf(w->pool,
                         "Measured: from the logs, by upstream; the first "
                         "byte of requests without error. Left out: "
                         "%" APR_UINT64_T_FMT " requests of other upstreams, "
                         "%" APR_UINT64_T_FMT " bad lines.",
                         w->elsewhere, w->logs.bad));
    }
}

/* -- the command --------------------------------------------------------- */

static aigw_exit_t run(work_t *w)
{
    aigw_options_t logs = w->opt;
    aigw_exit_t end = AIGW_EXIT_OK;
    int i;

    if (aigw_json_load(&w->doc, w->opt.files[0], FILE_MAX_BYTES, w->pool,
                       &w->err)
            != APR_SUCCESS
        || read_file(w) != AIGW_OK) {
        return aigw_args_fail(w->err, w->pool);
    }
    logs.files++;
    logs.n_files--;
    if (logs.n_files) {
        end = aigw_logs_read(&logs, take_record, w, &w->logs, w->pool);
    }
    if (end != AIGW_EXIT_OK) {
        return end;
    }
    w->table = aigw_table_make("providers", w->pool);
    add_columns(w);
    for (i = 0; i < w->providers->nelts; i++) {
        add_row(w, APR_ARRAY_IDX(w->providers, i, provider_t *),
                APR_ARRAY_IDX(w->providers, 0, provider_t *));
    }
    add_notes(w);
    return aigw_command_print(w->table, &w->opt);
}

static const aigw_arg_t rows[] =
    {{"strict", AIGW_ARG_FLAG, offsetof(work_t, opt.strict), NULL,
      "stop at the first bad line, with status 1"},
     {NULL, 0, 0, NULL, NULL}};

aigw_exit_t aigw_command_providers(int argc, char **argv, apr_pool_t *pool)
{
    static const aigw_args_t args = {
        "providers",
        "[OPTION...] PROVIDERS [LOG...]",
        "What providers state of themselves, and what usage logs measured of\n"
        "them. PROVIDERS is a file such as the providers.json that comes "
        "with\n"
        "aigw-calc.\n",
        "aigw-calc providers providers.json usage.log",
        rows,
        1,
        10000,
        1};
    work_t w;
    aigw_rc_t rc;

    memset(&w, 0, sizeof(w));
    w.pool = pool;
    w.providers = apr_array_make(pool, 4, sizeof(provider_t *));
    rc = aigw_args_read(&args, &w.opt, argc, argv, pool);
    if (rc != AIGW_OK) {
        return rc == AIGW_DONE ? AIGW_EXIT_OK : AIGW_EXIT_USAGE;
    }
    return run(&w);
}
