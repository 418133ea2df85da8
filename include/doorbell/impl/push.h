/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the calls of device.h do on a proxied queue: from their arguments to descriptors in the
 * queue's ring (ring.h). Included by device.h.
 *
 * Keys and addresses are those that db_queue_keys() gave: a place in the proxy's tables and an
 * offset.
 */
#ifndef DOORBELL_IMPL_PUSH_H
#define DOORBELL_IMPL_PUSH_H

#include "ring.h"

/* Which queues a source uses. One that defines it before device.h is included leaves the compiler
 * no branch. */
#define DB_QUEUES_ANY   0
#define DB_QUEUES_GPU   1
#define DB_QUEUES_PROXY 2

#ifndef DB_QUEUES
#define DB_QUEUES DB_QUEUES_ANY
#endif

PORT_FN bool db_is_proxied(const struct db_qp *qp)
{
    return DB_QUEUES == DB_QUEUES_ANY ? qp->ring != NULL : DB_QUEUES == DB_QUEUES_PROXY;
}

/* Keeps the reason of a failure for db_qp_error(). */
PORT_FN int db_push_status(struct db_qp *qp, int status)
{
    if (status == DB_ERROR_IO)
        db_qp_fail(qp, port_ld64(&qp->ring->progress->error, PORT_ACQUIRE, PORT_SYSTEM));
    else if (status == DB_ERROR_BROKEN)
        db_qp_fail(qp, DB_QP_BROKEN);
    return status;
}

/* One of several producers may not push like the one that counts by itself. */
PORT_FN bool db_push_may(const struct db_ring *ring, bool shared)
{
    return !shared || ring->producers == DB_MANY_PRODUCERS;
}

/* A place and an offset that a descriptor can name. */
PORT_FN bool db_push_names(uint64_t offset, uint32_t place)
{
    return offset < DB_RING_OFFSETS && place < DB_RING_PLACES;
}

/* Operand and operation in `steps`; without an operand when `operation` is all there is. */
PORT_FN int db_push_steps(struct db_ring *ring, bool has_operand, struct db_descriptor operand,
                          struct db_descriptor operation, uint32_t steps, uint64_t *index)
{
    return has_operand ? db_ring_push_pair(ring, &ring->own, operand, operation, steps, index)
                       : db_ring_push(ring, &ring->own, operation, steps, index);
}

/* As the ring's producers and its protocol ask; `here` is the ring as it was taken, `payload` a
 * literal, DB_RING_PAYLOAD or 0. */
PORT_FN int db_push_any(struct db_ring *ring, struct db_ring *here, bool has_operand,
                        struct db_descriptor operand, struct db_descriptor operation,
                        uint32_t payload, uint64_t *index)
{
    if (here->producers == DB_ONE_PRODUCER) {
        int status =
            db_push_steps(here, has_operand, operand, operation, DB_RING_TUNED | payload, index);
        db_ring_give(ring, here);
        return status;
    }
    if (here->baseline)
        return db_push_steps(here, has_operand, operand, operation, DB_RING_BASELINE, index);
    return db_push_steps(here, has_operand, operand, operation, DB_RING_SHARED | payload, index);
}

/*
 * An operation on memory of both sides, on the queue's ring. `op` and `shared` are literals;
 * DB_RING_PUT_IMM and DB_RING_FETCH_ADD take `operand`. DB_ERROR_INVALID: keys, addresses or a size
 * that no descriptor can name, or a shared call on a ring of one producer.
 */
PORT_FN int db_push_memory(struct db_qp *qp, struct db_ring *ring, bool shared, enum db_ring_op op,
                           uint64_t raddr, uint32_t rkey, uint64_t laddr, uint32_t lkey,
                           uint32_t bytes, uint64_t operand, uint64_t *index)
{
    struct db_ring here;
    db_ring_take(&here, ring);
    if (!db_push_may(&here, shared) || !db_push_names(raddr, rkey) || !db_push_names(laddr, lkey) ||
        bytes - 1 >= DB_RING_MAX_BYTES)
        return DB_ERROR_INVALID;
    struct db_descriptor d = db_descriptor_memory(op, 0, rkey, raddr, lkey, laddr, bytes);
    struct db_descriptor before = db_descriptor_value(DB_RING_OPERAND, 0, 0, operand);
    return db_push_status(qp, db_push_any(ring, &here, db_ring_op_has_operand(op), before, d,
                                          DB_RING_PAYLOAD, index));
}

/* An 8-byte value, which travels in the descriptor: no payload to release. */
PORT_FN int db_push_value(struct db_qp *qp, struct db_ring *ring, bool shared, uint64_t raddr,
                          uint32_t rkey, uint64_t value, uint64_t *index)
{
    struct db_ring here;
    db_ring_take(&here, ring);
    if (!db_push_may(&here, shared) || !db_push_names(raddr, rkey))
        return DB_ERROR_INVALID;
    struct db_descriptor d = db_descriptor_value(DB_RING_VALUE, rkey, raddr, value);
    return db_push_status(qp, db_push_any(ring, &here, false, d, d, 0, index));
}

/* One descriptor of each lane of `mask`, with one reservation. All lanes get the same status, so
 * one that cannot be `named` refuses all. `payload` as db_push_any(). */
PORT_FN int db_push_warp(struct db_qp *qp, struct db_ring *ring, uint32_t mask, bool named,
                         struct db_descriptor d, uint32_t payload, uint64_t *index)
{
    struct db_ring here;
    db_ring_take(&here, ring);
    named = named && db_push_may(&here, true);
    for (uint32_t left = mask; left; left &= left - 1)
        if (!port_broadcast64(mask, named, port_first_lane(left)))
            return DB_ERROR_INVALID;
    return db_push_status(
        qp, here.baseline ? db_ring_push_warp(&here, mask, d, DB_RING_BASELINE, index)
                          : db_ring_push_warp(&here, mask, d, DB_RING_SHARED | payload, index));
}

/* As db_push_memory(), of an operation without operand. */
PORT_FN int db_push_memory_warp(struct db_qp *qp, struct db_ring *ring, uint32_t mask,
                                enum db_ring_op op, uint64_t raddr, uint32_t rkey, uint64_t laddr,
                                uint32_t lkey, uint32_t bytes, uint64_t *index)
{
    bool named =
        db_push_names(raddr, rkey) && db_push_names(laddr, lkey) && bytes - 1 < DB_RING_MAX_BYTES;
    return db_push_warp(qp, ring, mask, named,
                        db_descriptor_memory(op, 0, rkey, raddr, lkey, laddr, bytes),
                        DB_RING_PAYLOAD, index);
}

/* As db_push_value(). */
PORT_FN int db_push_value_warp(struct db_qp *qp, struct db_ring *ring, uint32_t mask,
                               uint64_t raddr, uint32_t rkey, uint64_t value, uint64_t *index)
{
    return db_push_warp(qp, ring, mask, db_push_names(raddr, rkey),
                        db_descriptor_value(DB_RING_VALUE, rkey, raddr, value), 0, index);
}

PORT_FN int db_push_wait(struct db_qp *qp, uint64_t index)
{
    return db_push_status(qp, db_ring_wait(qp->ring, index));
}

PORT_FN int db_push_flush(struct db_qp *qp)
{
    return db_push_status(qp, db_ring_flush(qp->ring));
}

#endif
