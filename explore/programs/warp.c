/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lanes of a warp post together, round after round, and wait each for its own. Or the queue is
 * the warp's own: then one lane waits for all.
 */
#include <doorbell/device.h>

#include "programs.h"

enum {
    BUS_TARGET = 0x1000,
    BUS_OLD = 0x2000,
    UNSET = 9,
    ADDEND = 100,
};

struct memory {
    struct ex_queue queue;
    uint64_t target[EX_THREADS * 4];
    uint64_t old[EX_THREADS * 4]; /* results of the owner's fetch-and-adds */
};

static bool is_owner(const struct ex_config *config)
{
    return config->variant == EX_WARP_OWNER || config->variant == EX_WARP_OWNER_NO_BARRIER;
}

static unsigned message_count(const struct ex_config *config)
{
    return config->threads * config->messages;
}

static void set_up(struct ex_model *model, void *object)
{
    struct memory *memory = object;

    ex_queue_add(model, &memory->queue, model->config.depth ? model->config.depth : 2, false);
    for (unsigned i = 0; i < message_count(&model->config); i++)
        ex_payload_add(model, &memory->target[i], EX_GPU_MEMORY, BUS_TARGET + i * 8, 0,
                       "target[%u]", i);
    for (unsigned i = 0; is_owner(&model->config) && i < message_count(&model->config); i++)
        ex_payload_add(model, &memory->old[i], EX_GPU_MEMORY, BUS_OLD + i * 8, UNSET, "old[%u]", i);
}

/* The wrong way round: what the other lanes stored is not covered by the leader's release. */
static int publish_fence_first(struct db_qp *qp, uint32_t mask, uint64_t first,
                               const struct ex_config *config)
{
    uint64_t end = first + port_count_lanes(mask);
    bool leads = port_lane() == port_first_lane(mask);

    if (leads)
        db_release((enum db_order)config->order);
    port_syncwarp(mask);
    if (leads) {
        db_ring(qp, end, DB_ORDER_NONE_UNSAFE, (enum db_record)config->record, true);
        port_st64(&qp->post.published, db_published_pack(end - 1, end), PORT_RELAXED, PORT_GPU);
    }
    return DB_OK;
}

/* Every lane has taken the queue; one waits and gives it back. What it acquired the others have
 * behind the barrier. */
static void run_owner(const struct ex_config *config, struct memory *memory, unsigned thread)
{
    uint32_t mask = (1u << config->threads) - 1;
    struct db_owner owner;
    uint64_t first, index;

    db_owner_take(&owner, &memory->queue.qp);
    for (unsigned i = 0; i < config->messages; i++) {
        unsigned target = i * config->threads + thread;
        ex_step(i | owner.completed << 8 | owner.consumed << 16);
        ex_check(db_owner_claim_warp(&owner, mask, &first, &index), "the claim succeeds");
        ex_check(index == target, "each lane has its block");
        db_build_fetch_add(&owner.here, index, DB_SIGNALED, BUS_TARGET + target * 8, 1,
                           BUS_OLD + target * 8, 2, ADDEND + target);
        db_owner_publish_warp(&owner, mask, (enum db_order)config->order,
                              (enum db_record)config->record);
    }
    ex_step(1u << 24 | owner.completed << 8 | owner.consumed << 16);
    int status = DB_OK;
    if (thread == 0) {
        status = db_owner_flush(&owner);
        db_owner_give(&owner);
    }
    status = (int)(int64_t)port_broadcast64(mask, (uint64_t)(int64_t)status, 0);
    ex_check(status == DB_OK, "the wait succeeds");
    ex_step(1u << 25);
    if (config->variant != EX_WARP_OWNER_NO_BARRIER)
        port_syncwarp(mask);
    for (unsigned i = 0; i < config->messages; i++)
        ex_check(port_ld64(&memory->old[i * config->threads + thread], PORT_RELAXED, PORT_SYSTEM) ==
                     0,
                 "what the fetch-and-add returned is there");
}

/* Into the block that the last lane will have a lap later. */
static void post_alone(const struct ex_config *config, struct memory *memory)
{
    struct db_qp *qp = &memory->queue.qp;
    unsigned target = message_count(config) - 1;
    uint64_t index = 0;

    ex_check(db_claim_shared(qp, 1, &index) == DB_OK, "the claim succeeds");
    db_build_write_value(qp, index, DB_SIGNALED, BUS_TARGET + target * 8, 1, ADDEND + target);
    ex_check(db_publish_ticket(qp, qp, index, index, index + 1, (enum db_order)config->order,
                               (enum db_record)config->record) == DB_OK,
             "the publication succeeds");
}

static void run(const struct ex_config *config, void *object, unsigned thread)
{
    struct memory *memory = object;
    struct db_qp *qp = &memory->queue.qp;
    uint32_t mask = (1u << config->threads) - 1;
    uint64_t first, index;

    if (is_owner(config)) {
        run_owner(config, memory, thread);
        return;
    }
    if (config->variant == EX_WARP_AFTER_ONE && thread == 0)
        post_alone(config, memory);
    for (unsigned i = 0; i < config->messages; i++) {
        unsigned target = thread * config->messages + i;
        int status;
        ex_step(i);
        ex_check(db_claim_warp(qp, mask, &first, &index) == DB_OK, "the claim succeeds");
        db_build_write_value(qp, index, DB_SIGNALED, BUS_TARGET + target * 8, 1, ADDEND + target);
        if (config->variant == EX_WARP_FENCE_BEFORE_BARRIER)
            status = publish_fence_first(qp, mask, first, config);
        else
            status = db_publish_warp(qp, qp, mask, first, (enum db_order)config->order,
                                     (enum db_record)config->record);
        ex_check(status == DB_OK, "the publication succeeds");
        ex_step(1u << 8 | i << 16 | index << 32);
        ex_check(db_wait_index(qp, index) == DB_OK, "the wait succeeds");
    }
}

static const char *finish(struct ex_model *model, const struct ex_state *state)
{
    struct memory *memory = model->memory;

    for (unsigned i = 0; i < message_count(&model->config); i++) {
        if (ex_final(model, state, &memory->target[i]) != ADDEND + i)
            return "a value did not arrive";
    }
    return NULL;
}

const struct ex_program ex_warp = {
    .name = "warp",
    .text = "lanes claim, build and publish together; ring of 2",
    .memory_bytes = sizeof(struct memory),
    .set_up = set_up,
    .run = run,
    .finish = finish,
};
