/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running the experiments that the user chose, and writing what came out. Included by
 * tool/cmd_bench.c, which chooses them.
 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "bench.h"

struct bench_plan {
    const struct bench_case *const *cases;
    size_t n_cases;
    const struct bench_options *options;
    const char *command; /* the command line, for the JSON document */
    const char *version; /* of Doorbell */
};

/*
 * Runs the cases in order. Tables, or the JSON document, go to standard output; what went wrong
 * goes to standard error, and so do a warning for each option that a case does not use and, on a
 * terminal, progress. Returns the exit status: BENCH_USAGE before anything ran when the options do
 * not agree.
 */
enum bench_status bench_run(const struct bench_plan *plan);

#endif
