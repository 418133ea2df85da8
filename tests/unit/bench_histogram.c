/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the histogram's buckets cover all values without gap or overlap, and its statistics are
 * those of the samples within the error that bench/histogram.h states.
 */
#include "bench/samples.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

#define SAMPLES 200000

static uint64_t random_state = 12345;

/* xorshift64: any sequence that repeats on every machine will do. */
static double uniform(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) / 9007199254740992.0;
}

static void check_buckets(void)
{
    double end = 0;

    for (unsigned i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++) {
        double low;
        double high;

        bench_histogram_range(i, &low, &high);
        CHECK(fabs(low - end) <= 1e-12 * end, "bucket %u starts at %g, the last ended at %g", i,
              low, end);
        CHECK(high > low, "bucket %u is empty", i);
        end = high;
    }

    unsigned last = 0;
    for (unsigned shift = 0; shift < 64; shift++) {
        uint64_t power = UINT64_C(1) << shift;
        CHECK(bench_histogram_bucket(power) >= last, "bucket of 2^%u goes back", shift);
        CHECK(bench_histogram_bucket(power - 1) <= bench_histogram_bucket(power), "2^%u - 1",
              shift);
        last = bench_histogram_bucket(power);
    }
    CHECK(bench_histogram_bucket(UINT64_MAX) == BENCH_HISTOGRAM_BUCKETS - 1,
          "the last bucket is %u", bench_histogram_bucket(UINT64_MAX));
}

static void check_within(const char *what, double got, double exact)
{
    double allowed = fmax(exact * BENCH_HISTOGRAM_ERROR, 0.5 / BENCH_HISTOGRAM_STEPS_PER_UNIT);

    CHECK(fabs(got - exact) <= allowed * (1 + 1e-9), "%s: %.9g, exactly %.9g, allowed %.3g", what,
          got, exact, allowed);
}

/* The same samples into both; `shape` stretches uniform numbers over many powers of two. */
static void check_against_exact(double scale, double shape)
{
    struct bench_samples exact;
    struct bench_samples counted;
    struct bench_stats e;
    struct bench_stats h;

    CHECK(!bench_samples_init(&exact, SAMPLES) && !bench_samples_init(&counted, 0), "no memory");
    for (size_t i = 0; i < SAMPLES; i++) {
        double sample = scale * exp(shape * uniform());
        bench_samples_add(&exact, sample);
        bench_samples_add(&counted, sample);
    }
    CHECK(!bench_samples_stats(&exact, &e) && !bench_samples_stats(&counted, &h), "no statistics");

    CHECK(e.n == h.n, "n differs");
    CHECK(e.min == h.min && e.max == h.max, "min and max are not exact");
    CHECK(fabs(e.avg - h.avg) <= 1e-9 * e.avg, "avg %.12g, exactly %.12g", h.avg, e.avg);
    CHECK(fabs(e.stdev - h.stdev) <= 1e-6 * e.stdev, "stdev %.12g, exactly %.12g", h.stdev,
          e.stdev);
    check_within("median", h.typical, e.typical);
    check_within("p90", h.p90, e.p90);
    check_within("p99", h.p99, e.p99);
    check_within("p99.9", h.p999, e.p999);
    bench_samples_free(&exact);
    bench_samples_free(&counted);
}

/* 990 samples of 100 and ten of 10000: the outliers are counted as in the exact statistics. */
static void check_outliers(void)
{
    struct bench_histogram histogram;
    struct bench_stats stats;

    memset(&histogram, 0, sizeof(histogram));
    for (int i = 0; i < 1000; i++)
        bench_histogram_add(&histogram, i % 100 == 7 ? 10000 : 100);
    bench_histogram_stats(&histogram, &stats);
    CHECK(stats.outliers == 10, "%llu outliers", (unsigned long long)stats.outliers);
}

static void check_odd_values(void)
{
    struct bench_histogram histogram;
    struct bench_stats stats;

    memset(&histogram, 0, sizeof(histogram));
    bench_histogram_stats(&histogram, &stats);
    CHECK(stats.n == 0 && stats.max == 0, "statistics of nothing");
    bench_histogram_add(&histogram, -5);
    bench_histogram_add(&histogram, 0);
    bench_histogram_add(&histogram, 1e30);
    bench_histogram_stats(&histogram, &stats);
    CHECK(stats.n == 3 && stats.min == 0 && stats.typical < 0.001 && stats.max == 1e30,
          "min %g, median %g, max %g", stats.min, stats.typical, stats.max);
}

int main(void)
{
    check_buckets();
    check_against_exact(15, 1);
    check_against_exact(0.05, 8);
    check_against_exact(1e6, 12);
    check_outliers();
    check_odd_values();
    return 0;
}
