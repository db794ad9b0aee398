/* SPDX-License-Identifier: Apache-2.0 */
/* See body.h.  The wait is a poll(2) of our own beside httpd's stop: a read
 * that blocks in httpd is not woken by it, and a child that does not end is
 * killed in the end, records and all. */
#include <poll.h>
#include <stdlib.h>

#include <apr_atomic.h>
#include <apr_portable.h>

#include "body.h"
#include "relay/child.h"

#define DEADLINE     apr_time_from_sec(30)
#define PER_SECOND   (64 * 1024) /* bytes that buy one second more */
#define ONE_READ     (64 * 1024)
/* One wait: mod_reqtimeout looks at its clock only when it is asked. */
#define ONE_WAIT     apr_time_from_sec(1)

typedef struct {
    aigw_exchange_t *x;
    apr_size_t max;
    apr_time_t begun;
    apr_time_t last;         /* when something came */
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
    aigw_buffer_t *body = &rd->x->body;

    if (n > rd->max - body->n) {
        return AIGW_REASON_BODY_TOO_LARGE;
    }
    if (body->n + n > body->room && aigw_child_memory_full()) {
        return AIGW_REASON_OVERLOADED;
    }
    return aigw_buffer_add(body, p, n) == AIGW_OK ? AIGW_REASON_NONE
                                                  : AIGW_REASON_INTERNAL;
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

static apr_interval_time_t time_left(const reader_t *rd)
{
    apr_time_t end = rd->begun + DEADLINE
                     + apr_time_from_sec((apr_time_t)(rd->x->body.n
                                                      / PER_SECOND));
    apr_time_t idle = rd->last + rd->x->r->server->timeout;

    return (idle < end ? idle : end) - apr_time_now();
}

/* An HTTP/2 stream has no socket of its own: httpd waits for it. */
static aigw_reason_t read_waiting(reader_t *rd, apr_bucket_brigade *bb,
                                  int *done)
{
    apr_status_t rv = ap_get_brigade(rd->x->r->input_filters, bb,
                                     AP_MODE_READBYTES, APR_BLOCK_READ,
                                     ONE_READ);

    return rv == APR_SUCCESS ? take(rd, bb, done) : why_failed(rv);
}

/* Until the client has sent more, httpd stops, or a moment has passed. */
static aigw_reason_t wait_more(reader_t *rd, int *hung_up)
{
    apr_interval_time_t left = time_left(rd);
    apr_os_sock_t fd = -1;
    struct pollfd p[2];

    if (left <= 0) {
        return AIGW_REASON_BODY_TIMEOUT;
    }
    apr_os_sock_get(&fd, ap_get_conn_socket(rd->x->c));
    p[0] = (struct pollfd){ fd, POLLIN, 0 };
    p[1] = (struct pollfd){ aigw_child()->stop_fd, POLLIN, 0 };
    poll(p, 2, (int)apr_time_as_msec(left < ONE_WAIT ? left : ONE_WAIT) + 1);
    /* The worker and event MPM close a socket under its worker to stop it. */
    if (p[1].revents || fd < 0 || (p[0].revents & POLLNVAL)) {
        return AIGW_REASON_STOPPING;
    }
    *hung_up = (p[0].revents & (POLLHUP | POLLERR)) != 0;
    return AIGW_REASON_NONE;
}

/* httpd does this in blocking reads only. */
static void send_continue(request_rec *r)
{
    int status = r->status;

    if (r->expecting_100 && r->proto_num >= HTTP_VERSION(1, 1)) {
        r->status = HTTP_CONTINUE;
        ap_send_interim_response(r, 0);
        r->status = status;
        r->status_line = NULL;
    }
}

/* Nothing is there. */
static aigw_reason_t go_on_waiting(reader_t *rd, apr_bucket_brigade *bb,
                                   int *done)
{
    int hung_up = 0;
    aigw_reason_t why = begin_wait(rd);

    if (why == AIGW_REASON_NONE && rd->x->c->master == NULL) {
        send_continue(rd->x->r);
        why = wait_more(rd, &hung_up);
    }
    if (why == AIGW_REASON_NONE && (hung_up || rd->x->c->master)) {
        why = read_waiting(rd, bb, done);
    }
    return why;
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
            why = go_on_waiting(rd, bb, &done);
        }
        else {
            rd->last = apr_time_now();
            why = rv == APR_SUCCESS ? take(rd, bb, &done) : why_failed(rv);
        }
    }
    return why;
}

aigw_reason_t aigw_body_read(aigw_exchange_t *x)
{
    reader_t rd = { x, (apr_size_t)x->sconf->max_body, 0, 0, 0 };
    apr_bucket_brigade *bb = apr_brigade_create(x->r->pool,
                                                x->c->bucket_alloc);
    aigw_reason_t why;

    rd.begun = rd.last = apr_time_now();
    why = read_all(&rd, bb);
    if (rd.waiting) {
        apr_atomic_dec32(&aigw_child()->uploads);
    }
    apr_brigade_destroy(bb);
    x->body_wait = apr_time_now() - rd.begun;
    x->rec.bytes_in = (apr_int64_t)x->body.n;
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
