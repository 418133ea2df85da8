/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels of the proxy's experiments: a push timed step by step; a probe's round trips beside a
 * background load; pushes as fast as they go. All but the first use the calls that queues of both
 * kinds take. Included by proxy.c, which both compilers take, and by the cases that launch them.
 */
#ifndef BENCH_KERNELS_PROXY_H
#define BENCH_KERNELS_PROXY_H

#include <doorbell/device.h>
#include <doorbell/impl/port_kernel.h>

#include "span.h"

/* One thread, alone on its ring: `warmup` pushes and then `count` timed ones of an 8-byte put,
 * never more than one outstanding. */
struct bench_enqueue_args {
    struct db_qp *qp;
    uint32_t steps;                       /* set of enum db_ring_step */
    const struct db_ring_progress *asked; /* see bench_enqueue_more */
    uint64_t raddr;
    uint64_t laddr;
    uint32_t rkey;
    uint32_t lkey;
    uint32_t slots; /* put i is of the word i modulo these, on both sides */
    uint32_t warmup;
    uint32_t count;
    struct bench_interval *issue; /* [count] ticks from the call to behind the store */
    uint64_t *complete;           /* [count] ticks from the call to the completion */
    uint64_t *atomics; /* [1] pushes of this launch and those before that reserved with one, as the
                          ring counted them */
    int32_t *status;   /* [1] */
    struct bench_span *span;
};
PORT_KERNEL_DECLARE(bench_enqueue);

/*
 * Two ways more: the baseline that asks `asked` for room, in place of the ring's own progress (by
 * the completions, which are the ring's own, there always is room); and, where that is NULL, a ring
 * of many producers with payloads released. Not in bench_enqueue: with them in it, ptxas puts two
 * instructions more before the store of the tuned push.
 */
PORT_KERNEL_DECLARE(bench_enqueue_more);

/* Block 0 puts a message into block 1's word, which puts it back; the threads of the other blocks
 * put their counts into words of theirs until the probe is through: after `warmup` and `count`
 * round trips, or with fewer once `budget_ns` have passed, of which the warm-up gets half. At least
 * one is timed. */
struct bench_loaded_args {
    struct db_qp **probe;  /* [2] */
    uint32_t probe_shared; /* with a background thread: the shared calls */
    uint64_t raddr;        /* of word 0; each block's and then each background thread's lies 128
                              bytes behind the one before */
    uint32_t rkey;
    uint8_t *words;      /* the same for the kernel; 0 at the start */
    uint64_t delay_ns;   /* that block 1 waits before every other answer that is timed */
    uint64_t timeout_ns; /* of one round trip */
    uint64_t budget_ns;
    uint32_t warmup;
    uint32_t count; /* even, with a delay */

    struct db_qp **load; /* [loads]: background block n uses load[(n - 2) % loads] */
    uint32_t loads;
    uint32_t load_shared;
    uint64_t pace_ns;  /* between two puts of a background thread; 0: none */
    uint64_t first_ns; /* until the first one's first put, and from there to the next one's */

    uint64_t *ticks;    /* [count] */
    uint32_t *made;     /* [1] of them */
    uint64_t *last;     /* [1] the message of the last round trip */
    uint64_t *puts;     /* [background threads] */
    uint64_t *stop;     /* 0 until the probe is through */
    int32_t *status;    /* [2 + background threads] */
    uint64_t *start_ns; /* [1] of all round trips and of the load; 0 until then */
    uint64_t *end_ns;
    struct bench_span *span;
};
PORT_KERNEL_DECLARE(bench_loaded);

/* Every thread makes `puts` puts of `bytes` on its own queue, with `window` outstanding at most:
 * 8-byte ones carry the put's number plus one, others are of memory. */
struct bench_flood_args {
    struct db_qp **qps; /* [threads of the grid] */
    uint64_t raddr; /* of thread 0; each thread's `slots` payloads lie behind the one's before */
    uint64_t laddr;
    uint32_t rkey;
    uint32_t lkey;
    uint32_t bytes;
    uint32_t slots;
    uint32_t by_value; /* 8 bytes that travel in the descriptor or the WQE */
    uint64_t puts;
    uint64_t window;
    uint64_t *start_ns; /* [threads] */
    uint64_t *end_ns;   /* [threads] after the last completion */
    int32_t *status;    /* [threads] */
};
PORT_KERNEL_DECLARE(bench_flood);

/* One put at a time on a queue of either kind: issue and completion, as bench_enqueue. */
struct bench_single_args {
    struct db_qp *qp;
    uint64_t raddr;
    uint64_t laddr;
    uint32_t rkey;
    uint32_t lkey;
    uint32_t bytes;
    uint32_t warmup;
    uint32_t count;
    struct bench_interval *issue;
    uint64_t *complete;
    int32_t *status;
    struct bench_span *span;
};
PORT_KERNEL_DECLARE(bench_single);

#endif
