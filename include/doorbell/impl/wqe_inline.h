/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building a write whose payload, of any size that fits, travels in the WQE. Included by device.h;
 * wqe.h builds all others, and 8-byte values.
 */
#ifndef DOORBELL_IMPL_WQE_INLINE_H
#define DOORBELL_IMPL_WQE_INLINE_H

#include "wqe.h"

/* Segments of an inline payload: a 4-byte count, then the bytes. */
PORT_FN uint32_t db_inline_segments(uint32_t bytes)
{
    return (bytes + (uint32_t)sizeof(struct m5_inline_seg) + M5_SEGMENT_BYTES - 1) /
           M5_SEGMENT_BYTES;
}

/* The largest inline payload of a write: 972 bytes. */
#define DB_MAX_INLINE                                                                              \
    ((M5_MAX_SEGMENTS - 2) * M5_SEGMENT_BYTES - (uint32_t)sizeof(struct m5_inline_seg))

/* Blocks that an inline write of `bytes` takes. */
PORT_FN uint32_t db_inline_blocks(uint32_t bytes)
{
    return db_blocks_of(2 + db_inline_segments(bytes));
}

/* 8 payload bytes from offset `at`, of which only those below `bytes` are read. */
PORT_FN uint64_t db_payload_word(const uint8_t *payload, uint32_t at, uint32_t bytes)
{
    uint64_t word = 0;
    if (at + 8 <= bytes)
        return port_ld_plain64(payload + at);
    for (uint32_t i = 0; i < 8 && at + i < bytes; i++)
        word |= (uint64_t)payload[at + i] << (8 * i);
    return word;
}

/*
 * RDMA write of `bytes` (0 to DB_MAX_INLINE) that are copied from `payload` into the WQE now.
 * db_inline_blocks(bytes) blocks. With `imm` wanted, opcode is M5_OP_WRITE_IMM. `payload` is read
 * by the calling thread with plain loads.
 */
PORT_FN void db_build_write_inline(const struct db_qp *qp, uint64_t index, uint32_t opcode,
                                   uint32_t flags, uint64_t raddr, uint32_t rkey,
                                   const void *payload, uint32_t bytes, uint32_t imm)
{
    const uint8_t *from = (const uint8_t *)payload;
    uint32_t segments = 2 + db_inline_segments(bytes);

    uint8_t *block = db_block(qp, index);
    db_store_ctrl(block, qp->qpn, index, opcode, segments, flags, imm);
    db_store_raddr(block, raddr, rkey);
    /* The first inline segment holds the count and 12 bytes, the others 16. */
    uint64_t head = db_payload_word(from, 0, bytes < 4 ? bytes : 4);
    db_store_segment(block, 2, head << 32 | port_bswap32(bytes | M5_INLINE_FLAG),
                     db_payload_word(from, 4, bytes));
    for (uint32_t number = 3, at = 12; number < segments; number++, at += M5_SEGMENT_BYTES) {
        if (number % 4 == 0)
            block = db_block(qp, index + number / 4);
        db_store_segment(block, number % 4, db_payload_word(from, at, bytes),
                         db_payload_word(from, at + 8, bytes));
    }
}

#endif
