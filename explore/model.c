/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening a model: a program's memory and queues laid out, and the state that a search starts from.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

bool ex_fault(struct ex_model *model, const char *format, ...)
{
    va_list arguments;

    if (model->fault[0])
        return false;
    va_start(arguments, format);
    vsnprintf(model->fault, sizeof(model->fault), format, arguments);
    va_end(arguments);
    return false;
}

/* ---- Words ---- */

static unsigned add_word(struct ex_model *model, const void *address, enum ex_place place,
                         enum ex_format format, uint64_t first)
{
    if (model->word_count == EX_WORDS) {
        fprintf(stderr, "explore: %s declares more than %d words\n", model->program->name,
                EX_WORDS);
        abort();
    }
    model->words[model->word_count] =
        (struct ex_word){.address = address, .first = first, .format = format, .place = place};
    return model->word_count++;
}

unsigned ex_word_add(struct ex_model *model, const void *address, enum ex_place place,
                     enum ex_format format, uint64_t first, const char *name, ...)
{
    unsigned word = add_word(model, address, place, format, first);
    va_list arguments;

    va_start(arguments, name);
    vsnprintf(model->words[word].name, sizeof(model->words[word].name), name, arguments);
    va_end(arguments);
    return word;
}

unsigned ex_payload_add(struct ex_model *model, const void *address, enum ex_place place,
                        uint64_t bus, uint64_t first, const char *name, ...)
{
    unsigned word = add_word(model, address, place, EX_NUMBER, first);
    va_list arguments;

    va_start(arguments, name);
    vsnprintf(model->words[word].name, sizeof(model->words[word].name), name, arguments);
    va_end(arguments);
    model->words[word].bus = bus;
    return word;
}

uint64_t ex_final(const struct ex_model *model, const struct ex_state *state, const void *address)
{
    for (unsigned w = 0; w < model->word_count; w++) {
        uint32_t history = state->word[w];
        if (model->words[w].address == address)
            return ex_store_at(model, history, ex_history_length(model, history) - 1)->value;
    }
    return 0;
}

/* ---- Queues ---- */

/* Words of the second queue say so, in the part of the name that sites.c leaves out. */
static const char *const prefix[EX_QUEUES] = {"", "q1."};
static const char *const suffix[EX_QUEUES] = {"", "[q1]"};

#define FRESH_CQE (0xf0ull << 56) /* op_own as set-up leaves it: M5_CQE_INVALID */

static void add_ring(struct ex_model *model, struct ex_queue *queue, unsigned number)
{
    enum ex_place place = model->config.ring;

    for (unsigned i = 0; i < queue->qp.depth * 8; i++)
        ex_word_add(model, queue->ring + (size_t)i * 8, place, EX_WIRE, 0, "ring[%s%u]+%u",
                    prefix[number], i / 8, i % 8 * 8);
}

static void add_cqes(struct ex_model *model, struct ex_queue *queue, unsigned number)
{
    enum ex_place place = model->config.ring;

    for (unsigned i = 0; i < queue->qp.cq_depth; i++) {
        uint8_t *cqe = queue->cq + i * sizeof(struct m5_cqe);
        ex_word_add(model, cqe + 52, place, EX_BE32, 0, "cqe[%s%u]+52", prefix[number], i);
        ex_word_add(model, cqe + 56, place, EX_WIRE, FRESH_CQE, "cqe[%s%u]+56", prefix[number], i);
    }
}

static void add_counts(struct ex_model *model, struct ex_queue *queue, unsigned number)
{
    struct db_qp *qp = &queue->qp;

    ex_word_add(model, &qp->post.claimed, EX_GPU_MEMORY, EX_NUMBER, 0, "claimed%s", suffix[number]);
    ex_word_add(model, &qp->post.published, EX_GPU_MEMORY, EX_PUBLISHED, 0, "published%s",
                suffix[number]);
    ex_word_add(model, &qp->post.lock, EX_GPU_MEMORY, EX_NUMBER, 0, "post.lock%s", suffix[number]);
    ex_word_add(model, &qp->done.completed, EX_GPU_MEMORY, EX_NUMBER, 0, "completed%s",
                suffix[number]);
    ex_word_add(model, &qp->done.consumed, EX_GPU_MEMORY, EX_NUMBER, 0, "consumed%s",
                suffix[number]);
    ex_word_add(model, &qp->done.lock, EX_GPU_MEMORY, EX_NUMBER, 0, "done.lock%s", suffix[number]);
    ex_word_add(model, &qp->done.error, EX_GPU_MEMORY, EX_NUMBER, 0, "error%s", suffix[number]);
    for (unsigned i = 0; i < qp->depth; i++)
        ex_word_add(model, &queue->slot_ready[i], EX_GPU_MEMORY, EX_NUMBER, 0, "ready[%s%u]",
                    prefix[number], i);
}

void ex_queue_add(struct ex_model *model, struct ex_queue *queue, uint32_t depth, bool collapsed)
{
    unsigned number = model->queue_count++;

    queue->qp = (struct db_qp){
        .sq = queue->ring,
        .record = &queue->record,
        .doorbell = &queue->doorbell,
        .cq = queue->cq,
        .cq_record = &queue->cq_record,
        .slot_ready = queue->slot_ready,
        .timeout_ns = UINT64_MAX,
        .qpn = 0x10 + number,
        .depth = depth,
        .cq_depth = collapsed ? 1 : depth,
        .cq_collapsed = collapsed,
        .order = model->config.order,
        .with_record = model->config.record,
    };
    struct ex_queue_words *words = &model->queues[number];
    words->qp = &queue->qp;
    words->depth = depth;
    words->cqes = queue->qp.cq_depth;
    model->registers[number] = &queue->doorbell;
    words->ring = (uint8_t)model->word_count;
    add_ring(model, queue, number);
    words->record_word = (uint8_t)ex_word_add(model, &queue->record.send.raw, model->config.ring,
                                              EX_BE32, 0, "record%s", suffix[number]);
    words->cqe = (uint8_t)model->word_count;
    add_cqes(model, queue, number);
    unsigned cq_record = ex_word_add(model, &queue->cq_record.consumer.raw, model->config.ring,
                                     EX_BE32, 0, "cq.record%s", suffix[number]);
    model->words[cq_record].unread = true; /* the device never runs out of CQEs */
    add_counts(model, queue, number);
}

/* ---- Opening ---- */

static void make_masks(struct ex_model *model)
{
    struct ex_view gpu = {.doorbells = 0};

    for (unsigned w = 0; w < model->word_count; w++)
        gpu.at[w] = model->words[w].place == EX_GPU_MEMORY ? 0xff : 0;
    model->gpu_words = ex_view_number(&model->views, &gpu);
}

int ex_model_open(struct ex_model *model, const struct ex_program *program,
                  const struct ex_config *config)
{
    memset(model, 0, sizeof(*model));
    model->program = program;
    model->config = *config;
    model->memory = aligned_alloc(128, (program->memory_bytes + 127) & ~(size_t)127);
    int rc = model->memory ? ex_memo_open(model) : -ENOMEM;
    rc = rc ? rc : ex_views_open(&model->views);
    rc = rc ? rc : ex_pool_open(&model->stores);
    rc = rc ? rc : ex_pool_open(&model->histories);
    rc = rc ? rc : ex_threads_open(model);
    if (rc) {
        ex_model_close(model);
        return rc;
    }
    memset(model->memory, 0, program->memory_bytes);
    memset(model->guards, 0xff, sizeof(model->guards));
    ex_intern(&model->histories, "", 0);
    program->set_up(model, model->memory);
    model->symmetric = !config->unreduced && program->symmetric && program->symmetric(config);
    make_masks(model);
    return 0;
}

void ex_model_close(struct ex_model *model)
{
    ex_threads_close(model);
    ex_pool_close(&model->histories);
    ex_pool_close(&model->stores);
    ex_views_close(&model->views);
    free(model->memo);
    free(model->memory);
}

void ex_model_start(struct ex_model *model, struct ex_state *state)
{
    unsigned threads = ex_thread_count(model);

    memset(state, 0, sizeof(*state));
    for (unsigned w = 0; w < model->word_count; w++) {
        struct ex_store first = {.value = model->words[w].first, .agent = EX_NO_AGENT};
        state->word[w] = ex_history_insert(model, EX_NO_STORES, 0, &first);
    }
    for (unsigned q = 0; q < model->queue_count; q++) {
        for (unsigned i = 0; i < 8 * model->queues[q].depth; i++)
            ex_touch(model, EX_DEVICE + q, model->queues[q].ring + i, false);
        ex_touch(model, EX_DEVICE + q, model->queues[q].record_word, false);
    }
    for (unsigned agent = 0; agent < EX_AGENTS; agent++) {
        struct ex_view mask = {.doorbells = 0};
        for (unsigned w = 0; w < EX_WORDS; w++)
            mask.at[w] = model->touched[w] & 1u << agent ? 0 : 0xff;
        model->agent_mask[agent] = ex_view_number(&model->views, &mask);
    }
    for (unsigned thread = 0; thread < threads; thread++)
        state->thread[thread].node = ex_thread_first(model, thread);
    model->restart = false;
}
