/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A put, then a put of a signal; a thread at the peer waits for the signal and reads what was put.
 */
#include <doorbell/impl/owner.h>

#include "programs.h"

enum {
    BUS_SOURCE = 0x1000,
    BUS_TARGET = 0x1100,
    BUS_SIGNAL = 0x1200,
    PAYLOAD = 40,
};

struct memory {
    struct ex_queue queue[2];
    uint64_t source, target, signal;
};

static void set_up(struct ex_model *model, void *object)
{
    struct memory *memory = object;

    ex_queue_add(model, &memory->queue[0], 2, false);
    if (model->config.variant == EX_SIGNAL_OTHER_QUEUE)
        ex_queue_add(model, &memory->queue[1], 2, false);
    ex_payload_add(model, &memory->source, EX_GPU_MEMORY, BUS_SOURCE, PAYLOAD, "source");
    ex_payload_add(model, &memory->target, model->config.ring, BUS_TARGET, 0, "target");
    ex_payload_add(model, &memory->signal, model->config.ring, BUS_SIGNAL, 0, "signal");
}

static void run(const struct ex_config *config, void *object, unsigned thread)
{
    struct memory *memory = object;
    bool other = config->variant == EX_SIGNAL_OTHER_QUEUE;
    struct db_qp *data = &memory->queue[0].qp, *signal = &memory->queue[other].qp;
    uint64_t index;

    if (thread == 1) {
        ex_step(0);
        port_wait_ge64(&memory->signal, 1, PORT_SYSTEM, PORT_NEVER);
        ex_step(1);
        ex_check(port_ld64(&memory->target, PORT_RELAXED, PORT_SYSTEM) == PAYLOAD,
                 "what was put before the signal is there");
        return;
    }
    ex_check(db_claim(data, 1, &index) == DB_OK, "the claim succeeds");
    db_build_write(data, index, DB_SIGNALED, BUS_TARGET, 1, BUS_SOURCE, 2, 8);
    db_publish(data, index, index + 1, (enum db_order)config->order,
               (enum db_record)config->record);
    ex_step(0);
    ex_check(db_claim(signal, 1, &index) == DB_OK, "the claim succeeds");
    db_build_write_value(signal, index, DB_SIGNALED, BUS_SIGNAL, 1, 1);
    db_publish(signal, index, index + 1, (enum db_order)config->order,
               (enum db_record)config->record);
    ex_step(index);
    ex_check(db_wait_alone(signal, index, PORT_ACQUIRE) == DB_OK, "the wait succeeds");
}

static unsigned thread_count(const struct ex_config *config)
{
    (void)config;
    return 2;
}

const struct ex_program ex_signal = {
    .name = "signal",
    .text = "a put and a signal behind it; the peer waits for the signal and reads",
    .memory_bytes = sizeof(struct memory),
    .set_up = set_up,
    .run = run,
    .thread_count = thread_count,
};
