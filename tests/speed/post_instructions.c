/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts the same 8-byte inline writes in one of three ways, for callgrind to count the instructions
 * of (post_instructions.sh): by libmlx5's ibv_post_send(), one to a call or 32; by db_put_value();
 * by 32 WQEs to one publication. Completions are taken outside the counted functions.
 *
 * Usage: post_instructions verbs|verbs32|doorbell|doorbell32
 */
#include <doorbell/device.h>
#include <string.h>

#include "../interop/queue_ends.h"
#include "../interop/rc_pair.h"

enum { POSTS = 3200, BATCH = 32 };

/* Kept out of line and by these names: what callgrind collects. */
void counted_verbs(struct rc_pair *pair, struct ibv_send_wr *chain);
void counted_doorbell(struct db_qp *qp, uint64_t raddr, uint32_t rkey, uint32_t count);

__attribute__((noinline)) void counted_verbs(struct rc_pair *pair, struct ibv_send_wr *chain)
{
    struct ibv_send_wr *bad;
    CHECK(ibv_post_send(pair->a.qp, chain, &bad) == 0, "ibv_post_send failed");
}

__attribute__((noinline)) void counted_doorbell(struct db_qp *qp, uint64_t raddr, uint32_t rkey,
                                                uint32_t count)
{
    uint64_t index;
    if (count == 1) {
        CHECK(db_put_value(qp, raddr, rkey, 7, &index) == DB_OK, "db_put_value failed");
        return;
    }
    CHECK(db_claim(qp, count, &index) == DB_OK, "db_claim failed");
    for (uint32_t i = 0; i < count; i++)
        db_build_write_value(qp, index + i, i + 1 == count ? DB_SIGNALED : DB_UNSIGNALED, raddr,
                             rkey, 7);
    db_publish(qp, index + count - 1, index + count, DB_ORDER_SYSTEM, DB_WITH_RECORD);
}

static void verbs(int batch)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;
    struct ibv_send_wr chain[BATCH];

    options.inline_bytes = 64;
    options.send_depth = 256;
    rc_start(&pair, &options);
    struct ibv_sge sge = rc_sge(&pair.a, 0, 8);
    for (int i = 0; i < batch; i++)
        chain[i] = (struct ibv_send_wr){
            .next = i + 1 < batch ? &chain[i + 1] : NULL,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_INLINE | (i + 1 < batch ? 0u : (unsigned int)IBV_SEND_SIGNALED),
            .wr.rdma = {(uintptr_t)pair.b.buffer, pair.b.mr->rkey},
        };
    for (int i = 0; i < POSTS; i += batch) {
        counted_verbs(&pair, chain);
        rc_expect(pair.a.send_cq, &pair.a, 0, IBV_WC_RDMA_WRITE);
    }
    rc_destroy(&pair);
}

static void doorbell(uint32_t batch)
{
    struct queue_ends ends;
    struct db_queue_attr attr = {.depth = 256};
    queue_ends_start(&ends, &attr, 4096);
    for (uint32_t i = 0; i < POSTS; i += batch) {
        counted_doorbell(ends.a.qp, ends.b.keys.iova, ends.b.keys.rkey, batch);
        CHECK(db_flush(ends.a.qp) == DB_OK, "db_flush failed");
    }
    queue_ends_destroy(&ends);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2, "usage: post_instructions verbs|verbs32|doorbell|doorbell32");
    setenv("SOFTNIC", "on", 0);
    if (strcmp(argv[1], "verbs") == 0)
        verbs(1);
    else if (strcmp(argv[1], "verbs32") == 0)
        verbs(BATCH);
    else if (strcmp(argv[1], "doorbell") == 0)
        doorbell(1);
    else
        doorbell(BATCH);
    return 0;
}
