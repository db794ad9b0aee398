/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See exchange.h.  The machine itself, the ways out of it, and the turn to
 * another upstream.  At most READS_A_TURN buffers are taken in one call, so
 * that one fast upstream cannot starve the other streams of the thread.
 */
#include <stdlib.h>

#include "exchange_step.h"
#include "downstream.h"
#include "../upstream/request.h"

#define READS_A_TURN 4

void aigw_step_deadline(aigw_exchange_t *x, apr_time_t at)
{
    x->deadline = at < x->total_at ? at : x->total_at;
}

void aigw_step_enter(aigw_exchange_t *x, aigw_xstate_t state)
{
    ap_log_rerror(APLOG_MARK, APLOG_TRACE3, 0, x->r, "[%s] state %d -> %d",
                  x->id, (int)x->state, (int)state);
    x->state = state;
}

void aigw_step_drop_upstream(aigw_exchange_t *x)
{
    if (x->up) {
        x->driver->drop(x, x->up);
        x->up = NULL;
    }
}

void aigw_step_forget_buffers(aigw_exchange_t *x)
{
    free(x->addrs);
    x->addrs = NULL;
    aigw_buffer_free(&x->head);
    x->head_scanned = 0;
}

/* -- ends ----------------------------------------------------------------- */

void aigw_step_note_end(aigw_exchange_t *x, aigw_end_t end, aigw_reason_t why)
{
    if (x->rec.end == AIGW_END_NONE) {
        x->rec.end = end;
        x->rec.reason = why;
    }
}

int aigw_step_ok_status(const aigw_exchange_t *x)
{
    return x->rec.upstream_status >= 200 && x->rec.upstream_status < 300;
}

aigw_step_t aigw_step_ended(aigw_exchange_t *x)
{
    aigw_request_free(x);
    aigw_step_forget_buffers(x);
    aigw_step_enter(x, AIGW_X_ENDED);
    return AIGW_STEP_ENDED;
}

/* Every way out passes here: the upstream is let go, what the meter still
 * holds is decided, and the client gets its last bytes. */
aigw_step_t aigw_step_end(aigw_exchange_t *x, int end_of_body)
{
    aigw_meter_finish(&x->meter, end_of_body > 0, &aigw_downstream_sink, x);
    aigw_step_drop_upstream(x);
    if (!x->gone && aigw_downstream_push(x, end_of_body) != AIGW_OK) {
        x->gone = 1;
    }
    aigw_buffer_free(&x->held);
    x->want = 0;
    return aigw_step_ended(x);
}

/* AIGWDrain: the final usage is worth reading on for, within its caps. */
static int may_drain(const aigw_exchange_t *x)
{
    return x->sconf->drain_time > 0 && x->state == AIGW_X_BODY
           && x->meter.kind == AIGW_METER_SSE && aigw_step_ok_status(x)
           && !x->draining;
}

aigw_step_t aigw_step_client_gone(aigw_exchange_t *x)
{
    x->gone = 1;
    x->c->aborted = 1;
    x->blocked = 0;
    aigw_step_note_end(x, AIGW_END_CLIENT_ABORT, AIGW_REASON_CLIENT_GONE);
    if (!may_drain(x)) {
        return aigw_step_end(x, -1);
    }
    x->draining = 1;
    x->drain_left = x->sconf->drain_bytes;
    x->rec.flags |= AIGW_FLAG_DRAINED;
    aigw_step_deadline(x, apr_time_now() + x->sconf->drain_time);
    x->total_at = x->deadline;
    apr_brigade_cleanup(x->bb);
    return AIGW_STEP_ON;
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
    x->passed_over =
        apr_pstrcat(x->r->pool, x->passed_over ? x->passed_over : "",
                    x->passed_over ? ", " : "", upstream, ": ", why, NULL);
}

/* Before the commit point another candidate may do better.
 * @return 1: it is being tried */
int aigw_step_try_next(aigw_exchange_t *x, const char *why, apr_time_t now)
{
    const char *failed = x->upstream->name;

    if (x->committed || x->gone || now >= x->total_at
        || x->next(x, now) != AIGW_OK) {
        return 0;
    }
    aigw_exchange_passed_over(x, failed, why);
    aigw_step_drop_upstream(x);
    forget_answer(x);
    begin_attempt(x, now);
    return 1;
}

/* The upstream failed.  Before the first byte another one is tried, or the
 * client gets an error of ours; after it, a visible truncation and never a
 * clean end. */
aigw_step_t aigw_step_fail(aigw_exchange_t *x, aigw_end_t end,
                           aigw_reason_t why, const char *detail)
{
    apr_time_t now = apr_time_now();

    if (aigw_reason_retry(why) && !x->committed) {
        aigw_health_fail(x->upstream->health, 0, now);
        if (aigw_step_try_next(x,
                               detail ? detail : aigw_reason_info(why)->word,
                               now)) {
            return AIGW_STEP_RETRY;
        }
    }
    /* Logged by the worker that settles: a piped error log that nobody
     * reads must not hold the relay thread. */
    x->why = apr_pstrdup(x->r->pool, detail ? detail : "");
    aigw_step_note_end(x, end, why);
    if (x->committed || x->gone) {
        return aigw_step_end(x, -1);
    }
    aigw_meter_finish(&x->meter, 0, &aigw_downstream_sink, x);
    aigw_downstream_forget(x);
    aigw_step_drop_upstream(x);
    aigw_refuse(x, why, NULL);
    return aigw_step_ended(x);
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
        aigw_step_start_connect(x, now);
        return;
    }
    x->reused = 1;
    x->rec.flags |= AIGW_FLAG_REUSED;
    x->up_writable = 1;
    aigw_step_deadline(x, now + x->upstream->first);
    aigw_step_enter(x, AIGW_X_SEND);
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
    aigw_step_t step = AIGW_STEP_ON;

    while (step == AIGW_STEP_ON || step == AIGW_STEP_RETRY) {
        switch (x->state) {
        case AIGW_X_CONNECT:
            step = aigw_step_connect(x);
            break;
        case AIGW_X_PROXY:
            step = aigw_step_proxy(x, buf, size);
            break;
        case AIGW_X_TLS:
            step = aigw_step_tls(x);
            break;
        case AIGW_X_SEND:
            step = aigw_step_send(x, now);
            break;
        case AIGW_X_HEAD:
        case AIGW_X_BODY:
            step = reads++ < READS_A_TURN ? aigw_step_read(x, buf, size, now)
                                          : AIGW_STEP_WAIT;
            break;
        default:
            step = AIGW_STEP_ENDED;
        }
    }
    return x->state == AIGW_X_ENDED ? AIGW_DONE : AIGW_AGAIN;
}

void aigw_exchange_timeout(aigw_exchange_t *x, apr_time_t now)
{
    if (x->draining) {
        aigw_step_end(x, -1);
    }
    else if (now >= x->total_at) {
        aigw_step_fail(x, AIGW_END_TIMEOUT, AIGW_REASON_TOTAL_TIMEOUT, NULL);
    }
    else if (x->held_back && now >= x->hold_until) {
        aigw_step_push(x, now);
    }
    else if (x->blocked) {
        aigw_step_client_gone(x); /* a reader that stood still for TimeOut */
    }
    else if (x->state <= AIGW_X_TLS) {
        aigw_step_fail(x, AIGW_END_TIMEOUT, AIGW_REASON_CONNECT_TIMEOUT, NULL);
    }
    else if (x->state == AIGW_X_BODY) {
        aigw_step_fail(x, AIGW_END_TIMEOUT, AIGW_REASON_IDLE_TIMEOUT, NULL);
    }
    else {
        aigw_step_fail(x, AIGW_END_TIMEOUT, AIGW_REASON_FIRST_TIMEOUT, NULL);
    }
}

void aigw_exchange_client_ready(aigw_exchange_t *x, apr_time_t now)
{
    if (x->state == AIGW_X_ENDED || !x->blocked) {
        return;
    }
    if (aigw_downstream_resume(x) != AIGW_OK) {
        aigw_step_client_gone(x);
    }
    else if (!x->blocked) {
        aigw_step_deadline(x, now + x->upstream->idle);
    }
}

void aigw_exchange_client_gone(aigw_exchange_t *x)
{
    if (x->state != AIGW_X_ENDED && !x->draining) {
        aigw_step_client_gone(x);
    }
}

void aigw_exchange_abandon(aigw_exchange_t *x)
{
    x->gone = 1;
    x->c->aborted = 1;
    aigw_step_end(x, -1);
}
