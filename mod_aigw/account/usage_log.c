/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See usage_log.h.  Files are opened as root: a symbolic link in the last
 * place, and a folder where others may put files under our name, are
 * refused.  A line is written whole by one write(2), or it is reported lost.
 *
 * No worker waits for a program: its pipe is not blocking, and a record is
 * no longer than PIPE_BUF, so that a write takes all of it or nothing.  What
 * the pipe does not take waits in a queue of this child, with a bound, for
 * the one thread that waits for pipes.  A log's lines go out in the order in
 * which they came: while one waits, later ones wait behind it.
 */
#include "usage_log.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <apr_atomic.h>
#include <apr_strings.h>

#include "config/config.h"
#include "log.h"
#include "log_program.h"

#define LOG_MODE 0640
#define QUEUE_MAX (16 * 1024 * 1024)  /* bytes, all logs of a child */
#define END_TIME apr_time_from_sec(5) /* for what waits as the child ends */
#define POLL_MS 100 /* another log's lines, or the end, are seen then */

typedef struct waiting_t waiting_t;
struct waiting_t {
    waiting_t *next;
    apr_size_t n;
    char line[];
};

struct aigw_usage_log_t {
    const char *name;              /* the file, or "|program" */
    int fd;                        /* until pconf goes */
    aigw_log_program_t *program;   /* NULL: a file */
    server_rec *server;            /* whose error log hears of faults */
    volatile apr_uint32_t minute;  /* of the last fault that was logged */
    volatile apr_uint32_t lost;    /* lines since then */
    volatile apr_uint32_t torn;    /* a line without its end stands there */
    waiting_t *first, **last;      /* the queue; under the writer's mutex */
    volatile apr_uint32_t waiting; /* lines in it; 0: all are written */
};

static apr_array_header_t *logs; /* aigw_usage_log_t *, pconf */

/* Of a child; the parent has none. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a line came, or the end */
    pthread_t thread;
    int running;        /* there is a thread: a line has had to wait */
    struct pollfd *fds; /* the thread's; room for every log */
    apr_size_t bytes;   /* in all queues */
    apr_time_t end;     /* 0, or the child ends and gives up then */
} writer = {.mutex = PTHREAD_MUTEX_INITIALIZER,
            .changed = PTHREAD_COND_INITIALIZER};

static apr_status_t close_fd(void *ctx)
{
    close(((aigw_usage_log_t *)ctx)->fd);
    return APR_SUCCESS;
}

/* May others put a file of their own under that name, or a link to one? */
static const char *check_folder(const char *path, const struct stat *st,
                                apr_pool_t *ptemp)
{
    struct stat dir;
    const char *folder = dirname(apr_pstrdup(ptemp, path));

    if (stat(folder, &dir) != 0 || !(dir.st_mode & S_IWOTH)) {
        return NULL;
    }
    if (!(dir.st_mode & S_ISVTX)) {
        return "its folder can be written to by every user of this host; "
               "allowed is a folder that only root may write to, such as "
               "that of the error log";
    }
    if (st->st_nlink > 1 || (st->st_uid != 0 && st->st_uid != geteuid())) {
        return "it belongs to another user in a folder that every user may "
               "write to; allowed is a folder that only root may write to";
    }
    return NULL;
}

static const char *open_file(aigw_usage_log_t *log, apr_pool_t *pconf,
                             apr_pool_t *ptemp)
{
    static const char no_file[] =
        "it is not a file; allowed is a file, or a program, such as "
        "AIGWUsageLog \"|/usr/bin/rotatelogs logs/usage.%Y%m%d 86400\"";
    struct stat st;
    const char *fault = NULL;

    /* Not blocking: a FIFO that nobody reads must not hang the start. */
    log->fd = open(log->name,
                   O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC
                       | O_NONBLOCK,
                   LOG_MODE);
    if (log->fd < 0) {
        return errno == ELOOP   ? "it is a symbolic link; allowed is a file"
               : errno == ENXIO ? no_file
                                : strerror(errno);
    }
    if (fstat(log->fd, &st) != 0
        || !(S_ISREG(st.st_mode) || S_ISCHR(st.st_mode))) {
        fault = no_file;
    }
    if (!fault && S_ISREG(st.st_mode)) {
        fault = check_folder(log->name, &st, ptemp);
    }
    if (fault) {
        close_fd(log);
        return fault;
    }
    apr_pool_cleanup_register(pconf, log, close_fd, close_fd);
    return NULL;
}

static const char *open_program(aigw_usage_log_t *log, apr_pool_t *pconf)
{
    const char *why = NULL;

    log->program = aigw_log_program_start(log->name, log->server, pconf, &why);
    if (log->program) {
        log->fd = aigw_log_program_fd(log->program);
        if (fcntl(log->fd, F_SETFL, O_WRONLY | O_NONBLOCK) != 0) {
            why = strerror(errno);
        }
    }
    return why;
}

/* The log of that name: opened before, or now. NULL after an error line. */
static aigw_usage_log_t *open_log(server_rec *s, const char *spec,
                                  apr_pool_t *pconf, apr_pool_t *ptemp)
{
    aigw_usage_log_t *log;
    const char *fault;
    const char *name =
        *spec == '|' ? spec : ap_server_root_relative(pconf, spec);
    int i;

    for (i = 0; name && i < logs->nelts; i++) {
        log = APR_ARRAY_IDX(logs, i, aigw_usage_log_t *);
        if (strcmp(log->name, name) == 0) {
            return log;
        }
    }
    log = apr_pcalloc(pconf, sizeof(*log));
    log->name = name ? name : spec;
    log->server = s;
    log->last = &log->first;
    fault = !name          ? "it is not a path"
            : *name == '|' ? open_program(log, pconf)
                           : open_file(log, pconf, ptemp);
    if (fault) {
        aigw_slog(s, AIGWNO(0611), APLOG_STARTUP | APLOG_ERR, 0,
                  "AIGWUsageLog %s cannot be opened: %s", log->name, fault);
        return NULL;
    }
    APR_ARRAY_PUSH(logs, aigw_usage_log_t *) = log;
    return log;
}

int aigw_usage_log_open_all(apr_pool_t *pconf, apr_pool_t *plog,
                            apr_pool_t *ptemp, server_rec *s)
{
    (void)plog;
    logs = apr_array_make(pconf, 2, sizeof(aigw_usage_log_t *));
    for (; s; s = s->next) {
        aigw_server_t *sc = aigw_config_server(s);
        if (sc->log_spec) {
            sc->log = open_log(s, sc->log_spec, pconf, ptemp);
            if (!sc->log) {
                return !OK;
            }
        }
    }
    return OK;
}

static void tell(aigw_usage_log_t *log, apr_status_t rv, const char *what)
{
    aigw_slog(log->server, AIGWNO(0612), APLOG_ERR, rv,
              "usage log %s: %s; %u records of this child are lost since "
              "the last such line",
              log->name, what, (unsigned)apr_atomic_xchg32(&log->lost, 0));
}

/* A full disk makes thousands of faults a second; one line a minute tells. */
static void report(aigw_usage_log_t *log, apr_status_t rv, const char *what)
{
    apr_uint32_t now = (apr_uint32_t)(apr_time_sec(apr_time_now()) / 60);
    apr_uint32_t last = apr_atomic_read32(&log->minute);

    apr_atomic_inc32(&log->lost);
    if (now != last && apr_atomic_cas32(&log->minute, now, last) == last) {
        tell(log, rv, what);
    }
}

/* One write. APR_EAGAIN, from a pipe only: it has no room now. */
static apr_status_t append(aigw_usage_log_t *log, const char *line,
                           apr_size_t n)
{
    struct iovec iov[2];
    apr_uint32_t torn = apr_atomic_xchg32(&log->torn, 0);
    apr_status_t rv;
    ssize_t done;

    /* What was cut short before must not be glued to this line. */
    iov[0].iov_base = (void *)"\n";
    iov[0].iov_len = torn ? 1 : 0;
    iov[1].iov_base = (void *)line;
    iov[1].iov_len = n;
    do {
        done = writev(log->fd, torn ? iov : iov + 1, torn ? 2 : 1);
    } while (done < 0 && errno == EINTR);
    if (done == (ssize_t)(n + torn)) {
        return APR_SUCCESS;
    }
    rv = done < 0 ? errno : APR_INCOMPLETE;
    apr_atomic_cas32(&log->torn, done < 0 ? torn : 1, 0);
    return rv;
}

/* As append(); a fault is reported, but for a pipe without room. */
static apr_status_t append_or_report(aigw_usage_log_t *log, const char *line,
                                     apr_size_t n)
{
    apr_status_t rv = append(log, line, n);

    if (rv == APR_INCOMPLETE) {
        report(log, APR_SUCCESS, "a record was written in part only");
    }
    else if (rv != APR_SUCCESS
             && !(log->program && APR_STATUS_IS_EAGAIN(rv))) {
        report(log, rv, "a record could not be written");
    }
    return rv;
}

static waiting_t *first_of(aigw_usage_log_t *log)
{
    waiting_t *w;

    pthread_mutex_lock(&writer.mutex);
    w = log->first;
    pthread_mutex_unlock(&writer.mutex);
    return w;
}

static void drop_first(aigw_usage_log_t *log)
{
    waiting_t *w;

    pthread_mutex_lock(&writer.mutex);
    w = log->first;
    log->first = w->next;
    if (!log->first) {
        log->last = &log->first;
    }
    writer.bytes -= sizeof(*w) + w->n;
    apr_atomic_dec32(&log->waiting);
    pthread_mutex_unlock(&writer.mutex);
    free(w);
}

/* As much as the pipes take now, and not under the mutex, which a worker may
 * want. */
static void write_waiting(void)
{
    waiting_t *w;
    int i;

    for (i = 0; i < logs->nelts; i++) {
        aigw_usage_log_t *log = APR_ARRAY_IDX(logs, i, aigw_usage_log_t *);
        while (
            (w = first_of(log)) != NULL
            && !APR_STATUS_IS_EAGAIN(append_or_report(log, w->line, w->n))) {
            drop_first(log);
        }
    }
}

static void wait_for_room(void)
{
    nfds_t n = 0;
    int i;

    for (i = 0; i < logs->nelts; i++) {
        aigw_usage_log_t *log = APR_ARRAY_IDX(logs, i, aigw_usage_log_t *);
        if (apr_atomic_read32(&log->waiting)) {
            writer.fds[n].fd = log->fd;
            writer.fds[n++].events = POLLOUT;
        }
    }
    if (n) {
        poll(writer.fds, n, POLL_MS);
    }
}

static void *write_out(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&writer.mutex);
    while (!writer.end || (writer.bytes && apr_time_now() < writer.end)) {
        if (!writer.bytes) {
            pthread_cond_wait(&writer.changed, &writer.mutex);
            continue;
        }
        pthread_mutex_unlock(&writer.mutex);
        write_waiting();
        wait_for_room();
        pthread_mutex_lock(&writer.mutex);
    }
    pthread_mutex_unlock(&writer.mutex);
    return NULL;
}

/* Under the mutex. The thread is made when it is first needed. */
static int has_room(apr_size_t size)
{
    if (!writer.fds || writer.end || size > QUEUE_MAX - writer.bytes) {
        return 0;
    }
    if (!writer.running) {
        writer.running =
            pthread_create(&writer.thread, NULL, write_out, NULL) == 0;
    }
    return writer.running;
}

/* Under the mutex. w: NULL for no memory. */
static int put_last(aigw_usage_log_t *log, waiting_t *w)
{
    if (!w || !has_room(sizeof(*w) + w->n)) {
        return 0;
    }
    w->next = NULL;
    *log->last = w;
    log->last = &w->next;
    writer.bytes += sizeof(*w) + w->n;
    apr_atomic_inc32(&log->waiting);
    pthread_cond_signal(&writer.changed);
    return 1;
}

/* No signal meanwhile: prefork ends its child inside of a handler, and the
 * end needs the mutex. The thread gets none either. */
static apr_status_t enqueue(aigw_usage_log_t *log, const char *line,
                            apr_size_t n)
{
    sigset_t all, old;
    waiting_t *w;
    int ok;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    w = malloc(sizeof(*w) + n);
    if (w) {
        w->n = n;
        memcpy(w->line, line, n);
    }
    pthread_mutex_lock(&writer.mutex);
    ok = put_last(log, w);
    pthread_mutex_unlock(&writer.mutex);
    if (!ok) {
        free(w);
        report(log, APR_SUCCESS,
               "its program does not read, and no more "
               "records can wait");
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok ? APR_SUCCESS : APR_EAGAIN;
}

/* The last line of this child about that log, whatever the minute. */
static void report_rest(aigw_usage_log_t *log)
{
    while (log->first) {
        drop_first(log);
        apr_atomic_inc32(&log->lost);
    }
    if (log->program && apr_atomic_read32(&log->lost)) {
        tell(log, APR_SUCCESS, "this child ends");
    }
}

static apr_status_t end_writer(void *unused)
{
    int i;

    (void)unused;
    pthread_mutex_lock(&writer.mutex);
    writer.end = apr_time_now() + END_TIME;
    pthread_cond_signal(&writer.changed);
    pthread_mutex_unlock(&writer.mutex);
    if (writer.running) {
        pthread_join(writer.thread, NULL);
        writer.running = 0;
    }
    for (i = 0; i < logs->nelts; i++) {
        report_rest(APR_ARRAY_IDX(logs, i, aigw_usage_log_t *));
    }
    return APR_SUCCESS;
}

void aigw_usage_log_child_init(apr_pool_t *pchild)
{
    int i;

    for (i = 0; i < logs->nelts; i++) {
        aigw_usage_log_t *log = APR_ARRAY_IDX(logs, i, aigw_usage_log_t *);
        if (log->program) {
            aigw_log_program_child_init(log->program);
        }
    }
    writer.fds = apr_pcalloc(pchild, (apr_size_t)(logs->nelts + 1)
                                         * sizeof(*writer.fds));
    apr_pool_pre_cleanup_register(pchild, NULL, end_writer);
}

apr_status_t aigw_usage_log_write(aigw_usage_log_t *log, const char *line,
                                  apr_size_t n)
{
    apr_status_t rv = APR_EAGAIN;

    if (!apr_atomic_read32(&log->waiting)) {
        rv = append_or_report(log, line, n);
    }
    return log->program && APR_STATUS_IS_EAGAIN(rv) ? enqueue(log, line, n)
                                                    : rv;
}
