/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views: how far someone has seen each word. Word w's stores are numbered in the order in which all
 * agree that they happened (its history); a view says, for each word, below which number nothing
 * may be read any more. It also holds the set of doorbells that come before. Included by model.h.
 *
 * Views are named by their numbers in a pool, and every operation on them is remembered. docs/
 * memory_order.md, "The model".
 */
#ifndef EXPLORE_VIEW_H
#define EXPLORE_VIEW_H

#include <stdbool.h>

#include "pool.h"

#define EX_WORDS     92 /* words of memory that a program may have */
#define EX_DOORBELLS 32 /* that may be on their way at once */

struct ex_view {
    uint8_t at[EX_WORDS];
    uint32_t doorbells;
};

/* The view that has seen nothing but what memory held at first. */
#define EX_NOTHING 0u

struct ex_views {
    struct ex_pool pool;
    struct ex_view_memo *memo;
    unsigned memo_log2;
};

int ex_views_open(struct ex_views *views);
void ex_views_close(struct ex_views *views);

static inline const struct ex_view *ex_view(const struct ex_views *views, uint32_t number)
{
    return ex_string(&views->pool, number);
}

uint32_t ex_view_number(struct ex_views *views, const struct ex_view *view);

/* What either has seen. */
uint32_t ex_view_join(struct ex_views *views, uint32_t a, uint32_t b);
/* The view, that has also seen store `at` of `word`. */
uint32_t ex_view_seen(struct ex_views *views, uint32_t view, unsigned word, unsigned at);
/* The view, behind doorbell `number` as well. */
uint32_t ex_view_rung(struct ex_views *views, uint32_t view, unsigned number);
/* What the view has seen of the words that `mask` is 255 for, and the doorbells that are in both.
 */
uint32_t ex_view_of_words(struct ex_views *views, uint32_t view, uint32_t mask);

/* The same view after histories were renumbered: the first `dropped.at[w]` stores of each word are
 * gone. */
uint32_t ex_view_lowered(struct ex_views *views, uint32_t view, uint32_t dropped);
/* ... after a store was put into the history of `word` as number `at`. */
uint32_t ex_view_raised(struct ex_views *views, uint32_t view, unsigned word, unsigned at);
/* ... after the stores from `at` on were taken back. */
uint32_t ex_view_cut(struct ex_views *views, uint32_t view, unsigned word, unsigned at);
/* ... after doorbell `number` arrived and those behind it moved down. */
uint32_t ex_view_arrived(struct ex_views *views, uint32_t view, unsigned number);

static inline uint32_t ex_mask_without(uint32_t mask, unsigned bit)
{
    uint32_t below = (1u << bit) - 1;
    return (mask & below) | (mask >> 1 & ~below);
}

#endif
