/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One thread writes a payload and says so; another one posts a put of it.
 */
#include <doorbell/impl/owner.h>

#include "programs.h"

enum {
    BUS_SOURCE = 0x1000,
    BUS_TARGET = 0x1100,
    PAYLOAD = 40,
};

struct memory {
    struct ex_queue queue;
    uint64_t source, target, written;
};

static void set_up(struct ex_model *model, void *object)
{
    struct memory *memory = object;

    ex_queue_add(model, &memory->queue, 2, false);
    ex_payload_add(model, &memory->source, model->config.ring, BUS_SOURCE, 0, "source");
    ex_payload_add(model, &memory->target, model->config.ring, BUS_TARGET, 0, "target");
    ex_word_add(model, &memory->written, EX_GPU_MEMORY, EX_NUMBER, 0, "written");
}

static void run(const struct ex_config *config, void *object, unsigned thread)
{
    struct memory *memory = object;
    struct db_qp *qp = &memory->queue.qp;
    uint64_t index;

    if (thread == 0) {
        bool relaxed = config->variant == EX_PAYLOAD_RELAXED;
        port_st64(&memory->source, PAYLOAD, PORT_RELAXED, PORT_GPU);
        port_st64(&memory->written, 1, relaxed ? PORT_RELAXED : PORT_RELEASE, PORT_GPU);
        return;
    }
    ex_step(0);
    port_wait_ge64(&memory->written, 1, PORT_GPU, PORT_NEVER);
    ex_step(1);
    ex_check(db_claim(qp, 1, &index) == DB_OK, "the claim succeeds");
    db_build_write(qp, index, DB_SIGNALED, BUS_TARGET, 1, BUS_SOURCE, 2, 8);
    db_publish(qp, index, index + 1, (enum db_order)config->order, (enum db_record)config->record);
    ex_step(2);
    ex_check(db_wait_alone(qp, index, PORT_ACQUIRE) == DB_OK, "the wait succeeds");
}

static const char *finish(struct ex_model *model, const struct ex_state *state)
{
    struct memory *memory = model->memory;

    return ex_final(model, state, &memory->target) == PAYLOAD ? NULL : "an old payload was sent";
}

static unsigned thread_count(const struct ex_config *config)
{
    (void)config;
    return 2;
}

const struct ex_program ex_payload = {
    .name = "payload",
    .text = "one thread writes a payload, another one puts it",
    .memory_bytes = sizeof(struct memory),
    .set_up = set_up,
    .run = run,
    .thread_count = thread_count,
    .finish = finish,
};
