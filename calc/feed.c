/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The feed.
 */
#include <stdio.h>
#include <apr_errno.h>
#include <apr_strings.h>
#include "feed.h"

struct aigw_feed_t {
    const aigw_options_t *opt;
    apr_pool_t *pool, *file_pool;
    int at; /* of opt->files */
    aigw_reader_t *reader;
    const char *name;
    int first;
};

aigw_feed_t *aigw_feed_make(const aigw_options_t *opt, apr_pool_t *pool)
{
    aigw_feed_t *f = apr_pcalloc(pool, sizeof(*f));

    f->opt = opt;
    f->pool = pool;
    apr_pool_create(&f->file_pool, pool);
    return f;
}

static aigw_rc_t open_next(aigw_feed_t *f, aigw_feed_at_t *at)
{
    const char *path = f->opt->files[f->at++];
    char said[120];
    apr_status_t rv;

    apr_pool_clear(f->file_pool);
    f->name =
        strcmp(path, "-") == 0 ? "(stdin)" : aigw_text_safe(f->pool, path);
    f->first = 1;
    rv = aigw_reader_open(&f->reader, path, f->file_pool);
    if (rv != APR_SUCCESS) {
        at->name = f->name;
        at->why = apr_pstrdup(f->pool, apr_strerror(rv, said, sizeof(said)));
        return AIGW_FAILED;
    }
    return AIGW_OK;
}

aigw_rc_t aigw_feed_next(aigw_feed_t *f, aigw_chunk_t *chunk,
                         aigw_feed_at_t *at)
{
    aigw_rc_t rc;

    for (;;) {
        if (!f->reader) {
            if (f->at == f->opt->n_files) {
                return AIGW_DONE;
            }
            if (open_next(f, at) != AIGW_OK) {
                return AIGW_FAILED;
            }
        }
        rc = aigw_reader_next(f->reader, chunk);
        at->name = f->name;
        at->first = f->first;
        at->why = rc == AIGW_FAILED ? aigw_reader_why(f->reader) : NULL;
        if (rc != AIGW_DONE) {
            f->first = 0;
            return rc;
        }
        f->reader = NULL;
    }
}

int aigw_feed_save(aigw_feed_t *f)
{
    (void)f;
    return 1;
}
