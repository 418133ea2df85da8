/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting alone, timed: single puts on a detached queue that nobody serves, with ring, record and
 * CQ in GPU memory, unless the options place them elsewhere, and the doorbell in mapped host
 * memory. What the experiments issue and clock have in common.
 */
#ifndef BENCH_ISSUES_H
#define BENCH_ISSUES_H

#include "kernels/issue.h"
#include "l2.h"
#include "transport.h"

#define ISSUES_USES                                                                                \
    (BENCH_USE(GPU) | BENCH_USE(RING) | BENCH_USE(RECORD) | BENCH_USE(TIMEOUT) |                   \
     BENCH_USE(CHECK) | BENCH_USE(INJECT))

#define ISSUES_CHUNK 2500u

/* Depths: the deepest with a collapsed CQ, in which no slot is used twice in a launch, since nobody
 * completes what threads post that share it; and the one whose ring may be in one half of the L2, a
 * page. */
#define ISSUES_DEEP DB_MAX_COLLAPSED_DEPTH
#define ISSUES_PAGE (4096u / M5_BLOCK_BYTES)

/* Of the SM's clock, before each post: 2 us at 2 GHz, twice what the slowest release takes. */
#define ISSUES_PAUSE_TICKS 4000u

/* What the kernels write. */
struct issues_results {
    struct bench_interval ticks[ISSUES_CHUNK];
    uint64_t ns[ISSUES_CHUNK];
    struct bench_span span;
    uint64_t words[2];
    int32_t status;
};

struct issues {
    struct transport transport;
    struct transport_pair pair;
    struct transport_block results;
    struct db_queue_attr attr;
};

/* One way to post. */
struct issues_variant {
    enum bench_issue_way way;
    enum db_order order;
    enum db_record record;
    bool inlined;
};

/* The half of the L2 that each part of a queue is in; L2_WHOLE where there are no halves, and of
 * what is in host memory or in both. */
struct issues_halves {
    enum l2_half record;
    enum l2_half words; /* that its threads share */
    enum l2_half ring;
};

/* Opens the GPU and makes a queue of ISSUES_DEEP; close it whatever came of it. */
enum bench_status issues_open(struct bench *b, struct issues *issues);
void issues_close(struct issues *issues);

/* Is the record in the half that is wanted, and with it the words of a queue of ISSUES_DEEP, which
 * its threads may share, or the ring of one of ISSUES_PAGE, which one thread owns? */
bool issues_are_in(const struct issues *issues, const struct issues_halves *halves,
                   enum l2_half wanted);

/* Makes queues of `depth` until one is in the half that is wanted. `*halves` is where the parts of
 * the last one are. */
enum bench_status issues_move(struct bench *b, struct issues *issues, struct l2 *l2, uint32_t depth,
                              enum l2_half wanted, struct issues_halves *halves);

/* Where they are now. */
enum bench_status issues_find(struct bench *b, struct issues *issues, struct l2 *l2,
                              struct issues_halves *halves);

/* How many posts a chunk may have, and how many come before it that nobody times. */
uint32_t issues_chunk(const struct issues_variant *variant);
uint32_t issues_warmup(const struct bench *b, const struct issues_variant *variant);

/* A fresh queue, `warmup` posts, and `count` timed ones, whose results are in issues->results.host.
 * `*ns_per_tick` is of their ticks. Afterwards every byte of the WQEs is compared with what they
 * should be (ring_check.h). */
enum bench_status issues_run(struct bench *b, struct issues *issues,
                             const struct issues_variant *variant, uint32_t warmup, uint32_t count,
                             double *ns_per_tick, enum bench_valid *valid);

#endif
