/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a ring whose worker has stopped ends every push and every wait at the ring's deadline, or
 * at once when the worker said why; one producer's ring is as it was and works again, one of many
 * producers is broken and says so; a push of more descriptors than the ring has is refused at once.
 * A push that only tries knows no more room than the last one that asked, and else does nothing.
 */
#include <string.h>

#include <doorbell/impl/ring.h>

#include "../check.h"

#define DEPTH      8u
#define TIMEOUT_NS 20000000ull
#define PATIENT_NS 5000000000ull

#ifdef PORT_TSAN
__attribute__((weak)) uint32_t port_cpu_fence_word; /* the software device defines it otherwise */
#endif

static _Alignas(64) uint8_t slots[DEPTH * sizeof(struct db_descriptor)];
static struct db_ring_progress progress;
static struct db_ring ring;

static void start(enum db_producers producers, uint64_t timeout_ns)
{
    ring = (struct db_ring){.slots = slots,
                            .progress = &progress,
                            .timeout_ns = timeout_ns,
                            .depth = DEPTH,
                            .producers = (uint32_t)producers};
    db_ring_clear(&ring, &progress, 3);
}

static int push(uint32_t steps, uint64_t *index)
{
    struct db_descriptor d = db_descriptor_value(DB_RING_VALUE, 0, 0, 42);
    return steps & DB_RING_ATOMIC ? db_ring_push(&ring, NULL, d, DB_RING_BASELINE, index)
                                  : db_ring_push(&ring, &ring.own, d, DB_RING_TUNED, index);
}

/* A status, and that it came neither before `least` nor long after `most` nanoseconds. */
static void expect(const char *what, int status, int want, uint64_t began, uint64_t least,
                   uint64_t most)
{
    uint64_t ns = port_now_ns() - began;
    CHECK(status == want, "%s = %d, wanted %d", what, status, want);
    CHECK(ns >= least && ns < most, "%s took %llu ns", what, (unsigned long long)ns);
}

static void fill(uint32_t steps)
{
    uint64_t index;
    for (uint32_t i = 0; i < DEPTH; i++) {
        int status = push(steps, &index);
        CHECK(status == DB_OK && index == 3 + i, "push %u = %d at %llu", i, status,
              (unsigned long long)index);
    }
}

static void one_producer(void)
{
    uint64_t index, began;

    start(DB_ONE_PRODUCER, TIMEOUT_NS);
    fill(DB_RING_TUNED);
    for (int again = 0; again < 2; again++) {
        began = port_now_ns();
        expect("a push into a full ring", push(0, &index), DB_ERROR_TIMEOUT, began, TIMEOUT_NS,
               PATIENT_NS);
    }
    began = port_now_ns();
    expect("a wait", db_ring_wait(&ring, 3), DB_ERROR_TIMEOUT, began, TIMEOUT_NS, PATIENT_NS);
    db_ring_publish_posted(&progress, 4);
    CHECK(push(0, &index) == DB_OK && index == 3 + DEPTH, "the freed slot is not used");
    began = port_now_ns();
    expect("a flush", db_ring_flush(&ring), DB_ERROR_TIMEOUT, began, TIMEOUT_NS, PATIENT_NS);
    db_ring_publish_completed(&progress, 4 + DEPTH);
    CHECK(db_ring_flush(&ring) == DB_OK, "the flush of a complete ring");
}

static void many_producers(void)
{
    uint64_t index, began;

    start(DB_MANY_PRODUCERS, TIMEOUT_NS);
    fill(DB_RING_BASELINE);
    began = port_now_ns();
    expect("a shared push into a full ring", push(DB_RING_ATOMIC, &index), DB_ERROR_BROKEN, began,
           TIMEOUT_NS, PATIENT_NS);
    ring.timeout_ns = 4 * PATIENT_NS;
    began = port_now_ns();
    expect("the next push", push(DB_RING_ATOMIC, &index), DB_ERROR_BROKEN, began, 0, PATIENT_NS);
    expect("a wait", db_ring_wait(&ring, 3), DB_ERROR_BROKEN, began, 0, PATIENT_NS);
}

/* What a worker tells reaches a waiting thread long before its deadline. */
static void told(enum db_producers producers, uint64_t word, int want)
{
    uint32_t steps = producers == DB_MANY_PRODUCERS ? DB_RING_BASELINE : DB_RING_TUNED;
    uint64_t index;

    start(producers, 4 * PATIENT_NS);
    fill(steps);
    db_ring_publish_error(&progress, word);
    db_ring_publish_error(&progress, DB_RING_STOPPED); /* the first one counts */
    uint64_t began = port_now_ns();
    expect("a wait on a failed ring", db_ring_wait(&ring, 3), want, began, 0, PATIENT_NS);
    expect("a push into it", push(steps, &index), want, began, 0, PATIENT_NS);
    CHECK(progress.error == word, "the word is %#llx", (unsigned long long)progress.error);
    CHECK(db_ring_flush(&ring) == want, "the flush");
}

static void too_many(void)
{
    uint64_t index;
    int status = DB_OK;

    start(DB_MANY_PRODUCERS, TIMEOUT_NS);
    CHECK(!db_ring_reserve(&ring, NULL, DEPTH + 1, DB_RING_SHARED, &index, &status) &&
              status == DB_ERROR_INVALID,
          "more slots than there are were reserved");
    CHECK(db_ring_reserve(&ring, NULL, DEPTH, DB_RING_SHARED, &index, &status) && index == 3,
          "all slots at once");
}

/* Tries as long as there is room that the producer knows of; returns how often there was. The try
 * that finds none does nothing. */
static uint32_t try_all(void)
{
    uint8_t before[sizeof(slots)];
    uint64_t limit = ring.own.limit;
    const struct db_descriptor d = db_descriptor_value(DB_RING_VALUE, 0, 0, 42);
    struct db_descriptor found;
    uint64_t index, next = ring.own.next;
    uint32_t pushed = 0;

    for (;;) {
        memcpy(before, slots, sizeof(before));
        if (pushed > DEPTH || !db_ring_try_push(&ring, &ring.own, d, &index))
            break;
        CHECK(index == next && ring.own.next == index + 1, "try %u is descriptor %llu", pushed,
              (unsigned long long)index);
        CHECK(db_ring_peek(slots, DEPTH, index, &found), "try %u is not in its slot", pushed);
        next++;
        pushed++;
    }
    CHECK(memcmp(before, slots, sizeof(before)) == 0 && ring.own.next == next &&
              ring.own.limit == limit,
          "a try that says no did something");
    return pushed;
}

static void trying(void)
{
    uint64_t index;

    start(DB_ONE_PRODUCER, TIMEOUT_NS);
    CHECK(try_all() == DEPTH, "not all of an empty ring was there for tries");
    db_ring_publish_posted(&progress, 3 + DEPTH / 2);
    CHECK(try_all() == 0, "a try asked for the worker's progress");
    CHECK(push(DB_RING_TUNED, &index) == DB_OK && index == 3 + DEPTH, "the push behind it");
    CHECK(try_all() == DEPTH / 2 - 1, "tries do not know what the push was told");
}

int main(void)
{
    one_producer();
    trying();
    many_producers();
    told(DB_ONE_PRODUCER, db_error_pack(3, M5_OP_WRITE, M5_SYN_REMOTE_ACCESS, 0), DB_ERROR_IO);
    told(DB_MANY_PRODUCERS, db_error_pack(3, M5_OP_WRITE, M5_SYN_REMOTE_ACCESS, 0), DB_ERROR_IO);
    told(DB_ONE_PRODUCER, DB_RING_WORKER_LOST, DB_ERROR_BROKEN);
    told(DB_MANY_PRODUCERS, DB_RING_STOPPED, DB_ERROR_BROKEN);
    too_many();
    printf("deadlines hold\n");
    return 0;
}
