/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mutation test: every operation of the transport that asks for an order is weakened, one at a
 * time, and a counterexample must be found; or its reason stands in a table. Included by `doorbell
 * explore` and the tests.
 */
#ifndef EXPLORE_TEETH_H
#define EXPLORE_TEETH_H

#include "explore.h"

/* Runs all mutants, prints a line each, and returns how many were neither caught nor explained, or
 * explained though caught; or -ENOMEM. */
int ex_teeth_run(unsigned jobs, FILE *to);

#endif
