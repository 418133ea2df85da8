/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs share_*.c start from: connected queues whose strict mode is on, and the ways in
 * which device threads may share one, behind one call. The tables of cases C06 to C08 are over
 * these ways. A header for kernels as well: it is compiled with the backend of the program that
 * includes it.
 */
#ifndef DOORBELL_TESTS_SHARE_RIG_H
#define DOORBELL_TESTS_SHARE_RIG_H

#include <doorbell/gpu.h>

#include "queue_ends.h"

#if defined(PORT_TSAN)
#define SHARE_SLOWER 16 /* how much fewer operations a test makes under a sanitizer */
#elif defined(__SANITIZE_ADDRESS__)
#define SHARE_SLOWER 4
#else
#define SHARE_SLOWER 1
#endif

/* Case C08's watchdog: how long a kernel may go on without a claim or a completion. A sanitizer's
 * build gets more, as it gets from CTest. */
#define SHARE_WATCHDOG_NS (SHARE_SLOWER > 1 ? 20000000000ull : 2000000000ull)

enum share_way {
    SHARE_PRIVATE,   /* one owner */
    SHARE_LOCKED,    /* each thread by itself, as the next two */
    SHARE_HANDOFF,   /* */
    SHARE_TICKET,    /* */
    SHARE_WARP,      /* neighbouring lanes together; all of the warp where the ring has room */
    SHARE_WARP_PART, /* every third lane together, so three parts of a warp; more for small rings */
    SHARE_BLOCK,     /* a block together, in rounds where the ring is smaller */
    SHARE_WAYS,
};

const char *share_way_name(enum share_way way);

#define SHARE_LINE 64

/* One queue as a kernel uses it. Thread `id` of the grid owns line `id` of each array. */
struct share_end {
    struct db_qp *qp;
    uint32_t lkey, rkey;
    uint8_t *source; /* registered here */
    uint8_t *got;    /* the same */
    uint8_t *target; /* at the peer, which is in this process */
    uint64_t *count; /* the same: the signal word */
};

/* The first thing that went wrong in a kernel, and how many did. */
struct share_failure {
    uint32_t count;
    const char *what;
    uint32_t thread;
    uint64_t step;
    int64_t value;
};

/* `queues` connected pairs of queues, with lines for `threads`. */
struct share_set {
    struct db_device *device;
    struct queue_end *a, *b; /* [queues] */
    struct share_end *ends;  /* [queues] */
    uint32_t queues;
    uint64_t watchdog_ns; /* SHARE_WATCHDOG_NS; more where a kernel must wait for a deadline */
};

void share_set_create(struct share_set *set, const struct db_queue_attr *attr, uint32_t queues,
                      uint32_t threads);
void share_set_destroy(struct share_set *set);

/* Empties and reconnects all queues, whose next user may share them in another way. */
void share_set_reset(struct share_set *set);

/* Strict mode with poison, and a random delay of each fetch where it is not 0. */
void share_strict(uint32_t fetch_delay_ns, uint64_t seed);

/* Runs a kernel over the set's queues on `workers` CPU threads; ends the program, with the state of
 * the queues, when the watchdog finds that it hangs, or when it reported a failure. */
void share_launch(const struct share_set *set, uint32_t workers, const struct port_kernel *kernel,
                  struct db_gpu_shape shape, const void *args, const struct share_failure *failure);

/* Send WQEs that the device has executed. */
uint64_t share_wqes(void);

/* How many groups that post together a grid has, when each thread of it posts. */
uint64_t share_groups(enum share_way way, struct db_gpu_shape shape, uint32_t depth);

/* ---- For kernels ---- */

PORT_FN uint32_t share_thread(void)
{
    return port_block() * port_threads() + port_thread();
}

PORT_FN void share_fail(struct share_failure *failure, const char *what, uint64_t step,
                        int64_t value)
{
    if (port_add32(&failure->count, 1) != 0)
        return;
    failure->what = what;
    failure->thread = share_thread();
    failure->step = step;
    failure->value = value;
}

/* A pattern of this thread and step alone, for a line. */
PORT_FN uint64_t share_pattern(uint32_t thread, uint64_t step, uint32_t word)
{
    return ((uint64_t)thread << 40 | step << 8 | word) * 0x9e3779b97f4a7c15ull;
}

PORT_FN bool share_line_is(const uint8_t *line, uint32_t thread, uint64_t step)
{
    for (uint32_t word = 0; word < SHARE_LINE / 8; word++)
        if (port_ld_plain64(line + 8 * (size_t)word) != share_pattern(thread, step, word))
            return false;
    return true;
}

/* The lanes that the calling one posts with. */
PORT_FN uint32_t share_mask(enum share_way way, uint32_t depth)
{
    uint32_t lane = port_lane();
    uint32_t lanes = port_threads() - (port_thread() - lane); /* that this warp has */
    lanes = lanes < PORT_WARP_THREADS ? lanes : PORT_WARP_THREADS;
    uint32_t size = depth < PORT_WARP_THREADS ? depth : PORT_WARP_THREADS;
    uint32_t parts = (lanes + size - 1) / size;
    uint32_t mask = 0;
    if (way == SHARE_WARP_PART && parts < 3)
        parts = 3;
    for (uint32_t other = 0; other < lanes; other++)
        if (way == SHARE_WARP_PART ? other % parts == lane % parts : other / size == lane / size)
            mask |= 1u << other;
    return mask;
}

/* One RDMA operation of one block. */
struct share_op {
    enum m5_opcode opcode;
    uint64_t raddr;
    uint64_t laddr;
    uint64_t addend;
    uint32_t rkey, lkey;
};

PORT_FN void share_build(struct db_qp *qp, uint64_t index, const struct share_op *op)
{
    if (op->opcode == M5_OP_WRITE)
        db_build_write(qp, index, DB_SIGNALED, op->raddr, op->rkey, op->laddr, op->lkey,
                       SHARE_LINE);
    else if (op->opcode == M5_OP_READ)
        db_build_read(qp, index, DB_SIGNALED, op->raddr, op->rkey, op->laddr, op->lkey, SHARE_LINE);
    else
        db_build_fetch_add(qp, index, DB_SIGNALED, op->raddr, op->rkey, op->laddr, op->lkey,
                           op->addend);
}

/* How the queue's record is written. */
PORT_FN enum db_record share_record(const struct db_qp *qp)
{
    return (enum db_record)qp->with_record;
}

/* What a block's threads tell each other in its shared memory. */
struct share_block {
    uint64_t first;
    int64_t status;
};

/* One block posts, `depth` threads of it at a time: the recipe for blocks, built from device.h. */
PORT_FN int share_post_block(struct db_qp *qp, const struct share_op *op, enum db_order order,
                             uint64_t *index)
{
    struct share_block *said = (struct share_block *)port_shared();
    uint32_t thread = port_thread(), threads = port_threads();
    for (uint32_t base = 0; base < threads; base += qp->depth) {
        uint32_t n = threads - base < qp->depth ? threads - base : qp->depth;
        if (thread == 0)
            said->status = db_claim_shared(qp, n, &said->first);
        port_syncthreads();
        uint64_t first = said->first;
        if (said->status == DB_OK && thread - base < n) {
            *index = first + (thread - base);
            share_build(qp, *index, op);
        }
        /* Every thread's WQE is visible to the first one behind it. */
        port_syncthreads();
        if (thread == 0 && said->status == DB_OK)
            said->status =
                db_publish_ticket(qp, qp, first, first + n - 1, first + n, order, share_record(qp));
        port_syncthreads();
        int status = (int)said->status;
        port_syncthreads();
        if (status)
            return status;
    }
    return DB_OK;
}

/* One thread posts a WQE of `blocks` blocks that `build` has the arguments for: the claim. */
PORT_FN int share_claim(struct db_qp *qp, enum share_way way, uint32_t blocks, uint64_t *index)
{
    if (way == SHARE_PRIVATE)
        return db_claim(qp, blocks, index);
    if (way == SHARE_LOCKED)
        return db_claim_locked(qp, blocks, index);
    return db_claim_shared(qp, blocks, index);
}

/* The publication that goes with share_claim(), of WQEs in a row whose last one starts at `last`;
 * by hand-off each is published by itself. */
PORT_FN int share_publish_row(struct db_qp *qp, enum share_way way, uint64_t first, uint64_t last,
                              uint64_t end, enum db_order order)
{
    if (way == SHARE_PRIVATE)
        db_publish(qp, last, end, order, share_record(qp));
    else if (way == SHARE_LOCKED)
        db_publish_locked(qp, qp, last, end, order, share_record(qp));
    else
        return db_publish_ticket(qp, qp, first, last, end, order, share_record(qp));
    return DB_OK;
}

/* The same of one WQE. */
PORT_FN int share_publish(struct db_qp *qp, enum share_way way, uint32_t blocks, uint64_t index,
                          enum db_order order)
{
    if (way != SHARE_HANDOFF)
        return share_publish_row(qp, way, index, index, index + blocks, order);
    db_publish_handoff(qp, qp, index, blocks, order, share_record(qp));
    return DB_OK;
}

PORT_FN int share_post_warp(struct db_qp *qp, uint32_t mask, const struct share_op *op,
                            enum db_order order, uint64_t *index)
{
    uint64_t first;
    int status = db_claim_warp(qp, mask, &first, index);
    if (status)
        return status;
    share_build(qp, *index, op);
    return db_publish_warp(qp, qp, mask, first, order, share_record(qp));
}

/* Posts one operation of each thread. All threads of a group must call; `*index` is the calling
 * thread's own. */
PORT_FN int share_post(struct db_qp *qp, enum share_way way, const struct share_op *op,
                       enum db_order order, uint64_t *index)
{
    if (way == SHARE_WARP || way == SHARE_WARP_PART)
        return share_post_warp(qp, share_mask(way, qp->depth), op, order, index);
    if (way == SHARE_BLOCK)
        return share_post_block(qp, op, order, index);
    int status = share_claim(qp, way, 1, index);
    if (status)
        return status;
    share_build(qp, *index, op);
    return share_publish(qp, way, 1, *index, order);
}

/* Does the calling thread give its group's signal? */
PORT_FN bool share_is_leader(enum share_way way, uint32_t depth)
{
    if (way == SHARE_WARP || way == SHARE_WARP_PART)
        return port_lane() == port_first_lane(share_mask(way, depth));
    return way != SHARE_BLOCK || port_thread() == 0;
}

/* The leader posts one operation for its group, in the group's way as far as there is one for a
 * single thread. */
PORT_FN int share_post_alone(struct db_qp *qp, enum share_way way, const struct share_op *op,
                             enum db_order order, uint64_t *index)
{
    if (way == SHARE_WARP || way == SHARE_WARP_PART)
        return share_post_warp(qp, 1u << port_lane(), op, order, index);
    return share_post(qp, way == SHARE_BLOCK ? SHARE_TICKET : way, op, order, index);
}

PORT_FN int share_wait(struct db_qp *qp, enum share_way way, uint64_t index)
{
    return way == SHARE_PRIVATE ? db_wait(qp, index) : db_wait_shared(qp, index);
}

#endif
