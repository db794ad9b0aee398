/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of two runs.  No outlier is removed; a sample that is too small
 * for an interval gets none.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "stats.h"

#define SECOND 1000000

static int by_value(const void *a, const void *b)
{
    apr_int64_t x = *(const apr_int64_t *)a, y = *(const apr_int64_t *)b;

    return (x > y) - (x < y);
}

void aigw_stats_sort(apr_int64_t *values, apr_uint64_t n)
{
    if (n > 1) {
        qsort(values, (size_t)n, sizeof(*values), by_value);
    }
}

/* From 1. */
static apr_uint64_t rank(apr_uint64_t n, int per_mille)
{
    apr_uint64_t whole = n / 1000 * (apr_uint64_t)per_mille;
    apr_uint64_t rest = n % 1000 * (apr_uint64_t)per_mille;
    apr_uint64_t k = whole + rest / 1000 + (rest % 1000 != 0);

    return k ? k : 1;
}

apr_int64_t aigw_stats_quantile(const apr_int64_t *values, apr_uint64_t n,
                                int per_mille)
{
    return values[rank(n, per_mille) - 1];
}

/* The number of values below the quantile is binomial. */
aigw_span_t aigw_stats_quantile_span(const apr_int64_t *values, apr_uint64_t n,
                                     int per_mille)
{
    aigw_span_t span = {0, 0, 0};
    double q = per_mille / 1000.0, mean = (double)n * q;
    double reach = AIGW_STATS_Z * sqrt(mean * (1 - q));
    double low = floor(mean - reach), high = ceil(mean + reach) + 1;

    if (low < 1 || high > (double)n) {
        return span;
    }
    span.known = 1;
    span.low = (double)values[(apr_uint64_t)low - 1];
    span.high = (double)values[(apr_uint64_t)high - 1];
    return span;
}

aigw_span_t aigw_stats_change(aigw_span_t before, aigw_span_t after)
{
    aigw_span_t span = {0, 0, 0};

    if (before.known && after.known && before.low > 0) {
        span.known = 1;
        span.low = (after.low / before.high - 1) * 100;
        span.high = (after.high / before.low - 1) * 100;
    }
    return span;
}

static aigw_span_t wilson(double errors, double n)
{
    const double z = 1.96;
    double p = errors / n, z2 = z * z;
    double mid = p + z2 / (2 * n);
    double reach = z * sqrt(p * (1 - p) / n + z2 / (4 * n * n));
    aigw_span_t span = {1, (mid - reach) / (1 + z2 / n),
                        (mid + reach) / (1 + z2 / n)};

    return span;
}

aigw_span_t aigw_stats_points(apr_uint64_t errors, apr_uint64_t n,
                              apr_uint64_t errors_after, apr_uint64_t n_after)
{
    aigw_span_t span = {0, 0, 0}, b, a;
    double p, q;

    if (!n || !n_after) {
        return span;
    }
    p = (double)errors / (double)n;
    q = (double)errors_after / (double)n_after;
    b = wilson((double)errors, (double)n);
    a = wilson((double)errors_after, (double)n_after);
    span.known = 1;
    span.low =
        (q - p - sqrt((q - a.low) * (q - a.low) + (b.high - p) * (b.high - p)))
        * 100;
    span.high =
        (q - p + sqrt((a.high - q) * (a.high - q) + (p - b.low) * (p - b.low)))
        * 100;
    return span;
}

/* Seconds of a batch, and the first whole second. */
aigw_span_t aigw_stats_rate_span(const apr_int64_t *times, apr_uint64_t n)
{
    aigw_span_t span = {0, 0, 0};
    double count[AIGW_STATS_BATCHES], mean = 0, spread = 0;
    apr_int64_t first, seconds, each, batch;
    apr_uint64_t i;

    if (n < 2) {
        return span;
    }
    first = times[0] / SECOND + 1;
    seconds = times[n - 1] / SECOND - first;
    each = seconds / AIGW_STATS_BATCHES;
    if (each < 1) {
        return span;
    }
    memset(count, 0, sizeof(count));
    for (i = 0; i < n; i++) {
        batch = (times[i] / SECOND - first) / each;
        if (times[i] / SECOND >= first && batch < AIGW_STATS_BATCHES) {
            count[batch] += 1.0 / (double)each;
            mean += 1.0 / (double)each / AIGW_STATS_BATCHES;
        }
    }
    for (i = 0; i < AIGW_STATS_BATCHES; i++) {
        spread += (count[i] - mean) * (count[i] - mean);
    }
    spread = AIGW_STATS_T19
             * sqrt(spread / (AIGW_STATS_BATCHES - 1) / AIGW_STATS_BATCHES);
    span.known = 1;
    span.low = mean - spread;
    span.high = mean + spread;
    return span;
}
