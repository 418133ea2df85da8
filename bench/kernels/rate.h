/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel that posts as fast as it can: threads, queues, batches and ways of sharing. Included
 * by rate.c, which both compilers take, and by the cases that launch it.
 */
#ifndef BENCH_KERNELS_RATE_H
#define BENCH_KERNELS_RATE_H

#include <doorbell/device.h>
#include <doorbell/impl/port_kernel.h>

enum bench_sharing {
    BENCH_PRIVATE, /* a queue has one thread; a thread may have several queues, in turn */
    BENCH_LOCK,    /* all threads of a block share its queue: a lock for each WQE */
    BENCH_HANDOFF, /* slots handed off by each thread, rung for by whoever is at it */
    BENCH_TICKET,  /* each thread rings in its turn */
    BENCH_WARP,    /* a warp claims, builds and rings together; the block's warps share its queue */
    BENCH_WARP_OWNER, /* the same, of the block's only warp, whose own the queue is */
};

#define BENCH_RATE_SLOTS 64u /* words that a thread writes in turn */

/*
 * Every thread makes `puts` 8-byte inline puts: put i writes i + 1 to its word i modulo
 * BENCH_RATE_SLOTS. The last WQE of a batch is signalled, the others are not.
 *
 * Behind the `blocks` that post there may be blocks that play the device of detached queues, a
 * thread for each queue: they complete what the record tells, reading no WQE, so that slots are
 * reclaimed as fast as a device can at best. Their queues are fresh, their CQs collapsed, their
 * WQEs of one block.
 */
struct bench_rate_args {
    struct db_qp **qps;
    uint64_t *raddr; /* [queues] where the words of the threads start, at each queue's peer */
    uint32_t *rkey;  /* [queues] */
    uint32_t queues;
    uint32_t blocks;   /* that post */
    uint32_t *running; /* [1] threads that still post; the host sets it */
    uint64_t timeout_ns;
    uint32_t sharing; /* enum bench_sharing */
    uint32_t order;   /* enum db_order */
    uint32_t record;  /* enum db_record: with, or exchanged in GPU order */
    uint32_t batch;   /* WQEs for each doorbell; private queues only */
    uint32_t bytes;   /* of an inline payload; 8 unless a case sweeps it */
    uint64_t payload; /* address of that payload, when it is not 8 bytes */
    uint64_t puts;
    uint64_t *start_ns; /* [threads] */
    uint64_t *end_ns;   /* [threads] after the last completion */
    int32_t *status;    /* [threads] */
};
PORT_KERNEL_DECLARE(bench_rate);

#endif
