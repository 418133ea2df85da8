/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program under exploration is made of, and what its threads may say besides the library's
 * own calls. Included by programs/ and by the explorer.
 *
 * A program's threads are plain functions that call the library. They run again and again, each
 * time fed with what its earlier operations returned, so they keep the contract of port.h: no
 * statics, no branch on anything but arguments and results. Between two calls a thread says
 * ex_step(state), where `state` is all that it will still use: runs that agree on it go on as one.
 */
#ifndef EXPLORE_PROGRAM_H
#define EXPLORE_PROGRAM_H

#include <doorbell/impl/sq_shared.h>
#include <doorbell/impl/wqe_inline.h>

#include "model.h"

struct ex_program {
    const char *name;
    const char *text; /* what it does, in a line */
    size_t memory_bytes;
    /* Lays out memory: words, queues. */
    void (*set_up)(struct ex_model *model, void *memory);
    /* Thread `thread` of config.threads. */
    void (*run)(const struct ex_config *config, void *memory, unsigned thread);
    /* How many threads there are; NULL: config.threads. */
    unsigned (*thread_count)(const struct ex_config *config);
    /* Are all threads alike, so that none looks at its number? NULL: they are not. */
    bool (*symmetric)(const struct ex_config *config);
    /* Of the first threads all are the GPU's; these are the CPU's. */
    unsigned cpu_threads;
    /* The last of them need not end. */
    unsigned daemons;
    /* Does the device refuse WQE `index`? NULL: none. */
    bool (*fails)(const struct ex_model *model, unsigned index);
    /* Looks at memory when all is done: NULL when it is right, else what is wrong. */
    const char *(*finish)(struct ex_model *model, const struct ex_state *state);
};

static inline unsigned ex_thread_count(const struct ex_model *model)
{
    return model->program->thread_count ? model->program->thread_count(&model->config)
                                        : model->config.threads;
}

/* ---- For set_up ---- */

/* A word of `place` that holds `first`. Returns its number. */
unsigned ex_word_add(struct ex_model *model, const void *address, enum ex_place place,
                     enum ex_format format, uint64_t first, const char *name, ...)
    __attribute__((format(printf, 6, 7)));
/* The same for memory that the device reaches under an address of a WQE. */
unsigned ex_payload_add(struct ex_model *model, const void *address, enum ex_place place,
                        uint64_t bus, uint64_t first, const char *name, ...)
    __attribute__((format(printf, 6, 7)));

/* What a program keeps of a queue; ex_queue_add() fills it in. */
#define EX_MAX_DEPTH 4
struct ex_queue {
    struct db_qp qp;
    uint8_t ring[EX_MAX_DEPTH * M5_BLOCK_BYTES] __attribute__((aligned(64)));
    uint8_t cq[EX_MAX_DEPTH * sizeof(struct m5_cqe)] __attribute__((aligned(64)));
    struct m5_qp_record record;
    struct m5_cq_record cq_record;
    uint32_t slot_ready[EX_MAX_DEPTH];
    uint64_t doorbell; /* the device's register */
};

/* A queue of `depth` blocks that the device serves, with config's placement and device model. */
void ex_queue_add(struct ex_model *model, struct ex_queue *queue, uint32_t depth, bool collapsed);

/* ---- For threads ---- */

#define ex_step(state)                                                                             \
    ((void)port_explore_plain(PORT_SITE, PORT_OP_STEP, NULL, (uint64_t)(state), 0, 0))

/* Claims that `condition` holds here. */
#define ex_check(condition, claim)                                                                 \
    ((void)port_explore((struct port_op){                                                          \
        .site = PORT_SITE, .kind = PORT_OP_CHECK, .text = (claim), .a = (condition) ? 1 : 0}))

/* ---- For finish ---- */

/* What a word holds at the end. */
uint64_t ex_final(const struct ex_model *model, const struct ex_state *state, const void *address);

#endif
