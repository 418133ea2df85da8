/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: 1, 2, 255 or 256 WQEs go out with one doorbell, by an owner (with the queue's words in the
 * queue or in registers), under the lock, handed off, in turn, and by a block together; and one by
 * one by an owner that tries: in a ring that they fill and in a deeper one, with a completion ring
 * and a collapsed CQ. Every word arrives, the device counts no more doorbells than were rung, and
 * strict mode has nothing to report.
 */
#include "share_rig.h"

#include <softnic.h>
#include <string.h>

#define MOST    256
#define ROUNDS  (SHARE_SLOWER > 1 ? 8 : 40)
#define THREADS 4 /* that share a queue */

/* More than the ways of share_rig.h: impl/owner.h. */
#define OWNER SHARE_WAYS
#define TRIES (SHARE_WAYS + 1)

static_assert(THREADS * 8 <= SHARE_LINE, "a batch's words have room in as many lines");

struct batch_args {
    uint32_t way;
    uint32_t batch;
    uint32_t rounds;
    struct share_end *end;
    struct share_failure *failure;
};

/* Every block its own word; the last one is signalled. */
PORT_FN void build_all(const struct batch_args *args, const struct db_qp *qp, uint64_t first,
                       uint64_t raddr, uint64_t round)
{
    for (uint32_t i = 0; i < args->batch; i++)
        db_build_write_value(qp, first + i, i == args->batch - 1 ? DB_SIGNALED : DB_UNSIGNALED,
                             raddr + 8 * (uint64_t)i, args->end->rkey,
                             share_pattern(share_thread(), round, i));
}

/* What is marked last is what comes first, so that one thread rings for the batch at once. */
PORT_FN int publish_all(struct db_qp *qp, enum share_way way, uint64_t first, uint32_t batch)
{
    uint64_t end = first + batch;
    if (way != SHARE_HANDOFF)
        return share_publish_row(qp, way, first, end - 1, end, DB_ORDER_SYSTEM);
    for (uint64_t index = end; index-- > first;)
        db_publish_handoff(qp, qp, index, 1, DB_ORDER_SYSTEM, DB_WITH_RECORD);
    return DB_OK;
}

PORT_FN int put_owned(const struct batch_args *args, struct db_owner *owner, uint64_t raddr,
                      uint64_t round)
{
    uint64_t first;
    if (!db_owner_claim(owner, args->batch, &first))
        return owner->status;
    build_all(args, &owner->here, first, raddr, round);
    db_owner_publish(owner, first + args->batch - 1, first + args->batch, DB_ORDER_SYSTEM,
                     DB_WITH_RECORD);
    return db_owner_wait(owner, first + args->batch - 1);
}

/* A doorbell for each. */
PORT_FN int put_trying(const struct batch_args *args, struct db_owner *owner, uint64_t raddr,
                       uint64_t round)
{
    if (!db_owner_wait_room(owner, 1))
        return owner->status;
    for (uint32_t i = 0; i < args->batch; i++) {
        db_build_write_value(&owner->here, owner->claimed, DB_SIGNALED, raddr + 8 * (uint64_t)i,
                             args->end->rkey, share_pattern(share_thread(), round, i));
        while (!db_owner_try_publish(owner, DB_ORDER_SYSTEM, DB_WITH_RECORD))
            if (!db_owner_wait_room(owner, 2))
                return owner->status;
    }
    return db_owner_flush(owner);
}

PORT_FN int put_batch(const struct batch_args *args, uint64_t raddr, uint64_t round)
{
    struct db_qp *qp = args->end->qp;
    enum share_way way = (enum share_way)args->way;
    uint64_t first;
    int status = share_claim(qp, way, args->batch, &first);
    if (status)
        return status;
    build_all(args, qp, first, raddr, round);
    status = publish_all(qp, way, first, args->batch);
    return status ? status : share_wait(qp, way, first + args->batch - 1);
}

PORT_KERNEL(batches, struct batch_args, args)
{
    const uint8_t *target = args->end->target + (size_t)share_thread() * MOST * 8;
    uint64_t raddr = (uint64_t)(uintptr_t)target;
    struct db_owner owner = {0};

    bool owns = args->way == OWNER || args->way == TRIES;
    if (owns)
        db_owner_take(&owner, args->end->qp);
    for (uint64_t round = 0; round < args->rounds; round++) {
        int status = args->way == OWNER   ? put_owned(args, &owner, raddr, round)
                     : args->way == TRIES ? put_trying(args, &owner, raddr, round)
                                          : put_batch(args, raddr, round);
        if (status) {
            share_fail(args->failure, "batch", round, status);
            return;
        }
        for (uint32_t i = 0; i < args->batch; i++)
            if (port_ld_plain64(target + 8 * (size_t)i) != share_pattern(share_thread(), round, i))
                share_fail(args->failure, "stale word at the peer", round, i);
    }
    if (owns)
        db_owner_give(&owner);
}

/* A block's threads put a line each. */
PORT_KERNEL(by_block, struct batch_args, args)
{
    const struct share_end *end = args->end;
    uint8_t *source = end->source + (size_t)port_thread() * SHARE_LINE;
    const uint8_t *target = end->target + (size_t)port_thread() * SHARE_LINE;
    const struct share_op op = {.opcode = M5_OP_WRITE,
                                .raddr = (uint64_t)(uintptr_t)target,
                                .rkey = end->rkey,
                                .laddr = (uint64_t)(uintptr_t)source,
                                .lkey = end->lkey};
    uint64_t index = 0;

    for (uint64_t round = 0; round < args->rounds; round++) {
        for (uint32_t word = 0; word < SHARE_LINE / 8; word++) {
            uint64_t value = share_pattern(port_thread(), round, word);
            memcpy(source + 8 * (size_t)word, &value, 8);
        }
        int status = share_post(end->qp, SHARE_BLOCK, &op, DB_ORDER_SYSTEM, &index);
        if (!status)
            status = share_wait(end->qp, SHARE_BLOCK, index);
        if (status) {
            share_fail(args->failure, "block", round, status);
            return;
        }
        if (!share_line_is(target, port_thread(), round))
            share_fail(args->failure, "stale line at the peer", round, 0);
    }
}

static const char *way_name(uint32_t way)
{
    return way == OWNER   ? "owner, in registers"
           : way == TRIES ? "owner, tries"
                          : share_way_name((enum share_way)way);
}

static void run(struct share_set *set, uint32_t way, uint32_t batch, uint32_t threads)
{
    struct share_failure failure = {0};
    const struct batch_args args = {
        .way = way, .batch = batch, .rounds = ROUNDS, .end = set->ends, .failure = &failure};
    const struct db_gpu_shape single = {.ctas = threads, .threads = 1};
    const struct db_gpu_shape block = {
        .ctas = 1, .threads = batch, .shared_bytes = sizeof(struct share_block)};
    struct nic_counters before, after;

    share_set_reset(set);
    memset(set->ends->target, 0, (size_t)MOST * SHARE_LINE);
    softnic_read_counters(&before);
    share_launch(set, threads, way == SHARE_BLOCK ? &by_block : &batches,
                 way == SHARE_BLOCK ? block : single, &args, &failure);
    softnic_read_counters(&after);

    uint64_t batches_put = (uint64_t)ROUNDS * threads, wqes = after.send_wqes - before.send_wqes;
    uint64_t rung = way == TRIES ? batches_put * batch : batches_put;
    CHECK(wqes == batches_put * batch, "%s: %llu WQEs of %llu batches of %u", way_name(way),
          (unsigned long long)wqes, (unsigned long long)batches_put, batch);
    CHECK(after.doorbells - before.doorbells <= rung, "%s: %llu doorbells of %llu, batches of %u",
          way_name(way), (unsigned long long)(after.doorbells - before.doorbells),
          (unsigned long long)rung, batch);
}

int main(void)
{
    static const uint32_t depths[] = {256, 1024}, sizes[] = {1, 2, 255, 256};

    share_strict(1000, 1);
    for (int variant = 0; variant < 4; variant++) {
        const struct db_queue_attr attr = {.depth = depths[variant / 2],
                                           .collapsed = variant % 2 != 0};
        struct share_set set;
        share_set_create(&set, &attr, 1, MOST);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            run(&set, SHARE_PRIVATE, sizes[i], 1);
            run(&set, OWNER, sizes[i], 1);
            run(&set, TRIES, sizes[i], 1);
            run(&set, SHARE_BLOCK, sizes[i], 1);
            for (uint32_t way = SHARE_LOCKED; way <= SHARE_TICKET; way++) {
                run(&set, way, sizes[i], 1);
                run(&set, way, sizes[i], THREADS);
            }
        }
        share_set_destroy(&set);
        queue_expect_no_diagnostics();
    }
    return 0;
}
