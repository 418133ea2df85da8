/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of device.h for a queue that threads share, and for a warp that posts together.
 * Included by device.h.
 */
#ifndef DOORBELL_DEVICE_SHARED_H
#define DOORBELL_DEVICE_SHARED_H

#include "impl/push.h"
#include "impl/sq_shared.h"
#include "impl/wqe_inline.h"

/* ---- Shared by any number of threads, each posting for itself ---- */

/* Publishes the one WQE of `blocks` blocks (1 to DB_MAX_WQE_BLOCKS) at `index`, in its turn and
 * ordered as the queue's placement asks. Returns DB_OK, or DB_ERROR_BROKEN when a predecessor never
 * published. */
PORT_FN int db_publish_shared(struct db_qp *qp, const struct db_qp *here, uint64_t index,
                              uint32_t blocks)
{
    uint64_t end = index + blocks;
    if (here->order == DB_ORDER_GPU && here->with_record == DB_WITH_RECORD)
        return db_publish_ticket(qp, here, index, index, end, DB_ORDER_GPU, DB_WITH_RECORD);
    if (here->order == DB_ORDER_GPU && here->with_record == DB_RECORD_EXCHANGED)
        return db_publish_ticket(qp, here, index, index, end, DB_ORDER_GPU, DB_RECORD_EXCHANGED);
    if (here->order == DB_ORDER_GPU)
        return db_publish_ticket(qp, here, index, index, end, DB_ORDER_GPU, DB_WITHOUT_RECORD);
    if (here->with_record == DB_WITH_RECORD)
        return db_publish_ticket(qp, here, index, index, end, DB_ORDER_SYSTEM, DB_WITH_RECORD);
    return db_publish_ticket(qp, here, index, index, end, DB_ORDER_SYSTEM, DB_WITHOUT_RECORD);
}

/* As db_put(). A wait for room that times out leaves the queue broken (DB_ERROR_BROKEN): the blocks
 * were claimed, and others wait behind them. */
PORT_FN int db_put_shared(struct db_qp *qp, uint64_t raddr, uint32_t rkey, uint64_t laddr,
                          uint32_t lkey, uint32_t bytes, uint64_t *index)
{
    const struct db_qp here = db_qp_constants(qp);
    if (db_is_proxied(&here))
        return db_push_memory(qp, here.ring, true, DB_RING_PUT, raddr, rkey, laddr, lkey, bytes, 0,
                              index);
    int status = db_claim_shared(qp, 1, index);
    if (status)
        return status;
    db_build_write(&here, *index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes);
    return db_publish_shared(qp, &here, *index, 1);
}

/* As db_put_value(), shared as db_put_shared(). */
PORT_FN int db_put_value_shared(struct db_qp *qp, uint64_t raddr, uint32_t rkey, uint64_t value,
                                uint64_t *index)
{
    const struct db_qp here = db_qp_constants(qp);
    if (db_is_proxied(&here))
        return db_push_value(qp, here.ring, true, raddr, rkey, value, index);
    int status = db_claim_shared(qp, 1, index);
    if (status)
        return status;
    db_build_write_value(&here, *index, DB_SIGNALED, raddr, rkey, value);
    return db_publish_shared(qp, &here, *index, 1);
}

/* As db_put_inline(), shared as db_put_shared(). */
PORT_FN int db_put_inline_shared(struct db_qp *qp, uint64_t raddr, uint32_t rkey,
                                 const void *payload, uint32_t bytes, uint64_t *index)
{
    const struct db_qp here = db_qp_constants(qp);
    if (db_is_proxied(&here))
        return bytes == 8 ? db_push_value(qp, here.ring, true, raddr, rkey,
                                          port_ld_plain64(payload), index)
                          : DB_ERROR_INVALID;
    if (bytes > DB_MAX_INLINE)
        return DB_ERROR_INVALID;
    uint32_t blocks = db_inline_blocks(bytes);
    int status = db_claim_shared(qp, blocks, index);
    if (status)
        return status;
    db_build_write_inline(&here, *index, M5_OP_WRITE, DB_SIGNALED, raddr, rkey, payload, bytes, 0);
    return db_publish_shared(qp, &here, *index, blocks);
}

/* As db_put_imm(), shared as db_put_shared(). */
PORT_FN int db_put_imm_shared(struct db_qp *qp, uint64_t raddr, uint32_t rkey, uint64_t laddr,
                              uint32_t lkey, uint32_t bytes, uint32_t imm, uint64_t *index)
{
    const struct db_qp here = db_qp_constants(qp);
    if (db_is_proxied(&here))
        return db_push_memory(qp, here.ring, true, DB_RING_PUT_IMM, raddr, rkey, laddr, lkey, bytes,
                              imm, index);
    int status = db_claim_shared(qp, 1, index);
    if (status)
        return status;
    db_build_write_imm(&here, *index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes, imm);
    return db_publish_shared(qp, &here, *index, 1);
}

/* As db_get(), shared as db_put_shared(). */
PORT_FN int db_get_shared(struct db_qp *qp, uint64_t raddr, uint32_t rkey, uint64_t laddr,
                          uint32_t lkey, uint32_t bytes, uint64_t *index)
{
    const struct db_qp here = db_qp_constants(qp);
    if (db_is_proxied(&here))
        return db_push_memory(qp, here.ring, true, DB_RING_GET, raddr, rkey, laddr, lkey, bytes, 0,
                              index);
    int status = db_claim_shared(qp, 1, index);
    if (status)
        return status;
    db_build_read(&here, *index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes);
    return db_publish_shared(qp, &here, *index, 1);
}

/* As db_fetch_add(), shared as db_put_shared(). */
PORT_FN int db_fetch_add_shared(struct db_qp *qp, uint64_t raddr, uint32_t rkey, uint64_t laddr,
                                uint32_t lkey, uint64_t addend, uint64_t *index)
{
    const struct db_qp here = db_qp_constants(qp);
    if (db_is_proxied(&here))
        return db_push_memory(qp, here.ring, true, DB_RING_FETCH_ADD, raddr, rkey, laddr, lkey, 8,
                              addend, index);
    int status = db_claim_shared(qp, 1, index);
    if (status)
        return status;
    db_build_fetch_add(&here, *index, DB_SIGNALED, raddr, rkey, laddr, lkey, addend);
    return db_publish_shared(qp, &here, *index, 1);
}

/* As db_wait(), by any number of threads at once. */
PORT_FN int db_wait_shared(struct db_qp *qp, uint64_t index)
{
    if (db_is_proxied(qp))
        return db_push_wait(qp, index);
    return db_wait_index(qp, index);
}

/* As db_flush(), by any number of threads at once. */
PORT_FN int db_flush_shared(struct db_qp *qp)
{
    if (db_is_proxied(qp))
        return db_push_flush(qp);
    return db_wait_queue_shared(qp);
}

/* ---- A warp posts together ---- */

/* A claim by one lane for all lanes of `mask`, one block each. `*index` is this lane's block,
 * `*first` the lowest lane's. Every lane gets the same status. */
PORT_FN int db_claim_warp(struct db_qp *qp, uint32_t mask, uint64_t *first, uint64_t *index)
{
    unsigned lane = port_lane(), leader = port_first_lane(mask);
    uint64_t base = 0;
    int status = DB_OK;
    if (lane == leader)
        status = db_claim_shared(qp, port_count_lanes(mask), &base);
    *first = port_broadcast64(mask, base, leader);
    *index = *first + port_count_lanes(mask & ((1u << lane) - 1));
    status = (int)(int64_t)port_broadcast64(mask, (uint64_t)(int64_t)status, leader);
    /* What the leader acquired, that these blocks are free, every lane has behind this barrier: a
     * broadcast orders nothing. */
    port_syncwarp(mask);
    return status;
}

/* Publishes the blocks of all lanes of `mask` with one doorbell. */
PORT_FN int db_publish_warp(struct db_qp *qp, const struct db_qp *here, uint32_t mask,
                            uint64_t first, enum db_order order, enum db_record record)
{
    unsigned leader = port_first_lane(mask);
    uint64_t end = first + port_count_lanes(mask);
    int status = DB_OK;
    /* Every lane's WQE is visible to the leader behind this barrier, and by the release in
     * db_ring(), which is cumulative, to the device. */
    port_syncwarp(mask);
    if (port_lane() == leader)
        status = db_publish_ticket(qp, here, first, end - 1, end, order, record);
    return (int)(int64_t)port_broadcast64(mask, (uint64_t)(int64_t)status, leader);
}

/* The same, ordered as the queue's placement asks. */
PORT_FN int db_publish_warp_safe(struct db_qp *qp, const struct db_qp *here, uint32_t mask,
                                 uint64_t first)
{
    enum db_record record = (enum db_record)here->with_record;
    if (here->order == DB_ORDER_GPU)
        return db_publish_warp(qp, here, mask, first, DB_ORDER_GPU, record);
    return db_publish_warp(qp, here, mask, first, DB_ORDER_SYSTEM, record);
}

/* db_put() by every lane of `mask` at once, each with its own arguments: one claim and one doorbell
 * for all. All lanes named must call; each gets its own `*index` and the same status. */
PORT_FN int db_put_warp(struct db_qp *qp, uint32_t mask, uint64_t raddr, uint32_t rkey,
                        uint64_t laddr, uint32_t lkey, uint32_t bytes, uint64_t *index)
{
    const struct db_qp here = db_qp_constants(qp);
    if (db_is_proxied(&here))
        return db_push_memory_warp(qp, here.ring, mask, DB_RING_PUT, raddr, rkey, laddr, lkey,
                                   bytes, index);
    uint64_t first;
    int status = db_claim_warp(qp, mask, &first, index);
    if (status)
        return status;
    db_build_write(&here, *index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes);
    return db_publish_warp_safe(qp, &here, mask, first);
}

/* db_put_value() in the same way. */
PORT_FN int db_put_value_warp(struct db_qp *qp, uint32_t mask, uint64_t raddr, uint32_t rkey,
                              uint64_t value, uint64_t *index)
{
    const struct db_qp here = db_qp_constants(qp);
    if (db_is_proxied(&here))
        return db_push_value_warp(qp, here.ring, mask, raddr, rkey, value, index);
    uint64_t first;
    int status = db_claim_warp(qp, mask, &first, index);
    if (status)
        return status;
    db_build_write_value(&here, *index, DB_SIGNALED, raddr, rkey, value);
    return db_publish_warp_safe(qp, &here, mask, first);
}

/* db_get() in the same way. */
PORT_FN int db_get_warp(struct db_qp *qp, uint32_t mask, uint64_t raddr, uint32_t rkey,
                        uint64_t laddr, uint32_t lkey, uint32_t bytes, uint64_t *index)
{
    const struct db_qp here = db_qp_constants(qp);
    if (db_is_proxied(&here))
        return db_push_memory_warp(qp, here.ring, mask, DB_RING_GET, raddr, rkey, laddr, lkey,
                                   bytes, index);
    uint64_t first;
    int status = db_claim_warp(qp, mask, &first, index);
    if (status)
        return status;
    db_build_read(&here, *index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes);
    return db_publish_warp_safe(qp, &here, mask, first);
}

#endif
