/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Litmus programs: a few loads and stores each, with an outcome that PTX's memory model allows or
 * forbids. They test the explorer's model itself. Included by `doorbell explore` and the tests.
 */
#ifndef EXPLORE_LITMUS_H
#define EXPLORE_LITMUS_H

#include "explore.h"

/* Runs them all by both sets of rules and prints what each allows. Returns how many verdicts are
 * not the expected ones, or -ENOMEM. */
int ex_litmus_run(FILE *to);

#endif
