/* SPDX-License-Identifier: Apache-2.0 */
/* See unpriced.h. */
#include <apr_hash.h>
#include <apr_thread_mutex.h>

#include "unpriced.h"

static apr_thread_mutex_t *mutex; /* of the rest */
static apr_hash_t *seen;          /* pchild */
static apr_pool_t *pool;

apr_status_t aigw_unpriced_child_init(apr_pool_t *pchild)
{
    pool = pchild;
    seen = apr_hash_make(pchild);
    return apr_thread_mutex_create(&mutex, APR_THREAD_MUTEX_DEFAULT, pchild);
}

static int is_new(const char *model)
{
    int fresh;

    apr_thread_mutex_lock(mutex);
    fresh = apr_hash_get(seen, model, APR_HASH_KEY_STRING) == NULL
            && apr_hash_count(seen) < AIGW_UNPRICED_MAX;
    if (fresh) {
        apr_hash_set(seen, apr_pstrdup(pool, model), APR_HASH_KEY_STRING,
                     "");
    }
    apr_thread_mutex_unlock(mutex);
    return fresh;
}

void aigw_unpriced_warn(const aigw_exchange_t *x, const char *model)
{
    if (model == NULL) {
        model = "(unknown)";
    }
    if (is_new(model)) {
        aigw_rlog(x->r, x->id, AIGWNO(0601), APLOG_WARNING, 0,
                  "model %s has no price in force: its requests are recorded "
                  "without a cost", ap_escape_logitem(x->r->pool, model));
    }
}
