/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choice and calibration of the host's timer. The TSC is trusted when the processor says that it is
 * invariant (Intel SDM volume 3, "Invariant TSC"; AMD APM volume 3, CPUID Fn8000_0007); the generic
 * timer of Armv8-A counts at a constant rate by definition.
 */
#include "clock.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CALIBRATION_NS 20000000U
#define PAIR_TRIES     16

struct bench_clock bench_clock = {.ns_per_tick = 1, .name = "clock_monotonic"};

/* NULL when the counter keeps its rate and runs on in all idle states. */
static const char *counter_fault(void)
{
#if defined(__x86_64__)
    unsigned eax;
    unsigned ebx;
    unsigned ecx;
    unsigned edx = 0;

    if (!__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) || !(edx & 1U << 8))
        return "the TSC of this processor is not invariant";
    return NULL;
#elif defined(__aarch64__)
    return NULL;
#else
    return "this processor has no counter that we know how to read";
#endif
}

struct bench_clock_pair bench_clock_read_pair(void)
{
    struct bench_clock_pair best = {0};
    uint64_t narrowest = UINT64_MAX;

    for (int i = 0; i < PAIR_TRIES; i++) {
        uint64_t before = bench_counter();
        uint64_t monotonic_ns = bench_monotonic_ns();
        uint64_t width = bench_counter() - before;

        if (width < narrowest) {
            narrowest = width;
            best.ticks = before + width / 2;
            best.monotonic_ns = monotonic_ns;
        }
    }
    return best;
}

void bench_clock_start(void)
{
    bench_clock.why_not = counter_fault();
    if (bench_clock.why_not)
        return;

    struct bench_clock_pair first = bench_clock_read_pair();
    while (bench_monotonic_ns() - first.monotonic_ns < CALIBRATION_NS)
        continue;
    struct bench_clock_pair last = bench_clock_read_pair();

    if (last.ticks <= first.ticks) {
        bench_clock.why_not = "the processor's counter did not advance";
        return;
    }
    bench_clock.counter = true;
    bench_clock.ns_per_tick =
        (double)(last.monotonic_ns - first.monotonic_ns) / (double)(last.ticks - first.ticks);
#if defined(__x86_64__)
    bench_clock.name = "tsc";
#else
    bench_clock.name = "cntvct";
#endif
}
