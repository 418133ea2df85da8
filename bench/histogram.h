/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A histogram of fixed size with buckets that grow with the value: 256 equal buckets in each power
 * of two. It holds any number of samples in about 114 KiB, which is what lets a benchmark run for a
 * given time instead of a given count. Included by samples.h.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include "stats.h"

#include <stdio.h>

/* A sample is counted in thousandths of its unit: a time in nanoseconds to a picosecond. */
#define BENCH_HISTOGRAM_STEPS_PER_UNIT 1000.0
#define BENCH_HISTOGRAM_SUB_LOG2       8
#define BENCH_HISTOGRAM_SUB            (1U << BENCH_HISTOGRAM_SUB_LOG2)
#define BENCH_HISTOGRAM_BUCKETS        ((64 - BENCH_HISTOGRAM_SUB_LOG2 + 1) * BENCH_HISTOGRAM_SUB)

/*
 * A value read back, the middle of its bucket, is off by at most this part of the sample, or by
 * half a step where the sample is below 0.256. Only the percentiles and the median carry this
 * error: min, max, avg and stdev are kept exactly, and the outliers are off only by those in the
 * bucket of their limit.
 */
#define BENCH_HISTOGRAM_ERROR (1.0 / (2 * BENCH_HISTOGRAM_SUB - 1))

/* Empty when all bytes are 0. */
struct bench_histogram {
    uint64_t n;
    double min;
    double max;
    double mean;
    double squares; /* sum of the squared deviations from the mean so far (Welford) */
    uint64_t count[BENCH_HISTOGRAM_BUCKETS];
};

/* The bucket of a value counted in steps. */
static inline unsigned bench_histogram_bucket(uint64_t steps)
{
    if (steps < BENCH_HISTOGRAM_SUB)
        return (unsigned)steps;

    unsigned shift = 63U - (unsigned)__builtin_clzll(steps) - BENCH_HISTOGRAM_SUB_LOG2;
    return (shift << BENCH_HISTOGRAM_SUB_LOG2) + (unsigned)(steps >> shift);
}

/* Counts one sample; a negative one counts as 0. */
void bench_histogram_add(struct bench_histogram *histogram, double sample);

/* The range of samples that a bucket counts: low <= sample < high. */
void bench_histogram_range(unsigned bucket, double *low, double *high);

/* The statistics of stats.h with the error stated above. */
void bench_histogram_stats(const struct bench_histogram *histogram, struct bench_stats *stats);

/* Prints the non-empty ranges, merged to eight for each power of two, with shares and a bar. Values
 * are multiplied by `factor` to come out in `unit`. */
void bench_histogram_print(const struct bench_histogram *histogram, double factor, const char *unit,
                           FILE *out);

#endif
