/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One thread owns a queue of two blocks and posts a write, a fetch-and-add and a read in turn, so
 * that the third reuses the first one's block. Then it reads what came back.
 */
#include <doorbell/impl/owner.h>

#include "programs.h"

enum {
    BUS_SOURCE = 0x1000,
    BUS_SUM = 0x1100,
    BUS_OLD = 0x1200,
    BUS_TARGET = 0x1300,
    BUS_BACK = 0x1400,
    FIRST_SUM = 7,
    PAYLOAD = 40,
};

struct memory {
    struct ex_queue queue;
    uint64_t source; /* of the write */
    uint64_t target; /* at the peer: of the write, and read back */
    uint64_t sum;    /* at the peer */
    uint64_t old;    /* result of the fetch-and-add */
    uint64_t back;   /* result of the read */
};

static void set_up(struct ex_model *model, void *object)
{
    struct memory *memory = object;
    unsigned variant = model->config.variant;
    enum ex_place place = variant == EX_OWNER_HOST_PAYLOAD ? EX_HOST_MEMORY : model->config.ring;

    ex_queue_add(model, &memory->queue, 2,
                 variant == EX_OWNER_COLLAPSED || variant == EX_OWNER_HELD_COLLAPSED ||
                     variant == EX_OWNER_TRY_COLLAPSED);
    ex_payload_add(model, &memory->source, place, BUS_SOURCE, 0, "source");
    ex_payload_add(model, &memory->target, place, BUS_TARGET, 0, "target");
    ex_payload_add(model, &memory->sum, place, BUS_SUM, FIRST_SUM, "sum");
    ex_payload_add(model, &memory->old, place, BUS_OLD, 0, "old");
    ex_payload_add(model, &memory->back, place, BUS_BACK, 0, "back");
}

static void build(struct memory *memory, struct db_qp *qp, uint64_t index, uint32_t flags)
{
    switch (index % 3) {
    case 0:
        port_st64(&memory->source, PAYLOAD + index, PORT_RELAXED, PORT_GPU);
        db_build_write(qp, index, flags, BUS_TARGET, 1, BUS_SOURCE, 2, 8);
        break;
    case 1:
        db_build_fetch_add(qp, index, flags, BUS_SUM, 1, BUS_OLD, 2, 10);
        break;
    default:
        db_build_read(qp, index, flags, BUS_TARGET, 1, BUS_BACK, 2, 8);
        break;
    }
}

static int claim(const struct ex_config *config, struct db_qp *qp, uint64_t i, uint64_t *index)
{
    if (config->variant != EX_OWNER_NO_CREDIT)
        return db_claim(qp, 1, index);
    *index = i;
    return DB_OK;
}

/* What came back. */
static void look(const struct memory *memory, uint64_t count)
{
    if (count >= 2)
        ex_check(port_ld64(&memory->old, PORT_RELAXED, PORT_SYSTEM) == FIRST_SUM,
                 "what the fetch-and-add returned is there");
    if (count >= 3)
        ex_check(port_ld64(&memory->back, PORT_RELAXED, PORT_SYSTEM) == PAYLOAD,
                 "what the read returned is there");
}

/* By a claim and a publication. */
static void post(const struct ex_config *config, struct memory *memory, struct db_owner *owner)
{
    uint64_t index = 0;

    ex_check(db_owner_claim(owner, 1, &index), "the claim succeeds");
    build(memory, &owner->here, index, DB_SIGNALED);
    db_owner_publish(owner, index, index + 1, (enum db_order)config->order,
                     (enum db_record)config->record);
}

static void try_to_post(const struct ex_config *config, struct memory *memory,
                        struct db_owner *owner)
{
    build(memory, &owner->here, owner->claimed, DB_SIGNALED);
    while (
        !db_owner_try_publish(owner, (enum db_order)config->order, (enum db_record)config->record))
        ex_check(db_owner_wait_room(owner, 2), "the wait for room succeeds");
}

static void run_held(const struct ex_config *config, struct memory *memory)
{
    struct db_owner owner;

    db_owner_take(&owner, &memory->queue.qp);
    if (config->variant == EX_OWNER_TRY_NO_BLOCK)
        owner.room++;
    for (uint64_t i = 0; i < config->messages; i++) {
        ex_step(i | owner.completed << 8 | owner.consumed << 16 | (uint64_t)owner.room << 24);
        if (config->variant >= EX_OWNER_TRY)
            try_to_post(config, memory, &owner);
        else
            post(config, memory, &owner);
    }
    ex_step(1u << 28 | owner.completed << 8 | owner.consumed << 16);
    ex_check(db_owner_flush(&owner) == DB_OK, "the wait succeeds");
    db_owner_give(&owner);
    ex_step(1u << 29);
    look(memory, config->messages);
}

static void run(const struct ex_config *config, void *object, unsigned thread)
{
    struct memory *memory = object;
    struct db_qp *qp = &memory->queue.qp;
    uint64_t count = config->messages, index = 0;
    enum port_order poll = config->variant == EX_OWNER_RELAXED_POLL ? PORT_RELAXED : PORT_ACQUIRE;
    bool batch = config->variant == EX_OWNER_BATCH;

    (void)thread;
    if (config->variant >= EX_OWNER_HELD) {
        run_held(config, memory);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        bool publish = !batch || i % 2 == 1 || i + 1 == count;
        ex_step(i);
        ex_check(claim(config, qp, i, &index) == DB_OK, "the claim succeeds");
        build(memory, qp, index, publish ? DB_SIGNALED : DB_UNSIGNALED);
        if (publish)
            db_publish(qp, index, index + 1, (enum db_order)config->order,
                       (enum db_record)config->record);
    }
    ex_step(count);
    ex_check(db_wait_alone(qp, count - 1, poll) == DB_OK, "the wait succeeds");
    ex_step(count + 1);
    look(memory, count);
}

static const char *finish(struct ex_model *model, const struct ex_state *state)
{
    struct memory *memory = model->memory;

    if (ex_final(model, state, &memory->target) < PAYLOAD)
        return "the write did not arrive";
    return NULL;
}

const struct ex_program ex_one_owner = {
    .name = "one owner",
    .text = "one thread: a write, a fetch-and-add, a read; ring of 2",
    .memory_bytes = sizeof(struct memory),
    .set_up = set_up,
    .run = run,
    .finish = finish,
};
