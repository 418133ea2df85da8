/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A counterexample, step by step, for a person. Included by the parts that take steps; each calls
 * here only while model->trace is set, which is when the search repeats the path that it found.
 */
#ifndef EXPLORE_TRACE_H
#define EXPLORE_TRACE_H

#include "model.h"

struct ex_trace {
    FILE *to;
    unsigned line;
};

/* A thread's operation, which loaded `value` as number `at` of the word's history. To be called
 * before the operation is done. */
void ex_trace_operation(struct ex_model *model, const struct ex_state *state, unsigned thread,
                        unsigned at, uint64_t value);

/* Something that the device did. */
void ex_trace_device(struct ex_model *model, unsigned queue, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A word's value as its format says. Returns `text`. */
const char *ex_value_text(enum ex_format format, uint64_t value, char *text, size_t bytes);

/* What each thread that has not ended waits for. */
void ex_trace_waiting(struct ex_model *model, const struct ex_state *state);

#endif
