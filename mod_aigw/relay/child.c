/* SPDX-License-Identifier: Apache-2.0 */
/* See child.h. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ap_mpm.h>
#include <apr_atomic.h>
#include <apr_general.h>

#include "child.h"
#include "handback.h"
#include "loop.h"
#include "../upstream/upconn.h"

static aigw_child_t *the_child;

aigw_child_t *aigw_child(void)
{
    return the_child;
}

int aigw_child_memory_full(void)
{
    const aigw_child_t *ch = the_child;
    apr_uint64_t cost = AIGW_EXCHANGE_COST
                        + (apr_uint64_t)aigw_config_main()->buffer_size;

    return ch->memory_limit
           && aigw_buffer_in_use()
              + cost * __atomic_load_n(&ch->streams, __ATOMIC_RELAXED)
              > ch->memory_limit;
}

void aigw_child_new_id(char *id)
{
    aigw_child_t *ch = the_child;

    apr_snprintf(id, AIGW_ID_LEN + 1, "%016" APR_UINT64_T_HEX_FMT "%08x",
                 ch->id_seed, apr_atomic_inc32(&ch->id_count));
}

void aigw_child_enlist(aigw_exchange_t *x)
{
    aigw_child_t *ch = the_child;

    apr_thread_mutex_lock(ch->mutex);
    x->live = 1;
    x->live_prev = NULL;
    x->live_next = ch->live;
    if (ch->live) {
        ch->live->live_prev = x;
    }
    ch->live = x;
    apr_thread_mutex_unlock(ch->mutex);
}

void aigw_child_delist(aigw_exchange_t *x)
{
    aigw_child_t *ch = the_child;

    if (!x->live) {
        return;
    }
    apr_thread_mutex_lock(ch->mutex);
    *(x->live_prev ? &x->live_prev->live_next : &ch->live) = x->live_next;
    if (x->live_next) {
        x->live_next->live_prev = x->live_prev;
    }
    x->live = 0;
    apr_thread_mutex_unlock(ch->mutex);
}

/* httpd stopped at once: no request that came in may be missing from the
 * ledger.  The relay and the workers have ended, so this thread is alone. */
static void settle_the_rest(aigw_child_t *ch)
{
    aigw_exchange_t *x;

    for (x = ch->live; x; x = x->live_next) {
        if (x->rec.end == AIGW_END_NONE) {
            x->rec.end = AIGW_END_TRUNCATED;
            x->rec.reason = AIGW_REASON_STOPPING;
        }
        ch->settle(x);
    }
}

/* Before pchild's own things go. The MPM has joined its workers by now. */
static apr_status_t child_ends(void *data)
{
    aigw_child_t *ch = data;

    apr_atomic_set32(&ch->stopping, 1);
    if (ch->relay) {
        aigw_relay_stop(ch->relay);
    }
    settle_the_rest(ch);
    close(ch->stop_fd);
    return APR_SUCCESS;
}

void aigw_child_stopping(apr_pool_t *pchild, int graceful)
{
    aigw_child_t *ch = the_child;
    apr_uint64_t one = 1;

    (void)pchild;
    if (ch == NULL) {
        return;
    }
    apr_atomic_set32(&ch->stopping, 1);
    if (ch->relay) {
        aigw_relay_drain(ch->relay);
    }
    if (!graceful) {
        if (write(ch->stop_fd, &one, sizeof(one)) < 0) {
            /* it is readable already */
        }
        aigw_handback_interrupt();
    }
}

static apr_status_t init_upstreams(aigw_child_t *ch)
{
    apr_array_header_t *all = aigw_config_main()->upstreams;
    int i;

    for (i = 0; i < all->nelts; i++) {
        aigw_upstream_t *up = APR_ARRAY_IDX(all, i, aigw_upstream_t *);
        apr_status_t rv = aigw_upconn_child_init(up, ch->pool);

        if (rv != APR_SUCCESS) {
            return rv;
        }
        up->rt->resolver_slot =
            up->proxy_host ? aigw_resolver_add(ch->resolver, up->proxy_host,
                                               up->proxy_port)
                           : aigw_resolver_add(ch->resolver, up->host,
                                               up->port);
    }
    return APR_SUCCESS;
}

/* Only the event MPM lets a connection go and calls back. */
static apr_status_t init_relay(aigw_child_t *ch)
{
    int async = 0, threaded = 0;

    ap_mpm_query(AP_MPMQ_IS_ASYNC, &async);
    ap_mpm_query(AP_MPMQ_IS_THREADED, &threaded);
    if (!async || !threaded) {
        return APR_SUCCESS;
    }
    return aigw_relay_create(&ch->relay,
                             (apr_size_t)aigw_config_main()->buffer_size,
                             ch->pool);
}

static void init_limits(aigw_child_t *ch)
{
    const aigw_main_t *m = aigw_config_main();
    int threads = 1;

    ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
    ch->max_streams = m->max_streams ? m->max_streams
                                     : m->max_streams_default;
    ch->memory_limit = (apr_uint64_t)m->memory_limit;
    ch->max_uploads = threads / 2 > 0 ? threads / 2 : 1;
}

static apr_status_t init_all(aigw_child_t *ch)
{
    apr_status_t rv;

    ch->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ch->stop_fd < 0) {
        return errno;
    }
    apr_generate_random_bytes((unsigned char *)&ch->id_seed,
                              sizeof(ch->id_seed));
    init_limits(ch);
    aigw_retries_init(&ch->retries);
    if ((rv = apr_thread_mutex_create(&ch->mutex, APR_THREAD_MUTEX_DEFAULT,
                                      ch->pool)) != APR_SUCCESS
        || (rv = aigw_buffer_child_init(ch->pool,
                                        (apr_size_t)aigw_config_main()
                                            ->buffer_max)) != APR_SUCCESS
        || (rv = aigw_resolver_create(&ch->resolver, apr_time_from_sec(60),
                                      ch->pool)) != APR_SUCCESS
        || (rv = init_upstreams(ch)) != APR_SUCCESS
        || (rv = aigw_handback_child_init(ch->pool)) != APR_SUCCESS
        || (rv = init_relay(ch)) != APR_SUCCESS) {
        return rv;
    }
    apr_pool_pre_cleanup_register(ch->pool, ch, child_ends);
    return APR_SUCCESS;
}

void aigw_child_init(apr_pool_t *pchild, server_rec *s,
                     void (*settle)(aigw_exchange_t *x))
{
    aigw_child_t *ch = apr_pcalloc(pchild, sizeof(*ch));
    apr_status_t rv;

    ch->s = s;
    ch->settle = settle;
    ch->pool = pchild;
    rv = init_all(ch);
    if (rv != APR_SUCCESS) {
        aigw_slog(s, AIGWNO(0501), APLOG_CRIT, rv,
                  "the gateway can't start in this child");
        return;
    }
    the_child = ch;
}
