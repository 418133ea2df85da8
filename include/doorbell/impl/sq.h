/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting: claim blocks, build WQEs in them (wqe.h), publish them to the device. This is the path
 * from a put to the doorbell store. Included by device.h.
 *
 * A publication makes the WQEs visible, then moves the doorbell record, then rings: in index order,
 * whatever order the threads build in. Here one thread owns the queue; sq_shared.h is for more.
 */
#ifndef DOORBELL_IMPL_SQ_H
#define DOORBELL_IMPL_SQ_H

#include "cq.h"
#include "wqe.h"

/* ---- Publishing ---- */

/* Release fence at the scope that `order` names. */
PORT_FN void db_release(enum db_order order)
{
    if (order == DB_ORDER_GPU)
        port_fence(PORT_RELEASE, PORT_GPU);
    else if (order == DB_ORDER_SYSTEM)
        port_fence(PORT_RELEASE, PORT_SYSTEM);
}

/* The same with an acquire before it, for what relaxed loads have found. */
PORT_FN void db_acquire_release(enum db_order order)
{
    if (order == DB_ORDER_GPU)
        port_fence(PORT_ACQUIRE_RELEASE, PORT_GPU);
    else if (order == DB_ORDER_SYSTEM)
        port_fence(PORT_ACQUIRE_RELEASE, PORT_SYSTEM);
}

/*
 * What comes before the doorbell that tells of all blocks below `end`. `visible` is a literal: true
 * when a release of this thread already covers every WQE below `end`. Returns 0. Where the record
 * is exchanged, that 0 is part of the exchange's answer, and a store that is made of it comes
 * behind the record.
 */
PORT_FN uint32_t db_before_doorbell(const struct db_qp *qp, uint64_t end, enum db_order order,
                                    enum db_record record, bool visible)
{
    /* Looked up and worked out before the fences, so that nothing but stores stands between them.
     */
    uint32_t *send = &qp->record->send.raw;
    uint32_t sent = port_be_low16((uint32_t)end);

    /* Visible to the device before it can see the record: the WQEs. Pairs with its ordered reads,
     * record before WQE. A device that reads no record sees the doorbell first. */
    if (!visible)
        db_release(order);
    /* Visible before the doorbell: the record. A device that reads the record on a doorbell must
     * not find an old one, or the WQEs stay where they are. */
    if (record == DB_WITH_RECORD) {
        port_st32(send, sent, PORT_RELAXED, PORT_SYSTEM);
        db_release(order);
    } else if (record == DB_RECORD_EXCHANGED) {
        /* It is in memory when the exchange has answered. The doorbell waits for that, being made
         * of the answer: an old record's first two bytes are 0. */
        return port_xchg32(send, sent) & 0xffff;
    }
    return 0;
}

/* Tells the device that all blocks below `end` are its own. One thread at a time. Otherwise as
 * db_before_doorbell(). */
PORT_FN uint32_t db_ring(const struct db_qp *qp, uint64_t end, enum db_order order,
                         enum db_record record, bool visible)
{
    void *doorbell = qp->doorbell;
    uint64_t word = db_ctrl_word(qp->qpn, end, 0, 0);
    uint32_t zero = db_before_doorbell(qp, end, order, record, visible);
    port_doorbell(doorbell, word | zero);
    return zero;
}

/* ---- Room in the ring ---- */

/* Are the blocks below `end` free: is what was in them complete? */
PORT_FN bool db_has_room(const struct db_qp *qp, uint64_t end, uint64_t completed)
{
    if (end <= completed + qp->depth)
        return true;
    /* A completion names the first block of its WQE. When that WQE is the last one published, its
     * other blocks are free as well. */
    struct db_published published = db_published(qp, PORT_RELAXED);
    return published.end != 0 && completed > published.last && end <= published.end + qp->depth;
}

/* Polls until blocks below `end` are free. DB_OK, DB_ERROR_TIMEOUT after qp->timeout_ns, or the
 * queue's error. */
PORT_COLD int db_poll_for_room(struct db_qp *qp, uint64_t end, bool shared)
{
    uint64_t deadline = 0;
    for (uint32_t polls = 1;; polls++) {
        if (db_has_room(qp, end, db_cq_poll(qp, DB_ALL_BLOCKS, shared, PORT_ACQUIRE)))
            return DB_OK;
        if (polls % PORT_POLLS_PER_LOOK == 0) {
            int status = db_qp_status(qp);
            if (status)
                return status;
        }
        if (port_timed_out(polls, qp->timeout_ns, &deadline))
            return DB_ERROR_TIMEOUT;
        port_pause_shared(shared);
    }
}

/* ---- One owner: the calling thread is the only one that posts or polls ---- */

/* Claims `blocks` in a row and says where they start. Waits while the ring is full. Returns DB_OK,
 * DB_ERROR_INVALID (more than the ring has), DB_ERROR_TIMEOUT (nothing was claimed) or the queue's
 * error. */
PORT_FN int db_claim(struct db_qp *qp, uint32_t blocks, uint64_t *index)
{
    uint64_t first = port_ld64(&qp->post.claimed, PORT_RELAXED, PORT_THREAD);
    uint64_t completed = port_ld64(&qp->done.completed, PORT_RELAXED, PORT_THREAD);
    uint32_t depth = db_qp_constants(qp).depth;
    uint64_t end = first + blocks;
    *index = first;
    if (PORT_UNLIKELY(end > completed + depth)) {
        if (blocks > depth)
            return DB_ERROR_INVALID;
        int status = db_poll_for_room(qp, end, false);
        if (status)
            return status;
    }
    port_st64(&qp->post.claimed, end, PORT_RELAXED, PORT_THREAD);
    return DB_OK;
}

/* Publishes all blocks below `end`, the last WQE of which starts at `last`, by one thread at a
 * time. `here` are the queue's constants. */
PORT_FN void db_publish_here(struct db_qp *qp, const struct db_qp *here, uint64_t last,
                             uint64_t end, enum db_order order, enum db_record record)
{
    db_ring(here, end, order, record, false);
    port_st64(&qp->post.published, db_published_pack(last, end), PORT_RELAXED, PORT_GPU);
}

PORT_FN void db_publish(struct db_qp *qp, uint64_t last, uint64_t end, enum db_order order,
                        enum db_record record)
{
    const struct db_qp here = db_qp_constants(qp);
    db_publish_here(qp, &here, last, end, order, record);
}

#endif
