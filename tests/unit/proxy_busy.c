/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim (case C09): a million descriptors through a worker whose queue pair says "busy" at random,
 * or takes only part of a batch: each is posted once and in the order of its ring, the index that a
 * ring's producers see never passes a descriptor that was not posted, and no completion is told
 * before it came. The seed is printed.
 *
 * The worker is the library's; the queue pair below it is a way of posting that this program plays.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "proxy_rig.h"

#define OWN_RINGS  5u /* of one producer each */
#define MANY_RINGS 2u /* of PRODUCERS each */
#define RINGS      (OWN_RINGS + MANY_RINGS)
#define PRODUCERS  3u
#define THREADS    (OWN_RINGS + MANY_RINGS * PRODUCERS)
#define TOTAL      1000000u
#define EACH       (TOTAL / THREADS + 1)
#define TIMEOUT_NS 120000000000ull

/* The threads are more than the cores, so one that waits lets the others run. */
void port_cpu_pause(void)
{
    sched_yield();
}

/* One ring, and what the queue pair below has seen of it. */
struct lane {
    struct rig_ring rig;
    uint64_t accepted;        /* atomic: descriptors that the queue pair took */
    uint64_t done;            /* atomic: of them, complete */
    uint64_t next[PRODUCERS]; /* value that each producer's next descriptor has */
};

static struct lane lanes[RINGS];
static uint64_t random_state;
static struct {
    struct lane *lane;
    uint64_t end;
} in_flight[RIG_DEPTH];
static uint32_t busy, partial;

static uint32_t next_random(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static void check_posted(const struct lane *lane)
{
    uint64_t posted = __atomic_load_n(&lane->rig.progress.posted, __ATOMIC_ACQUIRE);
    uint64_t accepted = __atomic_load_n(&lane->accepted, __ATOMIC_ACQUIRE);
    CHECK(posted <= accepted, "ring %zu: its producers see %llu posted, and %llu were",
          (size_t)(lane - lanes), (unsigned long long)posted, (unsigned long long)accepted);
}

/* ---- The queue pair ---- */

static void accept(const struct db_pair *pair, const struct db_request *request, uint64_t number)
{
    struct lane *lane = &lanes[request->raddr];
    uint32_t producer = (uint32_t)(request->operand >> 32);
    uint64_t value = (uint32_t)request->operand;

    CHECK(request->ring == &lane->rig.served, "a request of ring %llu came from another",
          (unsigned long long)request->raddr);
    CHECK(request->end == lane->accepted + 1, "ring %llu: index %llu was posted behind %llu",
          (unsigned long long)request->raddr, (unsigned long long)request->end - 1,
          (unsigned long long)lane->accepted - 1);
    CHECK(value == lane->next[producer], "ring %llu, producer %u: %llu instead of %llu",
          (unsigned long long)request->raddr, producer, (unsigned long long)value,
          (unsigned long long)lane->next[producer]);
    CHECK(number - pair->completed < pair->depth, "more in flight than the queue pair is deep");
    lane->next[producer]++;
    in_flight[number % RIG_DEPTH].lane = lane;
    in_flight[number % RIG_DEPTH].end = request->end;
    __atomic_store_n(&lane->accepted, request->end, __ATOMIC_RELEASE);
}

static int post(struct db_pair *pair, const struct db_request *requests, uint32_t count)
{
    uint32_t taken = next_random(3) ? count : next_random(count + 1);

    for (uint32_t i = 0; i < RINGS; i++)
        check_posted(&lanes[i]);
    for (uint32_t i = 0; i < taken; i++)
        accept(pair, &requests[i], pair->posted + i);
    busy += taken == 0;
    partial += taken > 0 && taken < count;
    return (int)taken;
}

static int poll(struct db_pair *pair)
{
    uint64_t end = pair->completed + next_random((uint32_t)(pair->posted - pair->completed) + 1);

    for (; pair->completed < end; pair->completed++) {
        uint64_t slot = pair->completed % RIG_DEPTH;
        __atomic_store_n(&in_flight[slot].lane->done, in_flight[slot].end, __ATOMIC_RELEASE);
    }
    return 0;
}

static const struct db_post_way way = {.name = "busy at random", .post = post, .poll = poll};

/* ---- The threads ---- */

static void *produce(void *argument)
{
    uint32_t thread = (uint32_t)(uintptr_t)argument;
    bool own = thread < OWN_RINGS;
    uint32_t number = own ? thread : OWN_RINGS + (thread - OWN_RINGS) / PRODUCERS;
    uint64_t producer = own ? 0 : (thread - OWN_RINGS) % PRODUCERS;
    struct lane *lane = &lanes[number];
    uint64_t index = 0;

    for (uint64_t i = 0; i < EACH; i++) {
        struct db_descriptor d = db_descriptor_value(DB_RING_VALUE, 0, number, producer << 32 | i);
        int status =
            own ? db_ring_push(&lane->rig.ring, &lane->rig.ring.own, d, DB_RING_TUNED, &index)
                : db_ring_push(&lane->rig.ring, NULL, d, DB_RING_BASELINE, &index);
        CHECK(status == DB_OK, "push %llu of thread %u = %d", (unsigned long long)i, thread,
              status);
        check_posted(lane);
    }
    int status = db_ring_wait(&lane->rig.ring, index);
    CHECK(status == DB_OK, "the wait of thread %u = %d", thread, status);
    CHECK(__atomic_load_n(&lane->done, __ATOMIC_ACQUIRE) > index,
          "thread %u was told of a completion that had not come", thread);
    return NULL;
}

static struct db_worker *set_up(struct db_proxy *proxy)
{
    struct db_worker *worker = rig_worker(proxy, &way, RINGS + 8);

    for (uint32_t i = 0; i < RINGS; i++) {
        rig_ring(worker, &lanes[i].rig, i, i % 2 ? RIG_DEPTH : 4,
                 i < OWN_RINGS ? DB_ONE_PRODUCER : DB_MANY_PRODUCERS, 0);
        lanes[i].rig.ring.timeout_ns = TIMEOUT_NS;
    }
    return worker;
}

int main(void)
{
    static struct db_proxy proxy;
    pthread_t threads[THREADS];

    random_state = (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)random_state);
    struct db_worker *worker = set_up(&proxy);
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, produce, (void *)(uintptr_t)i), "no thread");
    uint64_t deadline = port_now_ns() + TIMEOUT_NS;
    while (worker->pair.completed < (uint64_t)EACH * THREADS) {
        if (db_worker_step(worker))
            continue;
        CHECK(port_now_ns() < deadline, "only %llu requests are complete",
              (unsigned long long)worker->pair.completed);
        port_pause();
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(!db_worker_has_work(worker) && worker->pair.posted == (uint64_t)EACH * THREADS,
          "%llu requests were posted", (unsigned long long)worker->pair.posted);
    for (uint32_t i = 0; i < RINGS; i++)
        for (uint32_t p = 0; p < (i < OWN_RINGS ? 1 : PRODUCERS); p++)
            CHECK(lanes[i].next[p] == EACH, "ring %u, producer %u: %llu came", i, p,
                  (unsigned long long)lanes[i].next[p]);
    CHECK(busy > 0 && partial > 0, "the queue pair was never busy");
    printf("%u descriptors, busy %u times, part of a batch %u times\n", EACH * THREADS, busy,
           partial);
    return 0;
}
