/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Histories: the stores of each word in the order that all agree on. A store that nobody can read
 * any more is dropped and the rest numbered from 0, so that states which differ only in what is
 * past are one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "program.h"

/* It grows with the number of histories. */
#define FIRST_MEMO_LOG2 12
#define MOST_MEMO_LOG2  20

/* A history with a change made to it, remembered: `which` change, and by what. Number 0, no stores,
 * is never asked for. */
struct ex_memo {
    uint32_t history, by, which, result;
};

static size_t memo_bytes(unsigned log2)
{
    return sizeof(struct ex_memo) << log2;
}

static struct ex_memo *memo_at(struct ex_model *model, uint32_t history, uint32_t by,
                               uint32_t which)
{
    uint64_t key = ((uint64_t)history << 32 | by) * 0x9e3779b97f4a7c15u +
                   which * (uint64_t)0xc4ceb9fe1a85ec53u;

    if (model->histories.count >> model->memo_log2 && model->memo_log2 < MOST_MEMO_LOG2) {
        size_t bytes = memo_bytes(++model->memo_log2);
        model->memo = ex_grow(model->memo, bytes, 1);
        memset(model->memo, 0, bytes);
    }
    return &model->memo[(key ^ key >> 32) >> 7 & (((uint32_t)1 << model->memo_log2) - 1)];
}

int ex_memo_open(struct ex_model *model)
{
    model->memo_log2 = FIRST_MEMO_LOG2;
    model->memo = calloc(1, memo_bytes(model->memo_log2));
    return model->memo ? 0 : -ENOMEM;
}

uint32_t ex_history_insert(struct ex_model *model, uint32_t history, unsigned at,
                           const struct ex_store *store)
{
    uint32_t list[UINT8_MAX + 1];
    unsigned length = ex_history_length(model, history);
    const uint32_t *from = ex_string(&model->histories, history);

    memcpy(list, from, at * sizeof(*list));
    list[at] = ex_intern(&model->stores, store, sizeof(*store));
    memcpy(list + at + 1, from + at, (length - at) * sizeof(*list));
    return ex_intern(&model->histories, list, (length + 1) * (uint32_t)sizeof(*list));
}

/* A change of every view that a state and its stores hold. */
struct change {
    uint32_t (*view)(struct ex_views *views, uint32_t view, unsigned a, unsigned b);
    unsigned a, b;
};

static uint32_t lower(struct ex_views *views, uint32_t view, unsigned dropped, unsigned b)
{
    (void)b;
    return ex_view_lowered(views, view, dropped);
}

static uint32_t cut(struct ex_views *views, uint32_t view, unsigned word, unsigned at)
{
    return ex_view_cut(views, view, word, at);
}

static uint32_t raise(struct ex_views *views, uint32_t view, unsigned word, unsigned at)
{
    return ex_view_raised(views, view, word, at);
}

static uint32_t arrive(struct ex_views *views, uint32_t view, unsigned number, unsigned b)
{
    (void)b;
    return ex_view_arrived(views, view, number);
}

/* The history without its first `drop` stores, with the change made to the others. */
static uint32_t change_history(struct ex_model *model, uint32_t history, unsigned drop,
                               const struct change *change)
{
    uint32_t list[UINT8_MAX + 1];
    unsigned length = ex_history_length(model, history);

    for (unsigned i = drop; i < length; i++) {
        struct ex_store store = *ex_store_at(model, history, i);
        store.view = change->view(&model->views, store.view, change->a, change->b);
        store.beyond = change->view(&model->views, store.beyond, change->a, change->b);
        store.floor = change->view(&model->views, store.floor, change->a, change->b);
        if (change->view == arrive)
            store.after = ex_mask_without(store.after, change->a);
        list[i - drop] = ex_intern(&model->stores, &store, sizeof(store));
    }
    return ex_intern(&model->histories, list, (length - drop) * (uint32_t)sizeof(*list));
}

/* The same, remembered; `drop` or one of these says which change it is, with the change's `a`. */
#define RAISED  (UINT32_MAX - EX_WORDS) /* + the word; no history drops as many */
#define ARRIVED (RAISED - 1)
#define RENAMED (RAISED - 2)

static uint32_t change_word(struct ex_model *model, uint32_t history, uint32_t which, unsigned drop,
                            const struct change *change)
{
    uint32_t a = which >= RAISED ? change->b : change->a;
    struct ex_memo *memo = memo_at(model, history, a, which);

    if (memo->history != history || memo->by != a || memo->which != which)
        *memo = (struct ex_memo){history, a, which, change_history(model, history, drop, change)};
    return memo->result;
}

static void change_thread(struct ex_model *model, struct ex_thread_state *t,
                          const struct change *change)
{
    uint32_t *views[] = {&t->seen,  &t->beyond,       &t->released,      &t->released_beyond,
                         &t->found, &t->found_beyond, &t->found_outside, &t->floor};

    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
        *views[i] = change->view(&model->views, *views[i], change->a, change->b);
}

static void change_views(struct ex_model *model, struct ex_state *state,
                         const struct change *change)
{
    unsigned threads = ex_thread_count(model);

    for (unsigned i = 0; i < threads; i++)
        change_thread(model, &state->thread[i], change);
    for (unsigned q = 0; q < model->queue_count; q++) {
        struct ex_queue_state *queue = &state->queue[q];
        queue->seen = change->view(&model->views, queue->seen, change->a, change->b);
        queue->wrote = change->view(&model->views, queue->wrote, change->a, change->b);
        queue->floor = change->view(&model->views, queue->floor, change->a, change->b);
    }
    state->doorbells = change_history(model, state->doorbells, 0, change);
}

/* ---- Dropping what is past ---- */

/* For each word the number of its first store that somebody may still read. */
static bool find_past(struct ex_model *model, const struct ex_state *state, struct ex_view *past)
{
    unsigned threads = ex_thread_count(model);
    bool any = false;

    memset(past->at, 0xff, sizeof(past->at));
    past->doorbells = 0;
    for (unsigned agent = 0; agent < EX_DEVICE + model->queue_count; agent++) {
        if (agent < EX_DEVICE && (agent >= threads || ex_thread_ended(model, state, agent)))
            continue;
        const struct ex_view *view =
            ex_view(&model->views, agent < EX_DEVICE ? state->thread[agent].seen
                                                     : state->queue[agent - EX_DEVICE].seen);
        const struct ex_view *mask = ex_view(&model->views, model->agent_mask[agent]);
        for (unsigned w = 0; w < EX_WORDS; w++) {
            uint8_t at = view->at[w] | mask->at[w];
            past->at[w] = past->at[w] < at ? past->at[w] : at;
        }
    }
    for (unsigned w = 0; w < model->word_count; w++) {
        unsigned length = ex_history_length(model, state->word[w]);
        unsigned drop = past->at[w] < length ? past->at[w] : length - 1;
        if (length - drop > EX_VERSIONS) {
            drop = length - EX_VERSIONS;
            model->versions_cut = true;
        }
        past->at[w] = (uint8_t)drop;
        any |= drop > 0;
    }
    memset(past->at + model->word_count, 0, sizeof(past->at) - model->word_count);
    return any;
}

void ex_history_trim(struct ex_model *model, struct ex_state *state)
{
    struct ex_view past;

    if (!find_past(model, state, &past))
        return;
    uint32_t lowered = ex_view_number(&model->views, &past);
    struct change change = {lower, lowered, 0};
    change_views(model, state, &change);
    for (unsigned w = 0; w < model->word_count; w++)
        state->word[w] = change_word(model, state->word[w], past.at[w], past.at[w], &change);
}

/* ---- Threads that change places ---- */

static uint32_t rename_history(struct ex_model *model, uint32_t history, const uint8_t *name)
{
    uint32_t list[UINT8_MAX + 1];
    unsigned length = ex_history_length(model, history);

    for (unsigned i = 0; i < length; i++) {
        struct ex_store store = *ex_store_at(model, history, i);
        if (store.agent < EX_THREADS)
            store.agent = name[store.agent];
        list[i] = ex_intern(&model->stores, &store, sizeof(store));
    }
    return ex_intern(&model->histories, list, length * (uint32_t)sizeof(*list));
}

void ex_history_rename(struct ex_model *model, struct ex_state *state, const uint8_t *order)
{
    const struct ex_state before = *state;
    unsigned threads = ex_thread_count(model);
    uint8_t name[EX_THREADS] = {0}; /* of who was thread i */
    uint32_t all = 0;

    for (unsigned i = 0; i < threads; i++) {
        state->thread[i] = before.thread[order[i]];
        name[order[i]] = (uint8_t)i;
        all = all << 4 | order[i];
    }
    for (unsigned w = 0; w <= model->word_count; w++) {
        uint32_t *history = w < model->word_count ? &state->word[w] : &state->doorbells;
        if (*history == EX_NO_STORES)
            continue;
        struct ex_memo *memo = memo_at(model, *history, all, RENAMED);
        if (memo->history != *history || memo->by != all || memo->which != RENAMED)
            *memo = (struct ex_memo){*history, all, RENAMED, rename_history(model, *history, name)};
        *history = memo->result;
    }
}

void ex_history_shift(struct ex_model *model, struct ex_state *state, unsigned word, unsigned at)
{
    struct change change = {raise, word, at};

    change_views(model, state, &change);
    for (unsigned w = 0; w < model->word_count; w++)
        state->word[w] = change_word(model, state->word[w], RAISED + word, 0, &change);
}

void ex_doorbell_remove(struct ex_model *model, struct ex_state *state, unsigned number)
{
    uint32_t list[EX_DOORBELLS];
    struct change change = {arrive, number, 0};
    unsigned length = ex_history_length(model, state->doorbells);
    const uint32_t *from = ex_string(&model->histories, state->doorbells);

    memcpy(list, from, number * sizeof(*list));
    memcpy(list + number, from + number + 1, (length - number - 1) * sizeof(*list));
    state->doorbells = ex_intern(&model->histories, list, (length - 1) * (uint32_t)sizeof(*list));
    change_views(model, state, &change);
    for (unsigned w = 0; w < model->word_count; w++)
        state->word[w] = change_word(model, state->word[w], ARRIVED, 0, &change);
}

/* ---- Taking back ---- */

static bool sees(const struct ex_model *model, uint32_t view, unsigned word, unsigned at)
{
    return ex_view(&model->views, view)->at[word] >= at;
}

/* Has anybody but `thread` seen store `at` of a word, or handed on that they have? */
static bool seen_by_others(struct ex_model *model, const struct ex_state *state, unsigned thread,
                           unsigned word, unsigned at)
{
    unsigned threads = ex_thread_count(model);

    for (unsigned i = 0; i < threads; i++) {
        if (i != thread && (sees(model, state->thread[i].found, word, at) ||
                            sees(model, state->thread[i].floor, word, at)))
            return true;
    }
    for (unsigned q = 0; q < model->queue_count; q++) {
        if (sees(model, ex_device_view(model, state, q), word, at))
            return true;
    }
    for (unsigned w = 0; w <= model->word_count; w++) {
        uint32_t history = w < model->word_count ? state->word[w] : state->doorbells;
        for (unsigned i = 0; i < ex_history_length(model, history); i++) {
            const struct ex_store *store = ex_store_at(model, history, i);
            if ((w != word || i < at) &&
                (sees(model, store->view, word, at) || sees(model, store->beyond, word, at) ||
                 sees(model, store->floor, word, at)))
                return true;
        }
    }
    return false;
}

void ex_history_undo(struct ex_model *model, struct ex_state *state, unsigned thread, unsigned word)
{
    unsigned length = ex_history_length(model, state->word[word]);
    struct change change = {cut, word, length - 2};

    if (length < 3 || ex_store_at(model, state->word[word], length - 1)->agent != thread ||
        ex_store_at(model, state->word[word], length - 2)->agent != thread ||
        !ex_store_at(model, state->word[word], length - 2)->is_atomic ||
        seen_by_others(model, state, thread, word, length - 2))
        return;
    state->word[word] =
        ex_intern(&model->histories, ex_string(&model->histories, state->word[word]),
                  (length - 2) * (uint32_t)sizeof(uint32_t));
    change_thread(model, &state->thread[thread], &change);
}
