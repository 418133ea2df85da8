/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels that time single operations: one put at a time, and a round trip between two queues.
 * Included by put.c, which both compilers take, and by the cases that launch them.
 */
#ifndef BENCH_KERNELS_PUT_H
#define BENCH_KERNELS_PUT_H

#include <doorbell/device.h>
#include <doorbell/impl/port_kernel.h>

#include "span.h"

/* Where the payloads of successive puts lie: slot i modulo `slots`, `stride` bytes apart. */
struct bench_payloads {
    const uint8_t *source; /* what inline puts carry, in GPU memory; the same as at laddr */
    uint64_t laddr;
    uint64_t raddr;
    uint32_t lkey;
    uint32_t rkey;
    uint32_t bytes;
    uint32_t stride;
    uint32_t slots;
};

/* One thread, which owns the queue: `warmup` puts and then `count` timed ones, never more than one
 * outstanding. */
struct bench_put_args {
    struct db_qp *qp;
    struct bench_payloads payloads;
    uint32_t inlined; /* the payload travels in the WQE */
    uint32_t order;   /* enum db_order */
    uint32_t record;  /* enum db_record: with, exchanged in GPU order, or safe without */
    uint32_t warmup;
    uint32_t count;
    struct bench_interval *issue; /* [count] ticks from the call to behind the doorbell store */
    uint64_t *complete;           /* [count] ticks from the call to the completion */
    int32_t *status;              /* [1] enum db_status of the first failure */
    struct bench_span *span;
};
PORT_KERNEL_DECLARE(bench_put);

/* Two blocks of one thread, each with its own queue: block 0 puts a count into block 1's word,
 * which puts it back. */
struct bench_round_trip_args {
    struct db_qp *qp[2];
    uint64_t *word[2]; /* that block i polls */
    uint64_t raddr[2]; /* of the other block's word */
    uint32_t rkey[2];
    uint32_t order; /* enum db_order: GPU or system scope */
    uint64_t first; /* counts start above this: what an earlier launch left */
    uint32_t warmup;
    uint32_t count;
    uint64_t timeout_ns;          /* of one round trip */
    struct bench_interval *ticks; /* [count] */
    int32_t *status;              /* [2] of each block */
    struct bench_span *span;
};
PORT_KERNEL_DECLARE(bench_round_trip);

#endif
