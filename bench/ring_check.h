/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the ring of a detached queue holds what was posted. Included by the experiments whose
 * queues no device reads.
 */
#ifndef BENCH_RING_CHECK_H
#define BENCH_RING_CHECK_H

#include <doorbell/doorbell.h>

#include "bench.h"

/* The last lap of `posted` RDMA writes of one block and three segments each: every one begins with
 * its own index. Sets *valid; BENCH_FAIL with the first one that does not. */
enum bench_status ring_check(struct bench *b, struct db_queue *queue, uint64_t posted,
                             enum bench_valid *valid);

#endif
