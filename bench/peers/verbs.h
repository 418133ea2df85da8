/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The established way on the same device in the same run: libmlx5's ibv_post_send() and
 * ibv_poll_cq() from a host thread. Included by cases.
 */
#ifndef BENCH_PEERS_VERBS_H
#define BENCH_PEERS_VERBS_H

#include <doorbell/doorbell.h>

#include "../bench.h"

/* One write at a time, of `bytes`, by pointer and inline: issue and put + completion. */
enum bench_status verbs_latency(struct bench *b, const struct db_device_info *device,
                                uint32_t bytes);

/* Writes a second with `batch` to a post, the last of them signalled: a few runs, each a sample in
 * millions, which are added to `rate`; and the result that they make. */
#define VERBS_RATE_RUNS 5u
enum bench_status verbs_rate_measure(struct bench *b, const struct db_device_info *device,
                                     uint32_t bytes, uint32_t batch, struct bench_samples *rate,
                                     enum bench_valid *valid);
enum bench_status verbs_rate_report(struct bench *b, uint32_t bytes, uint32_t batch,
                                    const struct bench_samples *rate, enum bench_valid valid);

/* Both. */
enum bench_status verbs_rate(struct bench *b, const struct db_device_info *device, uint32_t bytes,
                             uint32_t batch);

#endif
