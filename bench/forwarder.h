/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CPU thread that rings doorbells for kernels, which store to words in host memory instead.
 * Included by transport.c.
 */
#ifndef BENCH_FORWARDER_H
#define BENCH_FORWARDER_H

#include <doorbell/doorbell.h>

struct forwarder;

/* Starts the thread. Returns NULL when there is none to be had. */
struct forwarder *forwarder_start(void);

/* Ends it; NULL is nothing to end. */
void forwarder_stop(struct forwarder *forwarder);

/* From now on it forwards the queue, which was created so; and no longer. -ENOSPC: it has as many
 * as it can serve. */
int forwarder_add(struct forwarder *forwarder, struct db_queue *queue);
void forwarder_remove(struct forwarder *forwarder, struct db_queue *queue);

#endif
