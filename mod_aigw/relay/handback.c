/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See handback.h.  How a connection leaves and rejoins httpd 2.4's event MPM,
 * with public hooks alone:
 *
 *  1. The handler returns SUSPENDED.  The MPM sets CONN_STATE_SUSPENDED,
 *     counts the connection as suspended and runs suspend_connection: there
 *     it is posted to the relay.  Not earlier: until that hook the worker
 *     still uses it.
 *  2. After the hook the same worker stores c->sbh = NULL and one flag of its
 *     own.  A worker that goes on with the connection waits for the first;
 *     the pool is destroyed a second later at the earliest, for the second.
 *  3. The relay has it back by a timed callback with t = 0, which the
 *     listener pushes to a worker.  One callback may carry many connections.
 *  4. From then on the MPM has forgotten the connection.  go_on() does what
 *     its process_socket() would: write completion, keep-alive, the next
 *     request, lingering close.  Waits are the relay's.
 *  5. c->cs->state is SUSPENDED again when c->pool is destroyed, as the MPM's
 *     own cleanup on that pool counts by it.
 */
#include <sched.h>
#include <sys/socket.h>

#include <ap_mpm.h>
#include <apr_atomic.h>
#include <apr_portable.h>
#include <mpm_common.h>

#include "handback.h"
#include "child.h"
#include "loop.h"
#include "downstream.h"

#define PER_CALLBACK 32 /* connections given back in one turn of the relay */

/* -- the borrowed scoreboard handle --------------------------------------- */

typedef struct {
    int child, thread;
} slot_t;

static apr_threadkey_t *slot_key;  /* pchild */

/* The MPM wrote this thread's id into the scoreboard when it started it. */
static int find_slot(slot_t *slot)
{
    apr_os_thread_t me = apr_os_thread_current();
    pid_t pid = getpid();
    int limit = 0, threads = 0, i, j;

    ap_mpm_query(AP_MPMQ_HARD_LIMIT_DAEMONS, &limit);
    ap_mpm_query(AP_MPMQ_HARD_LIMIT_THREADS, &threads);
    for (i = 0; i < limit; i++) {
        for (j = 0; j < threads; j++) {
            worker_score *ws = ap_get_scoreboard_worker_from_indexes(i, j);

            if (ws && ws->pid == pid && apr_os_thread_equal(ws->tid, me)) {
                slot->child = i;
                slot->thread = j;
                return 1;
            }
        }
    }
    return 0;
}

static slot_t *my_slot(void)
{
    void *known = NULL;
    slot_t *slot;

    apr_threadkey_private_get(&known, slot_key);
    if (known == NULL) {
        slot = malloc(sizeof(*slot)); /* once a thread, until exit */
        ap_assert(slot != NULL);
        if (!find_slot(slot)) {
            slot->child = slot->thread = -1;
        }
        apr_threadkey_private_set(slot, slot_key);
        known = slot;
    }
    return known;
}

/* With a handle of its own, error-log lines say [client ...] and mod_status
 * counts the worker busy, as for any connection. */
static void borrow_handle(aigw_conn_t *cc)
{
    slot_t *slot = my_slot();

    if (slot->child < 0) {
        return;
    }
    if (cc->sbh == NULL) {
        ap_create_sb_handle(&cc->sbh, cc->c->pool, slot->child,
                            slot->thread);
    }
    else {
        ap_update_sb_handle(cc->sbh, slot->child, slot->thread);
    }
    cc->c->sbh = cc->sbh;
}

/* -- the list, and who is busy for us ------------------------------------- */

static struct {
    apr_thread_mutex_t *mutex;
    aigw_conn_t *first, **end; /* given back by the relay */
    aigw_conn_t *busy;         /* on a worker through us */
    int fresh;                 /* given since the last flush; relay thread */
} back;

static void mark_busy(aigw_conn_t *cc)
{
    cc->busy = 1;
    cc->busy_prev = NULL;
    cc->busy_next = back.busy;
    if (back.busy) {
        back.busy->busy_prev = cc;
    }
    back.busy = cc;
}

static void unmark_busy(aigw_conn_t *cc)
{
    if (!cc->busy) {
        return;
    }
    apr_thread_mutex_lock(back.mutex);
    *(cc->busy_prev ? &cc->busy_prev->busy_next : &back.busy)
        = cc->busy_next;
    if (cc->busy_next) {
        cc->busy_next->busy_prev = cc->busy_prev;
    }
    cc->busy = 0;
    apr_thread_mutex_unlock(back.mutex);
}

void aigw_handback_interrupt(void)
{
    aigw_conn_t *cc;

    apr_thread_mutex_lock(back.mutex);
    for (cc = back.busy; cc; cc = cc->busy_next) {
        shutdown(cc->fd, SHUT_RDWR);
    }
    apr_thread_mutex_unlock(back.mutex);
}

/* -- leaving -------------------------------------------------------------- */

void aigw_handback_attach(conn_rec *c)
{
    aigw_conn_t *cc;

    if (c->master) {
        return;
    }
    cc = apr_pcalloc(c->pool, sizeof(*cc));
    cc->c = c;
    cc->fd = -1;
    cc->timer.index = -1;
    ap_set_module_config(c->conn_config, &aigw_module, cc);
    aigw_downstream_attach(cc);
}

aigw_conn_t *aigw_handback_conn(conn_rec *c)
{
    return c->master ? NULL
                     : ap_get_module_config(c->conn_config, &aigw_module);
}

/* A child that is ending counts its connections once and goes when there is
 * none; one that still stood in its queue then is processed all the same, but
 * nobody would wait for it to come back.  The MPM changes its state before it
 * counts, and has counted this connection before the handler runs: a state
 * that still says "running" here means that it will be waited for. */
static int may_be_forgotten(const aigw_conn_t *cc)
{
    int state = AP_MPMQ_RUNNING;

    ap_mpm_query(AP_MPMQ_MPM_STATE, &state);
    return state == AP_MPMQ_STOPPING && !cc->ours;
}

int aigw_handback_possible(request_rec *r, const char **filter)
{
    conn_rec *c = r->connection;
    aigw_conn_t *cc = aigw_handback_conn(c);

    *filter = NULL;
    if (aigw_child()->relay == NULL || cc == NULL || c->cs == NULL || r->main
        || r->prev || c->clogging_input_filters || may_be_forgotten(cc)) {
        return 0;
    }
    *filter = aigw_downstream_foreign_filter(r);
    return *filter == NULL;
}

/* The connection is the relay's when this returns. */
static void release(aigw_conn_t *cc)
{
    apr_os_sock_t fd;

    if (cc->fd < 0) {
        apr_os_sock_get(&fd, ap_get_conn_socket(cc->c));
        cc->fd = fd;
    }
    unmark_busy(cc);
    cc->suspended_at = apr_time_now();
    cc->ours = 1;
    cc->armed = 1;
    cc->x->posted = cc->suspended_at;
    aigw_relay_post(aigw_child()->relay, cc, AIGW_TASK_START);
}

void aigw_handback_suspend(conn_rec *c, request_rec *r)
{
    aigw_conn_t *cc = aigw_handback_conn(c);

    (void)r;
    if (cc && cc->x && c->cs->state == CONN_STATE_SUSPENDED && !cc->ours) {
        release(cc);
    }
}

void aigw_handback_close_socket(aigw_conn_t *cc)
{
    if (cc->in_epoll) {
        aigw_relay_forget(aigw_child()->relay, cc->fd);
    }
    apr_socket_close(ap_get_conn_socket(cc->c));
    cc->in_epoll = 0;
}

/* -- what the MPM would do ------------------------------------------------ */

static void wait_on_relay(aigw_conn_t *cc, int task, apr_interval_time_t t)
{
    unmark_busy(cc);
    cc->wait_time = t;
    cc->c->sbh = NULL;
    cc->c->current_thread = NULL;
    aigw_relay_post(aigw_child()->relay, cc, task);
}

static void begin_lingering(aigw_conn_t *cc)
{
    apr_socket_t *csd = ap_get_conn_socket(cc->c);

    /* The last flush may wait, but not for the whole TimeOut. */
    apr_socket_timeout_set(csd, apr_time_from_sec(2));
    if (ap_start_lingering_close(cc->c)) {
        aigw_handback_close_socket(cc);
        wait_on_relay(cc, AIGW_TASK_GRAVE, 0);
        return;
    }
    wait_on_relay(cc, AIGW_WAIT_LINGER, 0);
}

static apr_status_t flush_core(conn_rec *c)
{
    ap_filter_t *f = c->output_filters;

    while (f->next) {
        f = f->next;
    }
    return f->frec->filter_func.out_func(f, NULL);
}

static apr_interval_time_t keep_alive_time(const conn_rec *c,
                                           const server_rec *s)
{
    const server_rec *from = s && s->keep_alive_timeout_set
                             ? s : c->base_server;

    return from->keep_alive_timeout;
}

/* CONN_STATE_WRITE_COMPLETION. @return 1 to process the next request at once,
 * 0 when the connection has been given away */
static int write_completion(aigw_conn_t *cc)
{
    conn_rec *c = cc->c;

    ap_update_child_status(c->sbh, SERVER_BUSY_WRITE, NULL);
    if (flush_core(c) != APR_SUCCESS) {
        begin_lingering(cc);
    }
    else if (c->data_in_output_filters) {
        wait_on_relay(cc, AIGW_WAIT_WRITE, c->base_server->timeout);
    }
    else if (c->keepalive != AP_CONN_KEEPALIVE || c->aborted
             || (!c->data_in_input_filters
                 && apr_atomic_read32(&aigw_child()->stopping))) {
        begin_lingering(cc);
    }
    else if (c->data_in_input_filters) {
        return 1;
    }
    else {
        c->cs->state = CONN_STATE_KEEPALIVE;
        wait_on_relay(cc, AIGW_WAIT_REQUEST,
                      keep_alive_time(c, cc->last_server));
    }
    return 0;
}

static void process(aigw_conn_t *cc)
{
    conn_rec *c = cc->c;

    cc->armed = 0; /* whatever runs next may write and wait as it likes */
    cc->x = NULL;
    c->cs->state = CONN_STATE_PROCESSING;
    if (ap_run_process_connection(c) != OK
        || c->cs->state == CONN_STATE_PROCESSING) {
        c->cs->state = CONN_STATE_LINGER;
    }
    else if (c->cs->state == CONN_STATE_KEEPALIVE) {
        c->cs->state = CONN_STATE_WRITE_COMPLETION;
    }
    if (c->aborted) {
        c->cs->state = CONN_STATE_LINGER;
    }
}

/* Another module suspended the connection: it wakes it by means of its own,
 * as it would have under the MPM. */
static void suspend_again(aigw_conn_t *cc)
{
    conn_rec *c = cc->c;

    if (cc->x) {
        c->sbh = NULL;
        c->current_thread = NULL;
        release(cc);
        return;
    }
    unmark_busy(cc);
    ap_run_suspend_connection(c, NULL);
    c->sbh = NULL;
}

/* Go on from c->cs->state until the connection is given away. */
static void go_on(aigw_conn_t *cc)
{
    conn_rec *c = cc->c;

    for (;;) {
        switch (c->cs->state) {
        case CONN_STATE_WRITE_COMPLETION:
            if (!write_completion(cc)) {
                return;
            }
            c->cs->state = CONN_STATE_PROCESSING;
            break;
        case CONN_STATE_PROCESSING:
            process(cc);
            break;
        case CONN_STATE_SUSPENDED:
            suspend_again(cc);
            return;
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 135)
        case CONN_STATE_ASYNC_WAITIO:
            wait_on_relay(cc, c->cs->sense == CONN_SENSE_WANT_WRITE
                          ? AIGW_WAIT_WRITE : AIGW_WAIT_READ,
                          c->base_server->timeout);
            return;
#endif
        default:
            begin_lingering(cc);
            return;
        }
    }
}

/* What process_request does after a handler that was not suspended. */
static void finish(aigw_conn_t *cc)
{
    request_rec *r = cc->x->r;

    cc->last_server = r->server;
    cc->armed = 0;
    cc->x->posted = 0;
    ap_finalize_request_protocol(r);
    cc->x = NULL;
    ap_process_request_after_handler(r); /* logs; r and x are gone */
    go_on(cc);
}

static void destroy(aigw_conn_t *cc)
{
    cc->c->cs->state = CONN_STATE_SUSPENDED;
    apr_pool_destroy(cc->c->pool);
}

/* -- the callback --------------------------------------------------------- */

static aigw_conn_t *pop(void)
{
    aigw_conn_t *cc;

    apr_thread_mutex_lock(back.mutex);
    cc = back.first;
    if (cc) {
        __atomic_store_n(&back.first, cc->next, __ATOMIC_RELAXED);
        if (back.first == NULL) {
            back.end = &back.first;
        }
        cc->next = NULL;
        if (cc->task != AIGW_BACK_DESTROY) {
            mark_busy(cc);
        }
    }
    apr_thread_mutex_unlock(back.mutex);
    return cc;
}

/* The worker that suspended it may not have made its last store yet: it is
 * one instruction away, so this loop runs hardly ever. */
static void await_release(const conn_rec *c)
{
    while (*(void *const volatile *)&c->sbh != NULL) {
        sched_yield();
    }
}

static void go_back(aigw_conn_t *cc)
{
    conn_rec *c = cc->c;

    await_release(c);
    if (cc->task == AIGW_BACK_DESTROY) {
        destroy(cc);
        return;
    }
    borrow_handle(cc);
    c->current_thread = ap_thread_current();
    switch (cc->task) {
    case AIGW_BACK_FINISH:
        finish(cc);
        break;
    case AIGW_BACK_PROCESS:
        c->cs->state = CONN_STATE_PROCESSING;
        go_on(cc);
        break;
    case AIGW_BACK_IO:
        if (c->cs->state != CONN_STATE_WRITE_COMPLETION) {
            c->cs->state = CONN_STATE_PROCESSING;
        }
        go_on(cc);
        break;
    default:
        begin_lingering(cc);
    }
}

static void on_worker(void *baton)
{
    aigw_conn_t *cc;

    (void)baton;
    while ((cc = pop()) != NULL) {
        go_back(cc);
    }
}

void aigw_handback_give(aigw_conn_t *cc, int why)
{
    cc->task = why;
    cc->next = NULL;
    apr_thread_mutex_lock(back.mutex);
    *back.end = cc;
    back.end = &cc->next;
    apr_thread_mutex_unlock(back.mutex);
    back.fresh++;
}

/* A callback carries many connections; a second is asked for when there are
 * many more, so that other cores take part. */
void aigw_handback_flush(void)
{
    int n;

    if (back.fresh == 0 && !aigw_handback_waiting()) {
        return;
    }
    n = 1 + back.fresh / PER_CALLBACK;
    back.fresh = 0;
    while (n-- > 0) {
        ap_mpm_register_timed_callback(0, on_worker, NULL);
    }
}

int aigw_handback_waiting(void)
{
    return __atomic_load_n(&back.first, __ATOMIC_RELAXED) != NULL;
}

apr_status_t aigw_handback_child_init(apr_pool_t *pchild)
{
    apr_status_t rv;

    back.end = &back.first;
    rv = apr_threadkey_private_create(&slot_key, NULL, pchild);
    return rv == APR_SUCCESS
           ? apr_thread_mutex_create(&back.mutex, APR_THREAD_MUTEX_DEFAULT,
                                     pchild)
           : rv;
}
