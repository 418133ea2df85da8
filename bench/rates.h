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
#define RATES_THREADS_MAX 4096u

/* How threads post. Private queues: thread t has the queues t, t + threads, ...; shared ones: the
 * threads of block i share queue i modulo queues. */
struct rates_variant {
    enum bench_sharing sharing;
    uint32_t ctas;
    uint32_t threads; /* of each CTA */
    uint32_t queues;
    uint32_t batch; /* WQEs to a doorbell; shared queues batch as they can, a warp by 32 */
    uint32_t bytes; /* of an inline payload */
    const char *reference[BENCH_REFERENCES_MAX];
};

struct rates {
    struct transport transport;
    struct transport_pair pair[RATES_QUEUES_MAX];
    uint32_t pairs;
    struct transport_memory targets;
    struct db_gpu_buffer tables; /* what struct bench_rate_args points to */
};

#define RATES_USES (BENCH_USES_TRANSPORT | BENCH_USE(CHECK) | BENCH_USE(SEED) | BENCH_USE(INJECT))

/* setup() and teardown() of a case; b->state is a struct rates. */
enum bench_status rates_setup(struct bench *b);
void rates_teardown(struct bench *b);

/* Runs one variant b->options->repetitions times and reports its rate. */
enum bench_status rates_measure(struct bench *b, const struct rates_variant *variant);

#endif
