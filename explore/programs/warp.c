/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lanes of a warp post together, round after round, and wait each for its own.
 */
#include <doorbell/device.h>

#include "programs.h"

#define BUS_TARGET 0x1000

struct memory {
    struct ex_queue queue;
    uint64_t target[EX_THREADS * 4];
};

static void set_up(struct ex_model *model, void *object)
{
    struct memory *memory = object;

    ex_queue_add(model, &memory->queue, model->config.depth ? model->config.depth : 2, false);
    for (unsigned i = 0; i < model->config.threads * model->config.messages; i++)
        ex_payload_add(model, &memory->target[i], EX_GPU_MEMORY, BUS_TARGET + i * 8, 0,
                       "target[%u]", i);
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

static void run(const struct ex_config *config, void *object, unsigned thread)
{
    struct memory *memory = object;
    struct db_qp *qp = &memory->queue.qp;
    uint32_t mask = (1u << config->threads) - 1;
    uint64_t first, index;

    for (unsigned i = 0; i < config->messages; i++) {
        unsigned target = thread * config->messages + i;
        int status;
        ex_step(i);
        ex_check(db_claim_warp(qp, mask, &first, &index) == DB_OK, "the claim succeeds");
        db_build_write_value(qp, index, DB_SIGNALED, BUS_TARGET + target * 8, 1, 100 + target);
        if (config->variant == EX_WARP_FENCE_BEFORE_BARRIER)
            status = publish_fence_first(qp, mask, first, config);
        else
            status = db_publish_warp(qp, mask, first, (enum db_order)config->order,
                                     (enum db_record)config->record);
        ex_check(status == DB_OK, "the publication succeeds");
        ex_step(1u << 8 | i << 16 | index << 32);
        ex_check(db_wait_index(qp, index, true, PORT_ACQUIRE) == DB_OK, "the wait succeeds");
    }
}

static const char *finish(struct ex_model *model, const struct ex_state *state)
{
    struct memory *memory = model->memory;

    for (unsigned i = 0; i < model->config.threads * model->config.messages; i++) {
        if (ex_final(model, state, &memory->target[i]) != 100 + i)
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
