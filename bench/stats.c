/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exact statistics: the samples are copied, sorted and read by rank. For the definitions see
 * stats.h.
 */
#include "stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Mean and deviation around it, in two passes: one pass of sums would lose the deviation of long
 * runs of nearly equal samples. */
static void moments(struct bench_stats *stats, const double *samples, size_t n)
{
    double sum = 0;
    double squares = 0;

    for (size_t i = 0; i < n; i++)
        sum += samples[i];
    stats->avg = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (samples[i] - stats->avg) * (samples[i] - stats->avg);
    stats->stdev = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
}

int bench_stats_of(struct bench_stats *stats, const double *samples, size_t n)
{
    memset(stats, 0, sizeof(*stats));
    if (n == 0)
        return 0;

    double *sorted = malloc(n * sizeof(*sorted));
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, samples, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare);

    stats->n = n;
    stats->min = sorted[0];
    stats->max = sorted[n - 1];
    stats->typical = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    stats->p90 = sorted[bench_rank(n, 900) - 1];
    stats->p99 = sorted[bench_rank(n, 990) - 1];
    stats->p999 = sorted[bench_rank(n, 999) - 1];
    moments(stats, samples, n);

    double limit = bench_outlier_limit(stats->typical, stats->p90);
    for (size_t i = n; i > 0 && sorted[i - 1] > limit; i--)
        stats->outliers++;

    free(sorted);
    return 0;
}

void bench_stats_scale(struct bench_stats *stats, double factor)
{
    stats->min *= factor;
    stats->typical *= factor;
    stats->avg *= factor;
    stats->max *= factor;
    stats->stdev *= factor;
    stats->p90 *= factor;
    stats->p99 *= factor;
    stats->p999 *= factor;
}
