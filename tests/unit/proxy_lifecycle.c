/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: devices, proxies and their queues may be destroyed in any order, with requests pushed and
 * not yet complete, and leave nothing behind: no thread, no descriptor, no mapping. Queues may come
 * and go while others of the same worker are in use.
 */
#include <dirent.h>
#include <doorbell/device.h>
#include <doorbell/doorbell.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../check.h"

#define ROUNDS  150
#define HANDLES 6

static uint64_t memory[64];

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static size_t entries(const char *path)
{
    DIR *folder = opendir(path);
    size_t count = 0;

    CHECK(folder, "no %s", path);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static size_t mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    size_t lines = 0;

    CHECK(maps, "no /proc/self/maps");
    for (int c; (c = fgetc(maps)) != EOF;)
        lines += c == '\n';
    fclose(maps);
    return lines;
}

static struct db_queue *make_queue(struct db_device *device, struct db_proxy *proxy,
                                   const struct db_keys *region, struct db_keys *keys)
{
    const struct db_queue_attr attr = {.depth = 8, .proxy = proxy};
    struct db_queue *queue;

    CHECK(!db_queue_create(device, &attr, &queue), "%s", db_error_text());
    CHECK(!db_queue_connect(queue, queue), "%s", db_error_text());
    CHECK(!db_queue_keys(queue, DB_SIDE_REMOTE, region, keys), "%s", db_error_text());
    return queue;
}

/* All handles of a round, destroyed in random order; some queues with requests in flight. */
static void round_of(uint32_t number)
{
    const struct db_proxy_attr attr = {.workers = 1 + number % 3,
                                       .post = number % 2 ? DB_POST_WQE : DB_POST_VERBS,
                                       .idle = (enum db_proxy_idle)(number % 3)};
    struct db_device *device;
    struct db_region *region;
    struct db_proxy *proxy;
    struct db_queue *queues[3];
    struct db_keys real, keys;
    uint32_t state = number, left = (1u << HANDLES) - 1;
    uint64_t index;

    CHECK(!db_device_open(NULL, NULL, &device), "%s", db_error_text());
    CHECK(
        !db_region_register(device, DB_MEMORY_HOST, memory, sizeof(memory), DB_ACCESS_ALL, &region),
        "%s", db_error_text());
    real = db_region_keys(region);
    CHECK(!db_proxy_create(device, &attr, &proxy), "%s", db_error_text());
    for (uint32_t i = 0; i < 3; i++) {
        queues[i] = make_queue(device, proxy, &real, &keys);
        for (uint32_t put = 0; put < number % 8; put++)
            CHECK(!db_put_value(db_queue_device_view(queues[i]), 8 * i, keys.rkey, put, &index),
                  "a push into an empty ring");
    }
    while (left) {
        uint32_t handle = next_random(&state) % HANDLES;
        if (!(left >> handle & 1))
            continue;
        left &= ~(1u << handle);
        if (handle < 3)
            db_queue_destroy(queues[handle]);
        else if (handle == 3)
            db_proxy_destroy(proxy);
        else if (handle == 4)
            db_region_destroy(region);
        else
            db_device_close(device);
    }
}

struct traffic {
    struct db_queue *queue;
    struct db_keys keys;
    uint32_t stop;
    uint64_t puts;
};

static void *keep_busy(void *argument)
{
    struct traffic *traffic = argument;
    struct db_qp *qp = db_queue_device_view(traffic->queue);
    uint64_t index;

    for (; !__atomic_load_n(&traffic->stop, __ATOMIC_RELAXED); traffic->puts++) {
        CHECK(!db_put_value(qp, 8, traffic->keys.rkey, traffic->puts, &index), "a push failed");
        if (traffic->puts % 4 == 0)
            CHECK(!db_wait(qp, index), "a wait failed");
    }
    CHECK(!db_flush(qp), "the last wait failed");
    return NULL;
}

static void come_and_go(void)
{
    const struct db_proxy_attr attr = {.workers = 1};
    struct traffic traffic = {0};
    struct db_device *device;
    struct db_region *region;
    struct db_proxy *proxy;
    struct db_keys real, keys;
    pthread_t thread;
    uint64_t index;

    CHECK(!db_device_open(NULL, NULL, &device), "%s", db_error_text());
    CHECK(
        !db_region_register(device, DB_MEMORY_HOST, memory, sizeof(memory), DB_ACCESS_ALL, &region),
        "%s", db_error_text());
    real = db_region_keys(region);
    CHECK(!db_proxy_create(device, &attr, &proxy), "%s", db_error_text());
    traffic.queue = make_queue(device, proxy, &real, &traffic.keys);
    CHECK(!pthread_create(&thread, NULL, keep_busy, &traffic), "no thread");
    for (uint32_t i = 0; i < 100; i++) {
        struct db_queue *queue = make_queue(device, proxy, &real, &keys);
        struct db_qp *qp = db_queue_device_view(queue);
        CHECK(!db_put_value(qp, 16, keys.rkey, i, &index), "push %u", i);
        if (i % 2)
            CHECK(!db_wait(qp, index), "wait %u", i);
        db_queue_destroy(queue);
    }
    __atomic_store_n(&traffic.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    CHECK(memory[1] == traffic.puts - 1, "%llu arrived last", (unsigned long long)memory[1]);
    CHECK(!db_proxy_stop(proxy), "%s", db_error_text());
    db_proxy_destroy(proxy);
    db_queue_destroy(traffic.queue);
    db_region_destroy(region);
    db_device_close(device);
}

int main(void)
{
    size_t threads, files, maps;

    for (uint32_t i = 0; i < 10; i++)
        round_of(i);
    threads = entries("/proc/self/task");
    files = entries("/proc/self/fd");
    maps = mappings();
    for (uint32_t i = 0; i < ROUNDS; i++)
        round_of(i);
    CHECK(entries("/proc/self/task") == threads, "%zu threads are left of %zu",
          entries("/proc/self/task"), threads);
    CHECK(entries("/proc/self/fd") == files, "%zu descriptors are left of %zu",
          entries("/proc/self/fd"), files);
    CHECK(mappings() < maps + 20, "%zu mappings are left of %zu", mappings(), maps);
    come_and_go();
    printf("%d rounds\n", ROUNDS);
    return 0;
}
