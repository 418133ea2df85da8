/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counting into the histogram and reading statistics by rank. For the layout of the buckets and the
 * error that follows from it see histogram.h.
 */
#include "histogram.h"

#include <math.h>
#include <string.h>

/* The largest count of steps that a double holds below 2^64. */
#define STEPS_MAX 18446744073709549568.0

static uint64_t steps_of(double sample)
{
    double steps = sample * BENCH_HISTOGRAM_STEPS_PER_UNIT + 0.5;

    if (!(steps > 0))
        return 0;
    return steps >= STEPS_MAX ? (uint64_t)STEPS_MAX : (uint64_t)steps;
}

void bench_histogram_add(struct bench_histogram *histogram, double sample)
{
    if (!(sample > 0))
        sample = 0;
    histogram->count[bench_histogram_bucket(steps_of(sample))]++;

    if (histogram->n == 0 || sample < histogram->min)
        histogram->min = sample;
    if (histogram->n == 0 || sample > histogram->max)
        histogram->max = sample;
    histogram->n++;

    double from_old_mean = sample - histogram->mean;
    histogram->mean += from_old_mean / (double)histogram->n;
    histogram->squares += from_old_mean * (sample - histogram->mean);
}

void bench_histogram_range(unsigned bucket, double *low, double *high)
{
    unsigned shift = 0;
    uint64_t first = bucket;

    if (bucket >= BENCH_HISTOGRAM_SUB) {
        shift = (bucket >> BENCH_HISTOGRAM_SUB_LOG2) - 1;
        first = (uint64_t)(bucket - (shift << BENCH_HISTOGRAM_SUB_LOG2)) << shift;
    }
    /* A sample was rounded to the nearest step, so each step starts half a step below itself. */
    *low = ((double)first - 0.5) / BENCH_HISTOGRAM_STEPS_PER_UNIT;
    *high = *low + ldexp(1.0, (int)shift) / BENCH_HISTOGRAM_STEPS_PER_UNIT;
    if (*low < 0)
        *low = 0;
}

/* The sample of a rank, 1 to n: the middle of its bucket, never outside what was really seen. */
static double value_at(const struct bench_histogram *histogram, uint64_t rank)
{
    uint64_t seen = 0;

    for (unsigned i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->count[i];
        if (seen >= rank) {
            double low;
            double high;
            bench_histogram_range(i, &low, &high);
            return fmin(fmax((low + high) / 2, histogram->min), histogram->max);
        }
    }
    return histogram->max;
}

static uint64_t count_above(const struct bench_histogram *histogram, double limit)
{
    uint64_t above = 0;

    for (unsigned i = bench_histogram_bucket(steps_of(limit)) + 1; i < BENCH_HISTOGRAM_BUCKETS; i++)
        above += histogram->count[i];
    return above;
}

void bench_histogram_stats(const struct bench_histogram *histogram, struct bench_stats *stats)
{
    uint64_t n = histogram->n;

    memset(stats, 0, sizeof(*stats));
    if (n == 0)
        return;

    stats->n = n;
    stats->min = histogram->min;
    stats->max = histogram->max;
    stats->avg = histogram->mean;
    stats->stdev = n > 1 ? sqrt(histogram->squares / (double)(n - 1)) : 0;
    stats->typical = (value_at(histogram, (n + 1) / 2) + value_at(histogram, n / 2 + 1)) / 2;
    stats->p90 = value_at(histogram, bench_rank(n, 900));
    stats->p99 = value_at(histogram, bench_rank(n, 990));
    stats->p999 = value_at(histogram, bench_rank(n, 999));
    stats->outliers = count_above(histogram, bench_outlier_limit(stats->typical, stats->p90));
}

void bench_histogram_print(const struct bench_histogram *histogram, double factor, const char *unit,
                           FILE *out)
{
    static const char bar[] = "########################################";
    const unsigned merged = BENCH_HISTOGRAM_SUB / 8;
    uint64_t seen = 0;

    fprintf(out, "%14s %14s %12s %8s %8s  (%s)\n", "from", "to", "samples", "%", "up to %", unit);
    for (unsigned i = 0; i < BENCH_HISTOGRAM_BUCKETS && seen < histogram->n; i += merged) {
        uint64_t count = 0;
        double low;
        double high;
        double unused;

        for (unsigned j = i; j < i + merged; j++)
            count += histogram->count[j];
        if (count == 0)
            continue;
        seen += count;
        bench_histogram_range(i, &low, &unused);
        bench_histogram_range(i + merged - 1, &unused, &high);

        double share = (double)count / (double)histogram->n;
        fprintf(out, "%14.6g %14.6g %12llu %8.3f %8.3f%s%.*s\n", low * factor, high * factor,
                (unsigned long long)count, share * 100, (double)seen / (double)histogram->n * 100,
                share * 40 >= 0.5 ? "  " : "", (int)(share * 40 + 0.5), bar);
    }
}
