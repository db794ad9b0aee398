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

const aigw_model_row_t *aigw_choose(const aigw_server_t *conf,
                                    const char *model)
{
    int i;

    for (i = 0; conf->models && i < conf->models->nelts; i++) {
        const aigw_model_row_t *row = APR_ARRAY_IDX(conf->models, i,
                                                    aigw_model_row_t *);
        if (matches(row->pattern, model)) {
            return row->deny ? NULL : row;
        }
    }
    return NULL;
}

static const aigw_candidate_t *candidate(const aigw_model_row_t *row, int i)
{
    return &APR_ARRAY_IDX(row->candidates, i, aigw_candidate_t);
}

const aigw_candidate_t *aigw_choose_next(const aigw_model_row_t *row,
                                         const aigw_dialect_t *caller,
                                         apr_uint32_t *tried, int retry,
                                         apr_time_t now)
{
    apr_time_t soonest = 0;
    int i, best = -1;

    for (i = 0; i < row->candidates->nelts && i < AIGW_CANDIDATES; i++) {
        const aigw_health_t *h = candidate(row, i)->upstream->health;
        apr_time_t until = aigw_health_rests_until(h);

        if ((*tried & (1u << i))
            || !aigw_dialect_speaks(candidate(row, i)->upstream->dialect,
                                    caller)) {
            continue;
        }
        if (until <= now) {
            best = i;
            break;
        }
        if (!retry && (best < 0 || until < soonest)) {
            best = i;
            soonest = until;
        }
    }
    if (best < 0) {
        return NULL;
    }
    *tried |= 1u << best;
    return candidate(row, best);
}
