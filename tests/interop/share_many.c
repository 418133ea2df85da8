/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: 4,096 device threads put over 16 queues at once, in every way of sharing; each finds its
 * own bytes at the peer after its own wait, and every call is counted once.
 */
#include "share_rig.h"

#include <string.h>

#define QUEUES 16
#define DEPTH  256

struct many_args {
    enum share_way way;
    uint32_t puts; /* of each thread */
    struct share_end *ends;
    struct share_failure *failure;
};

/* A block stays on one queue, and so does each warp of it. */
PORT_KERNEL(many, struct many_args, args)
{
    const struct share_end *end = &args->ends[port_block() % QUEUES];
    uint32_t id = share_thread();
    uint8_t *source = end->source + (size_t)id * SHARE_LINE;
    const uint8_t *target = end->target + (size_t)id * SHARE_LINE;
    struct share_op op = {.opcode = M5_OP_WRITE,
                          .raddr = (uint64_t)(uintptr_t)target,
                          .rkey = end->rkey,
                          .laddr = (uint64_t)(uintptr_t)source,
                          .lkey = end->lkey};
    uint64_t index = 0;

    for (uint64_t put = 0; put < args->puts; put++) {
        for (uint32_t word = 0; word < SHARE_LINE / 8; word++) {
            uint64_t value = share_pattern(id, put, word);
            memcpy(source + 8 * (size_t)word, &value, 8);
        }
        int status = share_post(end->qp, args->way, &op, DB_ORDER_SYSTEM, &index);
        if (!status)
            status = share_wait(end->qp, args->way, index);
        if (status) {
            share_fail(args->failure, "put", put, status);
            return;
        }
        if (!share_line_is(target, id, put))
            share_fail(args->failure, "stale bytes at the peer", put, 0);
    }
}

int main(void)
{
    const struct db_gpu_shape shape = {
        .ctas = 64, .threads = 64, .shared_bytes = sizeof(struct share_block)};
    const uint32_t threads = shape.ctas * shape.threads;

    for (int collapsed = 0; collapsed < 2; collapsed++) {
        const struct db_queue_attr attr = {.depth = DEPTH, .collapsed = collapsed};
        struct share_set set;
        share_strict(0, 1);
        share_set_create(&set, &attr, QUEUES, threads);
        for (int way = SHARE_LOCKED; way < SHARE_WAYS; way++) {
            if (SHARE_SLOWER > 1 && way % 2 != collapsed)
                continue;
            struct share_failure failure = {0};
            const struct many_args args = {.way = (enum share_way)way,
                                           .puts = SHARE_SLOWER > 1 ? 1 : 3,
                                           .ends = set.ends,
                                           .failure = &failure};
            uint64_t before = share_wqes();
            share_set_reset(&set);
            share_launch(&set, way % 2 ? 2 : 4, &many, shape, &args, &failure);
            uint64_t made = share_wqes() - before;
            CHECK(made == (uint64_t)threads * args.puts, "%s: %llu WQEs", share_way_name(args.way),
                  (unsigned long long)made);
        }
        share_set_destroy(&set);
        queue_expect_no_diagnostics();
    }
    return 0;
}
