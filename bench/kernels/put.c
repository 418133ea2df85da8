/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels that time single operations; see put.h. One source for a C11 compiler and nvcc.
 */
#include "put.h"

/* Claim, build, publish: what a caller of db_put() or db_put_value() does, with the order and the
 * record as literals. */
PORT_FN int put_once(struct db_owner *owner, const struct bench_payloads *p, uint64_t offset,
                     uint64_t value, bool inlined, enum db_order order, enum db_record record,
                     uint64_t *index)
{
    struct db_qp *qp = &owner->here;
    const uint8_t *from = p->source + offset;
    uint32_t blocks = inlined ? db_inline_blocks(p->bytes) : 1;

    if (!db_owner_claim(owner, blocks, index))
        return owner->status;
    if (!inlined)
        db_build_write(qp, *index, DB_SIGNALED, p->raddr + offset, p->rkey, p->laddr + offset,
                       p->lkey, p->bytes);
    else if (p->bytes == 8)
        db_build_write_value(qp, *index, DB_SIGNALED, p->raddr + offset, p->rkey, value);
    else
        db_build_write_inline(qp, *index, M5_OP_WRITE, DB_SIGNALED, p->raddr + offset, p->rkey,
                              from, p->bytes, 0);
    db_owner_publish(owner, *index, *index + blocks, order, record);
    return DB_OK;
}

/* Where the next payload lies: counted, since a division would be timed with the put. */
PORT_FN uint64_t next_offset(const struct bench_payloads *p, uint64_t offset)
{
    offset += p->stride;
    return offset == (uint64_t)p->slots * p->stride ? 0 : offset;
}

/* The payload at `offset`, where it fits a register: whoever puts a value has it there. */
PORT_FN uint64_t load_value(const struct bench_payloads *p, uint64_t offset)
{
    return p->bytes == sizeof(uint64_t) ? port_ld_plain64(p->source + offset) : 0;
}

PORT_FN void put_loop(const struct bench_put_args *args, bool inlined, enum db_order order,
                      enum db_record record)
{
    enum port_order poll = order == DB_ORDER_NONE_UNSAFE ? PORT_RELAXED : PORT_ACQUIRE;
    const struct bench_payloads payloads = args->payloads;
    uint64_t offset = 0, value = load_value(&payloads, 0);
    struct db_owner owner;
    int status = DB_OK;

    db_owner_take(&owner, args->qp);
    for (uint32_t i = 0; i < args->warmup + args->count && !status; i++) {
        uint64_t index;
        if (i == args->warmup)
            bench_span_start(args->span);
        uint64_t start = port_clock();
        status = put_once(&owner, &payloads, offset, value, inlined, order, record, &index);
        uint64_t issued = port_clock();
        offset = next_offset(&payloads, offset);
        value = load_value(&payloads, offset);
        if (!status)
            status = db_owner_wait_order(&owner, index, poll);
        uint64_t completed = port_clock();
        if (i >= args->warmup) {
            bench_interval_keep(&args->issue[i - args->warmup], start, issued);
            args->complete[i - args->warmup] = completed - start;
        }
    }
    bench_span_end(args->span);
    db_owner_give(&owner);
    *args->status = status;
}

PORT_FN void put_ordered(const struct bench_put_args *args, bool inlined)
{
    if (args->order == DB_ORDER_GPU && args->record == DB_RECORD_EXCHANGED)
        put_loop(args, inlined, DB_ORDER_GPU, DB_RECORD_EXCHANGED);
    else if (args->order == DB_ORDER_GPU && args->record == DB_WITHOUT_RECORD)
        put_loop(args, inlined, DB_ORDER_GPU, DB_WITHOUT_RECORD);
    else if (args->record == DB_WITHOUT_RECORD)
        put_loop(args, inlined, DB_ORDER_SYSTEM, DB_WITHOUT_RECORD);
    else if (args->order == DB_ORDER_GPU)
        put_loop(args, inlined, DB_ORDER_GPU, DB_WITH_RECORD);
    else if (args->order == DB_ORDER_SYSTEM)
        put_loop(args, inlined, DB_ORDER_SYSTEM, DB_WITH_RECORD);
    else
        put_loop(args, inlined, DB_ORDER_NONE_UNSAFE, DB_WITH_RECORD);
}

PORT_KERNEL(bench_put, struct bench_put_args, args)
{
    if (port_block() != 0 || port_thread() != 0)
        return;
    if (args->inlined)
        put_ordered(args, true);
    else
        put_ordered(args, false);
}

/* Sends `value` to the other block. */
PORT_FN int pass_on(const struct bench_round_trip_args *args, struct db_owner *owner, uint32_t side,
                    uint64_t value)
{
    uint64_t index;
    if (!db_owner_claim(owner, 1, &index))
        return owner->status;
    db_build_write_value(&owner->here, index, DB_SIGNALED, args->raddr[side], args->rkey[side],
                         value);
    if (args->order == DB_ORDER_GPU)
        db_owner_publish(owner, index, index + 1, DB_ORDER_GPU, DB_WITH_RECORD);
    else
        db_owner_publish(owner, index, index + 1, DB_ORDER_SYSTEM, DB_WITH_RECORD);
    return DB_OK;
}

/* Waits for `value` in this block's word. What the other block's put wrote before it is visible. */
PORT_FN int await(const struct bench_round_trip_args *args, uint32_t side, uint64_t value,
                  uint64_t deadline)
{
    return port_wait_ge64(args->word[side], value, PORT_SYSTEM, deadline) ? DB_ERROR_TIMEOUT
                                                                          : DB_OK;
}

PORT_KERNEL(bench_round_trip, struct bench_round_trip_args, args)
{
    uint32_t side = port_block();
    uint64_t deadline = 0;
    struct db_owner owner;
    int status = DB_OK;
    if (side > 1 || port_thread() != 0)
        return;
    db_owner_take(&owner, args->qp[side]);
    for (uint32_t i = 0; i < args->warmup + args->count && !status; i++) {
        uint64_t value = args->first + i + 1;
        if (i % 64 == 0) /* the clock is looked at outside most round trips */
            deadline = port_now_ns() + 64 * args->timeout_ns;
        if (side == 0 && i == args->warmup)
            bench_span_start(args->span);
        uint64_t start = port_clock();
        status = side == 0 ? pass_on(args, &owner, 0, value) : await(args, 1, value, deadline);
        if (!status)
            status = side == 0 ? await(args, 0, value, deadline) : pass_on(args, &owner, 1, value);
        uint64_t end = port_clock();
        if (side == 0 && i >= args->warmup)
            bench_interval_keep(&args->ticks[i - args->warmup], start, end);
    }
    if (side == 0)
        bench_span_end(args->span);
    if (!status)
        status = db_owner_flush(&owner);
    db_owner_give(&owner);
    args->status[side] = status;
}
