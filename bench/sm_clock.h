/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a GPU ran at the clock that it had before. Times in kernels are ticks of the SM's clock,
 * converted at the rate that the same launch showed against the GPU's timer: they are right at any
 * clock, but comparable at one alone. Included by bench.h.
 */
#ifndef BENCH_SM_CLOCK_H
#define BENCH_SM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* A reading is of launches that lasted so long together: the steps of a timer are of up to 1 us. */
#define SM_CLOCK_READING_NS 1e6

/* How far the clock of a reading may be from the one before, in parts. */
#define SM_CLOCK_TOLERANCE 0.02

#define SM_CLOCK_WHY_BYTES 128

struct sm_clock {
    double before_mhz; /* 0: there is none to compare with */
    double ticks, ns;  /* of a reading that is not long enough yet */
    uint64_t readings;
    uint64_t off;     /* of them */
    double worst_mhz; /* of the reading that is off the farthest */
};

/* The clock before, of a GPU that was just opened. What was read until then still counts. */
void sm_clock_start(struct sm_clock *clock, double before_mhz);

/* What a launch lasted, by the SM's clock and by the timer. */
void sm_clock_add(struct sm_clock *clock, double ticks, double ns);

/* False, with a sentence in why[SM_CLOCK_WHY_BYTES], when a reading was off. */
bool sm_clock_agrees(const struct sm_clock *clock, char *why);

#endif
