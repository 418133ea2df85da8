/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion by all queues: a put on each of two queues, one wait for both. And a WQE that the
 * device refuses, whose error CQE must be understood.
 */
#include <doorbell/device.h>

#include "programs.h"

#define BUS_TARGET 0x1000

struct memory {
    struct ex_queue queue[2];
    uint64_t old[2];
    uint64_t sum[2];
    struct db_qp *queues[2];
};

/* ---- Two queues ---- */

static void set_up_two(struct ex_model *model, void *object)
{
    struct memory *memory = object;

    for (unsigned q = 0; q < 2; q++) {
        ex_queue_add(model, &memory->queue[q], 2, false);
        ex_payload_add(model, &memory->old[q], EX_GPU_MEMORY, BUS_TARGET + q * 8, 0, "old[%u]", q);
        ex_payload_add(model, &memory->sum[q], EX_GPU_MEMORY, BUS_TARGET + 0x100 + q * 8, 5 + q,
                       "sum[%u]", q);
        memory->queues[q] = &memory->queue[q].qp;
    }
}

static void run_two(const struct ex_config *config, void *object, unsigned thread)
{
    struct memory *memory = object;
    uint64_t index;

    (void)thread;
    for (unsigned q = 0; q < 2; q++) {
        struct db_qp *qp = memory->queues[q];
        ex_step(q);
        ex_check(db_claim(qp, 1, &index) == DB_OK, "the claim succeeds");
        db_build_fetch_add(qp, index, DB_SIGNALED, BUS_TARGET + 0x100 + q * 8, 1,
                           BUS_TARGET + q * 8, 2, 1);
        db_publish(qp, index, index + 1, (enum db_order)config->order,
                   (enum db_record)config->record);
    }
    ex_step(2);
    ex_check(db_flush_all(memory->queues, 2) == DB_OK, "the wait succeeds");
    ex_step(3);
    for (unsigned q = 0; q < 2; q++)
        ex_check(port_ld64(&memory->old[q], PORT_RELAXED, PORT_SYSTEM) == 5 + q,
                 "what the fetch-and-add returned is there");
}

const struct ex_program ex_all_queues = {
    .name = "all queues",
    .text = "a fetch-and-add on each of two queues, one wait for both",
    .memory_bytes = sizeof(struct memory),
    .set_up = set_up_two,
    .run = run_two,
};

/* ---- An error ---- */

static void set_up_error(struct ex_model *model, void *object)
{
    struct memory *memory = object;

    ex_queue_add(model, &memory->queue[0], 2, false);
    ex_payload_add(model, &memory->sum[0], EX_GPU_MEMORY, BUS_TARGET, 0, "target");
}

/* The first thread posts, and all wait. */
static void run_error(const struct ex_config *config, void *object, unsigned thread)
{
    struct memory *memory = object;
    struct db_qp *qp = &memory->queue[0].qp;
    struct db_error error = {0};
    uint64_t index;
    bool shared = config->threads > 1;

    for (unsigned i = 0; i < config->messages && thread == 0; i++) {
        ex_step(i);
        ex_check(db_claim(qp, 1, &index) == DB_OK, "the claim succeeds");
        db_build_write_value(qp, index, DB_SIGNALED, BUS_TARGET, 1, 1);
        db_publish(qp, index, index + 1, (enum db_order)config->order,
                   (enum db_record)config->record);
    }
    ex_step(100);
    int status = shared ? db_wait_index(qp, 0) : db_wait_alone(qp, 0, PORT_ACQUIRE);
    ex_check(status == DB_ERROR_IO, "the wait fails");
    ex_step(101);
    ex_check(db_qp_error(qp, &error) == DB_ERROR_IO, "the queue has an error");
    ex_check(error.index == 0, "the first WQE is to blame");
    ex_check(error.syndrome == M5_SYN_REMOTE_ACCESS, "the syndrome is the device's");
    ex_check(error.opcode == M5_OP_WRITE, "the opcode is the WQE's");
}

static bool refuse_first(const struct ex_model *model, unsigned index)
{
    (void)model;
    return index == 0;
}

const struct ex_program ex_error = {
    .name = "error",
    .text = "the device refuses the first of two writes",
    .memory_bytes = sizeof(struct memory),
    .set_up = set_up_error,
    .run = run_error,
    .fails = refuse_first,
};
