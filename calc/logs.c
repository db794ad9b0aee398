/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From files to records.  Memory is one line's: the pool of a line is
 * cleared before the next.  A log that can't be read ends the run, as a sum
 * that silently lacks a file is worse than none.
 */
#include <stdio.h>
#include <apr_errno.h>
#include "logs.h"
#include "reader.h"

#define BAD_SHOWN 10

/* Reading in progress. */
typedef struct {
    const aigw_options_t *opt;
    aigw_logs_fn fn;
    void *ctx;
    aigw_logs_t *logs;
    apr_pool_t *line_pool; /* cleared with each line */
    const char *name;      /* of the file, safe to print */
} work_t;

static aigw_exit_t cannot_read(const work_t *w, apr_status_t rv)
{
    char said[120];

    fprintf(stderr, "aigw-calc: %s: %s\n", w->name,
            apr_strerror(rv, said, sizeof(said)));
    return AIGW_EXIT_INPUT;
}

static aigw_exit_t bad_line(work_t *w, apr_uint64_t number, const char *why)
{
    w->logs->bad++;
    if (w->logs->bad <= BAD_SHOWN || w->opt->strict) {
        fprintf(stderr, "%s:%" APR_UINT64_T_FMT ": %s\n", w->name, number,
                aigw_text_safe(w->line_pool, why));
    }
    else if (w->logs->bad == BAD_SHOWN + 1) {
        fputs("aigw-calc: further bad lines are counted and not named\n",
              stderr);
    }
    return w->opt->strict ? AIGW_EXIT_BAD_LINES : AIGW_EXIT_OK;
}

static aigw_exit_t one_line(work_t *w, const aigw_reader_t *reader,
                            aigw_slice_t line)
{
    apr_uint64_t number = aigw_reader_number(reader);
    aigw_record_t rec;
    const char *why;

    if (line.n == 0) {
        return bad_line(w, number, "empty line");
    }
    if (aigw_record_read(line, &rec, w->line_pool, &why) != AIGW_OK) {
        return bad_line(w, number,
                        aigw_reader_torn(reader)
                            ? "the last line has no end: it is still being "
                              "written, or was cut"
                            : why);
    }
    w->logs->records++;
    if (w->fn(w->ctx, &rec) != AIGW_OK) {
        fprintf(stderr,
                "aigw-calc: %s:%" APR_UINT64_T_FMT ": a figure does "
                "not fit: a sum or a cost is too large\n",
                w->name, number);
        return AIGW_EXIT_TOO_BIG;
    }
    return AIGW_EXIT_OK;
}

static aigw_exit_t one_file(work_t *w, aigw_reader_t *reader)
{
    aigw_exit_t end = AIGW_EXIT_OK;
    aigw_slice_t line;

    while (end == AIGW_EXIT_OK) {
        apr_pool_clear(w->line_pool);
        switch (aigw_reader_line(reader, &line)) {
        case AIGW_OK:
            end = one_line(w, reader, line);
            break;
        case AIGW_TOO_BIG:
            end = bad_line(w, aigw_reader_number(reader),
                           "line of more than 1048576 bytes");
            break;
        case AIGW_DONE:
            return AIGW_EXIT_OK;
        default:
            return cannot_read(w, aigw_reader_status(reader));
        }
    }
    return end;
}

aigw_exit_t aigw_logs_read(const aigw_options_t *opt, aigw_logs_fn fn,
                           void *ctx, aigw_logs_t *logs, apr_pool_t *pool)
{
    work_t w = {opt, fn, ctx, logs, NULL, NULL};
    aigw_exit_t end = AIGW_EXIT_OK;
    apr_pool_t *file_pool;
    aigw_reader_t *reader;
    apr_status_t rv;
    int i;

    memset(logs, 0, sizeof(*logs));
    apr_pool_create(&file_pool, pool);
    apr_pool_create(&w.line_pool, pool);
    for (i = 0; i < opt->n_files && end == AIGW_EXIT_OK; i++) {
        apr_pool_clear(file_pool);
        w.name = strcmp(opt->files[i], "-") == 0
                     ? "(stdin)"
                     : aigw_text_safe(file_pool, opt->files[i]);
        rv = aigw_reader_open(&reader, opt->files[i], file_pool);
        end = rv == APR_SUCCESS ? one_file(&w, reader) : cannot_read(&w, rv);
    }
    apr_pool_destroy(w.line_pool);
    apr_pool_destroy(file_pool);
    return end;
}
