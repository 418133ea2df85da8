/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thread pays to reach the L2, and who sees its stores in which order: a load, an atomic and
 * a release on words of GPU memory, one at a time; and messages from one SM to another. Included by
 * l2.c and by the host code that launches them.
 */
#ifndef BENCH_KERNELS_L2_H
#define BENCH_KERNELS_L2_H

#include <doorbell/impl/port_kernel.h>

#include "span.h"

#define BENCH_L2_LINE_BYTES 128u

/* ---- One operation at a time ---- */

enum bench_l2_way {
    BENCH_L2_LOAD,
    BENCH_L2_STORE_LOAD, /* a store, and a load of the same word */
    BENCH_L2_ATOMIC,
    BENCH_L2_RELEASE,        /* a store, and a release at GPU scope */
    BENCH_L2_RELEASE_SYSTEM, /* the same at system scope */
};

/* One thread times `count` operations on the first word of each line, which is never UINT32_MAX.
 * Loads and atomics, which add 0, leave it as it is; the other ways store to it. */
struct bench_l2_args {
    uint8_t *lines; /* in GPU memory; line i is at i x `stride`, a multiple of a line */
    uint64_t stride;
    uint32_t line_count;
    uint32_t way;       /* enum bench_l2_way */
    uint64_t *doorbell; /* stored to before each operation, where it is not NULL */
    uint32_t warmup;    /* of each line */
    uint32_t count;
    uint32_t pause_ticks;
    uint32_t *ticks; /* [line_count][count] */
    struct bench_span *span;
};
PORT_KERNEL_DECLARE(bench_l2);

/* ---- Messages ---- */

/* What stands between the store of the message and that of the flag. */
enum bench_l2_between {
    BENCH_L2_NOTHING,
    BENCH_L2_A_LOAD,  /* of the message, from which the flag is made */
    BENCH_L2_ANSWER,  /* the message is exchanged, and the flag made of the answer */
    BENCH_L2_A_FENCE, /* a release at GPU scope */
};

/* Two blocks, of several warps. The first thread of block 0 sends `count` messages, one by one; the
 * first of block 1 waits for each flag, then reads the message. The other warps of block 0 store to
 * the message's line all the while, so that a store to it takes long. */
struct bench_l2_messages_args {
    uint32_t *message; /* the first word of a line; 0 at the start, as are the next four */
    uint64_t *flag;    /* each on a line of its own */
    uint64_t *answer;
    uint32_t *ended;
    uint64_t *stale;  /* messages that were older than their flags */
    uint32_t between; /* enum bench_l2_between */
    uint32_t count;
    uint64_t timeout_ns; /* of one message */
    int32_t *status;     /* [2] of the blocks */
};
PORT_KERNEL_DECLARE(bench_l2_messages);

#endif
