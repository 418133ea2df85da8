/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a queue goes to the worker with the fewest, unless one is named; workers near the NIC are
 * pinned, each to a CPU of its own, where two more are free, and else none is; a worker that backs
 * off naps twice as long each time, up to the longest.
 */
#include <doorbell/doorbell.h>
#include <sched.h>
#include <string.h>

#include "../../src/proxy.h"
#include "../../src/queue.h"
#include "../check.h"

#define WORKERS 3u
#define NAP_NS  20000u /* the longest */

static uint32_t worker_of(const struct db_queue *queue)
{
    return queue->proxied->worker->number;
}

static struct db_queue *make(struct db_device *device, struct db_proxy *proxy, uint32_t worker)
{
    const struct db_queue_attr attr = {.depth = 4, .proxy = proxy, .worker = worker};
    struct db_queue *queue;

    CHECK(!db_queue_create(device, &attr, &queue), "%s", db_error_text());
    return queue;
}

static void placed(struct db_device *device)
{
    const struct db_proxy_attr attr = {
        .workers = WORKERS, .idle = DB_IDLE_SLEEP, .pin = DB_PIN_NONE};
    struct db_queue *queue[3 * WORKERS];
    struct db_proxy *proxy;
    uint32_t queues[WORKERS] = {0};

    CHECK(!db_proxy_create(device, &attr, &proxy), "%s", db_error_text());
    for (uint32_t i = 0; i < 2 * WORKERS; i++) {
        queue[i] = make(device, proxy, 0);
        queues[worker_of(queue[i]) - 1]++;
    }
    for (uint32_t w = 0; w < WORKERS; w++)
        CHECK(queues[w] == 2, "worker %u has %u queues", w + 1, queues[w]);
    uint32_t lonely = worker_of(queue[0]);
    db_queue_destroy(queue[0]);
    queue[0] = make(device, proxy, 0);
    CHECK(worker_of(queue[0]) == lonely, "worker %u has the fewest, %u got the queue", lonely,
          worker_of(queue[0]));
    for (uint32_t i = 0; i < WORKERS; i++) {
        queue[2 * WORKERS + i] = make(device, proxy, 2);
        CHECK(worker_of(queue[2 * WORKERS + i]) == 2, "worker 2 was named");
    }
    for (uint32_t i = 0; i < 3 * WORKERS; i++)
        db_queue_destroy(queue[i]);
    db_proxy_destroy(proxy);
}

static void pinned(struct db_device *device, uint32_t workers)
{
    const struct db_proxy_attr attr = {.workers = workers, .idle = DB_IDLE_SLEEP};
    struct db_proxy *proxy;
    cpu_set_t usable, used;

    CHECK(!sched_getaffinity(0, sizeof(usable), &usable), "no affinity");
    bool room = (uint32_t)CPU_COUNT(&usable) >= workers + 2;
    CPU_ZERO(&used);
    CHECK(!db_proxy_create(device, &attr, &proxy), "%s", db_error_text());
    for (uint32_t w = 0; w < workers; w++) {
        int cpu = proxy->workers[w].cpu;
        if (!room) {
            CHECK(cpu == -1, "worker %u is pinned to %d, and the CPUs are few", w + 1, cpu);
            continue;
        }
        CHECK(cpu >= 0 && CPU_ISSET((size_t)cpu, &usable) && !CPU_ISSET((size_t)cpu, &used),
              "worker %u of %u is pinned to %d", w + 1, workers, cpu);
        CPU_SET((size_t)cpu, &used);
    }
    db_proxy_destroy(proxy);
    printf("%u workers: %s\n", workers, room ? "pinned" : "too few CPUs to pin");
}

static void backing_off(void)
{
    static struct db_proxy proxy = {
        .attr = {.idle = DB_IDLE_BACK_OFF, .spin_ns = 0, .sleep_ns = NAP_NS}};
    struct db_worker *worker = &proxy.workers[0];
    uint64_t before = 0;

    worker->proxy = &proxy;
    for (uint32_t naps = 0, calls = 0; naps < 10; calls++) {
        CHECK(calls < 1000, "naps stay at %llu ns", (unsigned long long)before);
        db_worker_idle(worker);
        if (worker->nap_ns == before && before < NAP_NS)
            continue;
        CHECK(before == 0 || worker->nap_ns == (2 * before < NAP_NS ? 2 * before : NAP_NS),
              "a nap of %llu ns follows one of %llu", (unsigned long long)worker->nap_ns,
              (unsigned long long)before);
        before = worker->nap_ns;
        naps++;
    }
    CHECK(before == NAP_NS, "the longest nap is %llu ns", (unsigned long long)before);
    db_worker_busy(worker);
    CHECK(worker->nap_ns == 0, "work does not end the naps");
}

int main(void)
{
    struct db_device *device;

    backing_off();
    CHECK(!db_device_open(NULL, NULL, &device), "%s", db_error_text());
    placed(device);
    for (uint32_t workers = 1; workers <= 4; workers++)
        pinned(device, workers);
    db_device_close(device);
    return 0;
}
