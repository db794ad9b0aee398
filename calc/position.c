/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state file is text: a first line that says what it is, then a line a
 * log: offset, number and hash of the first bytes, device, inode, and the
 * name up to the line's end.  It is written beside its place and renamed, so
 * that a run that is killed leaves the old one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <apr_errno.h>
#include <apr_strings.h>
#include "mix.h"
#include "position.h"
#include "unpack.h"

#define TITLE "aigw-calc state 1\n"
#define ROWS_MAX 1000
#define ROW_MAX 8192

aigw_head_t aigw_head_of(const char *bytes, apr_size_t n)
{
    aigw_head_t head;

    head.n = n;
    head.hash = aigw_mix_text(bytes, n, 1);
    return head;
}

apr_size_t aigw_head_read(const char *path, char *buf, apr_pool_t *pool)
{
    apr_size_t n = 0, got = 1;
    aigw_unpack_t *u;
    apr_pool_t *own;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0) {
            close(fd);
        }
        return 0;
    }
    apr_pool_create(&own, pool);
    u = aigw_unpack_make(fd, own);
    while (got && n < AIGW_HEAD_SIZE
           && aigw_unpack_read(u, buf + n, AIGW_HEAD_SIZE - n, &got)
                  == AIGW_OK) {
        n += got;
    }
    apr_pool_destroy(own);
    close(fd);
    return n;
}

static const char *said(int error, apr_pool_t *pool)
{
    char text[120];

    return apr_pstrdup(pool, apr_strerror(error, text, sizeof(text)));
}

static int read_row(char *line, aigw_position_t *p, apr_pool_t *pool)
{
    char *end = strchr(line, '\n');
    int at = 0;

    memset(p, 0, sizeof(*p));
    if (!end
        || sscanf(line,
                  "%" SCNu64 " %" SCNu64 " %" SCNx64 " %" SCNu64 " %" SCNu64
                  " %n",
                  &p->offset, &p->head.n, &p->head.hash, &p->device, &p->inode,
                  &at)
               != 5
        || at == 0 || line + at >= end || p->head.n == 0
        || p->head.n > AIGW_HEAD_SIZE || p->head.n > p->offset) {
        return 0;
    }
    p->path = apr_pstrmemdup(pool, line + at, (apr_size_t)(end - line - at));
    return 1;
}

const char *aigw_position_load(const char *path, apr_array_header_t *all,
                               apr_pool_t *pool)
{
    const char *why = NULL;
    char line[ROW_MAX];
    aigw_position_t p;
    FILE *in = fopen(path, "re");

    if (!in) {
        return errno == ENOENT ? NULL : said(errno, pool);
    }
    if (!fgets(line, sizeof(line), in) || strcmp(line, TITLE) != 0) {
        why = "is no state file of this program";
    }
    while (!why && fgets(line, sizeof(line), in)) {
        if (read_row(line, &p, pool)) {
            APR_ARRAY_PUSH(all, aigw_position_t) = p;
        }
        else {
            why = "is broken";
        }
    }
    fclose(in);
    return why;
}

static int write_rows(FILE *out, const apr_array_header_t *all)
{
    const aigw_position_t *p = (const aigw_position_t *)all->elts;
    int i = all->nelts > ROWS_MAX ? all->nelts - ROWS_MAX : 0;

    fputs(TITLE, out);
    for (; i < all->nelts; i++) {
        if (strchr(p[i].path, '\n') || p[i].head.n == 0) {
            continue; /* read again rather than not found */
        }
        fprintf(out,
                "%" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIu64 " %" PRIu64
                " %s\n",
                (uint64_t)p[i].offset, (uint64_t)p[i].head.n,
                (uint64_t)p[i].head.hash, (uint64_t)p[i].device,
                (uint64_t)p[i].inode, p[i].path);
    }
    return fflush(out) == 0 && fsync(fileno(out)) == 0;
}

const char *aigw_position_save(const char *path, const apr_array_header_t *all,
                               apr_pool_t *pool)
{
    const char *beside = apr_pstrcat(pool, path, ".new", NULL);
    const char *why = NULL;
    FILE *out;
    int fd;

    unlink(beside); /* of a run that was killed */
    fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
              0600);
    out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        return said(errno, pool);
    }
    if (!write_rows(out, all)) {
        why = said(errno, pool);
    }
    if (fclose(out) != 0 && !why) {
        why = said(errno, pool);
    }
    if (!why && rename(beside, path) != 0) {
        why = said(errno, pool);
    }
    if (why) {
        unlink(beside);
    }
    return why;
}

aigw_position_t *aigw_position_find(const apr_array_header_t *all,
                                    const char *bytes, apr_size_t n)
{
    aigw_position_t *p = (aigw_position_t *)all->elts, *best = NULL;
    int i;

    for (i = 0; i < all->nelts; i++) {
        if (p[i].head.n && p[i].head.n <= n
            && aigw_head_of(bytes, (apr_size_t)p[i].head.n).hash
                   == p[i].head.hash
            && (!best || p[i].offset > best->offset)) {
            best = &p[i];
        }
    }
    return best;
}
