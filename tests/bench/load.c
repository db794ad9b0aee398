/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load generator that believes nothing: one thread, one epoll, and on each
 * connection one request after the other.  Every request has a tag of its
 * own, which the simulated provider repeats in every piece of its answer, so
 * that a piece that is missing, came twice or is somebody else's is counted.
 * A request whose reused connection closes before any byte of an answer is
 * sent again once on a new one, as HTTP clients do; that is counted apart.
 */
#define _GNU_SOURCE 1
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"

#define SLOW_BYTES 2048 /* a slow reader takes so much every TICK_MS */
#define TICK_MS 5
#define RETRY_MS 20 /* after a refused connection */

typedef enum conn_state_t {
    CONN_OFF = 0, /* nothing open; begins at wake_at */
    CONN_CONNECTING,
    CONN_SENDING,
    CONN_READING,
    CONN_OVER /* no request is left for it */
} conn_state_t;

typedef struct conn_t {
    int fd;
    conn_state_t state;
    kind_t *kind;
    char tag[64];
    char out[2048];
    size_t out_n, out_at;
    uint64_t began_us, wake_us, leave_us;
    int first;  /* a byte of the answer has come */
    int reused; /* this request is not the connection's first */
    int again;  /* this request still has to be sent, for the second time */
    int sent;   /* how many times */
    answer_t answer;
} conn_t;

/* Ends of a request, as the log names them. */
typedef enum end_t {
    END_WHOLE = 0,
    END_STATUS,  /* a whole answer with another status than 200 */
    END_SHORT,   /* a clean end, but not all events */
    END_CUT,     /* closed in mid-answer */
    END_NOTHING, /* closed before any byte, on a new connection */
    END_CONNECT,
    END_BAD, /* framing that is none */
    END_TIMEOUT,
    END_LEFT, /* as meant: the client left */
    ENDS
} end_t;

static const char *const end_names[ENDS] = {"whole", "status",  "short",
                                            "cut",   "nothing", "connect",
                                            "bad",   "timeout", "left"};

static options_t opt;
static conn_t *conns;
static int poll_fd;
static uint64_t now_us, start_us, begun, open_now, open_max;

static struct counts_t {
    uint64_t requests, ok, failed, foreign, unasked, resent;
    uint64_t ends[ENDS];
    uint64_t contents, connections;
    uint64_t window_ok, window_contents, window_from_us, window_to_us;
    histogram_t whole, first, event;
} count;

static uint64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t random_below(uint64_t n)
{
    static uint64_t x;

    if (!x) {
        x = opt.seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    }
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return n ? (x >> 11) % n : 0;
}

static int in_window(void)
{
    uint64_t at = now_us - start_us;

    return at >= opt.warmup_ms * 1000 && at < opt.window_ms * 1000;
}

static void note_stamp(void *ctx, uint64_t ns)
{
    uint64_t now = clock_ns();

    (void)ctx;
    if (in_window() && now > ns) {
        histogram_add(&count.event, (now - ns) / 1000);
    }
}

/* ---- one request ---- */
static kind_t *choose_kind(void)
{
    uint64_t at = random_below(opt.weights);
    kind_t *k = opt.kinds;

    while (at >= k->weight) {
        at -= k->weight;
        k++;
    }
    return k;
}

static void write_request(conn_t *c)
{
    char body[1024];
    size_t model = strlen(opt.model);
    int own = opt.model[model - 1] == '-';
    int n = snprintf(body, sizeof(body),
                     "{\"model\":\"%s%s\",\"messages\":[{\"role\":\"user\","
                     "\"content\":\"%s sim:tag=%s sim:echo=%s\"}]%s}",
                     opt.model, own ? c->tag : "", c->kind->text, c->tag,
                     c->tag, c->kind->stream ? ",\"stream\":true" : "");
    int m = snprintf(c->out, sizeof(c->out),
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                     "Accept: application/json\r\n"
                     "Content-Type: application/json\r\n"
                     "User-Agent: OpenAI/JS 6.49.0\r\n"
                     "X-Stainless-Lang: js\r\nX-Stainless-OS: Linux\r\n"
                     "X-Stainless-Package-Version: 6.49.0\r\n"
                     "X-Stainless-Retry-Count: 0\r\n"
                     "Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
                     "%s",
                     opt.path, opt.port, opt.key, n, body);

    if (n >= (int)sizeof(body) || m >= (int)sizeof(c->out)) {
        fputs("load: a request is too long\n", stderr);
        exit(2);
    }
    c->out_n = (size_t)m;
}

static void watch(conn_t *c, int op, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data = {.ptr = c}};

    if (epoll_ctl(poll_fd, op, c->fd, &ev) != 0) {
        perror("load: epoll_ctl");
        exit(2);
    }
}

static void hang_up(conn_t *c, int reset)
{
    struct linger l = {.l_onoff = 1, .l_linger = 0};

    if (c->fd < 0) {
        return;
    }
    if (reset) {
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
    }
    close(c->fd);
    c->fd = -1;
    open_now--;
}

static void send_rest(conn_t *c);

static void connect_now(conn_t *c)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    int one = 1, small = 4096;

    to.sin_port = htons((uint16_t)opt.port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        perror("load: socket");
        exit(2);
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (c->kind->fate == FATE_SLOW) {
        setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    }
    open_now++;
    if (open_now > open_max) {
        open_max = open_now;
    }
    count.connections++;
    c->reused = 0;
    c->state = CONN_CONNECTING;
    connect(c->fd, (struct sockaddr *)&to, sizeof(to));
    watch(c, EPOLL_CTL_ADD, EPOLLOUT);
}

static void send_now(conn_t *c)
{
    c->out_at = 0;
    c->first = 0;
    c->sent++;
    answer_begin(&c->answer, c->tag);
    if (c->fd < 0) {
        connect_now(c);
        return;
    }
    c->reused = 1;
    c->state = CONN_SENDING;
    send_rest(c);
}

static int may_begin(void)
{
    return begun < opt.requests && now_us - start_us < opt.window_ms * 1000;
}

static void begin(conn_t *c)
{
    if (!c->again && !may_begin()) {
        hang_up(c, 0);
        c->state = CONN_OVER;
        return;
    }
    if (!c->again) {
        kind_t *k = choose_kind();

        if (k->fate == FATE_SLOW || (c->kind && c->kind->fate == FATE_SLOW)) {
            hang_up(c, 0); /* a slow reader's buffer is a connection's own */
        }
        c->kind = k;
        c->sent = 0;
        snprintf(c->tag, sizeof(c->tag), "%s-%" PRIu64, opt.tag, begun++);
        write_request(c);
        c->began_us = now_us;
        c->leave_us = k->fate == FATE_ABORT
                          ? now_us + random_below(k->after * 1000)
                          : UINT64_MAX;
    }
    c->again = 0;
    send_now(c);
}

static int as_meant(const conn_t *c, end_t end)
{
    switch (c->kind->fate) {
    case FATE_WHOLE:
    case FATE_SLOW:
        return end == END_WHOLE;
    case FATE_ANY:
        return end != END_CONNECT && end != END_TIMEOUT && end != END_NOTHING
               && end != END_BAD;
    default:
        return end == END_WHOLE || end == END_LEFT;
    }
}

static void log_request(const conn_t *c, end_t end)
{
    if (opt.log) {
        fprintf(opt.log, "%s\t%d\t%d\t%s\t%" PRIu64 "\t%s\t%d\n", c->tag,
                (int)(c->kind - opt.kinds), c->answer.status, end_names[end],
                c->answer.marks, *c->answer.id ? c->answer.id : "-", c->sent);
    }
}

static void complain(const conn_t *c, end_t end)
{
    static int said;

    if (said++ < 20) {
        fprintf(stderr,
                "load: %s (kind %d) ended %s: status %d, %" PRIu64
                " contents, %" PRIu64 " foreign, id %s, after %" PRIu64
                " us\n",
                c->tag, (int)(c->kind - opt.kinds), end_names[end],
                c->answer.status, c->answer.marks, c->answer.foreign,
                c->answer.id, now_us - c->began_us);
    }
}

static void measure(const conn_t *c)
{
    if (!count.window_from_us) {
        count.window_from_us = now_us;
    }
    count.window_to_us = now_us;
    count.window_ok++;
    histogram_add(&count.whole, now_us - c->began_us);
}

/* The request is over; its connection goes on where it may. */
static void finish(conn_t *c, end_t end)
{
    int ok = as_meant(c, end) && !c->answer.foreign;

    count.requests++;
    count.ends[end]++;
    count.foreign += c->answer.foreign != 0;
    count.contents += c->answer.marks;
    count.ok += (uint64_t)ok;
    count.failed += (uint64_t)!ok;
    if (!ok) {
        complain(c, end);
    }
    if (end == END_WHOLE && in_window()) {
        measure(c);
    }
    log_request(c, end);
    if ((end != END_WHOLE && end != END_STATUS && end != END_SHORT)
        || !c->answer.keep) {
        hang_up(c, end == END_LEFT && random_below(2));
    }
    c->state = CONN_OFF;
    c->wake_us = end == END_CONNECT ? now_us + RETRY_MS * 1000 : now_us;
}

static void judge(conn_t *c)
{
    const answer_t *a = &c->answer;
    int whole = a->marks == (c->kind->stream ? c->kind->events : 1)
                && (!c->kind->stream || a->ended);

    finish(c, a->status != 200 ? END_STATUS : whole ? END_WHOLE : END_SHORT);
}

/* ---- its connection ---- */
static void closed(conn_t *c)
{
    answer_eof(&c->answer);
    if (c->answer.state == ANSWER_WHOLE) {
        judge(c);
    }
    else if (!c->first && c->reused && c->sent == 1) {
        hang_up(c, 0);
        count.resent++;
        c->again = 1;
        c->state = CONN_OFF;
        c->wake_us = now_us;
    }
    else {
        finish(c, c->first ? END_CUT : END_NOTHING);
    }
}

static void note_contents(uint64_t before, const conn_t *c)
{
    if (in_window()) {
        count.window_contents += c->answer.marks - before;
    }
}

static void read_some(conn_t *c)
{
    static char buf[65536];
    size_t want = c->kind->fate == FATE_SLOW ? SLOW_BYTES : sizeof(buf);
    ssize_t n = recv(c->fd, buf, want, 0);
    uint64_t before = c->answer.marks;
    size_t used;

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        closed(c);
        return;
    }
    if (!c->first) {
        c->first = 1;
        if (in_window()) {
            histogram_add(&count.first, now_us - c->began_us);
        }
    }
    used = answer_feed(&c->answer, buf, (size_t)n);
    note_contents(before, c);
    if (used < (size_t)n || c->answer.state == ANSWER_BAD) {
        count.unasked += used < (size_t)n;
        finish(c, END_BAD);
    }
    else if (c->answer.state == ANSWER_WHOLE) {
        judge(c);
    }
}

static void send_rest(conn_t *c)
{
    ssize_t n =
        send(c->fd, c->out + c->out_at, c->out_n - c->out_at, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN) {
        closed(c);
        return;
    }
    c->out_at += n > 0 ? (size_t)n : 0;
    if (c->out_at == c->out_n) {
        c->state = CONN_READING;
        watch(c, EPOLL_CTL_MOD, c->kind->fate == FATE_SLOW ? 0 : EPOLLIN);
        c->wake_us = now_us + TICK_MS * 1000;
    }
    else {
        watch(c, EPOLL_CTL_MOD, EPOLLOUT);
    }
}

static void ready(conn_t *c, uint32_t events)
{
    int error = 0;
    socklen_t size = sizeof(error);

    if (c->state == CONN_CONNECTING) {
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error) {
            finish(c, END_CONNECT);
            hang_up(c, 0);
            return;
        }
        c->state = CONN_SENDING;
    }
    if (c->state == CONN_SENDING) {
        send_rest(c);
    }
    else if (c->state == CONN_READING
             && (c->kind->fate != FATE_SLOW || !(events & EPOLLIN))) {
        read_some(c);
    }
}

/* What is due on a connection whatever its socket says. */
static void tick(conn_t *c)
{
    if (c->state == CONN_OFF && now_us >= c->wake_us) {
        begin(c);
    }
    else if (c->state == CONN_OFF || c->state == CONN_OVER) {
        return;
    }
    else if (now_us >= c->leave_us) {
        finish(c, END_LEFT);
    }
    else if (now_us - c->began_us > opt.timeout_ms * 1000) {
        finish(c, END_TIMEOUT);
    }
    else if (c->state == CONN_READING && c->kind->fate == FATE_SLOW
             && now_us >= c->wake_us) {
        c->wake_us = now_us + TICK_MS * 1000;
        read_some(c);
    }
}

static int tick_all(void)
{
    uint64_t i, left = 0;

    for (i = 0; i < opt.connections; i++) {
        tick(&conns[i]);
        left += conns[i].state != CONN_OVER;
    }
    return left != 0;
}

static void loop(void)
{
    struct epoll_event events[256];
    uint64_t ticked = 0;
    int i, n;

    for (;;) {
        n = epoll_wait(poll_fd, events, 256, TICK_MS);
        for (i = 0; i < n; i++) {
            conn_t *c = events[i].data.ptr;

            now_us = clock_ns() / 1000;
            ready(c, events[i].events);
            if (c->state == CONN_OFF && now_us >= c->wake_us) {
                begin(c); /* the next request follows at once */
            }
        }
        now_us = clock_ns() / 1000;
        if (now_us - ticked >= TICK_MS * 1000) {
            ticked = now_us;
            if (!tick_all()) {
                return;
            }
        }
    }
}

/* ---- the report ---- */
static void print_times(const char *name, const histogram_t *h)
{
    printf(",\"%s\":{\"n\":%" PRIu64 ",\"p50_us\":%" PRIu64
           ",\"p90_us\":%" PRIu64 ",\"p99_us\":%" PRIu64 ",\"max_us\":%" PRIu64
           "}",
           name, h->n, histogram_percentile(h, 50),
           histogram_percentile(h, 90), histogram_percentile(h, 99), h->max);
}

static uint64_t window_us(void)
{
    uint64_t whole = (opt.window_ms - opt.warmup_ms) * 1000;
    uint64_t seen = count.window_to_us - count.window_from_us;

    return opt.window_ms < UINT64_MAX / 2000000 ? whole : seen ? seen : 1;
}

static void report(void)
{
    int i;

    printf("{\"requests\":%" PRIu64 ",\"ok\":%" PRIu64 ",\"failed\":%" PRIu64
           ",\"foreign\":%" PRIu64 ",\"unasked\":%" PRIu64
           ",\"resent\":%" PRIu64 ",\"contents\":%" PRIu64
           ",\"connections\":%" PRIu64 ",\"open_max\":%" PRIu64,
           count.requests, count.ok, count.failed, count.foreign,
           count.unasked, count.resent, count.contents, count.connections,
           open_max);
    printf(",\"seconds\":%.6f,\"ends\":{", (double)(now_us - start_us) / 1e6);
    for (i = 0; i < ENDS; i++) {
        printf("%s\"%s\":%" PRIu64, i ? "," : "", end_names[i], count.ends[i]);
    }
    printf("},\"window\":{\"seconds\":%.6f,\"ok\":%" PRIu64
           ",\"contents\":%" PRIu64,
           (double)window_us() / 1e6, count.window_ok, count.window_contents);
    print_times("whole", &count.whole);
    print_times("first", &count.first);
    print_times("event", &count.event);
    puts("}}");
}

int main(int argc, char **argv)
{
    uint64_t i;

    options_read(&opt, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    conns = calloc(opt.connections, sizeof(*conns));
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!conns || poll_fd < 0) {
        perror("load");
        return 2;
    }
    start_us = now_us = clock_ns() / 1000;
    for (i = 0; i < opt.connections; i++) {
        conns[i].fd = -1;
        conns[i].answer.stamp = note_stamp;
        conns[i].wake_us =
            start_us + opt.spread_ms * 1000 * i / opt.connections;
    }
    loop();
    report();
    for (i = 0; i < opt.connections; i++) {
        answer_free(&conns[i].answer);
    }
    free(conns);
    close(poll_fd);
    return count.failed ? 1 : 0;
}
