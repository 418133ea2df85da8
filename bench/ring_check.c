/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the ring of a detached queue holds what was posted; see ring_check.h.
 */
#include "ring_check.h"

#include <stdlib.h>
#include <string.h>

size_t ring_wqe(const struct ring_put *put, uint32_t qpn, uint64_t index, uint8_t *wqe)
{
    size_t payload = put->inlined ? sizeof(struct m5_inline_seg) + put->bytes : M5_SEGMENT_BYTES;
    uint32_t segments = 2 + (uint32_t)((payload + M5_SEGMENT_BYTES - 1) / M5_SEGMENT_BYTES);
    const struct m5_ctrl_seg ctrl = {
        .opmod_idx_opcode = port_be32((uint32_t)(index & M5_INDEX_MASK) << 8 | M5_OP_WRITE),
        .qpn_ds = port_be32(qpn << 8 | segments),
        .flags = (uint8_t)put->flags,
    };
    const struct m5_raddr_seg raddr = {.raddr = port_be64(put->raddr),
                                       .rkey = port_be32(put->rkey)};
    const struct m5_inline_seg head = {.byte_count = port_be32(put->bytes | M5_INLINE_FLAG)};
    const struct m5_data_seg data = {.byte_count = port_be32(put->bytes),
                                     .lkey = port_be32(put->lkey),
                                     .addr = port_be64(put->laddr)};
    uint8_t *third = wqe + sizeof(ctrl) + sizeof(raddr);

    memset(wqe, 0, RING_WQE_BYTES_MAX);
    memcpy(wqe, &ctrl, sizeof(ctrl));
    memcpy(wqe + sizeof(ctrl), &raddr, sizeof(raddr));
    if (put->inlined) {
        memcpy(third, &head, sizeof(head));
        memcpy(third + sizeof(head), put->payload ? put->payload : &put->value, put->bytes);
    } else {
        memcpy(third, &data, sizeof(data));
    }
    return (size_t)segments * M5_SEGMENT_BYTES;
}

/* The WQE that begins in block `index`, around the ring's end. */
static void copy_wqe(const uint8_t *ring, uint32_t depth, uint64_t index, uint32_t blocks,
                     uint8_t *wqe)
{
    for (uint32_t i = 0; i < blocks; i++)
        memcpy(wqe + (size_t)i * M5_BLOCK_BYTES,
               ring + ((index + i) & (depth - 1)) * M5_BLOCK_BYTES, M5_BLOCK_BYTES);
}

static enum bench_status check_wqe(struct bench *b, const struct ring_posts *posts, uint32_t qpn,
                                   uint64_t number, uint8_t *found)
{
    const struct bench_options *options = b->options;
    uint64_t index = number * posts->blocks;
    uint8_t expected[RING_WQE_BYTES_MAX];

    if (bench_given(options, BENCH_OPT_INJECT) && options->flip_offset < RING_WQE_BYTES_MAX)
        found[options->flip_offset] ^= 0xff;
    struct ring_put put = posts->put(posts->context, number, found);
    size_t bytes = ring_wqe(&put, qpn, index, expected);
    if (bench_given(options, BENCH_OPT_INJECT) && options->flip_offset >= bytes)
        return bench_usage(b, "--inject=flip=%llu: a WQE has only %zu bytes here",
                           (unsigned long long)options->flip_offset, bytes);
    for (size_t at = 0; at < bytes; at++)
        if (found[at] != expected[at])
            return bench_fail(b,
                              "the WQE at index %llu: byte %zu of %zu is 0x%02x; 0x%02x was posted",
                              (unsigned long long)index, at, bytes, found[at], expected[at]);
    return BENCH_PASS;
}

static enum bench_status check_wqes(struct bench *b, const struct db_queue_info *info,
                                    const struct ring_posts *posts, const uint8_t *ring)
{
    uint64_t lap = info->depth / posts->blocks;
    uint64_t first = posts->count > lap ? posts->count - lap : 0;
    enum bench_status status = BENCH_PASS;
    uint8_t found[RING_WQE_BYTES_MAX];

    for (uint64_t number = posts->count; number > first && status == BENCH_PASS; number--) {
        copy_wqe(ring, info->depth, (number - 1) * posts->blocks, posts->blocks, found);
        status = check_wqe(b, posts, info->qpn, number - 1, found);
    }
    return status;
}

enum bench_status ring_check(struct bench *b, struct db_queue *queue,
                             const struct ring_posts *posts, enum bench_valid *valid)
{
    enum bench_status status = BENCH_PASS;
    struct db_queue_info info;

    if (db_queue_query(queue, &info))
        return bench_fail(b, "%s", db_error_text());
    uint8_t *ring = malloc((size_t)info.depth * M5_BLOCK_BYTES);
    if (!ring)
        return bench_fail(b, "no memory for a copy of a ring");
    if (db_detached_ring(queue, ring)) {
        status = bench_fail(b, "%s", db_error_text());
    } else {
        status = check_wqes(b, &info, posts, ring);
        if (status != BENCH_USAGE)
            *valid = status == BENCH_PASS ? BENCH_VALID : BENCH_INVALID;
    }
    free(ring);
    return status;
}
