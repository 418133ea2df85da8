/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each operation does to memory and to the views of the thread that does it. The rules are
 * those of docs/memory_order.md, "The model"; in short: a release hands a view over with a store,
 * an acquire takes the view of the store that was read, and a scope says to whom and from whom.
 */
#include "program.h"

static bool is_gpu_thread(const struct ex_model *model, unsigned agent)
{
    return agent == EX_NO_AGENT || agent + model->program->cpu_threads < ex_thread_count(model);
}

void ex_touch(struct ex_model *model, unsigned agent, unsigned word, bool write)
{
    bool any = model->symmetric && agent < EX_DEVICE; /* what one does, each may do */
    unsigned all = (1u << ex_thread_count(model)) - 1;
    uint8_t bit = (uint8_t)(any ? all : 1u << agent);
    uint8_t *last = &model->touched[word];

    if (!(*last & bit) || (write && !(model->written[word] & bit))) {
        *last |= bit;
        model->written[word] |= write ? bit : 0;
        model->restart = true;
    }
}

void ex_guard(struct ex_model *model, unsigned word, uint8_t holds, bool keeps_rule)
{
    uint8_t guards = model->guards[word] & holds;
    unsigned lock = model->lock[word];

    if (lock && !keeps_rule && !(model->locks_broken & 1u << (lock - 1))) {
        model->locks_broken |= (uint8_t)(1u << (lock - 1));
        model->restart = true;
    }
    if (guards != model->guards[word]) {
        model->guards[word] = guards;
        model->restart = true;
    }
}

/* Keeps one form for views that mean the same: what is found includes what is seen already. */
static void normalise(struct ex_model *model, struct ex_thread_state *t)
{
    t->found = ex_view_join(&model->views, t->found, t->seen);
    t->found_beyond = ex_view_join(&model->views, t->found_beyond, t->beyond);
    t->found_outside = ex_view_join(&model->views, t->found_outside, t->beyond);
}

/* What of `view` a release at the operation's scope makes reach memory. */
static uint32_t reached(struct ex_model *model, uint32_t view, unsigned thread,
                        const struct port_op *op)
{
    if (op->system || !is_gpu_thread(model, thread))
        return view;
    return ex_view_of_words(&model->views, view, model->gpu_words);
}

/* ---- Floors: what came before, by the rules of machines ---- */

uint32_t ex_floor_after_read(struct ex_model *model, uint32_t floor, unsigned word, unsigned at,
                             const struct ex_store *store)
{
    if (model->config.rules == EX_LETTER)
        return EX_NOTHING;
    return ex_view_seen(&model->views, ex_view_join(&model->views, floor, store->floor), word, at);
}

/* A store comes behind what its agent's loads found, and behind what it hands over. */
uint32_t ex_floor_of_store(struct ex_model *model, uint32_t floor, uint32_t handed_over)
{
    return model->config.rules == EX_LETTER ? EX_NOTHING
                                            : ex_view_join(&model->views, floor, handed_over);
}

/* ---- Loads ---- */

/* The thread's views after it read `store`, which is number `at` of its word. */
static void read_store(struct ex_model *model, struct ex_thread_state *t, unsigned thread,
                       unsigned word, unsigned at, const struct ex_store *store, bool acquire,
                       bool system)
{
    struct ex_views *views = &model->views;
    bool reader_on_gpu = is_gpu_thread(model, thread);
    bool writer_on_gpu = is_gpu_thread(model, store->agent);
    bool both_on_gpu = reader_on_gpu && writer_on_gpu;
    uint32_t view = both_on_gpu ? store->view : store->beyond;

    t->seen = ex_view_seen(views, t->seen, word, at);
    t->floor = ex_floor_after_read(model, t->floor, word, at, store);
    if (acquire && (both_on_gpu || system || !reader_on_gpu)) {
        t->seen = ex_view_join(views, t->seen, view);
        t->beyond = ex_view_join(views, t->beyond, store->beyond);
    } else if (both_on_gpu) {
        t->found = ex_view_join(views, t->found, view);
        t->found_beyond = ex_view_join(views, t->found_beyond, store->beyond);
    } else {
        t->found_outside = ex_view_join(views, t->found_outside, view);
    }
    normalise(model, t);
}

uint64_t ex_load(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned word,
                 unsigned at, const struct port_op *op)
{
    const struct ex_store *store = ex_store_at(model, state->word[word], at);

    read_store(model, &state->thread[thread], thread, word, at, store, op->acquire, op->system);
    return store->value;
}

/* ---- Stores ---- */

/* Makes room where a store has successors already. */
static void make_room(struct ex_model *model, struct ex_state *state, unsigned word, unsigned at)
{
    if (at < ex_history_length(model, state->word[word]))
        ex_history_shift(model, state, word, at);
}

/* A store of `thread` as its views and its order make it, which is not yet in the history. */
static struct ex_store make_store(struct ex_model *model, struct ex_thread_state *t,
                                  unsigned thread, unsigned word, unsigned at, uint64_t value,
                                  const struct port_op *op)
{
    struct ex_views *views = &model->views;
    struct ex_store store = {.value = value, .agent = (uint8_t)thread};

    t->seen = ex_view_seen(views, t->seen, word, at);
    if (op->release) {
        store.view = t->seen;
        store.beyond = ex_view_join(views, t->beyond, reached(model, t->seen, thread, op));
    } else {
        store.view = t->released;
        store.beyond = model->config.rules == EX_MACHINE ? t->beyond : t->released_beyond;
    }
    store.view = ex_view_seen(views, store.view, word, at);
    store.beyond = ex_view_seen(views, store.beyond, word, at);
    if (!is_gpu_thread(model, thread))
        store.view = store.beyond;
    store.floor = ex_floor_of_store(model, t->floor, store.view);
    normalise(model, t);
    return store;
}

static void put_store(struct ex_model *model, struct ex_state *state, unsigned word, unsigned at,
                      const struct ex_store *store)
{
    state->word[word] = ex_history_insert(model, state->word[word], at, store);
}

void ex_store(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned word,
              unsigned at, uint64_t value, const struct port_op *op)
{
    make_room(model, state, word, at);
    struct ex_store store = make_store(model, &state->thread[thread], thread, word, at, value, op);
    put_store(model, state, word, at, &store);
}

/* Unless the store is torn, who sees one half sees the other. */
void ex_store16(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned word,
                unsigned at, unsigned at_high, const struct port_op *op)
{
    struct ex_views *views = &model->views;
    const unsigned places[2] = {at, at_high};
    struct ex_store store[2];

    for (unsigned half = 0; half < 2; half++)
        make_room(model, state, word + half, places[half]);
    struct ex_thread_state *t = &state->thread[thread];
    for (unsigned half = 0; half < 2; half++)
        store[half] =
            make_store(model, t, thread, word + half, places[half], half ? op->b : op->a, op);
    for (unsigned half = 0; half < 2; half++) {
        unsigned other = 1 - half;
        if (!model->config.torn) {
            store[half].view = ex_view_seen(views, store[half].view, word + other, places[other]);
            store[half].beyond =
                ex_view_seen(views, store[half].beyond, word + other, places[other]);
        }
        put_store(model, state, word + half, places[half], &store[half]);
    }
}

/* ---- Atomics ---- */

/* What an atomic stores over `seen`; false when it stores nothing. */
static bool atomic_result(const struct port_op *op, uint64_t seen, uint64_t *stored)
{
    switch (op->kind) {
    case PORT_OP_ADD:
        *stored = seen + op->a;
        return true;
    case PORT_OP_CAS:
        *stored = op->b;
        return seen == op->a;
    case PORT_OP_MAX:
        *stored = op->a;
        return op->a > seen;
    default:
        *stored = op->a;
        return true;
    }
}

bool ex_atomic_fits(const struct ex_model *model, uint32_t history, unsigned at,
                    const struct port_op *op)
{
    uint64_t stored;

    if (!atomic_result(op, ex_store_at(model, history, at)->value, &stored))
        return true;
    return at + 1 == ex_history_length(model, history) ||
           !ex_store_at(model, history, at + 1)->is_atomic;
}

uint64_t ex_atomic(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned word,
                   unsigned at, const struct port_op *op)
{
    struct ex_thread_state *t = &state->thread[thread];
    uint64_t stored, seen = ex_store_at(model, state->word[word], at)->value;
    bool stores = atomic_result(op, seen, &stored);

    if (stores) {
        const struct ex_node *node = ex_node(model, t->node);
        ex_guard(model, word, node->holds, ex_takes_lock(op));
        make_room(model, state, word, at + 1);
    }
    struct ex_store read = *ex_store_at(model, state->word[word], at);
    read_store(model, t, thread, word, at, &read, op->acquire, op->system);
    if (!stores)
        return seen;
    struct ex_store store = make_store(model, t, thread, word, at + 1, stored, op);
    /* Who acquires from the atomic acquires from what it read, too. */
    store.view = ex_view_join(&model->views, store.view, read.view);
    store.beyond = ex_view_join(&model->views, store.beyond, read.beyond);
    store.is_atomic = 1;
    put_store(model, state, word, at + 1, &store);
    /* On machines it was done in memory, and the thread has the answer. */
    if (model->config.rules == EX_MACHINE && is_gpu_thread(model, thread)) {
        uint32_t done = ex_view_seen(&model->views, EX_NOTHING, word, at + 1);
        t->beyond = ex_view_join(&model->views, t->beyond, reached(model, done, thread, op));
        normalise(model, t);
    }
    return seen;
}

/* ---- Fences and doorbells ---- */

void ex_fence(struct ex_model *model, struct ex_state *state, unsigned thread,
              const struct port_op *op)
{
    struct ex_thread_state *t = &state->thread[thread];
    struct ex_views *views = &model->views;

    if (op->acquire) {
        t->seen = t->found;
        t->beyond = t->found_beyond;
        if (op->system || !is_gpu_thread(model, thread)) {
            t->seen = ex_view_join(views, t->seen, t->found_outside);
            t->beyond = ex_view_join(views, t->beyond, t->found_outside);
        }
    }
    if (op->release) {
        t->beyond = ex_view_join(views, t->beyond, reached(model, t->seen, thread, op));
        t->released = t->seen;
        t->released_beyond = t->beyond;
    }
    normalise(model, t);
}

/* The doorbells of `thread` that are on their way. */
static uint32_t own_doorbells(const struct ex_model *model, const struct ex_state *state,
                              unsigned thread)
{
    uint32_t own = 0;

    for (unsigned i = 0; i < ex_history_length(model, state->doorbells); i++) {
        if (ex_store_at(model, state->doorbells, i)->agent == thread)
            own |= 1u << i;
    }
    return own;
}

void ex_ring(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned queue,
             const struct port_op *op)
{
    struct ex_thread_state *t = &state->thread[thread];
    unsigned number = ex_history_length(model, state->doorbells);
    uint32_t before = ex_view(&model->views, t->beyond)->doorbells;

    if (model->config.delivery != EX_ANY_ORDER)
        before |= own_doorbells(model, state, thread);
    if (model->config.delivery == EX_CAUSAL)
        before |= ex_view(&model->views, t->seen)->doorbells;
    /* What a release covered has reached memory before the device hears of it. */
    struct ex_store doorbell = {
        .value = op->a,
        .beyond = model->config.rules == EX_MACHINE ? t->beyond : t->released_beyond,
        .floor = ex_floor_of_store(model, t->floor, t->released),
        .after = before,
        .agent = (uint8_t)thread,
        .queue = (uint8_t)queue,
    };
    state->doorbells = ex_history_insert(model, state->doorbells, number, &doorbell);
    t->seen = ex_view_rung(&model->views, t->seen, number);
    normalise(model, t);
}
