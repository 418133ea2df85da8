/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a GPU ran at the clock that it had before; see sm_clock.h.
 */
#include "sm_clock.h"

#include <math.h>
#include <stdio.h>

void sm_clock_start(struct sm_clock *clock, double before_mhz)
{
    clock->before_mhz = before_mhz;
    clock->ticks = 0;
    clock->ns = 0;
}

/* In parts of the clock before. */
static double distance(const struct sm_clock *clock, double mhz)
{
    return fabs(mhz / clock->before_mhz - 1);
}

void sm_clock_add(struct sm_clock *clock, double ticks, double ns)
{
    clock->ticks += ticks;
    clock->ns += ns;
    if (clock->before_mhz <= 0 || clock->ns < SM_CLOCK_READING_NS)
        return;
    double mhz = clock->ticks * 1e3 / clock->ns;
    clock->readings++;
    if (distance(clock, mhz) > SM_CLOCK_TOLERANCE) {
        if (clock->off == 0 || distance(clock, mhz) > distance(clock, clock->worst_mhz))
            clock->worst_mhz = mhz;
        clock->off++;
    }
    clock->ticks = 0;
    clock->ns = 0;
}

bool sm_clock_agrees(const struct sm_clock *clock, char *why)
{
    if (clock->off == 0)
        return true;
    snprintf(
        why, SM_CLOCK_WHY_BYTES,
        "the SM's clock ran at %.0f MHz, and at %.0f MHz before (%llu of %llu readings are off)",
        clock->worst_mhz, clock->before_mhz, (unsigned long long)clock->off,
        (unsigned long long)clock->readings);
    return false;
}
