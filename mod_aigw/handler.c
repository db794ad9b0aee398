/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spine: identify, admit, read the body, choose, start.  Whatever can be
 * refused from the head alone is refused before the body is read.  Each
 * station returns a reason; the first one that is not NONE ends the request
 * with an error body in the caller's dialect, and every request that came
 * this far leaves exactly one usage record (account/settle.c).
 */
#include <stdlib.h>

#include <apr_atomic.h>

#include "aigw.h"
#include "account/settle.h"
#include "relay/child.h"
#include "relay/downstream.h"
#include "relay/exchange.h"
#include "relay/handback.h"
#include "relay/loop.h"
#include "relay/sync.h"
#include "route/choose.h"
#include "upstream/request.h"
#include "upstream/upconn.h"
#include "body.h"
#include "core/jsontext.h"
#include "core/multipart.h"

/* What this module knows of a request. r->pool. */
typedef struct {
    unsigned identified:1;
    aigw_reason_t why;       /* of aigw_identify() */
    aigw_identity_t who;
    aigw_exchange_t *x;      /* NULL: it has not come to the handler */
} known_t;

static known_t *known(request_rec *r)
{
    known_t *k = ap_get_module_config(r->request_config, &aigw_module);

    if (k == NULL) {
        k = apr_pcalloc(r->pool, sizeof(*k));
        ap_set_module_config(r->request_config, &aigw_module, k);
    }
    return k;
}

aigw_exchange_t *aigw_exchange_of(request_rec *r)
{
    for (; r; r = r->next) {
        const known_t *k = ap_get_module_config(r->request_config,
                                                &aigw_module);
        if (k && k->x) {
            return k->x;
        }
    }
    return NULL;
}

/* Before any module may refuse or redirect: whatever becomes of the request,
 * its credentials are in no log and in no Location field. */
static const known_t *identified(request_rec *r)
{
    known_t *k = known(r);

    if (!k->identified) {
        k->identified = 1;
        k->why = aigw_identify(r, aigw_config_keys(r), r->request_time,
                               &k->who);
    }
    return k;
}

/* The gateway's URL space is its own: no file and no .htaccess of a document
 * root is looked at, and no rewrite rule takes a request away. */
int aigw_translate(request_rec *r)
{
    if (aigw_config_dir(r)->engine != 1) {
        return DECLINED;
    }
    identified(r);
    r->filename = apr_pstrcat(r->pool, "aigw:", r->uri, NULL);
    return OK;
}

/* -- enter and leave ------------------------------------------------------ */

static void leave_upstream(aigw_exchange_t *x)
{
    if (x->counted_up) {
        apr_atomic_dec32(&x->upstream->rt->active);
        x->counted_up = 0;
    }
}

static apr_status_t exchange_ends(void *data)
{
    aigw_exchange_t *x = data;

    aigw_settle(x); /* backstop: log_transaction came first, as a rule */
    aigw_child_delist(x);
    if (x->counted) {
        apr_atomic_dec32(&aigw_child()->streams);
    }
    leave_upstream(x);
    aigw_request_free(x);
    free(x->addrs);
    aigw_buffer_free(&x->head);
    aigw_buffer_free(&x->held);
    free(x);
    return APR_SUCCESS;
}

static void begin_record(aigw_exchange_t *x)
{
    request_rec *r = x->r;
    aigw_record_t *rec = &x->rec;

    aigw_record_init(rec);
    rec->ts = r->request_time;
    rec->id = x->id;
    rec->host = r->server->server_hostname;
    rec->client = r->useragent_ip;
    rec->own_us = rec->bytes_in = rec->bytes_out = 0;
}

/* httpd's byte ranges are for files: part of an answer would look like all
 * of it to the meter, and cost as much. */
static void ignore_ranges(request_rec *r)
{
    apr_table_unset(r->headers_in, "Range");
    apr_table_unset(r->headers_in, "Request-Range");
    apr_table_unset(r->headers_in, "If-Range");
}

static aigw_exchange_t *enter(request_rec *r)
{
    aigw_exchange_t *x = calloc(1, sizeof(*x));

    if (x == NULL) {
        return NULL;
    }
    x->r = r;
    x->c = r->connection;
    x->conn = aigw_handback_conn(x->c);
    x->sconf = aigw_config_server(r->server);
    x->dconf = aigw_config_dir(r);
    x->dialect = &aigw_dialect_openai;
    x->entered = apr_time_now();
    x->timer.index = -1;
    x->bb = apr_brigade_create(r->pool, x->c->bucket_alloc);
    aigw_child_new_id(x->id);
    begin_record(x);
    ignore_ranges(r);
    aigw_meter_init(&x->meter, AIGW_METER_OFF, x->dialect, 0);
    known(r)->x = x;
    aigw_child_enlist(x);
    apr_pool_cleanup_register(r->pool, x, exchange_ends,
                              apr_pool_cleanup_null);
    return x;
}

/* -- the stations --------------------------------------------------------- */

static aigw_reason_t identify(aigw_exchange_t *x)
{
    const known_t *k;

    if (x->dconf->engine != 1 || x->dconf->prefix == NULL) {
        aigw_rlog(x->r, x->id, AIGWNO(0302), APLOG_INFO, 0,
                  "SetHandler aigw where AIGWEngine is not On: %s",
                  ap_escape_logitem(x->r->pool, x->r->uri));
        return AIGW_REASON_NOT_FOUND; /* SetHandler alone opens nothing */
    }
    k = identified(x->r);
    x->who = k->who;
    x->rec.tenant = x->who.tenant;
    x->rec.key = x->who.key_id;
    return k->why;
}

/* What is called, by the path below the Location: known before the caller is,
 * so that a refusal is in the caller's language. */
static void match_endpoint(aigw_exchange_t *x)
{
    const char *prefix = x->dconf->prefix;
    apr_size_t n = prefix ? strlen(prefix) : 0;

    if (prefix && strncmp(x->r->uri, prefix, n) == 0
        && aigw_endpoint_match(x->r->uri + n, x->r->args, &x->match)
               == AIGW_OK) {
        x->endpoint = x->match.endpoint;
        x->rec.api = aigw_api_name(x->endpoint->api);
    }
    if (x->match.dialect) {
        x->dialect = x->match.dialect;
    }
}

static aigw_reason_t check_endpoint(aigw_exchange_t *x)
{
    if (x->endpoint == NULL) {
        return AIGW_REASON_NOT_FOUND;
    }
    if (strcmp(x->r->method, x->endpoint->method) != 0) {
        apr_table_setn(x->r->headers_out, "Allow", x->endpoint->method);
        return AIGW_REASON_METHOD;
    }
    return AIGW_REASON_NONE;
}

static aigw_reason_t check_head(aigw_exchange_t *x)
{
    const char *coding = apr_table_get(x->r->headers_in, "Content-Encoding");

    if (coding && *coding && strcasecmp(coding, "identity") != 0) {
        return AIGW_REASON_ENCODED_BODY;
    }
    return aigw_body_check(x);
}

/* Streams must never take the last connections from the web sites. */
static aigw_reason_t admit(aigw_exchange_t *x)
{
    aigw_child_t *ch = aigw_child();

    x->counted = 1;
    if ((int)apr_atomic_inc32(&ch->streams) >= ch->max_streams
        || aigw_child_memory_full()) {
        return AIGW_REASON_OVERLOADED;
    }
    return AIGW_REASON_NONE;
}

static aigw_reason_t scan_body(aigw_exchange_t *x)
{
    aigw_reqbody_t *rb = apr_pcalloc(x->r->pool, sizeof(*rb));
    aigw_body_fault_t fault =
        aigw_reqbody_read(&x->match,
                          apr_table_get(x->r->headers_in, "Content-Type"),
                          x->body.p ? x->body.p : "", x->body.n, rb);

    x->req = rb;
    if (rb->model[0]) {
        x->rec.model = rb->model;
    }
    if (fault == AIGW_BODY_OK) {
        x->rec.stream = rb->stream || x->endpoint->streams;
        return AIGW_REASON_NONE;
    }
    return fault == AIGW_BODY_DUPLICATE  ? AIGW_REASON_DUPLICATE_KEY
           : fault == AIGW_BODY_NO_MODEL ? AIGW_REASON_NO_MODEL
           : fault == AIGW_BODY_NOT_JSON || fault == AIGW_BODY_TOO_DEEP
           ? AIGW_REASON_NOT_JSON
           : AIGW_REASON_BAD_FIELD;
}

/* In a form the model's name stands bare; in a path it is no edit. */
static aigw_slice_t renamed(aigw_exchange_t *x, const char *remote)
{
    aigw_slice_t none = { NULL, 0 };

    if (remote == NULL || x->req->model_len == 0
        || strcmp(remote, x->req->model) == 0) {
        return none;
    }
    if (x->endpoint->model == AIGW_MODEL_FORM
        && aigw_multipart_is(apr_table_get(x->r->headers_in,
                                           "Content-Type"))) {
        return aigw_slice(remote, strlen(remote));
    }
    remote = aigw_jsontext(x->r->pool, remote);
    return aigw_slice(remote, strlen(remote));
}

static aigw_reason_t build(aigw_exchange_t *x, const char *remote)
{
    aigw_edit_t edits[AIGW_REQBODY_EDITS];
    char target[AIGW_TARGET_MAX];
    int ask = x->endpoint->ask_usage && x->upstream->ask_usage;
    int n;

    if (aigw_endpoint_target(&x->match, remote, target) == 0) {
        return AIGW_REASON_BAD_FIELD;
    }
    x->target = apr_pstrdup(x->r->pool, target);
    x->withhold = ask && x->req->stream && x->req->include_usage != 1;
    n = aigw_reqbody_edits(x->req, ask, renamed(x, remote), edits);
    return aigw_request_build(x, edits, n) == AIGW_OK
           ? AIGW_REASON_NONE : AIGW_REASON_INTERNAL;
}

/* Take a place at the upstream (max=). */
static int enter_upstream(aigw_exchange_t *x, aigw_upstream_t *up)
{
    leave_upstream(x);
    x->upstream = up;
    x->rec.upstream = up->name;
    x->key_warned = &up->rt->key_warned;
    x->counted_up = 1;
    return apr_atomic_inc32(&up->rt->active) < (apr_uint32_t)up->max
           || up->max == 0;
}

/* The next candidate that has a place for this request. */
static aigw_reason_t pick(aigw_exchange_t *x, int retry, apr_time_t now)
{
    const aigw_candidate_t *cand;
    int full = 0;

    while ((cand = aigw_choose_next(x->row, x->dialect, &x->tried, retry,
                                    now))) {
        if (enter_upstream(x, cand->upstream)) {
            return build(x, cand->remote);
        }
        full = 1;
    }
    return full ? AIGW_REASON_UPSTREAM_FULL : AIGW_REASON_MODEL_UNKNOWN;
}

static int known_address(aigw_exchange_t *x)
{
    if (x->addrs == NULL) {
        x->addrs = malloc(sizeof(*x->addrs));
    }
    return x->addrs
           && aigw_resolver_peek(aigw_child()->resolver,
                                 x->upstream->rt->resolver_slot, x->addrs)
              == AIGW_OK;
}

/* See aigw.h. Names that are not known yet are not waited for. */
static aigw_rc_t next_candidate(aigw_exchange_t *x, apr_time_t now)
{
    aigw_retries_t *retries = &aigw_child()->retries;
    aigw_upstream_t *failed = x->upstream;

    if (!aigw_retries_take(retries)) {
        return AIGW_REFUSED;
    }
    while (pick(x, 1, now) == AIGW_REASON_NONE) {
        if (known_address(x)) {
            return AIGW_OK;
        }
    }
    aigw_retries_return(retries);
    enter_upstream(x, failed); /* the record names the one that was asked */
    return AIGW_REFUSED;
}

static aigw_reason_t choose(aigw_exchange_t *x)
{
    x->row = aigw_choose(x->sconf, x->req->model);
    if (x->row == NULL) {
        return AIGW_REASON_MODEL_UNKNOWN;
    }
    x->next = next_candidate;
    aigw_retries_call(&aigw_child()->retries);
    return pick(x, 0, x->entered);
}

/* A name that can't be resolved is a failed candidate like any other. */
static aigw_reason_t resolve(aigw_exchange_t *x)
{
    const char *why = NULL, *failed;

    x->addrs = malloc(sizeof(*x->addrs));
    if (x->addrs == NULL) {
        return AIGW_REASON_INTERNAL;
    }
    if (aigw_resolver_get(aigw_child()->resolver,
                          x->upstream->rt->resolver_slot, x->addrs, &why)
        == AIGW_OK) {
        return AIGW_REASON_NONE;
    }
    failed = x->upstream->name;
    why = apr_pstrcat(x->r->pool, x->upstream->host, ": ", why, NULL);
    aigw_health_fail(x->upstream->health, 0, apr_time_now());
    if (x->next(x, apr_time_now()) == AIGW_OK) {
        aigw_exchange_passed_over(x, failed, why);
        return AIGW_REASON_NONE;
    }
    x->why = why;
    return AIGW_REASON_RESOLVE;
}

/* All that is decided before an upstream hears of the request. */
static aigw_reason_t prepare(aigw_exchange_t *x)
{
    aigw_reason_t why;

    match_endpoint(x);
    if ((why = identify(x)) != AIGW_REASON_NONE
        || (why = check_endpoint(x)) != AIGW_REASON_NONE
        || x->endpoint->local
        || (why = check_head(x)) != AIGW_REASON_NONE
        || (why = admit(x)) != AIGW_REASON_NONE
        || (why = aigw_body_read(x)) != AIGW_REASON_NONE
        || (why = scan_body(x)) != AIGW_REASON_NONE
        || (why = choose(x)) != AIGW_REASON_NONE
        || (why = resolve(x)) != AIGW_REASON_NONE) {
        return why;
    }
    return AIGW_REASON_NONE;
}

/* -- start ---------------------------------------------------------------- */

/* Once a filter and child: the admin should know why streams hold workers. */
static void warn_foreign(aigw_exchange_t *x, const char *filter)
{
    if (apr_atomic_inc32(&aigw_child()->sync_forced) == 0) {
        aigw_rlog(x->r, x->id, AIGWNO(0301), APLOG_WARNING, 0,
                  "the output filter %s is not known to be harmless on the "
                  "relay thread: requests that pass it hold a worker each",
                  filter);
    }
}

static int start(aigw_exchange_t *x)
{
    const char *filter;

    if (!aigw_handback_possible(x->r, &filter)) {
        if (filter) {
            warn_foreign(x, filter);
        }
        return aigw_sync_drive(x);
    }
    if (x->c->aborted) {
        x->rec.end = AIGW_END_CLIENT_ABORT;
        x->rec.reason = AIGW_REASON_CLIENT_GONE;
        return OK;
    }
    x->driver = &aigw_relay_driver;
    x->must_flush = aigw_downstream_keeps(x);
    x->conn->x = x;
    return SUSPENDED;
}

int aigw_handler(request_rec *r)
{
    aigw_exchange_t *x;
    aigw_reason_t why;

    if (strcmp(r->handler, "aigw") != 0) {
        return DECLINED;
    }
    if (aigw_child() == NULL) {
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    x = enter(r);
    if (x == NULL) {
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    why = prepare(x);
    x->rec.own_us = apr_time_now() - x->entered - x->body_wait;
    if (why != AIGW_REASON_NONE) {
        return aigw_refuse(x, why, NULL);
    }
    return x->endpoint->local ? aigw_local_answer(x) : start(x);
}
