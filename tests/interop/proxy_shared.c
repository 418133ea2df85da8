/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: 1 to 64 threads of a kernel push to one proxied queue with the shared and the warp calls
 * of device.h, whatever the protocol, the workers' number and the ring's depth: every value arrives
 * in its place, every put has its payload, a wait by each thread covers its own. One queue of each
 * worker is used at the same time.
 */
#include "proxy_ends.h"

#include <doorbell/gpu.h>
#include <string.h>

#define MAX_THREADS  64u
#define WORDS        16u /* of each thread, written in turn */
#define BUFFER_BYTES (2 * MAX_THREADS * WORDS * 8)
#define MAX_QUEUES   4u

struct push_args {
    struct db_qp *qps[MAX_QUEUES];
    uint32_t queues; /* block n uses queue n modulo these */
    uint32_t puts;   /* of each thread */
    uint32_t warp;   /* all lanes at once, each a put; else each thread a value */
    uint64_t raddr, laddr;
    uint32_t rkey, lkey;
    uint64_t *payload; /* where laddr is, for the kernel */
    int32_t *status;   /* [threads] */
};

static int push_one(const struct push_args *args, uint32_t thread, uint32_t i, uint64_t *index)
{
    struct db_qp *qp = args->qps[port_block() % args->queues];
    uint64_t offset = (uint64_t)(thread * WORDS + i % WORDS) * 8;

    if (!args->warp)
        return db_put_value_shared(qp, args->raddr + offset, args->rkey, i + 1, index);
    args->payload[offset / 8] = i + 1;
    return db_put_warp(qp, 0xffffffff, args->raddr + offset, args->rkey, args->laddr + offset,
                       args->lkey, 8, index);
}

PORT_KERNEL(push_shared, struct push_args, args)
{
    uint32_t thread = port_block() * port_threads() + port_thread();
    struct db_qp *qp = args->qps[port_block() % args->queues];
    uint64_t index = 0;

    args->status[thread] = DB_OK;
    for (uint32_t i = 0; i < args->puts; i++) {
        int status = push_one(args, thread, i, &index);
        /* A payload word is used again only when its put is complete. */
        if (!status && i % WORDS == WORDS - 1)
            status = db_wait_shared(qp, index);
        if (status) {
            args->status[thread] = status;
            return;
        }
    }
    args->status[thread] = db_wait_shared(qp, index);
}

static struct db_gpu *gpu;

static void run(const struct db_proxy_attr *proxy, enum db_protocol protocol, uint32_t depth,
                uint32_t blocks, uint32_t threads, bool warp, uint32_t puts)
{
    struct db_queue_attr attr = {.depth = depth,
                                 .producers = warp ? threads * blocks : threads * blocks + 1,
                                 .protocol = protocol,
                                 .gpu = gpu};
    struct db_queue *queues[MAX_QUEUES] = {0};
    struct queue_end peers[MAX_QUEUES];
    struct proxy_ends ends;
    int32_t status[MAX_THREADS] = {0};
    struct db_gpu_grid *grid;

    proxy_ends_start(&ends, proxy, &attr, BUFFER_BYTES);
    struct push_args args = {
        .queues = proxy->workers,
        .puts = puts,
        .warp = warp,
        .rkey = ends.remote.rkey,
        .lkey = ends.local.lkey,
        .payload = (uint64_t *)(void *)ends.buffer,
        .status = status,
    };
    args.qps[0] = ends.qp;
    for (uint32_t i = 1; i < proxy->workers; i++) {
        const struct db_queue_attr peer = {.depth = 16};
        attr.worker = i + 1;
        queues[i] = proxy_ends_add(&ends, &attr);
        queue_end_create(&peers[i], ends.device, &peer, 4096);
        QUEUE_OK(db_queue_connect(queues[i], peers[i].queue));
        args.qps[i] = db_queue_device_view(queues[i]);
    }
    struct db_gpu_shape shape = {.ctas = blocks, .threads = threads};
    CHECK(!gpu->backend->launch(gpu, &push_shared, shape, &args, &grid), "%s", db_gpu_error_text());
    CHECK(!gpu->backend->wait(grid, port_now_ns() + 100000000000ull), "%s", db_gpu_error_text());
    for (uint32_t t = 0; t < blocks * threads; t++) {
        CHECK(status[t] == DB_OK, "thread %u got %d: %s", t, status[t],
              db_queue_check(ends.queue) ? db_error_text() : "no error");
        for (uint32_t w = 0; w < WORDS; w++) {
            uint64_t word = ((uint64_t *)(void *)ends.peer.buffer)[t * WORDS + w];
            uint64_t expected = puts <= w ? 0 : (puts - 1 - w) / WORDS * WORDS + w + 1;
            CHECK(word == expected, "thread %u, word %u: %llu instead of %llu", t, w,
                  (unsigned long long)word, (unsigned long long)expected);
        }
    }
    for (uint32_t i = 1; i < proxy->workers; i++) {
        db_queue_destroy(queues[i]);
        queue_end_destroy(&peers[i]);
    }
    proxy_ends_destroy(&ends);
}

int main(void)
{
    const struct db_gpu_config config = {.workers = 3};
    const struct db_proxy_attr one = {.workers = 1}, own = {.workers = 1, .post = DB_POST_WQE};
    const struct db_proxy_attr two = {.workers = 2, .batch = 3};

    CHECK(!db_gpu_cpu_backend.open(&config, &gpu), "%s", db_gpu_error_text());
    queue_strict(true);
    run(&one, DB_PROTOCOL_BEST, 2, 1, 1, false, 100);
    run(&one, DB_PROTOCOL_BASELINE, 2, 3, 1, false, 100);
    run(&own, DB_PROTOCOL_BEST, 64, 8, 1, false, 400);
    run(&one, DB_PROTOCOL_BASELINE, 64, 8, 8, false, 200);
    run(&own, DB_PROTOCOL_BEST, 256, 64, 1, false, 200);
    run(&two, DB_PROTOCOL_BEST, 64, 8, 4, false, 200);
    run(&one, DB_PROTOCOL_BEST, 32, 1, 32, true, 100);
    run(&own, DB_PROTOCOL_BASELINE, 64, 2, 32, true, 100);
    run(&two, DB_PROTOCOL_BEST, 64, 2, 32, true, 100);
    gpu->backend->close(gpu);
    queue_expect_no_diagnostics_of_worker();
    printf("1 to 64 producers\n");
    return 0;
}
