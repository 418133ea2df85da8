/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One line on standard error that says how far a measurement is, when standard error is a terminal;
 * nothing otherwise. Included by the harness; every message to the user clears the line first.
 */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

/* Shows the line, at most ten times a second; `part` is from 0 to 1. */
void bench_progress_show(const char *experiment, const char *what, double part);

void bench_progress_clear(void);

#endif
