/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a benchmark puts its samples while it measures: an array of all of them when their number
 * is known (-n), or a histogram of fixed size when only the time is (-D). Included by bench.h.
 */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include "histogram.h"

/* The most samples that are kept one by one (512 MiB). */
#define BENCH_SAMPLES_MAX (UINT64_C(1) << 26)

struct bench_samples {
    double *value; /* `capacity` entries, `count` of them used, in the order of adding */
    uint64_t capacity;
    uint64_t count;
    uint64_t lost;                     /* added beyond the capacity and not kept */
    struct bench_histogram *histogram; /* used instead of `value` when the capacity is 0 */
};

/*
 * Makes an empty set for `capacity` samples, or for any number of them when it is 0. The memory is
 * touched here, so that no page fault falls into a measurement. Returns 0 or -ENOMEM; release it
 * with bench_samples_free(), which also takes a set of zero bytes.
 */
int bench_samples_init(struct bench_samples *samples, uint64_t capacity);
void bench_samples_free(struct bench_samples *samples);

/* Forgets the samples and keeps the memory. */
void bench_samples_clear(struct bench_samples *samples);

/* Adds one sample: a time in nanoseconds, or a rate, ratio or size in the unit of its record. A
 * histogram counts a negative one as 0. One thread at a time. */
static inline void bench_samples_add(struct bench_samples *samples, double sample)
{
    if (samples->histogram)
        bench_histogram_add(samples->histogram, sample);
    else if (samples->count < samples->capacity)
        samples->value[samples->count++] = sample;
    else
        samples->lost++;
}

/* Computes the statistics. Returns 0; -ENOMEM; -EOVERFLOW when samples were lost. */
int bench_samples_stats(const struct bench_samples *samples, struct bench_stats *stats);

#endif
