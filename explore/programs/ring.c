/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A proxy's ring and its words, for the programs that have one.
 */
#include <doorbell/impl/ring.h>

#include "programs.h"

void ex_ring_add(struct ex_model *model, struct db_ring *ring, struct db_descriptor *slots,
                 uint32_t depth, struct db_ring_progress *progress)
{
    *ring = (struct db_ring){
        .slots = (uint8_t *)slots,
        .progress = progress,
        .many = &ring->shared,
        .timeout_ns = UINT64_MAX,
        .depth = depth,
        .own = {.next = 0, .limit = depth},
    };
    for (unsigned i = 0; i < depth; i++) {
        for (unsigned half = 0; half < 2; half++)
            ex_word_add(model, &slots[i].half[half], EX_HOST_MEMORY, EX_FLIPPED, 0,
                        "slot[%u].half%u", i, half);
    }
    ex_word_add(model, &progress->posted, EX_HOST_MEMORY, EX_NUMBER, 0, "posted");
    ex_word_add(model, &progress->completed, EX_HOST_MEMORY, EX_NUMBER, 0, "completed");
    ex_word_add(model, &progress->error, EX_HOST_MEMORY, EX_NUMBER, 0, "error");
    ex_word_add(model, &ring->shared.reserved, EX_GPU_MEMORY, EX_NUMBER, 0, "reserved");
    ex_word_add(model, &ring->shared.seen, EX_GPU_MEMORY, EX_NUMBER, 0, "seen");
    ex_word_add(model, &ring->shared.broken, EX_GPU_MEMORY, EX_NUMBER, 0, "broken");
}
