/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rotated log has its log's name, a dot or a dash, and digits: few of them
 * count its age, eight or more are a day or a moment.  Packed logs have one
 * more ending.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <apr_strings.h>
#include "rotated.h"

#define NAMED_BY_DAY 8 /* digits, at least */
#define DIGITS_MAX 18

typedef struct {
    const char *path;
    apr_size_t n_base; /* of the path: the name of the log itself */
    apr_int64_t order; /* a higher one is younger */
    int set, at;
} log_t;

static apr_size_t without_ending(const char *path)
{
    static const char *const endings[] = {".gz", ".zst"};
    apr_size_t n = strlen(path), len;
    size_t i;

    for (i = 0; i < 2; i++) {
        len = strlen(endings[i]);
        if (n > len && strcmp(path + n - len, endings[i]) == 0) {
            return n - len;
        }
    }
    return n;
}

static log_t look_at(const char *path)
{
    apr_size_t end = without_ending(path), at = end, digits;
    log_t log;

    memset(&log, 0, sizeof(log));
    log.path = path;
    log.n_base = end;
    log.order = APR_INT64_MAX;
    while (at > 0 && path[at - 1] >= '0' && path[at - 1] <= '9') {
        at--;
    }
    digits = end - at;
    if (digits == 0 || digits > DIGITS_MAX || at < 2
        || (path[at - 1] != '.' && path[at - 1] != '-')
        || path[at - 2] == '/') {
        return log;
    }
    log.n_base = at - 1;
    log.order = (apr_int64_t)strtoll(path + at, NULL, 10);
    if (digits < NAMED_BY_DAY) {
        log.order = -log.order;
    }
    return log;
}

static int same_set(const log_t *a, const log_t *b)
{
    return a->n_base == b->n_base && memcmp(a->path, b->path, a->n_base) == 0;
}

static int by_age(const void *a, const void *b)
{
    const log_t *x = a, *y = b;

    if (x->set != y->set) {
        return x->set < y->set ? -1 : 1;
    }
    if (x->order != y->order) {
        return x->order < y->order ? -1 : 1;
    }
    return x->at < y->at ? -1 : x->at > y->at;
}

void aigw_rotated_sort(apr_array_header_t *files, apr_pool_t *pool)
{
    const char **paths = (const char **)files->elts;
    int n = files->nelts, i, j;
    log_t *logs = apr_palloc(pool, sizeof(*logs) * ((apr_size_t)n + 1));

    for (i = 0; i < n; i++) {
        logs[i] = look_at(paths[i]);
        logs[i].at = i;
        for (j = 0; j < i && !same_set(&logs[i], &logs[j]); j++) {
        }
        logs[i].set = j < i ? logs[j].set : i;
    }
    qsort(logs, (size_t)n, sizeof(*logs), by_age);
    for (i = 0; i < n; i++) {
        paths[i] = logs[i].path;
    }
}

void aigw_rotated_find(const char *path, apr_array_header_t *files,
                       apr_pool_t *pool)
{
    const char *slash = strrchr(path, '/');
    apr_size_t n = slash ? (apr_size_t)(slash - path) + 1 : 0;
    const char *folder = n ? apr_pstrmemdup(pool, path, n) : "";
    log_t self = look_at(path), other;
    struct dirent *entry;
    DIR *dir = opendir(n ? folder : ".");

    while (dir && (entry = readdir(dir))) {
        other = look_at(apr_pstrcat(pool, folder, entry->d_name, NULL));
        if (same_set(&self, &other) && strcmp(path, other.path) != 0) {
            APR_ARRAY_PUSH(files, const char *) = other.path;
        }
    }
    if (dir) {
        closedir(dir);
    }
}
