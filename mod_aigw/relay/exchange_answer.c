/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an upstream answers, and what is made of it.  Reads are edge-driven:
 * up_readable stays set until a read said EAGAIN or came back short, so a
 * paced event costs one read and no failed second one.
 */
#include "exchange_step.h"
#include "downstream.h"
#include "../upstream/request.h"

#include <apr_date.h>

/* An answer that begins with no content is held back this far, so that an
 * error that comes first can become a status or another try. */
#define HOLD_TIME apr_time_from_sec(1)
#define HOLD_EVENTS 8
#define HOLD_BYTES 4096
#define MAX_1XX 8

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
    if (is_media_type(type, "application/x-ndjson")) {
        return AIGW_METER_NDJSON;
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

static aigw_step_t take_head(aigw_exchange_t *x, const aigw_http1_head_t *head,
                             apr_time_t now)
{
    aigw_meter_kind_t kind = meter_kind(x, head);

    if (retry_status(x, head, now)
        && aigw_step_try_next(x,
                              apr_psprintf(x->r->pool, "status %d",
                                           head->status),
                              now)) {
        return AIGW_STEP_RETRY;
    }
    aigw_meter_init_for(&x->meter, kind, x->upstream->dialect, x->endpoint,
                        x->withhold && kind == AIGW_METER_SSE);
    aigw_http1_body_init(&x->frame, head);
    x->rec.upstream_status = head->status;
    x->keep_upstream = head->keep_alive && x->out_at == x->out_n;
    aigw_downstream_head(x, head);
    aigw_step_forget_buffers(x);
    x->hold_until = now + HOLD_TIME;
    aigw_step_enter(x, AIGW_X_BODY);
    return AIGW_STEP_ON;
}

/* Parse as many heads as are there: 1xx ones are read over.
 * @return AIGW_STEP_ON when the body begins at *p, AIGW_STEP_WAIT when more
 * is needed */
static aigw_step_t read_head(aigw_exchange_t *x, const char **p,
                             const char *end, apr_time_t now)
{
    for (;;) {
        aigw_http1_head_t head;
        aigw_rc_t rc = aigw_http1_head(*p, (apr_size_t)(end - *p),
                                       &x->head_scanned, &head);
        if (rc == AIGW_AGAIN) {
            return AIGW_STEP_WAIT;
        }
        if (rc != AIGW_OK || head.status == 101
            || (head.status < 200 && ++x->n_1xx > MAX_1XX)) {
            return aigw_step_fail(x, AIGW_END_ERROR, AIGW_REASON_BAD_ANSWER,
                                  "not a sound HTTP/1.1 answer");
        }
        *p += head.size;
        x->head_scanned = 0;
        if (head.status >= 200) {
            return take_head(x, &head, now);
        }
    }
}

static aigw_step_t step_body_bytes(aigw_exchange_t *x, const char *p,
                                   const char *end, apr_time_t now);

static aigw_step_t head_too_large(aigw_exchange_t *x)
{
    return aigw_step_fail(x, AIGW_END_ERROR, AIGW_REASON_BAD_ANSWER,
                          "the answer's head is too large");
}

/* The first bytes of an answer, or more of a head that was split: then the
 * part that was kept is what is parsed, and it lives until the body bytes
 * behind it have been handed down. */
static aigw_step_t head_bytes(aigw_exchange_t *x, const char *p, apr_size_t n,
                              apr_time_t now)
{
    const char *end = p + n;
    aigw_buffer_t split;
    aigw_step_t step;

    if (x->head.p) {
        if (aigw_step_keep_head(x, p, n) != AIGW_OK) {
            return head_too_large(x);
        }
        p = x->head.p;
        end = p + x->head.n;
    }
    split = x->head;
    memset(&x->head, 0, sizeof(x->head));
    step = read_head(x, &p, end, now);
    if (step == AIGW_STEP_ON) {
        step = step_body_bytes(x, p, end, now);
    }
    else if (step == AIGW_STEP_WAIT) { /* what is left may stand in split */
        step = aigw_step_keep_head(x, p, (apr_size_t)(end - p)) == AIGW_OK
                   ? AIGW_STEP_ON
                   : head_too_large(x);
    }
    aigw_buffer_free(&split);
    return step;
}

/* -- body ----------------------------------------------------------------- */

/* A stream without the end that its API requires. A document is one when it
 * was asked for as a stream (Gemini's array). */
static int was_cut(const aigw_exchange_t *x)
{
    switch (x->meter.kind) {
    case AIGW_METER_OFF:
        return 0;
    case AIGW_METER_JSON:
        return x->rec.stream == 1 && x->endpoint->streams
               && !x->meter.seen.ended;
    default:
        return !x->meter.seen.ended;
    }
}

/* The framing ended rightly: what does that mean? */
static aigw_step_t body_complete(aigw_exchange_t *x, apr_time_t now)
{
    if (x->up && x->keep_upstream) {
        x->driver->give(x, x->up, now);
        x->up = NULL;
    }
    aigw_meter_finish(&x->meter, 1, &aigw_downstream_sink, x);
    if (!aigw_step_ok_status(x)) {
        aigw_step_note_end(x, AIGW_END_ERROR, AIGW_REASON_UPSTREAM_STATUS);
    }
    else if (x->meter.seen.saw_error) {
        aigw_step_note_end(x, AIGW_END_ERROR, AIGW_REASON_UPSTREAM_ERROR);
    }
    else if (was_cut(x)) {
        if (x->frame.frame == AIGW_FRAME_CLOSE && !x->committed) {
            return aigw_step_fail(x, AIGW_END_TRUNCATED,
                                  AIGW_REASON_TRUNCATED,
                                  "the answer lacks its end");
        }
        x->why = "the answer lacks its end";
        aigw_step_note_end(x, AIGW_END_TRUNCATED, AIGW_REASON_TRUNCATED);
        /* Close-delimited bodies end alike in success and failure: what
         * lacks its end was cut, and the client must see that. */
        return aigw_step_end(x, x->frame.frame == AIGW_FRAME_CLOSE ? -1 : 1);
    }
    else {
        aigw_step_note_end(x, AIGW_END_COMPLETE, AIGW_REASON_NONE);
    }
    return aigw_step_end(x, 1);
}

/* Nothing but comments and the like so far? */
static int hold_back(const aigw_exchange_t *x, apr_time_t now)
{
    const aigw_meter_seen_t *seen = &x->meter.seen;

    return !x->committed && x->meter.kind == AIGW_METER_SSE
           && aigw_step_ok_status(x) && !seen->saw_content
           && now < x->hold_until && seen->events < HOLD_EVENTS
           && x->rec.bytes_out < HOLD_BYTES;
}

/* Keep what points into the read buffer. */
static aigw_step_t keep_brigade(aigw_exchange_t *x, apr_time_t now)
{
    apr_bucket *b;

    for (b = APR_BRIGADE_FIRST(x->bb); b != APR_BRIGADE_SENTINEL(x->bb);
         b = APR_BUCKET_NEXT(b)) {
        apr_bucket_setaside(b, x->r->pool);
    }
    x->held_back = 1;
    aigw_step_deadline(x, now + x->upstream->idle < x->hold_until
                              ? now + x->upstream->idle
                              : x->hold_until);
    return AIGW_STEP_ON;
}

aigw_step_t aigw_step_push(aigw_exchange_t *x, apr_time_t now)
{
    if (x->draining) {
        return x->drain_left > 0 ? AIGW_STEP_ON : aigw_step_end(x, -1);
    }
    if (hold_back(x, now)) {
        return keep_brigade(x, now);
    }
    x->held_back = 0;
    if (aigw_downstream_push(x, 0) != AIGW_OK) {
        return aigw_step_client_gone(x);
    }
    if (x->committed) {
        aigw_request_free(x); /* no retry after this point */
    }
    aigw_step_deadline(x, now
                              + (x->blocked ? x->r->server->timeout
                                            : x->upstream->idle));
    return AIGW_STEP_ON;
}

/* An error stands where the answer's first event should be: the client gets
 * it as a status, unless another upstream can do better. */
static aigw_step_t early_error(aigw_exchange_t *x, apr_time_t now)
{
    const char *word = apr_pstrdup(x->r->pool, x->meter.seen.error);

    if (aigw_reason_status_retry(aigw_reason_error_status(word))) {
        aigw_health_fail(x->upstream->health, 0, now);
        if (aigw_step_try_next(x, word, now)) {
            return AIGW_STEP_RETRY;
        }
    }
    aigw_step_note_end(x, AIGW_END_ERROR, AIGW_REASON_UPSTREAM_ERROR);
    aigw_meter_finish(&x->meter, 0, &aigw_downstream_sink, x);
    aigw_downstream_forget(x);
    aigw_step_drop_upstream(x);
    aigw_refuse_upstream_error(x, word);
    return aigw_step_ended(x);
}

static aigw_step_t step_body_bytes(aigw_exchange_t *x, const char *p,
                                   const char *end, apr_time_t now)
{
    aigw_slice_t run;
    aigw_rc_t rc;

    while ((rc = aigw_http1_body_next(&x->frame, &p, end, &run)) == AIGW_OK) {
        aigw_meter_feed(&x->meter, run.p, run.n, &aigw_downstream_sink, x);
    }
    if (x->meter.seen.error_first && !x->committed && !x->gone
        && x->meter.kind == AIGW_METER_SSE && aigw_step_ok_status(x)
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
        return aigw_step_fail(x, AIGW_END_TRUNCATED, AIGW_REASON_BAD_ANSWER,
                              "the answer's framing is broken");
    }
    return aigw_step_push(x, now);
}

static aigw_step_t upstream_eof(aigw_exchange_t *x, aigw_rc_t how,
                                apr_time_t now)
{
    char buf[160];

    if (x->state != AIGW_X_BODY) {
        return aigw_step_replace_or_fail(x,
                                         x->answered ? AIGW_REASON_BAD_ANSWER
                                                     : AIGW_REASON_TRUNCATED,
                                         how == AIGW_FAILED
                                             ? aigw_upconn_why(x->up, buf,
                                                               sizeof(buf))
                                             : "closed before an answer",
                                         now);
    }
    if (how == AIGW_DONE && aigw_http1_body_eof(&x->frame) == AIGW_DONE) {
        x->keep_upstream = 0;
        return body_complete(x, now);
    }
    return aigw_step_fail(x, AIGW_END_TRUNCATED, AIGW_REASON_TRUNCATED,
                          "closed in mid-answer");
}

/* Nothing of the answer's head yet, and the request is not all out: an
 * interim answer does not end the sending. */
static aigw_step_t unsent(aigw_exchange_t *x)
{
    if (x->state == AIGW_X_HEAD && x->out_at < x->out_n) {
        aigw_step_enter(x, AIGW_X_SEND);
        return AIGW_STEP_ON;
    }
    return AIGW_STEP_WAIT;
}

aigw_step_t aigw_step_read(aigw_exchange_t *x, char *buf, apr_size_t size,
                           apr_time_t now)
{
    apr_size_t n = 0;
    int want = AIGW_WANT_READ;
    aigw_rc_t rc;

    if (x->blocked) {
        return AIGW_STEP_WAIT; /* the client lags: leave it in the kernel */
    }
    if (!x->up_readable) {
        x->want = AIGW_WANT_READ;
        return unsent(x);
    }
    rc = aigw_upconn_read(x->up, buf, size, &n, &want);
    if (rc == AIGW_AGAIN) {
        aigw_step_wait_for(x, want);
        return unsent(x);
    }
    if (rc != AIGW_OK) {
        return upstream_eof(x, rc, now);
    }
    x->answered = 1;
    if (n < size && !x->up->tls && !x->up_eof) {
        x->up_readable = 0; /* a short read emptied the socket */
    }
    return x->state == AIGW_X_HEAD ? head_bytes(x, buf, n, now)
                                   : step_body_bytes(x, buf, buf + n, now);
}
