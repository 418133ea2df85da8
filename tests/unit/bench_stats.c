/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the statistics of samples are those that bench/stats.h defines, on sets whose statistics
 * are known by hand.
 */
#include "bench/samples.h"
#include "tests/check.h"

#include <math.h>
#include <stdbool.h>

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

#define CHECK_NEAR(got, expected) CHECK(near(got, expected), "%.12g, expected %.12g", got, expected)

static struct bench_stats stats_of(const double *samples, size_t n)
{
    struct bench_stats stats;

    CHECK(bench_stats_of(&stats, samples, n) == 0, "no statistics of %zu samples", n);
    CHECK(stats.n == n, "n is %llu", (unsigned long long)stats.n);
    return stats;
}

/* 1 to 1000 in an order that is far from sorted (401 and 1000 share no factor). */
static void check_thousand(void)
{
    double samples[1000];

    for (size_t i = 0; i < 1000; i++)
        samples[i] = (double)(i * 401 % 1000 + 1);
    double first = samples[0];
    struct bench_stats stats = stats_of(samples, 1000);

    CHECK_NEAR(samples[0], first);
    CHECK_NEAR(stats.min, 1.0);
    CHECK_NEAR(stats.max, 1000.0);
    CHECK_NEAR(stats.typical, 500.5);
    CHECK_NEAR(stats.avg, 500.5);
    CHECK_NEAR(stats.p90, 900.0);
    CHECK_NEAR(stats.p99, 990.0);
    CHECK_NEAR(stats.p999, 999.0);
    /* Variance of 1..n over n - 1: n (n + 1) / 12. */
    CHECK_NEAR(stats.stdev, sqrt(1000.0 * 1001.0 / 12.0));
    CHECK(stats.outliers == 0, "%llu outliers", (unsigned long long)stats.outliers);
}

static void check_small(void)
{
    struct bench_stats stats = stats_of((double[]){7}, 1);

    CHECK_NEAR(stats.min, 7.0);
    CHECK_NEAR(stats.typical, 7.0);
    CHECK_NEAR(stats.p999, 7.0);
    CHECK(stats.stdev == 0, "stdev of one sample is %g", stats.stdev);

    stats = stats_of((double[]){9, 1, 5}, 3);
    CHECK_NEAR(stats.typical, 5.0);
    CHECK_NEAR(stats.p90, 9.0);
    CHECK_NEAR(stats.stdev, 4.0);

    stats = stats_of(NULL, 0);
    CHECK(stats.max == 0 && stats.typical == 0, "statistics of nothing");
}

/* Median 100, p90 102: the limit is 120, and only what is above it is an outlier. */
static void check_outliers(void)
{
    double samples[1000];

    for (size_t i = 0; i < 1000; i++)
        samples[i] = i < 800 ? 100 : i < 995 ? 102 : 120;
    CHECK(stats_of(samples, 1000).outliers == 0, "120 is not above 120");
    samples[3] = 120.5;
    samples[999] = 5000;
    struct bench_stats stats = stats_of(samples, 1000);
    CHECK(stats.outliers == 2, "%llu outliers", (unsigned long long)stats.outliers);

    /* All samples equal but one next step of the timer: 1% of spread is granted. */
    for (size_t i = 0; i < 1000; i++)
        samples[i] = 100;
    samples[0] = 109;
    samples[1] = 111;
    CHECK(stats_of(samples, 1000).outliers == 1, "the least spread is not 1%%");
}

static void check_ranks(void)
{
    CHECK(bench_rank(1, 999) == 1, "rank of one");
    CHECK(bench_rank(10, 900) == 9, "p90 of ten");
    CHECK(bench_rank(1001, 999) == 1000, "p99.9 of 1001 is rank %llu",
          (unsigned long long)bench_rank(1001, 999));
    /* Exact where the product of n and per mille does not fit in 64 bits. */
    CHECK(bench_rank(UINT64_C(1) << 60, 500) == UINT64_C(1) << 59, "median of 2^60");
}

static void check_capacity(void)
{
    struct bench_samples samples;
    struct bench_stats stats;

    CHECK(bench_samples_init(&samples, 2) == 0, "no memory");
    bench_samples_add(&samples, 1);
    bench_samples_add(&samples, 2);
    CHECK(bench_samples_stats(&samples, &stats) == 0 && stats.n == 2, "two of two samples");
    bench_samples_add(&samples, 3);
    CHECK(bench_samples_stats(&samples, &stats) != 0, "a lost sample went unnoticed");
    bench_samples_clear(&samples);
    CHECK(bench_samples_stats(&samples, &stats) == 0 && stats.n == 0, "not empty after clear");
    bench_samples_free(&samples);
}

int main(void)
{
    check_thousand();
    check_small();
    check_outliers();
    check_ranks();
    check_capacity();
    return 0;
}
