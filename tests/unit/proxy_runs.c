/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: however far into a batch the completions come, each ring is told of exactly its own
 * operations that are complete, those with an operand and those without; and whichever operation
 * fails, the error names its opcode and its descriptor, and what was before it is told.
 *
 * The worker is the library's; the queue pair below it is a way of posting that this program plays.
 */
#include <string.h>

#include "proxy_rig.h"

#define ALL        UINT64_MAX
#define OPERATIONS (sizeof(script) / sizeof(script[0]))

/* What is pushed, in the order in which the worker takes it: ring 0 first, then ring 1. */
static const struct {
    uint32_t ring;
    enum db_ring_op op;
    enum m5_opcode opcode;
} script[] = {
    {0, DB_RING_PUT, M5_OP_WRITE},           {0, DB_RING_PUT, M5_OP_WRITE},
    {0, DB_RING_FETCH_ADD, M5_OP_ATOMIC_FA}, {0, DB_RING_FETCH_ADD, M5_OP_ATOMIC_FA},
    {0, DB_RING_FETCH_ADD, M5_OP_ATOMIC_FA}, {0, DB_RING_GET, M5_OP_READ},
    {0, DB_RING_PUT_IMM, M5_OP_WRITE_IMM},   {0, DB_RING_PUT, M5_OP_WRITE},
    {1, DB_RING_PUT_IMM, M5_OP_WRITE_IMM},   {1, DB_RING_PUT_IMM, M5_OP_WRITE_IMM},
    {1, DB_RING_VALUE, M5_OP_WRITE},         {1, DB_RING_VALUE, M5_OP_WRITE},
    {1, DB_RING_VALUE, M5_OP_WRITE},
};

/* ---- The queue pair ---- */

static uint32_t accepts; /* requests to a post, at most */
static uint64_t reaches; /* completions come so far */
static uint64_t fails;   /* the request that fails when they reach it */

static int post(struct db_pair *pair, const struct db_request *requests, uint32_t count)
{
    (void)pair;
    (void)requests;
    return (int)(count < accepts ? count : accepts);
}

static int poll(struct db_pair *pair)
{
    pair->completed = reaches < pair->posted ? reaches : pair->posted;
    if (pair->completed <= fails)
        return 0;
    pair->completed = fails;
    pair->syndrome = M5_SYN_REMOTE_ACCESS;
    return -EIO;
}

static const struct db_post_way way = {.name = "played", .post = post, .poll = poll};

/* ---- The rings ---- */

static struct rig_ring rings[2];
static uint64_t starts[2]; /* index of the first descriptor of each */
static struct db_proxy proxy;
static uint64_t behind[OPERATIONS]; /* index in its ring behind each operation's descriptors */

static void set_up(uint64_t first)
{
    struct db_worker *worker = rig_worker(&proxy, &way, 64);

    worker->next_run = worker->oldest_run = first; /* the runs wrap as well */
    for (uint32_t i = 0; i < 2; i++) {
        starts[i] = first + i;
        rig_ring(worker, &rings[i], i, RIG_DEPTH, DB_ONE_PRODUCER, starts[i]);
    }
}

static void push(size_t i)
{
    struct db_ring *ring = &rings[script[i].ring].ring;
    struct db_descriptor d = script[i].op == DB_RING_VALUE
                                 ? db_descriptor_value(DB_RING_VALUE, 0, 0, 42)
                                 : db_descriptor_memory(script[i].op, 0, 0, 0, 0, 0, 8);
    uint64_t index;
    int status;

    if (script[i].op == DB_RING_PUT_IMM || script[i].op == DB_RING_FETCH_ADD)
        status = db_ring_push_pair(ring, &ring->own, db_descriptor_value(DB_RING_OPERAND, 0, 0, 7),
                                   d, DB_RING_TUNED, &index);
    else
        status = db_ring_push(ring, &ring->own, d, DB_RING_TUNED, &index);
    CHECK(status == DB_OK, "push %zu = %d", i, status);
    behind[i] = index + 1;
}

/* Pushes the script and has it posted, at most `most` requests to a post. */
static void post_all(uint64_t first, uint32_t most)
{
    set_up(first);
    accepts = most;
    reaches = 0;
    fails = ALL;
    for (size_t i = 0; i < OPERATIONS; i++)
        push(i);
    while (proxy.workers[0].pair.posted < OPERATIONS)
        CHECK(db_worker_step(&proxy.workers[0]), "nothing was posted");
}

/* Each ring's producers see that `done` operations of the script are complete. */
static void expect_completed(uint64_t done)
{
    for (uint32_t ring = 0; ring < 2; ring++) {
        uint64_t want = starts[ring];
        for (size_t i = 0; i < done; i++)
            want = script[i].ring == ring ? behind[i] : want;
        CHECK(rings[ring].progress.completed == want, "%llu complete: ring %u has %llu, not %llu",
              (unsigned long long)done, ring, (unsigned long long)rings[ring].progress.completed,
              (unsigned long long)want);
    }
}

int main(void)
{
    struct db_worker *worker = &proxy.workers[0];

    for (uint32_t most = 1; most <= 16; most++) {
        for (uint32_t stride = 1; stride <= OPERATIONS; stride++) {
            post_all(RIG_DEPTH - 3, most);
            while (worker->pair.completed < OPERATIONS) {
                reaches += stride;
                db_worker_step(worker);
                expect_completed(reaches < OPERATIONS ? reaches : OPERATIONS);
            }
            CHECK(worker->oldest_run == worker->next_run, "runs were left");
        }
        for (uint64_t bad = 0; bad < OPERATIONS; bad++) {
            post_all(65536 - 3, most);
            reaches = OPERATIONS;
            fails = bad;
            db_worker_step(worker);
            expect_completed(bad);
            uint64_t want = db_error_pack((uint32_t)behind[bad] - 1, script[bad].opcode,
                                          M5_SYN_REMOTE_ACCESS, 0);
            for (uint32_t ring = 0; ring < 2; ring++)
                CHECK(rings[ring].progress.error == want, "request %llu failed: %#llx, not %#llx",
                      (unsigned long long)bad, (unsigned long long)rings[ring].progress.error,
                      (unsigned long long)want);
        }
    }
    printf("%zu operations in runs\n", OPERATIONS);
    return 0;
}
