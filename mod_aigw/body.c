/* SPDX-License-Identifier: Apache-2.0 */
/* See body.h. */
#include <stdlib.h>

#include <apr_atomic.h>

#include "body.h"
#include "relay/child.h"

#define DEADLINE     apr_time_from_sec(30)
#define PER_SECOND   (64 * 1024) /* bytes that buy one second more */
#define FIRST_ROOM   4096
#define ONE_READ     (64 * 1024)

typedef struct {
    aigw_exchange_t *x;
    apr_size_t room;
    apr_size_t max;
    apr_time_t begun;
    int waiting;             /* holds one of the places for slow bodies */
} reader_t;

aigw_reason_t aigw_body_check(aigw_exchange_t *x)
{
    const char *length = apr_table_get(x->r->headers_in, "Content-Length");
    apr_off_t n;
    char *end;

    if (length && apr_strtoff(&n, length, &end, 10) == APR_SUCCESS
        && *end == '\0' && n > x->sconf->max_body) {
        return AIGW_REASON_BODY_TOO_LARGE;
    }
    return AIGW_REASON_NONE;
}

static aigw_reason_t append(reader_t *rd, const char *p, apr_size_t n)
{
    aigw_exchange_t *x = rd->x;

    if (n > rd->max - x->body_len) {
        return AIGW_REASON_BODY_TOO_LARGE;
    }
    if (x->body_len + n > rd->room) {
        apr_size_t room = rd->room ? rd->room : FIRST_ROOM;
        char *grown;

        while (room < x->body_len + n) {
            room *= 2;
        }
        grown = realloc(x->body, room);
        if (grown == NULL) {
            return AIGW_REASON_INTERNAL;
        }
        x->body = grown;
        rd->room = room;
    }
    memcpy(x->body + x->body_len, p, n);
    x->body_len += n;
    return AIGW_REASON_NONE;
}

/* Take what a brigade holds. *done: the body's end was there. */
static aigw_reason_t take(reader_t *rd, apr_bucket_brigade *bb, int *done)
{
    aigw_reason_t why = AIGW_REASON_NONE;

    while (why == AIGW_REASON_NONE && !APR_BRIGADE_EMPTY(bb)) {
        apr_bucket *b = APR_BRIGADE_FIRST(bb);
        const char *p;
        apr_size_t n;

        if (APR_BUCKET_IS_EOS(b)) {
            *done = 1;
        }
        else if (!APR_BUCKET_IS_METADATA(b)) {
            why = apr_bucket_read(b, &p, &n, APR_BLOCK_READ) == APR_SUCCESS
                  ? append(rd, p, n) : AIGW_REASON_BODY_ABORTED;
        }
        apr_bucket_delete(b);
    }
    return why;
}

/* The body does not come in one go: may this worker wait for it? */
static aigw_reason_t begin_wait(reader_t *rd)
{
    aigw_child_t *ch = aigw_child();

    if (rd->waiting) {
        return AIGW_REASON_NONE;
    }
    rd->waiting = 1;
    return (int)apr_atomic_inc32(&ch->uploads) < ch->max_uploads
           ? AIGW_REASON_NONE : AIGW_REASON_UPLOADS;
}

static aigw_reason_t why_failed(apr_status_t rv)
{
    if (APR_STATUS_IS_TIMEUP(rv)) {
        return AIGW_REASON_BODY_TIMEOUT;
    }
    if (APR_STATUS_IS_ENOSPC(rv)) {
        return AIGW_REASON_BODY_TOO_LARGE; /* LimitRequestBody */
    }
    return AIGW_REASON_BODY_ABORTED;
}

/* One blocking read that ends with the deadline at the latest. */
static apr_status_t read_waiting(reader_t *rd, apr_bucket_brigade *bb)
{
    conn_rec *c = rd->x->c;
    apr_socket_t *sock = c->master ? NULL : ap_get_conn_socket(c);
    apr_interval_time_t usual = 0, left;
    apr_status_t rv;

    left = rd->begun + DEADLINE
           + apr_time_from_sec((apr_time_t)(rd->x->body_len / PER_SECOND))
           - apr_time_now();
    if (left <= 0) {
        return APR_TIMEUP;
    }
    if (sock) {
        apr_socket_timeout_get(sock, &usual);
        apr_socket_timeout_set(sock, usual > 0 && usual < left ? usual
                                                               : left);
    }
    rv = ap_get_brigade(rd->x->r->input_filters, bb, AP_MODE_READBYTES,
                        APR_BLOCK_READ, ONE_READ);
    if (sock) {
        apr_socket_timeout_set(sock, usual);
    }
    return rv;
}

static aigw_reason_t read_all(reader_t *rd, apr_bucket_brigade *bb)
{
    aigw_reason_t why = AIGW_REASON_NONE;
    int done = 0;

    while (!done && why == AIGW_REASON_NONE) {
        apr_status_t rv = ap_get_brigade(rd->x->r->input_filters, bb,
                                         AP_MODE_READBYTES,
                                         APR_NONBLOCK_READ, ONE_READ);
        if (APR_STATUS_IS_EAGAIN(rv)
            || (rv == APR_SUCCESS && APR_BRIGADE_EMPTY(bb))) {
            why = begin_wait(rd);
            if (why != AIGW_REASON_NONE) {
                break;
            }
            rv = read_waiting(rd, bb);
        }
        why = rv == APR_SUCCESS ? take(rd, bb, &done) : why_failed(rv);
    }
    return why;
}

aigw_reason_t aigw_body_read(aigw_exchange_t *x)
{
    reader_t rd = { x, 0, (apr_size_t)x->sconf->max_body, 0, 0 };
    apr_bucket_brigade *bb = apr_brigade_create(x->r->pool,
                                                x->c->bucket_alloc);
    aigw_reason_t why;

    rd.begun = apr_time_now();
    why = read_all(&rd, bb);
    if (rd.waiting) {
        apr_atomic_dec32(&aigw_child()->uploads);
    }
    apr_brigade_destroy(bb);
    x->body_wait = apr_time_now() - rd.begun;
    x->rec.bytes_in = (apr_int64_t)x->body_len;
    return why;
}

#define DISCARD_MAX (256 * 1024)

int aigw_body_discard(aigw_exchange_t *x)
{
    apr_bucket_brigade *bb = apr_brigade_create(x->r->pool,
                                                x->c->bucket_alloc);
    apr_size_t room = DISCARD_MAX;
    int done = x->r->expecting_100, all = 0;

    while (!done && room) {
        apr_off_t n = 0;

        done = ap_get_brigade(x->r->input_filters, bb, AP_MODE_READBYTES,
                              APR_NONBLOCK_READ, ONE_READ) != APR_SUCCESS
               || APR_BRIGADE_EMPTY(bb);
        if (!done) {
            all = done = APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(bb));
            apr_brigade_length(bb, 0, &n);
            room = n > 0 && (apr_size_t)n < room ? room - (apr_size_t)n : 0;
        }
        apr_brigade_cleanup(bb);
    }
    apr_brigade_destroy(bb);
    return all;
}
