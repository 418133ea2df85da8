/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim (case C05): with executed slots poisoned, a slot that was rung past before it was written
 * is named with its QPN and index, whole or in part; with the right protocol nothing is named over
 * 100,000 WQEs, however long the device takes to fetch; the same seed gives the same delays.
 */
#include <pthread.h>

#include <core/strict.h>

#include "engine_rig.h"

static struct rig rig;

static void start(uint32_t fetch_delay_ns, uint64_t seed)
{
    struct nic_config config = {
        .strict = {.enabled = 1, .poison = 1, .fetch_delay_ns = fetch_delay_ns, .random = seed}};
    rig_start(&rig, &config);
}

/* One lap, after which each slot of the ring has been executed and poisoned. */
static void one_lap(struct rig_queue *queue)
{
    struct wqe wqe;
    for (int i = 0; i < 1 << queue->depth_log2; i++) {
        rig_build(queue, &wqe, 0, 64);
        rig_expect(queue, rig_post(queue, &wqe));
    }
}

/* Writer A has slot `index` and stalls; B has the next, writes, and rings past A. */
static void rung_past(uint32_t queue_reg)
{
    struct rig_queue queue;
    struct wqe wqe;

    start(2000, 7);
    rig_loop(&rig, &queue, rig_uar(&rig), queue_reg, 4);
    one_lap(&queue);
    CHECK(bytes_get32(queue.sq) == NIC_POISON, "executed slots are not poisoned");
    uint64_t stalled = queue.posted++;
    rig_build(&queue, &wqe, 0, 64);
    rig_post(&queue, &wqe);
    rig_expect_error(&queue, stalled, M5_SYN_LOCAL_QP_OP);
    rig_expect_error(&queue, stalled + 1, M5_SYN_FLUSHED);
    rig_expect_diag(&queue, NIC_DIAG_POISON_FETCHED, stalled);
    rig_expect_clean(&rig);
    rig_destroy(&queue);
    rig_stop(&rig);
}

/* A's WQE has 11 segments in three blocks, and one store of 16 or of 64 bytes is not there yet when
 * the doorbell comes. */
static void written_in_part(uint32_t segment, uint32_t count)
{
    struct rig_queue queue;
    struct wqe wqe;
    uint8_t data[128];

    start(0, 7);
    rig_loop(&rig, &queue, rig_uar(&rig), 0, 4);
    one_lap(&queue);
    memset(data, 0x5a, sizeof(data));
    wqe_begin(&wqe, M5_OP_WRITE, 0, M5_CTRL_CQ_UPDATE, 0);
    wqe_raddr(&wqe, (uintptr_t)rig.payload, rig.key);
    wqe_inline(&wqe, data, sizeof(data));
    uint8_t poison[64];
    memcpy(poison, queue.sq, sizeof(poison));
    uint64_t index = rig_put(&queue, &wqe);
    memcpy(queue.sq + (64 * index + 16 * segment) % 1024, poison, 16ull * count);
    rig_record(&queue, queue.posted);
    rig_ring(&queue, index);
    rig_expect_diag(&queue, NIC_DIAG_POISON_FETCHED, index);
    rig_destroy(&queue);
    rig_stop(&rig);
}

/* ---- The right protocol: write, then record, then doorbell, in turn ---- */

struct writer {
    struct rig_queue *queue;
    uint64_t *turn; /* the index that may be published */
    uint64_t *next; /* that may be reserved */
    uint64_t *retired;
    uint64_t count;
};

static void *write_wqes(void *argument)
{
    struct writer *writer = argument;
    struct rig_queue *queue = writer->queue;
    uint64_t depth = 1ull << queue->depth_log2, index;
    struct wqe wqe;

    while ((index = __atomic_fetch_add(writer->next, 1, __ATOMIC_RELAXED)) < writer->count) {
        while (index - __atomic_load_n(writer->retired, __ATOMIC_ACQUIRE) >= depth)
            sched_yield();
        rig_build(queue, &wqe, 0, 64);
        wqe_address(&wqe, index, queue->qpn);
        wqe_copy(&wqe, queue->sq, queue->depth_log2, index);
        while (__atomic_load_n(writer->turn, __ATOMIC_ACQUIRE) != index)
            sched_yield();
        rig_record(queue, index + 1);
        rig_ring(queue, index);
        __atomic_store_n(writer->turn, index + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void right_protocol(uint64_t count)
{
    struct rig_queue queue;
    uint64_t turn = 0, next = 0, retired = 0;
    struct writer writer = {&queue, &turn, &next, &retired, count};
    pthread_t threads[2];

    start(3000, 20240607);
    rig_loop(&rig, &queue, rig_uar(&rig), 0, 6);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, write_wqes, &writer) == 0, "no thread");
    for (uint64_t i = 0; i < count; i++) {
        rig_expect(&queue, i);
        __atomic_store_n(&retired, i + 1, __ATOMIC_RELEASE);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    rig_expect_clean(&rig);
    rig_destroy(&queue);
    rig_stop(&rig);
}

/* ---- Seeds ---- */

static void draw(uint64_t seed, uint64_t numbers[64])
{
    start(0, seed);
    struct nic *nic = nic_hold(rig.host);
    for (int i = 0; i < 64; i++) {
        numbers[i] = nic_random(nic, 1000);
        CHECK(numbers[i] < 1000, "%llu is not below 1000", (unsigned long long)numbers[i]);
    }
    nic_release(rig.host);
    rig_stop(&rig);
}

static void seeds(void)
{
    uint64_t first[64], again[64], other[64], none[64];
    draw(12345, first);
    draw(12345, again);
    draw(54321, other);
    draw(0, none); /* 0 stands for a random seed */
    CHECK(memcmp(first, again, sizeof(first)) == 0, "one seed, two sequences");
    CHECK(memcmp(first, other, sizeof(first)) != 0, "two seeds, one sequence");
    CHECK(memcmp(none, other, sizeof(none)) != 0, "seed 0 is fixed");
    uint64_t sum = 0;
    for (int i = 0; i < 64; i++)
        sum += first[i];
    CHECK(sum > 64 * 300 && sum < 64 * 700, "64 numbers below 1000 have the mean %llu",
          (unsigned long long)sum / 64);
    draw(12344, other); /* differs from 12345 in the lowest bit */
    CHECK(memcmp(first, other, sizeof(first)) != 0, "seeds 12344 and 12345 give one sequence");
}

int main(void)
{
    for (uint32_t reg = 0; reg < 4; reg++)
        rung_past(reg);
    for (uint32_t segment = 1; segment < 10; segment++) /* of the last, most is padding */
        written_in_part(segment, 1);
    written_in_part(4, 4);
    written_in_part(8, 3);
    seeds();
    right_protocol(100000);
    return 0;
}
