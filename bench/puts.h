/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single puts of one GPU thread, timed and checked: what the experiments one-op, ordering and
 * inline have in common. Each variant gives two results, the issue time and the time to completion.
 */
#ifndef BENCH_PUTS_H
#define BENCH_PUTS_H

#include "kernels/put.h"
#include "transport.h"

/* Payloads lie this many slots deep, so that each put of a chunk writes memory of its own. */
#define PUTS_CHUNK 2000u

/* What the kernels of an experiment write. */
struct puts_results {
    struct bench_interval issue[PUTS_CHUNK];
    uint64_t complete[PUTS_CHUNK]; /* ticks */
    struct bench_span span;
    int32_t status[2];
};

struct puts {
    struct transport transport;
    struct transport_pair pair;
    struct transport_memory payloads; /* sources in the first half, targets in the second */
    struct transport_block results;   /* a struct puts_results */
    struct transport_block sources;   /* of inline puts */
    uint8_t *memory;                  /* the payloads for the host: themselves, or `copied` */
    uint8_t *copied;                  /* of payloads in GPU memory; else NULL */
    struct db_queue_attr attr;
    struct bench_samples issue;
    struct bench_samples complete;
    uint32_t max_bytes;
    uint64_t round; /* of payload patterns, so that none is taken for an earlier one */
};

/* One way to put. */
struct puts_variant {
    bool inlined;
    enum db_order order;
    enum db_record record;
    uint32_t bytes;
    const char *issue_reference[BENCH_REFERENCES_MAX];
    const char *complete_reference[BENCH_REFERENCES_MAX];
};

#define PUTS_USES (BENCH_USES_TRANSPORT | BENCH_USES_PAYLOAD)

/* What a config says of the ordering. */
const char *puts_order_name(enum db_order order);

/* What it says of puts from `ends` threads, each with a queue. */
void puts_config(const struct puts *puts, bool inlined, enum db_order order, enum db_record record,
                 uint32_t ends, struct bench_config *config);

/* setup() and teardown() of a case whose puts are of at most `max_bytes`. */
enum bench_status puts_setup(struct bench *b, uint32_t max_bytes);
void puts_teardown(struct bench *b);

/* Makes queues of `attr`, connected, in place of those that are there, which may be in error. */
enum bench_status puts_reconnect(struct bench *b);

/* An order that does not reach the ring may lose messages: that is no failure of the experiment,
 * and what was measured until then does not count. Says so, and connects anew: a queue in error is
 * of no further use. BENCH_DEGRADED, or worse. */
enum bench_status puts_lost(struct bench *b, enum db_order order);

/* Measures one variant and reports both results. BENCH_DEGRADED, without results, when an order
 * that does not reach the ring lost a message. */
enum bench_status puts_measure(struct bench *b, const struct puts_variant *variant);

/* One after the other, until one fails. */
enum bench_status puts_measure_all(struct bench *b, const struct puts_variant *variants,
                                   size_t count);

#endif
