/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking by magic bytes.  The first bytes are read on their own, as a pipe
 * may give them one by one; a plain log is then read straight into the
 * caller's buffer.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include <apr_errno.h>
#include <apr_strings.h>
#include <zlib.h>
#include <zstd.h>
#include "unpack.h"

#define PACKED_SIZE (64 * 1024)
#define MAGIC_SIZE 6
#define WINDOW_LOG_MAX 23 /* 8 MiB: what zstd -19 needs */

typedef enum { FORM_UNKNOWN = 0, FORM_PLAIN, FORM_GZIP, FORM_ZSTD } form_t;

struct aigw_unpack_t {
    int fd;
    apr_pool_t *pool;
    form_t form;
    const char *why;
    char magic[MAGIC_SIZE];
    apr_size_t n_magic, magic_at; /* read, and handed on */
    unsigned eof : 1;             /* nothing more comes from fd */
    unsigned inside : 1;          /* a packed stream has not ended */
    unsigned live : 1;            /* z is initialised */
    apr_uint64_t packed, unpacked;
    z_stream z;
    ZSTD_DStream *zstd;
    char *in; /* PACKED_SIZE */
    apr_size_t in_at, in_n;
};

static apr_status_t close_unpack(void *data)
{
    aigw_unpack_t *u = data;

    if (u->live) {
        inflateEnd(&u->z);
    }
    ZSTD_freeDStream(u->zstd);
    return APR_SUCCESS;
}

aigw_unpack_t *aigw_unpack_make(int fd, apr_pool_t *pool)
{
    aigw_unpack_t *u = apr_pcalloc(pool, sizeof(*u));

    u->fd = fd;
    u->pool = pool;
    apr_pool_cleanup_register(pool, u, close_unpack, apr_pool_cleanup_null);
    return u;
}

static aigw_rc_t fail(aigw_unpack_t *u, const char *why)
{
    u->why = why;
    return AIGW_FAILED;
}

static aigw_rc_t read_some(aigw_unpack_t *u, char *buf, apr_size_t n,
                           apr_size_t *got)
{
    char said[120];
    ssize_t rv;

    do {
        rv = read(u->fd, buf, n);
    } while (rv < 0 && errno == EINTR);
    if (rv < 0) {
        apr_strerror(errno, said, sizeof(said));
        return fail(u, apr_pstrdup(u->pool, said));
    }
    *got = (apr_size_t)rv;
    u->eof = rv == 0;
    return AIGW_OK;
}

/* -- which form ---------------------------------------------------------- */

static int begins(const aigw_unpack_t *u, const char *magic, apr_size_t n)
{
    return u->n_magic >= n && memcmp(u->magic, magic, n) == 0;
}

static aigw_rc_t start_gzip(aigw_unpack_t *u)
{
    u->form = FORM_GZIP;
    if (inflateInit2(&u->z, 15 + 16) != Z_OK) {
        return fail(u, "out of memory");
    }
    u->live = 1;
    return AIGW_OK;
}

static aigw_rc_t start_zstd(aigw_unpack_t *u)
{
    u->form = FORM_ZSTD;
    u->zstd = ZSTD_createDStream();
    if (!u->zstd
        || ZSTD_isError(ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax,
                                               WINDOW_LOG_MAX))) {
        return fail(u, "out of memory");
    }
    return AIGW_OK;
}

static aigw_rc_t start(aigw_unpack_t *u)
{
    apr_size_t got;

    while (u->n_magic < MAGIC_SIZE && !u->eof) {
        if (read_some(u, u->magic + u->n_magic, MAGIC_SIZE - u->n_magic, &got)
            != AIGW_OK) {
            return AIGW_FAILED;
        }
        u->n_magic += got;
        if (u->n_magic
            && memchr("\x1f\x28\xfd"
                      "B",
                      u->magic[0], 4)
                   == NULL) {
            break;
        }
    }
    u->form = FORM_PLAIN;
    if (begins(u,
               "\xfd"
               "7zXZ",
               5)) {
        return fail(u, "is packed with xz, which is not read: xzcat it");
    }
    if (begins(u, "BZh", 3)) {
        return fail(u, "is packed with bzip2, which is not read: bzcat it");
    }
    if (begins(u, "\x1f\x8b", 2)) {
        return start_gzip(u);
    }
    return begins(u, "\x28\xb5\x2f\xfd", 4) ? start_zstd(u) : AIGW_OK;
}

/* -- packed -------------------------------------------------------------- */

static aigw_rc_t fill_packed(aigw_unpack_t *u)
{
    apr_size_t got = 0;

    if (!u->in) {
        u->in = apr_palloc(u->pool, PACKED_SIZE);
        memcpy(u->in, u->magic, u->n_magic);
        u->in_n = u->packed = u->n_magic;
        return AIGW_OK;
    }
    if (u->in_at < u->in_n || u->eof) {
        return AIGW_OK;
    }
    if (read_some(u, u->in, PACKED_SIZE, &got) != AIGW_OK) {
        return AIGW_FAILED;
    }
    u->in_at = 0;
    u->in_n = got;
    u->packed += got;
    return AIGW_OK;
}

/* One step of zlib. Members may follow each other, and zeros the last. */
static aigw_rc_t step_gzip(aigw_unpack_t *u, char *buf, apr_size_t n,
                           apr_size_t *got)
{
    int rv;

    if (!u->inside) {
        while (u->packed > u->in_n && u->in_at < u->in_n
               && u->in[u->in_at] == '\0') {
            u->in_at++;
        }
        if (u->in_at == u->in_n) {
            return AIGW_OK;
        }
        u->inside = 1;
    }
    u->z.next_in = (Bytef *)u->in + u->in_at;
    u->z.avail_in = (uInt)(u->in_n - u->in_at);
    u->z.next_out = (Bytef *)buf;
    u->z.avail_out = (uInt)n;
    rv = inflate(&u->z, Z_NO_FLUSH);
    u->in_at = u->in_n - u->z.avail_in;
    *got = n - u->z.avail_out;
    if (rv == Z_STREAM_END) {
        u->inside = 0;
        inflateReset(&u->z);
        return AIGW_OK;
    }
    return rv == Z_OK || rv == Z_BUF_ERROR
               ? AIGW_OK
               : fail(u, "the gzip data is broken");
}

static aigw_rc_t step_zstd(aigw_unpack_t *u, char *buf, apr_size_t n,
                           apr_size_t *got)
{
    ZSTD_inBuffer in;
    ZSTD_outBuffer out;
    size_t rv;

    in.src = u->in;
    in.size = u->in_n;
    in.pos = u->in_at;
    out.dst = buf;
    out.size = n;
    out.pos = 0;
    rv = ZSTD_decompressStream(u->zstd, &out, &in);
    u->in_at = in.pos;
    *got = out.pos;
    if (ZSTD_isError(rv)) {
        return fail(u,
                    apr_pstrcat(u->pool, "the zstd data can't be unpacked: ",
                                ZSTD_getErrorName(rv), NULL));
    }
    u->inside = rv != 0;
    return AIGW_OK;
}

static aigw_rc_t check_ratio(aigw_unpack_t *u)
{
    if (u->unpacked > AIGW_RATIO_FREE
        && u->unpacked / AIGW_RATIO_MAX > u->packed) {
        return fail(u, "refused: it unpacks to more than 250 times its size");
    }
    return AIGW_OK;
}

/* The end of the file inside a stream is not the end of the log. */
static aigw_rc_t read_packed(aigw_unpack_t *u, char *buf, apr_size_t n,
                             apr_size_t *got)
{
    aigw_rc_t rc = AIGW_OK;
    int at_end;

    for (*got = 0; *got == 0 && rc == AIGW_OK;) {
        rc = fill_packed(u);
        at_end = u->eof && u->in_at == u->in_n;
        if (rc == AIGW_OK && at_end && !u->inside) {
            return AIGW_OK;
        }
        if (rc == AIGW_OK) {
            rc = u->form == FORM_GZIP ? step_gzip(u, buf, n, got)
                                      : step_zstd(u, buf, n, got);
        }
        if (rc == AIGW_OK && at_end && *got == 0 && u->inside) {
            rc = fail(u, "the packed data ends early");
        }
    }
    u->unpacked += *got;
    return rc == AIGW_OK ? check_ratio(u) : rc;
}

/* -- both ---------------------------------------------------------------- */

aigw_rc_t aigw_unpack_read(aigw_unpack_t *u, char *buf, apr_size_t n,
                           apr_size_t *got)
{
    *got = 0;
    if (u->why) {
        return AIGW_FAILED;
    }
    if (u->form == FORM_UNKNOWN && start(u) != AIGW_OK) {
        return AIGW_FAILED;
    }
    if (u->form != FORM_PLAIN) {
        return read_packed(u, buf, n, got);
    }
    if (u->magic_at < u->n_magic) {
        *got = u->n_magic - u->magic_at < n ? u->n_magic - u->magic_at : n;
        memcpy(buf, u->magic + u->magic_at, *got);
        u->magic_at += *got;
        return AIGW_OK;
    }
    return read_some(u, buf, n, got);
}

aigw_rc_t aigw_unpack_seek(aigw_unpack_t *u, apr_uint64_t offset)
{
    struct stat st;

    if (u->form == FORM_UNKNOWN && start(u) != AIGW_OK) {
        return AIGW_FAILED;
    }
    if (u->form != FORM_PLAIN || fstat(u->fd, &st) != 0 || !S_ISREG(st.st_mode)
        || (apr_uint64_t)st.st_size < offset
        || lseek(u->fd, (off_t)offset, SEEK_SET) < 0) {
        return AIGW_DONE;
    }
    u->magic_at = u->n_magic;
    return AIGW_OK;
}

int aigw_unpack_is_packed(const aigw_unpack_t *u)
{
    return u->form == FORM_GZIP || u->form == FORM_ZSTD;
}

const char *aigw_unpack_why(const aigw_unpack_t *u)
{
    return u->why;
}
