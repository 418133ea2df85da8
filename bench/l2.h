/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The halves of a GPU's L2. Some GPUs have two, each with half of the SMs and half of the memory
 * behind it; to an SM its own half is near. Atomics and releases take longer for words of the far
 * one, so what an experiment posts to is chosen by it. Included by cases.
 */
#ifndef BENCH_L2_H
#define BENCH_L2_H

#include "kernels/l2.h"
#include "transport.h"

/* Places of lines, in both halves: halves change every few KiB. */
#define L2_LINES        64u
#define L2_SAMPLES      64u /* of a line, in one launch */
#define L2_STRIDE_BYTES (4096u + 3 * BENCH_L2_LINE_BYTES)

enum l2_half {
    L2_WHOLE, /* no halves to tell apart */
    L2_NEAR,
    L2_FAR,
    L2_HALVES,
};

const char *l2_half_name(enum l2_half half);

struct l2_results {
    uint32_t ticks[L2_LINES * L2_SAMPLES];
    struct bench_span span;
};

struct l2 {
    struct transport *transport;
    struct transport_block results; /* a struct l2_results */
    struct transport_block lines;   /* L2_LINES of them, all 0 */
    struct db_gpu_buffer doorbell;  /* one word of host memory */
    enum l2_half half[L2_LINES];
    uint32_t cut_ticks; /* an atomic's, between near and far; 0: no halves */
};

/* Sorts lines of GPU memory by their halves, as block 0 of a kernel sees them. On a GPU that CPU
 * threads play there are none. Close it whatever came of it. */
enum bench_status l2_open(struct bench *b, struct transport *t, struct l2 *l2);
void l2_close(struct l2 *l2);

/* Times one way on all lines: L2_SAMPLES ticks a line, in l2->results.host. `*ns_per_tick` is of
 * them. */
enum bench_status l2_time(struct bench *b, struct l2 *l2, enum bench_l2_way way,
                          bool behind_doorbell, double *ns_per_tick);

/* Looks for a page in `half` among those of a block; NULL where there is none. Words are 0. */
enum bench_status l2_find_page(struct bench *b, struct l2 *l2, const struct transport_block *pages,
                               size_t page_bytes, enum l2_half half, uint8_t **page);

/* The half that a word of GPU memory is in. The word stays as it is; it is not UINT32_MAX, which
 * neither a record nor a queue's count is. */
enum bench_status l2_half_of(struct bench *b, struct l2 *l2, uint32_t *word, enum l2_half *half);

/* The half that all lines are in, whose first words are no UINT32_MAX either; L2_WHOLE: they are in
 * both. Of more than a few pages, L2_LINES are looked at. */
enum bench_status l2_half_of_all(struct bench *b, struct l2 *l2, uint8_t *start, size_t bytes,
                                 enum l2_half *half);

#endif
