/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sample says about more than itself: quantiles with order-statistic
 * intervals, error rates, rates over time.  Figures of the sample are exact;
 * only the borders of intervals are binary fractions, and no money comes
 * here.
 */
#ifndef AIGW_CALC_STATS_H
#define AIGW_CALC_STATS_H

#include <apr.h>

/* Two intervals of 97.5 % each hold at once in at least 95 % of cases. */
#define AIGW_STATS_Z 2.2414   /* normal, both sides */
#define AIGW_STATS_T19 2.4334 /* Student, 19 degrees, both sides */
#define AIGW_STATS_BATCHES 20

typedef struct {
    int known;
    double low, high;
} aigw_span_t;

/** Sort so that aigw_stats_rank() finds its way. */
void aigw_stats_sort(apr_int64_t *values, apr_uint64_t n);

/**
 * The value at a quantile: the least one that at least so many of a thousand
 * do not pass. @param values sorted, n above 0
 */
apr_int64_t aigw_stats_quantile(const apr_int64_t *values, apr_uint64_t n,
                                int per_mille);

/** Its interval by order statistics; unknown if the sample is too small. */
aigw_span_t aigw_stats_quantile_span(const apr_int64_t *values, apr_uint64_t n,
                                     int per_mille);

/** after / before - 1 in per cent, of two intervals of positive values. */
aigw_span_t aigw_stats_change(aigw_span_t before, aigw_span_t after);

/**
 * The difference of two error rates in points (Newcombe, from Wilson's
 * intervals of 95 %).
 */
aigw_span_t aigw_stats_points(apr_uint64_t errors, apr_uint64_t n,
                              apr_uint64_t errors_after, apr_uint64_t n_after);

/**
 * Events per second, from 20 batches of whole seconds: lines of a log are
 * not independent, batches nearly are.
 * @param times sorted, in microseconds
 */
aigw_span_t aigw_stats_rate_span(const apr_int64_t *times, apr_uint64_t n);

#endif
