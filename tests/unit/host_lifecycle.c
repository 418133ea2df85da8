/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: devices, regions and queues may be destroyed in any order, a thousand times over, and
 * leave nothing behind: no memory, no mapping, no descriptor. Queues of all kinds, connected or
 * not. Several threads may create and use queues of one device at once.
 */
#include <doorbell/device.h>
#include <doorbell/doorbell.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../open_files.h"

#define ROUNDS  1000
#define HANDLES 6

enum handle {
    DEVICE,
    REGION_A,
    REGION_B,
    QUEUE_A,
    QUEUE_B,
    QUEUE_DETACHED,
};

struct things {
    struct db_device *device;
    struct db_region *regions[2];
    struct db_queue *queues[3];
};

static uint8_t memory[2][4096];

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void create(struct things *things, uint32_t round)
{
    const struct db_queue_attr detached = {.depth = 1u << round % 8};
    const struct db_queue_attr attr = {
        .depth = 1u << round % 8,
        .recv_depth = round % 3 ? 0 : 1u << round % 5,
        .collapsed = round & 1,
        .uar = (enum db_uar)(round % 3),
    };

    CHECK(db_device_open(NULL, NULL, &things->device) == 0, "%s", db_error_text());
    for (int i = 0; i < 2; i++) {
        CHECK(db_region_register(things->device, DB_MEMORY_HOST, memory[i], sizeof(memory[i]),
                                 DB_ACCESS_ALL, &things->regions[i]) == 0,
              "%s", db_error_text());
        CHECK(db_queue_create(things->device, &attr, &things->queues[i]) == 0, "%s",
              db_error_text());
    }
    CHECK(db_queue_create_detached(&detached, &things->queues[2]) == 0, "%s", db_error_text());
}

/* A few puts, most of them not waited for. */
static void use(const struct things *things, uint32_t round)
{
    struct db_queue *a = things->queues[0], *b = round % 5 ? things->queues[1] : a;
    struct db_keys to = db_region_keys(things->regions[1]);
    uint64_t index;

    CHECK(db_queue_connect(a, b) == 0, "%s", db_error_text());
    for (uint64_t i = 0; i <= round % 7; i++)
        CHECK(db_put_value(db_queue_device_view(a), to.iova, to.rkey, i, &index) == DB_OK, "put");
    if (round % 4 == 0)
        CHECK(db_flush(db_queue_device_view(a)) == DB_OK, "flush");
}

static void destroy(struct things *things, enum handle handle)
{
    switch (handle) {
    case DEVICE:
        db_device_close(things->device);
        break;
    case REGION_A:
    case REGION_B:
        db_region_destroy(things->regions[handle - REGION_A]);
        break;
    default:
        db_queue_destroy(things->queues[handle - QUEUE_A]);
    }
}

static void destroy_in_any_order(struct things *things, uint32_t *random)
{
    enum handle order[HANDLES];

    for (uint32_t i = 0; i < HANDLES; i++) {
        uint32_t at = next_random(random) % (i + 1);
        order[i] = order[at];
        order[at] = (enum handle)i;
    }
    for (uint32_t i = 0; i < HANDLES; i++)
        destroy(things, order[i]);
}

static unsigned count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned count = 0;

    CHECK(maps, "/proc/self/maps");
    for (int c = getc(maps); c != EOF; c = getc(maps))
        count += c == '\n';
    fclose(maps);
    return count;
}

/* ---- Many threads, one device ---- */

#define THREADS 4

static void *put_to_self(void *argument)
{
    const struct db_queue_attr attr = {.depth = 16};
    struct db_device *device = argument;
    uint64_t index, value = 0;

    for (uint64_t round = 1; round <= 50; round++) {
        struct db_region *region;
        struct db_queue *queue;
        CHECK(db_region_register(device, DB_MEMORY_HOST, &value, sizeof(value), DB_ACCESS_ALL,
                                 &region) == 0,
              "%s", db_error_text());
        CHECK(db_queue_create(device, &attr, &queue) == 0, "%s", db_error_text());
        CHECK(db_queue_connect(queue, queue) == 0, "%s", db_error_text());
        struct db_qp *qp = db_queue_device_view(queue);
        struct db_keys to = db_region_keys(region);
        CHECK(db_put_value(qp, to.iova, to.rkey, round, &index) == DB_OK, "put");
        CHECK(db_wait(qp, index) == DB_OK, "wait");
        CHECK(value == round, "round %llu put %llu", (unsigned long long)round,
              (unsigned long long)value);
        db_queue_destroy(queue);
        db_region_destroy(region);
    }
    return NULL;
}

static void by_many_threads(void)
{
    struct db_device *device;
    pthread_t threads[THREADS];

    CHECK(db_device_open(NULL, NULL, &device) == 0, "%s", db_error_text());
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, put_to_self, device) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    db_device_close(device);
}

int main(void)
{
    unsigned descriptors = 0, mappings = 0;
    uint32_t random = 1;

    by_many_threads();
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct things things;
        if (round == ROUNDS / 10) { /* what is kept for ever has been made by now */
            descriptors = open_files();
            mappings = count_mappings();
        }
        create(&things, round);
        if (round % 3)
            use(&things, round);
        destroy_in_any_order(&things, &random);
    }
    CHECK(open_files() == descriptors, "%u descriptors became %u", descriptors, open_files());
    /* The heap may grow by a few mappings; a leak of one a round would be hundreds. */
    CHECK(count_mappings() < mappings + 50, "%u mappings became %u", mappings, count_mappings());
    return 0;
}
