/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The paper's figures: data/reference.csv, which is part of the program, as rows. Included by the
 * harness and by tool/cmd_bench.c.
 */
#ifndef BENCH_REFERENCE_H
#define BENCH_REFERENCE_H

#include <stddef.h>
#include <stdio.h>

struct bench_reference {
    const char *id;         /* R041 */
    const char *experiment; /* T3 */
    const char *platform;   /* P-IB; may be empty, as may all below but metric, unit and value */
    const char *system;
    const char *config;
    const char *metric;
    const char *unit;
    const char *value; /* as the paper prints it */
    const char *stat;
    const char *source;
    double number; /* the value */
};

/* All rows in the order of the file; the table is read at the first call and lives on. *count is 0
 * only without memory. */
const struct bench_reference *bench_reference_rows(size_t *count);

/* The row of an id, or NULL. */
const struct bench_reference *bench_reference_find(const char *id);

/* Prints the rows whose id or experiment is `id`, letters of either case; all rows when it is NULL.
 * Returns their number. */
size_t bench_reference_print(const char *id, FILE *out);

#endif
