/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The row that each file in cases/ defines. Included by those files and by cases.c.
 */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include "bench.h"

extern const struct bench_case bench_case_null;
extern const struct bench_case bench_case_timer;
extern const struct bench_case bench_case_delay;
extern const struct bench_case bench_case_one_op;
extern const struct bench_case bench_case_ordering;
extern const struct bench_case bench_case_inline;
extern const struct bench_case bench_case_rate;
extern const struct bench_case bench_case_issue;
extern const struct bench_case bench_case_l2;
extern const struct bench_case bench_case_clock;
extern const struct bench_case bench_case_proxy_enqueue;
extern const struct bench_case bench_case_loaded;
extern const struct bench_case bench_case_proxy_rate;
extern const struct bench_case bench_case_payload;
extern const struct bench_case bench_case_warmth;
extern const struct bench_case bench_case_idle;

#endif
