/* SPDX-License-Identifier: Apache-2.0 */
/* See settle.h. */
#include "settle.h"
#include "unpriced.h"
#include "usage_log.h"

static const char *or_null(const char *s)
{
    return s && *s ? s : NULL;
}

/* Words of the upstream that hold its own key are no words for a log. */
static const char *harmless(const aigw_exchange_t *x, const char *s)
{
    aigw_slice_t key = x->upstream->secret;

    return s && key.n && strstr(s, apr_pstrmemdup(x->r->pool, key.p, key.n))
           ? "withheld" : s;
}

/* What the meter saw. */
static void take_seen(aigw_exchange_t *x)
{
    const aigw_meter_seen_t *seen = &x->meter.seen;
    aigw_record_t *rec = &x->rec;

    if (rec->upstream_status == 0) {
        return; /* no answer: nothing was metered */
    }
    rec->usage = seen->usage;
    rec->served = harmless(x, or_null(seen->model));
    rec->finish = or_null(seen->finish);
    rec->tier = or_null(seen->tier);
    rec->cost_stated = or_null(seen->cost_stated);
    if (rec->error == NULL) {
        rec->error = harmless(x, or_null(seen->error));
    }
    rec->events = x->meter.kind == AIGW_METER_SSE ? (apr_int64_t)seen->events
                                                  : -1;
    rec->flags |= (seen->bad_json ? AIGW_FLAG_BAD_JSON : 0)
                  | (seen->bad_number ? AIGW_FLAG_BAD_NUMBER : 0)
                  | (seen->cache_outside ? AIGW_FLAG_CACHE_OUTSIDE : 0)
                  | (seen->odd_total ? AIGW_FLAG_ODD_TOTAL : 0)
                  | (seen->other_model ? AIGW_FLAG_OTHER_MODEL : 0)
                  | (x->withhold ? AIGW_FLAG_USAGE_HIDDEN : 0);
    if (x->meter.kind == AIGW_METER_SSE && rec->end == AIGW_END_COMPLETE
        && !seen->saw_end) {
        rec->flags |= AIGW_FLAG_NO_END;
    }
}

static void set_cost(aigw_exchange_t *x)
{
    const aigw_catalog_t *cat = aigw_config_main()->catalog;
    aigw_record_t *rec = &x->rec;
    const aigw_price_t *price;

    if (cat == NULL || rec->usage.known == 0) {
        return;
    }
    price = aigw_catalog_price(cat, rec->served, rec->model, rec->ts);
    if (price == NULL
        || aigw_price_cost(price, &rec->usage, &rec->cost) != AIGW_OK) {
        aigw_unpriced_warn(x, rec->served ? rec->served : rec->model);
        return;
    }
    rec->has_cost = 1;
    rec->currency = price->currency;
    rec->prices = aigw_catalog_version(cat);
}

/* One piece of memory a note; no search, as each name comes once. */
static void set_note(void *ctx, const char *name, const char *value)
{
    request_rec *r = ctx;
    apr_size_t n = strlen(name) + 1, v = strlen(value) + 1;
    char *key = apr_palloc(r->pool, 5 + n + v);

    memcpy(key, "aigw-", 5);
    memcpy(key + 5, name, n);
    memcpy(key + 5 + n, value, v);
    apr_table_addn(r->notes, key, key + 5 + n);
}

static void write_line(const aigw_exchange_t *x)
{
    char line[AIGW_RECORD_MAX];

    if (x->sconf->log) {
        aigw_usage_log_write(x->sconf->log, line,
                             aigw_record_write(&x->rec, line));
    }
}

/* A provider that refuses the host's key looks to a caller as if its own were
 * wrong. */
static void log_refused_key(const aigw_exchange_t *x)
{
    apr_time_t now = apr_time_now(), last;
    apr_time_t *warned = x->key_warned;

    if (warned == NULL || (x->rec.upstream_status != 401
                           && x->rec.upstream_status != 403)) {
        return;
    }
    last = __atomic_load_n(warned, __ATOMIC_RELAXED);
    if (last + apr_time_from_sec(60) > now
        || !__atomic_compare_exchange_n(warned, &last, now, 0,
                                        __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
        return;
    }
    aigw_rlog(x->r, x->id, AIGWNO(0403), APLOG_WARNING, 0,
              "upstream %s refuses its key: status %d; see its key= (the "
              "caller sees this status too)", x->upstream->name,
              x->rec.upstream_status);
}

/* An upstream's failure is the administrator's to know of; one that another
 * upstream made good is no warning. */
static void log_failure(const aigw_exchange_t *x)
{
    log_refused_key(x);
    if (x->passed_over) {
        aigw_rlog(x->r, x->id, AIGWNO(0402), APLOG_INFO, 0,
                  "tried before upstream %s: %s", x->upstream->name,
                  x->passed_over);
    }
    if (x->why && x->upstream) {
        aigw_rlog(x->r, x->id, AIGWNO(0401), APLOG_WARNING, 0,
                  "upstream %s: %s%s%s", x->upstream->name,
                  aigw_reason_info(x->rec.reason)->word, *x->why ? ": " : "",
                  x->why);
    }
}

void aigw_settle(aigw_exchange_t *x)
{
    if (x->settled) {
        return;
    }
    x->settled = 1;
    x->rec.total_us = apr_time_now() - x->rec.ts;
    if (x->rec.end == AIGW_END_NONE) {
        x->rec.end = AIGW_END_ERROR;
        x->rec.reason = AIGW_REASON_INTERNAL;
    }
    if (x->rec.end == AIGW_END_COMPLETE && (x->gone || x->c->aborted)) {
        x->rec.end = AIGW_END_CLIENT_ABORT; /* its last bytes went nowhere */
        x->rec.reason = AIGW_REASON_CLIENT_GONE;
    }
    take_seen(x);
    set_cost(x);
    log_failure(x);
    aigw_record_each(&x->rec, set_note, x->r);
    write_line(x);
}
