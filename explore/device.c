/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device, in the three ways in which one may learn that WQEs are its own, and what it does with
 * them. It shares the format's layouts with the library and nothing else. docs/memory_order.md,
 * "The device".
 *
 * A read by the device may return any store that its view allows. Where that is more than one
 * value, the WQE or the payload may be an old one: that is the fault the search is after, and the
 * search ends there instead of following each value.
 */
#include <string.h>

#include "program.h"
#include "trace.h"

#define WQE_WORDS 8

static unsigned doorbell_end(uint64_t value)
{
    return port_bswap32((uint32_t)value) >> 8 & M5_INDEX_MASK;
}

/* ---- Reading and writing memory ---- */

uint32_t ex_device_view(struct ex_model *model, const struct ex_state *state, unsigned queue)
{
    return ex_view_join(&model->views, state->queue[queue].seen, state->queue[queue].wrote);
}

static void learn_floor(struct ex_model *model, struct ex_queue_state *q,
                        const struct ex_store *store)
{
    if (model->config.rules == EX_MACHINE)
        q->floor = ex_view_join(&model->views, q->floor, store->floor);
}

/* The one value that the device can find in a word; a fault when there are two. */
static bool read_word(struct ex_model *model, struct ex_state *state, unsigned queue, unsigned word,
                      uint64_t *value, const char *what, unsigned index)
{
    unsigned length = ex_history_length(model, state->word[word]);
    unsigned at = ex_view(&model->views, ex_device_view(model, state, queue))->at[word];
    char found[40], wanted[40];

    ex_touch(model, EX_DEVICE + queue, word, false);
    *value = ex_store_at(model, state->word[word], length - 1)->value;
    learn_floor(model, &state->queue[queue], ex_store_at(model, state->word[word], at));
    for (; at < length; at++) {
        uint64_t other = ex_store_at(model, state->word[word], at)->value;
        enum ex_format format = model->words[word].format;
        if (other != *value)
            return ex_fault(
                model, "the device fetches %s %u and may find %s in %s, where %s is stored", what,
                index, ex_value_text(format, other, found, sizeof(found)), model->words[word].name,
                ex_value_text(format, *value, wanted, sizeof(wanted)));
    }
    return true;
}

static void write_word(struct ex_model *model, struct ex_state *state, unsigned queue,
                       unsigned word, uint64_t value)
{
    struct ex_queue_state *q = &state->queue[queue];
    unsigned at = ex_history_length(model, state->word[word]);
    struct ex_store store = {.value = value, .agent = (uint8_t)(EX_DEVICE + queue)};

    ex_touch(model, EX_DEVICE + queue, word, true);
    ex_guard(model, word, 0, false);
    /* What the device has learnt is behind it when it writes; so is what it wrote, if in order. */
    q->wrote = ex_view_seen(&model->views, q->wrote, word, at);
    store.view = model->config.writes_reordered ? ex_view_seen(&model->views, q->seen, word, at)
                                                : ex_device_view(model, state, queue);
    store.beyond = store.view;
    store.floor = ex_floor_of_store(model, q->floor, store.view);
    state->word[word] = ex_history_insert(model, state->word[word], at, &store);
}

/* The word that an address in a WQE names. */
static bool find_bus(struct ex_model *model, uint64_t bus, unsigned *word)
{
    for (unsigned w = 0; w < model->word_count; w++) {
        if (model->words[w].bus == bus && bus) {
            *word = w;
            return true;
        }
    }
    return ex_fault(model, "a WQE names address 0x%llx, where there is nothing",
                    (unsigned long long)bus);
}

/* ---- Completions ---- */

static void write_cqe(struct ex_model *model, struct ex_state *state, unsigned queue,
                      unsigned index, unsigned opcode, bool error)
{
    const struct ex_queue_words *words = &model->queues[queue];
    struct ex_queue_state *q = &state->queue[queue];
    unsigned slot = q->cqes % words->cqes;
    unsigned owner = words->qp->cq_collapsed ? 0 : (q->cqes / words->cqes) & M5_CQE_OWNER;
    unsigned kind = error ? M5_CQE_REQUESTER_ERROR : M5_CQE_REQUESTER;

    if (error)
        write_word(model, state, queue, words->cqe + 2 * slot, port_bswap32(M5_SYN_REMOTE_ACCESS));
    uint32_t first = port_bswap32(opcode << 24 | words->qp->qpn);
    uint32_t second = port_bswap32((index & M5_INDEX_MASK) << 16 | kind << 4 | owner);
    write_word(model, state, queue, words->cqe + 2 * slot + 1, (uint64_t)second << 32 | first);
    q->cqes++;
    if (model->trace)
        ex_trace_device(model, queue, "writes the %sCQE of WQE %u", error ? "error " : "", index);
}

/* ---- WQEs ---- */

static uint64_t wire_pair(uint64_t word)
{
    return (uint64_t)port_bswap32((uint32_t)word) << 32 | port_bswap32((uint32_t)(word >> 32));
}

/* One WQE of one block, as `wqe` holds it. */
static bool execute(struct ex_model *model, struct ex_state *state, unsigned queue, unsigned index,
                    const uint64_t *wqe)
{
    unsigned opcode = (unsigned)(wire_pair(wqe[0]) >> 32) & 0xff, remote = 0, local = 0;
    uint64_t value;

    if (opcode == M5_OP_NOP)
        return true;
    if (!find_bus(model, wire_pair(wqe[2]), &remote))
        return false;
    unsigned data = opcode == M5_OP_ATOMIC_FA ? 6 : 4;
    bool is_inline = (wire_pair(wqe[data]) >> 32) & M5_INLINE_FLAG;
    if (!is_inline && !find_bus(model, wire_pair(wqe[data + 1]), &local))
        return false;
    uint64_t old =
        ex_store_at(model, state->word[remote], ex_history_length(model, state->word[remote]) - 1)
            ->value;
    switch (opcode) {
    case M5_OP_WRITE:
        if (is_inline)
            value = wqe[4] >> 32 | wqe[5] << 32;
        else if (!read_word(model, state, queue, local, &value, "the payload of WQE", index))
            return false;
        write_word(model, state, queue, remote, value);
        break;
    case M5_OP_READ:
        write_word(model, state, queue, local, old);
        break;
    case M5_OP_ATOMIC_FA:
        write_word(model, state, queue, remote, old + wire_pair(wqe[4]));
        write_word(model, state, queue, local, old);
        break;
    default:
        return ex_fault(model, "WQE %u has opcode 0x%x", index, opcode);
    }
    if (model->trace)
        ex_trace_device(model, queue, "executes WQE %u%s", index,
                        opcode == M5_OP_WRITE  ? ", a write"
                        : opcode == M5_OP_READ ? ", a read"
                                               : ", a fetch-and-add");
    return true;
}

/* Fetches, executes and completes the next WQE. */
static bool process(struct ex_model *model, struct ex_state *state, unsigned queue)
{
    const struct ex_queue_words *words = &model->queues[queue];
    struct ex_queue_state *q = &state->queue[queue];
    unsigned index = q->next, base = words->ring + (index & (words->depth - 1)) * WQE_WORDS;
    uint64_t wqe[WQE_WORDS] = {0};

    for (unsigned i = 0, count = 2; i < count && i < WQE_WORDS; i++) {
        if (!read_word(model, state, queue, base + i, &wqe[i], "WQE", index))
            return false;
        if (i == 0)
            count = 2 * ((unsigned)wire_pair(wqe[0]) & 0x3f);
    }
    unsigned named = (unsigned)(wire_pair(wqe[0]) >> 40) & M5_INDEX_MASK;
    if (named != index || (unsigned)wire_pair(wqe[0]) >> 8 != words->qp->qpn)
        return ex_fault(model, "the device fetches WQE %u and finds %s %u in its slot", index,
                        wqe[0] ? "WQE" : "nothing, as in", named);
    bool error = q->in_error || (model->program->fails && model->program->fails(model, index));
    unsigned opcode = (unsigned)(wire_pair(wqe[0]) >> 32) & 0xff;
    if (!error && !execute(model, state, queue, index, wqe))
        return false;
    if (error || (port_bswap32((uint32_t)wqe[1]) & M5_CTRL_CE_MASK) == M5_CTRL_CQ_UPDATE)
        write_cqe(model, state, queue, index, opcode, error);
    q->in_error = error;
    q->next++;
    return true;
}

/* ---- Learning what there is ---- */

static bool take_end(struct ex_model *model, struct ex_queue_state *q, unsigned end,
                     const char *what)
{
    if (end < q->end)
        return ex_fault(model, "%s moves back from %u to %u: the device takes it for a lap ahead",
                        what, q->end, end);
    q->end = (uint16_t)end;
    return true;
}

static bool doorbell_arrives(struct ex_model *model, struct ex_state *state, unsigned queue,
                             unsigned number)
{
    struct ex_store doorbell = *ex_store_at(model, state->doorbells, number);
    struct ex_queue_state *q = &state->queue[queue];
    unsigned end = doorbell_end(doorbell.value);

    if (model->trace)
        ex_trace_device(model, queue, "doorbell %u of thread %u arrives", end, doorbell.agent);
    q->seen = ex_view_join(&model->views, q->seen, doorbell.beyond);
    learn_floor(model, q, &doorbell);
    ex_doorbell_remove(model, state, number);
    q->look = model->config.device != EX_TRUSTS_DOORBELL;
    if (model->config.device == EX_TRUSTS_DOORBELL)
        return take_end(model, q, end, "the doorbell");
    if (model->config.device == EX_READS_EARLY && end > q->end)
        q->end = (uint16_t)end;
    return true;
}

static unsigned record_end(const struct ex_model *model, const struct ex_state *state,
                           unsigned queue, unsigned at)
{
    uint32_t history = state->word[model->queues[queue].record_word];
    return port_bswap32((uint32_t)ex_store_at(model, history, at)->value) & M5_INDEX_MASK;
}

static bool read_record(struct ex_model *model, struct ex_state *state, unsigned queue, unsigned at)
{
    struct ex_queue_state *q = &state->queue[queue];
    unsigned word = model->queues[queue].record_word;
    struct ex_store store = *ex_store_at(model, state->word[word], at);
    unsigned end = record_end(model, state, queue, at);

    if (model->trace)
        ex_trace_device(model, queue, "reads record %u%s", end,
                        at + 1 < ex_history_length(model, state->word[word])
                            ? ", though a newer one is stored"
                            : "");
    q->seen = ex_view_seen(&model->views, q->seen, word, at);
    q->seen = ex_view_join(&model->views, q->seen, store.beyond);
    learn_floor(model, q, &store);
    if (model->config.device == EX_READS_AT_DOORBELL)
        q->look = 0;
    return take_end(model, q, end, "the record");
}

/* ---- Steps ---- */

/* Numbers the device's steps on a queue: the WQE, doorbells that may arrive, records that may be
 * read. Returns how many there are; when `*number` is one of them, `*kind` and `*which` say it. */
enum device_step {
    STEP_PROCESS,
    STEP_DOORBELL,
    STEP_RECORD,
};

static unsigned find_step(struct ex_model *model, const struct ex_state *state, unsigned queue,
                          unsigned number, enum device_step *kind, unsigned *which)
{
    const struct ex_queue_state *q = &state->queue[queue];
    unsigned count = 0, length = ex_history_length(model, state->doorbells), on_way = 0;

    if (q->next < q->end && count++ == number)
        *kind = STEP_PROCESS;
    for (unsigned i = 0; i < length; i++) {
        if (ex_store_at(model, state->doorbells, i)->queue == queue)
            on_way |= 1u << i;
    }
    for (unsigned i = 0; i < length; i++) {
        if (!(on_way & 1u << i) || (ex_store_at(model, state->doorbells, i)->after & on_way))
            continue;
        if (count++ == number) {
            *kind = STEP_DOORBELL;
            *which = i;
        }
    }
    if (!q->look)
        return count;
    unsigned word = model->queues[queue].record_word;
    bool early = model->config.device == EX_READS_EARLY;
    for (unsigned at = ex_view(&model->views, q->seen)->at[word];
         at < ex_history_length(model, state->word[word]); at++) {
        if (early && record_end(model, state, queue, at) <= q->end)
            continue;
        if (count++ == number) {
            *kind = STEP_RECORD;
            *which = at;
        }
    }
    return count;
}

unsigned ex_device_choices(struct ex_model *model, const struct ex_state *state, unsigned queue)
{
    enum device_step kind;
    unsigned which;

    return find_step(model, state, queue, UINT32_MAX, &kind, &which);
}

bool ex_device_choose(struct ex_model *model, struct ex_state *state, unsigned queue,
                      unsigned number)
{
    enum device_step kind = STEP_PROCESS;
    unsigned which = 0;

    find_step(model, state, queue, number, &kind, &which);
    bool good = kind == STEP_PROCESS    ? process(model, state, queue)
                : kind == STEP_DOORBELL ? doorbell_arrives(model, state, queue, which)
                                        : read_record(model, state, queue, which);
    return good && ex_settle(model, state);
}

bool ex_device_idle(const struct ex_model *model, const struct ex_state *state)
{
    if (state->doorbells != EX_NO_STORES)
        return false;
    for (unsigned q = 0; q < model->queue_count; q++) {
        if (state->queue[q].next < state->queue[q].end ||
            (state->queue[q].look && model->config.device == EX_READS_AT_DOORBELL))
            return false;
    }
    return true;
}
