/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of verdicts: each row a program in one variant with one ordering, each cell a search.
 * What is expected of every cell stands in the row, so that the table is a test. Included by
 * `doorbell explore`, the tests and teeth.c.
 */
#ifndef EXPLORE_TABLE_H
#define EXPLORE_TABLE_H

#include "explore.h"

/* Cells of a row, in order: the device models D, E, R with rings in GPU memory, then in host
 * memory. A program without a device has two: payload in GPU memory, in host memory. */
#define EX_CELLS 6

struct ex_row {
    const char *name;
    const struct ex_program *program;
    unsigned variant, threads, messages;
    const char *ordering; /* as the table says it */
    unsigned order;       /* enum db_order */
    unsigned record;      /* enum db_record */
    /* 's' safe, 'c' counterexample, '-' not a case; by the rules of machines, and by the letter of
     * PTX where that differs (NULL: it does not). */
    const char *expected, *by_the_letter;
    const struct ex_mutation *mutation;
    unsigned others; /* messages of all threads but the first; 0: the same */
    unsigned depth;  /* blocks of the ring; 0: two */
    enum ex_delivery delivery;
    bool writes_reordered, torn, unwaited;
    bool large; /* only when asked for: minutes */
};

extern const struct ex_row ex_rows[];
extern const size_t ex_row_count;

struct ex_table_options {
    int row;      /* one row alone, or -1 */
    size_t first; /* the first rows alone; 0: all */
    bool large;   /* the large rows as well */
    bool trace;   /* print the counterexamples of the rows */
    unsigned jobs;
    uint64_t max_states;
};

/* Totals of what was run. */
struct ex_totals {
    unsigned cells, unexpected, stopped;
    uint64_t states;
    double seconds; /* of all jobs together */
};

/* Runs the table and prints it to `to`: the same text each time. Returns 0 or -ENOMEM. */
int ex_table_run(const struct ex_table_options *options, FILE *to, struct ex_totals *totals);

/* The configuration of cell `cell` of a row. False when it is not a case. */
bool ex_row_config(const struct ex_row *row, unsigned cell, enum ex_rules rules,
                   struct ex_config *config);

#endif
