/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A proxy's ring: GPU threads push descriptors (ring_format.h), a worker of the proxy takes them
 * and publishes its progress. The paper, section 4, "mini-proxy". Included by device.h, whose calls
 * come here for a proxied queue, and by the proxy's workers.
 *
 * A push reserves slots, waits for room in them and stores the descriptors. How it does so is the
 * protocol, a set of steps: DB_RING_BASELINE has them all, DB_RING_TUNED none, DB_RING_SHARED the
 * one that many producers need. A ring is used with or without DB_RING_ATOMIC, for its whole life.
 */
#ifndef DOORBELL_IMPL_RING_H
#define DOORBELL_IMPL_RING_H

#include "qp.h"
#include "ring_format.h"

/* Steps that cost time. The set is a literal, so that it folds. */
enum db_ring_step {
    DB_RING_ATOMIC = 1,  /* reserve with an atomic: any number of producers. Otherwise the one
                            producer counts by itself. */
    DB_RING_READ = 2,    /* read the worker's progress for each push. Otherwise only when what was
                            read last leaves no room. */
    DB_RING_RELEASE = 4, /* two stores with a system-scope release between them. Otherwise one store
                            of 16 bytes, which is valid in both halves or not yet there. */
    DB_RING_PAYLOAD = 8, /* first a system-scope release of what the caller wrote: where no
                            DB_RING_RELEASE does it, a payload in memory needs it. */
};

#define DB_RING_BASELINE (DB_RING_ATOMIC | DB_RING_READ | DB_RING_RELEASE)
#define DB_RING_TUNED    0u
#define DB_RING_SHARED   DB_RING_ATOMIC

enum db_producers {
    DB_ONE_PRODUCER,
    DB_MANY_PRODUCERS,
};

/* What the one producer knows. No other thread reads it, so its accesses are plain. */
struct db_ring_own {
    uint64_t next;  /* index of the next descriptor */
    uint64_t limit; /* slots below are free, by progress->posted as it was read last */
    /* What follows from `next`, known before the descriptor comes. Of a ring that was taken. */
    uint8_t *slot;
    uint32_t lap;
};

/* What many producers share. */
struct db_ring_many {
    uint64_t reserved; /* descriptors handed out to them */
    uint64_t seen;     /* at least one of them saw progress->posted there */
    uint64_t broken;   /* not 0: one gave up on slots that it had reserved */
};

struct db_ring {
    /* Constants, set before the first push. */
    uint8_t *slots; /* struct db_descriptor [depth], in host memory */
    const struct db_ring_progress *progress;
    struct db_ring_many *many; /* `shared` of this ring, or of the one that this is a copy of */
    uint64_t timeout_ns;       /* of every wait on this ring */
    uint32_t depth;            /* descriptors, a power of two, at least 2 */
    uint32_t producers;        /* enum db_producers */
    uint32_t baseline;         /* device.h pushes with all the steps */

    struct db_ring_own own __attribute__((aligned(128)));
    struct db_ring_many shared __attribute__((aligned(128)));
};

/* Constants that every push goes by, as they lie in a ring: struct db_qp_form says why. */
struct db_ring_form {
    uint32_t depth;
    uint32_t producers;
    uint32_t baseline;
    uint32_t unused;
} __attribute__((aligned(16), may_alias));
static_assert(offsetof(struct db_ring, depth) % 16 == 0 &&
                  offsetof(struct db_ring, baseline) - offsetof(struct db_ring, depth) ==
                      offsetof(struct db_ring_form, baseline),
              "a ring's constants lie as in struct db_ring_form");

/* To be called when own->next has changed. */
PORT_FN void db_ring_aim(const struct db_ring *ring, struct db_ring_own *own)
{
    own->slot = ring->slots + db_ring_slot(own->next, ring->depth);
    own->lap = (uint32_t)db_ring_lap(own->next, ring->depth);
}

/*
 * A copy of the ring on the stack, looked up at once, which the compiler keeps in registers, where
 * constants stay known however often the thread acquires. Its own counts are for the one producer,
 * who may push to the copy in a loop: until it is given back, nobody uses the ring itself. Of what
 * many producers share, the copy has the place.
 */
PORT_FN void db_ring_take(struct db_ring *here, const struct db_ring *ring)
{
    const uint8_t *form_at = (const uint8_t *)ring + offsetof(struct db_ring, depth);
    struct db_ring_form form = port_constant(*(const struct db_ring_form *)(const void *)form_at);
    here->slots = port_constant(ring->slots);
    here->progress = port_constant(ring->progress);
    here->many = port_constant(ring->many);
    here->timeout_ns = port_constant(ring->timeout_ns);
    here->depth = form.depth;
    here->producers = form.producers;
    here->baseline = form.baseline;
    here->own.next = port_ld_own64(&ring->own.next);
    here->own.limit = port_ld_own64(&ring->own.limit);
    db_ring_aim(here, &here->own);
}

PORT_FN void db_ring_give(struct db_ring *ring, const struct db_ring *here)
{
    port_st_own64(&ring->own.next, here->own.next);
    port_st_own64(&ring->own.limit, here->own.limit);
}

PORT_FN int db_ring_status(const struct db_ring *ring)
{
    uint64_t error = port_ld64(&ring->progress->error, PORT_RELAXED, PORT_SYSTEM);
    if (error == 0 && port_ld64(&ring->many->broken, PORT_RELAXED, PORT_GPU) == 0)
        return DB_OK;
    return error & DB_ERROR_VALID ? DB_ERROR_IO : DB_ERROR_BROKEN;
}

/* After a failed poll: DB_OK to go on, the ring's failure, or DB_ERROR_TIMEOUT. `shared`: the
 * worker may wait for another lane of the warp. `*deadline` is 0 until the clock was first looked
 * at. */
PORT_FN int db_ring_go_on(const struct db_ring *ring, bool shared, uint32_t polls,
                          uint64_t *deadline)
{
    if (polls % PORT_POLLS_PER_LOOK == 0) {
        int status = db_ring_status(ring);
        if (status)
            return status;
    }
    if (port_timed_out(polls, ring->timeout_ns, deadline))
        return DB_ERROR_TIMEOUT;
    port_pause_shared(shared);
    return DB_OK;
}

/* ---- Reserving ---- */

/* What the worker has posted, once that is enough. */
struct db_ring_room {
    int status;
    uint64_t posted;
};

/*
 * Waits until the worker has posted `least` descriptors. Pairs with the release in
 * db_ring_publish_posted(): the worker has read the slots before others are stored into them.
 * `acquire`: for one of many producers, since what was in the slots is another one's store. The one
 * producer stores behind its own stores into the same slots, and no machine makes a store visible
 * before the load that decided on it.
 *
 * Out of line, and all by value: so the code of a push is short, and a ring that was taken stays in
 * registers.
 */
PORT_COLD struct db_ring_room db_ring_wait_posted(const struct db_ring_progress *progress,
                                                  struct db_ring_many *many, uint64_t timeout_ns,
                                                  uint64_t least, bool acquire)
{
    struct db_ring_room room = {DB_OK, 0};
    struct db_ring ring;
    ring.progress = progress;
    ring.many = many;
    ring.timeout_ns = timeout_ns;
    uint64_t deadline = 0;
    for (uint32_t polls = 1;; polls++) {
        room.posted = acquire ? port_ld64(&progress->posted, PORT_ACQUIRE, PORT_SYSTEM)
                              : port_ld64(&progress->posted, PORT_RELAXED, PORT_SYSTEM);
        if (room.posted >= least)
            return room;
        room.status = db_ring_go_on(&ring, acquire, polls, &deadline);
        if (room.status)
            return room;
    }
}

/* Waits until the slots below `end`, more than were known to be, are free. */
PORT_FN struct db_ring_room db_ring_wait_room(const struct db_ring *ring, uint64_t end,
                                              bool acquire)
{
    return db_ring_wait_posted(ring->progress, ring->many, ring->timeout_ns, end - ring->depth,
                               acquire);
}

PORT_FN bool db_ring_reserve_own(const struct db_ring *ring, struct db_ring_own *own,
                                 uint32_t count, uint32_t steps, uint64_t *first, int *status)
{
    *first = own->next;
    if (steps & DB_RING_READ)
        own->limit = port_ld64(&ring->progress->posted, PORT_RELAXED, PORT_SYSTEM) + ring->depth;
    /* At most the ring's slots are free, so 32 bits tell how many. */
    if (PORT_UNLIKELY((uint32_t)(own->limit - own->next) < count)) {
        struct db_ring_room room = db_ring_wait_room(ring, own->next + count, false);
        *status = room.status;
        if (room.status)
            return false;
        own->limit = room.posted + ring->depth;
    }
    own->next += count;
    db_ring_aim(ring, own);
    return true;
}

PORT_FN int db_ring_reserve_many(struct db_ring *ring, uint32_t count, uint32_t steps,
                                 uint64_t *first)
{
    if (count > ring->depth)
        return DB_ERROR_INVALID;
    *first = port_add64(&ring->many->reserved, count);
    uint64_t end = *first + count;
    /* Acquire: the worker has read these slots, and what was stored into them before is behind
     * that. `posted` pairs with the release in db_ring_publish_posted(), `seen` with the one below,
     * of a producer that had acquired the same from `posted`. */
    uint64_t seen = steps & DB_RING_READ
                        ? port_ld64(&ring->progress->posted, PORT_ACQUIRE, PORT_SYSTEM)
                        : port_ld64(&ring->many->seen, PORT_ACQUIRE, PORT_GPU);
    if (end <= seen + ring->depth)
        return DB_OK;
    struct db_ring_room room = db_ring_wait_room(ring, end, true);
    if (room.status == DB_ERROR_TIMEOUT) {
        /* Others have reserved behind these slots, and the worker stops before them for ever. */
        port_st64(&ring->many->broken, 1, PORT_RELAXED, PORT_GPU);
        return DB_ERROR_BROKEN;
    }
    if (!room.status && !(steps & DB_RING_READ)) {
        /* Release: what `posted` told here, to the producers that acquire it with `seen`. */
        port_fence(PORT_RELEASE, PORT_GPU);
        port_max64(&ring->many->seen, room.posted);
    }
    return room.status;
}

/*
 * Reserves `count` slots in a row and waits until they are free. When it could not it returns
 * false, and `*status` is DB_ERROR_TIMEOUT (nothing was reserved; one producer), DB_ERROR_BROKEN
 * (the ring is of no more use), DB_ERROR_IO, or DB_ERROR_INVALID for more slots than the ring has
 * (many producers). `own` is for the one producer. (A truth value for the reason that
 * db_owner_claim() gives.)
 */
PORT_FN bool db_ring_reserve(struct db_ring *ring, struct db_ring_own *own, uint32_t count,
                             uint32_t steps, uint64_t *first, int *status)
{
    if (!(steps & DB_RING_ATOMIC))
        return db_ring_reserve_own(ring, own, count, steps, first, status);
    *status = db_ring_reserve_many(ring, count, steps, first);
    return !*status;
}

/* ---- Storing ---- */

PORT_FN void db_ring_store(const struct db_ring *ring, uint64_t index, struct db_descriptor d,
                           uint32_t steps)
{
    uint8_t *slot = ring->slots + db_ring_slot(index, ring->depth);
    uint64_t lap = db_ring_lap(index, ring->depth);
    if (steps & DB_RING_RELEASE) {
        uint64_t *half = (uint64_t *)(void *)slot;
        port_st64(&half[1], d.half[1] | lap, PORT_RELAXED, PORT_SYSTEM);
        /* Visible before the first half: the second, and the payload. Pairs with the acquire in
         * db_ring_peek(). */
        port_fence(PORT_RELEASE, PORT_SYSTEM);
        port_st64(&half[0], d.half[0] | lap, PORT_RELAXED, PORT_SYSTEM);
    } else {
        port_st16_shared(slot, d.half[0] | lap, d.half[1] | lap);
    }
}

/* Pushes one descriptor; `*index` names it for db_ring_wait(). Returns DB_OK or a status of
 * db_ring_reserve(). */
PORT_FN int db_ring_push(struct db_ring *ring, struct db_ring_own *own, struct db_descriptor d,
                         uint32_t steps, uint64_t *index)
{
    int status = DB_OK;
    if (!db_ring_reserve(ring, own, 1, steps, index, &status))
        return status;
    if (steps & DB_RING_PAYLOAD) /* visible to the NIC before the descriptor: the payload */
        port_fence(PORT_RELEASE, PORT_SYSTEM);
    db_ring_store(ring, *index, d, steps);
    return DB_OK;
}

/*
 * The one producer's tuned push, where there is room by what it knows already; it asks nobody and
 * waits for nothing. False: nothing was done, and db_ring_push() reads the worker's progress. A
 * payload in memory must have been released before, at system scope.
 *
 * The store is conditional instead of behind a branch, and where it goes is known from the push
 * before.
 */
PORT_FN bool db_ring_try_push(const struct db_ring *ring, struct db_ring_own *own,
                              struct db_descriptor d, uint64_t *index)
{
    bool room = (uint32_t)own->limit != (uint32_t)own->next;
    *index = own->next;
    port_st16_shared_if(room, own->slot, d.half[0] | own->lap, d.half[1] | own->lap);
    own->next += room;
    db_ring_aim(ring, own);
    return room;
}

/* The same for an operation behind its operand. */
PORT_FN int db_ring_push_pair(struct db_ring *ring, struct db_ring_own *own,
                              struct db_descriptor operand, struct db_descriptor d, uint32_t steps,
                              uint64_t *index)
{
    uint64_t first;
    int status = DB_OK;
    if (!db_ring_reserve(ring, own, 2, steps, &first, &status))
        return status;
    *index = first + 1;
    if (steps & DB_RING_PAYLOAD)
        port_fence(PORT_RELEASE, PORT_SYSTEM);
    db_ring_store(ring, first, operand, steps);
    db_ring_store(ring, *index, d, steps);
    return DB_OK;
}

/* One descriptor of every lane of `mask`, each its own: one reservation for all. `steps` has
 * DB_RING_ATOMIC. All lanes named must call; each gets its own `*index` and the same status. */
PORT_FN int db_ring_push_warp(struct db_ring *ring, uint32_t mask, struct db_descriptor d,
                              uint32_t steps, uint64_t *index)
{
    unsigned lane = port_lane(), leader = port_first_lane(mask);
    uint64_t first = 0;
    int status = DB_OK;
    if (lane == leader)
        status = db_ring_reserve_many(ring, port_count_lanes(mask), steps, &first);
    first = port_broadcast64(mask, first, leader);
    status = (int)(int64_t)port_broadcast64(mask, (uint64_t)(int64_t)status, leader);
    *index = first + port_count_lanes(mask & ((1u << lane) - 1));
    if (status)
        return status;
    /* What the leader acquired, that these slots are free, every lane has behind this barrier: a
     * broadcast orders nothing. */
    port_syncwarp(mask);
    if (steps & DB_RING_PAYLOAD)
        port_fence(PORT_RELEASE, PORT_SYSTEM);
    db_ring_store(ring, *index, d, steps);
    return DB_OK;
}

/* ---- Completion ---- */

/*
 * Waits until the operation at `index` is complete, by any number of threads. Returns DB_OK,
 * DB_ERROR_IO or DB_ERROR_BROKEN when the ring failed before, DB_ERROR_TIMEOUT after its timeout;
 * the wait may be repeated then.
 */
PORT_FN int db_ring_wait(const struct db_ring *ring, uint64_t index)
{
    bool shared = ring->producers != DB_ONE_PRODUCER;
    /* Looked up once: behind a poll's acquire it would come from the L2 again. */
    const uint64_t *completed = &ring->progress->completed;
    uint64_t deadline = 0;
    /* Acquire: pairs with the release in db_ring_publish_completed(); what the NIC wrote for the
     * operation is visible. */
    for (uint32_t polls = 1; port_ld64(completed, PORT_ACQUIRE, PORT_SYSTEM) <= index; polls++) {
        int status = db_ring_go_on(ring, shared, polls, &deadline);
        if (status)
            return status;
    }
    return DB_OK;
}

/* Waits for everything pushed so far; of many producers, by those whose pushes have returned. */
PORT_FN int db_ring_flush(const struct db_ring *ring)
{
    uint64_t end = ring->producers == DB_ONE_PRODUCER
                       ? ring->own.next
                       : port_ld64(&ring->many->reserved, PORT_RELAXED, PORT_GPU);
    return end == 0 ? db_ring_status(ring) : db_ring_wait(ring, end - 1);
}

/* ---- The worker's side ---- */

/* Is descriptor `index` there? Then `*d` is it, and its payload is visible. */
PORT_FN bool db_ring_peek(const uint8_t *slots, uint32_t depth, uint64_t index,
                          struct db_descriptor *d)
{
    const uint64_t *half = (const uint64_t *)(const void *)(slots + db_ring_slot(index, depth));
    uint64_t lap = db_ring_lap(index, depth);
    /* Acquire: pairs with the release in db_ring_store() or before it. */
    d->half[0] = port_ld64(&half[0], PORT_ACQUIRE, PORT_SYSTEM);
    if ((d->half[0] & DB_RING_VALID) != lap)
        return false;
    d->half[1] = port_ld64(&half[1], PORT_RELAXED, PORT_SYSTEM);
    return (d->half[1] & DB_RING_VALID) == lap;
}

/* Gives the slots below `end` back. Release: they were read before. */
PORT_FN void db_ring_publish_posted(struct db_ring_progress *progress, uint64_t end)
{
    port_st64(&progress->posted, end, PORT_RELEASE, PORT_SYSTEM);
}

/* Tells that the operations below `end` are complete. Release: what the NIC wrote for them, which
 * the worker acquired with their CQE. */
PORT_FN void db_ring_publish_completed(struct db_ring_progress *progress, uint64_t end)
{
    port_st64(&progress->completed, end, PORT_RELEASE, PORT_SYSTEM);
}

/* Tells the first failure of the ring; later ones are its consequences. */
PORT_FN void db_ring_publish_error(struct db_ring_progress *progress, uint64_t error)
{
    if (port_ld64(&progress->error, PORT_RELAXED, PORT_SYSTEM) == 0)
        port_st64(&progress->error, error, PORT_RELEASE, PORT_SYSTEM);
}

/* An empty ring at `index`, whose slots look as the lap before left them. */
PORT_FN void db_ring_clear(struct db_ring *ring, struct db_ring_progress *progress, uint64_t index)
{
    for (uint32_t i = 0; i < ring->depth; i++) {
        uint64_t other = db_ring_lap(index + i, ring->depth) ^ DB_RING_VALID;
        uint8_t *slot = ring->slots + db_ring_slot(index + i, ring->depth);
        port_st16_shared(slot, other, other);
    }
    port_st64(&progress->posted, index, PORT_RELAXED, PORT_SYSTEM);
    port_st64(&progress->completed, index, PORT_RELAXED, PORT_SYSTEM);
    port_st64(&progress->error, 0, PORT_RELAXED, PORT_SYSTEM);
    ring->many = &ring->shared;
    ring->own.next = index;
    ring->own.limit = index + ring->depth;
    db_ring_aim(ring, &ring->own);
    port_st64(&ring->many->reserved, index, PORT_RELAXED, PORT_GPU);
    port_st64(&ring->many->seen, index, PORT_RELAXED, PORT_GPU);
    port_st64(&ring->many->broken, 0, PORT_RELEASE, PORT_SYSTEM);
}

#endif
