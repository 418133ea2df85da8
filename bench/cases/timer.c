/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timer check (the paper's X17): a delay of known length, added to an operation, must show up
 * in its time; and the timer must run at the rate of CLOCK_MONOTONIC. This checks the host's timer;
 * delay.c does the same with a responder that waits.
 */
#include "../cases.h"

#include <math.h>

#define DELAY_NS       50000U
#define DELAY_FAULT_NS 1000.0
#define RATE_FAULT_PPM 1000.0
#define INTERVAL_NS    1000000U /* between the two readings that give one sample of the rate */
#define INTERVALS_MAX  200U
#define CHUNK          100U

static void wait_ns(uint64_t ns)
{
    uint64_t start_ns = bench_monotonic_ns();

    while (bench_monotonic_ns() - start_ns < ns)
        continue;
}

static double timed_wait(uint64_t ns)
{
    uint64_t start = bench_ticks();
    wait_ns(ns);
    return bench_ticks_ns(bench_ticks() - start);
}

/* The same operation with the delay and without it, in turn; a sample is the difference. */
static enum bench_status check_delay(struct bench *b, struct bench_samples *samples)
{
    struct bench_record record = {
        .system = "null",
        .config = {{"delay_us", NULL, DELAY_NS / 1000}},
        .metric = "added_delay",
        .unit = "us",
        .references = {"R329", "R330", "R331", "R332"},
    };
    struct bench_pace pace;
    struct bench_stats stats;
    uint64_t n;

    for (uint64_t r = 0; r < b->options->repetitions; r++) {
        bench_pace_start(&pace, b, "added delay");
        while ((n = bench_pace_next(&pace, CHUNK)) > 0) {
            for (uint64_t i = 0; i < n; i++) {
                double without = timed_wait(0);
                double with = timed_wait(DELAY_NS);
                bench_samples_add(samples, fmax(with - without, 0));
            }
        }
    }

    enum bench_status status = bench_report(b, &record, samples);
    if (status != BENCH_PASS || bench_samples_stats(samples, &stats))
        return status;
    if (fabs(stats.typical - DELAY_NS) > DELAY_FAULT_NS)
        return bench_degrade(b, "a delay of %.1f us is timed as %.3f us", DELAY_NS / 1e3,
                             stats.typical / 1e3);
    return BENCH_PASS;
}

/* How far the timer's rate is from CLOCK_MONOTONIC's, over many short intervals. */
static enum bench_status check_rate(struct bench *b, struct bench_samples *samples)
{
    struct bench_record record = {
        .system = "null",
        .config = {{"interval_us", NULL, INTERVAL_NS / 1000}},
        .metric = "rate_error",
        .unit = "ppm",
    };
    struct bench_stats stats;

    for (unsigned i = 0; i < INTERVALS_MAX; i++) {
        struct bench_clock_pair start = bench_clock_read_pair();
        wait_ns(INTERVAL_NS);
        struct bench_clock_pair end = bench_clock_read_pair();
        double ns = (double)(end.monotonic_ns - start.monotonic_ns);
        bench_samples_add(samples, fabs(bench_ticks_ns(end.ticks - start.ticks) / ns - 1) * 1e6);
    }

    enum bench_status status = bench_report(b, &record, samples);
    if (status != BENCH_PASS || bench_samples_stats(samples, &stats))
        return status;
    if (stats.typical > RATE_FAULT_PPM)
        return bench_degrade(b, "the timer (%s) is off by %.0f ppm against CLOCK_MONOTONIC",
                             bench_clock.name, stats.typical);
    return BENCH_PASS;
}

static enum bench_status run(struct bench *b)
{
    struct bench_samples delays = {0};
    struct bench_samples rates = {0};
    enum bench_status status;

    if (bench_samples_init(&delays, bench_capacity(b)) ||
        bench_samples_init(&rates, INTERVALS_MAX)) {
        status = bench_fail(b, "no memory for the samples");
        goto out;
    }
    status = check_delay(b, &delays);
    if (status != BENCH_FAIL && bench_clock.counter)
        status = bench_worse(status, check_rate(b, &rates));
out:
    bench_samples_free(&rates);
    bench_samples_free(&delays);
    return status;
}

const struct bench_case bench_case_timer = {
    .name = "timer",
    .paper = {"X17"},
    .summary =
        "timer check: a delay of 50 us must be timed as 50 us, at the rate of CLOCK_MONOTONIC",
    .iters = 2000,
    .run = run,
};
