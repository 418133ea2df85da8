/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ordering operations by their place in the source: which were met, and taking the order from one
 * of them. Included by thread.c and teeth.c.
 */
#ifndef EXPLORE_SITES_H
#define EXPLORE_SITES_H

#include "model.h"

/* Notes the operation, which concerns `word` (EX_NO_WORD: the doorbell). */
void ex_site_met(struct ex_model *model, const struct port_op *op, unsigned word);

/* Weakens the operation when it is the one that the configuration's mutation names. */
void ex_site_weaken(struct ex_model *model, struct port_op *op, unsigned word);

#endif
