/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection's state machine.  Invariants: in SIM_STATE_ANSWER epoll is
 * never asked for EPOLLIN, so EPOLLRDHUP is the peer's leaving (a peer that
 * shuts down its sending side after the request counts as gone); the next
 * piece of an answer is made only when all bytes of the last one were
 * written, so what is counted as sent was sent.
 */
#include "conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "io.h"
#include "ledger.h"
#include "route.h"

#define LINGER_NS (2000 * SIM_MS) /* how long the peer's FIN is waited for */
#define READS_MAX 16              /* reads in one turn of the loop */
#define STEPS_MAX 8               /* steps of an answer in one turn */

static void want(sim_conn_t *c, uint32_t mask)
{
    struct epoll_event ev;

    mask |= EPOLLRDHUP;
    if (mask == c->mask) {
        return;
    }
    memset(&ev, 0, sizeof(ev));
    ev.events = mask;
    ev.data.ptr = c;
    if (epoll_ctl(c->sim->ep, c->mask ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd,
                  &ev)
        != 0) {
        perror("aigw-sim: epoll_ctl");
        abort();
    }
    c->mask = mask;
}

static void wake_at(sim_conn_t *c, uint64_t due)
{
    sim_timers_set(&c->sim->timers, &c->timer, due);
}

/* The next turn of the loop: others come first. */
static void yield(sim_conn_t *c)
{
    wake_at(c, c->sim->now + 1);
}

static void answer_over(sim_conn_t *c)
{
    if (c->state == SIM_STATE_ANSWER) {
        c->sim->stats.streams_active -= (uint64_t)(c->ans.live != 0);
    }
    sim_answer_done(&c->ans);
    memset(&c->ans, 0, sizeof(c->ans));
}

void sim_conn_free(sim_conn_t *c)
{
    sim_t *sim = c->sim;

    sim_timers_clear(&sim->timers, &c->timer);
    answer_over(c);
    sim_request_reset(&c->req);
    sim_buf_free(&c->in);
    sim_buf_free(&c->out);
    SSL_free(c->ssl);
    close(c->fd);
    if (c->next) {
        c->next->prev = c->prev;
    }
    if (c->prev) {
        c->prev->next = c->next;
    }
    else {
        sim->conns = c->next;
    }
    sim->stats.open--;
    free(c);
}

static void reset_hard(sim_conn_t *c)
{
    struct linger now = {1, 0};

    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    sim_conn_free(c);
}

static void linger(sim_conn_t *c, int clean)
{
    sim_io_finish(c, clean);
    c->state = SIM_STATE_LINGER;
    sim_buf_free(&c->in);
    sim_buf_free(&c->out);
    want(c, EPOLLIN);
    wake_at(c, c->sim->now + LINGER_NS);
}

static void record(sim_conn_t *c, sim_end_t how)
{
    sim_stats_t *st = &c->sim->stats;

    if (sim_route_own(c)) {
        return;
    }
    st->complete += how == SIM_END_COMPLETE;
    st->aborted += how == SIM_END_ABORTED;
    st->faults += how == SIM_END_FAULT;
    sim_ledger_write(c, how);
}

static void peer_left(sim_conn_t *c)
{
    sim_stats_t *st = &c->sim->stats;
    uint64_t from = c->last_write ? c->last_write : c->began;

    if (c->state == SIM_STATE_ANSWER) {
        st->abort_us_last = (sim_clock_ns() - from) / 1000;
        if (st->abort_us_last > st->abort_us_max) {
            st->abort_us_max = st->abort_us_last;
        }
    }
    if (c->state == SIM_STATE_ANSWER || c->head_done) {
        record(c, SIM_END_ABORTED);
    }
    sim_conn_free(c);
}

/* ---- reading ---- */

static void begin_request(sim_conn_t *c)
{
    sim_request_reset(&c->req);
    sim_params_init(&c->par);
    c->head_done = 0;
    c->last_write = 0;
    c->bytes_sent = c->events_sent = 0;
    c->pause_until = 0;
}

static void begin_answer(sim_conn_t *c)
{
    sim_stats_t *st = &c->sim->stats;

    sim_request_look(&c->req);
    sim_route(c);
    if (!c->req.body_shown) {
        sim_buf_free(&c->req.body);
    }
    if (!sim_route_own(c)) {
        st->requests++;
        st->refused += c->ans.status == 401 || c->req.error != NULL;
        st->nth_max = c->nth > st->nth_max ? c->nth : st->nth_max;
    }
    if (c->ans.live) {
        st->streams++;
        if (++st->streams_active > st->streams_active_max) {
            st->streams_active_max = st->streams_active;
        }
    }
    c->began = sim_clock_ns();
    if (c->par.first_byte_ms) {
        c->ans.due = c->began + c->par.first_byte_ms * SIM_MS;
    }
    c->state = SIM_STATE_ANSWER;
    c->idle_fault = SIM_FAULT_NONE;
    sim_timers_clear(&c->sim->timers, &c->timer);
    want(c, 0);
}

static int answer_100(sim_conn_t *c)
{
    size_t done;

    sim_buf_str(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
    /* 25 bytes into an empty socket buffer: they fit, or the peer is gone */
    if (sim_io_write(c, SIM_BUF_SIZE(&c->out), &done) != SIM_IO_OK) {
        return 0;
    }
    sim_buf_drop(&c->out, done);
    c->sim->stats.bytes_sent += done;
    return 1;
}

/* @return 1 a request is complete or refused; 0 more is needed; -1 gone */
static int parse(sim_conn_t *c)
{
    int rc;

    if (!c->head_done) {
        rc = sim_request_head(&c->req, &c->in);
        c->nth += rc != 0;
        if (rc <= 0) {
            return rc ? 1 : 0;
        }
        c->head_done = 1;
        c->began = sim_clock_ns();
        if (c->req.expect && (c->req.length || c->req.chunked)
            && !SIM_BUF_SIZE(&c->in) && !answer_100(c)) {
            return -1;
        }
    }
    return sim_request_body(&c->req, &c->in) ? 1 : 0;
}

/* @return 1 a request is there; 0 wait for more, or the connection is gone */
static int read_request(sim_conn_t *c)
{
    int reads = 0, rc;
    sim_io_t io;

    while ((rc = parse(c)) == 0) {
        if (reads++ == READS_MAX) {
            yield(c);
            return 0;
        }
        io = sim_io_read(c);
        if (io == SIM_IO_AGAIN) {
            want(c, EPOLLIN);
            return 0;
        }
        if (io == SIM_IO_GONE) {
            peer_left(c);
            return 0;
        }
        if (c->reuse_trap) {
            linger(c, 1);
            return 0;
        }
    }
    if (rc < 0) {
        peer_left(c);
        return 0;
    }
    begin_answer(c);
    return 1;
}

/* ---- answering ---- */

/* @return 1 all was written; 0 wait, or the connection is gone */
static int flush(sim_conn_t *c)
{
    size_t n, done;
    sim_io_t io;

    while ((n = SIM_BUF_SIZE(&c->out)) > 0) {
        if (c->par.split) {
            if (c->pause_until > c->sim->now) {
                wake_at(c, c->pause_until);
                return 0;
            }
            n = n > c->par.split ? (size_t)c->par.split : n;
        }
        io = sim_io_write(c, n, &done);
        if (io == SIM_IO_AGAIN) {
            want(c, EPOLLOUT);
            return 0;
        }
        if (io == SIM_IO_GONE) {
            peer_left(c);
            return 0;
        }
        sim_buf_drop(&c->out, done);
        c->bytes_sent += done;
        c->sim->stats.bytes_sent += done;
        c->sim->stats.writes++;
        c->last_write = sim_clock_ns();
        c->pause_until = c->last_write + c->par.split_us * 1000;
    }
    want(c, 0);
    return 1;
}

static void arm_idle_fault(sim_conn_t *c)
{
    uint64_t ms = c->par.fault_n;

    c->idle_fault = c->par.fault;
    if (c->idle_fault == SIM_FAULT_CLOSE_WHEN_IDLE) {
        wake_at(c, c->last_write + (ms == SIM_UNSET ? 50 : ms) * SIM_MS);
    }
    else if (c->idle_fault == SIM_FAULT_EXTRA_BYTES_LATE) {
        wake_at(c, c->last_write + (ms == SIM_UNSET ? 20 : ms) * SIM_MS);
    }
    else if (c->idle_fault == SIM_FAULT_CLOSE_ON_REUSE) {
        c->reuse_trap = 1;
    }
}

/* @return 1 the connection goes on reading; 0 it is closing or gone */
static int finish(sim_conn_t *c)
{
    sim_then_t then = c->ans.then;
    int cut = c->ans.cut;

    record(c, cut ? SIM_END_FAULT : SIM_END_COMPLETE);
    answer_over(c);
    if (then == SIM_THEN_RST) {
        reset_hard(c);
        return 0;
    }
    if (then == SIM_THEN_FIN) {
        linger(c, !cut);
        return 0;
    }
    c->state = SIM_STATE_READ;
    sim_timers_clear(&c->sim->timers, &c->timer);
    arm_idle_fault(c);
    begin_request(c);
    return 1;
}

static void note_lateness(sim_conn_t *c)
{
    uint64_t late = (c->sim->now - c->ans.due) / 1000;

    if (c->ans.live && c->ans.made && c->ans.due && c->par.period_ns
        && late > c->sim->stats.late_us_max) {
        c->sim->stats.late_us_max = late;
    }
}

/* All ticks are whole milliseconds: streams that are due within the same one
 * share a turn of the loop. */
static uint64_t tick(uint64_t due)
{
    return (due + SIM_MS - 1) / SIM_MS * SIM_MS;
}

/* @return 1 the answer is over and the connection reads on; else 0 */
static int answer(sim_conn_t *c)
{
    int steps;

    for (steps = 0;; steps++) {
        if (!flush(c)) {
            return 0;
        }
        c->sim->stats.events += c->ans.made - c->events_sent;
        c->events_sent = c->ans.made;
        if (c->ans.then == SIM_THEN_HOLD) {
            return 0;
        }
        if (c->ans.then != SIM_THEN_MORE) {
            return finish(c);
        }
        if (tick(c->ans.due) > c->sim->now) {
            wake_at(c, tick(c->ans.due));
            return 0;
        }
        if (steps == STEPS_MAX) {
            yield(c);
            return 0;
        }
        note_lateness(c);
        sim_answer_step(&c->ans, &c->out, c->sim->now);
    }
}

/* ---- the machine ---- */

static void run(sim_conn_t *c)
{
    int go = 1;

    while (go) {
        go = c->state == SIM_STATE_READ ? read_request(c) : answer(c);
    }
}

static void handshake(sim_conn_t *c)
{
    uint32_t mask = 0;

    switch (sim_io_handshake(c, &mask)) {
    case SIM_IO_OK:
        c->state = SIM_STATE_READ;
        run(c);
        break;
    case SIM_IO_AGAIN:
        want(c, mask);
        break;
    case SIM_IO_GONE:
        sim_conn_free(c);
        break;
    }
}

static void drain(sim_conn_t *c)
{
    char waste[4096];
    ssize_t n;
    int i;

    for (i = 0; i < READS_MAX; i++) {
        n = recv(c->fd, waste, sizeof(waste), MSG_DONTWAIT);
        if (n < (ssize_t)sizeof(waste)) {
            break;
        }
    }
}

void sim_conn_ready(sim_conn_t *c, uint32_t events)
{
    uint32_t bad = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);

    if (c->state == SIM_STATE_LINGER) {
        drain(c);
        if (bad) {
            sim_conn_free(c);
        }
    }
    else if (c->state == SIM_STATE_TLS) {
        handshake(c);
    }
    else if (c->state == SIM_STATE_ANSWER && bad) {
        peer_left(c);
    }
    else {
        run(c);
    }
}

static void idle_due(sim_conn_t *c)
{
    uint64_t fault = c->idle_fault;
    size_t done;

    c->idle_fault = SIM_FAULT_NONE;
    if (fault == SIM_FAULT_CLOSE_WHEN_IDLE && !c->head_done) {
        linger(c, 1);
        return;
    }
    if (fault == SIM_FAULT_EXTRA_BYTES_LATE && !c->head_done) {
        sim_buf_str(&c->out, sim_answer_extra);
        if (sim_io_write(c, SIM_BUF_SIZE(&c->out), &done) == SIM_IO_GONE) {
            peer_left(c);
            return;
        }
        sim_buf_free(&c->out);
    }
    run(c);
}

void sim_conn_due(sim_conn_t *c)
{
    if (c->state == SIM_STATE_LINGER) {
        sim_conn_free(c);
    }
    else if (c->state == SIM_STATE_READ) {
        idle_due(c);
    }
    else {
        run(c);
    }
}

static void start_tls(sim_conn_t *c)
{
    c->ssl = SSL_new(c->sim->tls);
    if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1) {
        sim_conn_free(c);
        return;
    }
    c->state = SIM_STATE_TLS;
    want(c, EPOLLIN);
    handshake(c);
}

void sim_conn_open(sim_t *sim, int fd)
{
    sim_conn_t *c = calloc(1, sizeof(*c));

    if (!c) {
        close(fd);
        return;
    }
    c->sim = sim;
    c->fd = fd;
    c->next = sim->conns;
    if (c->next) {
        c->next->prev = c;
    }
    sim->conns = c;
    sim->stats.open++;
    sim->stats.accepted++;
    c->no = ++sim->last_no;
    c->state = SIM_STATE_READ;
    begin_request(c);
    if (sim->tls) {
        start_tls(c);
        return;
    }
    run(c);
}
