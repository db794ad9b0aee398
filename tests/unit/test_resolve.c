/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names to addresses: who asks, how often, what is served meanwhile.  The
 * system's getaddrinfo answers for literals and localhost; for the rest a
 * name server of our own stands in its place, which counts, waits and fails
 * as a test wants it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <cmocka.h>
#include <apr_general.h>
#include <apr_strings.h>
#include "upstream/resolve_int.h"

#define MSEC(n) apr_time_from_msec(n)
#define LONG_TTL apr_time_from_sec(60)

/* ---- a name server of our own ------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int asked;          /* how often, all names */
    int rc;             /* what getaddrinfo returns */
    const char *answer; /* addresses, divided by blanks */
    int shut;           /* nobody is answered */
    int slow_shut;      /* slow.test is not answered */
    int inside;         /* who waits for that */
} ns =
    {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, NULL, 0, 0, 0};

static void ns_set(int rc, const char *answer)
{
    pthread_mutex_lock(&ns.lock);
    ns.rc = rc;
    ns.answer = answer;
    pthread_mutex_unlock(&ns.lock);
}

static void ns_shut(int shut, int slow_shut)
{
    pthread_mutex_lock(&ns.lock);
    ns.shut = shut;
    ns.slow_shut = slow_shut;
    pthread_cond_broadcast(&ns.changed);
    pthread_mutex_unlock(&ns.lock);
}

static int ns_read(const int *field)
{
    int n;

    pthread_mutex_lock(&ns.lock);
    n = *field;
    pthread_mutex_unlock(&ns.lock);
    return n;
}

static void ns_wait(const int *field, int n)
{
    int i;

    for (i = 0; i < 1000 && ns_read(field) != n; i++)
        usleep(5000);
    assert_int_equal(ns_read(field), n);
}

static struct addrinfo *link_one(const char *text, const struct addrinfo *how,
                                 struct addrinfo *next)
{
    struct addrinfo hints = *how, *one = NULL;

    hints.ai_flags = AI_NUMERICHOST;
    if (getaddrinfo(text, NULL, &hints, &one) != 0)
        abort();
    one->ai_next = next;
    return one;
}

static void build(const char *answer, const struct addrinfo *hints,
                  struct addrinfo **list)
{
    char text[64];
    const char *end = strchr(answer, ' ');
    size_t n = end != NULL ? (size_t)(end - answer) : strlen(answer);

    *list = NULL;
    if (n == 0)
        return;
    if (end != NULL)
        build(end + 1, hints, list);
    memcpy(text, answer, n);
    text[n] = '\0';
    *list = link_one(text, hints, *list);
}

static int ns_ask(const char *host, const char *service,
                  const struct addrinfo *hints, struct addrinfo **list)
{
    int rc, slow = strcmp(host, "slow.test") == 0;
    const char *answer;

    if (service != NULL || hints->ai_socktype != SOCK_STREAM
        || hints->ai_family != AF_UNSPEC)
        abort();
    pthread_mutex_lock(&ns.lock);
    ns.asked++;
    ns.inside++;
    while (ns.shut || (slow && ns.slow_shut))
        pthread_cond_wait(&ns.changed, &ns.lock);
    ns.inside--;
    rc = ns.rc;
    answer = ns.answer;
    pthread_mutex_unlock(&ns.lock);
    if (rc == 0)
        build(answer, hints, list);
    return rc;
}

static void ns_release(struct addrinfo *list)
{
    struct addrinfo *next;

    for (; list != NULL; list = next) {
        next = list->ai_next;
        list->ai_next = NULL;
        freeaddrinfo(list);
    }
}

/* ---- the cache under test ---------------------------------------------- */

static apr_pool_t *pool;
static aigw_resolver_t *rs;

static void make(apr_interval_time_t ttl)
{
    assert_int_equal(aigw_resolver_create(&rs, ttl, pool), APR_SUCCESS);
}

static void make_with_ns(apr_interval_time_t ttl)
{
    make(ttl);
    rs->ask = ns_ask;
    rs->release = ns_release;
}

/* The addresses of a get, as "127.0.0.1:80 ::1:80", or why not. */
static const char *got(int slot)
{
    static __thread char line[1000];
    char text[INET6_ADDRSTRLEN];
    aigw_addrs_t out;
    const char *why = "not set";
    int i, at = 0;

    if (aigw_resolver_get(rs, slot, &out, &why) != AIGW_OK) {
        if (out.n != 0 || why == NULL)
            abort();
        return why;
    }
    if (out.n < 1 || out.n > AIGW_ADDRS || why != NULL)
        abort();
    for (i = 0; i < out.n; i++) {
        if (getnameinfo((struct sockaddr *)&out.addr[i].sa, out.addr[i].len,
                        text, sizeof(text), NULL, 0, NI_NUMERICHOST)
            != 0)
            abort();
        at += apr_snprintf(line + at, sizeof(line) - at, "%s%s:%u",
                           at > 0 ? " " : "", text,
                           ntohs(((struct sockaddr_in *)&out.addr[i].sa)
                                     ->sin_port));
    }
    return line;
}

static void sleep_msec(int n)
{
    usleep(n * 1000);
}

/* Until a get says it, for five seconds. */
static void wait_for_answer(int slot, const char *expected)
{
    int i;

    for (i = 0; i < 500 && strcmp(got(slot), expected) != 0; i++)
        sleep_msec(10);
    assert_string_equal(got(slot), expected);
}

/* ---- names that need nobody -------------------------------------------- */

static void literals_are_known_without_asking(void **state)
{
    (void)state;
    make_with_ns(LONG_TTL);
    ns_shut(1, 0);
    assert_string_equal(got(aigw_resolver_add(rs, "192.0.2.7", 443)),
                        "192.0.2.7:443");
    assert_string_equal(got(aigw_resolver_add(rs, "2001:db8::7", 8080)),
                        "2001:db8::7:8080");
    assert_string_equal(got(aigw_resolver_add(rs, "::1", 1)), "::1:1");
    sleep_msec(50);
    assert_int_equal(ns_read(&ns.asked), 0);
    ns_shut(0, 0);
}

static void localhost_is_resolved_by_the_system(void **state)
{
    (void)state;
    make(LONG_TTL);
    assert_non_null(strstr(got(aigw_resolver_add(rs, "localhost", 8000)),
                           "127.0.0.1:8000"));
}

static void name_that_does_not_exist_fails_in_the_system_s_words(void **state)
{
    /* Too long a label: nobody needs to be asked. */
    char name[] = "x23456789-123456789-123456789-123456789-"
                  "123456789-123456789-123456789.test";
    struct addrinfo *list;
    int rc = getaddrinfo(name, NULL, NULL, &list);

    (void)state;
    assert_int_not_equal(rc, 0);
    make(LONG_TTL);
    assert_string_equal(got(aigw_resolver_add(rs, name, 80)),
                        gai_strerror(rc));
}

static void slot_nobody_registered_fails(void **state)
{
    (void)state;
    make_with_ns(LONG_TTL);
    assert_string_equal(got(0), "the name was not registered");
    assert_string_equal(got(-1), "the name was not registered");
}

static void same_name_and_port_share_a_slot(void **state)
{
    (void)state;
    make_with_ns(LONG_TTL);
    ns_set(0, "192.0.2.1");
    assert_int_equal(aigw_resolver_add(rs, "a.test", 80), 0);
    assert_int_equal(aigw_resolver_add(rs, "a.test", 443), 1);
    assert_int_equal(aigw_resolver_add(rs, "b.test", 80), 2);
    assert_int_equal(aigw_resolver_add(rs, "a.test", 80), 0);
    assert_string_equal(got(0), "192.0.2.1:80");
    assert_string_equal(got(1), "192.0.2.1:443");
}

/* ---- lists ------------------------------------------------------------- */

static void addresses_rotate_within_their_family(void **state)
{
    int slot;

    (void)state;
    make_with_ns(LONG_TTL);
    ns_set(0, "2001:db8::1 2001:db8::2 192.0.2.1 192.0.2.2 192.0.2.3");
    slot = aigw_resolver_add(rs, "a.test", 80);
    assert_string_equal(got(slot), "2001:db8::1:80 2001:db8::2:80 "
                                   "192.0.2.1:80 192.0.2.2:80 192.0.2.3:80");
    assert_string_equal(got(slot), "2001:db8::2:80 2001:db8::1:80 "
                                   "192.0.2.2:80 192.0.2.3:80 192.0.2.1:80");
    assert_string_equal(got(slot), "2001:db8::1:80 2001:db8::2:80 "
                                   "192.0.2.3:80 192.0.2.1:80 192.0.2.2:80");
    assert_int_equal(ns_read(&ns.asked), 1);
}

static void rotation_keeps_the_system_s_order_of_families(void **state)
{
    int slot;

    (void)state;
    make_with_ns(LONG_TTL);
    ns_set(0, "192.0.2.1 2001:db8::1 192.0.2.2");
    slot = aigw_resolver_add(rs, "a.test", 80);
    assert_string_equal(got(slot), "192.0.2.1:80 2001:db8::1:80 192.0.2.2:80");
    assert_string_equal(got(slot), "192.0.2.2:80 2001:db8::1:80 192.0.2.1:80");
}

static void same_address_twice_counts_once(void **state)
{
    (void)state;
    make_with_ns(LONG_TTL);
    ns_set(0, "192.0.2.1 192.0.2.1 ::1 192.0.2.2 ::1");
    assert_string_equal(got(aigw_resolver_add(rs, "a.test", 80)),
                        "192.0.2.1:80 ::1:80 192.0.2.2:80");
}

static void long_list_is_cut_but_keeps_both_families(void **state)
{
    (void)state;
    make_with_ns(LONG_TTL);
    ns_set(0, "::1 ::2 ::3 ::4 ::5 ::6 ::7 ::8 ::9 192.0.2.1 192.0.2.2");
    assert_string_equal(got(aigw_resolver_add(rs, "a.test", 80)),
                        "::1:80 ::2:80 ::3:80 ::4:80 ::5:80 ::6:80 "
                        "192.0.2.1:80 192.0.2.2:80");
    ns_set(0, "::1 ::2 ::3 ::4 ::5 ::6 ::7 ::8 ::9");
    assert_string_equal(got(aigw_resolver_add(rs, "b.test", 80)),
                        "::1:80 ::2:80 ::3:80 ::4:80 ::5:80 ::6:80 "
                        "::7:80 ::8:80");
}

static void empty_list_is_a_failure(void **state)
{
    (void)state;
    make_with_ns(LONG_TTL);
    ns_set(0, "");
    assert_string_equal(got(aigw_resolver_add(rs, "a.test", 80)),
                        "no IPv4 or IPv6 address");
}

/* ---- who asks ---------------------------------------------------------- */

#define RUNNERS 24

typedef struct {
    int slot;
    char said[200];
} runner_t;

static void *run(void *data)
{
    runner_t *r = data;

    apr_cpystrn(r->said, got(r->slot), sizeof(r->said));
    return NULL;
}

static void start_all(pthread_t *id, runner_t *r, int slot)
{
    int i;

    for (i = 0; i < RUNNERS; i++) {
        r[i].slot = slot;
        assert_int_equal(pthread_create(&id[i], NULL, run, &r[i]), 0);
    }
}

static void join_all(pthread_t *id, runner_t *r, const char *expected)
{
    int i;

    for (i = 0; i < RUNNERS; i++) {
        pthread_join(id[i], NULL);
        assert_string_equal(r[i].said, expected);
    }
}

static void many_threads_on_a_cold_name_ask_once(void **state)
{
    pthread_t id[RUNNERS];
    runner_t r[RUNNERS];
    int slot;

    (void)state;
    make_with_ns(LONG_TTL);
    ns_set(0, "192.0.2.1");
    ns_shut(1, 0);
    slot = aigw_resolver_add(rs, "a.test", 80);
    start_all(id, r, slot);
    sleep_msec(100);
    assert_int_equal(ns_read(&ns.asked), 1);
    ns_shut(0, 0);
    join_all(id, r, "192.0.2.1:80");
    assert_int_equal(ns_read(&ns.asked), 1);
}

static void workers_ask_where_the_refresh_thread_hangs(void **state)
{
    pthread_t id[RUNNERS];
    runner_t r[RUNNERS];
    int slot;

    (void)state;
    make_with_ns(LONG_TTL);
    ns_set(0, "192.0.2.1");
    ns_shut(0, 1);
    aigw_resolver_add(rs, "slow.test", 80);
    ns_wait(&ns.inside, 1);
    slot = aigw_resolver_add(rs, "a.test", 80);
    start_all(id, r, slot);
    join_all(id, r, "192.0.2.1:80");
    assert_int_equal(ns_read(&ns.asked), 2);
    assert_int_equal(ns_read(&ns.inside), 1);
    ns_shut(0, 0);
}

static void many_threads_share_a_failure(void **state)
{
    pthread_t id[RUNNERS];
    runner_t r[RUNNERS];
    int slot;

    (void)state;
    make_with_ns(LONG_TTL);
    ns_set(EAI_AGAIN, NULL);
    ns_shut(1, 0);
    slot = aigw_resolver_add(rs, "a.test", 80);
    start_all(id, r, slot);
    sleep_msec(50);
    ns_shut(0, 0);
    join_all(id, r, gai_strerror(EAI_AGAIN));
    assert_int_equal(ns_read(&ns.asked), 1);
}

static void name_is_asked_for_before_the_first_get(void **state)
{
    (void)state;
    make_with_ns(LONG_TTL);
    ns_set(0, "192.0.2.1");
    sleep_msec(50); /* the thread waits for a name by now */
    aigw_resolver_add(rs, "a.test", 80);
    ns_wait(&ns.asked, 1);
    assert_string_equal(got(0), "192.0.2.1:80");
    assert_int_equal(ns_read(&ns.asked), 1);
}

/* ---- failures ---------------------------------------------------------- */

static void failure_is_remembered_for_its_time(void **state)
{
    int slot, i;

    (void)state;
    make_with_ns(LONG_TTL);
    assert_int_equal(rs->failure_ttl, apr_time_from_sec(5));
    rs->failure_ttl = MSEC(1000);
    ns_set(EAI_NONAME, NULL);
    slot = aigw_resolver_add(rs, "a.test", 80);
    for (i = 0; i < 10; i++) {
        assert_string_equal(got(slot), gai_strerror(EAI_NONAME));
        sleep_msec(5);
    }
    assert_int_equal(ns_read(&ns.asked), 1);
    ns_set(0, "192.0.2.1");
    sleep_msec(1100);
    assert_string_equal(got(slot), "192.0.2.1:80");
    assert_int_equal(ns_read(&ns.asked), 2);
}

static void unused_failing_name_is_not_asked_for_again(void **state)
{
    (void)state;
    make_with_ns(LONG_TTL);
    rs->failure_ttl = MSEC(50);
    ns_set(EAI_FAIL, NULL);
    aigw_resolver_add(rs, "a.test", 80);
    sleep_msec(300);
    assert_int_equal(ns_read(&ns.asked), 1);
}

static void old_answer_is_served_while_refreshes_fail(void **state)
{
    apr_time_t begin = apr_time_now();
    int slot, i;

    (void)state;
    make_with_ns(MSEC(100));
    rs->failure_ttl = MSEC(50);
    ns_set(0, "192.0.2.1");
    slot = aigw_resolver_add(rs, "a.test", 80);
    assert_string_equal(got(slot), "192.0.2.1:80");
    ns_set(EAI_AGAIN, NULL);
    for (i = 0; i < 60; i++) {
        assert_string_equal(got(slot), "192.0.2.1:80");
        sleep_msec(10);
    }
    i = (int)((apr_time_now() - begin) / MSEC(50));
    assert_in_range(ns_read(&ns.asked), 4, i + 1);
    ns_set(0, "192.0.2.2");
    wait_for_answer(slot, "192.0.2.2:80");
}

/* ---- refreshing -------------------------------------------------------- */

static void used_name_is_refreshed_before_it_grows_old(void **state)
{
    apr_time_t begin, longest = 0, took;
    int slot, i;

    (void)state;
    make_with_ns(MSEC(1200));
    ns_set(0, "192.0.2.1");
    slot = aigw_resolver_add(rs, "a.test", 80);
    assert_string_equal(got(slot), "192.0.2.1:80");
    ns_set(0, "192.0.2.2");
    assert_string_equal(got(slot), "192.0.2.1:80");
    ns_shut(1, 0);
    ns_wait(&ns.asked, 2); /* after 900 ms */
    for (i = 0; i < 50; i++) {
        begin = apr_time_now();
        assert_string_equal(got(slot), "192.0.2.1:80");
        took = apr_time_now() - begin;
        longest = took > longest ? took : longest;
    }
    assert_true(longest < MSEC(400));
    ns_shut(0, 0);
    wait_for_answer(slot, "192.0.2.2:80");
}

static void unused_name_is_left_alone(void **state)
{
    (void)state;
    make_with_ns(MSEC(40));
    ns_set(0, "192.0.2.1");
    aigw_resolver_add(rs, "a.test", 80);
    ns_wait(&ns.asked, 1);
    sleep_msec(300);
    assert_int_equal(ns_read(&ns.asked), 1);
}

static void name_that_fell_out_of_use_is_asked_for_first(void **state)
{
    int slot;

    (void)state;
    make_with_ns(MSEC(40));
    ns_set(0, "192.0.2.1");
    slot = aigw_resolver_add(rs, "a.test", 80);
    ns_wait(&ns.asked, 1);
    sleep_msec(100);
    ns_set(0, "192.0.2.2");
    assert_string_equal(got(slot), "192.0.2.2:80");
}

static void hanging_refresh_holds_a_get_up_once_and_shortly(void **state)
{
    apr_time_t begin;
    int slot, i;

    (void)state;
    make_with_ns(MSEC(40));
    assert_int_equal(rs->patience, MSEC(500));
    rs->patience = MSEC(200);
    ns_set(0, "192.0.2.1");
    slot = aigw_resolver_add(rs, "a.test", 80);
    ns_wait(&ns.asked, 1);
    sleep_msec(100);
    ns_shut(1, 0);
    begin = apr_time_now();
    assert_string_equal(got(slot), "192.0.2.1:80");
    assert_true(apr_time_now() - begin >= MSEC(190));
    begin = apr_time_now();
    for (i = 0; i < 20; i++)
        assert_string_equal(got(slot), "192.0.2.1:80");
    assert_true(apr_time_now() - begin < MSEC(1000));
    ns_set(0, "192.0.2.2");
    ns_shut(0, 0);
    wait_for_answer(slot, "192.0.2.2:80");
}

/* ---- the end ----------------------------------------------------------- */

static void end_is_prompt_when_nobody_hangs(void **state)
{
    apr_time_t begin;

    (void)state;
    make_with_ns(LONG_TTL);
    ns_set(0, "192.0.2.1");
    assert_string_equal(got(aigw_resolver_add(rs, "a.test", 80)),
                        "192.0.2.1:80");
    begin = apr_time_now();
    apr_pool_clear(pool);
    assert_true(apr_time_now() - begin < MSEC(500));
}

static void end_does_not_wait_long_for_getaddrinfo(void **state)
{
    static aigw_resolver_t *left; /* what the cleanup had to leave behind */
    apr_time_t begin, took;

    (void)state;
    make_with_ns(LONG_TTL);
    left = rs;
    ns_set(0, "192.0.2.1");
    ns_shut(1, 0);
    aigw_resolver_add(rs, "a.test", 80);
    ns_wait(&ns.inside, 1);
    begin = apr_time_now();
    apr_pool_clear(pool);
    took = apr_time_now() - begin;
    assert_in_range(took, MSEC(900), MSEC(3000));
    ns_shut(0, 0);
    ns_wait(&ns.inside, 0);
    /* It comes back, and finds its memory. */
    pthread_mutex_lock(&left->lock);
    while (left->busy > 0)
        pthread_cond_wait(&left->changed, &left->lock);
    pthread_mutex_unlock(&left->lock);
}

/* ---- all of it --------------------------------------------------------- */

static int begin_all(void **state)
{
    (void)state;
    return apr_initialize() == APR_SUCCESS ? 0 : -1;
}

static int end_all(void **state)
{
    (void)state;
    apr_terminate();
    return 0;
}

static int with_pool(void **state)
{
    (void)state;
    ns_shut(0, 0);
    ns_set(0, "");
    ns.asked = 0;
    return apr_pool_create(&pool, NULL) == APR_SUCCESS ? 0 : -1;
}

static int without_pool(void **state)
{
    (void)state;
    ns_shut(0, 0);
    apr_pool_destroy(pool);
    return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, with_pool, without_pool)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(literals_are_known_without_asking),
        T(localhost_is_resolved_by_the_system),
        T(name_that_does_not_exist_fails_in_the_system_s_words),
        T(slot_nobody_registered_fails),
        T(same_name_and_port_share_a_slot),
        T(addresses_rotate_within_their_family),
        T(rotation_keeps_the_system_s_order_of_families),
        T(same_address_twice_counts_once),
        T(long_list_is_cut_but_keeps_both_families),
        T(empty_list_is_a_failure),
        T(many_threads_on_a_cold_name_ask_once),
        T(workers_ask_where_the_refresh_thread_hangs),
        T(many_threads_share_a_failure),
        T(name_is_asked_for_before_the_first_get),
        T(failure_is_remembered_for_its_time),
        T(unused_failing_name_is_not_asked_for_again),
        T(old_answer_is_served_while_refreshes_fail),
        T(used_name_is_refreshed_before_it_grows_old),
        T(unused_name_is_left_alone),
        T(name_that_fell_out_of_use_is_asked_for_first),
        T(hanging_refresh_holds_a_get_up_once_and_shortly),
        T(end_is_prompt_when_nobody_hangs),
        T(end_does_not_wait_long_for_getaddrinfo),
    };

    return cmocka_run_group_tests_name("resolve", tests, begin_all, end_all);
}
