/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: whatever the protocol, its steps, the number of producers (1 to 64), the depth (2 and up)
 * and the index that a ring starts at (before a wrap of 16 bits, of 32 bits, in either lap), each
 * descriptor is taken once, each producer's in the order of its pushes, with its payload visible.
 * Run under TSan as well, which sees every access that the protocol leaves unordered.
 */
#include <doorbell/impl/ring.h>
#include <pthread.h>
#include <sched.h>

#include "../check.h"

#define MAX_DEPTH   1024u
#define MAX_THREADS 64u
#define MESSAGES    6000u /* of all producers together */
#define TIMEOUT_NS  60000000000ull

#ifdef PORT_TSAN
__attribute__((weak)) uint32_t port_cpu_fence_word; /* the software device defines it otherwise */
#endif

/* The threads are more than the cores, so one that waits lets the others run. */
void port_cpu_pause(void)
{
    sched_yield();
}

struct run {
    uint32_t steps;
    uint32_t threads;
    uint32_t depth;
    uint64_t start;
    bool pairs; /* every other push is an operation behind its operand */

    struct db_ring ring;
    struct db_ring_progress progress;
    uint64_t *payload[MAX_THREADS]; /* [messages each], written plainly before the push */
};

struct producer {
    struct run *run;
    uint32_t id;
    uint32_t messages;
};

static _Alignas(64) uint8_t slots[MAX_DEPTH * sizeof(struct db_descriptor)];
static uint64_t payload[MAX_THREADS + MESSAGES];

/* Message `i` of a producer: which one and whose are its offset and its window. */
static int push(struct run *run, uint32_t steps, uint32_t id, uint32_t i, uint64_t *index)
{
    struct db_ring *ring = &run->ring;
    struct db_descriptor d =
        db_descriptor_memory(DB_RING_PUT, 0, id % DB_RING_PLACES, i, id / DB_RING_PLACES, i, 8);

    if (!run->pairs || i % 2) {
        if ((steps | DB_RING_PAYLOAD) == DB_RING_PAYLOAD && i % 3 == 0) {
            port_fence(PORT_RELEASE, PORT_SYSTEM); /* the payload; the push below has its own */
            if (db_ring_try_push(ring, &ring->own, d, index))
                return DB_OK;
        }
        return db_ring_push(ring, &ring->own, d, steps, index);
    }
    return db_ring_push_pair(ring, &ring->own, db_descriptor_value(DB_RING_OPERAND, 0, 0, i), d,
                             steps, index);
}

/* With each set of steps as the literal that it is in use. */
static int push_steps(struct run *run, uint32_t id, uint32_t i, uint64_t *index)
{
    switch (run->steps) {
#define STEPS(set)                                                                                 \
    case set:                                                                                      \
        return push(run, (set) | DB_RING_PAYLOAD, id, i, index)
        STEPS(0);
        STEPS(1);
        STEPS(2);
        STEPS(3);
        STEPS(4);
        STEPS(5);
        STEPS(6);
        STEPS(7);
#undef STEPS
    default:
        return DB_ERROR_INVALID;
    }
}

static void *produce(void *argument)
{
    const struct producer *producer = argument;
    struct run *run = producer->run;
    uint64_t index = 0;

    for (uint32_t i = 0; i < producer->messages; i++) {
        run->payload[producer->id][i] = (uint64_t)producer->id << 32 | i;
        int status = push_steps(run, producer->id, i, &index);
        CHECK(status == DB_OK, "steps %u, %u producers, depth %u: push %u of producer %u = %d",
              run->steps, run->threads, run->depth, i, producer->id, status);
    }
    int status = db_ring_wait(&run->ring, index);
    CHECK(status == DB_OK, "the wait of producer %u = %d", producer->id, status);
    return NULL;
}

static struct db_descriptor take(const struct run *run, uint64_t index)
{
    uint64_t deadline = port_now_ns() + TIMEOUT_NS;
    struct db_descriptor d;

    while (!db_ring_peek(run->ring.slots, run->depth, index, &d)) {
        CHECK(port_now_ns() < deadline, "descriptor %llu never came", (unsigned long long)index);
        port_pause();
    }
    return d;
}

static void consume(struct run *run, uint32_t messages)
{
    uint32_t next[MAX_THREADS] = {0};
    uint64_t index = run->start;

    for (uint32_t taken = 0; taken < messages; taken++) {
        struct db_descriptor d = take(run, index++);
        bool has_operand = db_descriptor_op(d) == DB_RING_OPERAND;
        uint64_t operand = db_descriptor_operand(d);
        if (has_operand)
            d = take(run, index++);
        uint32_t id = db_descriptor_region(d) * DB_RING_PLACES + db_descriptor_window(d);
        uint64_t i = db_descriptor_window_offset(d);
        CHECK(id < run->threads && i == next[id],
              "steps %u, %u producers, depth %u from %#llx: at index %llu came message %llu of "
              "producer %u instead of %u",
              run->steps, run->threads, run->depth, (unsigned long long)run->start,
              (unsigned long long)index - 1, (unsigned long long)i, id,
              id < run->threads ? next[id] : 0);
        CHECK(has_operand == (run->pairs && i % 2 == 0) && (!has_operand || operand == i),
              "the operand of message %llu is %llu", (unsigned long long)i,
              (unsigned long long)operand);
        CHECK(run->payload[id][i] == ((uint64_t)id << 32 | i), "the payload of message %llu",
              (unsigned long long)i);
        next[id]++;
        db_ring_publish_posted(&run->progress, index);
        db_ring_publish_completed(&run->progress, index);
    }
}

static void run_once(struct run *run)
{
    uint32_t each = MESSAGES / run->threads;
    struct producer producers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];

    run->ring = (struct db_ring){
        .slots = slots,
        .progress = &run->progress,
        .timeout_ns = TIMEOUT_NS,
        .depth = run->depth,
        .producers = run->steps & DB_RING_ATOMIC ? DB_MANY_PRODUCERS : DB_ONE_PRODUCER,
    };
    db_ring_clear(&run->ring, &run->progress, run->start);
    for (uint32_t id = 0; id < run->threads; id++) {
        run->payload[id] = payload + (size_t)id * each;
        producers[id] = (struct producer){run, id, each};
        CHECK(!pthread_create(&threads[id], NULL, produce, &producers[id]), "no thread");
    }
    consume(run, each * run->threads);
    for (uint32_t id = 0; id < run->threads; id++)
        pthread_join(threads[id], NULL);
    CHECK(db_ring_flush(&run->ring) == DB_OK, "flush");
}

static const uint64_t starts[] = {0, 65533, (1ull << 32) - 3, (1ull << 32) + 1, 0x7ffffffffffffff0};

int main(void)
{
    static const uint32_t depths[] = {2, 4, 64, MAX_DEPTH};
    static const uint32_t threads[] = {1, 2, 7, 64};
    struct run run = {0};
    uint32_t runs = 0;

    for (run.steps = 0; run.steps < 8; run.steps++)
        for (size_t t = 0; t < 4; t++)
            for (size_t d = 0; d < 4; d++) {
                run.threads = threads[t];
                run.depth = depths[d];
                if (run.threads > 1 && !(run.steps & DB_RING_ATOMIC))
                    continue;
                run.start = starts[(run.steps + t + d) % 5];
                run.pairs = (t + d) % 2;
                run_once(&run);
                runs++;
            }
    /* Every start in a ring of the least depth, where each is in another lap. */
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        for (uint32_t steps = 0; steps < 8; steps++) {
            run = (struct run){.steps = steps, .threads = 1, .depth = 2, .start = starts[i] | 1};
            run_once(&run);
            runs++;
        }
    printf("%u runs of %u messages\n", runs, MESSAGES);
    return 0;
}
