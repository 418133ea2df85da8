/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a descriptor in a ring that was empty waits for a batch for each four others that were
 * empty, whatever full rings hold, however long the queue pair has no room and whenever room comes;
 * a ring that is never empty waits for one batch of each other, and rings that are always full give
 * as much as each other where there is room for a batch at a time.
 *
 * The worker is the library's; the queue pair below it is a way of posting that this program plays.
 */
#include <string.h>

#include "proxy_rig.h"

#define RINGS  32u
#define BATCH  16u
#define LONELY 30u /* the ring with one descriptor */
#define FEW    3u
#define ROUNDS 40u

static struct lane {
    struct rig_ring rig;
    uint64_t posted; /* of its descriptors */
} lanes[RINGS];

static struct db_proxy proxy;

/* ---- The queue pair ---- */

static uint64_t may_complete; /* requests, of all */

static int post(struct db_pair *pair, const struct db_request *requests, uint32_t count)
{
    (void)pair;
    for (uint32_t i = 0; i < count; i++)
        lanes[requests[i].ring->number].posted++;
    return (int)count;
}

static int poll(struct db_pair *pair)
{
    pair->completed = may_complete < pair->posted ? may_complete : pair->posted;
    return 0;
}

static const struct db_post_way way = {.name = "played", .post = post, .poll = poll};

/* ---- The load ---- */

static void set_up(void)
{
    struct db_worker *worker = rig_worker(&proxy, &way, 64);

    may_complete = 0;
    for (uint32_t i = 0; i < RINGS; i++) {
        lanes[i].posted = 0;
        rig_ring(worker, &lanes[i].rig, i, RIG_DEPTH, DB_ONE_PRODUCER, 0);
    }
}

static void push(struct lane *lane)
{
    uint64_t index;
    int status = db_ring_push(&lane->rig.ring, &lane->rig.ring.own,
                              db_descriptor_value(DB_RING_VALUE, 0, 0, 1), DB_RING_TUNED, &index);
    CHECK(status == DB_OK, "a push = %d", status);
}

static void fill(uint32_t busy)
{
    for (uint32_t i = 0; i < busy; i++)
        while (lanes[i].rig.ring.own.next < lanes[i].rig.progress.posted + RIG_DEPTH)
            push(&lanes[i]);
}

/* Completes `room` requests after `idle` steps without any, and lets the worker step. */
static void round_of(uint32_t busy, uint32_t idle, uint32_t room)
{
    struct db_worker *worker = &proxy.workers[0];

    fill(busy);
    for (uint32_t i = 0; i < idle; i++)
        db_worker_step(worker);
    may_complete += room;
    while (db_worker_step(worker))
        fill(busy);
}

/* What was pushed to the lonely ring is posted before the others have more than `others`. */
static void expect_posted(uint32_t busy, uint32_t idle, uint32_t room, uint64_t others)
{
    const struct lane *lonely = &lanes[LONELY];
    const struct db_pair *pair = &proxy.workers[0].pair;
    uint64_t before = pair->posted - lonely->posted;

    while (lonely->posted < lonely->rig.ring.own.next) {
        uint64_t more = pair->posted - lonely->posted - before;
        CHECK(more <= others,
              "%u full rings, %u steps without room, %u at a time: %llu of the others were posted "
              "and a waiting one was not",
              busy, idle, room, (unsigned long long)more);
        round_of(busy, idle, room);
    }
}

static void check(uint32_t busy, uint32_t idle, uint32_t room)
{
    uint64_t least = UINT64_MAX, most = 0;

    set_up();
    for (uint32_t i = 0; i < ROUNDS; i++)
        round_of(busy, idle, room);
    /* Whoever's turn it is. */
    for (uint32_t phase = 0; phase <= busy; phase++) {
        push(&lanes[LONELY]);
        expect_posted(busy, idle, room, (RINGS / 4 + 1) * BATCH);
        for (uint32_t i = 0; i < busy + 2 + phase; i++)
            round_of(busy, idle, BATCH);
    }
    for (uint32_t i = 0; i < FEW; i++) /* one of them soon, the others in turn */
        push(&lanes[LONELY]);
    expect_posted(busy, idle, room, 2 * BATCH * (busy + 1));
    for (uint32_t i = 0; i < busy; i++)
        lanes[i].posted = 0;
    for (uint32_t i = 0; i < 4 * busy; i++)
        round_of(busy, idle, BATCH);
    for (uint32_t i = 0; i < busy; i++) {
        least = lanes[i].posted < least ? lanes[i].posted : least;
        most = lanes[i].posted > most ? lanes[i].posted : most;
    }
    CHECK(most - least <= 2 * BATCH,
          "%u full rings, %u steps without room, %u at a time: one had %llu posted, one %llu", busy,
          idle, room, (unsigned long long)most, (unsigned long long)least);
}

int main(void)
{
    for (uint32_t busy = 1; busy <= 17; busy += 4)
        for (uint32_t idle = 0; idle <= 48; idle++)
            for (uint32_t room = 1; room <= RIG_DEPTH; room *= 4)
                check(busy, idle, room);
    printf("a ring that is not full has its turn\n");
    return 0;
}
