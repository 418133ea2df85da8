/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building a WQE in its slot: 16-byte stores of whole segments, straight into the ring. Included by
 * sq.h. Layouts are m5_format.h's; PRM, "Send WQE format".
 *
 * Every function writes every byte of the segments that the WQE counts, and nothing behind them;
 * the stores are plain and become visible by the publication (sq.h).
 */
#ifndef DOORBELL_IMPL_WQE_H
#define DOORBELL_IMPL_WQE_H

#include "qp.h"

/* Completion wanted, or not. */
enum db_signal {
    DB_UNSIGNALED = 0,
    DB_SIGNALED = M5_CTRL_CQ_UPDATE,
};

PORT_FN uint32_t db_blocks_of(uint32_t segments)
{
    return (segments + 3) / 4;
}

/* Where a block lies. Looked up once a block: what it is made of are constants, but no compiler can
 * know that the stores into the ring leave them alone. */
PORT_FN uint8_t *db_block(const struct db_qp *qp, uint64_t index)
{
    return qp->sq + (index & (qp->depth - 1)) * M5_BLOCK_BYTES;
}

/* Stores segment `number` (0 to 3) of a block. */
PORT_FN void db_store_segment(uint8_t *block, uint32_t number, uint64_t lo, uint64_t hi)
{
    port_st16(block + number * M5_SEGMENT_BYTES, lo, hi);
}

/* Two big-endian words as they lie in memory, lower address first. */
PORT_FN uint64_t db_wire_pair(uint32_t first, uint32_t second)
{
    return (uint64_t)port_bswap32(second) << 32 | port_bswap32(first);
}

PORT_FN uint64_t db_wire64(uint64_t value)
{
    return db_wire_pair((uint32_t)(value >> 32), (uint32_t)value);
}

/* The first 8 bytes of a control segment, which are also the doorbell. */
PORT_FN uint64_t db_ctrl_word(uint32_t qpn, uint64_t index, uint32_t opcode, uint32_t segments)
{
    return (uint64_t)port_bswap32(qpn << 8 | segments) << 32 |
           port_be_mid16((uint32_t)index, opcode);
}

/* The control segment of a WQE that starts in `block`. */
PORT_FN void db_store_ctrl(uint8_t *block, uint32_t qpn, uint64_t index, uint32_t opcode,
                           uint32_t segments, uint32_t flags, uint32_t imm)
{
    db_store_segment(block, 0, db_ctrl_word(qpn, index, opcode, segments),
                     (uint64_t)port_bswap32_literal(imm) << 32 | port_bswap32_literal(flags));
}

PORT_FN void db_store_raddr(uint8_t *block, uint64_t raddr, uint32_t rkey)
{
    db_store_segment(block, 1, db_wire64(raddr), port_bswap32(rkey));
}

PORT_FN void db_store_data(uint8_t *block, uint32_t number, uint64_t laddr, uint32_t lkey,
                           uint32_t bytes)
{
    db_store_segment(block, number, db_wire_pair(bytes, lkey), db_wire64(laddr));
}

/* ---- Whole WQEs. Of the queue only its constants are used (db_qp_constants() will do). `flags` is
 * enum db_signal, with M5_CTRL_SOLICITED or a fence where wanted. ----
 */

/* Does nothing, and completes. One block. */
PORT_FN void db_build_nop(const struct db_qp *qp, uint64_t index, uint32_t flags)
{
    uint8_t *block = db_block(qp, index);
    db_store_ctrl(block, qp->qpn, index, M5_OP_NOP, 1, flags, 0);
}

/* RDMA write of `bytes` (1 to 2^31) from `laddr` under `lkey`. One block. */
PORT_FN void db_build_write(const struct db_qp *qp, uint64_t index, uint32_t flags, uint64_t raddr,
                            uint32_t rkey, uint64_t laddr, uint32_t lkey, uint32_t bytes)
{
    uint8_t *block = db_block(qp, index);
    db_store_ctrl(block, qp->qpn, index, M5_OP_WRITE, 3, flags, 0);
    db_store_raddr(block, raddr, rkey);
    db_store_data(block, 2, laddr, lkey, bytes);
}

/* The same, and a receive completion with `imm` at the peer. One block. */
PORT_FN void db_build_write_imm(const struct db_qp *qp, uint64_t index, uint32_t flags,
                                uint64_t raddr, uint32_t rkey, uint64_t laddr, uint32_t lkey,
                                uint32_t bytes, uint32_t imm)
{
    uint8_t *block = db_block(qp, index);
    db_store_ctrl(block, qp->qpn, index, M5_OP_WRITE_IMM, 3, flags, imm);
    db_store_raddr(block, raddr, rkey);
    db_store_data(block, 2, laddr, lkey, bytes);
}

/* RDMA read of `bytes` (1 to 2^31) into `laddr`. One block. */
PORT_FN void db_build_read(const struct db_qp *qp, uint64_t index, uint32_t flags, uint64_t raddr,
                           uint32_t rkey, uint64_t laddr, uint32_t lkey, uint32_t bytes)
{
    uint8_t *block = db_block(qp, index);
    db_store_ctrl(block, qp->qpn, index, M5_OP_READ, 3, flags, 0);
    db_store_raddr(block, raddr, rkey);
    db_store_data(block, 2, laddr, lkey, bytes);
}

/* Adds `addend` to the 8-byte aligned word at `raddr`; its old value goes to `laddr`. One block. */
PORT_FN void db_build_fetch_add(const struct db_qp *qp, uint64_t index, uint32_t flags,
                                uint64_t raddr, uint32_t rkey, uint64_t laddr, uint32_t lkey,
                                uint64_t addend)
{
    uint8_t *block = db_block(qp, index);
    db_store_ctrl(block, qp->qpn, index, M5_OP_ATOMIC_FA, 4, flags, 0);
    db_store_raddr(block, raddr, rkey);
    db_store_segment(block, 2, db_wire64(addend), 0);
    db_store_data(block, 3, laddr, lkey, 8);
}

/* RDMA write of an 8-byte value that travels in the WQE. One block. */
PORT_FN void db_build_write_value(const struct db_qp *qp, uint64_t index, uint32_t flags,
                                  uint64_t raddr, uint32_t rkey, uint64_t value)
{
    uint8_t *block = db_block(qp, index);
    db_store_ctrl(block, qp->qpn, index, M5_OP_WRITE, 3, flags, 0);
    db_store_raddr(block, raddr, rkey);
    db_store_segment(block, 2, value << 32 | port_bswap32_literal(8 | M5_INLINE_FLAG), value >> 32);
}

#endif
