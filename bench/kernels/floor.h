/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a GPU thread and a CPU thread cannot do faster through host memory: the parts that a proxy's
 * handshake is made of, and a release. One thread, one at a time; beside it, where asked for,
 * threads of other blocks that poll host memory. Included by floor.c and by ../floors.c.
 */
#ifndef BENCH_KERNELS_FLOOR_H
#define BENCH_KERNELS_FLOOR_H

#include <doorbell/impl/port_kernel.h>

#include "span.h"

enum bench_floor {
    BENCH_FLOOR_FLAG,           /* a count to a CPU thread and back */
    BENCH_FLOOR_READ,           /* a word read */
    BENCH_FLOOR_RELEASE_SYSTEM, /* a word stored, a system-scope release, and another */
    BENCH_FLOOR_RELEASE_GPU,    /* the same at GPU scope */
    BENCH_FLOOR_STORE,          /* one store of 16 bytes, which nothing waits for */
};

/* Between the words that different threads use. */
#define BENCH_FLOOR_LINE_WORDS 16 /* of 128 bytes */

/* Block 0 measures. The thread of each other block polls its own line, at back + its number x
 * BENCH_FLOOR_LINE_WORDS, until block 0 has ended. */
struct bench_floor_args {
    uint64_t *there; /* 16-byte aligned, in host memory as is `back` */
    const uint64_t *back;
    uint64_t *ended; /* 0 at the start */
    uint32_t floor;  /* enum bench_floor */
    uint32_t warmup;
    uint32_t count;
    uint64_t first; /* counts start above this */
    uint64_t timeout_ns;
    struct bench_interval *ticks; /* [count] */
    struct bench_span *span;
    int32_t *status; /* [1] */
};
PORT_KERNEL_DECLARE(bench_floor);

#endif
