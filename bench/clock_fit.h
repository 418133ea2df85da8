/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fit T = C/f + B: how much of a time is ticks of a clock, and how much passes whatever the
 * clock is. Included by the case clock.
 */
#ifndef BENCH_CLOCK_FIT_H
#define BENCH_CLOCK_FIT_H

#include "bench.h"

struct clock_point {
    double mhz;
    double ns; /* T at that clock */
};

struct clock_fit {
    double ticks;   /* C */
    double free_ns; /* B */
    double share;   /* C/f at the highest clock, in percent of the T there */
};

/* Least squares over 1/f, each point counting alike. False when there are not two clocks. */
bool clock_fit(const struct clock_point *points, size_t count, struct clock_fit *fit);

/* Reports all three as they were fitted. BENCH_DEGRADED when C or B is negative, as no part of a
 * time can be. */
enum bench_status clock_fit_report(struct bench *b, const struct clock_fit *fit, size_t levels);

#endif
