/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: each queue without a doorbell record has a register that no other such queue rings at,
 * whatever kind of register was asked for, while others are made and destroyed by several threads;
 * it is at 0x600 of its UAR page, and works, forwarded or not. A kind that all queues share is
 * given once and then refused with what to do. Queues with a record share as before.
 */
#include "queue_ends.h"

#include <errno.h>
#include <pthread.h>
#include <softnic.h>
#include <string.h>

#define THREADS 4
#define QUEUES  48 /* of each thread */

static struct db_device *device;

/* ---- Registers of many ---- */

struct maker {
    pthread_t thread;
    struct db_queue *queues[QUEUES];
};

static void make(struct maker *maker, int i)
{
    /* Every third has a record, whose register is beside the others'. */
    struct db_queue_attr attr = {
        .depth = 4, .without_record = i % 3 != 0, .uar = i % 2 ? DB_UAR_BLUEFLAME : DB_UAR_DEFAULT};
    QUEUE_OK(db_queue_create(device, &attr, &maker->queues[i]));
}

static void *make_all(void *argument)
{
    struct maker *maker = argument;

    for (int i = 0; i < QUEUES; i++)
        make(maker, i);
    for (int i = 0; i < QUEUES; i += 5)
        db_queue_destroy(maker->queues[i]);
    for (int i = 0; i < QUEUES; i += 5)
        make(maker, i);
    return NULL;
}

static uintptr_t register_of(const struct maker *maker, int i)
{
    return (uintptr_t)db_queue_device_view(maker->queues[i])->doorbell;
}

static void many(void)
{
    static struct maker makers[THREADS];
    uintptr_t seen[THREADS * QUEUES];
    size_t count = 0;

    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&makers[t].thread, NULL, make_all, &makers[t]) == 0, "no thread");
    for (int t = 0; t < THREADS; t++)
        pthread_join(makers[t].thread, NULL);
    for (int t = 0; t < THREADS; t++) {
        for (int i = 0; i < QUEUES; i++) {
            uintptr_t reg = register_of(&makers[t], i);
            bool without_record = i % 3 != 0;
            CHECK(without_record ? reg % 4096 == 0x600 : reg % 4096 >= 0x800,
                  "queue %d rings at %#zx", i, (size_t)reg % 4096);
            for (size_t other = 0; other < count && without_record; other++)
                CHECK(seen[other] != reg, "two queues without a record ring at %#zx", (size_t)reg);
            if (without_record)
                seen[count++] = reg;
        }
    }
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < QUEUES; i++)
            db_queue_destroy(makers[t].queues[i]);
}

/* ---- The register that all share ---- */

static void shared_by_all(void)
{
    const struct db_queue_attr attr = {
        .depth = 4, .without_record = true, .uar = DB_UAR_NON_CACHED};
    const struct db_queue_attr with_record = {.depth = 4, .uar = DB_UAR_NON_CACHED};
    struct db_queue *first, *second, *third;

    for (int round = 0; round < 3; round++) {
        QUEUE_OK(db_queue_create(device, &attr, &first));
        CHECK(db_queue_create(device, &attr, &second) == -EBUSY && !second, "two share a register");
        CHECK(strstr(db_error_text(), "DB_UAR_DEFAULT"), "%s", db_error_text());
        QUEUE_OK(db_queue_create(device, &with_record, &second));
        QUEUE_OK(db_queue_create(device, &with_record, &third));
        db_queue_destroy(first);
        db_queue_destroy(second);
        db_queue_destroy(third);
    }
}

/* ---- They work ---- */

static void work(enum db_uar uar, bool forwarded)
{
    const struct db_queue_attr attr = {
        .depth = 16, .without_record = true, .uar = uar, .forwarded = forwarded};
    struct queue_ends ends;
    struct db_queue_info info;
    uint64_t index;

    queue_ends_start(&ends, &attr, 4096);
    QUEUE_OK(db_queue_query(ends.a.queue, &info));
    CHECK(info.without_record, "the queue does not say that it has no record");
    for (uint64_t i = 1; i < 500; i++) {
        struct queue_end *from = i % 3 ? &ends.a : &ends.b, *to = i % 3 ? &ends.b : &ends.a;
        QUEUE_OK(db_put_value(from->qp, to->keys.iova, to->keys.rkey, i, &index));
        if (forwarded)
            CHECK(db_queue_forward(from->queue) == 1, "there was no doorbell to forward");
        queue_wait(from->queue, index);
        CHECK(memcmp(to->buffer, &i, sizeof(i)) == 0, "value %llu did not arrive",
              (unsigned long long)i);
    }
    CHECK(ends.a.qp->record->send.raw == 0 && ends.b.qp->record->send.raw == 0,
          "a record was written");
    queue_ends_destroy(&ends);
}

int main(void)
{
    queue_strict(true);
    QUEUE_OK(db_device_open(SOFTNIC_DEVICE_NAME, NULL, &device));
    many();
    shared_by_all();
    db_device_close(device);
    for (enum db_uar uar = DB_UAR_DEFAULT; uar <= DB_UAR_BLUEFLAME; uar++) {
        work(uar, false);
        work(uar, true);
    }
    queue_expect_no_diagnostics();
    return 0;
}
