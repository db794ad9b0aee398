/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slot a name.  Whoever finds a slot without an answer asks for it, one
 * thread at a time; the others wait for what that one brings.  A slot with an
 * answer is refreshed by the refresh thread alone, after three quarters of
 * the ttl and only if somebody used it since the last time.  An answer is
 * replaced by a newer one, never by a failure.
 *
 * It refuses to run on a thread that has something better to do than to
 * wait, and it keeps no thread of its own for names that are literals.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <netinet/in.h>
#include "resolve_int.h"

#define FAILURE_TTL apr_time_from_sec(5)
#define PATIENCE apr_time_from_msec(500)
#define SHUTDOWN_WAIT apr_time_from_sec(1)

typedef aigw_resolver_slot_t slot_t;

/* ---- time -------------------------------------------------------------- */

static apr_time_t now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return apr_time_from_sec(ts.tv_sec) + ts.tv_nsec / 1000;
}

/* Until something changes or the time has come. */
static void wait_until(aigw_resolver_t *rs, apr_time_t t)
{
    struct timespec ts;

    ts.tv_sec = (time_t)apr_time_sec(t);
    ts.tv_nsec = (long)apr_time_usec(t) * 1000;
    pthread_cond_timedwait(&rs->changed, &rs->lock, &ts);
}

/* ---- lists of addresses ------------------------------------------------ */

static int family(const aigw_addr_t *a)
{
    return a->sa.ss_family;
}

static int same(const aigw_addr_t *a, const aigw_addr_t *b)
{
    return a->len == b->len && memcmp(&a->sa, &b->sa, a->len) == 0;
}

static int usable(const struct addrinfo *ai)
{
    return (ai->ai_family == AF_INET || ai->ai_family == AF_INET6)
           && ai->ai_addrlen <= sizeof(struct sockaddr_storage);
}

/* How many of one family are taken: what the other one leaves free, and at
 * least half, so that a long list of one does not push the other out. */
static int share(const struct addrinfo *list, int fam)
{
    int other = 0;

    for (; list != NULL; list = list->ai_next)
        other += usable(list) && list->ai_family != fam;
    return AIGW_ADDRS - (other < AIGW_ADDRS / 2 ? other : AIGW_ADDRS / 2);
}

static void set_port(aigw_addr_t *a, apr_port_t port)
{
    if (family(a) == AF_INET6)
        ((struct sockaddr_in6 *)&a->sa)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&a->sa)->sin_port = htons(port);
}

static void add_unless_known(aigw_addrs_t *out, const aigw_addr_t *a, int max)
{
    int i, n = 0;

    for (i = 0; i < out->n; i++) {
        if (same(&out->addr[i], a))
            return;
        n += family(&out->addr[i]) == family(a);
    }
    if (n < max && out->n < AIGW_ADDRS)
        out->addr[out->n++] = *a;
}

static void copy_list(const struct addrinfo *list, apr_port_t port,
                      aigw_addrs_t *out)
{
    const struct addrinfo *ai;
    int max4 = share(list, AF_INET), max6 = share(list, AF_INET6);
    aigw_addr_t a;

    out->n = 0;
    for (ai = list; ai != NULL; ai = ai->ai_next) {
        if (!usable(ai))
            continue;
        memset(&a, 0, sizeof(a));
        memcpy(&a.sa, ai->ai_addr, ai->ai_addrlen);
        a.len = ai->ai_addrlen;
        set_port(&a, port);
        add_unless_known(out, &a, family(&a) == AF_INET6 ? max6 : max4);
    }
}

/* Where the steps-th next address of the same family stands. */
static int ahead(const aigw_addrs_t *in, int i, unsigned steps)
{
    int fam = family(&in->addr[i]);

    for (; steps > 0; steps--)
        do {
            i = (i + 1) % in->n;
        } while (family(&in->addr[i]) != fam);
    return i;
}

static void rotate(const aigw_addrs_t *in, unsigned turn, aigw_addrs_t *out)
{
    unsigned members;
    int i, j;

    out->n = in->n;
    for (i = 0; i < in->n; i++) {
        for (members = 0, j = 0; j < in->n; j++)
            members += family(&in->addr[j]) == family(&in->addr[i]);
        out->addr[i] = in->addr[ahead(in, i, turn % members)];
    }
}

/* ---- asking ------------------------------------------------------------ */

/* No AI_ADDRCONFIG: glibc would then leave out ::1 for localhost on a host
 * that has IPv6 on its loopback alone. */
static void fill_hints(struct addrinfo *hints, int flags)
{
    memset(hints, 0, sizeof(*hints));
    hints->ai_family = AF_UNSPEC;
    hints->ai_socktype = SOCK_STREAM;
    hints->ai_flags = flags;
}

/* Without the lock. @return NULL, or why not */
static const char *ask(aigw_resolver_t *rs, const slot_t *s, aigw_addrs_t *out)
{
    struct addrinfo hints, *list = NULL;
    int rc;

    fill_hints(&hints, 0);
    rc = rs->ask(s->host, NULL, &hints, &list);
    if (rc != 0)
        return gai_strerror(rc);
    copy_list(list, s->port, out);
    rs->release(list);
    return out->n > 0 ? NULL : "no IPv4 or IPv6 address";
}

/* With the lock, which is free while getaddrinfo runs. */
static void refresh(aigw_resolver_t *rs, slot_t *s)
{
    aigw_addrs_t found;
    const char *why;

    s->asking = 1;
    s->used = 0;
    pthread_mutex_unlock(&rs->lock);
    why = ask(rs, s, &found);
    pthread_mutex_lock(&rs->lock);
    s->asking = 0;
    if (why == NULL) {
        s->known = found;
        s->asked = now();
        s->retry = 0;
    }
    else {
        s->why = why;
        s->retry = now() + rs->failure_ttl;
    }
    pthread_cond_broadcast(&rs->changed);
}

/* ---- the refresh thread ------------------------------------------------ */

#define NEVER ((apr_time_t)-1)

static apr_time_t due(const aigw_resolver_t *rs, const slot_t *s)
{
    if (s->literal || s->asking || !s->used)
        return NEVER;
    if (s->retry != 0)
        return s->retry;
    return s->known.n > 0 ? s->asked + rs->ttl / 4 * 3 : 0;
}

static slot_t *first_due(const aigw_resolver_t *rs, apr_time_t *when)
{
    slot_t *first = NULL;
    apr_time_t t;
    int i;

    *when = NEVER;
    for (i = 0; i < rs->n; i++) {
        t = due(rs, rs->slot[i]);
        if (t != NEVER && (first == NULL || t < *when)) {
            first = rs->slot[i];
            *when = t;
        }
    }
    return first;
}

static void *keep_fresh(void *data)
{
    aigw_resolver_t *rs = data;
    apr_time_t when;
    slot_t *s;

    pthread_mutex_lock(&rs->lock);
    while (!rs->stop) {
        s = first_due(rs, &when);
        if (s == NULL)
            pthread_cond_wait(&rs->changed, &rs->lock);
        else if (when > now())
            wait_until(rs, when);
        else
            refresh(rs, s);
    }
    rs->busy--;
    pthread_cond_broadcast(&rs->changed);
    pthread_mutex_unlock(&rs->lock);
    return NULL;
}

/* httpd's signals are for its own threads. */
static int start_thread(aigw_resolver_t *rs)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rs->busy = 1;
    rc = pthread_create(&rs->thread, NULL, keep_fresh, rs);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

/* ---- begin and end ----------------------------------------------------- */

static void resolver_free(aigw_resolver_t *rs)
{
    int i;

    for (i = 0; i < rs->n; i++) {
        free(rs->slot[i]->host);
        free(rs->slot[i]);
    }
    free(rs->slot);
    pthread_cond_destroy(&rs->changed);
    pthread_mutex_destroy(&rs->lock);
    free(rs);
}

/* A thread that hangs in getaddrinfo still needs the memory: then it stays,
 * and goes with the process. */
static apr_status_t resolver_end(void *data)
{
    aigw_resolver_t *rs = data;
    apr_time_t limit = now() + SHUTDOWN_WAIT;
    int busy;

    pthread_mutex_lock(&rs->lock);
    rs->stop = 1;
    pthread_cond_broadcast(&rs->changed);
    while (rs->busy > 0 && now() < limit)
        wait_until(rs, limit);
    busy = rs->busy;
    pthread_mutex_unlock(&rs->lock);
    if (busy > 0) {
        pthread_detach(rs->thread);
        return APR_TIMEUP;
    }
    pthread_join(rs->thread, NULL);
    resolver_free(rs);
    return APR_SUCCESS;
}

static int init_sync(aigw_resolver_t *rs)
{
    pthread_condattr_t attr;
    int rc = pthread_condattr_init(&attr);

    if (rc != 0)
        return rc;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    rc = pthread_cond_init(&rs->changed, &attr);
    pthread_condattr_destroy(&attr);
    return rc != 0 ? rc : pthread_mutex_init(&rs->lock, NULL);
}

apr_status_t aigw_resolver_create(aigw_resolver_t **out,
                                  apr_interval_time_t ttl, apr_pool_t *pchild)
{
    aigw_resolver_t *rs = calloc(1, sizeof(*rs));
    int rc;

    *out = NULL;
    if (rs == NULL)
        return APR_ENOMEM;
    rs->ask = getaddrinfo;
    rs->release = freeaddrinfo;
    rs->ttl = ttl;
    rs->failure_ttl = FAILURE_TTL;
    rs->patience = PATIENCE;
    rc = init_sync(rs);
    if (rc == 0)
        rc = start_thread(rs);
    if (rc != 0) {
        free(rs);
        return APR_FROM_OS_ERROR(rc);
    }
    apr_pool_pre_cleanup_register(pchild, rs, resolver_end);
    *out = rs;
    return APR_SUCCESS;
}

/* ---- names ------------------------------------------------------------- */

static void look_for_literal(slot_t *s)
{
    struct addrinfo hints, *list;

    fill_hints(&hints, AI_NUMERICHOST);
    if (getaddrinfo(s->host, NULL, &hints, &list) != 0)
        return;
    copy_list(list, s->port, &s->known);
    freeaddrinfo(list);
    s->literal = s->known.n > 0;
}

static slot_t *slot_create(const char *host, apr_port_t port)
{
    slot_t *s = calloc(1, sizeof(*s));

    if (s == NULL || (s->host = strdup(host)) == NULL) {
        free(s);
        return NULL;
    }
    s->port = port;
    s->used = 1;
    look_for_literal(s);
    return s;
}

/* With the lock. */
static int append(aigw_resolver_t *rs, const char *host, apr_port_t port)
{
    slot_t **more = realloc(rs->slot, (rs->n + 1) * sizeof(*more));

    if (more == NULL)
        return -1;
    rs->slot = more;
    more[rs->n] = slot_create(host, port);
    if (more[rs->n] == NULL)
        return -1;
    pthread_cond_broadcast(&rs->changed);
    return rs->n++;
}

int aigw_resolver_add(aigw_resolver_t *rs, const char *host, apr_port_t port)
{
    int i;

    pthread_mutex_lock(&rs->lock);
    for (i = 0; i < rs->n; i++)
        if (rs->slot[i]->port == port && strcmp(rs->slot[i]->host, host) == 0)
            break;
    if (i == rs->n)
        i = append(rs, host, port);
    pthread_mutex_unlock(&rs->lock);
    return i;
}

/* ---- answers ----------------------------------------------------------- */

/* Nobody knows it: ask, or wait for the one who does. */
static void fetch(aigw_resolver_t *rs, slot_t *s)
{
    while (s->known.n == 0 && !rs->stop) {
        if (s->asking)
            pthread_cond_wait(&rs->changed, &rs->lock);
        else if (s->retry != 0 && now() < s->retry)
            return;
        else
            refresh(rs, s);
    }
}

/* It is known, but old: the refresh thread gets a moment, once per failure
 * time, as it may hang. */
static void freshen(aigw_resolver_t *rs, slot_t *s)
{
    apr_time_t limit = now() + rs->patience;
    apr_time_t old = s->asked;

    if (now() < s->asked + rs->ttl || now() < s->retry)
        return;
    while (s->asked == old && now() >= s->retry && now() < limit && !rs->stop)
        wait_until(rs, limit);
    if (s->asked == old && now() >= s->retry)
        s->retry = now() + rs->failure_ttl;
}

/* With the lock. */
static void mark_used(aigw_resolver_t *rs, slot_t *s)
{
    if (!s->literal && !s->used) {
        s->used = 1;
        pthread_cond_broadcast(&rs->changed);
    }
}

static aigw_rc_t serve(aigw_resolver_t *rs, slot_t *s, aigw_addrs_t *out,
                       const char **why)
{
    mark_used(rs, s);
    if (!s->literal) {
        fetch(rs, s);
        freshen(rs, s);
    }
    if (s->known.n == 0) {
        *why = rs->stop ? "httpd is stopping" : s->why;
        return AIGW_FAILED;
    }
    *why = NULL;
    rotate(&s->known, s->turn++, out);
    return AIGW_OK;
}

aigw_rc_t aigw_resolver_get(aigw_resolver_t *rs, int slot, aigw_addrs_t *out,
                            const char **why)
{
    aigw_rc_t rc = AIGW_FAILED;

    out->n = 0;
    *why = "the name was not registered";
    pthread_mutex_lock(&rs->lock);
    rs->busy++;
    if (slot >= 0 && slot < rs->n)
        rc = serve(rs, rs->slot[slot], out, why);
    rs->busy--;
    if (rs->stop)
        pthread_cond_broadcast(&rs->changed);
    pthread_mutex_unlock(&rs->lock);
    return rc;
}

aigw_rc_t aigw_resolver_peek(aigw_resolver_t *rs, int slot,
                             aigw_addrs_t *out)
{
    aigw_rc_t rc = AIGW_AGAIN;

    out->n = 0;
    pthread_mutex_lock(&rs->lock);
    if (slot >= 0 && slot < rs->n && !rs->stop) {
        mark_used(rs, rs->slot[slot]);
        if (rs->slot[slot]->known.n) {
            rotate(&rs->slot[slot]->known, rs->slot[slot]->turn++, out);
            rc = AIGW_OK;
        }
    }
    pthread_mutex_unlock(&rs->lock);
    return rc;
}
