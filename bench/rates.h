/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting rates of many GPU threads on many queues, measured and checked: what the experiments rate
 * and inline have in common.
 */
#ifndef BENCH_RATES_H
#define BENCH_RATES_H

#include "kernels/rate.h"
#include "transport.h"

#define RATES_QUEUES_MAX  64u
#define RATES_THREADS_MAX 32768u

/* How threads post. Private queues: thread t has the queues t, t + threads, ...; shared ones: the
 * threads of block i share queue i modulo queues. */
struct rates_variant {
    enum bench_sharing sharing;
    uint32_t ctas;
    uint32_t threads; /* of each CTA */
    uint32_t queues;
    uint32_t batch; /* WQEs to a doorbell; shared queues batch as they can, a warp by 32 */
    uint32_t bytes; /* of an inline payload */
    enum db_record record;
    const char *reference[BENCH_REFERENCES_MAX];
};

#define RATES_WORDS_BYTES (BENCH_RATE_SLOTS * sizeof(uint64_t)) /* of one thread on one queue */

/* What the kernel's arguments point to, in one block. */
struct rates_tables {
    struct db_qp *qps[RATES_QUEUES_MAX];
    uint64_t raddr[RATES_QUEUES_MAX];
    uint32_t rkey[RATES_QUEUES_MAX];
    uint64_t start_ns[RATES_THREADS_MAX];
    uint64_t end_ns[RATES_THREADS_MAX];
    int32_t status[RATES_THREADS_MAX];
    uint8_t payload[DB_MAX_INLINE];
    uint32_t running __attribute__((aligned(128)));
};

struct rates {
    struct transport transport;
    bool detached; /* no device: other blocks of the kernel play it, and no data moves */
    struct db_queue_attr attr;
    struct transport_pair pair[RATES_QUEUES_MAX];
    uint32_t pairs;
    struct transport_memory targets;
    struct transport_block tables; /* a struct rates_tables */
};

/* rates_check.c: forgets what an earlier run put; and whether all of a run's puts are there. */
enum bench_status rates_clear(struct bench *b, struct rates *rates);
enum bench_status rates_check(struct bench *b, struct rates *rates,
                              const struct rates_variant *variant, uint64_t puts,
                              enum bench_valid *valid);

#define RATES_USES (BENCH_USES_TRANSPORT | BENCH_USE(CHECK) | BENCH_USE(SEED) | BENCH_USE(INJECT))

/* setup() and teardown() of a case; b->state is a struct rates. */
enum bench_status rates_setup(struct bench *b);
void rates_teardown(struct bench *b);

/* The same over detached queues (transport_detached_attr()), on a GPU that is open; for use within
 * a case whose b->state is its own. */
enum bench_status rates_begin_detached(struct bench *b, struct rates *rates,
                                       const struct transport *open);
void rates_end_detached(struct rates *rates);

/* Runs one variant b->options->repetitions times and reports its rate. */
enum bench_status rates_measure(struct bench *b, struct rates *rates,
                                const struct rates_variant *variant);

#endif
