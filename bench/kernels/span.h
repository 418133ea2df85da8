/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a kernel's measured part took by both of a GPU's clocks: the timer that all SMs share
 * and the SM's own. From a span the host learns the SM's rate during that very measurement, and
 * whether the two agree. Included by the kernels and by the host code that launches them.
 */
#ifndef BENCH_KERNELS_SPAN_H
#define BENCH_KERNELS_SPAN_H

#include <doorbell/impl/port.h>

struct bench_span {
    uint64_t first_ns;
    uint64_t first_ticks;
    uint64_t last_ns;
    uint64_t last_ticks;
};

PORT_FN void bench_span_start(struct bench_span *span)
{
    span->first_ns = port_now_ns();
    span->first_ticks = port_clock();
}

PORT_FN void bench_span_end(struct bench_span *span)
{
    span->last_ns = port_now_ns();
    span->last_ticks = port_clock();
}

/*
 * Two readings of the SM's clock around an operation that ends with stores. One 16-byte store keeps
 * both, for which the compiler wants four registers in a row. Without that it gives the second
 * reading the registers of the last store, which then waits 11 to 16 ns until that has read them;
 * with it, it mostly does not.
 */
struct bench_interval {
    uint64_t start;
    uint64_t end;
} __attribute__((aligned(16)));

PORT_FN void bench_interval_keep(struct bench_interval *interval, uint64_t start, uint64_t end)
{
    port_st16_shared(interval, start, end);
}

static inline uint64_t bench_interval_ticks(struct bench_interval interval)
{
    return interval.end - interval.start;
}

/* Lets `ticks` of the SM's clock pass. */
PORT_FN void bench_pause(uint32_t ticks)
{
    uint64_t start = port_clock();
    while (port_clock() - start < ticks)
        port_pause();
}

#endif
