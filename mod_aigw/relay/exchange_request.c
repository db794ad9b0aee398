/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to an upstream: address after address, a proxy's tunnel, TLS, the
 * request.  It knows nothing of answers but that one may come early.
 */
#include <errno.h>

#include "exchange_step.h"

/* -- connect -------------------------------------------------------------- */

void aigw_step_start_connect(aigw_exchange_t *x, apr_time_t now)
{
    x->up_readable = x->up_writable = x->up_eof = 0;
    aigw_step_deadline(x, now + x->upstream->connect);
    aigw_step_enter(x, AIGW_X_CONNECT);
}

/* Try the addresses in turn until one at least begins to connect. */
static aigw_step_t next_address(aigw_exchange_t *x)
{
    int err = 0;
    char why[120];

    while (x->addrs && x->addr_at < x->addrs->n) {
        aigw_upconn_t *uc;
        aigw_rc_t rc =
            aigw_upconn_open(x->upstream, &x->addrs->addr[x->addr_at++], &uc,
                             &err);
        if (rc != AIGW_FAILED) {
            if (x->driver->open(x, uc) == AIGW_OK) {
                x->up = uc;
                return AIGW_STEP_ON;
            }
            err = ENOMEM;
            aigw_upconn_close(uc);
        }
    }
    return aigw_step_fail(x, AIGW_END_ERROR, AIGW_REASON_CONNECT,
                          err ? apr_strerror(err, why, sizeof(why)) : NULL);
}

static aigw_step_t try_next_address(aigw_exchange_t *x, aigw_reason_t why)
{
    char buf[160];

    if (x->addrs && x->addr_at < x->addrs->n) {
        aigw_step_drop_upstream(x);
        x->up_readable = x->up_writable = x->up_eof = 0;
        aigw_step_enter(x, AIGW_X_CONNECT);
        return next_address(x);
    }
    return aigw_step_fail(x, AIGW_END_ERROR, why,
                          aigw_upconn_why(x->up, buf, sizeof(buf)));
}

aigw_step_t aigw_step_connect(aigw_exchange_t *x)
{
    aigw_rc_t rc;

    if (x->up == NULL) {
        return next_address(x);
    }
    if (!x->up_writable) {
        x->want = AIGW_WANT_WRITE;
        return AIGW_STEP_WAIT;
    }
    rc = aigw_upconn_connected(x->up);
    if (rc == AIGW_AGAIN) {
        x->up_writable = 0;
        x->want = AIGW_WANT_WRITE;
        return AIGW_STEP_WAIT;
    }
    if (rc != AIGW_OK) {
        return try_next_address(x, AIGW_REASON_CONNECT);
    }
    x->tunnel_off = 0;
    aigw_step_enter(x, !x->upstream->tls         ? AIGW_X_SEND
                       : x->upstream->proxy_host ? AIGW_X_PROXY
                                                 : AIGW_X_TLS);
    return AIGW_STEP_ON;
}

/* An I/O call said AGAIN: that direction is used up. */
aigw_step_t aigw_step_wait_for(aigw_exchange_t *x, int want)
{
    if (want & AIGW_WANT_READ) {
        x->up_readable = 0;
    }
    if (want & AIGW_WANT_WRITE) {
        x->up_writable = 0;
    }
    x->want = want;
    return AIGW_STEP_WAIT;
}

/* Only a head that comes in pieces is copied. */
aigw_rc_t aigw_step_keep_head(aigw_exchange_t *x, const char *p, apr_size_t n)
{
    if (x->head.n + n > AIGW_HEAD_MAX) {
        return AIGW_TOO_BIG;
    }
    return aigw_buffer_add(&x->head, p, n);
}

/* @return AIGW_STEP_ON when the whole CONNECT is out */
static aigw_step_t ask_tunnel(aigw_exchange_t *x)
{
    const char *to = x->upstream->authority;
    char text[1024];
    aigw_slice_t ask = {text, 0};

    ask.n = (apr_size_t)apr_snprintf(text, sizeof(text),
                                     "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n",
                                     to, to);
    while (x->tunnel_off < ask.n) {
        apr_size_t n = 0;
        int want = 0;
        aigw_rc_t rc =
            aigw_upconn_write(x->up, &ask, 1, x->tunnel_off, &n, &want);
        if (rc == AIGW_AGAIN) {
            return aigw_step_wait_for(x, want);
        }
        if (rc != AIGW_OK) {
            return try_next_address(x, AIGW_REASON_CONNECT);
        }
        x->tunnel_off += n;
    }
    return AIGW_STEP_ON;
}

/* The proxy's head; no byte behind it can be the upstream's, as a TLS server
 * does not speak first. @return AIGW_OK, AIGW_AGAIN or AIGW_FAILED */
static aigw_rc_t tunnel_answer(aigw_exchange_t *x, const char *p, apr_size_t n)
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

aigw_step_t aigw_step_proxy(aigw_exchange_t *x, char *buf, apr_size_t size)
{
    aigw_step_t step = ask_tunnel(x);
    apr_size_t n = 0;
    int want = AIGW_WANT_READ;
    aigw_rc_t rc;

    if (step != AIGW_STEP_ON) {
        return step;
    }
    rc = aigw_upconn_read(x->up, buf, size, &n, &want);
    if (rc == AIGW_AGAIN) {
        return aigw_step_wait_for(x, want);
    }
    if (rc == AIGW_OK) {
        rc = aigw_step_keep_head(x, buf, n);
    }
    if (rc == AIGW_OK) {
        rc = tunnel_answer(x, x->head.p, x->head.n);
    }
    if (rc == AIGW_AGAIN) {
        return AIGW_STEP_ON;
    }
    aigw_buffer_free(&x->head);
    x->head_scanned = 0;
    if (rc != AIGW_OK) {
        return try_next_address(x, AIGW_REASON_CONNECT);
    }
    aigw_step_enter(x, AIGW_X_TLS);
    return AIGW_STEP_ON;
}

aigw_step_t aigw_step_tls(aigw_exchange_t *x)
{
    int want = 0;
    aigw_rc_t rc = aigw_upconn_handshake(x->up, &want);

    if (rc == AIGW_AGAIN) {
        return aigw_step_wait_for(x, want);
    }
    if (rc != AIGW_OK) {
        return try_next_address(x, AIGW_REASON_TLS);
    }
    aigw_step_enter(x, AIGW_X_SEND);
    return AIGW_STEP_ON;
}

/* A pooled connection died before it answered: that was the pool's fault,
 * not the request's, so one fresh connection is tried. */
aigw_step_t aigw_step_replace_or_fail(aigw_exchange_t *x, aigw_reason_t why,
                                      const char *detail, apr_time_t now)
{
    if (!x->reused || x->answered || x->replaced) {
        return aigw_step_fail(x, AIGW_END_ERROR, why, detail);
    }
    x->replaced = 1;
    x->reused = 0;
    x->rec.flags &= ~AIGW_FLAG_REUSED;
    aigw_step_drop_upstream(x);
    x->out_at = 0;
    x->out_off = 0;
    aigw_step_start_connect(x, now);
    return AIGW_STEP_ON;
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

aigw_step_t aigw_step_send(aigw_exchange_t *x, apr_time_t now)
{
    while (x->out_at < x->out_n) {
        apr_size_t n = 0;
        int want = 0;
        aigw_rc_t rc =
            aigw_upconn_write(x->up, x->out + x->out_at, x->out_n - x->out_at,
                              x->out_off, &n, &want);
        if (rc == AIGW_AGAIN) {
            /* An upstream may answer (413, say) before it has read all. */
            if (x->up_readable && !x->up->tls) {
                break;
            }
            aigw_step_wait_for(x, want);
            x->want |= AIGW_WANT_READ;
            return AIGW_STEP_WAIT;
        }
        if (rc != AIGW_OK) {
            if (x->up_readable) {
                break; /* its last words may be waiting */
            }
            return aigw_step_replace_or_fail(x, AIGW_REASON_SEND, NULL, now);
        }
        sent(x, n);
        aigw_step_deadline(x, now + x->upstream->first);
    }
    aigw_step_deadline(x, now + x->upstream->first);
    aigw_step_enter(x, AIGW_X_HEAD);
    return AIGW_STEP_ON;
}
