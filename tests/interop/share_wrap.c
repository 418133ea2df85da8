/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim (case C02): in every way of sharing, more than 131,072 WQEs go through a ring of 64 blocks
 * from shortly before index 65,535 on; each arrives, the counts of both sides match, and strict
 * mode finds neither a wrong index nor a bit beyond its 16.
 */
#include "share_rig.h"

#include <string.h>

#define DEPTH      64
#define START      65500 /* posted as NOPs by one owner */
#define WQES       (SHARE_SLOWER > 1 ? 8192u : 131072u + 4096u)
#define THREADS    32
#define BURST      8 /* puts of a thread between two waits */
#define SKIP_BATCH 50

static_assert(START % SKIP_BATCH == 0 && BURST * 8 == SHARE_LINE, "whole batches, whole lines");

struct wrap_args {
    enum share_way way;
    uint32_t bursts; /* of each thread */
    struct share_end *end;
    struct share_failure *failure;
};

/* Puts a word at a time, into a line of this thread's own. */
PORT_FN int wrap_put(const struct share_end *end, enum share_way way, uint64_t raddr,
                     uint64_t value, uint64_t *index)
{
    struct db_qp *qp = end->qp;
    if (way == SHARE_WARP) {
        uint64_t first;
        uint32_t mask = share_mask(way, qp->depth);
        int status = db_claim_warp(qp, mask, &first, index);
        if (status)
            return status;
        db_build_write_value(qp, *index, DB_SIGNALED, raddr, end->rkey, value);
        return db_publish_warp(qp, qp, mask, first, DB_ORDER_SYSTEM, DB_WITH_RECORD);
    }
    int status = share_claim(qp, way, 1, index);
    if (status)
        return status;
    db_build_write_value(qp, *index, DB_SIGNALED, raddr, end->rkey, value);
    return share_publish(qp, way, 1, *index, DB_ORDER_SYSTEM);
}

PORT_KERNEL(wrap, struct wrap_args, args)
{
    const struct share_end *end = args->end;
    uint32_t id = share_thread();
    const uint8_t *target = end->target + (size_t)id * SHARE_LINE;
    uint64_t raddr = (uint64_t)(uintptr_t)target, index = 0;

    for (uint64_t burst = 0; burst < args->bursts; burst++) {
        int status = DB_OK;
        for (uint32_t word = 0; word < BURST && !status; word++)
            status = wrap_put(end, args->way, raddr + 8 * (uint64_t)word,
                              share_pattern(id, burst, word), &index);
        if (!status)
            status = share_wait(end->qp, args->way, index);
        if (status) {
            share_fail(args->failure, "put", burst, status);
            return;
        }
        if (!share_line_is(target, id, burst))
            share_fail(args->failure, "stale bytes at the peer", burst, (int64_t)index);
    }
}

static void skip(struct db_qp *qp)
{
    uint64_t index;

    for (uint32_t posted = 0; posted < START; posted += SKIP_BATCH) {
        CHECK(db_claim(qp, SKIP_BATCH, &index) == DB_OK, "claim at %u", posted);
        for (uint32_t i = 0; i < SKIP_BATCH; i++)
            db_build_nop(qp, index + i, i == SKIP_BATCH - 1 ? DB_SIGNALED : DB_UNSIGNALED);
        db_publish_safe(qp, index + SKIP_BATCH - 1, index + SKIP_BATCH);
    }
    CHECK(db_flush(qp) == DB_OK, "the first %d are not complete", START);
}

static void run(struct share_set *set, enum share_way way)
{
    uint32_t ctas = way == SHARE_PRIVATE ? 1 : 4, threads = way == SHARE_PRIVATE ? 1 : THREADS / 4;
    struct share_failure failure = {0};
    const struct wrap_args args = {.way = way,
                                   .bursts = WQES / BURST / (ctas * threads),
                                   .end = set->ends,
                                   .failure = &failure};
    struct db_qp *qp = set->ends->qp;
    struct db_queue_info info;

    share_set_reset(set);
    uint64_t before = share_wqes();
    skip(qp);
    share_launch(set, 4, &wrap, (struct db_gpu_shape){.ctas = ctas, .threads = threads}, &args,
                 &failure);
    CHECK(qp->post.claimed == START + WQES, "%s: %llu blocks claimed", share_way_name(way),
          (unsigned long long)qp->post.claimed);
    CHECK(share_wqes() - before == START + WQES, "%s: %llu WQEs executed", share_way_name(way),
          (unsigned long long)(share_wqes() - before));
    QUEUE_OK(db_queue_query(set->a->queue, &info));
    CHECK(info.executed == ((START + WQES) & M5_INDEX_MASK), "%s: the device counts %u",
          share_way_name(way), info.executed);
}

int main(void)
{
    for (int collapsed = 0; collapsed < 2; collapsed++) {
        const struct db_queue_attr attr = {.depth = DEPTH, .collapsed = collapsed};
        struct share_set set;
        share_strict(0, 1);
        share_set_create(&set, &attr, 1, THREADS);
        for (int way = SHARE_PRIVATE; way <= SHARE_WARP; way++) {
            uint64_t start = port_now_ns();
            if (collapsed && way != SHARE_HANDOFF && way != SHARE_WARP)
                continue; /* how a CQ is polled is nothing to them */
            run(&set, (enum share_way)way);
            printf("%s, %s: %.2f s\n", share_way_name((enum share_way)way),
                   collapsed ? "collapsed" : "ring", (double)(port_now_ns() - start) / 1e9);
        }
        share_set_destroy(&set);
        queue_expect_no_diagnostics();
    }
    return 0;
}
