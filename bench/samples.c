/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory behind a set of samples, and the choice between exact statistics and the histogram's.
 */
#include "samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* explicit_bzero() and not memset(): a compiler may turn malloc and memset to 0 into calloc, which
 * touches no page. */
int bench_samples_init(struct bench_samples *samples, uint64_t capacity)
{
    memset(samples, 0, sizeof(*samples));
    samples->capacity = capacity;

    if (capacity == 0) {
        samples->histogram = malloc(sizeof(*samples->histogram));
        if (!samples->histogram)
            return -ENOMEM;
        explicit_bzero(samples->histogram, sizeof(*samples->histogram));
    } else {
        if (capacity > SIZE_MAX / sizeof(*samples->value))
            return -ENOMEM;
        samples->value = malloc((size_t)capacity * sizeof(*samples->value));
        if (!samples->value)
            return -ENOMEM;
        explicit_bzero(samples->value, (size_t)capacity * sizeof(*samples->value));
    }
    return 0;
}

void bench_samples_free(struct bench_samples *samples)
{
    free(samples->value);
    free(samples->histogram);
    memset(samples, 0, sizeof(*samples));
}

void bench_samples_clear(struct bench_samples *samples)
{
    samples->count = 0;
    samples->lost = 0;
    if (samples->histogram)
        memset(samples->histogram, 0, sizeof(*samples->histogram));
}

int bench_samples_stats(const struct bench_samples *samples, struct bench_stats *stats)
{
    if (samples->lost)
        return -EOVERFLOW;
    if (!samples->histogram)
        return bench_stats_of(stats, samples->value, (size_t)samples->count);
    bench_histogram_stats(samples->histogram, stats);
    return 0;
}
