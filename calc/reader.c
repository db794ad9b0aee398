/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of lines.  What follows the last newline of a piece is carried
 * over to the next one.  A line that does not fit is read over without being
 * kept, so that a log of one endless line costs no more memory than any
 * other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "reader.h"
#include "unpack.h"

struct aigw_reader_t {
    int fd;
    aigw_unpack_t *unpack;
    apr_uint64_t offset;
    char *carry; /* malloc: begins a line */
    apr_size_t n_carry, carry_room;
    unsigned keep_torn : 1;
};

/* -- memory -------------------------------------------------------------- */

static apr_status_t free_chunk(void *data)
{
    free(((aigw_chunk_t *)data)->buf);
    return APR_SUCCESS;
}

static void make_room(char **buf, apr_size_t *room, apr_size_t n)
{
    char *more;

    if (*room >= n) {
        return;
    }
    more = realloc(*buf, n + AIGW_CHUNK_SLACK);
    if (!more) {
        abort(); /* as APR's pools do */
    }
    memset(more + *room, 0, n + AIGW_CHUNK_SLACK - *room);
    *buf = more;
    *room = n;
}

aigw_chunk_t *aigw_chunk_make(apr_pool_t *pool)
{
    aigw_chunk_t *c = apr_pcalloc(pool, sizeof(*c));

    make_room(&c->buf, &c->room, AIGW_CHUNK_SIZE);
    apr_pool_cleanup_register(pool, c, free_chunk, apr_pool_cleanup_null);
    return c;
}

/* -- opening ------------------------------------------------------------- */

static apr_status_t close_reader(void *data)
{
    aigw_reader_t *r = data;

    free(r->carry);
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
    r = apr_pcalloc(pool, sizeof(*r));
    r->fd = fd;
    r->keep_torn = 1;
    r->unpack = aigw_unpack_make(fd, pool);
    apr_pool_cleanup_register(pool, r, close_reader, apr_pool_cleanup_null);
    *reader = r;
    return APR_SUCCESS;
}

void aigw_reader_keep_torn(aigw_reader_t *r, int keep)
{
    r->keep_torn = keep != 0;
}

/* -- pieces -------------------------------------------------------------- */

static const char *last_newline(const char *p, apr_size_t n)
{
    while (n > 0 && p[n - 1] != '\n') {
        n--;
    }
    return n > 0 ? p + n - 1 : NULL;
}

/* What is behind the whole lines of a piece begins the next one. */
static void cut_carry(aigw_reader_t *r, aigw_chunk_t *c, apr_size_t have,
                      apr_size_t whole)
{
    r->n_carry = have - whole;
    make_room(&r->carry, &r->carry_room, r->n_carry);
    if (r->n_carry) {
        memcpy(r->carry, c->buf + whole, r->n_carry);
    }
    c->n = whole;
    r->offset += whole;
}

static aigw_rc_t skip_line(aigw_reader_t *r, aigw_chunk_t *c)
{
    apr_size_t got;
    const char *nl = NULL;

    c->too_long = 1;
    while (!nl) {
        if (aigw_unpack_read(r->unpack, c->buf, AIGW_CHUNK_SIZE, &got)
            != AIGW_OK) {
            return AIGW_FAILED;
        }
        if (got == 0) {
            break;
        }
        nl = memchr(c->buf, '\n', got);
        r->offset += nl ? (apr_size_t)(nl - c->buf) + 1 : got;
    }
    r->n_carry = 0;
    c->n = 0;
    if (nl) {
        apr_size_t whole = (apr_size_t)(nl - c->buf) + 1;

        r->offset -= whole;
        cut_carry(r, c, got, whole);
        c->n = 0;
    }
    return AIGW_OK;
}

/* The end of the log, so many bytes of a line behind the last newline. */
static aigw_rc_t at_end(aigw_reader_t *r, aigw_chunk_t *c, apr_size_t have)
{
    if (have == 0) {
        r->n_carry = 0;
        return AIGW_DONE;
    }
    if (!r->keep_torn) {
        return AIGW_DONE; /* the carry is as it was */
    }
    c->torn = 1;
    c->n = have;
    r->offset += have;
    r->n_carry = 0;
    return AIGW_OK;
}

aigw_rc_t aigw_reader_next(aigw_reader_t *r, aigw_chunk_t *c)
{
    apr_size_t have = r->n_carry, got, whole;
    const char *nl;

    c->torn = c->too_long = 0;
    make_room(&c->buf, &c->room, have + AIGW_CHUNK_SIZE);
    if (have) {
        memcpy(c->buf, r->carry, have);
    }
    for (;;) {
        if (aigw_unpack_read(r->unpack, c->buf + have, c->room - have, &got)
            != AIGW_OK) {
            return AIGW_FAILED;
        }
        if (got == 0) {
            cut_carry(r, c, have, 0);
            return at_end(r, c, have);
        }
        nl = last_newline(c->buf + have, got);
        have += got;
        if (nl) {
            whole = (apr_size_t)(nl - c->buf) + 1;
            cut_carry(r, c, have, whole);
            return AIGW_OK;
        }
        if (have > AIGW_LINE_MAX) {
            r->offset += have;
            return skip_line(r, c);
        }
        make_room(&c->buf, &c->room, have + AIGW_CHUNK_SIZE);
    }
}

aigw_rc_t aigw_reader_skip(aigw_reader_t *r, apr_uint64_t bytes)
{
    char buf[16 * 1024];
    apr_size_t got;
    aigw_rc_t rc = aigw_unpack_seek(r->unpack, bytes);

    if (rc != AIGW_DONE) {
        r->offset = bytes;
        return rc;
    }
    while (r->offset < bytes) {
        apr_uint64_t want = bytes - r->offset;

        if (aigw_unpack_read(r->unpack, buf,
                             want < sizeof(buf) ? (apr_size_t)want
                                                : sizeof(buf),
                             &got)
            != AIGW_OK) {
            return AIGW_FAILED;
        }
        if (got == 0) {
            return AIGW_DONE;
        }
        r->offset += got;
    }
    return AIGW_OK;
}

apr_uint64_t aigw_reader_offset(const aigw_reader_t *r)
{
    return r->offset;
}

apr_size_t aigw_reader_left(const aigw_reader_t *r)
{
    return r->n_carry;
}

int aigw_reader_is_packed(const aigw_reader_t *r)
{
    return aigw_unpack_is_packed(r->unpack);
}

int aigw_reader_fd(const aigw_reader_t *r)
{
    return r->fd;
}

const char *aigw_reader_why(const aigw_reader_t *r)
{
    return aigw_unpack_why(r->unpack);
}
