/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The L2 as threads reach it; see l2.h. One source for a C11 compiler and nvcc.
 */
#include "l2.h"

#include <doorbell/device.h>

/* ---- One operation at a time ---- */

/* The loops are there so that the value has come when the clock is read: no word holds that. */
PORT_FN void l2_once(uint32_t *word, enum bench_l2_way way, uint32_t value)
{
    switch (way) {
    case BENCH_L2_STORE_LOAD:
        port_st32(word, value, PORT_RELAXED, PORT_SYSTEM);
        while (port_ld32(word, PORT_RELAXED, PORT_GPU) == UINT32_MAX)
            port_pause();
        break;
    case BENCH_L2_ATOMIC:
        while (port_add32(word, 0) == UINT32_MAX)
            port_pause();
        break;
    case BENCH_L2_RELEASE:
        port_st32(word, value, PORT_RELAXED, PORT_SYSTEM);
        port_fence(PORT_RELEASE, PORT_GPU);
        break;
    case BENCH_L2_RELEASE_SYSTEM:
        port_st32(word, value, PORT_RELAXED, PORT_SYSTEM);
        port_fence(PORT_RELEASE, PORT_SYSTEM);
        break;
    default:
        while (port_ld32(word, PORT_RELAXED, PORT_GPU) == UINT32_MAX)
            port_pause();
    }
}

PORT_FN void l2_line(const struct bench_l2_args *args, enum bench_l2_way way, uint32_t line)
{
    uint32_t *word = (uint32_t *)(void *)(args->lines + line * args->stride);
    for (uint32_t i = 0; i < args->warmup + args->count; i++) {
        /* A release waits for all that was stored since the last one, wherever that went: for the
         * last sample here, so that the one that is timed does not. */
        port_fence(PORT_RELEASE, PORT_GPU);
        if (args->doorbell)
            port_doorbell(args->doorbell, i);
        bench_pause(args->pause_ticks);
        uint64_t start = port_clock();
        l2_once(word, way, i);
        uint64_t end = port_clock();
        if (i >= args->warmup)
            args->ticks[line * args->count + (i - args->warmup)] = (uint32_t)(end - start);
    }
}

PORT_FN void l2_lines(const struct bench_l2_args *kernel_args, enum bench_l2_way way)
{
    const struct bench_l2_args own = *kernel_args; /* so that fences leave it in registers */
    bench_span_start(own.span);
    for (uint32_t line = 0; line < own.line_count; line++)
        l2_line(&own, way, line);
    bench_span_end(own.span);
}

PORT_KERNEL(bench_l2, struct bench_l2_args, args)
{
    if (port_block() != 0 || port_thread() != 0)
        return;
    switch ((enum bench_l2_way)args->way) {
    case BENCH_L2_STORE_LOAD:
        l2_lines(args, BENCH_L2_STORE_LOAD);
        break;
    case BENCH_L2_ATOMIC:
        l2_lines(args, BENCH_L2_ATOMIC);
        break;
    case BENCH_L2_RELEASE:
        l2_lines(args, BENCH_L2_RELEASE);
        break;
    case BENCH_L2_RELEASE_SYSTEM:
        l2_lines(args, BENCH_L2_RELEASE_SYSTEM);
        break;
    default:
        l2_lines(args, BENCH_L2_LOAD);
    }
}

/* ---- Messages ---- */

PORT_FN void l2_send(const struct bench_l2_messages_args *args, enum bench_l2_between between,
                     uint32_t i)
{
    uint64_t flag = i;
    if (between == BENCH_L2_ANSWER)
        flag = (uint64_t)port_xchg32(args->message, i) + 1; /* which was i - 1 */
    else
        port_st32(args->message, i, PORT_RELAXED, PORT_GPU);
    if (between == BENCH_L2_A_LOAD)
        flag = port_ld32(args->message, PORT_RELAXED, PORT_GPU);
    /* Visible before the flag: the message, to the reader, which acquires the flag. */
    if (between == BENCH_L2_A_FENCE)
        port_fence(PORT_RELEASE, PORT_GPU);
    port_st64(args->flag, flag, PORT_RELAXED, PORT_GPU);
}

PORT_FN int l2_send_all(const struct bench_l2_messages_args *args, enum bench_l2_between between)
{
    for (uint32_t i = 1; i <= args->count; i++) {
        l2_send(args, between, i);
        if (port_wait_ge64(args->answer, i, PORT_GPU, port_now_ns() + args->timeout_ns))
            return DB_ERROR_TIMEOUT;
    }
    return DB_OK;
}

PORT_FN int l2_send_each(const struct bench_l2_messages_args *args)
{
    switch ((enum bench_l2_between)args->between) {
    case BENCH_L2_A_LOAD:
        return l2_send_all(args, BENCH_L2_A_LOAD);
    case BENCH_L2_ANSWER:
        return l2_send_all(args, BENCH_L2_ANSWER);
    case BENCH_L2_A_FENCE:
        return l2_send_all(args, BENCH_L2_A_FENCE);
    default:
        return l2_send_all(args, BENCH_L2_NOTHING);
    }
}

PORT_FN int l2_receive_all(const struct bench_l2_messages_args *args)
{
    uint64_t stale = 0;
    int status = DB_OK;
    for (uint32_t i = 1; i <= args->count && !status; i++) {
        if (port_wait_ge64(args->flag, i, PORT_GPU, port_now_ns() + args->timeout_ns))
            status = DB_ERROR_TIMEOUT;
        else if (port_ld32(args->message, PORT_RELAXED, PORT_GPU) < i)
            stale++;
        port_st64(args->answer, i, PORT_RELAXED, PORT_GPU);
    }
    *args->stale = stale;
    return status;
}

/* To the line, not to the message. */
PORT_FN void l2_flood(const struct bench_l2_messages_args *args)
{
    uint32_t *word = args->message + 1 + port_thread() % 4;
    while (port_ld32(args->ended, PORT_RELAXED, PORT_GPU) == 0) {
        for (uint32_t i = 0; i < 128; i++)
            port_st32(word, i, PORT_RELAXED, PORT_GPU);
        port_pause();
    }
}

PORT_KERNEL(bench_l2_messages, struct bench_l2_messages_args, args)
{
    const struct bench_l2_messages_args own = *args;
    if (port_block() == 0 && port_thread() == 0) {
        own.status[0] = l2_send_each(&own);
        port_st32(own.ended, 1, PORT_RELAXED, PORT_GPU);
    } else if (port_block() == 0 && port_thread() >= PORT_WARP_THREADS) {
        l2_flood(&own);
    } else if (port_block() == 1 && port_thread() == 0) {
        own.status[1] = l2_receive_all(&own);
    }
}
