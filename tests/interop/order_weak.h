/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model of weak memory behind doorbell/impl/port_weak.h: what a test sets and when its kernels
 * end. Included by the programs order_*.c.
 */
#ifndef DOORBELL_TESTS_ORDER_WEAK_H
#define DOORBELL_TESTS_ORDER_WEAK_H

#include <doorbell/impl/port.h>

#define ORDER_MAX_THREADS 256 /* of a grid that uses the model */

/* Forgets all ranges. Nothing may wait in a buffer. */
void order_weak_begin(uint64_t seed);

/* Memory that a device reads: a ring or a record. `scope` is what a release must have to reach it;
 * memory that is not named is the GPU's, which GPU scope reaches. One in `one_in` stores to it
 * stays in the buffer for `hold_ns` unless a release lets it out; 0: none does. */
void order_weak_range(void *start, size_t bytes, enum port_scope scope, uint32_t one_in,
                      uint64_t hold_ns);

/* The end of a device thread, at which all that it stored becomes visible. */
void order_weak_leave(void);

/* Called with the address of each word that a thread loads, after the load. NULL: nothing is. */
extern void (*order_weak_loaded)(const void *word);

#endif
