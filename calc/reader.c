/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line reader: one buffer of fixed size, filled by read(2).  A line that
 * does not fit is read over without being kept, so that a log of one endless
 * line costs no more memory than any other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>
#include "reader.h"

#define BUFFER_SIZE (AIGW_LINE_MAX + 256 * 1024)

struct aigw_reader_t {
    int fd;
    apr_status_t status;
    apr_uint64_t number;
    apr_size_t start, scanned, end; /* of what is in buf */
    unsigned eof : 1;
    unsigned torn : 1;
    char buf[BUFFER_SIZE];
};

static apr_status_t close_reader(void *data)
{
    aigw_reader_t *r = data;

    if (r->fd != STDIN_FILENO) {
        close(r->fd);
    }
    return APR_SUCCESS;
}

apr_status_t aigw_reader_open(aigw_reader_t **reader, const char *path,
                              apr_pool_t *pool)
{
    aigw_reader_t *r;
    int fd = STDIN_FILENO;

    if (strcmp(path, "-") != 0) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    }
    if (fd < 0) {
        return errno;
    }
    r = apr_palloc(pool, sizeof(*r));
    memset(r, 0, offsetof(aigw_reader_t, buf));
    r->fd = fd;
    apr_pool_cleanup_register(pool, r, close_reader, apr_pool_cleanup_null);
    *reader = r;
    return APR_SUCCESS;
}

/* Make room and read once. */
static aigw_rc_t fill(aigw_reader_t *r)
{
    ssize_t got;

    if (r->start > 0 && r->end == BUFFER_SIZE) {
        memmove(r->buf, r->buf + r->start, r->end - r->start);
        r->end -= r->start;
        r->scanned -= r->start;
        r->start = 0;
    }
    do {
        got = read(r->fd, r->buf + r->end, BUFFER_SIZE - r->end);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        r->status = errno;
        return AIGW_FAILED;
    }
    r->eof = got == 0;
    r->end += (apr_size_t)got;
    return AIGW_OK;
}

/* The newline of the line at start, NULL if it has not been read yet. */
static const char *find_end(aigw_reader_t *r)
{
    const char *nl = memchr(r->buf + r->scanned, '\n', r->end - r->scanned);

    r->scanned = nl ? (apr_size_t)(nl - r->buf) + 1 : r->end;
    return nl;
}

/* Drop the rest of a line that is too long. */
static aigw_rc_t skip_line(aigw_reader_t *r)
{
    while (!find_end(r)) {
        r->start = r->scanned = r->end = 0;
        if (fill(r) != AIGW_OK) {
            return AIGW_FAILED;
        }
        if (r->eof) {
            r->torn = 1;
            return AIGW_TOO_BIG;
        }
    }
    r->start = r->scanned;
    r->torn = 0;
    return AIGW_TOO_BIG;
}

static aigw_rc_t take(aigw_reader_t *r, apr_size_t end, aigw_slice_t *line)
{
    *line = aigw_slice(r->buf + r->start, end - r->start);
    r->start = r->scanned;
    return line->n > AIGW_LINE_MAX ? AIGW_TOO_BIG : AIGW_OK;
}

aigw_rc_t aigw_reader_line(aigw_reader_t *r, aigw_slice_t *line)
{
    const char *nl = NULL;

    r->number++;
    while (!(nl = find_end(r)) && !r->eof) {
        if (r->end - r->start > AIGW_LINE_MAX) {
            return skip_line(r);
        }
        if (fill(r) != AIGW_OK) {
            return AIGW_FAILED;
        }
    }
    if (!nl && r->start == r->end) {
        r->number--;
        return AIGW_DONE;
    }
    r->torn = !nl;
    return take(r, nl ? (apr_size_t)(nl - r->buf) : r->end, line);
}

apr_uint64_t aigw_reader_number(const aigw_reader_t *r)
{
    return r->number;
}

int aigw_reader_torn(const aigw_reader_t *r)
{
    return r->torn;
}

apr_status_t aigw_reader_status(const aigw_reader_t *r)
{
    return r->status;
}
