/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completing: one step of progress on a queue's completions (db_cq_poll), and the waits built on
 * it. Included by sq.h, which polls when the ring is full, and by device.h.
 *
 * Any thread may poll and any number may wait. Whoever finds a CQE moves done.completed, which the
 * others read; so all see a completion, and each CQE is consumed once. In a collapsed CQ there is
 * one CQE, of the latest completion, and nothing to consume.
 */
#ifndef DOORBELL_IMPL_CQ_H
#define DOORBELL_IMPL_CQ_H

#include "qp.h"

/* The last 8 bytes of a CQE as one word: QPN and opcode, wqe_counter, op_own. */
struct db_cqe_tail {
    uint32_t opcode_qpn;
    uint32_t index;  /* low 16 bits of the completed WQE's index */
    uint32_t op_own; /* enum m5_cqe_opcode << 4 | flags | owner */
};

/* `order` is the CQ load's: acquire for every safe use, since what the completion stands for
 * (fetched data, a reusable buffer) is read after it. Pairs with the device's write of op_own last.
 */
PORT_FN struct db_cqe_tail db_cqe_load(const uint8_t *cqe, enum port_order order)
{
    uint64_t word = port_ld64((const uint64_t *)(const void *)(cqe + 56), order, PORT_SYSTEM);
    uint32_t second = port_bswap32((uint32_t)(word >> 32));
    struct db_cqe_tail tail = {port_bswap32((uint32_t)word), second >> 16, second & 0xff};
    return tail;
}

/* Extends a 16-bit index to the first one not below `completed`. */
PORT_FN uint64_t db_index_extend(uint64_t completed, uint32_t index)
{
    return completed + ((index - (uint32_t)completed) & M5_INDEX_MASK);
}

PORT_FN void db_cqe_fail(struct db_qp *qp, const uint8_t *cqe, struct db_cqe_tail tail)
{
    uint32_t word = port_bswap32(
        port_ld32((const uint32_t *)(const void *)(cqe + 52), PORT_RELAXED, PORT_SYSTEM));
    db_qp_fail(qp, db_error_pack(tail.index, tail.opcode_qpn >> 24, word & 0xff, word >> 8 & 0xff));
}

/*
 * The CQE of a collapsed CQ names the latest WQE that completed. Returns the count of completed
 * blocks that this very load acquired: another thread may have moved done.completed further, but
 * what that stands for is not yet visible here. Before the first completion op_own holds
 * M5_CQE_INVALID.
 */
PORT_FN uint64_t db_cq_poll_collapsed(struct db_qp *qp, enum port_order order)
{
    /* First what is known, then the CQE: however long this thread is held up between the two, the
     * index is taken for no more than it is. */
    uint64_t known = port_ld64(&qp->done.completed, PORT_RELAXED, PORT_GPU);
    struct db_cqe_tail tail = db_cqe_load(qp->cq, order);
    if (tail.op_own >> 4 == M5_CQE_INVALID)
        return 0;
    if (tail.op_own >> 4 == M5_CQE_REQUESTER_ERROR) {
        db_cqe_fail(qp, qp->cq, tail);
        return 0;
    }
    int16_t ahead = (int16_t)(uint16_t)(tail.index - (uint32_t)known);
    if (ahead >= 0) {
        uint64_t completed = known + (uint64_t)ahead + 1;
        port_max64(&qp->done.completed, completed);
        return completed;
    }
    /* Behind what another thread knows, or so far ahead that it looks so; then the next poll knows
     * more, since a collapsed queue is at most DB_MAX_COLLAPSED_DEPTH deep. */
    uint64_t behind = (uint64_t)(-ahead - 1);
    return known > behind ? known - behind : 0;
}

/* Takes the CQEs that are there, until `want` blocks are complete: a CQE that has not come is read
 * over PCIe where the CQ lies in host memory. The caller holds done.lock or, when `shared` is
 * false, is the only one that uses the queue. */
PORT_FN void db_cq_drain(struct db_qp *qp, uint64_t want, bool shared, enum port_order order)
{
    uint64_t consumed = port_ld64(&qp->done.consumed, PORT_RELAXED, PORT_GPU);
    uint64_t completed = port_ld64(&qp->done.completed, PORT_RELAXED, PORT_GPU);
    uint64_t first = consumed;

    while (completed < want) {
        const uint8_t *cqe = qp->cq + (consumed & (qp->cq_depth - 1)) * sizeof(struct m5_cqe);
        struct db_cqe_tail tail = db_cqe_load(cqe, order);
        uint32_t lap = (consumed & qp->cq_depth) != 0;
        if (tail.op_own >> 4 == M5_CQE_INVALID || (tail.op_own & M5_CQE_OWNER) != lap)
            break;
        if (tail.op_own >> 4 == M5_CQE_REQUESTER_ERROR) {
            /* What completed before the error is told before it; pairs with db_wait_index(). */
            port_st64(&qp->done.completed, completed, PORT_RELEASE, PORT_GPU);
            port_fence(PORT_RELEASE, PORT_GPU);
            db_cqe_fail(qp, cqe, tail);
        } else {
            completed = db_index_extend(completed, tail.index) + 1;
        }
        consumed++;
    }
    if (consumed == first)
        return;
    port_st64(&qp->done.consumed, consumed, PORT_RELAXED, PORT_GPU);
    /* Relaxed: behind the acquire loads of the CQEs whose slots it gives back to the device. Behind
     * relaxed ones nothing is promised: that is for measuring only. */
    port_st32(&qp->cq_record->consumer.raw, port_bswap32((uint32_t)consumed & 0xffffffu),
              PORT_RELAXED, PORT_SYSTEM);
    /* Release, where others look: pairs with the acquires in db_cq_poll() and the shared claims;
     * what this thread acquired from the device, the thread that sees `completed` has too. */
    port_st64(&qp->done.completed, completed, shared ? PORT_RELEASE : PORT_RELAXED, PORT_GPU);
}

/* As many blocks as there can be: for a poll that takes every CQE. */
#define DB_ALL_BLOCKS UINT64_MAX

/* One step of progress, as far as `want` blocks; never blocks. Returns how many blocks are
 * complete, with everything that their completion stands for visible. `shared` is a literal: false
 * when the calling thread is the only one that uses the queue. */
PORT_FN uint64_t db_cq_poll(struct db_qp *qp, uint64_t want, bool shared, enum port_order order)
{
    if (qp->cq_collapsed)
        return db_cq_poll_collapsed(qp, order);
    if (!shared) {
        db_cq_drain(qp, want, false, order);
        return port_ld64(&qp->done.completed, PORT_RELAXED, PORT_GPU);
    }
    /* Whoever fails to get the lock leaves the progress to its holder. */
    if (port_ld64(&qp->done.lock, PORT_RELAXED, PORT_GPU) == 0 &&
        port_cas64(&qp->done.lock, 0, 1) == 0) {
        /* Acquire: pairs with the release of the unlock below. */
        port_fence(PORT_ACQUIRE, PORT_GPU);
        db_cq_drain(qp, want, true, order);
        port_st64(&qp->done.lock, 0, PORT_RELEASE, PORT_GPU);
    }
    /* Acquire: pairs with the release in db_cq_drain(). */
    return port_ld64(&qp->done.completed, PORT_ACQUIRE, PORT_GPU);
}

/*
 * Waits until the WQE at `index`, which was posted signalled or has a signalled one behind it, is
 * complete; by any number of threads. Returns DB_OK, DB_ERROR_IO or DB_ERROR_BROKEN when the queue
 * failed, DB_ERROR_TIMEOUT after qp->timeout_ns; the queue is as before then, and the wait may be
 * repeated.
 */
PORT_FN int db_wait_index(struct db_qp *qp, uint64_t index)
{
    uint64_t deadline = 0;
    for (uint32_t polls = 1;; polls++) {
        if (db_cq_poll(qp, index + 1, true, PORT_ACQUIRE) > index)
            return DB_OK;
        int status = polls % PORT_POLLS_PER_LOOK == 0 ? db_qp_status(qp) : DB_OK;
        if (status) {
            /* Acquire: pairs with the release before the error was told. This WQE may have been
             * complete before another failed. */
            port_fence(PORT_ACQUIRE, PORT_GPU);
            return port_ld64(&qp->done.completed, PORT_RELAXED, PORT_GPU) > index ? DB_OK : status;
        }
        if (port_timed_out(polls, qp->timeout_ns, &deadline))
            return DB_ERROR_TIMEOUT;
        port_pause();
    }
}

/* Waits for everything published on the queue so far; its last WQE must have been signalled. */
PORT_FN int db_wait_queue(struct db_qp *qp)
{
    struct db_published published = db_published(qp, PORT_RELAXED);
    return published.end == 0 ? db_qp_status(qp) : db_wait_index(qp, published.last);
}

#endif
