/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the ring of a detached queue holds what was posted, byte for byte. The WQEs that it
 * should hold are made here of the format's structs, with nothing of the encoders in impl/wqe.h.
 * Included by the experiments whose queues no device reads.
 */
#ifndef BENCH_RING_CHECK_H
#define BENCH_RING_CHECK_H

#include <doorbell/device.h>
#include <doorbell/doorbell.h>

#include "bench.h"

/* An RDMA write as it was asked for. */
struct ring_put {
    uint64_t raddr;
    uint32_t rkey;
    uint32_t flags; /* enum db_signal */
    uint32_t bytes;
    bool inlined;
    const void *payload; /* of an inline put; NULL: the 8 bytes of `value` */
    uint64_t value;
    uint64_t laddr; /* of one that is not */
    uint32_t lkey;
};

/* What was posted in a ring whose WQEs are all of `blocks` blocks. put() tells WQE `number`, from
 * the last one back; of a shared queue's, `found` shows which thread posted it. */
struct ring_posts {
    uint64_t count;
    uint32_t blocks;
    struct ring_put (*put)(void *context, uint64_t number, const uint8_t *found);
    void *context;
};

#define RING_WQE_BYTES_MAX (DB_MAX_WQE_BLOCKS * M5_BLOCK_BYTES)

/* Writes the segments of a put's WQE to wqe[RING_WQE_BYTES_MAX], with zeroes behind an inline
 * payload. Returns their bytes. */
size_t ring_wqe(const struct ring_put *put, uint32_t qpn, uint64_t index, uint8_t *wqe);

/* Compares all bytes of the last lap's WQEs, but for what lies behind a WQE's last segment in its
 * last block, which is nobody's. Sets *valid; BENCH_FAIL with the first wrong byte and its WQE.
 * With --inject=flip=OFFSET that byte of each WQE is falsified before: BENCH_USAGE when a WQE has
 * no such byte. */
enum bench_status ring_check(struct bench *b, struct db_queue *queue,
                             const struct ring_posts *posts, enum bench_valid *valid);

#endif
