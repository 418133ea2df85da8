/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on views (view.h). Each result is remembered in a direct-mapped table under the
 * operation and its two operands: a search asks the same few thousand questions millions of times.
 */
#include "view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"

/* It grows with the number of views, so that a small search touches little memory. */
#define FIRST_MEMO_LOG2 12
#define MOST_MEMO_LOG2  22

enum view_op {
    OP_NONE,
    OP_JOIN,
    OP_SEEN,
    OP_RUNG,
    OP_OF_WORDS,
    OP_LOWERED,
    OP_RAISED,
    OP_CUT,
    OP_ARRIVED,
};

struct ex_view_memo {
    uint32_t a, b, op, result;
};

int ex_views_open(struct ex_views *views)
{
    static const struct ex_view nothing;
    int rc = ex_pool_open(&views->pool);
    if (rc)
        return rc;
    views->memo_log2 = FIRST_MEMO_LOG2;
    views->memo = calloc((size_t)1 << views->memo_log2, sizeof(*views->memo));
    if (!views->memo) {
        ex_pool_close(&views->pool);
        return -ENOMEM;
    }
    ex_intern(&views->pool, &nothing, sizeof(nothing));
    return 0;
}

void ex_views_close(struct ex_views *views)
{
    free(views->memo);
    ex_pool_close(&views->pool);
}

uint32_t ex_view_number(struct ex_views *views, const struct ex_view *view)
{
    return ex_intern(&views->pool, view, sizeof(*view));
}

static void compute(enum view_op op, struct ex_view *view, const struct ex_view *other, uint32_t b)
{
    unsigned word = b >> 8, at = b & 0xff;

    switch (op) {
    case OP_JOIN:
        for (unsigned i = 0; i < EX_WORDS; i++)
            view->at[i] = view->at[i] > other->at[i] ? view->at[i] : other->at[i];
        view->doorbells |= other->doorbells;
        break;
    case OP_SEEN:
        if (view->at[word] < at)
            view->at[word] = (uint8_t)at;
        break;
    case OP_RUNG:
        view->doorbells |= 1u << b;
        break;
    case OP_OF_WORDS:
        for (unsigned i = 0; i < EX_WORDS; i++)
            view->at[i] &= other->at[i];
        view->doorbells &= other->doorbells;
        break;
    case OP_LOWERED:
        for (unsigned i = 0; i < EX_WORDS; i++)
            view->at[i] =
                view->at[i] > other->at[i] ? (uint8_t)(view->at[i] - other->at[i]) : (uint8_t)0;
        break;
    case OP_RAISED:
        view->at[word] = (uint8_t)(view->at[word] + (view->at[word] >= at));
        break;
    case OP_CUT:
        view->at[word] = view->at[word] < at ? view->at[word] : (uint8_t)(at - 1);
        break;
    case OP_ARRIVED:
        view->doorbells = ex_mask_without(view->doorbells, b);
        break;
    case OP_NONE:
        break;
    }
}

/* What was remembered is lost, and will be asked again. */
static void grow_memo(struct ex_views *views)
{
    size_t bytes = sizeof(*views->memo) << ++views->memo_log2;

    views->memo = ex_grow(views->memo, bytes, 1);
    memset(views->memo, 0, bytes);
}

/* `b` is a view's number for JOIN, OF_WORDS and LOWERED, else a plain operand. */
static uint32_t view_do(struct ex_views *views, enum view_op op, uint32_t a, uint32_t b)
{
    uint64_t key =
        ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u + (uint64_t)op * 0xc4ceb9fe1a85ec53u;
    bool binary = op == OP_JOIN || op == OP_OF_WORDS || op == OP_LOWERED;

    if (views->pool.count >> views->memo_log2 && views->memo_log2 < MOST_MEMO_LOG2)
        grow_memo(views);
    struct ex_view_memo *memo = &views->memo[(key ^ key >> 32) >> (32 - MOST_MEMO_LOG2) &
                                             (((uint32_t)1 << views->memo_log2) - 1)];

    if (memo->op == op && memo->a == a && memo->b == b)
        return memo->result;
    struct ex_view view = *ex_view(views, a);
    compute(op, &view, binary ? ex_view(views, b) : NULL, b);
    *memo = (struct ex_view_memo){a, b, op, ex_view_number(views, &view)};
    return memo->result;
}

uint32_t ex_view_join(struct ex_views *views, uint32_t a, uint32_t b)
{
    if (a == b || b == EX_NOTHING)
        return a;
    return a == EX_NOTHING ? b : view_do(views, OP_JOIN, a < b ? a : b, a < b ? b : a);
}

uint32_t ex_view_seen(struct ex_views *views, uint32_t view, unsigned word, unsigned at)
{
    return ex_view(views, view)->at[word] >= at ? view
                                                : view_do(views, OP_SEEN, view, word << 8 | at);
}

uint32_t ex_view_rung(struct ex_views *views, uint32_t view, unsigned number)
{
    return view_do(views, OP_RUNG, view, number);
}

uint32_t ex_view_of_words(struct ex_views *views, uint32_t view, uint32_t mask)
{
    return view == EX_NOTHING ? view : view_do(views, OP_OF_WORDS, view, mask);
}

uint32_t ex_view_lowered(struct ex_views *views, uint32_t view, uint32_t dropped)
{
    return view == EX_NOTHING ? view : view_do(views, OP_LOWERED, view, dropped);
}

uint32_t ex_view_raised(struct ex_views *views, uint32_t view, unsigned word, unsigned at)
{
    return view == EX_NOTHING ? view : view_do(views, OP_RAISED, view, word << 8 | at);
}

uint32_t ex_view_arrived(struct ex_views *views, uint32_t view, unsigned number)
{
    return view == EX_NOTHING ? view : view_do(views, OP_ARRIVED, view, number);
}

uint32_t ex_view_cut(struct ex_views *views, uint32_t view, unsigned word, unsigned at)
{
    return ex_view(views, view)->at[word] < at ? view
                                               : view_do(views, OP_CUT, view, word << 8 | at);
}
