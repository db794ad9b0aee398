/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See log_program.h.  The parent keeps both ends of the pipe, so that what
 * was written while the program was down is read by the next one.  All that
 * is registered ends with pconf, before the module's code is unloaded.
 */
#include "log_program.h"

#include <fcntl.h>
#include <unistd.h>
#include <ap_mpm.h>
#include <apr_portable.h>
#include <apr_strings.h>
#include <apr_thread_proc.h>
#include <http_main.h>

#include "log.h"

struct aigw_log_program_t {
    const char *command;
    apr_cmdtype_e type;
    apr_file_t *read_end, *write_end;
    apr_pool_t *p; /* pconf */
    server_rec *server;
};

static apr_status_t spawn(aigw_log_program_t *prog);

/* Called by the MPM's parent. */
static void maintain(int reason, void *data, int status)
{
    aigw_log_program_t *prog = data;
    int state = AP_MPMQ_STOPPING;
    apr_status_t rv;

    if (reason != APR_OC_REASON_DEATH && reason != APR_OC_REASON_LOST) {
        return;
    }
    apr_proc_other_child_unregister(prog);
    ap_mpm_query(AP_MPMQ_MPM_STATE, &state);
    if (state == AP_MPMQ_STOPPING) {
        return;
    }
    rv = spawn(prog);
    aigw_slog(prog->server, AIGWNO(0613), APLOG_ERR, rv,
              "the usage log's program \"%s\" ended (wait status 0x%x) and "
              "%s",
              prog->command, (unsigned)status,
              rv == APR_SUCCESS ? "was started again"
                                : "could not be started again");
}

static apr_status_t spawn(aigw_log_program_t *prog)
{
    apr_procattr_t *attr;
    apr_proc_t *proc = apr_pcalloc(prog->p, sizeof(*proc));
    char **args;
    apr_status_t rv = apr_procattr_create(&attr, prog->p);

    if (rv == APR_SUCCESS) {
        rv = apr_procattr_dir_set(attr, ap_server_root);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_procattr_cmdtype_set(attr, prog->type);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_procattr_child_in_set(attr, prog->read_end, NULL);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_procattr_error_check_set(attr, 1);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_tokenize_to_argv(prog->command, &args, prog->p);
    }
    /* The shell finds its own programs. */
    if (rv == APR_SUCCESS && args[0] && prog->type == APR_PROGRAM_ENV) {
        args[0] = ap_server_root_relative(prog->p, args[0]);
    }
    if (rv == APR_SUCCESS) {
        rv = args[0]
                 ? apr_proc_create(proc, args[0], (const char *const *)args,
                                   NULL, attr, prog->p)
                 : APR_ENOENT;
    }
    if (rv == APR_SUCCESS) {
        apr_proc_other_child_register(proc, maintain, prog, prog->write_end,
                                      prog->p);
    }
    return rv;
}

/* Not for programs that others start (CGI, ...). */
static void close_on_exec(apr_file_t *file)
{
    apr_os_file_t fd;

    apr_os_file_get(&fd, file);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* A program that does not read for a while must not hold workers: a thousand
 * records and more have room meanwhile. Where the kernel refuses, the pipe
 * stays as it is. */
static void make_roomy(apr_file_t *file)
{
#ifdef F_SETPIPE_SZ
    apr_os_file_t fd;

    apr_os_file_get(&fd, file);
    fcntl(fd, F_SETPIPE_SZ, 1024 * 1024);
#else
    (void)file;
#endif
}

aigw_log_program_t *aigw_log_program_start(const char *spec, server_rec *s,
                                           apr_pool_t *pconf, const char **why)
{
    aigw_log_program_t *prog = apr_pcalloc(pconf, sizeof(*prog));
    char buf[120];
    apr_status_t rv;

    spec += spec[1] == '|' ? 2 : 1;
    prog->type = *spec == '$' ? APR_SHELLCMD_ENV : APR_PROGRAM_ENV;
    prog->command = *spec == '$' ? spec + 1 : spec;
    prog->p = pconf;
    prog->server = s;
    rv = apr_file_pipe_create_ex(&prog->read_end, &prog->write_end,
                                 APR_FULL_BLOCK, pconf);
    if (rv == APR_SUCCESS) {
        make_roomy(prog->write_end);
        close_on_exec(prog->read_end);
        close_on_exec(prog->write_end);
        rv = spawn(prog);
    }
    if (rv != APR_SUCCESS) {
        *why = apr_pstrdup(pconf, apr_strerror(rv, buf, sizeof(buf)));
        return NULL;
    }
    return prog;
}

int aigw_log_program_fd(const aigw_log_program_t *prog)
{
    apr_os_file_t fd;

    apr_os_file_get(&fd, prog->write_end);
    return fd;
}

void aigw_log_program_child_init(aigw_log_program_t *prog)
{
    apr_os_file_t fd;

    apr_os_file_get(&fd, prog->read_end);
    close(fd);
}
