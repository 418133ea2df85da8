/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: WQEs of 1 to 16 blocks, mixed at random by threads that share a queue, arrive whole: also
 * where one lies across the end of the ring, where it fills the ring, and where the slots of one
 * lap's marks lie inside a WQE of the next. Every way in which one thread posts for itself.
 */
#include "share_rig.h"

#include <string.h>

#define MAX_THREADS 32
#define AREA_BYTES  (16 * SHARE_LINE) /* of one thread, at the peer */

static_assert(AREA_BYTES > DB_MAX_INLINE, "a payload and a guard byte");

struct mixed_args {
    enum share_way way;
    uint32_t puts; /* of each thread */
    uint64_t seed;
    struct share_end *end;
    struct share_failure *failure;
};

PORT_FN uint8_t mixed_byte(uint32_t thread, uint64_t put, uint32_t at)
{
    return (uint8_t)(share_pattern(thread, put, at / 8) >> (at % 8 * 8));
}

PORT_KERNEL(mixed, struct mixed_args, args)
{
    const struct share_end *end = args->end;
    struct db_qp *qp = end->qp;
    uint32_t id = share_thread();
    uint8_t *target = end->target + (size_t)id * AREA_BYTES;
    uint64_t raddr = (uint64_t)(uintptr_t)target, index = 0;
    uint8_t payload[AREA_BYTES];

    for (uint64_t put = 0; put < args->puts; put++) {
        uint64_t random = share_pattern(id, put ^ args->seed << 20, 0) >> 20;
        uint32_t bytes = (uint32_t)(random % (DB_MAX_INLINE + 1));
        uint32_t blocks = db_inline_blocks(bytes);
        for (uint32_t i = 0; i < bytes; i++)
            payload[i] = mixed_byte(id, put, i);
        target[bytes] = 0xee;
        int status = share_claim(qp, args->way, blocks, &index);
        if (!status) {
            db_build_write_inline(qp, index, M5_OP_WRITE, DB_SIGNALED, raddr, end->rkey, payload,
                                  bytes, 0);
            status = share_publish(qp, args->way, blocks, index, DB_ORDER_SYSTEM);
        }
        if (!status)
            status = share_wait(qp, args->way, index);
        if (status) {
            share_fail(args->failure, "put", put, status);
            return;
        }
        for (uint32_t i = 0; i < bytes; i++)
            if (target[i] != mixed_byte(id, put, i))
                share_fail(args->failure, "byte", put, i);
        if (target[bytes] != 0xee)
            share_fail(args->failure, "byte behind the payload", put, bytes);
    }
}

static void run(struct share_set *set, enum share_way way, uint32_t workers, uint32_t ctas,
                uint32_t threads, uint64_t seed)
{
    struct share_failure failure = {0};
    const struct mixed_args args = {.way = way,
                                    .puts = 256 / SHARE_SLOWER / (ctas * threads) + 1,
                                    .seed = seed & 0xffff,
                                    .end = set->ends,
                                    .failure = &failure};
    uint64_t before = share_wqes();

    share_set_reset(set);
    share_launch(set, workers, &mixed, (struct db_gpu_shape){.ctas = ctas, .threads = threads},
                 &args, &failure);
    uint64_t made = share_wqes() - before, wanted = (uint64_t)args.puts * ctas * threads;
    CHECK(made == wanted, "%s: %llu WQEs, not %llu", share_way_name(way), (unsigned long long)made,
          (unsigned long long)wanted);
}

int main(int argc, char **argv)
{
    static const uint32_t depths[] = {16, 64};
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : port_now_ns() | 1;

    printf("seed %llu\n", (unsigned long long)seed);
    for (int collapsed = 0; collapsed < 2; collapsed++) {
        for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
            const struct db_queue_attr attr = {.depth = depths[i], .collapsed = collapsed};
            struct share_set set;
            share_strict(2000, seed);
            share_set_create(&set, &attr, 1, MAX_THREADS * AREA_BYTES / SHARE_LINE);
            run(&set, SHARE_PRIVATE, 1, 1, 1, seed);
            for (int way = SHARE_LOCKED; way <= SHARE_TICKET; way++) {
                run(&set, (enum share_way)way, 1, 1, 32, seed);
                run(&set, (enum share_way)way, 4, 4, 2, seed);
                run(&set, (enum share_way)way, 4, 4, 8, seed);
            }
            share_set_destroy(&set);
            queue_expect_no_diagnostics();
        }
    }
    return 0;
}
