/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * States that are the same to everybody, and one of them that stands for all.
 *
 * Polls that find nothing new. A thread that waits reads the same stores again and again; when an
 * iteration ends where it began and nothing but the thread's place in it has changed on the way,
 * all places of that iteration are one state: from each the thread comes to each other, at any
 * time, whatever others do, and nobody sees it. The search goes on with what the thread may find in
 * any of them. A thread reads again in one way only what it has seen, so the places follow each
 * other in a line, which comes back to where it began or does not. An iteration that takes a lock
 * is none of these: others see the lock.
 *
 * Threads that are alike. When no thread looks at its number, states in which threads have changed
 * places are one.
 */
#include <string.h>

#include "program.h"

/* Operations of one iteration that need no choice; more are no poll. */
#define MOST_OPERATIONS 64

/* ---- Polls that find nothing new ---- */

static bool others_write(const struct ex_model *model, unsigned thread, unsigned word)
{
    return model->written[word] & ~(1u << thread);
}

/* A load, or an atomic that fails like one, whose outcome is a choice. */
static bool is_poll(const struct ex_model *model, unsigned thread, const struct ex_node *node)
{
    if (node->word == EX_NO_WORD)
        return false;
    if (node->op.kind == PORT_OP_LOAD)
        return others_write(model, thread, node->word);
    return node->op.kind == PORT_OP_CAS && (model->touched[node->word] & ~(1u << thread));
}

/* Reads store `at` without a change to the thread's views. False when they would change. */
static bool load_again(struct ex_model *model, struct ex_state *state, unsigned thread,
                       unsigned word, unsigned at, const struct port_op *op, uint64_t *value)
{
    const struct ex_thread_state before = state->thread[thread];

    *value = ex_load(model, state, thread, word, at, op);
    if (memcmp(&before, &state->thread[thread], sizeof(before)) == 0)
        return true;
    state->thread[thread] = before;
    return false;
}

static bool acquire_again(struct ex_model *model, struct ex_state *state, unsigned thread,
                          const struct port_op *op)
{
    const struct ex_thread_state before = state->thread[thread];

    ex_fence(model, state, thread, op);
    if (memcmp(&before, &state->thread[thread], sizeof(before)) == 0)
        return true;
    state->thread[thread] = before;
    return false;
}

/* From a poll to the next one, by reading what the thread has seen. False when there is none, or
 * when something changes on the way. */
static bool next_poll(struct ex_model *model, struct ex_state *state, unsigned thread,
                      uint32_t *place)
{
    struct port_op op = ex_node(model, *place)->op;
    unsigned word = ex_node(model, *place)->word;
    unsigned at = ex_view(&model->views, state->thread[thread].seen)->at[word];
    uint64_t value;

    ex_touch(model, thread, word, op.kind != PORT_OP_LOAD);
    if (op.kind == PORT_OP_CAS && ex_store_at(model, state->word[word], at)->value == op.a)
        return false;
    if (!load_again(model, state, thread, word, at, &op, &value))
        return false;
    *place = ex_thread_next(model, *place, value);
    for (unsigned i = 0; i < MOST_OPERATIONS; i++) {
        const struct ex_node *node = ex_node(model, *place);
        op = node->op;
        word = node->word;
        value = 0;
        if (is_poll(model, thread, node))
            return true;
        switch (op.kind) {
        case PORT_OP_LOAD:
            ex_touch(model, thread, word, false);
            at = ex_history_length(model, state->word[word]) - 1;
            if (!load_again(model, state, thread, word, at, &op, &value))
                return false;
            break;
        case PORT_OP_FENCE:
            if (op.release || !acquire_again(model, state, thread, &op))
                return false;
            break;
        case PORT_OP_PAUSE:
        case PORT_OP_STEP:
            break;
        default:
            return false;
        }
        *place = ex_thread_next(model, *place, value);
        if (op.kind == PORT_OP_PAUSE && node->lock_cycle != EX_NO_WORD)
            return false;
    }
    return false;
}

unsigned ex_polls(struct ex_model *model, struct ex_state *state, unsigned thread, uint32_t *polls)
{
    uint32_t first = state->thread[thread].node, place = first;
    unsigned count = 0;

    if (model->config.unreduced || !is_poll(model, thread, ex_node(model, first)))
        return 0;
    do {
        if (count == EX_POLLS)
            return 0;
        polls[count++] = place;
        if (!next_poll(model, state, thread, &place))
            return 0;
    } while (place != first);
    return count;
}

/* Puts the thread at the one of its polls that stands for all. */
static void join_polls(struct ex_model *model, struct ex_state *state, unsigned thread)
{
    uint32_t polls[EX_POLLS];
    unsigned count = ex_polls(model, state, thread, polls);

    for (unsigned i = 0; i < count; i++) {
        if (polls[i] < state->thread[thread].node)
            state->thread[thread].node = polls[i];
    }
}

/* ---- Threads that are alike ---- */

/* The order of the threads by their states; `order` is an order of them already. Returns whether it
 * was right. */
static bool sort_threads(const struct ex_model *model, const struct ex_state *state, uint8_t *order)
{
    unsigned threads = ex_thread_count(model);
    bool sorted = true;

    for (unsigned i = 1; i < threads; i++) {
        uint8_t thread = order[i];
        unsigned at = i;
        for (; at > 0 && memcmp(&state->thread[thread], &state->thread[order[at - 1]],
                                sizeof(state->thread[thread])) < 0;
             at--) {
            order[at] = order[at - 1];
            sorted = false;
        }
        order[at] = thread;
    }
    return sorted;
}

/* ---- Both ---- */

void ex_reduce(struct ex_model *model, struct ex_state *state, const struct ex_state *before)
{
    uint8_t order[EX_THREADS] = {0, 1, 2, 3, 4, 5};
    unsigned threads = ex_thread_count(model);

    for (unsigned thread = 0; thread < threads; thread++) {
        if (!before || memcmp(&before->thread[thread], &state->thread[thread],
                              sizeof(state->thread[thread])) != 0)
            join_polls(model, state, thread);
    }
    if (model->symmetric && !sort_threads(model, state, order))
        ex_history_rename(model, state, order);
}

void ex_reduce_followed(struct ex_model *model, struct ex_state *state, uint8_t *who)
{
    unsigned threads = ex_thread_count(model);

    for (unsigned thread = 0; thread < threads; thread++)
        join_polls(model, state, thread);
    if (model->symmetric)
        sort_threads(model, state, who);
}
