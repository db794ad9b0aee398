/* SPDX-License-Identifier: Apache-2.0 */
/* See estimate.h: the arithmetic of it, in whole numbers and without a way
 * to overflow. */
#include "estimate.h"

#define COUNT_MAX ((apr_uint64_t)1 << 53)
#define TOKENS ((1u << AIGW_U_SEARCHES) - 1)

apr_uint64_t aigw_estimate_tokens(const aigw_dialect_t *d, apr_uint64_t bytes)
{
    if (bytes > COUNT_MAX) {
        bytes = COUNT_MAX;
    }
    return (bytes * 100 + d->text_factor - 1) / d->text_factor;
}

int aigw_estimate(const aigw_dialect_t *d, apr_uint64_t asked,
                  apr_uint64_t said, aigw_usage_t *u)
{
    if ((u->known & TOKENS) != 0 || (asked == 0 && said == 0)) {
        return 0;
    }
    if (asked > 0) {
        aigw_usage_set(u, AIGW_U_INPUT_UNCACHED,
                       aigw_estimate_tokens(d, asked));
    }
    aigw_usage_set(u, AIGW_U_OUTPUT, aigw_estimate_tokens(d, said));
    u->source = AIGW_USAGE_ESTIMATED;
    return 1;
}
