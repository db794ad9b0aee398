/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See exchange.h.  Reads are edge-driven: up_readable stays set until a read
 * said EAGAIN or came back short, so a paced event costs one read and no
 * failed second one.  At most READS_A_TURN buffers are taken in one call, so
 * that one fast upstream cannot starve the other streams of the thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "exchange.h"
#include "downstream.h"
#include "../upstream/upconn.h"
#include "../upstream/request.h"

#include <apr_date.h>

#define READS_A_TURN   4
/* An answer that begins with no content is held back this far, so that an
 * error that comes first can become a status or another try. */
#define HOLD_TIME      apr_time_from_sec(1)
#define HOLD_EVENTS    8
#define HOLD_BYTES     4096
#define MAX_1XX        8
#define MAX_HEAD_BYTES (64 * 1024)

/* What one step of the machine came to. */
typedef enum {
    STEP_ON,   /* look at the state again */
    STEP_RETRY, /* the same, with another upstream */
    STEP_WAIT, /* nothing more goes now */
    STEP_ENDED
} step_t;

static void set_deadline(aigw_exchange_t *x, apr_time_t at)
{
    x->deadline = at < x->total_at ? at : x->total_at;
}

static void enter(aigw_exchange_t *x, aigw_xstate_t state)
{
    ap_log_rerror(APLOG_MARK, APLOG_TRACE3, 0, x->r, "[%s] state %d -> %d",
                  x->id, (int)x->state, (int)state);
    x->state = state;
}

static void drop_upstream(aigw_exchange_t *x)
{
    if (x->up) {
        x->driver->drop(x, x->up);
        x->up = NULL;
    }
}

static void forget_buffers(aigw_exchange_t *x)
{
    free(x->addrs);
    x->addrs = NULL;
    aigw_buffer_free(&x->head);
    x->head_scanned = 0;
}

/* -- ends ----------------------------------------------------------------- */

static void note_end(aigw_exchange_t *x, aigw_end_t end, aigw_reason_t why)
{
    if (x->rec.end == AIGW_END_NONE) {
        x->rec.end = end;
        x->rec.reason = why;
    }
}

static int ok_status(const aigw_exchange_t *x)
{
    return x->rec.upstream_status >= 200 && x->rec.upstream_status < 300;
}

static step_t ended(aigw_exchange_t *x)
{
    aigw_request_free(x);
    forget_buffers(x);
    enter(x, AIGW_X_ENDED);
    return STEP_ENDED;
}

/* Every way out passes here: the upstream is let go, what the meter still
 * holds is decided, and the client gets its last bytes. */
static step_t end_exchange(aigw_exchange_t *x, int end_of_body)
{
    aigw_meter_finish(&x->meter, end_of_body > 0, &aigw_downstream_sink, x);
    drop_upstream(x);
    if (!x->gone && aigw_downstream_push(x, end_of_body) != AIGW_OK) {
        x->gone = 1;
    }
    aigw_buffer_free(&x->held);
    x->want = 0;
    return ended(x);
}

/* AIGWDrain: the final usage is worth reading on for, within its caps. */
static int may_drain(const aigw_exchange_t *x)
{
    return x->sconf->drain_time > 0 && x->state == AIGW_X_BODY
           && x->meter.kind == AIGW_METER_SSE && ok_status(x)
           && !x->draining;
}

static step_t client_gone(aigw_exchange_t *x)
{
    x->gone = 1;
    x->c->aborted = 1;
    x->blocked = 0;
    note_end(x, AIGW_END_CLIENT_ABORT, AIGW_REASON_CLIENT_GONE);
    if (!may_drain(x)) {
        return end_exchange(x, -1);
    }
    x->draining = 1;
    x->drain_left = x->sconf->drain_bytes;
    x->rec.flags |= AIGW_FLAG_DRAINED;
    set_deadline(x, apr_time_now() + x->sconf->drain_time);
    x->total_at = x->deadline;
    apr_brigade_cleanup(x->bb);
    return STEP_ON;
}

/* -- another try ---------------------------------------------------------- */

static void begin_attempt(aigw_exchange_t *x, apr_time_t now);

/* Nothing of the failed answer may show. */
static void forget_answer(aigw_exchange_t *x)
{
    aigw_meter_init(&x->meter, AIGW_METER_OFF, x->dialect, 0);
    aigw_downstream_forget(x);
    aigw_buffer_free(&x->held);
    aigw_buffer_free(&x->head);
    x->head_scanned = 0;
    x->rec.upstream_status = 0;
    x->rec.upstream_id = NULL;
    x->rec.flags &= ~(AIGW_FLAG_ENCODED | AIGW_FLAG_REUSED);
    x->answered = x->reused = x->replaced = x->held_back = 0;
    x->n_1xx = 0;
    x->addr_at = 0;
}

void aigw_exchange_passed_over(aigw_exchange_t *x, const char *upstream,
                               const char *why)
{
    x->passed_over = apr_pstrcat(x->r->pool,
                                 x->passed_over ? x->passed_over : "",
                                 x->passed_over ? ", " : "", upstream, ": ",
                                 why, NULL);
}

/* Before the commit point another candidate may do better.
 * @return 1: it is being tried */
static int try_next(aigw_exchange_t *x, const char *why, apr_time_t now)
{
    const char *failed = x->upstream->name;

    if (x->committed || x->gone || now >= x->total_at
        || x->next(x, now) != AIGW_OK) {
        return 0;
    }
    aigw_exchange_passed_over(x, failed, why);
    drop_upstream(x);
    forget_answer(x);
    begin_attempt(x, now);
    return 1;
}

/* The upstream failed.  Before the first byte another one is tried, or the
 * client gets an error of ours; after it, a visible truncation and never a
 * clean end. */
static step_t fail(aigw_exchange_t *x, aigw_end_t end, aigw_reason_t why,
                   const char *detail)
{
    apr_time_t now = apr_time_now();

    if (aigw_reason_retry(why) && !x->committed) {
        aigw_health_fail(x->upstream->health, 0, now);
        if (try_next(x, detail ? detail : aigw_reason_info(why)->word,
                     now)) {
            return STEP_RETRY;
        }
    }
    /* Logged by the worker that settles: a piped error log that nobody
     * reads must not hold the relay thread. */
    x->why = apr_pstrdup(x->r->pool, detail ? detail : "");
    note_end(x, end, why);
    if (x->committed || x->gone) {
        return end_exchange(x, -1);
    }
    aigw_meter_finish(&x->meter, 0, &aigw_downstream_sink, x);
    aigw_downstream_forget(x);
    drop_upstream(x);
    aigw_refuse(x, why, NULL);
    return ended(x);
}

/* -- connect -------------------------------------------------------------- */

static void start_connect(aigw_exchange_t *x, apr_time_t now)
{
    x->up_readable = x->up_writable = x->up_eof = 0;
    set_deadline(x, now + x->upstream->connect);
    enter(x, AIGW_X_CONNECT);
}

/* Try the addresses in turn until one at least begins to connect. */
static step_t next_address(aigw_exchange_t *x)
{
    int err = 0;
    char why[120];

    while (x->addrs && x->addr_at < x->addrs->n) {
        aigw_upconn_t *uc;
        aigw_rc_t rc = aigw_upconn_open(x->upstream,
                                        &x->addrs->addr[x->addr_at++], &uc,
                                        &err);
        if (rc != AIGW_FAILED) {
            if (x->driver->open(x, uc) == AIGW_OK) {
                x->up = uc;
                return STEP_ON;
            }
            err = ENOMEM;
            aigw_upconn_close(uc);
        }
    }
    return fail(x, AIGW_END_ERROR, AIGW_REASON_CONNECT,
                err ? apr_strerror(err, why, sizeof(why)) : NULL);
}

static step_t try_next_address(aigw_exchange_t *x, aigw_reason_t why)
{
    char buf[160];

    if (x->addrs && x->addr_at < x->addrs->n) {
        drop_upstream(x);
        x->up_readable = x->up_writable = x->up_eof = 0;
        enter(x, AIGW_X_CONNECT);
        return next_address(x);
    }
    return fail(x, AIGW_END_ERROR, why,
                aigw_upconn_why(x->up, buf, sizeof(buf)));
}

static step_t step_connect(aigw_exchange_t *x)
{
    aigw_rc_t rc;

    if (x->up == NULL) {
        return next_address(x);
    }
    if (!x->up_writable) {
        x->want = AIGW_WANT_WRITE;
        return STEP_WAIT;
    }
    rc = aigw_upconn_connected(x->up);
    if (rc == AIGW_AGAIN) {
        x->up_writable = 0;
        x->want = AIGW_WANT_WRITE;
        return STEP_WAIT;
    }
    if (rc != AIGW_OK) {
        return try_next_address(x, AIGW_REASON_CONNECT);
    }
    x->tunnel_off = 0;
    enter(x, !x->upstream->tls ? AIGW_X_SEND
             : x->upstream->proxy_host ? AIGW_X_PROXY : AIGW_X_TLS);
    return STEP_ON;
}

/* An I/O call said AGAIN: that direction is used up. */
static step_t wait_for(aigw_exchange_t *x, int want)
{
    if (want & AIGW_WANT_READ) {
        x->up_readable = 0;
    }
    if (want & AIGW_WANT_WRITE) {
        x->up_writable = 0;
    }
    x->want = want;
    return STEP_WAIT;
}

/* Only a head that comes in pieces is copied. */
static aigw_rc_t keep_head(aigw_exchange_t *x, const char *p, apr_size_t n)
{
    if (x->head.n + n > MAX_HEAD_BYTES) {
        return AIGW_TOO_BIG;
    }
    return aigw_buffer_add(&x->head, p, n);
}

/* @return STEP_ON when the whole CONNECT is out */
static step_t ask_tunnel(aigw_exchange_t *x)
{
    const char *to = x->upstream->authority;
    char text[1024];
    aigw_slice_t ask = { text, 0 };

    ask.n = (apr_size_t)apr_snprintf(text, sizeof(text),
                                     "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
                                     to, to);
    while (x->tunnel_off < ask.n) {
        apr_size_t n = 0;
        int want = 0;
        aigw_rc_t rc = aigw_upconn_write(x->up, &ask, 1, x->tunnel_off, &n,
                                         &want);
        if (rc == AIGW_AGAIN) {
            return wait_for(x, want);
        }
        if (rc != AIGW_OK) {
            return try_next_address(x, AIGW_REASON_CONNECT);
        }
        x->tunnel_off += n;
    }
    return STEP_ON;
}

/* The proxy's head; no byte behind it can be the upstream's, as a TLS server
 * does not speak first. @return AIGW_OK, AIGW_AGAIN or AIGW_FAILED */
static aigw_rc_t tunnel_answer(aigw_exchange_t *x, const char *p,
                               apr_size_t n)
{
    aigw_http1_head_t head;
    aigw_rc_t rc = aigw_http1_head(p, n, &x->head_scanned, &head);

    if (rc == AIGW_AGAIN) {
        return AIGW_AGAIN;
    }
    x->head_scanned = 0;
    if (rc != AIGW_OK || head.size != n) {
        x->up->error = EPROTO;
        return AIGW_FAILED;
    }
    if (head.status < 200 || head.status > 299) {
        x->up->error = EACCES;
        return AIGW_FAILED;
    }
    return AIGW_OK;
}

static step_t step_proxy(aigw_exchange_t *x, char *buf, apr_size_t size)
{
    step_t step = ask_tunnel(x);
    apr_size_t n = 0;
    int want = AIGW_WANT_READ;
    aigw_rc_t rc;

    if (step != STEP_ON) {
        return step;
    }
    rc = aigw_upconn_read(x->up, buf, size, &n, &want);
    if (rc == AIGW_AGAIN) {
        return wait_for(x, want);
    }
    if (rc == AIGW_OK) {
        rc = keep_head(x, buf, n);
    }
    if (rc == AIGW_OK) {
        rc = tunnel_answer(x, x->head.p, x->head.n);
    }
    if (rc == AIGW_AGAIN) {
        return STEP_ON;
    }
    aigw_buffer_free(&x->head);
    x->head_scanned = 0;
    if (rc != AIGW_OK) {
        return try_next_address(x, AIGW_REASON_CONNECT);
    }
    enter(x, AIGW_X_TLS);
    return STEP_ON;
}

static step_t step_tls(aigw_exchange_t *x)
{
    int want = 0;
    aigw_rc_t rc = aigw_upconn_handshake(x->up, &want);

    if (rc == AIGW_AGAIN) {
        return wait_for(x, want);
    }
    if (rc != AIGW_OK) {
        return try_next_address(x, AIGW_REASON_TLS);
    }
    enter(x, AIGW_X_SEND);
    return STEP_ON;
}

/* A pooled connection died before it answered: that was the pool's fault,
 * not the request's, so one fresh connection is tried. */
static step_t replace_or_fail(aigw_exchange_t *x, aigw_reason_t why,
                              const char *detail, apr_time_t now)
{
    if (!x->reused || x->answered || x->replaced) {
        return fail(x, AIGW_END_ERROR, why, detail);
    }
    x->replaced = 1;
    x->reused = 0;
    x->rec.flags &= ~AIGW_FLAG_REUSED;
    drop_upstream(x);
    x->out_at = 0;
    x->out_off = 0;
    start_connect(x, now);
    return STEP_ON;
}

/* -- send ----------------------------------------------------------------- */

static void sent(aigw_exchange_t *x, apr_size_t n)
{
    while (n) {
        apr_size_t left = x->out[x->out_at].n - x->out_off;

        if (n < left) {
            x->out_off += n;
            return;
        }
        n -= left;
        x->out_at++;
        x->out_off = 0;
    }
}

static step_t step_send(aigw_exchange_t *x, apr_time_t now)
{
    while (x->out_at < x->out_n) {
        apr_size_t n = 0;
        int want = 0;
        aigw_rc_t rc = aigw_upconn_write(x->up, x->out + x->out_at,
                                         x->out_n - x->out_at, x->out_off,
                                         &n, &want);
        if (rc == AIGW_AGAIN) {
            /* An upstream may answer (413, say) before it has read all. */
            if (x->up_readable && !x->up->tls) {
                break;
            }
            wait_for(x, want);
            x->want |= AIGW_WANT_READ;
            return STEP_WAIT;
        }
        if (rc != AIGW_OK) {
            if (x->up_readable) {
                break; /* its last words may be waiting */
            }
            return replace_or_fail(x, AIGW_REASON_SEND, NULL, now);
        }
        sent(x, n);
        set_deadline(x, now + x->upstream->first);
    }
    set_deadline(x, now + x->upstream->first);
    enter(x, AIGW_X_HEAD);
    return STEP_ON;
}

/* -- head ----------------------------------------------------------------- */

static int is_media_type(aigw_slice_t value, const char *type)
{
    apr_size_t n = strlen(type);

    return value.p && value.n >= n && strncasecmp(value.p, type, n) == 0
           && (value.n == n || value.p[n] == ';' || value.p[n] == ' '
               || value.p[n] == '\t');
}

/* The parser is chosen by what came, not by what was asked. */
static aigw_meter_kind_t meter_kind(aigw_exchange_t *x,
                                    const aigw_http1_head_t *head)
{
    aigw_slice_t type = aigw_http1_field(head, "Content-Type");
    aigw_slice_t coding = aigw_http1_field(head, "Content-Encoding");

    if (coding.p && coding.n && !aigw_slice_is_nocase(coding, "identity")) {
        x->rec.flags |= AIGW_FLAG_ENCODED;
        return AIGW_METER_OFF;
    }
    if (is_media_type(type, "text/event-stream")) {
        return AIGW_METER_SSE;
    }
    return is_media_type(type, "application/json") ? AIGW_METER_JSON
                                                   : AIGW_METER_OFF;
}

/* A wait in the upstream's own words: Retry-After-Ms, else Retry-After in
 * seconds or as a date. 0: it said none. */
static apr_interval_time_t wait_hint(const aigw_http1_head_t *head,
                                     apr_time_t now)
{
    aigw_slice_t ms = aigw_http1_field(head, "Retry-After-Ms");
    aigw_slice_t s = ms.p ? ms : aigw_http1_field(head, "Retry-After");
    char text[40];
    apr_int64_t n;
    char *end;

    if (s.p == NULL || s.n == 0 || s.n >= sizeof(text)) {
        return 0;
    }
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    n = apr_strtoi64(text, &end, 10);
    if (end != text && (*end == '\0' || *end == '.') && n >= 0
        && n < 86400000) {
        return ms.p ? apr_time_from_msec(n) : apr_time_from_sec(n);
    }
    n = apr_date_parse_http(text);
    return n > now ? n - now : 0;
}

/* How the upstream is, by its status. @return 1 if another is to be asked */
static int retry_status(aigw_exchange_t *x, const aigw_http1_head_t *head,
                        apr_time_t now)
{
    aigw_health_t *health = x->upstream->health;
    aigw_slice_t word = aigw_http1_field(head, "X-Should-Retry");

    if (!aigw_reason_status_retry(head->status)) {
        aigw_health_good(health);
        return 0;
    }
    if (head->status == 429 || head->status >= 500) {
        aigw_health_fail(health, wait_hint(head, now), now);
    }
    return !aigw_slice_is_nocase(word, "false");
}

static step_t take_head(aigw_exchange_t *x, const aigw_http1_head_t *head,
                        apr_time_t now)
{
    aigw_meter_kind_t kind = meter_kind(x, head);

    if (retry_status(x, head, now)
        && try_next(x, apr_psprintf(x->r->pool, "status %d", head->status),
                    now)) {
        return STEP_RETRY;
    }
    aigw_meter_init(&x->meter, kind, x->upstream->dialect,
                    x->withhold && kind == AIGW_METER_SSE);
    aigw_http1_body_init(&x->frame, head);
    x->rec.upstream_status = head->status;
    x->keep_upstream = head->keep_alive && x->out_at == x->out_n;
    aigw_downstream_head(x, head);
    forget_buffers(x);
    x->hold_until = now + HOLD_TIME;
    enter(x, AIGW_X_BODY);
    return STEP_ON;
}

/* Parse as many heads as are there: 1xx ones are read over.
 * @return STEP_ON when the body begins at *p, STEP_WAIT when more is needed */
static step_t read_head(aigw_exchange_t *x, const char **p, const char *end,
                        apr_time_t now)
{
    for (;;) {
        aigw_http1_head_t head;
        aigw_rc_t rc = aigw_http1_head(*p, (apr_size_t)(end - *p),
                                       &x->head_scanned, &head);
        if (rc == AIGW_AGAIN) {
            return STEP_WAIT;
        }
        if (rc != AIGW_OK || head.status == 101
            || (head.status < 200 && ++x->n_1xx > MAX_1XX)) {
            return fail(x, AIGW_END_ERROR, AIGW_REASON_BAD_ANSWER,
                        "not a sound HTTP/1.1 answer");
        }
        *p += head.size;
        x->head_scanned = 0;
        if (head.status >= 200) {
            return take_head(x, &head, now);
        }
    }
}

static step_t step_body_bytes(aigw_exchange_t *x, const char *p,
                              const char *end, apr_time_t now);

static step_t head_too_large(aigw_exchange_t *x)
{
    return fail(x, AIGW_END_ERROR, AIGW_REASON_BAD_ANSWER,
                "the answer's head is too large");
}

/* The first bytes of an answer, or more of a head that was split: then the
 * part that was kept is what is parsed, and it lives until the body bytes
 * behind it have been handed down. */
static step_t head_bytes(aigw_exchange_t *x, const char *p, apr_size_t n,
                         apr_time_t now)
{
    const char *end = p + n;
    aigw_buffer_t split;
    step_t step;

    if (x->head.p) {
        if (keep_head(x, p, n) != AIGW_OK) {
            return head_too_large(x);
        }
        p = x->head.p;
        end = p + x->head.n;
    }
    split = x->head;
    memset(&x->head, 0, sizeof(x->head));
    step = read_head(x, &p, end, now);
    if (step == STEP_ON) {
        step = step_body_bytes(x, p, end, now);
    }
    else if (step == STEP_WAIT) { /* what is left may stand in split */
        step = keep_head(x, p, (apr_size_t)(end - p)) == AIGW_OK
               ? STEP_ON : head_too_large(x);
    }
    aigw_buffer_free(&split);
    return step;
}

/* -- body ----------------------------------------------------------------- */

/* The framing ended rightly: what does that mean? */
static step_t body_complete(aigw_exchange_t *x, apr_time_t now)
{
    if (x->up && x->keep_upstream) {
        x->driver->give(x, x->up, now);
        x->up = NULL;
    }
    aigw_meter_finish(&x->meter, 1, &aigw_downstream_sink, x);
    if (!ok_status(x)) {
        note_end(x, AIGW_END_ERROR, AIGW_REASON_UPSTREAM_STATUS);
    }
    else if (x->meter.seen.saw_error) {
        note_end(x, AIGW_END_ERROR, AIGW_REASON_UPSTREAM_ERROR);
    }
    else if (x->meter.kind == AIGW_METER_SSE && !x->meter.seen.saw_end
             && x->meter.seen.finish[0] == '\0') {
        x->why = "the answer lacks its end";
        note_end(x, AIGW_END_TRUNCATED, AIGW_REASON_TRUNCATED);
        /* Close-delimited bodies end alike in success and failure: what
         * lacks its end was cut, and the client must see that. */
        return end_exchange(x, x->frame.frame == AIGW_FRAME_CLOSE ? -1 : 1);
    }
    else {
        note_end(x, AIGW_END_COMPLETE, AIGW_REASON_NONE);
    }
    return end_exchange(x, 1);
}

/* Nothing but comments and the like so far? */
static int hold_back(const aigw_exchange_t *x, apr_time_t now)
{
    const aigw_meter_seen_t *seen = &x->meter.seen;

    return !x->committed && x->meter.kind == AIGW_METER_SSE && ok_status(x)
           && !seen->saw_content && now < x->hold_until
           && seen->events < HOLD_EVENTS && x->rec.bytes_out < HOLD_BYTES;
}

/* Keep what points into the read buffer. */
static step_t keep_brigade(aigw_exchange_t *x, apr_time_t now)
{
    apr_bucket *b;

    for (b = APR_BRIGADE_FIRST(x->bb); b != APR_BRIGADE_SENTINEL(x->bb);
         b = APR_BUCKET_NEXT(b)) {
        apr_bucket_setaside(b, x->r->pool);
    }
    x->held_back = 1;
    set_deadline(x, now + x->upstream->idle < x->hold_until
                    ? now + x->upstream->idle : x->hold_until);
    return STEP_ON;
}

static step_t push(aigw_exchange_t *x, apr_time_t now)
{
    if (x->draining) {
        return x->drain_left > 0 ? STEP_ON : end_exchange(x, -1);
    }
    if (hold_back(x, now)) {
        return keep_brigade(x, now);
    }
    x->held_back = 0;
    if (aigw_downstream_push(x, 0) != AIGW_OK) {
        return client_gone(x);
    }
    if (x->committed) {
        aigw_request_free(x); /* no retry after this point */
    }
    set_deadline(x, now + (x->blocked ? x->r->server->timeout
                                      : x->upstream->idle));
    return STEP_ON;
}

/* An error stands where the answer's first event should be: the client gets
 * it as a status, unless another upstream can do better. */
static step_t early_error(aigw_exchange_t *x, apr_time_t now)
{
    const char *word = apr_pstrdup(x->r->pool, x->meter.seen.error);

    if (aigw_reason_status_retry(aigw_reason_error_status(word))) {
        aigw_health_fail(x->upstream->health, 0, now);
        if (try_next(x, word, now)) {
            return STEP_RETRY;
        }
    }
    note_end(x, AIGW_END_ERROR, AIGW_REASON_UPSTREAM_ERROR);
    aigw_meter_finish(&x->meter, 0, &aigw_downstream_sink, x);
    aigw_downstream_forget(x);
    drop_upstream(x);
    aigw_refuse_upstream_error(x, word);
    return ended(x);
}

static step_t step_body_bytes(aigw_exchange_t *x, const char *p,
                              const char *end, apr_time_t now)
{
    aigw_slice_t run;
    aigw_rc_t rc;

    while ((rc = aigw_http1_body_next(&x->frame, &p, end, &run))
           == AIGW_OK) {
        aigw_meter_feed(&x->meter, run.p, run.n, &aigw_downstream_sink, x);
    }
    if (x->meter.seen.error_first && !x->committed && !x->gone
        && x->meter.kind == AIGW_METER_SSE && ok_status(x)
        && (rc != AIGW_AGAIN || aigw_meter_at_boundary(&x->meter))) {
        return early_error(x, now);
    }
    if (rc == AIGW_DONE) {
        if (p != end) {
            x->keep_upstream = 0; /* bytes that nobody asked for */
        }
        return body_complete(x, now);
    }
    if (rc != AIGW_AGAIN) {
        return fail(x, AIGW_END_TRUNCATED, AIGW_REASON_BAD_ANSWER,
                    "the answer's framing is broken");
    }
    return push(x, now);
}

static step_t upstream_eof(aigw_exchange_t *x, aigw_rc_t how, apr_time_t now)
{
    char buf[160];

    if (x->state != AIGW_X_BODY) {
        return replace_or_fail(x, x->answered ? AIGW_REASON_BAD_ANSWER
                                              : AIGW_REASON_TRUNCATED,
                               how == AIGW_FAILED
                               ? aigw_upconn_why(x->up, buf, sizeof(buf))
                               : "closed before an answer", now);
    }
    if (how == AIGW_DONE && aigw_http1_body_eof(&x->frame) == AIGW_DONE) {
        x->keep_upstream = 0;
        return body_complete(x, now);
    }
    return fail(x, AIGW_END_TRUNCATED, AIGW_REASON_TRUNCATED,
                "closed in mid-answer");
}

/* Nothing of the answer's head yet, and the request is not all out: an
 * interim answer does not end the sending. */
static step_t unsent(aigw_exchange_t *x)
{
    if (x->state == AIGW_X_HEAD && x->out_at < x->out_n) {
        enter(x, AIGW_X_SEND);
        return STEP_ON;
    }
    return STEP_WAIT;
}

static step_t step_read(aigw_exchange_t *x, char *buf, apr_size_t size,
                        apr_time_t now)
{
    apr_size_t n = 0;
    int want = AIGW_WANT_READ;
    aigw_rc_t rc;

    if (x->blocked) {
        return STEP_WAIT; /* the client lags: leave it in the kernel */
    }
    if (!x->up_readable) {
        x->want = AIGW_WANT_READ;
        return unsent(x);
    }
    rc = aigw_upconn_read(x->up, buf, size, &n, &want);
    if (rc == AIGW_AGAIN) {
        wait_for(x, want);
        return unsent(x);
    }
    if (rc != AIGW_OK) {
        return upstream_eof(x, rc, now);
    }
    x->answered = 1;
    x->last_read = now;
    if (n < size && !x->up->tls && !x->up_eof) {
        x->up_readable = 0; /* a short read emptied the socket */
    }
    return x->state == AIGW_X_HEAD ? head_bytes(x, buf, n, now)
                                   : step_body_bytes(x, buf, buf + n, now);
}

/* -- the machine ---------------------------------------------------------- */

static void begin_attempt(aigw_exchange_t *x, apr_time_t now)
{
    x->rec.tries++;
    x->out_at = 0;
    x->out_off = 0;
    x->up_readable = x->up_eof = 0;
    x->up = x->driver->take(x, now);
    if (x->up == NULL) {
        start_connect(x, now);
        return;
    }
    x->reused = 1;
    x->rec.flags |= AIGW_FLAG_REUSED;
    x->up_writable = 1;
    set_deadline(x, now + x->upstream->first);
    enter(x, AIGW_X_SEND);
}

void aigw_exchange_begin(aigw_exchange_t *x, apr_time_t now)
{
    x->total_at = now + x->upstream->total;
    begin_attempt(x, now);
}

aigw_rc_t aigw_exchange_run(aigw_exchange_t *x, char *buf, apr_size_t size,
                            apr_time_t now)
{
    int reads = 0;
    step_t step = STEP_ON;

    while (step == STEP_ON || step == STEP_RETRY) {
        switch (x->state) {
        case AIGW_X_CONNECT:
            step = step_connect(x);
            break;
        case AIGW_X_PROXY:
            step = step_proxy(x, buf, size);
            break;
        case AIGW_X_TLS:
            step = step_tls(x);
            break;
        case AIGW_X_SEND:
            step = step_send(x, now);
            break;
        case AIGW_X_HEAD:
        case AIGW_X_BODY:
            step = reads++ < READS_A_TURN ? step_read(x, buf, size, now)
                                          : STEP_WAIT;
            break;
        default:
            step = STEP_ENDED;
        }
    }
    return x->state == AIGW_X_ENDED ? AIGW_DONE : AIGW_AGAIN;
}

void aigw_exchange_timeout(aigw_exchange_t *x, apr_time_t now)
{
    if (x->draining) {
        end_exchange(x, -1);
    }
    else if (now >= x->total_at) {
        fail(x, AIGW_END_TIMEOUT, AIGW_REASON_TOTAL_TIMEOUT, NULL);
    }
    else if (x->held_back && now >= x->hold_until) {
        push(x, now);
    }
    else if (x->blocked) {
        client_gone(x); /* a reader that stood still for TimeOut */
    }
    else if (x->state <= AIGW_X_TLS) {
        fail(x, AIGW_END_TIMEOUT, AIGW_REASON_CONNECT_TIMEOUT, NULL);
    }
    else if (x->state == AIGW_X_BODY) {
        fail(x, AIGW_END_TIMEOUT, AIGW_REASON_IDLE_TIMEOUT, NULL);
    }
    else {
        fail(x, AIGW_END_TIMEOUT, AIGW_REASON_FIRST_TIMEOUT, NULL);
    }
}

void aigw_exchange_client_ready(aigw_exchange_t *x, apr_time_t now)
{
    if (x->state == AIGW_X_ENDED || !x->blocked) {
        return;
    }
    if (aigw_downstream_resume(x) != AIGW_OK) {
        client_gone(x);
    }
    else if (!x->blocked) {
        set_deadline(x, now + x->upstream->idle);
    }
}

void aigw_exchange_client_gone(aigw_exchange_t *x)
{
    if (x->state != AIGW_X_ENDED && !x->draining) {
        client_gone(x);
    }
}

void aigw_exchange_abandon(aigw_exchange_t *x)
{
    x->gone = 1;
    x->c->aborted = 1;
    end_exchange(x, -1);
}
