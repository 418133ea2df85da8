/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue whose doorbell is a word in host memory: a CPU thread watches it and rings the device's
 * register with what it finds.
 */
#include <doorbell/impl/owner.h>

#include "programs.h"

#define BUS_TARGET 0x1000

struct memory {
    struct ex_queue queue;
    uint64_t forward; /* what the GPU rings */
    uint64_t target[4];
};

static void set_up(struct ex_model *model, void *object)
{
    struct memory *memory = object;

    ex_queue_add(model, &memory->queue, 2, false);
    memory->queue.qp.doorbell = &memory->forward;
    ex_word_add(model, &memory->forward, EX_HOST_MEMORY, EX_WIRE, 0, "forward");
    for (unsigned i = 0; i < model->config.messages; i++)
        ex_payload_add(model, &memory->target[i], EX_GPU_MEMORY, BUS_TARGET + i * 8, 0,
                       "target[%u]", i);
}

static void forward(const struct ex_config *config, struct memory *memory)
{
    bool relaxed = config->variant == EX_FORWARDED_RELAXED;

    for (uint64_t last = 0;;) {
        ex_step(last);
        uint64_t word =
            port_ld64(&memory->forward, relaxed ? PORT_RELAXED : PORT_ACQUIRE, PORT_SYSTEM);
        if (word == last) {
            port_pause();
            continue;
        }
        last = word;
        if (config->variant != EX_FORWARDED_NO_FENCE)
            port_fence(PORT_RELEASE, PORT_SYSTEM);
        port_doorbell(&memory->queue.doorbell, word);
    }
}

static void run(const struct ex_config *config, void *object, unsigned thread)
{
    struct memory *memory = object;
    struct db_qp *qp = &memory->queue.qp;
    uint64_t index = 0;

    if (thread == 1) {
        forward(config, memory);
        return;
    }
    for (unsigned i = 0; i < config->messages; i++) {
        ex_step(i);
        ex_check(db_claim(qp, 1, &index) == DB_OK, "the claim succeeds");
        db_build_write_value(qp, index, DB_SIGNALED, BUS_TARGET + i * 8, 1, 100 + i);
        db_publish(qp, index, index + 1, (enum db_order)config->order,
                   (enum db_record)config->record);
    }
    ex_step(100);
    ex_check(db_wait_alone(qp, config->messages - 1, PORT_ACQUIRE) == DB_OK, "the wait succeeds");
}

static unsigned thread_count(const struct ex_config *config)
{
    (void)config;
    return 2;
}

const struct ex_program ex_forwarded = {
    .name = "forwarded",
    .text = "one owner, whose doorbell a CPU thread forwards; ring of 2",
    .memory_bytes = sizeof(struct memory),
    .set_up = set_up,
    .run = run,
    .thread_count = thread_count,
    .cpu_threads = 1,
    .daemons = 1,
};
