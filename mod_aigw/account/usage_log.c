/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See usage_log.h.  Files are opened as root: a symbolic link in the last
 * place, and a folder where others may put files under our name, are
 * refused.  A line is written whole by one write(2), or it is reported lost.
 */
#include "usage_log.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <apr_atomic.h>
#include <apr_strings.h>

#include "config/config.h"
#include "log.h"
#include "log_program.h"

#define LOG_MODE 0640

struct aigw_usage_log_t {
    const char *name;             /* the file, or "|program" */
    int fd;                       /* until pconf goes */
    aigw_log_program_t *program;  /* NULL: a file */
    server_rec *server;           /* whose error log hears of faults */
    volatile apr_uint32_t minute; /* of the last fault that was logged */
    volatile apr_uint32_t lost;   /* lines since then */
    volatile apr_uint32_t torn;   /* a line without its end stands there */
};

static apr_array_header_t *logs; /* aigw_usage_log_t *, pconf */

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

void aigw_usage_log_child_init(void)
{
    int i;

    for (i = 0; i < logs->nelts; i++) {
        aigw_usage_log_t *log = APR_ARRAY_IDX(logs, i, aigw_usage_log_t *);
        if (log->program) {
            aigw_log_program_child_init(log->program);
        }
    }
}

/* A full disk makes thousands of faults a second; one line a minute tells. */
static void report(aigw_usage_log_t *log, apr_status_t rv, const char *what)
{
    apr_uint32_t now = (apr_uint32_t)(apr_time_sec(apr_time_now()) / 60);
    apr_uint32_t last = apr_atomic_read32(&log->minute);

    apr_atomic_inc32(&log->lost);
    if (now != last && apr_atomic_cas32(&log->minute, now, last) == last) {
        aigw_slog(log->server, AIGWNO(0612), APLOG_ERR, rv,
                  "usage log %s: %s; %u records of this child are lost since "
                  "the last such line",
                  log->name, what, (unsigned)apr_atomic_xchg32(&log->lost, 0));
    }
}

apr_status_t aigw_usage_log_write(aigw_usage_log_t *log, const char *line,
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
    if (done < 0) {
        rv = errno;
        apr_atomic_cas32(&log->torn, torn, 0);
        report(log, rv, "a record could not be written");
        return rv;
    }
    apr_atomic_set32(&log->torn, 1);
    report(log, APR_SUCCESS, "a record was written in part only");
    return APR_INCOMPLETE;
}
