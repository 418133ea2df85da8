/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernels of the proxy's experiments; see proxy.h. One source for a C11 compiler and nvcc.
 */
#include "proxy.h"

#define WORD_STRIDE 128

/* ---- One push at a time ---- */

/* `steps` is a literal, and so is whether room is asked for elsewhere. */
PORT_FN int enqueue(const struct bench_enqueue_args *kernel_args, uint32_t steps, bool elsewhere)
{
    const struct bench_enqueue_args own = *kernel_args, *args = &own; /* kept in registers */
    uint64_t raddr = args->raddr, laddr = args->laddr;
    uint32_t left = args->slots; /* until they start again; stepped outside what is timed */
    struct db_ring ring, told;
    int status = DB_OK;

    db_ring_take(&ring, args->qp->ring);
    told = ring;
    if (elsewhere)
        ring.progress = args->asked;

    for (uint32_t i = 0; i < args->warmup + args->count && !status; i++) {
        uint64_t index;
        if (i == args->warmup)
            bench_span_start(args->span);
        const uint8_t *slot = ring.own.slot; /* never NULL */
        uint64_t start = port_clock();
        struct db_descriptor d =
            db_descriptor_memory(DB_RING_PUT, 0, args->rkey, raddr, args->lkey, laddr, 8);
        bool pushed;
        if (steps == DB_RING_TUNED) {
            pushed = db_ring_try_push(&ring, &ring.own, d, &index);
        } else {
            status = db_ring_push(&ring, &ring.own, d, steps, &index);
            pushed = true;
        }
        uint64_t issued = port_clock();
        /* Asking for the address once more keeps its registers from the second reading of the
         * clock, which would wait until the store has read them. */
        if (!pushed || !slot) {
            status = db_ring_push(&ring, &ring.own, d, steps, &index);
            issued = port_clock();
        }
        if (!status)
            status = db_ring_wait(&told, index);
        uint64_t completed = port_clock();
        raddr = --left ? raddr + 8 : args->raddr;
        laddr = left ? laddr + 8 : args->laddr;
        left = left ? left : args->slots;
        if (i >= args->warmup) {
            bench_interval_keep(&args->issue[i - args->warmup], start, issued);
            args->complete[i - args->warmup] = completed - start;
        }
    }
    bench_span_end(args->span);
    db_ring_give(args->qp->ring, &ring);
    return status;
}

PORT_FN void count_atomics(const struct bench_enqueue_args *args)
{
    *args->atomics = port_ld64(&args->qp->ring->many->reserved, PORT_RELAXED, PORT_GPU);
}

PORT_KERNEL(bench_enqueue, struct bench_enqueue_args, args)
{
    if (port_block() != 0 || port_thread() != 0)
        return;
    switch (args->steps) {
    case DB_RING_BASELINE:
        *args->status = enqueue(args, DB_RING_BASELINE, false);
        break;
    case DB_RING_READ | DB_RING_RELEASE:
        *args->status = enqueue(args, DB_RING_READ | DB_RING_RELEASE, false);
        break;
    case DB_RING_RELEASE:
        *args->status = enqueue(args, DB_RING_RELEASE, false);
        break;
    case DB_RING_SHARED:
        *args->status = enqueue(args, DB_RING_SHARED, false);
        break;
    case DB_RING_PAYLOAD:
        *args->status = enqueue(args, DB_RING_PAYLOAD, false);
        break;
    default:
        *args->status = enqueue(args, DB_RING_TUNED, false);
        break;
    }
    count_atomics(args);
}

PORT_KERNEL(bench_enqueue_more, struct bench_enqueue_args, args)
{
    if (port_block() != 0 || port_thread() != 0)
        return;
    if (args->asked && args->steps == DB_RING_BASELINE)
        *args->status = enqueue(args, DB_RING_BASELINE, true);
    else if (!args->asked && args->steps == (DB_RING_SHARED | DB_RING_PAYLOAD))
        *args->status = enqueue(args, DB_RING_SHARED | DB_RING_PAYLOAD, false);
    else
        *args->status = DB_ERROR_INVALID;
    count_atomics(args);
}

PORT_KERNEL(bench_single, struct bench_single_args, args)
{
    int status = DB_OK;
    if (port_block() != 0 || port_thread() != 0)
        return;
    for (uint32_t i = 0; i < args->warmup + args->count && !status; i++) {
        uint64_t index;
        if (i == args->warmup)
            bench_span_start(args->span);
        uint64_t start = port_clock();
        status =
            db_put(args->qp, args->raddr, args->rkey, args->laddr, args->lkey, args->bytes, &index);
        uint64_t issued = port_clock();
        if (!status)
            status = db_wait(args->qp, index);
        uint64_t completed = port_clock();
        if (i >= args->warmup) {
            bench_interval_keep(&args->issue[i - args->warmup], start, issued);
            args->complete[i - args->warmup] = completed - start;
        }
    }
    bench_span_end(args->span);
    *args->status = status;
}

/* ---- A probe beside a load ---- */

PORT_FN int send(struct db_qp *qp, bool shared, uint64_t raddr, uint32_t rkey, uint64_t value,
                 uint64_t *index)
{
    return shared ? db_put_value_shared(qp, raddr, rkey, value, index)
                  : db_put_value(qp, raddr, rkey, value, index);
}

PORT_FN void wait_ns(uint64_t ns)
{
    uint64_t until = port_now_ns() + ns;
    while (port_now_ns() < until)
        port_pause();
}

/* A message is its number, from 1, and two bits below it: whether it is to be answered late, and
 * whether another one follows. */
#define PROBE_LATE 1u
#define PROBE_LAST 2u
#define PROBE_BITS 2u

/* The word of `side`, once message `number` is there; 0: it is not by the deadline. */
PORT_FN uint64_t await(const struct bench_loaded_args *args, uint32_t side, uint64_t number,
                       uint64_t deadline)
{
    const uint64_t *word = (const uint64_t *)(const void *)(args->words + side * WORD_STRIDE);
    uint64_t message = port_ld64(word, PORT_ACQUIRE, PORT_SYSTEM);

    for (uint32_t polls = 1; message >> PROBE_BITS < number; polls++) {
        if (polls % PORT_POLLS_PER_CLOCK == 0 && port_now_ns() > deadline)
            return 0;
        port_pause();
        message = port_ld64(word, PORT_ACQUIRE, PORT_SYSTEM);
    }
    return message;
}

/* Puts a message into the other side's word. */
PORT_FN int answer(const struct bench_loaded_args *args, uint32_t side, uint64_t message)
{
    uint64_t index;
    return send(args->probe[side], args->probe_shared, args->raddr + (1 - side) * WORD_STRIDE,
                args->rkey, message, &index);
}

PORT_FN int initiate(const struct bench_loaded_args *args)
{
    uint64_t began = port_now_ns(), until = began + args->budget_ns / 2, message = 0;
    uint32_t warmup = args->warmup, made = 0;
    int status = DB_OK;

    port_st64(args->start_ns, began, PORT_RELAXED, PORT_GPU); /* the load begins */
    for (uint32_t i = 0; !status && !(message & PROBE_LAST); i++) {
        uint64_t now = port_now_ns();
        if (i < warmup && now >= until)
            warmup = i;
        if (i == warmup) {
            until = began + args->budget_ns;
            bench_span_start(args->span);
        }
        bool late = i >= warmup && args->delay_ns && made % 2;
        bool last =
            i >= warmup && (late || !args->delay_ns) && (made + 1 == args->count || now >= until);
        message =
            (uint64_t)(i + 1) << PROBE_BITS | (late ? PROBE_LATE : 0) | (last ? PROBE_LAST : 0);
        uint64_t start = port_clock();
        status = answer(args, 0, message);
        if (!status && !await(args, 0, i + 1, now + args->timeout_ns))
            status = DB_ERROR_TIMEOUT;
        uint64_t end = port_clock();
        if (i >= warmup)
            args->ticks[made++] = end - start;
    }
    bench_span_end(args->span);
    port_st64(args->stop, 1, PORT_RELAXED, PORT_GPU);
    *args->end_ns = port_now_ns();
    *args->made = made;
    *args->last = message;
    return status;
}

PORT_FN int respond(const struct bench_loaded_args *args)
{
    uint64_t message = 0;
    int status = DB_OK;

    for (uint64_t number = 1; !status && !(message & PROBE_LAST); number++) {
        /* Twice: the end of one round trip and the start of the next may each take a timeout. */
        message = await(args, 1, number, port_now_ns() + 2 * args->timeout_ns);
        if (!message)
            return DB_ERROR_TIMEOUT;
        if (message & PROBE_LATE)
            wait_ns(args->delay_ns);
        status = answer(args, 1, message);
    }
    return status;
}

PORT_FN int load(const struct bench_loaded_args *args, uint32_t thread, uint64_t *puts)
{
    struct db_qp *qp = args->load[(port_block() - 2) % args->loads];
    uint64_t raddr = args->raddr + (2 + (uint64_t)thread) * WORD_STRIDE;
    uint64_t index, next;
    int status = DB_OK;

    while ((next = port_ld64(args->start_ns, PORT_RELAXED, PORT_GPU)) == 0)
        port_pause();
    next += (thread + 1) * args->first_ns;
    while (!status && port_ld64(args->stop, PORT_RELAXED, PORT_GPU) == 0) {
        if (args->pace_ns && port_now_ns() < next) {
            port_pause();
            continue;
        }
        next += args->pace_ns;
        status = send(qp, args->load_shared, raddr, args->rkey, *puts + 1, &index);
        *puts += status == DB_OK;
    }
    return status ? status : args->load_shared ? db_flush_shared(qp) : db_flush(qp);
}

PORT_KERNEL(bench_loaded, struct bench_loaded_args, args)
{
    uint32_t side = port_block();
    if (side >= 2) {
        uint32_t thread = (side - 2) * port_threads() + port_thread();
        uint64_t puts = 0;
        args->status[2 + thread] = load(args, thread, &puts);
        args->puts[thread] = puts;
        return;
    }
    if (port_thread() != 0)
        return;
    args->status[side] = side == 0 ? initiate(args) : respond(args);
}

/* ---- As fast as it goes ---- */

PORT_FN int flood(const struct bench_flood_args *args, uint32_t thread)
{
    struct db_qp *qp = args->qps[thread];
    uint64_t index = 0, base = (uint64_t)thread * args->slots * args->bytes;

    for (uint64_t i = 0; i < args->puts; i++) {
        uint64_t at = base + i % args->slots * args->bytes;
        int status = args->by_value ? db_put_value(qp, args->raddr + at, args->rkey, i + 1, &index)
                                    : db_put(qp, args->raddr + at, args->rkey, args->laddr + at,
                                             args->lkey, args->bytes, &index);
        /* Now and then, so that at most two windows are outstanding. */
        if (!status && i % args->window == args->window - 1 && i >= args->window)
            status = db_wait(qp, index - args->window);
        if (status)
            return status;
    }
    return db_wait(qp, index);
}

PORT_KERNEL(bench_flood, struct bench_flood_args, args)
{
    uint32_t thread = port_block() * port_threads() + port_thread();
    args->start_ns[thread] = port_now_ns();
    int status = flood(args, thread);
    args->end_ns[thread] = port_now_ns();
    args->status[thread] = status;
}
