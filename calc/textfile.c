/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files as one text.  Only regular ones are opened: a FIFO would stop the
 * program, and a device has no end.
 */
#include <apr_file_io.h>
#include <apr_strings.h>
#include "textfile.h"

static aigw_rc_t failed(const char *path, const char *why, apr_pool_t *pool,
                        const char **err)
{
    *err = apr_pstrcat(pool, path, ": ", why, NULL);
    return AIGW_FAILED;
}

static aigw_rc_t system_failed(const char *path, apr_status_t rv,
                               apr_pool_t *pool, const char **err)
{
    char said[120];

    return failed(path, apr_strerror(rv, said, sizeof(said)), pool, err);
}

static aigw_rc_t read_open(char **text, apr_file_t *file, const char *path,
                           apr_size_t size, apr_pool_t *pool, const char **err)
{
    apr_status_t rv;

    *text = apr_palloc(pool, size + 1);
    rv = apr_file_read_full(file, *text, size, &size);
    apr_file_close(file);
    if (rv != APR_SUCCESS && !APR_STATUS_IS_EOF(rv)) {
        return system_failed(path, rv, pool, err);
    }
    (*text)[size] = '\0';
    return memchr(*text, '\0', size)
               ? failed(path, "holds a NUL byte", pool, err)
               : AIGW_OK;
}

aigw_rc_t aigw_textfile_read(char **text, const char *path, apr_size_t max,
                             apr_pool_t *pool, const char **err)
{
    apr_finfo_t info;
    apr_file_t *file;
    apr_status_t rv =
        apr_stat(&info, path, APR_FINFO_TYPE | APR_FINFO_SIZE, pool);

    if (rv != APR_SUCCESS && rv != APR_INCOMPLETE) {
        return system_failed(path, rv, pool, err);
    }
    if (info.filetype != APR_REG) {
        return failed(path, "is not a regular file", pool, err);
    }
    if ((apr_uint64_t)info.size > max) {
        return failed(path, "is too large", pool, err);
    }
    rv = apr_file_open(&file, path, APR_FOPEN_READ, 0, pool);
    if (rv != APR_SUCCESS) {
        return system_failed(path, rv, pool, err);
    }
    return read_open(text, file, path, (apr_size_t)info.size, pool, err);
}

/* -- CSV ----------------------------------------------------------------- */

/* A quoted field, unquoted in place; p stands behind the first quote. */
static char *quoted(char *p, char **field, int *line)
{
    char *to = p;

    *field = p;
    for (; *p; p++) {
        if (*p == '"' && *++p != '"') {
            break;
        }
        *line += *p == '\n';
        *to++ = *p;
    }
    p += strspn(p, " \t");
    *to = '\0';
    return p;
}

static char *plain(char *p, char **field)
{
    char *end;

    *field = p;
    p += strcspn(p, ",\r\n");
    for (end = p; end > *field && (end[-1] == ' ' || end[-1] == '\t'); end--) {
    }
    if (end < p) {
        *end = '\0';
    }
    return p;
}

apr_array_header_t *aigw_csv_row(char **at, int *line, apr_pool_t *pool)
{
    apr_array_header_t *row = apr_array_make(pool, 8, sizeof(const char *));
    char *p = *at, *field, stop;

    if (!*p) {
        return NULL;
    }
    do {
        p += strspn(p, " \t");
        p = *p == '"' ? quoted(p + 1, &field, line) : plain(p, &field);
        APR_ARRAY_PUSH(row, const char *) = field;
        stop = *p;
        if (stop) {
            *p++ = '\0';
        }
        if (stop == '\r' && *p == '\n') {
            p++;
        }
    } while (stop == ',');
    ++*line;
    *at = p;
    return row;
}
