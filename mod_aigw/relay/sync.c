/* SPDX-License-Identifier: Apache-2.0 */
/* See sync.h.  Writes to the client end with FLUSH and block, as a handler's
 * writes do; reads from the upstream wait in poll(2) together with the
 * client's hang-up and httpd's stop. */
#include <poll.h>

#include <apr_portable.h>

#include "sync.h"
#include "child.h"
#include "exchange.h"
#include "../upstream/upconn.h"

/* An HTTP/2 stream's socket is its master's: another thread's. Its end shows
 * only in c->aborted, so it is looked at this often. */
#define H2_LOOK_MS 200

static aigw_upconn_t *driver_take(aigw_exchange_t *x, apr_time_t now)
{
    aigw_upconn_t *uc = aigw_upconn_sync_take(x->upstream, now);

    if (uc) {
        uc->x = x;
    }
    return uc;
}

static aigw_rc_t driver_open(aigw_exchange_t *x, aigw_upconn_t *uc)
{
    uc->x = x;
    return AIGW_OK;
}

static void driver_give(aigw_exchange_t *x, aigw_upconn_t *uc, apr_time_t now)
{
    uc->x = NULL;
    if (x->upstream->keepalive > 0) {
        aigw_upconn_sync_give(uc, now);
    }
    else {
        aigw_upconn_close(uc);
    }
}

static void driver_drop(aigw_exchange_t *x, aigw_upconn_t *uc)
{
    (void)x;
    aigw_upconn_close(uc);
}

static const aigw_driver_t sync_driver = {
    driver_take, driver_open, driver_give, driver_drop
};

static int client_fd(const aigw_exchange_t *x)
{
    apr_os_sock_t fd = -1;

    if (x->c->master == NULL) {
        apr_os_sock_get(&fd, ap_get_conn_socket(x->c));
    }
    return fd;
}

static int wait_ms(const aigw_exchange_t *x, apr_time_t now)
{
    apr_time_t left = (x->deadline - now + 999) / 1000;

    if (x->c->master && left > H2_LOOK_MS) {
        left = H2_LOOK_MS;
    }
    return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

static short poll_events(const aigw_exchange_t *x)
{
    short ev = 0;

    if (x->want & AIGW_WANT_READ) {
        ev |= POLLIN;
    }
    if (x->want & AIGW_WANT_WRITE) {
        ev |= POLLOUT;
    }
    return ev;
}

static void take_events(aigw_exchange_t *x, short ev)
{
    if (ev & (POLLIN | POLLRDHUP | POLLHUP | POLLERR)) {
        x->up_readable = 1;
    }
    if (ev & (POLLOUT | POLLHUP | POLLERR)) {
        x->up_writable = 1;
    }
    if (ev & (POLLRDHUP | POLLHUP | POLLERR)) {
        x->up_eof = 1;
    }
}

/* One wait. @return 0 when httpd stops */
static int wait_once(aigw_exchange_t *x, int client)
{
    struct pollfd p[3] = {
        { x->up ? x->up->fd : -1, poll_events(x), 0 },
        { x->gone ? -1 : client, POLLRDHUP, 0 },
        { aigw_child()->stop_fd, POLLIN, 0 }
    };
    apr_time_t now = apr_time_now();
    int n = poll(p, 3, x->up_readable && x->state >= AIGW_X_HEAD
                       ? 0 : wait_ms(x, now));

    /* The worker MPM closes its sockets before it says that it stops; no
     * client can do that to us. */
    if (p[2].revents || (p[1].revents & POLLNVAL)) {
        return 0;
    }
    if (!x->gone && (p[1].revents || x->c->aborted)) {
        aigw_exchange_client_gone(x);
    }
    else if (p[0].revents) {
        take_events(x, p[0].revents);
    }
    else if (n == 0 && apr_time_now() >= x->deadline) {
        aigw_exchange_timeout(x, apr_time_now());
    }
    return 1;
}

/* Was it httpd's stop that took the client away? The worker MPM closes its
 * sockets, mod_http2 its streams, at any moment of ours. */
static int cut_by_httpd(const aigw_exchange_t *x)
{
    conn_rec *c = x->c->master ? x->c->master : x->c;
    struct pollfd stop = { aigw_child()->stop_fd, POLLIN, 0 };
    apr_os_sock_t fd = -1;

    apr_os_sock_get(&fd, ap_get_conn_socket(c));
    return fd < 0 || poll(&stop, 1, 0) > 0;
}

static void note_stop(aigw_exchange_t *x)
{
    x->rec.end = AIGW_END_TRUNCATED;
    x->rec.reason = AIGW_REASON_STOPPING;
}

int aigw_sync_drive(aigw_exchange_t *x)
{
    apr_size_t size = (apr_size_t)aigw_config_main()->buffer_size;
    aigw_buffer_t buf = { NULL, 0, 0 };
    int client = client_fd(x);

    if (aigw_buffer_room(&buf, size) != AIGW_OK) {
        return aigw_refuse(x, AIGW_REASON_INTERNAL, NULL);
    }
    x->sync = x->must_flush = 1;
    x->rec.flags |= AIGW_FLAG_SYNC;
    x->driver = &sync_driver;
    aigw_exchange_begin(x, apr_time_now());
    while (aigw_exchange_run(x, buf.p, size, apr_time_now())
           != AIGW_DONE) {
        if (!wait_once(x, client)) {
            note_stop(x);
            aigw_exchange_abandon(x);
        }
    }
    if (x->rec.end == AIGW_END_CLIENT_ABORT && cut_by_httpd(x)) {
        note_stop(x);
    }
    aigw_buffer_free(&buf);
    return OK;
}
