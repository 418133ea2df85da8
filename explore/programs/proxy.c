/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU threads push descriptors into a ring of two, a CPU thread takes them. It stands for the
 * proxy's worker and its device: what it does with a descriptor is to copy the payload, at once.
 */
#include <doorbell/impl/ring.h>

#include "programs.h"

#define DEPTH 2

struct memory {
    struct db_ring ring;
    struct db_ring_progress progress;
    struct db_descriptor slots[DEPTH] __attribute__((aligned(16)));
    uint64_t source[EX_THREADS * 4];
    uint64_t target[EX_THREADS * 4];
};

/* The steps of each variant, and whether it puts from memory. */
static const struct {
    uint32_t steps;
    bool from_memory;
} variants[] = {
    [EX_PROXY_BASELINE] = {DB_RING_BASELINE, true},
    [EX_PROXY_TUNED_VALUE] = {DB_RING_TUNED, false},
    [EX_PROXY_TUNED_PUT] = {DB_RING_TUNED | DB_RING_PAYLOAD, true},
    [EX_PROXY_TUNED_PUT_BARE] = {DB_RING_TUNED, true},
    [EX_PROXY_SHARED_VALUE] = {DB_RING_SHARED, false},
    [EX_PROXY_SHARED_PUT] = {DB_RING_SHARED | DB_RING_PAYLOAD, true},
    [EX_PROXY_ONE_VALID_BIT] = {DB_RING_TUNED, false},
};

static unsigned message_count(const struct ex_config *config)
{
    return config->threads * config->messages;
}

static void set_up(struct ex_model *model, void *object)
{
    struct memory *memory = object;
    struct db_ring *ring = &memory->ring;

    ex_ring_add(model, ring, memory->slots, DEPTH, &memory->progress);
    ring->producers = variants[model->config.variant].steps & DB_RING_ATOMIC ? DB_MANY_PRODUCERS
                                                                             : DB_ONE_PRODUCER;
    for (unsigned i = 0; i < message_count(&model->config); i++) {
        ex_word_add(model, &memory->source[i], model->config.ring, EX_NUMBER, 0, "source[%u]", i);
        ex_word_add(model, &memory->target[i], EX_HOST_MEMORY, EX_NUMBER, 0, "target[%u]", i);
    }
}

/* ---- The worker ---- */

static bool peek(const struct ex_config *config, struct memory *memory, uint64_t index,
                 struct db_descriptor *d)
{
    const uint64_t *half = memory->slots[index % DEPTH].half;

    if (config->variant != EX_PROXY_ONE_VALID_BIT)
        return db_ring_peek((const uint8_t *)memory->slots, DEPTH, index, d);
    d->half[0] = port_ld64(&half[0], PORT_ACQUIRE, PORT_SYSTEM);
    if ((d->half[0] & DB_RING_VALID) != db_ring_lap(index, DEPTH))
        return false;
    d->half[1] = port_ld64(&half[1], PORT_RELAXED, PORT_SYSTEM);
    return true;
}

static void work(const struct ex_config *config, struct memory *memory)
{
    struct db_descriptor d = {{0, 0}};

    for (uint64_t index = 0; index < message_count(config); index++) {
        ex_step(index);
        while (!peek(config, memory, index, &d))
            port_pause();
        uint64_t target = db_descriptor_window_offset(d) / 8, value;
        ex_check(target < message_count(config), "the descriptor names a word that there is");
        if (db_descriptor_op(d) == DB_RING_VALUE)
            value = db_descriptor_operand(d);
        else
            value = port_ld64(&memory->source[db_descriptor_region_offset(d) / 8], PORT_RELAXED,
                              PORT_SYSTEM);
        ex_check(value == 100 + target, "the payload is the one that was pushed");
        db_ring_publish_posted(&memory->progress, index + 1);
        port_st64(&memory->target[target], value, PORT_RELAXED, PORT_SYSTEM);
        db_ring_publish_completed(&memory->progress, index + 1);
    }
}

/* ---- Producers ---- */

static void run(const struct ex_config *config, void *object, unsigned thread)
{
    struct memory *memory = object;
    struct db_ring *ring = &memory->ring;
    struct db_ring_own own = ring->own;
    db_ring_aim(ring, &own);
    uint32_t steps = variants[config->variant].steps;
    uint64_t index = 0;

    if (thread == config->threads) {
        work(config, memory);
        return;
    }
    for (unsigned i = 0; i < config->messages; i++) {
        unsigned at = thread * config->messages + i;
        struct db_descriptor d = db_descriptor_value(DB_RING_VALUE, 0, at * 8, 100 + at);
        ex_step(i | own.next << 8 | own.limit << 16);
        if (variants[config->variant].from_memory) {
            port_st64(&memory->source[at], 100 + at, PORT_RELAXED, PORT_GPU);
            d = db_descriptor_memory(DB_RING_PUT, 0, 0, at * 8, 0, at * 8, 8);
        }
        if (steps == DB_RING_TUNED && db_ring_try_push(ring, &own, d, &index))
            continue;
        ex_check(db_ring_push(ring, &own, d, steps, &index) == DB_OK, "the push succeeds");
    }
    ex_step(1u << 30 | index);
    ex_check(db_ring_wait(ring, index) == DB_OK, "the wait succeeds");
    ex_step(1u << 31);
    unsigned last = (thread + 1) * config->messages - 1;
    ex_check(port_ld64(&memory->target[last], PORT_RELAXED, PORT_SYSTEM) == 100 + last,
             "what is complete has arrived");
}

static unsigned thread_count(const struct ex_config *config)
{
    return config->threads + 1;
}

const struct ex_program ex_proxy = {
    .name = "proxy",
    .text = "GPU threads push descriptors, a CPU thread takes them; ring of 2",
    .memory_bytes = sizeof(struct memory),
    .set_up = set_up,
    .run = run,
    .thread_count = thread_count,
    .cpu_threads = 1,
};
