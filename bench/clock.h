/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timer of host code: the processor's counter, converted to nanoseconds by a calibration
 * against CLOCK_MONOTONIC, or CLOCK_MONOTONIC itself where the counter cannot be trusted. What a
 * GPU thread times is read from its own clock (device.h). Included by bench.h.
 */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct bench_clock {
    bool counter;        /* the processor's counter is used, not CLOCK_MONOTONIC */
    double ns_per_tick;  /* 1 with CLOCK_MONOTONIC */
    const char *name;    /* "tsc", "cntvct" or "clock_monotonic" */
    const char *why_not; /* why the counter is not used; NULL when it is */
};

/* Set by bench_clock_start() and constant from then on. */
extern struct bench_clock bench_clock;

/* Chooses the timer and calibrates it, which takes 20 ms. Called once, before any thread measures.
 */
void bench_clock_start(void);

/* CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t bench_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* Sleeps so long, whatever signals come; of 0 it makes no call. */
static inline void bench_sleep_ns(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000U),
                            .tv_nsec = (long)(ns % 1000000000U)};

    while (ns && nanosleep(&left, &left))
        continue;
}

/* Reads the counter after all earlier instructions have finished and before any later one starts.
 */
static inline uint64_t bench_counter(void)
{
#if defined(__x86_64__)
    uint32_t low;
    uint32_t high;

    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
    return ticks;
#else
    return bench_monotonic_ns();
#endif
}

/* Now, in ticks of the chosen timer. */
static inline uint64_t bench_ticks(void)
{
    return bench_clock.counter ? bench_counter() : bench_monotonic_ns();
}

/* The nanoseconds in so many ticks. */
static inline double bench_ticks_ns(uint64_t ticks)
{
    return (double)ticks * bench_clock.ns_per_tick;
}

/* One reading of both timers, taken as close together as an interrupted machine allows. */
struct bench_clock_pair {
    uint64_t ticks;
    uint64_t monotonic_ns;
};

struct bench_clock_pair bench_clock_read_pair(void);

#endif
