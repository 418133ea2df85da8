/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: one wait for a set of queues, proxied ones and one that GPU threads submit to, returns
 * when each of them is complete and not before, whichever lags behind; and with the first failure,
 * when the others are complete.
 */
#include "proxy_ends.h"

#include <string.h>

#include "../../src/proxy.h"
#include "../../src/queue.h"

#define BUFFER_BYTES 65536
#define TIMEOUT_NS   100000000ull
#define LANES        3u /* two proxied, each with a worker, and one that is not */

static struct proxy_ends ends;
static struct queue_end own;
static struct db_queue *queue[LANES];
static struct db_qp *qp[LANES];
static uint32_t rkey[LANES];

static void open_lanes(void)
{
    const struct db_proxy_attr proxy = {.workers = 2};
    const struct db_queue_attr first = {.depth = 16, .timeout_ns = TIMEOUT_NS, .worker = 1};
    const struct db_queue_attr second = {.depth = 16, .timeout_ns = TIMEOUT_NS, .worker = 2};
    const struct db_queue_attr alone = {.depth = 16, .timeout_ns = TIMEOUT_NS};

    proxy_ends_start(&ends, &proxy, &first, BUFFER_BYTES);
    queue[0] = ends.queue;
    queue[1] = proxy_ends_add(&ends, &second);
    queue_end_create(&own, ends.device, &alone, BUFFER_BYTES);
    queue[2] = own.queue;
    for (uint32_t i = 1; i < LANES; i++)
        QUEUE_OK(db_queue_connect(queue[i], queue[i])); /* to itself */
    for (uint32_t i = 0; i < LANES; i++) {
        qp[i] = db_queue_device_view(queue[i]);
        rkey[i] = i < 2 ? ends.remote.rkey : ends.peer.keys.rkey;
    }
}

static uint64_t address(uint32_t lane)
{
    return (lane < 2 ? ends.remote.iova : ends.peer.keys.iova) + 8 * lane;
}

/* A value into a word of each lane's own; `bad` is the lane whose key is wrong, if any. */
static void put_all(uint64_t value, uint32_t bad)
{
    uint64_t index;

    for (uint32_t i = 0; i < LANES; i++)
        QUEUE_OK(db_put_value(qp[i], address(i), i == bad ? rkey[i] + 1 : rkey[i], value, &index));
}

static void expect_all(uint64_t value, uint32_t but)
{
    const uint64_t *words = (const uint64_t *)(const void *)ends.peer.buffer;

    for (uint32_t i = 0; i < LANES; i++)
        CHECK(i == but || __atomic_load_n(&words[i], __ATOMIC_ACQUIRE) == value,
              "lane %u: %llu instead of %llu", i, (unsigned long long)words[i],
              (unsigned long long)value);
}

int main(void)
{
    open_lanes();
    put_all(1, LANES);
    QUEUE_OK(db_flush_all(qp, LANES));
    expect_all(1, LANES);
    put_all(2, LANES);
    QUEUE_OK(db_flush_all_shared(qp + 2, 1));
    QUEUE_OK(db_flush_all(qp, 2));
    expect_all(2, LANES);
    for (uint32_t lag = 0; lag < 2; lag++) {
        struct db_worker *worker = queue[lag]->proxied->worker;
        db_worker_hold(worker);
        put_all(10 + lag, LANES);
        CHECK(db_flush_all(qp, LANES) == DB_ERROR_TIMEOUT, "lane %u lags, and nobody noticed", lag);
        expect_all(10 + lag, lag);
        db_worker_let_go(worker);
        QUEUE_OK(db_flush_all(qp, LANES));
        expect_all(10 + lag, LANES);
    }
    put_all(20, 2);
    CHECK(db_flush_all(qp, LANES) == DB_ERROR_IO, "the wrong key was not told");
    expect_all(20, 2);
    CHECK(db_flush_all(qp, 2) == DB_OK, "the other lanes failed");
    queue_end_destroy(&own);
    db_queue_destroy(queue[1]);
    proxy_ends_destroy(&ends);
    printf("a set of queues is complete when each is\n");
    return 0;
}
