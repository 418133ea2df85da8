/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: 64 queue pairs that share UAR pages and doorbell registers, posted to from 4 threads at
 * once, lose no doorbell: more than a million inline writes, each seen at its place.
 */
#include "rc_pair.h"

#include <pthread.h>
#include <string.h>

enum {
    THREADS = 4,
    PAIRS = 16,  /* of each thread */
    WRITES = 16, /* of one queue in one round, each with its own doorbell */
    ROUNDS = RC_SANITIZED ? 64 : 1100,
};

struct worker {
    pthread_t thread;
    struct rc_pair pairs[PAIRS];
    uint64_t verified;
};

static void post_round(struct rc_pair *pair, uint64_t round)
{
    for (uint64_t i = 0; i < WRITES; i++) {
        uint64_t value = round << 16 ^ (uint64_t)pair->a.qp->qp_num << 40 ^ i;
        struct ibv_sge sge = {.addr = (uintptr_t)&value, .length = 8};
        struct ibv_send_wr wr = {
            .wr_id = value,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_INLINE | (i + 1 == WRITES ? IBV_SEND_SIGNALED : 0),
            .wr.rdma = {.remote_addr = (uintptr_t)pair->b.buffer + i * 8, .rkey = pair->b.mr->rkey},
        };

        rc_post_chain(&pair->a, &wr);
    }
}

static void check_round(struct rc_pair *pair, uint64_t round)
{
    uint64_t base = round << 16 ^ (uint64_t)pair->a.qp->qp_num << 40;

    rc_expect(pair->a.send_cq, &pair->a, base ^ (WRITES - 1), IBV_WC_RDMA_WRITE);
    for (uint64_t i = 0; i < WRITES; i++) {
        uint64_t value;

        memcpy(&value, pair->b.buffer + i * 8, 8);
        CHECK(value == (base ^ i), "round %llu, QP 0x%x, write %llu: 0x%llx, 0x%llx expected",
              (unsigned long long)round, pair->a.qp->qp_num, (unsigned long long)i,
              (unsigned long long)value, (unsigned long long)(base ^ i));
    }
}

static void *run(void *argument)
{
    struct worker *worker = argument;

    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < PAIRS; i++)
            post_round(&worker->pairs[i], round);
        for (int i = 0; i < PAIRS; i++)
            check_round(&worker->pairs[i], round);
        worker->verified += PAIRS * WRITES;
    }
    return NULL;
}

int main(void)
{
    static struct worker workers[THREADS];
    struct ibv_context *context = rc_open();
    struct rc_options options = rc_defaults();
    uint64_t verified = 0;

    options.inline_bytes = 8;
    options.buffer_bytes = 4096;
    /* Neighbours in order of creation, and so on one UAR, belong to different threads. */
    for (int i = 0; i < PAIRS; i++) {
        for (int t = 0; t < THREADS; t++) {
            rc_create(&workers[t].pairs[i], context, &options);
            rc_connect(&workers[t].pairs[i]);
        }
    }
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&workers[t].thread, NULL, run, &workers[t]) == 0,
              "pthread_create of thread %d", t);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(workers[t].thread, NULL);
        verified += workers[t].verified;
    }
    CHECK(verified == (uint64_t)THREADS * PAIRS * WRITES * ROUNDS, "%llu writes verified",
          (unsigned long long)verified);
    printf("%llu writes verified\n", (unsigned long long)verified);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < PAIRS; i++)
            rc_destroy(&workers[t].pairs[i]);
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
    return 0;
}
