/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See loop.h.
 *
 * Upstream sockets are watched edge-triggered and once for their whole life,
 * pooled time included: no epoll_ctl(2) an event.  Client sockets are
 * watched one-shot and level-triggered, since a worker owns them in between.
 *
 * Nothing that an event of the current batch may still point to is freed
 * before the batch is through: upstream connections go to `dead`, client
 * connections to the graveyard.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <apr_atomic.h>
#include <apr_thread_proc.h>

#include "loop.h"
#include "child.h"
#include "exchange.h"
#include "handback.h"
#include "../upstream/upconn.h"

#define BATCH 256
#define LINGER_TIME apr_time_from_sec(2)
/* A worker makes two more stores to the connection after the suspend hook;
 * only after this long is its memory given back.  See handback.c. */
#define GRAVE_TIME apr_time_from_sec(1)

/* A connection that was given back should be on a worker by then. */
#define STUCK_TIME apr_time_from_msec(20)

#define CLIENT_GONE (EPOLLRDHUP | EPOLLHUP | EPOLLERR)

struct aigw_relay_t {
    int ep;
    int wake_fd;
    apr_thread_t *thread;
    apr_thread_mutex_t *mutex;     /* of the inbox */
    aigw_conn_t *inbox, **inbox_end;
    int woken;                     /* under the mutex: wake_fd is readable */
    apr_uint32_t stop, drain;      /* atomic */

    /* the thread's own from here on */
    apr_time_t now;
    char *buf;
    apr_size_t buf_size;
    aigw_timer_t **heap;
    int n_heap, heap_cap;
    aigw_exchange_t *ready, **ready_end;
    aigw_upconn_t *dead;
    aigw_conn_t *idle_first, *idle_last; /* keep-alive waits, oldest first */
    int n_idle, n_streams;
    aigw_conn_t *grave, **grave_end;
    int draining;
    aigw_watch_t wake_watch;
};

/* One a child; the drivers' callbacks have no other way to it. */
static aigw_relay_t *the_relay;

/* -- the heap of deadlines ------------------------------------------------ */

static void heap_put(aigw_relay_t *rl, int i, aigw_timer_t *t)
{
    rl->heap[i] = t;
    t->index = i;
}

static void heap_up(aigw_relay_t *rl, int i, aigw_timer_t *t)
{
    while (i > 0 && rl->heap[(i - 1) / 2]->at > t->at) {
        heap_put(rl, i, rl->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    heap_put(rl, i, t);
}

static void heap_down(aigw_relay_t *rl, int i, aigw_timer_t *t)
{
    int child;

    while ((child = 2 * i + 1) < rl->n_heap) {
        if (child + 1 < rl->n_heap
            && rl->heap[child + 1]->at < rl->heap[child]->at) {
            child++;
        }
        if (rl->heap[child]->at >= t->at) {
            break;
        }
        heap_put(rl, i, rl->heap[child]);
        i = child;
    }
    heap_put(rl, i, t);
}

static void timer_stop(aigw_relay_t *rl, aigw_timer_t *t)
{
    int i = t->index;
    aigw_timer_t *last;

    if (i < 0) {
        return;
    }
    t->index = -1;
    last = rl->heap[--rl->n_heap];
    if (last != t) {
        heap_down(rl, i, last);
        heap_up(rl, last->index, last);
    }
}

static void timer_start(aigw_relay_t *rl, aigw_timer_t *t, apr_time_t at)
{
    timer_stop(rl, t);
    if (rl->n_heap == rl->heap_cap) {
        int cap = rl->heap_cap ? rl->heap_cap * 2 : 256;
        void *grown = realloc(rl->heap, (size_t)cap * sizeof(*rl->heap));

        ap_assert(grown != NULL);
        rl->heap = grown;
        rl->heap_cap = cap;
    }
    t->at = at;
    heap_up(rl, rl->n_heap++, t);
}

/* A deadline moves with every event that comes; the heap is touched only
 * when an entry comes due too early.  Cost an event: one comparison. */
static void timer_lazy(aigw_relay_t *rl, aigw_timer_t *t, apr_time_t at)
{
    if (t->index < 0 || t->at > at) {
        timer_start(rl, t, at);
    }
}

/* -- epoll ---------------------------------------------------------------- */

static int watch(aigw_relay_t *rl, int op, int fd, apr_uint32_t events,
                 aigw_watch_t *w)
{
    struct epoll_event ev;

    ev.events = events;
    ev.data.ptr = w;
    return epoll_ctl(rl->ep, op, fd, &ev);
}

static void watch_client(aigw_relay_t *rl, aigw_conn_t *cc,
                         apr_uint32_t events)
{
    watch(rl, cc->in_epoll ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, cc->fd,
          events | EPOLLRDHUP | EPOLLONESHOT, &cc->watch);
    cc->in_epoll = 1;
}

/* -- exchanges ------------------------------------------------------------ */

static void ready_later(aigw_relay_t *rl, aigw_exchange_t *x)
{
    if (!x->on_ready) {
        x->on_ready = 1;
        x->ready_next = NULL;
        *rl->ready_end = x;
        rl->ready_end = &x->ready_next;
    }
}

static void stream_ended(aigw_relay_t *rl, aigw_exchange_t *x)
{
    timer_stop(rl, &x->timer);
    rl->n_streams--;
    x->conn->waiting = 0;
    aigw_handback_give(x->conn, AIGW_BACK_FINISH);
}

/* Called after every step of an exchange: what is it waiting for now? */
static void settle_wait(aigw_relay_t *rl, aigw_exchange_t *x, int was_blocked)
{
    if (x->state == AIGW_X_ENDED) {
        if (!x->on_ready) {
            stream_ended(rl, x);
        } /* else the ready list still points to it: its turn ends it */
        return;
    }
    if (x->blocked && !was_blocked) {
        watch_client(rl, x->conn, EPOLLOUT);
    }
    else if (!x->blocked && x->up_readable && x->state >= AIGW_X_HEAD) {
        ready_later(rl, x);
    }
    timer_lazy(rl, &x->timer, x->deadline);
}

static void run(aigw_relay_t *rl, aigw_exchange_t *x)
{
    int was_blocked = x->blocked;

    aigw_exchange_run(x, rl->buf, rl->buf_size, rl->now);
    settle_wait(rl, x, was_blocked);
}

static void exchange_due(aigw_timer_t *t, apr_time_t now)
{
    aigw_exchange_t *x = t->owner;

    if (x->deadline > now) {
        timer_start(the_relay, t, x->deadline);
        return;
    }
    aigw_exchange_timeout(x, now);
    if (x->state == AIGW_X_ENDED) {
        settle_wait(the_relay, x, x->blocked);
        return;
    }
    run(the_relay, x);
}

static void upstream_ready(aigw_watch_t *w, apr_uint32_t events)
{
    aigw_upconn_t *uc = w->owner;
    aigw_exchange_t *x = uc ? uc->x : NULL;

    if (uc == NULL) {
        return; /* closed earlier in this batch */
    }
    if (x == NULL) {
        /* Idle in the pool: an answer nobody asked for, or the end. TLS
         * peers may send tickets; those are read over. */
        if (!(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLIN))
            || (uc->tls && !aigw_upconn_stale(uc))) {
            return;
        }
        aigw_relay_driver.drop(NULL, uc);
        return;
    }
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        x->up_readable = 1;
    }
    if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) {
        x->up_writable = 1;
    }
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        x->up_eof = 1;
    }
    run(the_relay, x);
}

/* -- the driver ----------------------------------------------------------- */

static void unlink_idle_upstream(aigw_upconn_t *uc)
{
    aigw_upstream_rt_t *rt = uc->up->rt;

    if (uc->prev) {
        uc->prev->next = uc->next;
    }
    else {
        rt->idle = uc->next;
    }
    if (uc->next) {
        uc->next->prev = uc->prev;
    }
    uc->prev = uc->next = NULL;
    rt->n_idle--;
    timer_stop(the_relay, &uc->timer);
}

static void driver_drop(aigw_exchange_t *x, aigw_upconn_t *uc)
{
    if (x == NULL) {
        unlink_idle_upstream(uc);
    }
    aigw_relay_forget(the_relay, uc->fd);
    aigw_upconn_shut(uc);
    uc->watch.owner = NULL;
    uc->x = NULL;
    uc->next = the_relay->dead;
    the_relay->dead = uc;
}

static void idle_upstream_due(aigw_timer_t *t, apr_time_t now)
{
    (void)now;
    driver_drop(NULL, t->owner);
}

/* The newest first, so that surplus ones grow old and go. */
static aigw_upconn_t *driver_take(aigw_exchange_t *x, apr_time_t now)
{
    aigw_upconn_t *uc;

    (void)now;
    while ((uc = x->upstream->rt->idle) != NULL) {
        if (aigw_upconn_stale(uc)) {
            driver_drop(NULL, uc); /* its event is still on the way */
            continue;
        }
        unlink_idle_upstream(uc);
        uc->x = x;
        return uc;
    }
    return NULL;
}

static aigw_rc_t driver_open(aigw_exchange_t *x, aigw_upconn_t *uc)
{
    uc->x = x;
    uc->watch.ready = upstream_ready;
    uc->watch.owner = uc;
    uc->timer.fire = idle_upstream_due;
    uc->timer.owner = uc;
    return watch(the_relay, EPOLL_CTL_ADD, uc->fd,
                 EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &uc->watch) == 0
           ? AIGW_OK : AIGW_FAILED;
}

static void driver_give(aigw_exchange_t *x, aigw_upconn_t *uc,
                        apr_time_t now)
{
    aigw_upstream_rt_t *rt = x->upstream->rt;

    if (rt->n_idle >= AIGW_POOL_MAX || x->upstream->keepalive <= 0
        || x->up_eof || the_relay->draining) {
        driver_drop(x, uc);
        return;
    }
    uc->x = NULL;
    uc->prev = NULL;
    uc->next = rt->idle;
    if (rt->idle) {
        rt->idle->prev = uc;
    }
    rt->idle = uc;
    rt->n_idle++;
    timer_start(the_relay, &uc->timer, now + x->upstream->keepalive);
}

const aigw_driver_t aigw_relay_driver = {
    driver_take, driver_open, driver_give, driver_drop
};

/* -- client connections --------------------------------------------------- */

static void unlink_idle(aigw_relay_t *rl, aigw_conn_t *cc)
{
    *(cc->idle_prev ? &cc->idle_prev->idle_next : &rl->idle_first)
        = cc->idle_next;
    *(cc->idle_next ? &cc->idle_next->idle_prev : &rl->idle_last)
        = cc->idle_prev;
    cc->idle_prev = cc->idle_next = NULL;
    rl->n_idle--;
}

static void link_idle(aigw_relay_t *rl, aigw_conn_t *cc)
{
    cc->idle_next = NULL;
    cc->idle_prev = rl->idle_last;
    *(rl->idle_last ? &rl->idle_last->idle_next : &rl->idle_first) = cc;
    rl->idle_last = cc;
    rl->n_idle++;
}

/* The wait is over: a worker goes on. */
static void wait_ends(aigw_relay_t *rl, aigw_conn_t *cc, int why)
{
    timer_stop(rl, &cc->timer);
    if (cc->waiting == AIGW_WAIT_REQUEST) {
        unlink_idle(rl, cc);
    }
    cc->waiting = 0;
    aigw_handback_give(cc, why);
}

static void bury(aigw_relay_t *rl, aigw_conn_t *cc)
{
    timer_stop(rl, &cc->timer);
    cc->waiting = AIGW_TASK_GRAVE;
    cc->next = NULL;
    *rl->grave_end = cc;
    rl->grave_end = &cc->next;
}

/* The client's bytes after our FIN are read over until it closes too. */
static void linger_read(aigw_relay_t *rl, aigw_conn_t *cc)
{
    ssize_t got;
    int turns = 0;

    do {
        got = recv(cc->fd, rl->buf, rl->buf_size, MSG_DONTWAIT);
    } while ((got > 0 && ++turns < 8) || (got < 0 && errno == EINTR));
    if (got > 0 || (got < 0 && errno == EAGAIN)) {
        watch_client(rl, cc, EPOLLIN);
        return;
    }
    aigw_handback_close_socket(cc);
    bury(rl, cc);
}

static void stream_client_ready(aigw_relay_t *rl, aigw_conn_t *cc,
                                apr_uint32_t events)
{
    aigw_exchange_t *x = cc->x;

    if (events & CLIENT_GONE) {
        aigw_exchange_client_gone(x);
    }
    else {
        aigw_exchange_client_ready(x, rl->now);
    }
    if (x->state == AIGW_X_ENDED) {
        settle_wait(rl, x, x->blocked);
        return;
    }
    if (!x->gone) { /* a client that left would be reported for ever */
        watch_client(rl, cc, x->blocked ? EPOLLOUT : 0);
    }
    run(rl, x);
}

static void client_ready(aigw_watch_t *w, apr_uint32_t events)
{
    aigw_conn_t *cc = w->owner;
    aigw_relay_t *rl = the_relay;

    switch (cc->waiting) {
    case AIGW_TASK_START:
        stream_client_ready(rl, cc, events);
        break;
    case AIGW_WAIT_REQUEST:
        wait_ends(rl, cc, (events & EPOLLIN) ? AIGW_BACK_PROCESS
                                             : AIGW_BACK_CLOSE);
        break;
    case AIGW_WAIT_READ:
    case AIGW_WAIT_WRITE:
        wait_ends(rl, cc, AIGW_BACK_IO);
        break;
    case AIGW_WAIT_LINGER:
        linger_read(rl, cc);
        break;
    default:
        break; /* a worker has it: one-shot, so nothing spins */
    }
}

static void client_due(aigw_timer_t *t, apr_time_t now)
{
    aigw_conn_t *cc = t->owner;

    (void)now;
    if (cc->waiting == AIGW_WAIT_LINGER) {
        aigw_handback_close_socket(cc);
        bury(the_relay, cc);
    }
    else if (cc->waiting) {
        wait_ends(the_relay, cc, AIGW_BACK_CLOSE);
    }
}

/* Connections between two requests must not take the place of streams: when
 * both together pass the bound, the one that waited longest is closed. */
static void make_room(aigw_relay_t *rl)
{
    int max = aigw_child()->max_streams;

    while (rl->idle_first
           && (rl->draining || rl->n_idle + rl->n_streams > max)) {
        wait_ends(rl, rl->idle_first, AIGW_BACK_CLOSE);
    }
}

static void start_stream(aigw_relay_t *rl, aigw_conn_t *cc)
{
    aigw_exchange_t *x = cc->x;

    rl->n_streams++;
    x->timer.index = -1;
    x->timer.fire = exchange_due;
    x->timer.owner = x;
    x->rec.own_us += rl->now - x->posted;
    watch_client(rl, cc, 0);
    aigw_exchange_begin(x, rl->now);
    run(rl, x);
    make_room(rl);
}

static void start_wait(aigw_relay_t *rl, aigw_conn_t *cc, int task)
{
    apr_interval_time_t limit = cc->wait_time;

    if (task == AIGW_WAIT_LINGER) {
        limit = LINGER_TIME;
    }
    timer_start(rl, &cc->timer, rl->now + limit);
    watch_client(rl, cc, task == AIGW_WAIT_WRITE ? EPOLLOUT : EPOLLIN);
    if (task == AIGW_WAIT_REQUEST) {
        link_idle(rl, cc);
        make_room(rl);
    }
}

static void accept_task(aigw_relay_t *rl, aigw_conn_t *cc)
{
    cc->waiting = cc->task;
    cc->watch.ready = client_ready;
    cc->watch.owner = cc;
    cc->timer.fire = client_due;
    cc->timer.owner = cc;
    switch (cc->task) {
    case AIGW_TASK_START:
        start_stream(rl, cc);
        break;
    case AIGW_TASK_GRAVE:
        bury(rl, cc);
        break;
    default:
        start_wait(rl, cc, cc->task);
    }
}

/* -- the turn ------------------------------------------------------------- */

static void drain_inbox(aigw_watch_t *w, apr_uint32_t events)
{
    aigw_relay_t *rl = w->owner;
    aigw_conn_t *cc, *next;
    apr_uint64_t count;

    (void)events;
    apr_thread_mutex_lock(rl->mutex);
    if (read(rl->wake_fd, &count, sizeof(count)) < 0) {
        /* EAGAIN: somebody woke us for nothing */
    }
    rl->woken = 0;
    cc = rl->inbox;
    rl->inbox = NULL;
    rl->inbox_end = &rl->inbox;
    apr_thread_mutex_unlock(rl->mutex);
    if (apr_atomic_read32(&rl->drain) && !rl->draining) {
        rl->draining = 1;
        make_room(rl);
    }
    for (; cc; cc = next) {
        next = cc->next;
        cc->next = NULL;
        accept_task(rl, cc);
    }
}

static void run_ready(aigw_relay_t *rl)
{
    aigw_exchange_t *x = rl->ready, *next;

    rl->ready = NULL;
    rl->ready_end = &rl->ready;
    for (; x; x = next) {
        next = x->ready_next;
        x->on_ready = 0;
        if (x->state == AIGW_X_ENDED) {
            stream_ended(rl, x);
        }
        else {
            run(rl, x);
        }
    }
}

static void fire_timers(aigw_relay_t *rl)
{
    while (rl->n_heap && rl->heap[0]->at <= rl->now) {
        aigw_timer_t *t = rl->heap[0];

        timer_stop(rl, t);
        t->fire(t, rl->now);
    }
}

static void empty_graves(aigw_relay_t *rl)
{
    aigw_conn_t *cc;

    while ((cc = rl->grave) != NULL
           && cc->suspended_at + GRAVE_TIME <= rl->now) {
        rl->grave = cc->next;
        if (rl->grave == NULL) {
            rl->grave_end = &rl->grave;
        }
        cc->next = NULL;
        aigw_handback_give(cc, AIGW_BACK_DESTROY);
    }
    while (rl->dead) {
        aigw_upconn_t *uc = rl->dead;

        rl->dead = uc->next;
        free(uc);
    }
}

/* In ms, rounded up so that a deadline has passed when we wake. */
static int poll_time(const aigw_relay_t *rl)
{
    apr_time_t at = rl->n_heap ? rl->heap[0]->at : 0;
    apr_time_t left;

    if (rl->ready) {
        return 0;
    }
    if (rl->grave && (!at || rl->grave->suspended_at + GRAVE_TIME < at)) {
        at = rl->grave->suspended_at + GRAVE_TIME;
    }
    left = at ? at - rl->now : apr_time_from_sec(3600);
    if (left > STUCK_TIME && aigw_handback_waiting()) {
        left = STUCK_TIME;
    }
    else if (!at) {
        return -1;
    }
    return left <= 0 ? 0 : left > apr_time_from_sec(3600)
           ? 3600000 : (int)((left + 999) / 1000);
}

static void *APR_THREAD_FUNC relay_main(apr_thread_t *thread, void *data)
{
    aigw_relay_t *rl = data;
    struct epoll_event ev[BATCH];

    while (!apr_atomic_read32(&rl->stop)) {
        int i, n = epoll_wait(rl->ep, ev, BATCH, poll_time(rl));

        rl->now = apr_time_now();
        for (i = 0; i < n; i++) {
            aigw_watch_t *w = ev[i].data.ptr;

            w->ready(w, ev[i].events);
        }
        run_ready(rl);
        fire_timers(rl);
        empty_graves(rl);
        aigw_handback_flush();
    }
    (void)thread;
    return NULL;
}

/* -- the doors ------------------------------------------------------------ */

static void wake(aigw_relay_t *rl)
{
    apr_uint64_t one = 1;

    if (write(rl->wake_fd, &one, sizeof(one)) < 0) {
        /* EAGAIN: the counter is full, so it is awake already */
    }
}

void aigw_relay_post(aigw_relay_t *rl, aigw_conn_t *cc, int task)
{
    int asleep;

    cc->task = task;
    cc->next = NULL;
    apr_thread_mutex_lock(rl->mutex);
    *rl->inbox_end = cc;
    rl->inbox_end = &cc->next;
    asleep = !rl->woken;
    rl->woken = 1;
    apr_thread_mutex_unlock(rl->mutex);
    if (asleep) {
        wake(rl);
    }
}

void aigw_relay_forget(aigw_relay_t *rl, int fd)
{
    epoll_ctl(rl->ep, EPOLL_CTL_DEL, fd, NULL);
}

void aigw_relay_drain(aigw_relay_t *rl)
{
    apr_atomic_set32(&rl->drain, 1);
    wake(rl);
}

void aigw_relay_stop(aigw_relay_t *rl)
{
    apr_status_t rv;

    apr_atomic_set32(&rl->stop, 1);
    wake(rl);
    apr_thread_join(&rv, rl->thread);
}

static apr_status_t open_fds(aigw_relay_t *rl)
{
    rl->ep = epoll_create1(EPOLL_CLOEXEC);
    rl->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (rl->ep < 0 || rl->wake_fd < 0) {
        return errno;
    }
    rl->wake_watch.ready = drain_inbox;
    rl->wake_watch.owner = rl;
    return watch(rl, EPOLL_CTL_ADD, rl->wake_fd, EPOLLIN,
                 &rl->wake_watch) == 0 ? APR_SUCCESS : errno;
}

apr_status_t aigw_relay_create(aigw_relay_t **relay, apr_size_t buffer_size,
                               apr_pool_t *pchild)
{
    aigw_relay_t *rl = apr_pcalloc(pchild, sizeof(*rl));
    apr_status_t rv;

    rl->buf_size = buffer_size;
    rl->buf = apr_palloc(pchild, buffer_size);
    rl->inbox_end = &rl->inbox;
    rl->ready_end = &rl->ready;
    rl->grave_end = &rl->grave;
    rl->now = apr_time_now();
    rv = apr_thread_mutex_create(&rl->mutex, APR_THREAD_MUTEX_DEFAULT,
                                 pchild);
    if (rv == APR_SUCCESS) {
        rv = open_fds(rl);
    }
    if (rv == APR_SUCCESS) {
        the_relay = *relay = rl;
        rv = ap_thread_create(&rl->thread, NULL, relay_main, rl, pchild);
    }
    return rv;
}
