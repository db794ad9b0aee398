/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many exchanges a child may carry before the web sites beside it
 * suffer, and warnings where AIGWMaxStreams asks for more.
 *
 * The event MPM stops accepting in a child once its connections reach
 *
 *     ThreadsPerChild + idle threads x AsyncRequestWorkerFactor
 *
 * A stream is a connection, but holds no thread.  With half of the threads
 * busy for web sites and one connection a thread left to them, that leaves
 *
 *     ThreadsPerChild x AsyncRequestWorkerFactor / 2
 *
 * for streams.  On other MPMs a stream holds a thread: half of the threads.
 * Each stream needs two descriptors; what httpd itself may need is put
 * aside first, since a child that runs out of them stops.
 */
#include "setters.h"
#include "log.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <ap_mpm.h>

#define FD_RESERVE 128
#define FD_PER_THREAD 4
#define FACTOR_DEFAULT 2
#define FACTOR_MAX 1000000

typedef struct {
    int async;    /* the event MPM */
    int threads;  /* of a child */
    int factor;   /* AsyncRequestWorkerFactor, whole part as the MPM uses */
    int children; /* at most, of one generation */
    int server_limit;
    int spare_threads; /* MaxSpareThreads */
} mpm_t;

static int query(int code, int otherwise)
{
    int value = otherwise;
    return ap_mpm_query(code, &value) == APR_SUCCESS && value > 0 ? value
                                                                  : otherwise;
}

/* The last AsyncRequestWorkerFactor in the tree counts. */
static void find_factor(const ap_directive_t *dir, int *factor)
{
    for (; dir; dir = dir->next) {
        if (ap_cstr_casecmp(dir->directive, "AsyncRequestWorkerFactor") == 0) {
            long n = strtol(dir->args, NULL, 10);
            *factor = n < 1 ? 1 : n > FACTOR_MAX ? FACTOR_MAX : (int)n;
        }
        find_factor(dir->first_child, factor);
    }
}

static void read_mpm(mpm_t *mpm)
{
    mpm->async = query(AP_MPMQ_IS_ASYNC, 0);
    mpm->threads = query(AP_MPMQ_MAX_THREADS, 1);
    mpm->children = query(AP_MPMQ_MAX_DAEMONS, 1);
    mpm->server_limit = query(AP_MPMQ_HARD_LIMIT_DAEMONS, 1);
    mpm->spare_threads = query(AP_MPMQ_MAX_SPARE_THREADS, 0);
    mpm->factor = FACTOR_DEFAULT;
    find_factor(ap_conftree, &mpm->factor);
}

/* All that the MPM lets a child hold when no web site needs anything. */
static apr_int64_t carried(const mpm_t *mpm)
{
    return mpm->async ? (apr_int64_t)mpm->threads * mpm->factor : mpm->threads;
}

/* @return the limit, -1 for none */
static apr_int64_t descriptor_limit(void)
{
    struct rlimit rl;

    if (getrlimit(RLIMIT_NOFILE, &rl) != 0 || rl.rlim_cur == RLIM_INFINITY
        || rl.rlim_cur > APR_INT32_MAX) {
        return -1;
    }
    return (apr_int64_t)rl.rlim_cur;
}

static apr_int64_t descriptor_reserve(const mpm_t *mpm)
{
    return FD_RESERVE + (apr_int64_t)FD_PER_THREAD * mpm->threads;
}

void aigw_capacity_work_out(aigw_main_t *conf)
{
    mpm_t mpm;
    apr_int64_t most, limit = descriptor_limit(), by_fd;

    read_mpm(&mpm);
    most = carried(&mpm) / 2;
    by_fd = (limit - descriptor_reserve(&mpm)) / 2;
    if (limit >= 0 && by_fd < most) {
        most = by_fd;
    }
    conf->max_streams_default = most < 1               ? 1
                                : most > APR_INT32_MAX ? APR_INT32_MAX
                                                       : (int)most;
}

static void warn_threads(const mpm_t *mpm, int wanted, server_rec *s)
{
    if (wanted <= carried(mpm)) {
        return;
    }
    if (!mpm->async) {
        aigw_slog(s, AIGWNO(0120), APLOG_WARNING, 0,
                  "AIGWMaxStreams %d: under this MPM each stream holds a "
                  "thread, and a child has %d of them; use the event MPM, or "
                  "write AIGWMaxStreams %d",
                  wanted, mpm->threads,
                  mpm->threads > 1 ? mpm->threads / 2 : 1);
        return;
    }
    aigw_slog(s, AIGWNO(0121), APLOG_WARNING, 0,
              "AIGWMaxStreams %d: ThreadsPerChild %d x "
              "AsyncRequestWorkerFactor %d let a child hold %" APR_INT64_T_FMT
              " connections; write AsyncRequestWorkerFactor %d, or a lower "
              "AIGWMaxStreams",
              wanted, mpm->threads, mpm->factor, carried(mpm),
              2 * wanted / mpm->threads + 1);
}

static void warn_descriptors(const mpm_t *mpm, int wanted, server_rec *s)
{
    apr_int64_t limit = descriptor_limit();
    apr_int64_t needed = 2 * (apr_int64_t)wanted + descriptor_reserve(mpm);

    if (limit >= 0 && needed > limit) {
        aigw_slog(s, AIGWNO(0122), APLOG_WARNING, 0,
                  "AIGWMaxStreams %d needs %" APR_INT64_T_FMT " descriptors "
                  "in each child and the limit is %" APR_INT64_T_FMT "; raise "
                  "it (systemd: LimitNOFILE=%" APR_INT64_T_FMT "; Debian's "
                  "apachectl: APACHE_ULIMIT_MAX_FILES), or write a lower "
                  "AIGWMaxStreams",
                  wanted, needed, limit, needed);
    }
}

/* Long streams keep the children of earlier generations alive, and all
 * their threads look idle to the parent. */
static void warn_children(const mpm_t *mpm, int wanted, server_rec *s)
{
    int all = mpm->children * mpm->threads;

    if (mpm->server_limit < 2 * mpm->children) {
        aigw_slog(s, AIGWNO(0123), APLOG_WARNING, 0,
                  "AIGWMaxStreams %d: ServerLimit %d leaves no room beside %d "
                  "children for those of an earlier generation whose streams "
                  "still run after a graceful restart; write ServerLimit %d",
                  wanted, mpm->server_limit, mpm->children, 4 * mpm->children);
    }
    if (mpm->spare_threads < all) {
        aigw_slog(s, AIGWNO(0124), APLOG_WARNING, 0,
                  "AIGWMaxStreams %d: threads of streams look idle, so that "
                  "MaxSpareThreads %d ends children that carry streams; write "
                  "MaxSpareThreads %d (MaxRequestWorkers)",
                  wanted, mpm->spare_threads, all);
    }
}

void aigw_capacity_warn(const aigw_main_t *conf, server_rec *s)
{
    mpm_t mpm;
    int wanted = conf->max_streams;

    if (wanted <= conf->max_streams_default) {
        return;
    }
    read_mpm(&mpm);
    warn_threads(&mpm, wanted, s);
    warn_descriptors(&mpm, wanted, s);
    if (mpm.async) {
        warn_children(&mpm, wanted, s);
    }
}
