/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aigw-sim, a provider of language models on loopback: command line, the
 * listening socket and the loop.  It listens nowhere but on loopback,
 * because it logs what it gets and checks next to nothing.
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "conn.h"
#include "io.h"
#include "sim.h"

#define EVENTS_MAX 512
#define ACCEPT_MAX 256

typedef struct opts_t {
    const char *bind;
    const char *tls;
    const char *ledger;
    unsigned port;
} opts_t;

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "aigw-sim: %s: %s\n", what, why);
    return -1;
}

static void help(void)
{
    fputs("Usage: aigw-sim [--port N] [OPTION VALUE]...\n"
          "A simulated provider of language models (OpenAI's chat API) on "
          "loopback.\nPrints 'listening on ADDR:PORT' when it is ready; "
          "SIGTERM ends it.\n\n"
          "  --port N        0 takes any free port (default 0)\n"
          "  --bind ADDR     a loopback address, IPv4 or [::1] "
          "(default 127.0.0.1)\n"
          "  --tls CERT,KEY  PEM files; TLS instead of plain HTTP\n"
          "  --key K         accept only 'Authorization: Bearer K'\n"
          "  --ledger FILE   append a JSON line for each request that ended\n"
          "  --files DIR     folder of the files to play with sim:file=NAME\n"
          "  --help          this text\n",
          stdout);
    sim_params_help(stdout);
}

static int port_number(opts_t *o, const char *v)
{
    char *end;
    unsigned long n = strtoul(v, &end, 10);

    if (*v < '0' || *v > '9' || *end || n > 65535) {
        return fail("--port", "a number from 0 to 65535 is needed");
    }
    o->port = (unsigned)n;
    return 0;
}

static int parameter(sim_t *sim, const char *name, const char *v)
{
    sim_slice_t n = {name, strlen(name)}, s = {v, strlen(v)};
    sim_buf_t err = {0};
    int rc;

    if (!sim_params_known(name)) {
        fprintf(stderr, "aigw-sim: no option is called --%s (try --help)\n",
                name);
        return -1;
    }
    rc = sim_params_set(&sim->par, n, s, &err);
    if (rc != 0) {
        fprintf(stderr, "aigw-sim: --%s: %.*s\n", name,
                (int)SIM_BUF_SIZE(&err), SIM_BUF_AT(&err));
    }
    sim_buf_free(&err);
    return rc;
}

static int option(sim_t *sim, opts_t *o, const char *name, const char *v)
{
    if (strcmp(name, "port") == 0) {
        return port_number(o, v);
    }
    if (strcmp(name, "bind") == 0) {
        o->bind = v;
    }
    else if (strcmp(name, "tls") == 0) {
        o->tls = v;
    }
    else if (strcmp(name, "ledger") == 0) {
        o->ledger = v;
    }
    else if (strcmp(name, "key") == 0) {
        sim->key = v;
    }
    else if (strcmp(name, "files") == 0) {
        sim->files = v;
    }
    else {
        return parameter(sim, name, v);
    }
    return 0;
}

/* @return 0 go on; 1 help was wanted; -1 wrong */
static int options(sim_t *sim, opts_t *o, int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; i++) {
        char name[64];
        const char *eq = strchr(argv[i], '=');

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return 1;
        }
        if (strncmp(argv[i], "--", 2) != 0) {
            return fail(argv[i], "not an option (try --help)");
        }
        snprintf(name, sizeof(name), "%.*s", eq ? (int)(eq - argv[i] - 2) : 63,
                 argv[i] + 2);
        if (!eq && i + 1 >= argc) {
            return fail(argv[i], "a value is missing, or there is no such"
                                 " option (try --help)");
        }
        if (option(sim, o, name, eq ? eq + 1 : argv[++i]) != 0) {
            return -1;
        }
    }
    return 0;
}

typedef union addr_t {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} addr_t;

static int loopback(const opts_t *o, addr_t *a, socklen_t *len)
{
    const char *s = o->bind;

    memset(a, 0, sizeof(*a));
    if (strcmp(s, "::1") == 0 || strcmp(s, "[::1]") == 0) {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_addr = in6addr_loopback;
        a->v6.sin6_port = htons((uint16_t)o->port);
        *len = sizeof(a->v6);
        return 0;
    }
    a->v4.sin_family = AF_INET;
    a->v4.sin_port = htons((uint16_t)o->port);
    *len = sizeof(a->v4);
    if (inet_pton(AF_INET, s, &a->v4.sin_addr) != 1
        || ntohl(a->v4.sin_addr.s_addr) >> 24 != 127) {
        fprintf(stderr,
                "aigw-sim: --bind %s: a loopback address is needed, "
                "127.x.y.z or [::1]\n",
                s);
        return -1;
    }
    return 0;
}

static int listen_on(sim_t *sim, const opts_t *o)
{
    addr_t a;
    socklen_t len;
    int one = 1;

    if (loopback(o, &a, &len) != 0) {
        return -1;
    }
    sim->listener =
        socket(a.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sim->listener < 0) {
        return fail("socket", strerror(errno));
    }
    setsockopt(sim->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    /* inherited by accepted sockets: a write is a segment, at once */
    setsockopt(sim->listener, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (bind(sim->listener, &a.any, len) != 0
        || listen(sim->listener, 8192) != 0) {
        fprintf(stderr, "aigw-sim: %s port %u: %s\n", o->bind, o->port,
                strerror(errno));
        return -1;
    }
    return 0;
}

static int announce(const sim_t *sim)
{
    addr_t a;
    socklen_t len = sizeof(a);
    char text[64] = "";

    if (getsockname(sim->listener, &a.any, &len) != 0) {
        return fail("getsockname", strerror(errno));
    }
    if (a.any.sa_family == AF_INET6) {
        printf("listening on [::1]:%u\n", ntohs(a.v6.sin6_port));
    }
    else {
        inet_ntop(AF_INET, &a.v4.sin_addr, text, sizeof(text));
        printf("listening on %s:%u\n", text, ntohs(a.v4.sin_port));
    }
    fflush(stdout);
    return 0;
}

static int open_tls(sim_t *sim, const char *arg)
{
    char cert[4096];
    const char *comma = strchr(arg, ',');

    if (!comma || (size_t)(comma - arg) >= sizeof(cert)) {
        return fail("--tls", "CERT,KEY is needed, two PEM files");
    }
    snprintf(cert, sizeof(cert), "%.*s", (int)(comma - arg), arg);
    return sim_io_tls(sim, cert, comma + 1);
}

static int open_all(sim_t *sim, const opts_t *o)
{
    struct rlimit rl;

    if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
        rl.rlim_cur = rl.rlim_max;
        setrlimit(RLIMIT_NOFILE, &rl);
    }
    if (o->tls && open_tls(sim, o->tls) != 0) {
        return -1;
    }
    if (o->ledger) {
        sim->ledger =
            open(o->ledger, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (sim->ledger < 0) {
            return fail(o->ledger, strerror(errno));
        }
    }
    if (sim->files && access(sim->files, R_OK | X_OK) != 0) {
        return fail(sim->files, strerror(errno));
    }
    return listen_on(sim, o);
}

static void watch(int ep, int fd, void *what, uint32_t events)
{
    struct epoll_event ev;

    memset(&ev, 0, sizeof(ev));
    ev.events = events;
    ev.data.ptr = what;
    if (fd < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) != 0) {
        perror("aigw-sim: epoll_ctl");
        exit(1);
    }
}

static void accept_some(sim_t *sim)
{
    static int told;
    int i, fd;

    for (i = 0; i < ACCEPT_MAX; i++) {
        fd = accept4(sim->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno != EAGAIN && errno != ECONNABORTED) {
                if (!told++) {
                    perror("aigw-sim: accept");
                }
                usleep(10000); /* out of descriptors: don't spin */
            }
            return;
        }
        sim_conn_open(sim, fd);
    }
}

/* Wake at the first timer: to the nanosecond, so that split writes may
 * follow each other faster than epoll's milliseconds. */
static int arm(const sim_t *sim)
{
    static uint64_t armed;
    sim_timer_t *t = sim_timers_first(&sim->timers);
    struct itimerspec at;

    if (t && t->due <= sim_clock_ns()) {
        return 0;
    }
    if (t && t->due != armed) {
        memset(&at, 0, sizeof(at));
        at.it_value.tv_sec = (time_t)(t->due / 1000000000);
        at.it_value.tv_nsec = (long)(t->due % 1000000000);
        timerfd_settime(sim->alarm, TFD_TIMER_ABSTIME, &at, NULL);
        armed = t->due;
    }
    return -1;
}

static void run_timers(sim_t *sim)
{
    sim_timer_t *t;

    sim->now = sim_clock_ns();
    while ((t = sim_timers_first(&sim->timers)) && t->due <= sim->now) {
        sim_timers_clear(&sim->timers, t);
        sim_conn_due((sim_conn_t *)(void *)t);
    }
}

static void loop(sim_t *sim)
{
    struct epoll_event ev[EVENTS_MAX];
    int i, n;

    for (;;) {
        n = epoll_wait(sim->ep, ev, EVENTS_MAX, arm(sim));
        sim->now = sim_clock_ns();
        for (i = 0; i < n; i++) {
            if (ev[i].data.ptr == &sim->signals) {
                return;
            }
            if (ev[i].data.ptr == &sim->listener) {
                accept_some(sim);
            }
            else if (ev[i].data.ptr != &sim->alarm) {
                sim_conn_ready(ev[i].data.ptr, ev[i].events);
            }
        }
        run_timers(sim);
    }
}

static int serve(sim_t *sim)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    sim->ep = epoll_create1(EPOLL_CLOEXEC);
    sim->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    sim->alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    watch(sim->ep, sim->signals, &sim->signals, EPOLLIN);
    watch(sim->ep, sim->alarm, &sim->alarm, EPOLLIN | EPOLLET);
    watch(sim->ep, sim->listener, &sim->listener, EPOLLIN);
    if (announce(sim) != 0) {
        return 1;
    }
    loop(sim);
    while (sim->conns) {
        sim_conn_free(sim->conns);
    }
    sim_timers_free(&sim->timers);
    return 0;
}

int main(int argc, char **argv)
{
    static sim_t sim;
    opts_t o = {"127.0.0.1", NULL, NULL, 0};
    int rc;

    sim.ledger = -1;
    sim_params_init(&sim.par);
    rc = options(&sim, &o, argc, argv);
    if (rc > 0) {
        help();
        return 0;
    }
    if (rc < 0 || open_all(&sim, &o) != 0) {
        return 2;
    }
    rc = serve(&sim);
    SSL_CTX_free(sim.tls);
    return rc;
}
