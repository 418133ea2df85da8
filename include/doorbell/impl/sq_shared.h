/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting to a queue that threads share: claim blocks, build in them (wqe.h), publish. Included by
 * device_shared.h. How a queue is shared is the choice of a pair of functions, for its whole life:
 *
 *   claim               publish              how
 *   db_claim_locked     db_publish_locked    a lock from claim to doorbell
 *   db_claim_shared     db_publish_handoff   each marks its slots, whoever is at it rings for all
 *   db_claim_shared     db_publish_ticket    each waits for its turn and rings itself
 *
 * `here` of a publication are the queue's constants, taken before the claim; the queue itself will
 * do, and takes longer, since behind an acquire its words come from the L2.
 *
 * A warp that posts together has one lane claim and publish for all (device_shared.h, _warp calls).
 *
 * Lanes of one warp may wait for each other here, for the lock or for a turn: port_pause() lets the
 * one that is waited for go on.
 */
#ifndef DOORBELL_IMPL_SQ_SHARED_H
#define DOORBELL_IMPL_SQ_SHARED_H

#include "sq.h"

/* ---- A lock from claim to doorbell ---- */

/* Tries for the lock until it is had, or DB_ERROR_TIMEOUT. */
PORT_COLD int db_wait_lock(struct db_qp *qp)
{
    uint64_t deadline = 0;
    for (uint32_t polls = 1; port_cas64(&qp->post.lock, 0, 1) != 0; polls++) {
        if (port_timed_out(polls, qp->timeout_ns, &deadline))
            return DB_ERROR_TIMEOUT;
        port_pause();
    }
    return DB_OK;
}

/* As db_claim(); holds the queue's lock when it returns DB_OK, and only then. */
PORT_FN int db_claim_locked(struct db_qp *qp, uint32_t blocks, uint64_t *index)
{
    uint32_t depth = db_qp_constants(qp).depth;
    if (blocks > 1 && blocks > depth)
        return DB_ERROR_INVALID;
    /* Asked first, so that the answer comes while the lock is tried. */
    uint64_t completed = port_ld64(&qp->done.completed, PORT_RELAXED, PORT_GPU);
    if (PORT_UNLIKELY(port_cas64(&qp->post.lock, 0, 1) != 0) && db_wait_lock(qp))
        return DB_ERROR_TIMEOUT;
    /* Acquire: pairs with the release in db_publish_locked(). And for `completed`: what another
     * thread stored into these blocks, a lap ago, comes before what is stored now. It is behind its
     * own completion, which whoever moved `completed` saw. */
    port_fence(PORT_ACQUIRE, PORT_GPU);
    uint64_t end = (*index = port_ld64(&qp->post.claimed, PORT_RELAXED, PORT_GPU)) + blocks;
    int status = db_qp_status(qp);
    if (PORT_UNLIKELY(!status && end > completed + depth))
        status = db_poll_for_room(qp, end, true);
    if (PORT_UNLIKELY(status)) {
        port_st64(&qp->post.lock, 0, PORT_RELEASE, PORT_GPU);
        return status;
    }
    port_st64(&qp->post.claimed, end, PORT_RELAXED, PORT_GPU);
    return DB_OK;
}

PORT_FN void db_publish_locked(struct db_qp *qp, const struct db_qp *here, uint64_t last,
                               uint64_t end, enum db_order order, enum db_record record)
{
    db_publish_here(qp, here, last, end, order, record);
    /* Release: the next holder finds the queue's words and its doorbell behind this one. */
    port_st64(&qp->post.lock, 0, PORT_RELEASE, PORT_GPU);
}

/* ---- Shared: an atomic claim, publication in index order ---- */

/* A thread gave up after others had claimed behind it: nobody can publish past the hole. */
PORT_FN int db_give_up(struct db_qp *qp)
{
    db_qp_fail(qp, DB_QP_BROKEN);
    return db_qp_status(qp);
}

/* As db_claim(), by any number of threads. A wait that times out cannot give its blocks back: the
 * queue is broken then, every call on it says so, and DB_ERROR_BROKEN is returned. */
PORT_FN int db_claim_shared(struct db_qp *qp, uint32_t blocks, uint64_t *index)
{
    uint32_t depth = db_qp_constants(qp).depth;
    if (blocks > 1 && blocks > depth) /* one always fits, and its claim waits for nothing */
        return DB_ERROR_INVALID;
    /* Asked first, so that the answers come while the claim is under way. */
    int failed = db_qp_status(qp);
    uint64_t completed = port_ld64(&qp->done.completed, PORT_RELAXED, PORT_GPU);
    uint64_t first = port_add64(&qp->post.claimed, blocks);
    *index = first;
    /* Acquire: for `completed`, as in db_claim_locked(). */
    completed = port_acquire64(&qp->done.completed, completed, PORT_GPU);
    if (PORT_UNLIKELY(failed))
        return failed;
    if (PORT_UNLIKELY(first + blocks > completed + depth)) {
        int status = db_poll_for_room(qp, first + blocks, true);
        return status == DB_ERROR_TIMEOUT ? db_give_up(qp) : status;
    }
    return DB_OK;
}

/* The mark of a WQE's first block: the lap that `index` belongs to, so that a mark of an earlier
 * lap is no mark, and the WQE's blocks. A fresh ring holds 0, which is none. */
PORT_FN uint32_t db_mark(const struct db_qp *qp, uint64_t index, uint32_t blocks)
{
    return ((uint32_t)(index >> port_log2(qp->depth)) + 1) << 4 | (blocks - 1);
}

/* Rings once for all WQEs that are marked behind what is published, in order. The caller holds the
 * lock. */
PORT_FN void db_publish_marked(struct db_qp *qp, const struct db_qp *here, enum db_order order,
                               enum db_record record)
{
    struct db_published published = db_published(qp, PORT_RELAXED);
    uint64_t end = published.end, last = published.last;
    for (;;) {
        /* Acquire: pairs with the release in db_publish_handoff(); the WQE is visible here, and by
         * the release in db_ring(), which covers what was acquired, to the device. */
        uint32_t mark =
            port_ld32(&here->slot_ready[end & (here->depth - 1)], PORT_ACQUIRE, PORT_GPU);
        if (mark >> 4 != db_mark(here, end, 1) >> 4)
            break;
        last = end;
        end += (mark & 15) + 1;
    }
    if (end == published.end)
        return;
    db_publish_here(qp, here, last, end, order, record);
}

/*
 * Marks the one WQE of `blocks` blocks at `index` as built, and rings for all that are ready unless
 * another thread is at it. Never waits: a thread whose predecessor is not ready leaves its WQE to
 * the predecessor.
 */
PORT_FN void db_publish_handoff(struct db_qp *qp, const struct db_qp *here, uint64_t index,
                                uint32_t blocks, enum db_order order, enum db_record record)
{
    /* Visible before the mark: the WQE, to the thread that rings, whose own release shows it to the
     * device. Pairs with the acquire in db_publish_marked(). */
    db_release(order);
    port_st32(&here->slot_ready[index & (here->depth - 1)], db_mark(here, index, blocks),
              PORT_RELAXED, PORT_GPU);
    /* Release: the mark, before this thread is counted. Acquire: what the last holder published. */
    if (port_add64_ordered(&qp->post.lock, 1) != 0)
        return; /* its holder finds the count changed, and looks again */
    for (uint64_t came = 1;;) {
        db_publish_marked(qp, here, order, record);
        /* Acquire: the marks of those who came meanwhile. Release: what was published here. */
        uint64_t now = port_cas64_ordered(&qp->post.lock, came, 0);
        if (now == came)
            return;
        came = now;
    }
}

/* How often a turn is looked for before the clock and the queue's errors are. */
#define DB_TURN_POLLS 256

/* The patient part of a wait for the turn. Statuses as db_publish_ticket(). */
PORT_COLD int db_wait_turn(struct db_qp *qp, uint64_t index)
{
    uint64_t deadline = 0;
    /* Acquire: as in db_publish_ticket(). */
    for (uint32_t polls = 1; db_published(qp, PORT_ACQUIRE).end != index; polls++) {
        int status = db_qp_status(qp);
        if (status)
            return status;
        if (port_timed_out(polls, qp->timeout_ns, &deadline))
            return db_give_up(qp);
        port_pause();
    }
    return DB_OK;
}

/*
 * Waits until everything before `index` is published, then publishes [index, end) itself; `last`
 * starts its last WQE. Returns DB_OK, or DB_ERROR_BROKEN after qp->timeout_ns: then a predecessor
 * never published, and nobody can.
 */
PORT_FN int db_publish_ticket(struct db_qp *qp, const struct db_qp *here, uint64_t index,
                              uint64_t last, uint64_t end, enum db_order order,
                              enum db_record record)
{
    /* Asked before the release, so that the answer comes while that is under way. */
    bool turn = order != DB_ORDER_NONE_UNSAFE && db_published(qp, PORT_RELAXED).end == index;

    /* Released before the wait, so that the turn itself is short (eight warps on an H200: 45
     * million posts a second, 35 with the release behind it): the WQEs, visible to the device
     * before the record or the doorbell that tell of them. Pairs with its ordered reads. The WQEs
     * before them, of which the record tells as well, were released by their own threads: on
     * machines that does (docs/memory_order.md, "Machines and the letter").
     * Acquired, where the turn had come: as below. */
    db_acquire_release(order);
    /* Acquire: pairs with the release that precedes the store of `published` below. The record must
     * move forward only, so the predecessor's store of it comes before this thread's. */
    for (uint32_t polls = 1; !turn && db_published(qp, PORT_ACQUIRE).end != index; polls++) {
        if (PORT_UNLIKELY(polls == DB_TURN_POLLS)) {
            int status = db_wait_turn(qp, index);
            if (status)
                return status;
            break;
        }
        port_pause();
    }
    uint32_t zero = db_ring(here, end, order, record, true);
    /* With a record, the record comes before this store: by the release before the doorbell, or
     * because the store is made of the exchange's answer. A device that reads it does not mind
     * which doorbell comes first. Without one, the next doorbell must not overtake this one:
     * released here. */
    enum port_order passing =
        record == DB_WITHOUT_RECORD || order == DB_ORDER_NONE_UNSAFE ? PORT_RELEASE : PORT_RELAXED;
    port_st64(&qp->post.published, db_published_pack(last, end) | zero, passing, PORT_GPU);
    return DB_OK;
}

/* ---- Completing what threads posted together ---- */

/* Waits until all blocks that were claimed when it began are published, by whichever thread does
 * it. Statuses as db_wait_index(). */
PORT_FN int db_wait_published(struct db_qp *qp)
{
    uint64_t claimed = port_ld64(&qp->post.claimed, PORT_RELAXED, PORT_GPU);
    uint64_t deadline = 0;
    for (uint32_t polls = 1; db_published(qp, PORT_RELAXED).end < claimed; polls++) {
        int status = db_qp_status(qp);
        if (status)
            return status;
        if (port_timed_out(polls, qp->timeout_ns, &deadline))
            return DB_ERROR_TIMEOUT;
        port_pause();
    }
    return DB_OK;
}

/* Waits for everything that threads posted to the queue so far; its last WQE must have been
 * signalled. */
PORT_FN int db_wait_queue_shared(struct db_qp *qp)
{
    int status = db_wait_published(qp);
    return status ? status : db_wait_queue(qp);
}

#endif
