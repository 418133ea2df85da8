/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a kernel includes: puts, reads and atomics on a queue pair from GPU code, or from the CPU
 * threads that play it. One source for nvcc and for a C11 compiler.
 *
 * Every call takes a struct db_qp that host code made (doorbell.h). Three questions decide which
 * call to use: is the queue this thread's own (db_put), shared by threads (db_put_shared), or does
 * a warp post together (db_put_warp). A call on another kind than the queue is used with elsewhere
 * loses messages; the choice is one for the life of the queue. A thread or a warp that posts much
 * may take the queue for a while, which is faster: impl/owner.h.
 *
 * Who submits to the NIC, the calling thread or a proxy, was chosen with the queue, and the calls
 * are the same, with the keys of db_queue_keys(); impl/push.h says how a source that uses one kind
 * of queue alone leaves the other kind's code out. On a proxied queue what a call says of the ring
 * is said of the proxy's ring, db_put_inline() takes exactly 8 bytes, and a shared or warp call on
 * a queue that was made for one producer is refused with DB_ERROR_INVALID, unless its protocol is
 * the baseline.
 */
#ifndef DOORBELL_DEVICE_H
#define DOORBELL_DEVICE_H

#include "impl/owner.h"
#include "impl/push.h"
#include "impl/wqe_inline.h"

/* ---- One owner ---- */

/* Takes the queue for one call. False: the queue is proxied, and owner->here.ring is its ring. */
PORT_FN bool db_owner_take_once(struct db_owner *owner, struct db_qp *qp)
{
    if (DB_QUEUES == DB_QUEUES_PROXY) {
        owner->here.ring = port_constant(qp->ring);
        return false;
    }
    db_owner_take(owner, qp);
    return !db_is_proxied(&owner->here);
}

/* Publishes what was built up to `end`, ordered as the queue's placement asks, and gives the queue
 * back. */
PORT_FN void db_owner_publish_once(struct db_owner *owner, uint64_t last, uint64_t end)
{
    uint32_t order = owner->here.order, record = owner->here.with_record;
    if (order == DB_ORDER_GPU && record == DB_WITH_RECORD)
        db_owner_publish(owner, last, end, DB_ORDER_GPU, DB_WITH_RECORD);
    else if (order == DB_ORDER_GPU && record == DB_RECORD_EXCHANGED)
        db_owner_publish(owner, last, end, DB_ORDER_GPU, DB_RECORD_EXCHANGED);
    else if (order == DB_ORDER_GPU)
        db_owner_publish(owner, last, end, DB_ORDER_GPU, DB_WITHOUT_RECORD);
    else if (record == DB_WITH_RECORD)
        db_owner_publish(owner, last, end, DB_ORDER_SYSTEM, DB_WITH_RECORD);
    else
        db_owner_publish(owner, last, end, DB_ORDER_SYSTEM, DB_WITHOUT_RECORD);
    db_owner_give_posts(owner);
}

/* The same for what db_claim()'s caller built. */
PORT_FN void db_publish_safe(struct db_qp *qp, uint64_t last, uint64_t end)
{
    struct db_owner owner;
    db_owner_take(&owner, qp);
    db_owner_publish_once(&owner, last, end);
}

/*
 * Writes `bytes` (1 to 2^31) from `laddr`, in memory registered under `lkey`, to `raddr` under the
 * peer's `rkey`. `*index` names the operation for db_wait(). The bytes must be visible to the
 * device: written by this thread, or released by whoever wrote them.
 *
 * Blocks while the ring is full, up to the queue's timeout. Returns DB_OK, DB_ERROR_TIMEOUT
 * (nothing was posted), DB_ERROR_IO or DB_ERROR_BROKEN (db_qp_error() says why).
 */
PORT_FN int db_put(struct db_qp *qp, uint64_t raddr, uint32_t rkey, uint64_t laddr, uint32_t lkey,
                   uint32_t bytes, uint64_t *index)
{
    struct db_owner owner;
    if (!db_owner_take_once(&owner, qp))
        return db_push_memory(qp, owner.here.ring, false, DB_RING_PUT, raddr, rkey, laddr, lkey,
                              bytes, 0, index);
    if (!db_owner_claim_once(&owner, 1, index))
        return owner.status;
    db_build_write(&owner.here, *index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes);
    db_owner_publish_once(&owner, *index, *index + 1);
    return DB_OK;
}

/* The same for an 8-byte value that travels in the WQE; no local memory is read. */
PORT_FN int db_put_value(struct db_qp *qp, uint64_t raddr, uint32_t rkey, uint64_t value,
                         uint64_t *index)
{
    struct db_owner owner;
    if (!db_owner_take_once(&owner, qp))
        return db_push_value(qp, owner.here.ring, false, raddr, rkey, value, index);
    if (!db_owner_claim_once(&owner, 1, index))
        return owner.status;
    db_build_write_value(&owner.here, *index, DB_SIGNALED, raddr, rkey, value);
    db_owner_publish_once(&owner, *index, *index + 1);
    return DB_OK;
}

/* The same for `bytes` (0 to DB_MAX_INLINE) copied from `payload` into the WQE. DB_ERROR_INVALID
 * for more. */
PORT_FN int db_put_inline(struct db_qp *qp, uint64_t raddr, uint32_t rkey, const void *payload,
                          uint32_t bytes, uint64_t *index)
{
    struct db_owner owner;
    if (!db_owner_take_once(&owner, qp))
        return bytes == 8 ? db_push_value(qp, owner.here.ring, false, raddr, rkey,
                                          port_ld_plain64(payload), index)
                          : DB_ERROR_INVALID;
    if (bytes > DB_MAX_INLINE)
        return DB_ERROR_INVALID;
    uint32_t blocks = db_inline_blocks(bytes);
    if (!db_owner_claim_once(&owner, blocks, index))
        return owner.status;
    db_build_write_inline(&owner.here, *index, M5_OP_WRITE, DB_SIGNALED, raddr, rkey, payload,
                          bytes, 0);
    db_owner_publish_once(&owner, *index, *index + blocks);
    return DB_OK;
}

/* As db_put(), with a receive completion that carries `imm` at the peer, which must have posted a
 * receive. */
PORT_FN int db_put_imm(struct db_qp *qp, uint64_t raddr, uint32_t rkey, uint64_t laddr,
                       uint32_t lkey, uint32_t bytes, uint32_t imm, uint64_t *index)
{
    struct db_owner owner;
    if (!db_owner_take_once(&owner, qp))
        return db_push_memory(qp, owner.here.ring, false, DB_RING_PUT_IMM, raddr, rkey, laddr, lkey,
                              bytes, imm, index);
    if (!db_owner_claim_once(&owner, 1, index))
        return owner.status;
    db_build_write_imm(&owner.here, *index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes, imm);
    db_owner_publish_once(&owner, *index, *index + 1);
    return DB_OK;
}

/* Reads `bytes` from the peer into `laddr`; they are there when db_wait() has returned DB_OK. */
PORT_FN int db_get(struct db_qp *qp, uint64_t raddr, uint32_t rkey, uint64_t laddr, uint32_t lkey,
                   uint32_t bytes, uint64_t *index)
{
    struct db_owner owner;
    if (!db_owner_take_once(&owner, qp))
        return db_push_memory(qp, owner.here.ring, false, DB_RING_GET, raddr, rkey, laddr, lkey,
                              bytes, 0, index);
    if (!db_owner_claim_once(&owner, 1, index))
        return owner.status;
    db_build_read(&owner.here, *index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes);
    db_owner_publish_once(&owner, *index, *index + 1);
    return DB_OK;
}

/* Adds to the peer's 8-byte aligned word; its old value is at `laddr` when db_wait() has returned.
 */
PORT_FN int db_fetch_add(struct db_qp *qp, uint64_t raddr, uint32_t rkey, uint64_t laddr,
                         uint32_t lkey, uint64_t addend, uint64_t *index)
{
    struct db_owner owner;
    if (!db_owner_take_once(&owner, qp))
        return db_push_memory(qp, owner.here.ring, false, DB_RING_FETCH_ADD, raddr, rkey, laddr,
                              lkey, 8, addend, index);
    if (!db_owner_claim_once(&owner, 1, index))
        return owner.status;
    db_build_fetch_add(&owner.here, *index, DB_SIGNALED, raddr, rkey, laddr, lkey, addend);
    db_owner_publish_once(&owner, *index, *index + 1);
    return DB_OK;
}

/*
 * Waits until the operation `index` is complete: its source may be reused, its result is there, and
 * a write has reached the peer's memory. Returns DB_OK, DB_ERROR_IO or DB_ERROR_BROKEN when the
 * queue failed, or DB_ERROR_TIMEOUT after the queue's timeout; the wait may be repeated then.
 */
PORT_FN int db_wait(struct db_qp *qp, uint64_t index)
{
    if (db_is_proxied(qp))
        return db_push_wait(qp, index);
    return db_wait_alone(qp, index, PORT_ACQUIRE);
}

/* Waits for everything posted so far on the queue. */
PORT_FN int db_flush(struct db_qp *qp)
{
    if (db_is_proxied(qp))
        return db_push_flush(qp);
    return db_flush_alone(qp);
}

/*
 * Waits until `*word`, of this side's memory, is at least `least`: a count that a peer adds to, or
 * numbers that it puts. What it put before on the same queue is visible then. Returns DB_OK, or
 * DB_ERROR_TIMEOUT after `timeout_ns`.
 */
PORT_FN int db_wait_word(const uint64_t *word, uint64_t least, uint64_t timeout_ns)
{
    uint64_t deadline = port_now_ns() + timeout_ns;
    return port_wait_ge64(word, least, PORT_SYSTEM, deadline) ? DB_ERROR_TIMEOUT : DB_OK;
}

#include "device_shared.h"

/* ---- A set of queues, of both kinds ---- */

/* `shared` is a literal. */
PORT_FN int db_flush_each(struct db_qp *const *qps, uint32_t count, bool shared)
{
    int first = DB_OK;
    for (uint32_t i = 0; i < count; i++) {
        int status = shared ? db_flush_shared(qps[i]) : db_flush(qps[i]);
        first = first ? first : status;
    }
    return first;
}

/* db_flush() of each queue. All are waited for; the first failure is returned. */
PORT_FN int db_flush_all(struct db_qp *const *qps, uint32_t count)
{
    return db_flush_each(qps, count, false);
}

/* The same, by any number of threads at once. */
PORT_FN int db_flush_all_shared(struct db_qp *const *qps, uint32_t count)
{
    return db_flush_each(qps, count, true);
}

#endif
