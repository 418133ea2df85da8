/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of experiments: one line here, one file in cases/.
 */
#include "cases.h"

const struct bench_case *const bench_cases[] = {
    &bench_case_null,
    &bench_case_timer,
    &bench_case_delay,
    &bench_case_one_op,
    &bench_case_ordering,
    &bench_case_inline,
    &bench_case_rate,
    &bench_case_issue,
    &bench_case_l2,
    &bench_case_clock,
    &bench_case_proxy_enqueue,
    &bench_case_loaded,
    &bench_case_proxy_rate,
    &bench_case_payload,
    &bench_case_warmth,
    &bench_case_idle,
    NULL,
};
