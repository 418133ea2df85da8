/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The row that each file in cases/ defines. Included by those files and by cases.c.
 */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include "bench.h"

extern const struct bench_case bench_case_null;
extern const struct bench_case bench_case_timer;
extern const struct bench_case bench_case_one_op;
extern const struct bench_case bench_case_ordering;
extern const struct bench_case bench_case_inline;
extern const struct bench_case bench_case_rate;

#endif
