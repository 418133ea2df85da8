/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps of threads: everything that needs no choice is done at once (ex_settle), and what has
 * several outcomes is counted and taken by number.
 *
 * No choice is needed by a store or a fence, since it only adds to what others may read; by a
 * doorbell, which may arrive as late as the search likes; by a load of a word that nobody else
 * writes. A store to a word with stores that the thread has not seen may come before or behind each
 * of them: those are choices, but nobody else's steps matter to them, so the thread goes first.
 */
#include <assert.h>

#include "program.h"
#include "trace.h"

static const struct ex_node *node_of(const struct ex_model *model, const struct ex_state *state,
                                     unsigned thread)
{
    return ex_node(model, state->thread[thread].node);
}

static bool is_atomic(enum port_op_kind kind)
{
    return kind == PORT_OP_ADD || kind == PORT_OP_CAS || kind == PORT_OP_MAX ||
           kind == PORT_OP_EXCHANGE;
}

/* The first number in the word's history that the thread may read. */
static unsigned first_readable(const struct ex_model *model, const struct ex_state *state,
                               unsigned thread, unsigned word)
{
    return ex_view(&model->views, state->thread[thread].seen)->at[word];
}

/* The first number that a store of the thread may have: behind what it has seen, and on a machine
 * behind what came before its loads, since they decided on the store. */
static unsigned first_storable(const struct ex_model *model, const struct ex_state *state,
                               unsigned thread, unsigned word)
{
    unsigned seen = first_readable(model, state, thread, word);
    unsigned floor = ex_view(&model->views, state->thread[thread].floor)->at[word];

    return (seen > floor ? seen : floor) + 1;
}

/* May a store become number `at` of the history? Not between an atomic and what it read. */
static bool store_fits(const struct ex_model *model, uint32_t history, unsigned at)
{
    return at == ex_history_length(model, history) || !ex_store_at(model, history, at)->is_atomic;
}

static unsigned count_places(const struct ex_model *model, const struct ex_state *state,
                             unsigned thread, unsigned word)
{
    unsigned count = 0;
    unsigned length = ex_history_length(model, state->word[word]);

    for (unsigned at = first_storable(model, state, thread, word); at <= length; at++)
        count += store_fits(model, state->word[word], at);
    return count;
}

/* Place `number` of them. */
static unsigned find_place(const struct ex_model *model, const struct ex_state *state,
                           unsigned thread, unsigned word, unsigned number)
{
    unsigned at = first_storable(model, state, thread, word);

    while (!store_fits(model, state->word[word], at) || number-- > 0)
        at++;
    return at;
}

/* Does the thread have the lock that the word is? */
static bool holds(const struct ex_model *model, const struct ex_node *node)
{
    unsigned lock = model->lock[node->word];

    return lock && node->holds & 1u << (lock - 1);
}

static bool is_store(enum port_op_kind kind)
{
    return kind == PORT_OP_STORE || kind == PORT_OP_STORE16;
}

static unsigned count_store_places(const struct ex_model *model, const struct ex_state *state,
                                   unsigned thread)
{
    const struct ex_node *node = node_of(model, state, thread);
    if (model->words[node->word].unread)
        return 1;
    unsigned count = count_places(model, state, thread, node->word);

    return node->op.kind == PORT_OP_STORE16
               ? count * count_places(model, state, thread, node->word + 1u)
               : count;
}

/* Stores, at the places that `number` says. */
static void do_store(struct ex_model *model, struct ex_state *state, unsigned thread,
                     unsigned number)
{
    const struct ex_node *node = node_of(model, state, thread);
    const struct port_op op = node->op;
    unsigned word = node->word;
    ex_guard(model, word, node->holds, op.kind == PORT_OP_STORE && op.a == 0 && holds(model, node));
    if (op.kind == PORT_OP_STORE16)
        ex_guard(model, word + 1u, node->holds, false);
    if (model->words[word].unread) {
        if (model->trace)
            ex_trace_operation(model, state, thread, ex_history_length(model, state->word[word]),
                               0);
        return;
    }
    unsigned first = count_places(model, state, thread, word);
    assert(first > 0); /* the end of a history is a place always */
    unsigned at = find_place(model, state, thread, word, number % first);

    if (model->trace)
        ex_trace_operation(model, state, thread, at, 0);
    if (op.kind == PORT_OP_STORE)
        ex_store(model, state, thread, word, at, op.a, &op);
    else
        ex_store16(model, state, thread, word, at,
                   find_place(model, state, thread, word + 1, number / first), &op);
}

static bool others_write(const struct ex_model *model, unsigned thread, unsigned word)
{
    return model->written[word] & ~(1u << thread);
}

static bool others_touch(const struct ex_model *model, unsigned thread, unsigned word)
{
    return model->touched[word] & ~(1u << thread);
}

/* Is the word written only by those who hold a lock that the thread has? Then nobody writes it
 * before the thread gives the lock back. */
static bool is_guarded(const struct ex_model *model, const struct ex_node *node)
{
    return model->guards[node->word] & node->holds & ~model->locks_broken;
}

static void go_on(struct ex_model *model, struct ex_state *state, unsigned thread, uint64_t result)
{
    state->thread[thread].node = ex_thread_next(model, state->thread[thread].node, result);
    if (!ex_thread_ended(model, state, thread))
        return;
    uint32_t node = state->thread[thread].node;
    state->thread[thread] = (struct ex_thread_state){.node = node};
}

/* ---- Warps ---- */

/* All lanes of the mask have come to the same kind of operation: it is done for all. */
static bool meet(struct ex_model *model, struct ex_state *state, unsigned thread)
{
    const struct ex_node *node = node_of(model, state, thread);
    enum port_op_kind kind = node->op.kind;
    uint32_t mask = (uint32_t)node->op.b;
    uint32_t seen = EX_NOTHING, beyond = EX_NOTHING, floor = EX_NOTHING;

    for (unsigned lane = 0; lane < EX_THREADS; lane++) {
        if (!(mask & 1u << lane))
            continue;
        const struct ex_node *other = node_of(model, state, lane);
        if (other->op.kind != kind || other->op.b != mask)
            return false;
        seen = ex_view_join(&model->views, seen, state->thread[lane].seen);
        beyond = ex_view_join(&model->views, beyond, state->thread[lane].beyond);
        floor = ex_view_join(&model->views, floor, state->thread[lane].floor);
        floor = ex_floor_of_store(model, floor, state->thread[lane].seen);
    }
    uint64_t value = node_of(model, state, node->op.lane)->op.a;
    bool ordered = node->op.acquire;
    uint32_t source_floor = state->thread[node->op.lane].floor;
    for (unsigned lane = 0; lane < EX_THREADS; lane++) {
        if (!(mask & 1u << lane))
            continue;
        struct ex_thread_state *t = &state->thread[lane];
        if (model->trace)
            ex_trace_operation(model, state, lane, 0, value);
        if (kind == PORT_OP_SYNCWARP && ordered) {
            t->seen = seen;
            t->beyond = beyond;
            t->found = ex_view_join(&model->views, t->found, seen);
            t->found_beyond = ex_view_join(&model->views, t->found_beyond, beyond);
            t->found_outside = ex_view_join(&model->views, t->found_outside, beyond);
            t->floor = ex_view_join(&model->views, t->floor, floor);
        }
        if (kind == PORT_OP_BROADCAST) /* what the lane does next depends on it */
            t->floor = ex_view_join(&model->views, t->floor, source_floor);
        go_on(model, state, lane, kind == PORT_OP_BROADCAST ? value : 0);
    }
    return true;
}

/* ---- Steps without a choice ---- */

/* Does the thread's next operation when that needs no choice. False when it needs one, or waits. */
static bool advance(struct ex_model *model, struct ex_state *state, unsigned thread,
                    unsigned *pauses)
{
    const struct ex_node *node = node_of(model, state, thread);
    const struct port_op op = node->op;
    unsigned word = node->word, last = 0;
    uint64_t result = 0;
    uint32_t pause = state->thread[thread].node;

    if (word != EX_NO_WORD) {
        ex_touch(model, thread, word, op.kind != PORT_OP_LOAD);
        if (op.kind == PORT_OP_STORE16)
            ex_touch(model, thread, word + 1, true);
        last = ex_history_length(model, state->word[word]) - 1;
    }
    switch (op.kind) {
    case PORT_OP_END:
        return false;
    case PORT_OP_SYNCWARP:
    case PORT_OP_BROADCAST:
        return meet(model, state, thread);
    case PORT_OP_PAUSE:
        if (++*pauses == 2)
            return false; /* round and round, until somebody else does something */
        go_on(model, state, thread, 0);
        if (ex_node(model, pause)->lock_cycle != EX_NO_WORD)
            ex_history_undo(model, state, thread, ex_node(model, pause)->lock_cycle);
        return true;
    case PORT_OP_CHECK:
        if (!op.a)
            return ex_fault(model, "thread %u: %s does not hold", thread, op.text);
        break;
    case PORT_OP_LOAD:
        assert(!model->words[word].unread);
        if (others_write(model, thread, word) &&
            (!is_guarded(model, node) || first_readable(model, state, thread, word) < last))
            return false;
        result = ex_store_at(model, state->word[word], last)->value;
        if (model->trace)
            ex_trace_operation(model, state, thread, last, result);
        ex_load(model, state, thread, word, last, &op);
        break;
    case PORT_OP_STORE:
    case PORT_OP_STORE16:
        if (count_store_places(model, state, thread) > 1)
            return false;
        do_store(model, state, thread, 0);
        break;
    case PORT_OP_FENCE:
        if (model->trace)
            ex_trace_operation(model, state, thread, 0, 0);
        ex_fence(model, state, thread, &op);
        break;
    case PORT_OP_DOORBELL:
        if (ex_history_length(model, state->doorbells) == EX_DOORBELLS)
            return ex_fault(model, "more than %d doorbells are on their way", EX_DOORBELLS);
        if (model->trace)
            ex_trace_operation(model, state, thread, 0, 0);
        ex_ring(model, state, thread, node->queue, &op);
        break;
    case PORT_OP_STEP:
        break;
    default: /* atomics */
        if (others_touch(model, thread, word))
            return false;
        if (model->trace)
            ex_trace_operation(model, state, thread, last,
                               ex_store_at(model, state->word[word], last)->value);
        result = ex_atomic(model, state, thread, word, last, &op);
        break;
    }
    go_on(model, state, thread, result);
    return true;
}

bool ex_settle(struct ex_model *model, struct ex_state *state)
{
    unsigned threads = ex_thread_count(model);
    unsigned pauses[EX_THREADS] = {0};

    for (bool moved = true; moved;) {
        moved = false;
        for (unsigned thread = 0; thread < threads; thread++) {
            while (pauses[thread] < 2 && advance(model, state, thread, &pauses[thread]))
                moved = true;
        }
    }
    ex_history_trim(model, state);
    return !model->fault[0];
}

/* ---- Steps with choices ---- */

bool ex_must_go(struct ex_model *model, const struct ex_state *state, unsigned thread)
{
    return is_store(node_of(model, state, thread)->op.kind);
}

static bool readable(const struct ex_model *model, uint32_t history, unsigned at,
                     const struct port_op *op)
{
    return !is_atomic(op->kind) || ex_atomic_fits(model, history, at, op);
}

unsigned ex_choices(struct ex_model *model, const struct ex_state *state, unsigned thread)
{
    const struct ex_node *node = node_of(model, state, thread);
    unsigned count = 0;

    if (node->word == EX_NO_WORD)
        return 0;
    if (is_store(node->op.kind))
        return count_store_places(model, state, thread);
    uint32_t history = state->word[node->word];
    for (unsigned at = first_readable(model, state, thread, node->word);
         at < ex_history_length(model, history); at++)
        count += readable(model, history, at, &node->op);
    return count;
}

static uint64_t do_read(struct ex_model *model, struct ex_state *state, unsigned thread,
                        unsigned number)
{
    const struct ex_node *node = node_of(model, state, thread);
    const struct port_op op = node->op;
    unsigned word = node->word;
    uint32_t history = state->word[word];
    unsigned at = first_readable(model, state, thread, word);

    while (!readable(model, history, at, &op) || number-- > 0)
        at++;
    if (model->trace)
        ex_trace_operation(model, state, thread, at, ex_store_at(model, history, at)->value);
    return is_atomic(op.kind) ? ex_atomic(model, state, thread, word, at, &op)
                              : ex_load(model, state, thread, word, at, &op);
}

bool ex_choose(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned number)
{
    uint64_t result = 0;

    if (ex_must_go(model, state, thread))
        do_store(model, state, thread, number);
    else
        result = do_read(model, state, thread, number);
    go_on(model, state, thread, result);
    return ex_settle(model, state);
}
