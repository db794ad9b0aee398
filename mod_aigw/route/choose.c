/* SPDX-License-Identifier: Apache-2.0 */
/* See choose.h. */
#include "choose.h"

/* '*' stands for any rest, at the end only. */
static int matches(const char *pattern, const char *model)
{
    apr_size_t n = strlen(pattern);

    if (n && pattern[n - 1] == '*') {
        return strncmp(pattern, model, n - 1) == 0;
    }
    return strcmp(pattern, model) == 0;
}

aigw_upstream_t *aigw_choose(const aigw_server_t *conf, const char *model,
                             const char **remote)
{
    int i;

    for (i = 0; conf->models && i < conf->models->nelts; i++) {
        const aigw_model_row_t *row = APR_ARRAY_IDX(conf->models, i,
                                                    aigw_model_row_t *);
        const aigw_candidate_t *first;

        if (!matches(row->pattern, model)) {
            continue;
        }
        if (row->deny || row->candidates->nelts == 0) {
            return NULL;
        }
        first = &APR_ARRAY_IDX(row->candidates, 0, aigw_candidate_t);
        *remote = first->remote;
        return first->upstream;
    }
    return NULL;
}
