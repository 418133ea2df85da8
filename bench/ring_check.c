/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the ring of a detached queue holds what was posted; see ring_check.h.
 */
#include "ring_check.h"

#include <doorbell/device.h>
#include <stdlib.h>
#include <string.h>

static enum bench_status check_blocks(struct bench *b, const struct db_queue_info *info,
                                      uint64_t posted, const uint8_t *ring)
{
    uint64_t first = posted > info->depth ? posted - info->depth : 0;

    for (uint64_t index = first; index < posted; index++) {
        uint64_t word, expected = db_ctrl_word(info->qpn, index, M5_OP_WRITE, 3);
        memcpy(&word, ring + (index & (info->depth - 1)) * M5_BLOCK_BYTES, sizeof(word));
        if (word != expected)
            return bench_fail(
                b, "the WQE at index %llu begins with 0x%016llx; 0x%016llx was posted",
                (unsigned long long)index, (unsigned long long)word, (unsigned long long)expected);
    }
    return BENCH_PASS;
}

enum bench_status ring_check(struct bench *b, struct db_queue *queue, uint64_t posted,
                             enum bench_valid *valid)
{
    struct db_queue_info info;
    uint8_t *ring;

    if (db_queue_query(queue, &info))
        return bench_fail(b, "%s", db_error_text());
    ring = malloc((size_t)info.depth * M5_BLOCK_BYTES);
    if (!ring)
        return bench_fail(b, "no memory for a copy of a ring");
    enum bench_status status = db_detached_ring(queue, ring) ? bench_fail(b, "%s", db_error_text())
                                                             : check_blocks(b, &info, posted, ring);
    free(ring);
    *valid = status == BENCH_PASS ? BENCH_VALID : BENCH_INVALID;
    return status;
}
