/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tally.  A group's key is the text of its parts with a NUL behind each,
 * which no text of a record holds; an absent part is one byte that is not
 * UTF-8, so that it differs from every name.
 */
#include <stdlib.h>
#include <apr_hash.h>
#include <apr_strings.h>
#include "tally.h"

#define ABSENT "\xff"
#define UNPRICED_SHOWN 8

struct aigw_tally_t {
    apr_pool_t *pool;
    aigw_by_t by[AIGW_BY_MAX];
    int n_by;
    apr_hash_t *groups; /* key text -> aigw_group_t */
    aigw_group_t *total;
    apr_array_header_t *unpriced; /* of const char *, UNPRICED_SHOWN + 1 */
    char *key;                    /* of the record in hand; grows */
    apr_size_t key_room;
};

const char *aigw_by_name(aigw_by_t by)
{
    static const char *const names[AIGW_BY_MAX] = {"day", "model",    "tenant",
                                                   "key", "upstream", "host"};

    return names[by];
}

static aigw_group_t *make_group(apr_pool_t *pool)
{
    aigw_group_t *g = apr_pcalloc(pool, sizeof(*g));

    g->sums = apr_array_make(pool, 1, sizeof(aigw_sum_t));
    g->known = 1u << AIGW_T_REQUESTS | 1u << AIGW_T_ERRORS
               | 1u << AIGW_T_NO_USAGE | 1u << AIGW_T_PARTIAL
               | 1u << AIGW_T_ESTIMATED | 1u << AIGW_T_UNPRICED;
    return g;
}

aigw_tally_t *aigw_tally_make(const aigw_by_t *by, int n_by, apr_pool_t *pool)
{
    aigw_tally_t *t = apr_pcalloc(pool, sizeof(*t));

    t->pool = pool;
    t->n_by = n_by;
    memcpy(t->by, by, sizeof(*by) * (apr_size_t)n_by);
    t->groups = apr_hash_make(pool);
    t->total = make_group(pool);
    t->unpriced = apr_array_make(pool, 1, sizeof(const char *));
    t->key_room = 1024;
    t->key = apr_palloc(pool, t->key_room);
    return t;
}

/* -- finding the group --------------------------------------------------- */

static const char *part_of(const aigw_record_t *rec, aigw_by_t by,
                           const char *day)
{
    switch (by) {
    case AIGW_BY_DAY:
        return day;
    case AIGW_BY_MODEL:
        return rec->model;
    case AIGW_BY_TENANT:
        return rec->tenant;
    case AIGW_BY_KEY:
        return rec->key;
    case AIGW_BY_UPSTREAM:
        return rec->upstream;
    default:
        return rec->host;
    }
}

static apr_size_t append_key(aigw_tally_t *t, apr_size_t at, const char *part)
{
    apr_size_t n = strlen(part) + 1;
    char *more;

    if (at + n > t->key_room) {
        t->key_room = (at + n) * 2;
        more = apr_palloc(t->pool, t->key_room);
        memcpy(more, t->key, at);
        t->key = more;
    }
    memcpy(t->key + at, part, n);
    return at + n;
}

/* A group of its own, its key texts inside its hash key. */
static aigw_group_t *add_group(aigw_tally_t *t, apr_size_t n)
{
    aigw_group_t *g = make_group(t->pool);
    const char *key = apr_pmemdup(t->pool, t->key, n), *part = key;
    int i;

    for (i = 0; i < t->n_by; i++) {
        g->key[i] = strcmp(part, ABSENT) == 0 ? NULL : part;
        part += strlen(part) + 1;
    }
    apr_hash_set(t->groups, key, (apr_ssize_t)n, g);
    return g;
}

static aigw_group_t *group_of(aigw_tally_t *t, const aigw_record_t *rec,
                              aigw_day_t day)
{
    aigw_group_t *g;
    apr_size_t n = 0;
    const char *part;
    char text[11];
    int i;

    aigw_day_text(day, text);
    for (i = 0; i < t->n_by; i++) {
        part = part_of(rec, t->by[i], text);
        n = append_key(t, n, part ? part : ABSENT);
    }
    g = apr_hash_get(t->groups, t->key, (apr_ssize_t)n);
    return g ? g : add_group(t, n);
}

/* -- adding -------------------------------------------------------------- */

static aigw_rc_t add_count(aigw_group_t *g, aigw_tally_field_t field,
                           apr_uint64_t n)
{
    if (n > APR_INT64_MAX - g->n[field]) {
        return AIGW_TOO_BIG;
    }
    g->n[field] += n;
    g->known |= 1u << field;
    return AIGW_OK;
}

static aigw_rc_t add_usage(aigw_group_t *g, const aigw_usage_t *u)
{
    static const struct {
        aigw_usage_field_t from;
        aigw_tally_field_t to;
    } rows[] = {{AIGW_U_INPUT_UNCACHED, AIGW_T_INPUT},
                {AIGW_U_CACHE_READ, AIGW_T_CACHE_READ},
                {AIGW_U_CACHE_WRITE_5M, AIGW_T_CACHE_WRITE},
                {AIGW_U_CACHE_WRITE_1H, AIGW_T_CACHE_WRITE},
                {AIGW_U_CACHE_WRITE_OTHER, AIGW_T_CACHE_WRITE},
                {AIGW_U_OUTPUT, AIGW_T_OUTPUT},
                {AIGW_U_REASONING, AIGW_T_REASONING}};
    apr_uint64_t n;
    aigw_rc_t rc = AIGW_OK;
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]) && rc == AIGW_OK; i++) {
        if (aigw_usage_get(u, rows[i].from, &n)) {
            rc = add_count(g, rows[i].to, n);
        }
    }
    return rc;
}

const aigw_sum_t *aigw_group_sum(const aigw_group_t *g, const char *currency)
{
    const aigw_sum_t *sums = (const aigw_sum_t *)g->sums->elts;
    int i;

    for (i = 0; i < g->sums->nelts; i++) {
        if (strcmp(sums[i].currency, currency) == 0) {
            return &sums[i];
        }
    }
    return NULL;
}

static aigw_rc_t add_money(aigw_tally_t *t, aigw_group_t *g, aigw_money_t cost,
                           const char *currency)
{
    aigw_sum_t *sum = (aigw_sum_t *)aigw_group_sum(g, currency);

    if (!sum) {
        sum = apr_array_push(g->sums);
        sum->currency = apr_pstrdup(t->pool, currency);
        sum->amount = 0;
        sum->requests = 0;
    }
    sum->requests++;
    return aigw_money_add(sum->amount, cost, &sum->amount);
}

/* A client that left is not the fault of anyone who is billed here. */
static int is_error(const aigw_record_t *rec)
{
    if (rec->end == AIGW_END_CLIENT_ABORT) {
        return 0;
    }
    return rec->status >= 400 || rec->end == AIGW_END_TRUNCATED
           || rec->end == AIGW_END_ERROR || rec->end == AIGW_END_TIMEOUT
           || rec->end == AIGW_END_REFUSED;
}

/* A provider may have charged for it, and nobody said how much: it was sent,
 * and not answered with an error. */
static int is_unknown(const aigw_record_t *rec)
{
    return rec->usage.source == AIGW_USAGE_NONE
           && rec->end != AIGW_END_REFUSED && rec->upstream_status < 400
           && rec->reason != AIGW_REASON_RESOLVE
           && rec->reason != AIGW_REASON_CONNECT
           && rec->reason != AIGW_REASON_CONNECT_TIMEOUT
           && rec->reason != AIGW_REASON_TLS;
}

static void count_kind(aigw_group_t *g, const aigw_record_t *rec, int priced)
{
    aigw_usage_source_t source = rec->usage.source;

    g->n[AIGW_T_REQUESTS]++;
    g->n[AIGW_T_ERRORS] += is_error(rec);
    g->n[AIGW_T_NO_USAGE] += is_unknown(rec) && !priced;
    g->n[AIGW_T_PARTIAL] += source == AIGW_USAGE_PARTIAL;
    g->n[AIGW_T_ESTIMATED] += source == AIGW_USAGE_ESTIMATED;
    g->n[AIGW_T_UNPRICED] += source != AIGW_USAGE_NONE && !priced;
}

static void note_unpriced(aigw_tally_t *t, const char *model)
{
    const char **names = (const char **)t->unpriced->elts;
    int i;

    for (i = 0; i < t->unpriced->nelts; i++) {
        if (strcmp(names[i], model) == 0) {
            return;
        }
    }
    if (t->unpriced->nelts <= UNPRICED_SHOWN) {
        APR_ARRAY_PUSH(t->unpriced, const char *) =
            apr_pstrdup(t->pool, model);
    }
}

static aigw_rc_t add_to(aigw_tally_t *t, aigw_group_t *g,
                        const aigw_record_t *rec, const aigw_money_t *cost,
                        const char *currency)
{
    aigw_rc_t rc = add_usage(g, &rec->usage);

    count_kind(g, rec, cost != NULL);
    return rc == AIGW_OK && cost ? add_money(t, g, *cost, currency) : rc;
}

aigw_rc_t aigw_tally_add(aigw_tally_t *t, const aigw_record_t *rec,
                         aigw_day_t day, const aigw_money_t *cost,
                         const char *currency)
{
    aigw_rc_t rc = add_to(t, group_of(t, rec, day), rec, cost, currency);

    if (!cost && rec->usage.source != AIGW_USAGE_NONE) {
        note_unpriced(t, rec->model ? rec->model : "(no model)");
    }
    return rc == AIGW_OK ? add_to(t, t->total, rec, cost, currency) : rc;
}

/* -- reading off --------------------------------------------------------- */

static int by_keys(const void *a, const void *b)
{
    const aigw_group_t *x = *(aigw_group_t *const *)a;
    const aigw_group_t *y = *(aigw_group_t *const *)b;
    int i, order = 0;

    for (i = 0; i < AIGW_BY_MAX && order == 0; i++) {
        if (!x->key[i] || !y->key[i]) {
            order = (x->key[i] != NULL) - (y->key[i] != NULL);
        }
        else {
            order = strcmp(x->key[i], y->key[i]);
        }
    }
    return order;
}

aigw_group_t **aigw_tally_groups(aigw_tally_t *t, int *n)
{
    aigw_group_t **all;
    apr_hash_index_t *i;
    void *value;

    *n = 0;
    all = apr_palloc(t->pool, sizeof(*all) * (apr_hash_count(t->groups) + 1));
    for (i = apr_hash_first(t->pool, t->groups); i; i = apr_hash_next(i)) {
        apr_hash_this(i, NULL, NULL, &value);
        all[(*n)++] = value;
    }
    qsort(all, (size_t)*n, sizeof(*all), by_keys);
    return all;
}

const aigw_group_t *aigw_tally_total(const aigw_tally_t *t)
{
    return t->total;
}

const char *aigw_tally_unpriced(const aigw_tally_t *t)
{
    const char **names = (const char **)t->unpriced->elts, *all = NULL;
    int i;

    for (i = 0; i < t->unpriced->nelts; i++) {
        if (i == UNPRICED_SHOWN) {
            return apr_pstrcat(t->pool, all, ", ...", NULL);
        }
        all = all ? apr_pstrcat(t->pool, all, ", ", names[i], NULL) : names[i];
    }
    return all;
}
