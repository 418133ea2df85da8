/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernels of the experiment issue: what posting alone costs, on a queue that nobody serves, and
 * the floors below it. Included by issue.c, which both compilers take, and by the host code that
 * launches them.
 */
#ifndef BENCH_KERNELS_ISSUE_H
#define BENCH_KERNELS_ISSUE_H

#include <doorbell/device.h>
#include <doorbell/impl/port_kernel.h>

#include "span.h"

enum bench_issue_way {
    /* floors */
    BENCH_ISSUE_NOTHING, /* the two readings of the clock alone */
    BENCH_ISSUE_STORE,   /* one 8-byte store, and a release at the scope of `order` */
    BENCH_ISSUE_STORES,  /* the stores and releases of a post, of values that are all there */
    /* one put of 8 bytes */
    BENCH_ISSUE_OWNER, /* the thread owns the queue */
    BENCH_ISSUE_TRY,   /* the same by db_owner_try_publish() */
    BENCH_ISSUE_PUT,   /* db_put_value(): the queue's words in memory, its own order and record */
    BENCH_ISSUE_PUT_SHARED, /* db_put_value_shared() */
    BENCH_ISSUE_TICKET,
    BENCH_ISSUE_HANDOFF,
    BENCH_ISSUE_LOCK,
    /* 32 puts with one doorbell */
    BENCH_ISSUE_WARP_OWNER,
    BENCH_ISSUE_WARP,
};

/* By one thread that owns the queue. */
PORT_FN bool bench_issue_is_owner(enum bench_issue_way way)
{
    return way == BENCH_ISSUE_OWNER || way == BENCH_ISSUE_TRY;
}

PORT_FN bool bench_issue_is_warp(enum bench_issue_way way)
{
    return way == BENCH_ISSUE_WARP || way == BENCH_ISSUE_WARP_OWNER;
}

/* One thread, or one warp: `warmup` posts and then `count` timed ones, with a pause before each so
 * that no store of one delays the next. Each sample is from before the call to behind the doorbell
 * store, by the SM's clock, and around that by the timer of all SMs. The queue has room for all;
 * what an owner posted is complete before its next post, so that of two blocks is enough. */
struct bench_issue_args {
    struct db_qp *qp;
    uint64_t raddr;
    uint64_t laddr;
    uint32_t rkey;
    uint32_t lkey;
    uint32_t way;     /* enum bench_issue_way */
    uint32_t order;   /* enum db_order; unordered by the owner and its floor alone */
    uint32_t record;  /* enum db_record; exchanged in GPU order, without by owner and floor alone */
    uint32_t inlined; /* by the owner; the other posts are */
    uint32_t warmup;
    uint32_t count;
    uint32_t pause_ticks;
    uint64_t *words; /* [2] in GPU memory: what BENCH_ISSUE_STORE stores to and _STORES stores */
    struct bench_interval *ticks; /* [count] */
    uint64_t *ns;                 /* [count] */
    struct bench_span *span;
    int32_t *status; /* [1] of the first failure */
};
PORT_KERNEL_DECLARE(bench_issue);

#endif
