/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of device.h on a proxied queue: from a put to what the proxy's worker does. The worker
 * is the one of proxy.c, which here also adds and looks at both tables: windows of the peer,
 * regions of ours.
 */
#include <doorbell/device.h>

#include "programs.h"

#define DEPTH 2

enum {
    MOST = 8, /* operations of all threads */
    FIRST_SUM = 7,
    ADDEND = 1000,
    IMMEDIATE = 3,
    VALUE = 101, /* odd, so that its lowest bit travels too */
};

/* Places in the proxy's tables. */
enum {
    TARGETS, /* windows */
    SUMS,
    SOURCES = 0, /* regions */
    OLDS,
};

struct memory {
    struct db_qp qp;
    struct db_ring ring;
    struct db_ring_progress progress;
    struct db_descriptor slots[DEPTH] __attribute__((aligned(16)));
    uint64_t source[MOST], target[MOST], sum[MOST], old[MOST];
};

static unsigned operation_count(const struct ex_config *config)
{
    switch (config->variant) {
    case EX_PROXIED_ONE:
        return 4;
    case EX_PROXIED_FETCH_ADD:
        return config->threads;
    case EX_PROXIED_WARP:
        return config->threads * config->messages + 1;
    default:
        return config->threads * 2;
    }
}

/* A fetch-and-add takes two, and so does a put with immediate. */
static unsigned descriptor_count(const struct ex_config *config)
{
    unsigned count = operation_count(config);

    return config->variant == EX_PROXIED_ONE         ? count + 2
           : config->variant == EX_PROXIED_FETCH_ADD ? 2 * count
                                                     : count;
}

static void set_up(struct ex_model *model, void *object)
{
    struct memory *memory = object;
    struct db_ring *ring = &memory->ring;
    unsigned variant = model->config.variant;

    ex_ring_add(model, ring, memory->slots, DEPTH, &memory->progress);
    ring->producers = variant == EX_PROXIED_ONE ? DB_ONE_PRODUCER : DB_MANY_PRODUCERS;
    ring->baseline = variant == EX_PROXIED_BASELINE;
    memory->qp.ring = ring;
    /* What an owner looks up together with the ring; nobody writes them. */
    const uint64_t *const words[] = {&memory->qp.post.claimed, &memory->qp.post.published,
                                     &memory->qp.done.completed, &memory->qp.done.consumed};
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        ex_word_add(model, words[i], EX_GPU_MEMORY, EX_NUMBER, 0, "word[%u]", i);
    for (unsigned i = 0; i < operation_count(&model->config); i++) {
        ex_word_add(model, &memory->source[i], model->config.ring, EX_NUMBER, 0, "source[%u]", i);
        ex_word_add(model, &memory->target[i], EX_HOST_MEMORY, EX_NUMBER, 0, "target[%u]", i);
        ex_word_add(model, &memory->sum[i], EX_HOST_MEMORY, EX_NUMBER, FIRST_SUM + i, "sum[%u]", i);
        ex_word_add(model, &memory->old[i], model->config.ring, EX_NUMBER, 0, "old[%u]", i);
    }
}

/* ---- The worker ---- */

static void execute(const struct ex_config *config, struct memory *memory, struct db_descriptor d,
                    uint64_t operand)
{
    uint64_t remote = db_descriptor_window_offset(d) / 8,
             local = db_descriptor_region_offset(d) / 8;
    uint32_t op = db_descriptor_op(d), window = op == DB_RING_FETCH_ADD ? SUMS : TARGETS;
    uint64_t value = db_descriptor_operand(d);

    ex_check(remote < operation_count(config) && db_descriptor_window(d) == window,
             "the descriptor names a word that there is");
    if (op == DB_RING_VALUE) {
        port_st64(&memory->target[remote], value, PORT_RELAXED, PORT_SYSTEM);
        return;
    }
    ex_check(local == remote &&
                 db_descriptor_region(d) == (op == DB_RING_FETCH_ADD ? OLDS : SOURCES) &&
                 db_descriptor_bytes(d) == 8,
             "the descriptor names the local word that goes with it");
    if (op != DB_RING_FETCH_ADD) {
        value = port_ld64(&memory->source[local], PORT_RELAXED, PORT_SYSTEM);
        ex_check(value == VALUE + local, "the payload is the one that was put");
        port_st64(&memory->target[remote], value, PORT_RELAXED, PORT_SYSTEM);
        return;
    }
    value = port_ld64(&memory->sum[remote], PORT_RELAXED, PORT_SYSTEM);
    port_st64(&memory->old[local], value, PORT_RELAXED, PORT_SYSTEM);
    port_st64(&memory->sum[remote], value + operand, PORT_RELAXED, PORT_SYSTEM);
}

static void work(const struct ex_config *config, struct memory *memory)
{
    struct db_descriptor d = {{0, 0}};
    uint64_t operand = 0; /* of the descriptor behind it; 0: there is none */

    for (uint64_t index = 0; index < descriptor_count(config); index++) {
        ex_step(index | operand << 32);
        while (!db_ring_peek((const uint8_t *)memory->slots, DEPTH, index, &d))
            port_pause();
        db_ring_publish_posted(&memory->progress, index + 1);
        uint32_t op = db_descriptor_op(d);
        ex_check((op == DB_RING_FETCH_ADD || op == DB_RING_PUT_IMM) == (operand != 0),
                 "an operand is its operation's");
        if (op != DB_RING_OPERAND)
            execute(config, memory, d, operand);
        operand = op == DB_RING_OPERAND ? db_descriptor_operand(d) : 0;
        db_ring_publish_completed(&memory->progress, index + 1);
    }
}

/* ---- The GPU's threads ---- */

static void store_payload(struct memory *memory, unsigned i)
{
    port_st64(&memory->source[i], VALUE + i, PORT_RELAXED, PORT_GPU);
}

/* What operation `i` put has arrived. */
static void look_at_target(const struct memory *memory, unsigned i)
{
    ex_check(port_ld64(&memory->target[i], PORT_RELAXED, PORT_SYSTEM) == VALUE + i,
             "what is complete has arrived");
}

static void look_at_old(const struct memory *memory, unsigned i)
{
    ex_check(port_ld64(&memory->old[i], PORT_RELAXED, PORT_SYSTEM) == FIRST_SUM + i,
             "what the fetch-and-add returned is there");
}

/* The one producer. What it counts by itself is its own, so it lies on the stack here. */
static void run_one(struct memory *memory)
{
    struct db_ring ring;
    struct db_qp *qp = &memory->qp;
    uint64_t index;

    db_ring_take(&ring, &memory->ring);
    qp->ring = &ring;
    ex_check(db_put_value(qp, 0, TARGETS, VALUE, &index) == DB_OK, "the put succeeds");
    ex_step(1u << 24 | ring.own.next << 8 | ring.own.limit);
    store_payload(memory, 1);
    ex_check(db_put(qp, 8, TARGETS, 8, SOURCES, 8, &index) == DB_OK, "the put succeeds");
    ex_step(2u << 24 | ring.own.next << 8 | ring.own.limit);
    ex_check(db_fetch_add(qp, 16, SUMS, 16, OLDS, ADDEND, &index) == DB_OK, "the add succeeds");
    ex_step(3u << 24 | ring.own.next << 8 | ring.own.limit);
    store_payload(memory, 3);
    ex_check(db_put_imm(qp, 24, TARGETS, 24, SOURCES, 8, IMMEDIATE, &index) == DB_OK,
             "the put succeeds");
    ex_step(4u << 24 | ring.own.next << 8 | ring.own.limit);
    ex_check(db_flush(qp) == DB_OK, "the wait succeeds");
    ex_step(5u << 24);
    look_at_target(memory, 0);
    look_at_target(memory, 1);
    look_at_old(memory, 2);
    look_at_target(memory, 3);
}

/* One of several: a put from memory, a value, and a wait for all. */
static void run_shared(struct memory *memory, unsigned thread)
{
    unsigned i = 2 * thread;
    uint64_t index;

    store_payload(memory, i);
    ex_check(db_put_shared(&memory->qp, i * 8, TARGETS, i * 8, SOURCES, 8, &index) == DB_OK,
             "the put succeeds");
    ex_step(1);
    ex_check(db_put_value_shared(&memory->qp, (i + 1) * 8, TARGETS, VALUE + i + 1, &index) == DB_OK,
             "the put succeeds");
    ex_step(2);
    ex_check(db_flush_shared(&memory->qp) == DB_OK, "the wait succeeds");
    ex_step(3);
    look_at_target(memory, i);
    look_at_target(memory, i + 1);
}

static void run_fetch_add(struct memory *memory, unsigned thread)
{
    uint64_t at = thread * 8, index = 0;

    ex_check(db_fetch_add(&memory->qp, at, SUMS, at, OLDS, ADDEND, &index) == DB_OK,
             "the add succeeds");
    ex_step(1u << 8 | index);
    ex_check(db_wait_shared(&memory->qp, index) == DB_OK, "the wait succeeds");
    ex_step(2u << 8);
    look_at_old(memory, thread);
}

/* The first lane puts a value of its own before, so that lanes come to each other's slots. */
static void run_warp(const struct ex_config *config, struct memory *memory, unsigned thread)
{
    uint32_t mask = (1u << config->threads) - 1;
    unsigned last = config->threads * config->messages;
    uint64_t index = 0;

    if (thread == 0)
        ex_check(db_put_value_shared(&memory->qp, last * 8, TARGETS, VALUE + last, &index) == DB_OK,
                 "the put succeeds");
    for (unsigned round = 0; round < config->messages; round++) {
        unsigned i = round * config->threads + thread;
        ex_step(round);
        store_payload(memory, i);
        ex_check(db_put_warp(&memory->qp, mask, i * 8, TARGETS, i * 8, SOURCES, 8, &index) == DB_OK,
                 "the put succeeds");
    }
    ex_step(1u << 8 | index);
    ex_check(db_wait_shared(&memory->qp, index) == DB_OK, "the wait succeeds");
    ex_step(2u << 8);
    look_at_target(memory, last - config->threads + thread);
}

static void run(const struct ex_config *config, void *object, unsigned thread)
{
    struct memory *memory = object;

    if (thread == config->threads) {
        work(config, memory);
        return;
    }
    switch (config->variant) {
    case EX_PROXIED_ONE:
        run_one(memory);
        break;
    case EX_PROXIED_FETCH_ADD:
        run_fetch_add(memory, thread);
        break;
    case EX_PROXIED_WARP:
        run_warp(config, memory, thread);
        break;
    default:
        run_shared(memory, thread);
        break;
    }
}

static const char *finish(struct ex_model *model, const struct ex_state *state)
{
    const struct memory *memory = model->memory;
    unsigned variant = model->config.variant;

    for (unsigned i = 0; i < operation_count(&model->config); i++) {
        bool adds = variant == EX_PROXIED_FETCH_ADD || (variant == EX_PROXIED_ONE && i == 2);
        if (adds && ex_final(model, state, &memory->sum[i]) != FIRST_SUM + i + ADDEND)
            return "an addition did not arrive";
        if (!adds && ex_final(model, state, &memory->target[i]) != VALUE + i)
            return "a put did not arrive";
    }
    return NULL;
}

static unsigned thread_count(const struct ex_config *config)
{
    return config->threads + 1;
}

const struct ex_program ex_proxied = {
    .name = "proxied",
    .text = "calls of device.h on a proxied queue, and the proxy's worker; ring of 2",
    .memory_bytes = sizeof(struct memory),
    .set_up = set_up,
    .run = run,
    .thread_count = thread_count,
    .cpu_threads = 1,
    .finish = finish,
};
