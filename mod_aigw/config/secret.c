/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See secret.h.  A key is the first line of a file or of a program's output.
 * It refuses literal keys, empty ones and every byte that could end a header
 * field.  A program is started without a shell, is given no input, and has a
 * few seconds.
 */
#include "secret.h"

#include <sys/stat.h>
#include <unistd.h>
#include <httpd.h>
#include <http_config.h>
#include <apr_file_io.h>
#include <apr_portable.h>
#include <apr_strings.h>
#include <apr_thread_proc.h>
#include <openssl/crypto.h>

#define KEY_MAX 4096
#define EXEC_TIMEOUT apr_time_from_sec(10)
#define EXEC_TICK apr_time_from_msec(10)

/* The first line of buf (cleansed afterwards) becomes the key. */
static const char *take_line(char *buf, apr_size_t n, aigw_secret_t *out,
                             apr_pool_t *pool)
{
    apr_size_t len = 0;
    const char *fault = NULL;

    while (len < n && buf[len] != '\n') {
        len++;
    }
    if (len == KEY_MAX) {
        fault = apr_psprintf(pool,
                             "%s: its first line is longer than a key "
                             "can be (%d bytes)",
                             out->from, KEY_MAX - 1);
    }
    else if (len > 0 && buf[len - 1] == '\r') {
        len--;
    }
    for (n = 0; !fault && n < len; n++) {
        if (buf[n] <= ' ' || buf[n] > '~') {
            fault = apr_psprintf(pool,
                                 "%s: byte %" APR_SIZE_T_FMT " of its "
                                 "first line is a blank, a control character "
                                 "or not ASCII; allowed is the key alone on "
                                 "the first line",
                                 out->from, n + 1);
        }
    }
    if (!fault && len == 0) {
        fault = apr_psprintf(pool,
                             "%s: its first line is empty; allowed is "
                             "the key alone on the first line",
                             out->from);
    }
    if (!fault) {
        out->key = apr_pstrmemdup(pool, buf, len);
    }
    OPENSSL_cleanse(buf, KEY_MAX);
    return fault;
}

static const char *read_fault(const char *what, apr_status_t rv,
                              const aigw_secret_t *out, apr_pool_t *pool)
{
    char why[120];
    return apr_psprintf(pool, "%s %s: %s", out->from, what,
                        apr_strerror(rv, why, sizeof(why)));
}

/* Group root, or httpd's own start-up group, are not others. */
static int open_to_others(const struct stat *st)
{
    return (st->st_mode & S_IROTH) != 0
           || ((st->st_mode & S_IRGRP) != 0 && st->st_gid != 0
               && st->st_gid != getegid());
}

static const char *read_file(const char *path, aigw_secret_t *out,
                             apr_pool_t *pool, apr_pool_t *ptemp)
{
    char buf[KEY_MAX];
    apr_size_t n = 0;
    apr_file_t *file;
    apr_os_file_t fd;
    struct stat st;
    apr_status_t rv;

    out->from = ap_server_root_relative(pool, path);
    if (!out->from || !*path) {
        return "file: names no file; allowed is a path, such as "
               "key=file:conf/openai.key";
    }
    /* Not blocking: a FIFO must not hang configtest. */
    rv = apr_file_open(&file, out->from, APR_FOPEN_READ | APR_FOPEN_NONBLOCK,
                       0, ptemp);
    if (rv != APR_SUCCESS) {
        return read_fault("cannot be opened", rv, out, pool);
    }
    apr_os_file_get(&fd, file);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        apr_file_close(file);
        return apr_psprintf(pool, "%s is not a regular file", out->from);
    }
    out->open_to_others = open_to_others(&st);
    rv = apr_file_read_full(file, buf, sizeof(buf), &n);
    apr_file_close(file);
    if (rv != APR_SUCCESS && !APR_STATUS_IS_EOF(rv)) {
        return read_fault("cannot be read", rv, out, pool);
    }
    return take_line(buf, n, out, pool);
}

static apr_status_t start(apr_proc_t *proc, char **args, apr_pool_t *ptemp)
{
    apr_procattr_t *attr;
    apr_file_t *null;
    apr_status_t rv;

    rv = apr_file_open(&null, "/dev/null", APR_FOPEN_READ, 0, ptemp);
    if (rv == APR_SUCCESS) {
        rv = apr_procattr_create(&attr, ptemp);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_procattr_io_set(attr, APR_NO_PIPE, APR_FULL_BLOCK,
                                 APR_NO_PIPE);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_procattr_child_in_set(attr, null, NULL);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_procattr_cmdtype_set(attr, APR_PROGRAM_ENV);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_procattr_error_check_set(attr, 1);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_proc_create(proc, args[0], (const char *const *)args, NULL,
                             attr, ptemp);
    }
    return rv;
}

/* All output until its end, the buffer's end or the deadline. */
static apr_status_t collect(apr_file_t *from, char *buf, apr_size_t *n,
                            apr_time_t deadline)
{
    apr_status_t rv = APR_SUCCESS;

    *n = 0;
    while (rv == APR_SUCCESS && *n < KEY_MAX) {
        apr_size_t more = KEY_MAX - *n;
        apr_interval_time_t left = deadline - apr_time_now();

        if (left <= 0) {
            return APR_TIMEUP;
        }
        apr_file_pipe_timeout_set(from, left);
        rv = apr_file_read(from, buf + *n, &more);
        if (rv == APR_SUCCESS) {
            *n += more;
        }
    }
    return APR_STATUS_IS_EOF(rv) ? APR_SUCCESS : rv;
}

/* @return the exit code; -1 if it was killed, by us at the deadline too */
static int reap(apr_proc_t *proc, apr_time_t deadline)
{
    int code = -1;
    apr_exit_why_e why = APR_PROC_SIGNAL;

    while (apr_proc_wait(proc, &code, &why, APR_NOWAIT) == APR_CHILD_NOTDONE) {
        if (apr_time_now() >= deadline) {
            apr_proc_kill(proc, SIGKILL);
            apr_proc_wait(proc, &code, &why, APR_WAIT);
            return -1;
        }
        apr_sleep(EXEC_TICK);
    }
    return APR_PROC_CHECK_EXIT(why) ? code : -1;
}

static const char *run_program(const char *command, aigw_secret_t *out,
                               apr_pool_t *pool, apr_pool_t *ptemp)
{
    char buf[KEY_MAX];
    char **args;
    apr_size_t n;
    apr_proc_t proc;
    apr_status_t rv;
    apr_time_t deadline = apr_time_now() + EXEC_TIMEOUT;
    int code;

    if (apr_tokenize_to_argv(command, &args, ptemp) != APR_SUCCESS
        || !args[0]) {
        return "exec: names no program; allowed is a command, such as "
               "\"key=exec:/usr/local/bin/get-key openai\"";
    }
    args[0] = ap_server_root_relative(ptemp, args[0]);
    out->from = apr_pstrdup(pool, args[0]);
    rv = start(&proc, args, ptemp);
    if (rv != APR_SUCCESS) {
        return read_fault("cannot be started", rv, out, pool);
    }
    rv = collect(proc.out, buf, &n, deadline);
    apr_file_close(proc.out);
    code = reap(&proc, rv == APR_SUCCESS ? deadline : 0);
    if (rv != APR_SUCCESS || code != 0) {
        OPENSSL_cleanse(buf, sizeof(buf));
        return apr_psprintf(pool,
                            APR_STATUS_IS_TIMEUP(rv) || code == -1
                                ? "%s gave no answer within %d s"
                                : "%s ended with an error (exit code %d)",
                            out->from,
                            APR_STATUS_IS_TIMEUP(rv) || code == -1
                                ? (int)apr_time_sec(EXEC_TIMEOUT)
                                : code);
    }
    return take_line(buf, n, out, pool);
}

const char *aigw_secret_read(const char *spec, aigw_secret_t *out,
                             apr_pool_t *pool, apr_pool_t *ptemp)
{
    memset(out, 0, sizeof(*out));
    if (strcmp(spec, "none") == 0) {
        out->from = "none";
        return NULL;
    }
    if (strncmp(spec, "file:", 5) == 0) {
        return read_file(spec + 5, out, pool, ptemp);
    }
    if (strncmp(spec, "exec:", 5) == 0) {
        return run_program(spec + 5, out, pool, ptemp);
    }
    return "a key may not stand in the configuration itself; allowed is "
           "file:PATH, exec:COMMAND or none, such as "
           "key=file:conf/openai.key";
}
