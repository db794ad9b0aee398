/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tally: an open hash table of pointers to groups.  A group, its keys and
 * their text are one piece of memory.  The total is summed over the groups
 * when all records are in, so that a record is added only once.
 */
#include <stdlib.h>
#include <apr_strings.h>
#include "mix.h"
#include "tally.h"

#define UNPRICED_SHOWN 8
#define FIRST_SLOTS 64

struct aigw_more_sums_t {
    aigw_sum_t sum;
    aigw_more_sums_t *more;
};

struct aigw_tally_t {
    apr_pool_t *pool;
    aigw_by_t by[AIGW_BY_MAX];
    int n_by;
    aigw_group_t **slots; /* malloc: it grows and is let go of */
    apr_size_t mask;      /* slots - 1 */
    apr_uint64_t n_groups, limit;
    aigw_group_t *other; /* NULL until it is needed */
    aigw_group_t *total;
    apr_array_header_t *unpriced;  /* of const char *, UNPRICED_SHOWN + 1 */
    const char *part[AIGW_BY_MAX]; /* keys of the record in hand */
    aigw_day_t day;                /* whose text is in day_text */
    char day_text[12], week_text[12], month_text[12];
    apr_int64_t quarter; /* whose hour is in hour_text */
    char hour_text[24];
    int wants_hour;
};

const char *aigw_by_name(aigw_by_t by)
{
    static const char *const names[AIGW_BY_MAX] = {"day",      "model",
                                                   "tenant",   "key",
                                                   "upstream", "host",
                                                   "hour",     "week",
                                                   "month",    "served",
                                                   "api"};

    return names[by];
}

static apr_status_t free_slots(void *data)
{
    free(((aigw_tally_t *)data)->slots);
    return APR_SUCCESS;
}

/* A group with room for its keys and so many bytes of their text. */
static aigw_group_t *make_group(aigw_tally_t *t, apr_size_t text)
{
    aigw_group_t *g =
        apr_pcalloc(t->pool, sizeof(*g)
                                 + sizeof(g->key[0]) * (apr_size_t)t->n_by
                                 + text);

    g->known = 1u << AIGW_T_REQUESTS | 1u << AIGW_T_ERRORS
               | 1u << AIGW_T_NO_USAGE | 1u << AIGW_T_PARTIAL
               | 1u << AIGW_T_ESTIMATED | 1u << AIGW_T_UNPRICED;
    return g;
}

static aigw_group_t **make_slots(apr_size_t n)
{
    aigw_group_t **slots = calloc(n, sizeof(*slots));

    if (!slots) {
        abort(); /* as APR's pools do */
    }
    return slots;
}

aigw_tally_t *aigw_tally_make(const aigw_by_t *by, int n_by, apr_pool_t *pool)
{
    aigw_tally_t *t = apr_pcalloc(pool, sizeof(*t));

    t->pool = pool;
    t->n_by = n_by;
    memcpy(t->by, by, sizeof(*by) * (apr_size_t)n_by);
    for (t->quarter = -1; n_by > 0; n_by--) {
        t->wants_hour |= by[n_by - 1] == AIGW_BY_HOUR;
    }
    t->slots = make_slots(FIRST_SLOTS);
    t->mask = FIRST_SLOTS - 1;
    t->limit = AIGW_GROUPS_MAX;
    apr_pool_cleanup_register(pool, t, free_slots, apr_pool_cleanup_null);
    t->total = make_group(t, 0);
    t->unpriced = apr_array_make(pool, 1, sizeof(const char *));
    return t;
}

void aigw_tally_limit(aigw_tally_t *t, apr_uint64_t groups)
{
    t->limit = groups;
}

/* -- finding the group --------------------------------------------------- */

static const char *part_of(const aigw_tally_t *t, const aigw_record_t *rec,
                           aigw_by_t by)
{
    switch (by) {
    case AIGW_BY_DAY:
        return t->day_text;
    case AIGW_BY_MODEL:
        return rec->model;
    case AIGW_BY_TENANT:
        return rec->tenant;
    case AIGW_BY_KEY:
        return rec->key;
    case AIGW_BY_UPSTREAM:
        return rec->upstream;
    case AIGW_BY_HOUR:
        return t->hour_text;
    case AIGW_BY_WEEK:
        return t->week_text;
    case AIGW_BY_MONTH:
        return t->month_text;
    case AIGW_BY_SERVED:
        return rec->served;
    case AIGW_BY_API:
        return rec->api;
    default:
        return rec->host;
    }
}

/* The keys of a record into part, and their hash. */
static apr_uint32_t set_parts(aigw_tally_t *t, const aigw_record_t *rec,
                              aigw_day_t day)
{
    apr_uint64_t hash = 0;
    int i;

    if (day != t->day) {
        aigw_day_text(day, t->day_text);
        aigw_day_week(day, t->week_text);
        memcpy(t->month_text, t->day_text, 7);
        t->day = day;
    }
    if (t->wants_hour && rec->ts / AIGW_DAY_QUARTER != t->quarter) {
        aigw_day_hour(rec->ts, t->hour_text);
        t->quarter = rec->ts / AIGW_DAY_QUARTER;
    }
    for (i = 0; i < t->n_by; i++) {
        t->part[i] = part_of(t, rec, t->by[i]);
        hash = t->part[i] ? aigw_mix_text(t->part[i], strlen(t->part[i]), hash)
                          : aigw_mix(hash, 1);
    }
    return (apr_uint32_t)(hash ^ hash >> 32);
}

static int has_parts(const aigw_tally_t *t, const aigw_group_t *g)
{
    int i;

    for (i = 0; i < t->n_by; i++) {
        if (!g->key[i] || !t->part[i]) {
            if (g->key[i] != t->part[i]) {
                return 0;
            }
        }
        else if (strcmp(g->key[i], t->part[i]) != 0) {
            return 0;
        }
    }
    return 1;
}

static void grow(aigw_tally_t *t)
{
    apr_size_t mask = t->mask * 2 + 1, i, at;
    aigw_group_t **slots = make_slots(mask + 1);

    for (i = 0; i <= t->mask; i++) {
        if (t->slots[i]) {
            at = t->slots[i]->hash & mask;
            while (slots[at]) {
                at = (at + 1) & mask;
            }
            slots[at] = t->slots[i];
        }
    }
    free(t->slots);
    t->slots = slots;
    t->mask = mask;
}

/* A group of the keys in part, their text behind it. */
static aigw_group_t *add_group(aigw_tally_t *t, apr_uint32_t hash)
{
    apr_size_t text = 0, n;
    aigw_group_t *g;
    char *p;
    int i;

    for (i = 0; i < t->n_by; i++) {
        text += t->part[i] ? strlen(t->part[i]) + 1 : 0;
    }
    g = make_group(t, text);
    g->hash = hash;
    p = (char *)(g->key + t->n_by);
    for (i = 0; i < t->n_by; i++) {
        if (t->part[i]) {
            n = strlen(t->part[i]) + 1;
            g->key[i] = memcpy(p, t->part[i], n);
            p += n;
        }
    }
    return g;
}

static aigw_group_t *other_group(aigw_tally_t *t)
{
    int i;

    if (!t->other) {
        for (i = 0; i < t->n_by; i++) {
            t->part[i] = AIGW_OTHER;
        }
        t->other = add_group(t, 0);
    }
    return t->other;
}

static aigw_group_t *group_of(aigw_tally_t *t, const aigw_record_t *rec,
                              aigw_day_t day)
{
    apr_uint32_t hash = set_parts(t, rec, day);
    apr_size_t at = hash & t->mask;

    for (; t->slots[at]; at = (at + 1) & t->mask) {
        if (t->slots[at]->hash == hash && has_parts(t, t->slots[at])) {
            return t->slots[at];
        }
    }
    if (t->n_groups >= t->limit) {
        return other_group(t);
    }
    t->slots[at] = add_group(t, hash);
    if (++t->n_groups * 4 > (t->mask + 1) * 3) {
        aigw_group_t *g = t->slots[at];

        grow(t);
        return g;
    }
    return t->slots[at];
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

    for (i = 0;
         u->known && i < sizeof(rows) / sizeof(rows[0]) && rc == AIGW_OK;
         i++) {
        if (aigw_usage_get(u, rows[i].from, &n)) {
            rc = add_count(g, rows[i].to, n);
        }
    }
    return rc;
}

static aigw_sum_t *find_sum(aigw_group_t *g, const char *currency)
{
    aigw_more_sums_t *m;

    if (g->sum.currency && strcmp(g->sum.currency, currency) == 0) {
        return &g->sum;
    }
    for (m = g->more; m; m = m->more) {
        if (strcmp(m->sum.currency, currency) == 0) {
            return &m->sum;
        }
    }
    return NULL;
}

const aigw_sum_t *aigw_group_sum(const aigw_group_t *g, const char *currency)
{
    return find_sum((aigw_group_t *)g, currency);
}

/* Names of currencies are those of the total, so that each is there once. */
static aigw_sum_t *add_sum(aigw_tally_t *t, aigw_group_t *g,
                           const char *currency)
{
    aigw_sum_t *known = g == t->total ? NULL : find_sum(t->total, currency);
    aigw_sum_t *sum = &g->sum;
    aigw_more_sums_t *m;

    if (!known && g != t->total) {
        known = add_sum(t, t->total, currency);
    }
    if (sum->currency) {
        m = apr_pcalloc(t->pool, sizeof(*m));
        m->more = g->more;
        g->more = m;
        sum = &m->sum;
    }
    sum->currency = known ? known->currency : apr_pstrdup(t->pool, currency);
    return sum;
}

static aigw_rc_t add_money(aigw_tally_t *t, aigw_group_t *g, aigw_money_t cost,
                           const char *currency)
{
    aigw_sum_t *sum = find_sum(g, currency);

    if (!sum) {
        sum = add_sum(t, g, currency);
    }
    return aigw_money_add(sum->amount, cost, &sum->amount);
}

/* A client that left is not the fault of anyone who is billed here. */
int aigw_tally_is_error(const aigw_record_t *rec)
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
    return rec->usage.source == AIGW_USAGE_NONE && rec->end != AIGW_END_REFUSED
           && rec->upstream_status < 400 && rec->reason != AIGW_REASON_RESOLVE
           && rec->reason != AIGW_REASON_CONNECT
           && rec->reason != AIGW_REASON_CONNECT_TIMEOUT
           && rec->reason != AIGW_REASON_TLS;
}

static void count_kind(aigw_group_t *g, const aigw_record_t *rec, int priced)
{
    aigw_usage_source_t source = rec->usage.source;

    g->n[AIGW_T_REQUESTS]++;
    g->n[AIGW_T_ERRORS] += aigw_tally_is_error(rec);
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
    if (!cost && rec->usage.source != AIGW_USAGE_NONE) {
        note_unpriced(t, rec->model ? rec->model : "(no model)");
    }
    return add_to(t, group_of(t, rec, day), rec, cost, currency);
}

/* -- reading off --------------------------------------------------------- */

static aigw_rc_t add_group_to(aigw_tally_t *t, aigw_group_t *to,
                              const aigw_group_t *g)
{
    const aigw_more_sums_t *m;
    aigw_rc_t rc = AIGW_OK;
    int i;

    for (i = 0; i < AIGW_T_MAX && rc == AIGW_OK; i++) {
        if (g->known & 1u << i) {
            rc = add_count(to, (aigw_tally_field_t)i, g->n[i]);
        }
    }
    if (rc == AIGW_OK && g->sum.currency) {
        rc = add_money(t, to, g->sum.amount, g->sum.currency);
    }
    for (m = g->more; m && rc == AIGW_OK; m = m->more) {
        rc = add_money(t, to, m->sum.amount, m->sum.currency);
    }
    return rc;
}

/* To the total there are sums of 0 already, one a currency. */
aigw_rc_t aigw_tally_close(aigw_tally_t *t)
{
    aigw_rc_t rc = AIGW_OK;
    apr_size_t i;

    for (i = 0; i <= t->mask && rc == AIGW_OK; i++) {
        if (t->slots[i]) {
            rc = add_group_to(t, t->total, t->slots[i]);
        }
    }
    if (rc == AIGW_OK && t->other) {
        rc = add_group_to(t, t->total, t->other);
    }
    return rc;
}

apr_uint64_t aigw_tally_overflow(const aigw_tally_t *t)
{
    return t->other ? t->other->n[AIGW_T_REQUESTS] : 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **aigw_tally_currencies(const aigw_tally_t *t, int *n,
                                   apr_pool_t *pool)
{
    const aigw_more_sums_t *m;
    const char **all;
    int i = 1;

    for (m = t->total->more; m; m = m->more) {
        i++;
    }
    all = apr_palloc(pool, sizeof(*all) * (apr_size_t)i);
    *n = 0;
    if (t->total->sum.currency) {
        all[(*n)++] = t->total->sum.currency;
    }
    for (m = t->total->more; m; m = m->more) {
        all[(*n)++] = m->sum.currency;
    }
    qsort(all, (size_t)*n, sizeof(*all), by_text);
    return all;
}

/* qsort() gives its comparison no context: the keys of all groups are as
 * many. */
static int compared_keys;

static int by_keys(const void *a, const void *b)
{
    const aigw_group_t *x = *(aigw_group_t *const *)a;
    const aigw_group_t *y = *(aigw_group_t *const *)b;
    int i, order = 0;

    for (i = 0; i < compared_keys && order == 0; i++) {
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
    apr_size_t i;

    *n = 0;
    all = apr_palloc(t->pool, sizeof(*all) * (t->n_groups + 2));
    for (i = 0; i <= t->mask; i++) {
        if (t->slots[i]) {
            all[(*n)++] = t->slots[i];
        }
    }
    compared_keys = t->n_by;
    qsort(all, (size_t)*n, sizeof(*all), by_keys);
    if (t->other) {
        all[(*n)++] = t->other;
    }
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
