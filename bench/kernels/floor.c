/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floors of host memory; see floor.h. One source for a C11 compiler and nvcc.
 */
#include "floor.h"

#include <doorbell/device.h>

PORT_FN int floor_once(const struct bench_floor_args *args, enum bench_floor floor, uint64_t value,
                       uint64_t deadline)
{
    switch (floor) {
    case BENCH_FLOOR_FLAG:
        port_st64(args->there, value, PORT_RELAXED, PORT_SYSTEM);
        return port_wait_ge64(args->back, value, PORT_SYSTEM, deadline) ? DB_ERROR_TIMEOUT : DB_OK;
    case BENCH_FLOOR_READ:
        /* A loop, so that the value has come when the clock is read. No count is that large. */
        while (port_ld64(args->back, PORT_RELAXED, PORT_SYSTEM) == UINT64_MAX)
            port_pause();
        return DB_OK;
    case BENCH_FLOOR_RELEASE_SYSTEM:
        port_st64(&args->there[1], value, PORT_RELAXED, PORT_SYSTEM);
        port_fence(PORT_RELEASE, PORT_SYSTEM);
        port_st64(&args->there[0], value, PORT_RELAXED, PORT_SYSTEM);
        return DB_OK;
    case BENCH_FLOOR_RELEASE_GPU:
        port_st64(&args->there[1], value, PORT_RELAXED, PORT_SYSTEM);
        port_fence(PORT_RELEASE, PORT_GPU);
        port_st64(&args->there[0], value, PORT_RELAXED, PORT_SYSTEM);
        return DB_OK;
    default:
        port_st16_shared((uint8_t *)args->there, value, value);
        return DB_OK;
    }
}

PORT_FN int floor_loop(const struct bench_floor_args *kernel_args, enum bench_floor floor)
{
    const struct bench_floor_args own = *kernel_args, *args = &own; /* kept in registers */
    int status = DB_OK;

    for (uint32_t i = 0; i < args->warmup + args->count && !status; i++) {
        uint64_t value = args->first + i + 1;
        uint64_t deadline = port_now_ns() + args->timeout_ns;
        if (i == args->warmup)
            bench_span_start(args->span);
        uint64_t start = port_clock();
        status = floor_once(args, floor, value, deadline);
        uint64_t end = port_clock();
        if (i >= args->warmup)
            bench_interval_keep(&args->ticks[i - args->warmup], start, end);
    }
    bench_span_end(args->span);
    return status;
}

/* As a thread does that waits for a completion in host memory: one read after the other. */
PORT_FN void poll_host(const struct bench_floor_args *args)
{
    const uint64_t *word = args->back + (size_t)port_block() * BENCH_FLOOR_LINE_WORDS;
    while (port_ld64(args->ended, PORT_RELAXED, PORT_GPU) == 0)
        for (int i = 0; i < 16 && port_ld64(word, PORT_ACQUIRE, PORT_SYSTEM) != UINT64_MAX; i++)
            port_pause();
}

PORT_KERNEL(bench_floor, struct bench_floor_args, args)
{
    if (port_thread() != 0)
        return;
    if (port_block() != 0) {
        poll_host(args);
        return;
    }
    switch ((enum bench_floor)args->floor) {
    case BENCH_FLOOR_FLAG:
        *args->status = floor_loop(args, BENCH_FLOOR_FLAG);
        break;
    case BENCH_FLOOR_READ:
        *args->status = floor_loop(args, BENCH_FLOOR_READ);
        break;
    case BENCH_FLOOR_RELEASE_SYSTEM:
        *args->status = floor_loop(args, BENCH_FLOOR_RELEASE_SYSTEM);
        break;
    case BENCH_FLOOR_RELEASE_GPU:
        *args->status = floor_loop(args, BENCH_FLOOR_RELEASE_GPU);
        break;
    default:
        *args->status = floor_loop(args, BENCH_FLOOR_STORE);
        break;
    }
    port_st64(args->ended, 1, PORT_RELAXED, PORT_GPU);
}
