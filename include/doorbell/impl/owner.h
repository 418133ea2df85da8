/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue in the hands of one thread, or of one warp, for many operations: what the calls of sq.h
 * and cq.h read from the queue at each operation is kept in registers here, so that posting touches
 * no memory but the ring, the record and the doorbell. Included by device.h.
 *
 *     struct db_owner owner;
 *     db_owner_take(&owner, qp);
 *     ... claim, build (wqe.h, with &owner.here), publish, wait ...
 *     db_owner_give(&owner);
 *
 * Between the two nobody else may use the queue. On an H200 a load from the queue costs 0.14 us,
 * more than half of a GPU-scope release. One WQE to a doorbell goes faster without a claim:
 * db_owner_try_publish().
 */
#ifndef DOORBELL_IMPL_OWNER_H
#define DOORBELL_IMPL_OWNER_H

#include "sq.h"

struct db_owner {
    struct db_qp *qp;   /* the queue: for its first error alone */
    struct db_qp here;  /* its constants; none of its words */
    uint64_t claimed;   /* the queue's words of the same names */
    uint64_t published; /* end */
    uint64_t last;      /* first block of the last WQE published */
    uint64_t completed;
    uint64_t consumed;
    uint32_t room; /* blocks that may be claimed without a wait */
    int status;    /* why the last call that returned false did */
};

/* Everything below `completed` is complete. Of a queue that was used otherwise before, more may be
 * claimed than that leaves room for: db_has_room() says how. */
PORT_FN void db_owner_advance(struct db_owner *owner, uint64_t completed)
{
    uint64_t end = completed + owner->here.depth;
    owner->completed = completed;
    owner->room = end > owner->claimed ? (uint32_t)(end - owner->claimed) : 0;
}

/* The WQE at `index` is complete, and with it all before; when it is the last one published, its
 * other blocks are free as well. */
PORT_FN void db_owner_complete(struct db_owner *owner, uint64_t index)
{
    db_owner_advance(owner, index == owner->last ? owner->published : index + 1);
}

/* Takes the queue. What earlier owners did to it must be visible: they gave it back, and the kernel
 * or a barrier ended since. */
PORT_FN void db_owner_take(struct db_owner *owner, struct db_qp *qp)
{
    owner->qp = qp;
    owner->here = db_qp_constants(qp);
    struct db_published published =
        db_published_unpack(port_ld64(&qp->post.published, PORT_RELAXED, PORT_THREAD));
    owner->published = published.end;
    owner->last = published.last;
    owner->claimed = port_ld64(&qp->post.claimed, PORT_RELAXED, PORT_THREAD);
    owner->consumed = port_ld64(&qp->done.consumed, PORT_RELAXED, PORT_THREAD);
    owner->status = DB_OK;
    db_owner_complete(owner, port_ld64(&qp->done.completed, PORT_RELAXED, PORT_THREAD) - 1);
}

/* Gives back a queue that was posted to, and polled no further than it was. */
PORT_FN void db_owner_give_posts(const struct db_owner *owner)
{
    struct db_qp *qp = owner->qp;
    port_st64(&qp->post.claimed, owner->claimed, PORT_RELAXED, PORT_THREAD);
    port_st64(&qp->post.published, db_published_pack(owner->last, owner->published), PORT_RELAXED,
              PORT_THREAD);
}

/* Gives the queue back, for the calls of device.h and for the host. One lane of a warp calls. */
PORT_FN void db_owner_give(const struct db_owner *owner)
{
    struct db_qp *qp = owner->qp;
    db_owner_give_posts(owner);
    port_st64(&qp->done.consumed, owner->consumed, PORT_RELAXED, PORT_THREAD);
    port_st64(&qp->done.completed, owner->completed, PORT_RELAXED, PORT_THREAD);
}

/* ---- Completing ---- */

/* Takes an error CQE into the queue, and says no. */
PORT_FN bool db_owner_fail(struct db_owner *owner, const uint8_t *cqe, struct db_cqe_tail tail)
{
    db_cqe_fail(owner->qp, cqe, tail);
    owner->status = db_qp_status(owner->qp);
    return false;
}

/* One step of progress; never blocks. False when a CQE told of an error, which owner->status is
 * then. The comments of db_cq_poll_collapsed() and db_cq_drain() hold here too. */
PORT_FN bool db_owner_poll(struct db_owner *owner, enum port_order order)
{
    const struct db_qp *here = &owner->here;
    if (here->cq_collapsed) {
        struct db_cqe_tail tail = db_cqe_load(here->cq, order);
        if (tail.op_own >> 4 == M5_CQE_INVALID)
            return true;
        if (tail.op_own >> 4 == M5_CQE_REQUESTER_ERROR)
            return db_owner_fail(owner, here->cq, tail);
        int16_t ahead = (int16_t)(uint16_t)(tail.index - (uint32_t)owner->completed);
        if (ahead >= 0)
            db_owner_complete(owner, owner->completed + (uint64_t)ahead);
        return true;
    }
    const uint8_t *cqe =
        here->cq + (owner->consumed & (here->cq_depth - 1)) * sizeof(struct m5_cqe);
    struct db_cqe_tail tail = db_cqe_load(cqe, order);
    uint32_t lap = (owner->consumed & here->cq_depth) != 0;
    if (tail.op_own >> 4 == M5_CQE_INVALID || (tail.op_own & M5_CQE_OWNER) != lap)
        return true;
    if (tail.op_own >> 4 == M5_CQE_REQUESTER_ERROR)
        return db_owner_fail(owner, cqe, tail);
    db_owner_complete(owner, db_index_extend(owner->completed, tail.index));
    owner->consumed++;
    /* Relaxed: behind the acquire load of the CQE, whose slot it gives back to the device. */
    port_st32(&here->cq_record->consumer.raw, port_bswap32((uint32_t)owner->consumed & 0xffffffu),
              PORT_RELAXED, PORT_SYSTEM);
    return true;
}

/* Polls until `completed` is above `index`. The other statuses as db_wait_index(). */
PORT_FN int db_owner_wait_order(struct db_owner *owner, uint64_t index, enum port_order order)
{
    uint64_t deadline = 0;
    for (uint32_t polls = 1; owner->completed <= index; polls++) {
        if (!db_owner_poll(owner, order))
            return owner->status;
        if (polls % PORT_POLLS_PER_CLOCK == 0) {
            int status = db_qp_status(owner->qp);
            if (status)
                return status;
            if (port_timed_out(polls, owner->here.timeout_ns, &deadline))
                return DB_ERROR_TIMEOUT;
        }
        if (owner->completed <= index)
            port_pause_shared(false);
    }
    return DB_OK;
}

/* As db_wait(), by the owner. */
PORT_FN int db_owner_wait(struct db_owner *owner, uint64_t index)
{
    return db_owner_wait_order(owner, index, PORT_ACQUIRE);
}

/* As db_flush(), by the owner. */
PORT_FN int db_owner_flush(struct db_owner *owner)
{
    return owner->published == 0 ? DB_OK : db_owner_wait(owner, owner->last);
}

/*
 * db_wait() and db_flush(), by the one thread that uses the queue: it owns it for the wait. A poll
 * is a load of the CQE then, and nothing else; what it would look up in the queue behind that
 * load's acquire comes from the L2 again, on an H200 0.16 us more each time. `order` is the polls':
 * PORT_ACQUIRE for a caller that reads what the completion tells of.
 */
PORT_FN int db_wait_alone(struct db_qp *qp, uint64_t index, enum port_order order)
{
    struct db_owner owner;
    db_owner_take(&owner, qp);
    int status = db_owner_wait_order(&owner, index, order);
    db_owner_give(&owner);
    return status;
}

PORT_FN int db_flush_alone(struct db_qp *qp)
{
    struct db_published published = db_published(qp, PORT_RELAXED);
    return published.end == 0 ? db_qp_status(qp) : db_wait_alone(qp, published.last, PORT_ACQUIRE);
}

/* ---- Posting ---- */

/* Waits until `blocks` blocks are free. False: owner->status says why they are not. */
PORT_FN bool db_owner_wait_room(struct db_owner *owner, uint32_t blocks)
{
    owner->status = blocks > owner->here.depth ? DB_ERROR_INVALID : DB_OK;
    while (!owner->status && owner->room < blocks)
        owner->status = db_owner_wait(owner, owner->completed);
    return !owner->status;
}

/* Has what a WQE at `index` needs worked out before a branch: where it lies, and the index as the
 * device reads it. */
PORT_FN void db_owner_ready(const struct db_owner *owner, uint64_t index)
{
    port_ready64((uintptr_t)db_block(&owner->here, index));
    port_ready32(port_be_mid16((uint32_t)index, 0));
}

/* Claims blocks as db_claim() does. False when it could not: owner->status says why, with the
 * statuses of db_claim(). (A truth value, which a compiler for GPUs folds into the caller's branch;
 * a status that is handed on costs a branch more.) */
PORT_FN bool db_owner_claim(struct db_owner *owner, uint32_t blocks, uint64_t *index)
{
    *index = owner->claimed;
    db_owner_ready(owner, *index);
    if (PORT_UNLIKELY(owner->room < blocks) && !db_owner_wait_room(owner, blocks))
        return false;
    owner->claimed += blocks;
    owner->room -= blocks;
    return true;
}

/* The same for who takes the queue for one post, and gives it back by db_owner_give_posts(): what
 * a wait for room found is in the queue, and nothing more is claimed by what is known here. */
PORT_FN bool db_owner_claim_once(struct db_owner *owner, uint32_t blocks, uint64_t *index)
{
    *index = owner->claimed;
    db_owner_ready(owner, *index);
    if (PORT_UNLIKELY(owner->room < blocks)) {
        owner->status = blocks > owner->here.depth
                            ? DB_ERROR_INVALID
                            : db_poll_for_room(owner->qp, owner->claimed + blocks, false);
        if (owner->status)
            return false;
    }
    owner->claimed += blocks;
    return true;
}

/* As db_publish(). */
PORT_FN void db_owner_publish(struct db_owner *owner, uint64_t last, uint64_t end,
                              enum db_order order, enum db_record record)
{
    db_ring(&owner->here, end, order, record, false);
    owner->published = end;
    owner->last = last;
}

/*
 * Publishes the WQE of one block that was built at owner->claimed, if the block behind it is free
 * too. False: that is not known, the device was told nothing, and the WQE stays as it was built.
 * Never waits.
 *
 *     if (!db_owner_wait_room(&owner, 1)) ... owner.status
 *     for (...) {
 *         db_build_...(&owner.here, owner.claimed, ...);
 *         while (!db_owner_try_publish(&owner, order, record))
 *             if (!db_owner_wait_room(&owner, 2)) ... owner.status
 *     }
 *
 * So the owner always has a free block in hand, and the ring, of two blocks at least, holds one WQE
 * less: of depth - 1 in a row one must be signalled. What was claimed before must be published.
 *
 * Between the caller and the doorbell is no branch, because the question for room decides nothing
 * but whether the doorbell is rung, and whether the record is written anew or as it was: on an H200
 * a post takes 0.004 to 0.008 us less than with a claim, which takes 0.015 to 0.018 beside its
 * stores and releases.
 */
PORT_FN bool db_owner_try_publish(struct db_owner *owner, enum db_order order,
                                  enum db_record record)
{
    uint32_t room = owner->room >= 2;
    uint64_t end = owner->claimed + room;
    void *doorbell = owner->here.doorbell;
    uint64_t word = db_ctrl_word(owner->here.qpn, end, 0, 0);
    uint32_t zero = db_before_doorbell(&owner->here, end, order, record, false);
    port_doorbell_if(room, doorbell, word | zero);
    owner->last = room ? owner->claimed : owner->last;
    owner->claimed = end;
    owner->published = end;
    owner->room -= room;
    return room;
}

/* ---- A warp owns it: every lane of `mask` took the queue, and all call ---- */

/* As db_claim_warp(), without an atomic; false and owner->status as db_owner_claim(). */
PORT_FN bool db_owner_claim_warp(struct db_owner *owner, uint32_t mask, uint64_t *first,
                                 uint64_t *index)
{
    unsigned lane = port_lane(), leader = port_first_lane(mask);
    uint32_t blocks = port_count_lanes(mask);
    *first = owner->claimed;
    *index = *first + port_count_lanes(mask & ((1u << lane) - 1));
    if (PORT_UNLIKELY(owner->room < blocks)) {
        if (lane == leader)
            db_owner_wait_room(owner, blocks);
        owner->consumed = port_broadcast64(mask, owner->consumed, leader);
        db_owner_advance(owner, port_broadcast64(mask, owner->completed, leader));
        if (owner->room < blocks) {
            uint64_t status = port_broadcast64(mask, (uint64_t)(int64_t)owner->status, leader);
            owner->status = (int)(int64_t)status;
            return false;
        }
    }
    owner->claimed += blocks;
    owner->room -= blocks;
    return true;
}

/* As db_publish_warp(); never waits. */
PORT_FN void db_owner_publish_warp(struct db_owner *owner, uint32_t mask, enum db_order order,
                                   enum db_record record)
{
    /* Every lane's WQE is visible to the leader behind this barrier, and by the release in
     * db_ring(), which is cumulative, to the device. */
    port_syncwarp(mask);
    if (port_lane() == port_first_lane(mask))
        db_ring(&owner->here, owner->claimed, order, record, false);
    owner->published = owner->claimed;
    owner->last = owner->claimed - 1;
}

#endif
