/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The posting-rate kernel; see rate.h. One source for a C11 compiler and nvcc.
 */
#include "rate.h"

PORT_FN uint32_t rate_thread(void)
{
    return port_block() * port_threads() + port_thread();
}

/* Where the calling thread's words start on queue `q`. */
PORT_FN uint64_t target_of(const struct bench_rate_args *args, uint32_t q)
{
    return args->raddr[q] + (uint64_t)rate_thread() * BENCH_RATE_SLOTS * sizeof(uint64_t);
}

PORT_FN void build(const struct db_qp *qp, uint64_t index, uint64_t target, uint32_t rkey,
                   uint64_t i, uint32_t flags)
{
    db_build_write_value(qp, index, flags, target + i % BENCH_RATE_SLOTS * sizeof(uint64_t), rkey,
                         i + 1);
}

/* A batch for one doorbell. Payloads that are larger than a word all go to the same place. */
PORT_FN void build_batch(const struct bench_rate_args *args, const struct db_qp *qp, uint64_t index,
                         uint64_t target, uint32_t rkey, uint64_t done)
{
    uint32_t blocks = db_inline_blocks(args->bytes), last = args->batch - 1;

    if (args->bytes == sizeof(uint64_t)) {
        PORT_UNROLL(5)
        for (uint32_t i = 0; i < last; i++)
            build(qp, index + i, target, rkey, done + i, DB_UNSIGNALED);
        build(qp, index + last, target, rkey, done + last, DB_SIGNALED);
        return;
    }
    for (uint32_t i = 0; i <= last; i++)
        db_build_write_inline(qp, index + i * blocks, M5_OP_WRITE,
                              i == last ? DB_SIGNALED : DB_UNSIGNALED, target, rkey,
                              (const void *)(uintptr_t)args->payload, args->bytes, 0);
}

/* A queue for each thread, which owns it. */
PORT_FN int post_owned(const struct bench_rate_args *args, enum db_order order,
                       enum db_record record)
{
    uint32_t q = rate_thread(), batch_blocks = args->batch * db_inline_blocks(args->bytes);
    uint64_t target, index;
    struct db_owner owner;
    int status = DB_OK;

    if (q >= args->queues)
        return DB_OK;
    target = target_of(args, q);
    uint32_t rkey = args->rkey[q];
    db_owner_take(&owner, args->qps[q]);
    for (uint64_t done = 0; done < args->puts; done += args->batch) {
        if (!db_owner_claim(&owner, batch_blocks, &index)) {
            status = owner.status;
            break;
        }
        build_batch(args, &owner.here, index, target, rkey, done);
        uint64_t end = index + batch_blocks;
        db_owner_publish(&owner, end - batch_blocks / args->batch, end, order, record);
    }
    if (!status)
        status = db_owner_flush(&owner);
    db_owner_give(&owner);
    return status;
}

/* Several queues for each thread, in turn. */
PORT_FN int post_in_turn(const struct bench_rate_args *args, enum db_order order,
                         enum db_record record)
{
    uint32_t threads = args->blocks * port_threads(), thread = rate_thread();
    uint32_t blocks = db_inline_blocks(args->bytes);
    uint32_t q = thread;

    for (uint64_t done = 0; done < args->puts; done += args->batch) {
        struct db_qp *qp = args->qps[q];
        uint64_t index;
        int status = db_claim(qp, args->batch * blocks, &index);
        if (status)
            return status;
        build_batch(args, qp, index, target_of(args, q), args->rkey[q], done);
        uint64_t end = index + args->batch * blocks;
        db_publish(qp, end - blocks, end, order, record);
        q = q + threads < args->queues ? q + threads : thread;
    }
    for (q = thread; q < args->queues; q += threads) {
        int status = db_flush(args->qps[q]);
        if (status)
            return status;
    }
    return DB_OK;
}

/* The threads of a block share the block's queue, each posting for itself. */
PORT_FN int post_shared(const struct bench_rate_args *args, enum bench_sharing sharing,
                        enum db_order order, enum db_record record)
{
    uint32_t q = port_block() % args->queues, rkey = args->rkey[q];
    uint64_t target = target_of(args, q);
    struct db_qp *qp = args->qps[q];
    const struct db_qp here = db_qp_constants(qp);
    uint64_t index = 0;

    for (uint64_t i = 0; i < args->puts; i++) {
        int status =
            sharing == BENCH_LOCK ? db_claim_locked(qp, 1, &index) : db_claim_shared(qp, 1, &index);
        if (status)
            return status;
        build(&here, index, target, rkey, i, DB_SIGNALED);
        if (sharing == BENCH_LOCK)
            db_publish_locked(qp, &here, index, index + 1, order, record);
        else if (sharing == BENCH_HANDOFF)
            db_publish_handoff(qp, &here, index, 1, order, record);
        else
            status = db_publish_ticket(qp, &here, index, index, index + 1, order, record);
        if (status)
            return status;
    }
    return db_wait_shared(qp, index);
}

/* A warp's last WQE is signalled. */
PORT_FN uint32_t warp_flags(void)
{
    return port_lane() == PORT_WARP_THREADS - 1 ? DB_SIGNALED : DB_UNSIGNALED;
}

/* The warps of a block share the block's queue. */
PORT_FN int post_warp(const struct bench_rate_args *args, enum db_order order,
                      enum db_record record)
{
    uint32_t q = port_block() % args->queues, rkey = args->rkey[q];
    uint64_t target = target_of(args, q);
    struct db_qp *qp = args->qps[q];
    const struct db_qp here = db_qp_constants(qp);
    uint64_t first = 0, index;

    for (uint64_t i = 0; i < args->puts; i++) {
        int status = db_claim_warp(qp, UINT32_MAX, &first, &index);
        if (status)
            return status;
        build(&here, index, target, rkey, i, warp_flags());
        status = db_publish_warp(qp, &here, UINT32_MAX, first, order, record);
        if (status)
            return status;
    }
    return db_wait_shared(qp, first + PORT_WARP_THREADS - 1);
}

/* A block is one warp, and its queue is its own. */
PORT_FN int post_warp_owner(const struct bench_rate_args *args, enum db_order order,
                            enum db_record record)
{
    uint32_t q = port_block() % args->queues, rkey = args->rkey[q];
    uint64_t target = target_of(args, q), first = 0, index;
    struct db_owner owner;
    int status = DB_OK;

    db_owner_take(&owner, args->qps[q]);
    for (uint64_t i = 0; i < args->puts; i++) {
        if (!db_owner_claim_warp(&owner, UINT32_MAX, &first, &index)) {
            status = owner.status;
            break;
        }
        build(&owner.here, index, target, rkey, i, warp_flags());
        db_owner_publish_warp(&owner, UINT32_MAX, order, record);
    }
    if (port_lane() == 0) {
        if (!status)
            status = db_owner_flush(&owner);
        db_owner_give(&owner);
    }
    return (int)(int64_t)port_broadcast64(UINT32_MAX, (uint64_t)(int64_t)status, 0);
}

PORT_FN int post(const struct bench_rate_args *args, enum db_order order, enum db_record record)
{
    switch ((enum bench_sharing)args->sharing) {
    case BENCH_PRIVATE:
        return args->queues <= args->blocks * port_threads() ? post_owned(args, order, record)
                                                             : post_in_turn(args, order, record);
    case BENCH_LOCK:
        return post_shared(args, BENCH_LOCK, order, record);
    case BENCH_HANDOFF:
        return post_shared(args, BENCH_HANDOFF, order, record);
    case BENCH_TICKET:
        return post_shared(args, BENCH_TICKET, order, record);
    case BENCH_WARP:
        return post_warp(args, order, record);
    default:
        return post_warp_owner(args, order, record);
    }
}

/* ---- The device of a detached queue ---- */

/* How many polls without news pass between two looks at whether somebody still posts. */
#define IDLE_POLLS 256

PORT_FN void store_completion(uint8_t *cq, uint32_t qpn, uint32_t index)
{
    uint64_t tail = (uint64_t)port_bswap32(index << 16 | (uint32_t)M5_CQE_REQUESTER << 4) << 32 |
                    port_bswap32((uint32_t)M5_OP_WRITE << 24 | qpn);
    /* Relaxed: it stands for nothing that this thread did or read but the record, on which it
     * depends. */
    port_st64((uint64_t *)(void *)(cq + 56), tail, PORT_RELAXED, PORT_SYSTEM);
}

PORT_FN void play_device(const struct bench_rate_args *args)
{
    uint32_t q = rate_thread() - args->blocks * port_threads();
    uint64_t deadline = port_now_ns() + args->timeout_ns;
    if (q >= args->queues)
        return;
    const struct db_qp *qp = args->qps[q];
    const uint32_t *record = &qp->record->send.raw;
    uint8_t *cq = qp->cq;
    uint32_t qpn = qp->qpn, executed = 0;

    for (uint32_t idle = 0;;) {
        uint32_t posted =
            port_bswap32(port_ld32(record, PORT_RELAXED, PORT_SYSTEM)) & M5_INDEX_MASK;
        if (posted != executed) {
            executed = posted;
            store_completion(cq, qpn, (posted - 1) & M5_INDEX_MASK);
            idle = 0;
            continue;
        }
        if (++idle % IDLE_POLLS == 0 &&
            (port_ld32(args->running, PORT_RELAXED, PORT_GPU) == 0 || port_now_ns() > deadline))
            return;
        port_pause();
    }
}

PORT_KERNEL(bench_rate, struct bench_rate_args, args)
{
    if (port_block() >= args->blocks) {
        play_device(args);
        return;
    }
    uint32_t thread = rate_thread();
    args->start_ns[thread] = port_now_ns();
    int status = args->order != DB_ORDER_GPU      ? post(args, DB_ORDER_SYSTEM, DB_WITH_RECORD)
                 : args->record == DB_WITH_RECORD ? post(args, DB_ORDER_GPU, DB_WITH_RECORD)
                                                  : post(args, DB_ORDER_GPU, DB_RECORD_EXCHANGED);
    args->end_ns[thread] = port_now_ns();
    args->status[thread] = status;
    port_add32(args->running, UINT32_MAX);
}
