/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payloads whose every byte is known: a pattern that follows from a seed and the index of the
 * message, so that a byte that is lost, stale or in the wrong place does not go unseen. Included by
 * bench.h.
 */
#ifndef BENCH_PAYLOAD_H
#define BENCH_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_mismatch {
    size_t offset; /* of the first wrong byte */
    uint8_t expected;
    uint8_t got;
};

/* Writes the pattern of message `index` into `bytes` bytes of memory that the CPU can store to. */
void bench_payload_fill(void *memory, size_t bytes, uint64_t seed, uint64_t index);

/* True when the memory holds the pattern; otherwise `mismatch` says where it first does not. */
bool bench_payload_matches(const void *memory, size_t bytes, uint64_t seed, uint64_t index,
                           struct bench_mismatch *mismatch);

#endif
