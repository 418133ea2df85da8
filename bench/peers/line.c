/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cache line's round trip between two cores; see line.h.
 */
#include "line.h"

#include <pthread.h>
#include <sched.h>

/* Spins between two looks at whether the other thread has died or lost its core. */
#define SPINS 100000u

struct line {
    _Alignas(128) uint64_t there;
    _Alignas(128) uint64_t back;
    _Alignas(128) uint64_t end; /* the last count; the echo returns after it */
};

static void wait_for(const uint64_t *word, uint64_t count)
{
    for (uint32_t spins = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) < count; spins++)
        if (spins % SPINS == 0)
            sched_yield();
}

static void *echo(void *argument)
{
    struct line *line = argument;
    for (uint64_t count = 1; count <= __atomic_load_n(&line->end, __ATOMIC_RELAXED); count++) {
        wait_for(&line->there, count);
        __atomic_store_n(&line->back, count, __ATOMIC_RELEASE);
    }
    return NULL;
}

enum bench_status line_round_trip(struct bench *b)
{
    const uint64_t warmup = 1000, count = 10000;
    struct line line = {.end = warmup + count};
    struct bench_samples samples;
    pthread_t thread;

    if (bench_samples_init(&samples, count))
        return bench_fail(b, "no memory for the samples");
    if (pthread_create(&thread, NULL, echo, &line)) {
        bench_samples_free(&samples);
        return bench_fail(b, "no thread for the cache line's round trip");
    }
    for (uint64_t i = 1; i <= warmup + count; i++) {
        uint64_t start = bench_ticks();
        __atomic_store_n(&line.there, i, __ATOMIC_RELEASE);
        wait_for(&line.back, i);
        uint64_t end = bench_ticks();
        if (i > warmup)
            bench_samples_add(&samples, bench_ticks_ns(end - start));
    }
    pthread_join(thread, NULL);
    struct bench_record record = {
        .system = "cache line",
        .metric = "round_trip",
        .unit = "us",
        .msg_bytes = 8,
    };
    enum bench_status status = bench_report(b, &record, &samples);
    bench_samples_free(&samples);
    return status;
}
