/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The statistics of a set of samples, as every benchmark reports them: the same definitions whether
 * they come from the samples themselves (stats.c) or from a histogram (histogram.c). Included by
 * samples.h and record.h.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

/*
 * In the unit of the samples. All fields are 0 when n is 0.
 *
 * A percentile is the nearest rank: the smallest sample that at least so many percent of the
 * samples do not exceed; `typical` is the median (the mean of the two middle samples when n is
 * even); `stdev` divides by n - 1. An outlier is a sample above bench_outlier_limit().
 */
struct bench_stats {
    uint64_t n;
    double min;
    double typical;
    double avg;
    double max;
    double stdev;
    double p90;
    double p99;
    double p999;
    uint64_t outliers;
};

/* The 1-based rank of the percentile per_mille / 10 among n samples, n > 0. */
static inline uint64_t bench_rank(uint64_t n, unsigned per_mille)
{
    uint64_t whole = n / 1000 * per_mille;
    uint64_t rest = n % 1000 * per_mille;

    uint64_t rank = whole + (rest + 999) / 1000;
    return rank == 0 ? 1 : rank;
}

/*
 * Samples above this are outliers: median + 10 x (p90 - median). A spread below 1% of the median
 * counts as 1%, so that a timer whose step hides the spread does not make outliers of its next
 * step.
 */
static inline double bench_outlier_limit(double median, double p90)
{
    double spread = p90 - median;
    double least = median / 100;

    return median + 10 * (spread > least ? spread : least);
}

/* Computes the exact statistics of n samples, which stay as they are. Returns 0, or -ENOMEM when
 * there is no memory for a sorted copy. */
int bench_stats_of(struct bench_stats *stats, const double *samples, size_t n);

/* Converts the statistics to another unit: every value is multiplied by a factor > 0. */
void bench_stats_scale(struct bench_stats *stats, double factor);

#endif
