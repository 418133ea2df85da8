/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts as fast as lanes of either kind take them, one thread on each, measured and checked.
 * Included by the cases of section 4.2.
 */
#ifndef BENCH_FLOODS_H
#define BENCH_FLOODS_H

#include "kernels/proxy.h"
#include "lanes.h"

struct floods {
    struct transport *transport;
    struct transport_memory memory; /* sources, then targets, half each */
    struct transport_block tables;
    uint8_t *copy; /* of the memory */
    size_t half;
    uint64_t round;
};

/* One way to flood: `lanes->count` threads, in blocks of their own or all in one. */
struct flood {
    uint32_t bytes;
    bool by_value;   /* of 8 bytes */
    uint32_t window; /* puts that a thread has outstanding; 0: as many as its lane is deep */
    uint32_t ctas;   /* divides the lanes */
};

/* `bytes`: of all lanes' payloads together, each lane having FLOOD_SLOTS of them. */
#define FLOOD_SLOTS 4u

enum bench_status floods_open(struct bench *b, struct transport *t, size_t bytes,
                              struct floods *floods);
void floods_close(struct floods *floods);

/* Runs as long as the options say, or 0.1 s, for each repetition; adds each rate, in millions of
 * puts a second, to the samples. `*puts` is how many there were in all. */
enum bench_status floods_measure(struct bench *b, struct floods *floods, const struct lanes *lanes,
                                 const struct flood *flood, struct bench_samples *samples,
                                 uint64_t *puts, enum bench_valid *valid);

#endif
