/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The progress line of progress.h.
 */
#include "progress.h"

#include "clock.h"

#include <stdio.h>
#include <unistd.h>

#define INTERVAL_NS 100000000U

static bool shown;
static uint64_t shown_ns;

void bench_progress_show(const char *experiment, const char *what, double part)
{
    uint64_t now_ns = bench_monotonic_ns();

    if (now_ns - shown_ns < INTERVAL_NS)
        return;
    shown_ns = now_ns;
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[K%s: %s %.0f%%", experiment, what, part * 100);
    shown = true;
}

void bench_progress_clear(void)
{
    if (shown)
        fputs("\r\033[K", stderr);
    shown = false;
}
