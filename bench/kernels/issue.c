/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What posting alone costs; see issue.h. One source for a C11 compiler and nvcc.
 */
#include "issue.h"

/* `inlined` is a literal here and below: whoever puts knows which it is. */
PORT_FN void build_put(const struct db_qp *qp, const struct bench_issue_args *args, uint64_t index,
                       uint64_t i, bool inlined)
{
    if (inlined)
        db_build_write_value(qp, index, DB_SIGNALED, args->raddr, args->rkey, i + 1);
    else
        db_build_write(qp, index, DB_SIGNALED, args->raddr, args->rkey, args->laddr, args->lkey, 8);
}

PORT_FN int post_own(struct db_owner *owner, const struct bench_issue_args *args, uint64_t i,
                     bool inlined, enum db_order order, enum db_record record)
{
    uint64_t index;
    if (!db_owner_claim(owner, 1, &index))
        return owner->status;
    build_put(&owner->here, args, index, i, inlined);
    db_owner_publish(owner, index, index + 1, order, record);
    return DB_OK;
}

PORT_FN int post_try(struct db_owner *owner, const struct bench_issue_args *args, uint64_t i,
                     bool inlined, enum db_order order, enum db_record record)
{
    build_put(&owner->here, args, owner->claimed, i, inlined);
    return db_owner_try_publish(owner, order, record) ? DB_OK : DB_ERROR_TIMEOUT;
}

PORT_FN int post_own_warp(struct db_owner *owner, const struct bench_issue_args *args, uint64_t i,
                          enum db_order order, enum db_record record)
{
    uint64_t first, index;
    if (!db_owner_claim_warp(owner, UINT32_MAX, &first, &index))
        return owner->status;
    build_put(&owner->here, args, index, i, true);
    db_owner_publish_warp(owner, UINT32_MAX, order, record);
    return DB_OK;
}

PORT_FN int post_warp(const struct bench_issue_args *args, uint64_t i, enum db_order order,
                      enum db_record record)
{
    const struct db_qp here = db_qp_constants(args->qp);
    uint64_t first, index;
    int status = db_claim_warp(args->qp, UINT32_MAX, &first, &index);
    if (status)
        return status;
    build_put(&here, args, index, i, true);
    return db_publish_warp(args->qp, &here, UINT32_MAX, first, order, record);
}

PORT_FN int post_among(enum bench_issue_way way, const struct bench_issue_args *args, uint64_t i,
                       enum db_order order, enum db_record record)
{
    struct db_qp *qp = args->qp;
    const struct db_qp here = db_qp_constants(qp);
    uint64_t index;
    int status =
        way == BENCH_ISSUE_LOCK ? db_claim_locked(qp, 1, &index) : db_claim_shared(qp, 1, &index);
    if (status)
        return status;
    build_put(&here, args, index, i, true);
    if (way == BENCH_ISSUE_LOCK)
        db_publish_locked(qp, &here, index, index + 1, order, record);
    else if (way == BENCH_ISSUE_HANDOFF)
        db_publish_handoff(qp, &here, index, 1, order, record);
    else
        status = db_publish_ticket(qp, &here, index, index, index + 1, order, record);
    return status;
}

/* No claim, and nothing to work out: the same words each time, to a block that was looked up. */
PORT_FN void store_alone(const struct db_qp *qp, uint8_t *block, const uint64_t words[2],
                         enum db_order order, enum db_record record)
{
    for (uint32_t number = 0; number < 3; number++)
        db_store_segment(block, number, words[0], words[1]);
    db_ring(qp, 1, order, record, false);
}

PORT_FN int post_once(struct db_owner *owner, enum bench_issue_way way,
                      const struct bench_issue_args *args, uint64_t i, uint8_t *block,
                      const uint64_t words[2], bool inlined, enum db_order order,
                      enum db_record record)
{
    uint64_t index;
    switch (way) {
    case BENCH_ISSUE_NOTHING:
        return DB_OK;
    case BENCH_ISSUE_STORE:
        port_st64(args->words, i, PORT_RELAXED, PORT_GPU);
        db_release(order);
        return DB_OK;
    case BENCH_ISSUE_STORES:
        store_alone(&owner->here, block, words, order, record);
        return DB_OK;
    case BENCH_ISSUE_OWNER:
        return post_own(owner, args, i, inlined, order, record);
    case BENCH_ISSUE_TRY:
        return post_try(owner, args, i, inlined, order, record);
    case BENCH_ISSUE_WARP_OWNER:
        return post_own_warp(owner, args, i, order, record);
    case BENCH_ISSUE_WARP:
        return post_warp(args, i, order, record);
    case BENCH_ISSUE_PUT:
        return db_put_value(args->qp, args->raddr, args->rkey, i + 1, &index);
    case BENCH_ISSUE_PUT_SHARED:
        return db_put_value_shared(args->qp, args->raddr, args->rkey, i + 1, &index);
    default:
        return post_among(way, args, i, order, record);
    }
}

/* Completes all that an owner posted, in the place of a device and by way of the queue's memory, so
 * that no compiler knows what comes of it. */
PORT_FN void complete_all(struct db_owner *owner)
{
    uint64_t *completed = &owner->qp->done.completed;
    port_st64(completed, owner->claimed, PORT_RELAXED, PORT_THREAD);
    db_owner_advance(owner, port_ld64(completed, PORT_RELAXED, PORT_THREAD));
}

PORT_FN void issue_loop(const struct bench_issue_args *args, enum bench_issue_way way, bool inlined,
                        enum db_order order, enum db_record record)
{
    struct bench_issue_args own = *args; /* so that fences leave it in registers */
    struct db_owner owner;
    int status = DB_OK;

    db_owner_take(&owner, own.qp);
    uint8_t *block = owner.here.sq; /* of post i; stepped outside what is timed */
    /* Loaded, so that it is in registers: an argument is fetched again where it is used. */
    const uint64_t words[2] = {port_ld64(&own.words[0], PORT_RELAXED, PORT_GPU),
                               port_ld64(&own.words[1], PORT_RELAXED, PORT_GPU)};
    for (uint32_t i = 0; i < own.warmup + own.count && !status; i++) {
        if (i == own.warmup && port_thread() == 0)
            bench_span_start(own.span);
        /* The samples' stores are no part of what the post releases. */
        port_fence(PORT_RELEASE, PORT_GPU);
        bench_pause(own.pause_ticks);
        uint64_t start_ns = port_now_ns();
        uint64_t start = port_clock();
        status = post_once(&owner, way, &own, i, block, words, inlined, order, record);
        uint64_t end = port_clock();
        uint64_t end_ns = port_now_ns();
        if (i >= own.warmup && port_thread() == 0) {
            bench_interval_keep(&own.ticks[i - own.warmup], start, end);
            own.ns[i - own.warmup] = end_ns - start_ns;
        }
        if (bench_issue_is_owner(way))
            complete_all(&owner);
        block = (i + 1) & (owner.here.depth - 1) ? block + M5_BLOCK_BYTES : owner.here.sq;
    }
    if (port_thread() != 0)
        return;
    bench_span_end(own.span);
    if (bench_issue_is_owner(way) || way == BENCH_ISSUE_WARP_OWNER)
        db_owner_give(&owner);
    *own.status = status;
}

/* The ways that are measured in every order, and without a record. */
PORT_FN void issue_ordered(const struct bench_issue_args *args, enum bench_issue_way way,
                           bool inlined)
{
    if (args->order == DB_ORDER_NONE_UNSAFE)
        issue_loop(args, way, inlined, DB_ORDER_NONE_UNSAFE, DB_WITH_RECORD);
    else if (args->order == DB_ORDER_GPU && args->record == DB_WITH_RECORD)
        issue_loop(args, way, inlined, DB_ORDER_GPU, DB_WITH_RECORD);
    else if (args->order == DB_ORDER_GPU && args->record == DB_RECORD_EXCHANGED)
        issue_loop(args, way, inlined, DB_ORDER_GPU, DB_RECORD_EXCHANGED);
    else if (args->order == DB_ORDER_GPU)
        issue_loop(args, way, inlined, DB_ORDER_GPU, DB_WITHOUT_RECORD);
    else if (args->record == DB_WITH_RECORD)
        issue_loop(args, way, inlined, DB_ORDER_SYSTEM, DB_WITH_RECORD);
    else
        issue_loop(args, way, inlined, DB_ORDER_SYSTEM, DB_WITHOUT_RECORD);
}

PORT_FN void issue_way(const struct bench_issue_args *args, enum db_order order,
                       enum db_record record)
{
    switch ((enum bench_issue_way)args->way) {
    case BENCH_ISSUE_STORE:
        issue_loop(args, BENCH_ISSUE_STORE, true, order, record);
        break;
    case BENCH_ISSUE_TICKET:
        issue_loop(args, BENCH_ISSUE_TICKET, true, order, record);
        break;
    case BENCH_ISSUE_HANDOFF:
        issue_loop(args, BENCH_ISSUE_HANDOFF, true, order, record);
        break;
    case BENCH_ISSUE_LOCK:
        issue_loop(args, BENCH_ISSUE_LOCK, true, order, record);
        break;
    case BENCH_ISSUE_WARP_OWNER:
        issue_loop(args, BENCH_ISSUE_WARP_OWNER, true, order, record);
        break;
    default:
        issue_loop(args, BENCH_ISSUE_WARP, true, order, record);
    }
}

PORT_KERNEL(bench_issue, struct bench_issue_args, args)
{
    if (port_block() != 0)
        return;
    if (args->way == BENCH_ISSUE_NOTHING)
        issue_loop(args, BENCH_ISSUE_NOTHING, true, DB_ORDER_NONE_UNSAFE, DB_WITH_RECORD);
    else if (args->way == BENCH_ISSUE_PUT)
        issue_loop(args, BENCH_ISSUE_PUT, true, DB_ORDER_NONE_UNSAFE, DB_WITH_RECORD);
    else if (args->way == BENCH_ISSUE_PUT_SHARED)
        issue_loop(args, BENCH_ISSUE_PUT_SHARED, true, DB_ORDER_NONE_UNSAFE, DB_WITH_RECORD);
    else if (args->way == BENCH_ISSUE_STORES)
        issue_ordered(args, BENCH_ISSUE_STORES, true);
    else if (args->way == BENCH_ISSUE_OWNER && args->inlined)
        issue_ordered(args, BENCH_ISSUE_OWNER, true);
    else if (args->way == BENCH_ISSUE_OWNER)
        issue_ordered(args, BENCH_ISSUE_OWNER, false);
    else if (args->way == BENCH_ISSUE_TRY && args->inlined)
        issue_ordered(args, BENCH_ISSUE_TRY, true);
    else if (args->way == BENCH_ISSUE_TRY)
        issue_ordered(args, BENCH_ISSUE_TRY, false);
    else if (args->order == DB_ORDER_SYSTEM)
        issue_way(args, DB_ORDER_SYSTEM, DB_WITH_RECORD);
    else if (args->record == DB_WITH_RECORD)
        issue_way(args, DB_ORDER_GPU, DB_WITH_RECORD);
    else
        issue_way(args, DB_ORDER_GPU, DB_RECORD_EXCHANGED);
}
