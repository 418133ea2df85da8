/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim (case C07): every claim function gives out all of the ring but one block, and all of it,
 * lap for lap; one block more is refused at once with DB_ERROR_INVALID, takes nothing, and leaves
 * the queue as it was. By one thread, by several at once, and by lanes of a warp.
 */
#include "share_rig.h"

#define LAPS (24 / SHARE_SLOWER)

struct reserve_args {
    enum share_way way;
    struct share_end *end;
    struct share_failure *failure;
    uint64_t *blocks; /* that were claimed in all */
};

/* NOPs in all blocks, the last one signalled. */
PORT_FN int reserve_publish(struct db_qp *qp, enum share_way way, uint64_t first, uint32_t blocks)
{
    uint64_t end = first + blocks;
    for (uint64_t index = first; index < end; index++)
        db_build_nop(qp, index, index == end - 1 ? DB_SIGNALED : DB_UNSIGNALED);
    if (way != SHARE_HANDOFF)
        return share_publish_row(qp, way, first, end - 1, end, DB_ORDER_SYSTEM);
    for (uint64_t index = first; index < end; index++)
        db_publish_handoff(qp, qp, index, 1, DB_ORDER_SYSTEM, DB_WITH_RECORD);
    return DB_OK;
}

PORT_KERNEL(reserve, struct reserve_args, args)
{
    struct db_qp *qp = args->end->qp;
    uint64_t first = 0, claimed = 0;

    for (uint64_t lap = 0; lap < LAPS; lap++) {
        for (uint32_t more = 0; more < 3; more++) {
            uint32_t blocks = qp->depth - 1 + more;
            if (blocks == 0)
                continue;
            uint64_t start = port_now_ns();
            int status = share_claim(qp, args->way, blocks, &first);
            if (more == 2) {
                if (status != DB_ERROR_INVALID)
                    share_fail(args->failure, "claim of depth + 1", lap, status);
                if (port_now_ns() - start > qp->timeout_ns)
                    share_fail(args->failure, "refusal was not at once", lap, 0);
                continue;
            }
            if (!status)
                status = reserve_publish(qp, args->way, first, blocks);
            claimed += blocks;
            if (!status && lap % 3 == 0)
                status = share_wait(qp, args->way, first + blocks - 1);
            if (status) {
                share_fail(args->failure, "claim of depth or less", lap, status);
                return;
            }
        }
    }
    int status = args->way == SHARE_PRIVATE ? db_flush(qp) : db_flush_shared(qp);
    if (status)
        share_fail(args->failure, "flush", LAPS, status);
    port_add64(args->blocks, claimed);
}

static void each_claim(uint32_t depth, bool collapsed)
{
    const struct db_queue_attr attr = {.depth = depth, .collapsed = collapsed};
    struct share_set set;

    share_set_create(&set, &attr, 1, 1);
    for (int way = SHARE_PRIVATE; way <= SHARE_TICKET; way++) {
        for (uint32_t threads = 1; threads <= (way == SHARE_PRIVATE ? 1 : 8); threads += 7) {
            struct share_failure failure = {0};
            uint64_t blocks = 0, claimed;
            const struct reserve_args args = {.way = (enum share_way)way,
                                              .end = set.ends,
                                              .failure = &failure,
                                              .blocks = &blocks};
            uint64_t before = share_wqes();
            share_set_reset(&set);
            share_launch(&set, 4, &reserve, (struct db_gpu_shape){.ctas = threads, .threads = 1},
                         &args, &failure);
            claimed = port_ld64(&set.ends->qp->post.claimed, PORT_RELAXED, PORT_GPU);
            CHECK(claimed == blocks && share_wqes() - before == blocks,
                  "%s, depth %u: %llu blocks claimed, %llu asked for, %llu executed",
                  share_way_name(args.way), depth, (unsigned long long)claimed,
                  (unsigned long long)blocks, (unsigned long long)(share_wqes() - before));
        }
    }
    share_set_destroy(&set);
}

/* ---- Lanes, of which each takes one block ---- */

struct lanes_args {
    uint32_t lanes;
    int want;
    struct share_end *end;
    struct share_failure *failure;
};

PORT_KERNEL(lanes_reserve, struct lanes_args, args)
{
    struct db_qp *qp = args->end->qp;
    uint32_t mask = args->lanes == 32 ? UINT32_MAX : (1u << args->lanes) - 1;
    /* Other lanes of the warp take no part. The names are the highest, so that the leader is not
     * lane 0. */
    mask <<= 32 - args->lanes;
    if (!(mask >> port_lane() & 1))
        return;
    for (uint64_t lap = 0; lap < LAPS; lap++) {
        uint64_t first = 0, index = 0;
        int status = db_claim_warp(qp, mask, &first, &index);
        if (status != args->want)
            share_fail(args->failure, "claim", lap, status);
        if (status)
            continue;
        if (index - first != port_lane() - port_first_lane(mask))
            share_fail(args->failure, "block of this lane", lap, (int64_t)(index - first));
        db_build_nop(qp, index, DB_SIGNALED);
        status = db_publish_warp(qp, qp, mask, first, DB_ORDER_SYSTEM, DB_WITH_RECORD);
        if (!status)
            status = db_wait_shared(qp, index);
        if (status)
            share_fail(args->failure, "publish", lap, status);
    }
}

static void lanes_claim(uint32_t depth, uint32_t lanes)
{
    const struct db_queue_attr attr = {.depth = depth};
    struct share_failure failure = {0};
    struct share_set set;

    share_set_create(&set, &attr, 1, 1);
    const struct lanes_args args = {.lanes = lanes,
                                    .want = lanes > depth ? DB_ERROR_INVALID : DB_OK,
                                    .end = set.ends,
                                    .failure = &failure};
    share_launch(&set, 1, &lanes_reserve, (struct db_gpu_shape){.ctas = 1, .threads = 32}, &args,
                 &failure);
    uint64_t claimed = set.ends->qp->post.claimed, wanted = args.want ? 0 : (uint64_t)lanes * LAPS;
    CHECK(claimed == wanted, "%u lanes, depth %u: %llu blocks claimed", lanes, depth,
          (unsigned long long)claimed);
    share_set_destroy(&set);
}

int main(void)
{
    static const uint32_t depths[] = {1, 2, 4, 64, 256};

    share_strict(1000, 1);
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        each_claim(depths[i], false);
        each_claim(depths[i], true);
    }
    for (uint32_t depth = 2; depth <= 32; depth *= 2)
        for (uint32_t lanes = depth - 1; lanes <= depth + 1 && lanes <= 32; lanes++)
            lanes_claim(depth, lanes);
    lanes_claim(8, 32);
    queue_expect_no_diagnostics();
    return 0;
}
