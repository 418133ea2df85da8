/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A proxy's worker without a thread, and rings that it serves: for the programs that play the queue
 * pair below it with a way of posting of their own, and call db_worker_step() in its place.
 */
#ifndef DOORBELL_TESTS_PROXY_RIG_H
#define DOORBELL_TESTS_PROXY_RIG_H

#include "../../src/proxy.h"
#include "../check.h"

#define RIG_DEPTH      64u /* requests in flight, and at most the descriptors of a ring */
#define RIG_TIMEOUT_NS 1000000000ull

#ifdef PORT_TSAN
__attribute__((weak)) uint32_t port_cpu_fence_word; /* the software device defines it otherwise */
#endif

struct rig_ring {
    struct db_ring ring; /* as producers see it */
    struct db_ring_progress progress;
    struct db_proxy_ring served;
    _Alignas(64) uint8_t slots[RIG_DEPTH * sizeof(struct db_descriptor)];
};

/* The one worker, in batches of 16, of a proxy whose region and window 0 are `bytes` at 0. */
static inline struct db_worker *rig_worker(struct db_proxy *proxy, const struct db_post_way *way,
                                           uint64_t bytes)
{
    static struct db_run run[RIG_DEPTH];
    struct db_worker *worker = &proxy->workers[0];

    *proxy = (struct db_proxy){.worker_count = 1, .attr.batch = 16};
    proxy->windows.at[0] = proxy->regions.at[0] = (struct db_place){0, bytes, 0};
    proxy->windows.count = proxy->regions.count = 1;
    *worker = (struct db_worker){
        .proxy = proxy, .number = 1, .run = run, .pair = {.way = way, .depth = RIG_DEPTH}};
    return worker;
}

/* Ring `number` of the worker's, empty, whose first descriptor has index `first`. */
static inline void rig_ring(struct db_worker *worker, struct rig_ring *rig, uint32_t number,
                            uint32_t depth, enum db_producers producers, uint64_t first)
{
    rig->ring = (struct db_ring){.slots = rig->slots,
                                 .progress = &rig->progress,
                                 .timeout_ns = RIG_TIMEOUT_NS,
                                 .depth = depth,
                                 .producers = (uint32_t)producers};
    db_ring_clear(&rig->ring, &rig->progress, first);
    rig->served = (struct db_proxy_ring){.worker = worker,
                                         .number = number,
                                         .depth = depth,
                                         .slots = rig->slots,
                                         .progress = &rig->progress,
                                         .next = first,
                                         .posted = first,
                                         .completed = first};
    worker->rings[number] = &rig->served;
    worker->served |= 1u << number;
}

#endif
