/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that share one queue; each adds to a word at the peer, which its WQE's index names, waits
 * for each addition and looks at what it returned. Or one of them waits for all that were claimed
 * so far.
 */
#include "programs.h"

enum {
    BUS_SUM = 0x1000,
    BUS_OLD = 0x2000,
    FIRST_SUM = 100,
};

struct memory {
    struct ex_queue queue;
    uint64_t sum[EX_THREADS * 4];
    uint64_t old[EX_THREADS * 4];
};

static unsigned messages_of(const struct ex_config *config, unsigned thread)
{
    return thread > 0 && config->others ? config->others : config->messages;
}

static unsigned message_count(const struct ex_config *config)
{
    return config->messages + (config->threads - 1) * messages_of(config, 1);
}

static void set_up(struct ex_model *model, void *object)
{
    struct memory *memory = object;
    unsigned count = message_count(&model->config);

    ex_queue_add(model, &memory->queue, model->config.depth ? model->config.depth : 2,
                 model->config.variant == EX_SHARED_TICKET_COLLAPSED);
    for (unsigned i = 0; i < count; i++) {
        ex_payload_add(model, &memory->sum[i], EX_GPU_MEMORY, BUS_SUM + i * 8, FIRST_SUM + i,
                       "sum[%u]", i);
        ex_payload_add(model, &memory->old[i], EX_GPU_MEMORY, BUS_OLD + i * 8, 0, "old[%u]", i);
    }
}

static int claim(const struct ex_config *config, struct db_qp *qp, uint64_t *index)
{
    return config->variant == EX_SHARED_LOCK ? db_claim_locked(qp, 1, index)
                                             : db_claim_shared(qp, 1, index);
}

static int publish(const struct ex_config *config, struct db_qp *qp, uint64_t index)
{
    enum db_order order = (enum db_order)config->order;
    enum db_record record = (enum db_record)config->record;

    switch (config->variant) {
    case EX_SHARED_LOCK:
        db_publish_locked(qp, qp, index, index + 1, order, record);
        return DB_OK;
    case EX_SHARED_HANDOFF:
    case EX_SHARED_HANDOFF_FLUSH:
        db_publish_handoff(qp, qp, index, 1, order, record);
        return DB_OK;
    case EX_SHARED_NO_PUBLICATION_ORDER:
        db_publish(qp, index, index + 1, order, record);
        return DB_OK;
    default:
        return db_publish_ticket(qp, qp, index, index, index + 1, order, record);
    }
}

static bool is_flush(const struct ex_config *config)
{
    return config->variant == EX_SHARED_TICKET_FLUSH || config->variant == EX_SHARED_HANDOFF_FLUSH;
}

static void look(const struct memory *memory, uint64_t index)
{
    ex_check(port_ld64(&memory->old[index], PORT_RELAXED, PORT_SYSTEM) == FIRST_SUM + index,
             "what the fetch-and-add returned is there");
}

/* All that was claimed when the wait began is complete: where that is all there is, everybody's. */
static void flush(const struct ex_config *config, struct memory *memory, uint64_t index)
{
    uint64_t claimed = port_ld64(&memory->queue.qp.post.claimed, PORT_RELAXED, PORT_GPU);

    ex_step(1u << 16 | claimed | index << 32);
    ex_check(db_wait_queue_shared(&memory->queue.qp) == DB_OK, "the wait succeeds");
    ex_step(1u << 17 | claimed | index << 32);
    look(memory, index);
    for (uint64_t i = 0; claimed == message_count(config) && i < claimed; i++)
        look(memory, i);
}

static void run(const struct ex_config *config, void *object, unsigned thread)
{
    struct memory *memory = object;
    struct db_qp *qp = &memory->queue.qp;
    uint64_t index = 0;

    for (unsigned i = 0; i < messages_of(config, thread); i++) {
        ex_step(i);
        ex_check(claim(config, qp, &index) == DB_OK, "the claim succeeds");
        ex_check(index < message_count(config), "the index is one that somebody may claim");
        db_build_fetch_add(qp, index, DB_SIGNALED, BUS_SUM + index * 8, 1, BUS_OLD + index * 8, 2,
                           1000);
        ex_check(publish(config, qp, index) == DB_OK, "the publication succeeds");
        if (config->unwaited || is_flush(config))
            continue;
        ex_step(1u << 8 | i << 16 | index << 32);
        ex_check(db_wait_index(qp, index) == DB_OK, "the wait succeeds");
        look(memory, index);
    }
    if (thread == 0 && is_flush(config))
        flush(config, memory, index);
}

static const char *finish(struct ex_model *model, const struct ex_state *state)
{
    struct memory *memory = model->memory;

    for (unsigned i = 0; i < message_count(&model->config); i++) {
        if (ex_final(model, state, &memory->sum[i]) != FIRST_SUM + i + 1000)
            return "an addition did not arrive";
    }
    return NULL;
}

static bool are_alike(const struct ex_config *config)
{
    return !is_flush(config) && messages_of(config, 1) == config->messages;
}

const struct ex_program ex_shared = {
    .name = "shared",
    .text = "threads post fetch-and-adds to one queue and each waits for its own",
    .memory_bytes = sizeof(struct memory),
    .set_up = set_up,
    .run = run,
    .finish = finish,
    .symmetric = are_alike,
};
