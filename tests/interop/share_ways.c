/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim (cases C06 and C08): whatever the way in which 1 to 256 device threads share queues of any
 * depth, with a completion ring or a collapsed CQ, with a doorbell record or without, each call
 * makes the documented number of WQEs and one signal, nothing hangs, and what a thread reads after
 * its own wait is what it wrote. The device poisons each executed block and delays each fetch at
 * random, and strict mode has nothing to report.
 */
#include "share_rig.h"

#include <string.h>

struct call_args {
    enum share_way way;
    uint32_t queues;
    uint32_t calls; /* of each group */
    struct share_end *ends;
    struct share_failure *failure;
};

/* The queue of the calling thread: groups stay together. */
PORT_FN uint32_t queue_of(const struct call_args *args)
{
    uint32_t chosen = share_thread();
    if (args->way == SHARE_BLOCK)
        chosen = port_block();
    else if (args->way == SHARE_WARP || args->way == SHARE_WARP_PART)
        chosen = port_block() + port_thread() / PORT_WARP_THREADS;
    return chosen % args->queues;
}

PORT_FN bool complete(const struct call_args *args, struct db_qp *qp, int posted, uint64_t index,
                      const char *what, uint64_t call)
{
    int status = posted ? posted : share_wait(qp, args->way, index);
    if (status)
        share_fail(args->failure, what, call, status);
    return status == DB_OK;
}

/* Each call puts a line of every thread, reads it back, and adds one to the signal word. */
PORT_KERNEL(calls, struct call_args, args)
{
    const struct share_end *end = &args->ends[queue_of(args)];
    struct db_qp *qp = end->qp;
    uint32_t id = share_thread();
    uint8_t *source = end->source + (size_t)id * SHARE_LINE;
    uint8_t *got = end->got + (size_t)id * SHARE_LINE;
    const uint8_t *target = end->target + (size_t)id * SHARE_LINE;
    struct share_op op = {.raddr = (uint64_t)(uintptr_t)target,
                          .rkey = end->rkey,
                          .laddr = (uint64_t)(uintptr_t)source,
                          .lkey = end->lkey};
    struct share_op signal = {.opcode = M5_OP_ATOMIC_FA,
                              .raddr = (uint64_t)(uintptr_t)end->count,
                              .rkey = end->rkey,
                              .laddr = (uint64_t)(uintptr_t)got,
                              .lkey = end->lkey,
                              .addend = 1};
    uint64_t index = 0, seen = 0;

    for (uint64_t call = 0; call < args->calls; call++) {
        for (uint32_t word = 0; word < SHARE_LINE / 8; word++) {
            uint64_t value = share_pattern(id, call, word);
            memcpy(source + 8 * (size_t)word, &value, 8);
        }
        op.opcode = M5_OP_WRITE;
        op.laddr = (uint64_t)(uintptr_t)source;
        int status = share_post(qp, args->way, &op, DB_ORDER_SYSTEM, &index);
        if (!complete(args, qp, status, index, "put", call))
            return;
        if (!share_line_is(target, id, call))
            share_fail(args->failure, "stale bytes at the peer", call, 0);

        op.opcode = M5_OP_READ;
        op.laddr = (uint64_t)(uintptr_t)got;
        status = share_post(qp, args->way, &op, DB_ORDER_SYSTEM, &index);
        if (!complete(args, qp, status, index, "get", call))
            return;
        if (!share_line_is(got, id, call))
            share_fail(args->failure, "stale bytes read", call, 0);

        if (!share_is_leader(args->way, qp->depth))
            continue;
        status = share_post_alone(qp, args->way, &signal, DB_ORDER_SYSTEM, &index);
        if (!complete(args, qp, status, index, "signal", call))
            return;
        /* Nobody else can have seen this value; so a stale one is one that was seen. */
        uint64_t old = port_ld_plain64(got);
        if (call > 0 && old <= seen)
            share_fail(args->failure, "stale value of the signal word", call, (int64_t)old);
        seen = old;
    }
}

static void run(struct share_set *set, enum share_way way, uint32_t workers,
                struct db_gpu_shape shape, uint32_t queues)
{
    struct share_failure failure = {0};
    uint32_t threads = shape.ctas * shape.threads, depth = set->ends[0].qp->depth;
    struct call_args args = {.way = way,
                             .queues = queues,
                             .calls = 1 + 32 / SHARE_SLOWER / threads,
                             .ends = set->ends,
                             .failure = &failure};
    uint64_t groups = share_groups(way, shape, depth), signals = 0, before = share_wqes();

    shape.shared_bytes = sizeof(struct share_block);
    share_set_reset(set);
    share_launch(set, workers, &calls, shape, &args, &failure);
    for (uint32_t i = 0; i < queues; i++)
        signals += *set->ends[i].count;
    CHECK(signals == groups * args.calls, "%s: %u x %u threads, %u queues: %llu signals, not %llu",
          share_way_name(way), shape.ctas, shape.threads, queues, (unsigned long long)signals,
          (unsigned long long)(groups * args.calls));
    uint64_t made = share_wqes() - before, wanted = (2 * threads + groups) * args.calls;
    CHECK(made == wanted, "%s: %u x %u threads, %u queues: %llu WQEs, not %llu",
          share_way_name(way), shape.ctas, shape.threads, queues, (unsigned long long)made,
          (unsigned long long)wanted);
}

#define MAX_THREADS 256
#define MAX_QUEUES  3

/* One block, played by one CPU thread; and several on four, which interleave as they like. */
static const struct shape {
    uint32_t workers, ctas, threads;
} shapes[] = {
    {1, 1, 1},  {1, 1, 2},  {4, 2, 1},  {1, 1, 31}, {4, 31, 1}, {1, 1, 32},  {4, 4, 8},
    {1, 1, 33}, {4, 3, 11}, {1, 1, 64}, {4, 4, 16}, {4, 2, 32}, {1, 1, 256}, {4, 8, 32},
};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* On the smallest rings each call waits for the one before it, so they get every other shape, and
 * so do all under a sanitizer: one half with a ring of CQEs, the other with a collapsed CQ. */
static bool left_out(size_t shape, uint32_t depth, bool collapsed)
{
    return (depth < 64 || SHARE_SLOWER > 1) && shape % 2 != collapsed;
}

static void shared(const struct db_queue_attr *attr, uint32_t fetch_delay_ns, uint64_t seed)
{
    struct share_set set;

    share_strict(fetch_delay_ns, seed);
    share_set_create(&set, attr, MAX_QUEUES, MAX_THREADS);
    for (size_t i = 0; i < SHAPES; i++) {
        const struct db_gpu_shape shape = {.ctas = shapes[i].ctas, .threads = shapes[i].threads};
        if (left_out(i, attr->depth, attr->collapsed))
            continue;
        for (int way = SHARE_LOCKED; way < SHARE_WAYS; way++) {
            run(&set, (enum share_way)way, shapes[i].workers, shape, 1);
            if (shape.ctas > 1 || shape.threads > PORT_WARP_THREADS)
                run(&set, (enum share_way)way, shapes[i].workers, shape, MAX_QUEUES);
        }
    }
    share_set_destroy(&set);
    queue_expect_no_diagnostics();
}

/* As many queues as threads. */
static void private(const struct db_queue_attr *attr, uint64_t seed)
{
    static const uint32_t counts[] = {1, 2, 64};

    share_strict(1000, seed);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct share_set set;
        uint32_t n = counts[i], ctas = n < 4 ? n : 4;
        share_set_create(&set, attr, n, n);
        run(&set, SHARE_PRIVATE, 1, (struct db_gpu_shape){.ctas = 1, .threads = n}, n);
        run(&set, SHARE_PRIVATE, 4, (struct db_gpu_shape){.ctas = ctas, .threads = n / ctas}, n);
        share_set_destroy(&set);
    }
    queue_expect_no_diagnostics();
}

int main(int argc, char **argv)
{
    static const struct db_queue_attr attrs[] = {
        {.depth = 2},
        {.depth = 4},
        {.depth = 64},
        {.depth = 2, .collapsed = true},
        {.depth = 4, .collapsed = true},
        {.depth = 64, .collapsed = true},
        {.depth = 4, .without_record = true},
        {.depth = 64, .collapsed = true, .without_record = true},
    };
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : port_now_ns() | 1;

    printf("seed %llu\n", (unsigned long long)seed);
    for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
        const struct db_queue_attr *attr = &attrs[i];
        uint64_t start = port_now_ns();
        private(attr, seed);
        shared(attr, attr->collapsed ? 3000 : 1000, seed);
        printf("depth %u, %s, %s record: %.1f s\n", attr->depth,
               attr->collapsed ? "collapsed" : "ring", attr->without_record ? "no" : "a",
               (double)(port_now_ns() - start) / 1e9);
        fflush(stdout);
    }
    return 0;
}
