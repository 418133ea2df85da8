/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a send ring to a checked struct nic_work: fetch, decode, resolve the local payload. Part of
 * the one-source execution path. Follows the PRM's "Send WQE format"; the device decodes its own
 * copy of the WQE, since a program may change the ring under it.
 */
#ifndef SOFTNIC_CORE_DECODE_H
#define SOFTNIC_CORE_DECODE_H

#include "mkey.h"
#include "strict.h"

/* Copies `count` blocks that start `first` blocks behind the next one to execute. */
PORT_CODE void nic_fetch_blocks(struct nic *nic, const struct nic_qp *qp, uint32_t first,
                                uint32_t count)
{
    nic_touch(nic, NIC_TOUCH_SEND_RING);
    for (uint32_t i = first; i < first + count; i++)
        dma_fetch_block(nic->work.wqe + (size_t)i * M5_BLOCK_BYTES, nic_sq_block(qp, i));
    nic_touch(nic, NIC_TOUCH_NOTHING);
}

/* What a correct program never writes, and hardware forbids or misreads. */
PORT_CODE void nic_check_ctrl(struct nic *nic, const struct nic_qp *qp,
                              const struct m5_ctrl_seg *ctrl)
{
    uint32_t first = port_host32(ctrl->opmod_idx_opcode);
    uint32_t second = port_host32(ctrl->qpn_ds);
    uint32_t expected = (uint32_t)qp->sq_done & M5_INDEX_MASK;
    uint32_t index = first >> 8 & M5_INDEX_MASK;
    uint32_t opcode = first & 0xff;
    bool masked = opcode == M5_OP_ATOMIC_MASKED_CS || opcode == M5_OP_ATOMIC_MASKED_FA;

    if (first == NIC_POISON) {
        nic_diagnose(nic, NIC_DIAG_POISON_FETCHED, qp->qpn, expected, first);
        return;
    }
    if (first >> 24 != 0 && !masked)
        nic_diagnose(nic, NIC_DIAG_INDEX_LEAK, qp->qpn, expected, first);
    if (index != expected)
        nic_diagnose(nic, NIC_DIAG_INDEX_MISMATCH, qp->qpn, expected, first);
    if (second >> 8 != qp->qpn)
        nic_diagnose(nic, NIC_DIAG_QPN_MISMATCH, qp->qpn, expected, second);
    if (second & 0xc0)
        nic_diagnose(nic, NIC_DIAG_RESERVED_BITS, qp->qpn, expected, second);
    /* Behind the signature: two bytes, and bits 4 and 0 of the flags. */
    uint32_t third = (uint32_t)ctrl->rsvd[0] << 16 | (uint32_t)ctrl->rsvd[1] << 8 | ctrl->flags;
    if (third & 0xffff11 && third != (NIC_POISON & 0xffffff))
        nic_diagnose(nic, NIC_DIAG_RESERVED_BITS, qp->qpn, expected, third);
}

/* The same of a remote address segment. */
PORT_CODE void nic_check_raddr(struct nic *nic, const struct nic_qp *qp,
                               const struct m5_raddr_seg *raddr)
{
    if (raddr->rsvd.raw != 0 && raddr->rsvd.raw != NIC_POISON)
        nic_diagnose(nic, NIC_DIAG_RESERVED_BITS, qp->qpn, nic->work.index,
                     port_host32(raddr->rsvd));
}

/* Stores of one WQE may become visible one by one, and a 16-byte store in two halves: a half
 * segment that holds poison alone has not been written since its slot was last executed. The last
 * segment of an inline payload is not looked at: its padding is never written, and the few bytes
 * before that may be anything. */
PORT_CODE void nic_check_poison(struct nic *nic, const struct nic_qp *qp)
{
    const struct nic_work *work = &nic->work;
    uint32_t payload = work->opcode == M5_OP_SEND || work->opcode == M5_OP_SEND_IMM ? 1 : 2;
    uint32_t count = work->segments;

    for (uint32_t segment = 0; segment < count; segment++) {
        const uint8_t *at = work->wqe + (size_t)segment * M5_SEGMENT_BYTES;
        const struct m5_data_seg *data = (const struct m5_data_seg *)(const void *)at;
        bool first = data->byte_count.raw == NIC_POISON && data->lkey.raw == NIC_POISON;
        bool second = data->addr.hi.raw == NIC_POISON && data->addr.lo.raw == NIC_POISON;
        if (segment == 2 && work->opcode == M5_OP_ATOMIC_FA)
            second = false; /* the compare operand, which a fetch-add does not have */
        if (segment == payload && port_host32(data->byte_count) & M5_INLINE_FLAG && !first) {
            count--;
            if (segment == count)
                return;
        }
        if (first || second) {
            nic_diagnose(nic, NIC_DIAG_POISON_FETCHED, qp->qpn, work->index, segment);
            return;
        }
    }
}

/* Fetches the next WQE into nic->work. Returns 0 or a syndrome. `available` blocks are published.
 */
PORT_CODE uint32_t nic_fetch(struct nic *nic, const struct nic_qp *qp, uint32_t available)
{
    struct nic_work *work = &nic->work;
    const struct m5_ctrl_seg *ctrl = (const struct m5_ctrl_seg *)(const void *)work->wqe;

    nic_fetch_blocks(nic, qp, 0, 1);
    uint32_t first = port_host32(ctrl->opmod_idx_opcode);
    work->opcode = first & 0xff;
    work->opmod = first >> 24;
    work->index = (uint32_t)qp->sq_done & M5_INDEX_MASK;
    work->segments = port_host32(ctrl->qpn_ds) & 0x3f;
    work->blocks = (work->segments + 3) / 4;
    work->flags = ctrl->flags;
    work->imm = port_host32(ctrl->imm);
    work->payload_bytes = 0;
    work->ranges = 0;
    if (nic->strict.enabled)
        nic_check_ctrl(nic, qp, ctrl);
    if (work->segments == 0 || work->blocks > available) {
        work->blocks = 1;
        return M5_SYN_LOCAL_QP_OP;
    }
    if (work->blocks > 1)
        nic_fetch_blocks(nic, qp, 1, work->blocks - 1);
    if (nic->strict.poison && first != NIC_POISON)
        nic_check_poison(nic, qp);
    return 0;
}

/* The segments from `segment` on are the payload: one inline segment, or pointers. `access` is what
 * the pointers' keys must allow. Returns 0 or a syndrome. */
PORT_CODE uint32_t nic_decode_payload(struct nic *nic, const struct nic_qp *qp, uint32_t segment,
                                      uint32_t access)
{
    struct nic_work *work = &nic->work;
    uint64_t total = 0;

    for (; segment < work->segments; segment++) {
        uint8_t *at = work->wqe + (size_t)segment * M5_SEGMENT_BYTES;
        const struct m5_data_seg *data = (const struct m5_data_seg *)(const void *)at;
        uint32_t bytes = port_host32(data->byte_count);
        struct nic_range *range = &work->range[work->ranges];

        if (work->ranges == NIC_MAX_SGE)
            return M5_SYN_LOCAL_QP_OP;
        if (bytes & M5_INLINE_FLAG) {
            bytes &= ~M5_INLINE_FLAG;
            uint32_t room = (work->segments - segment) * M5_SEGMENT_BYTES -
                            (uint32_t)sizeof(struct m5_inline_seg);
            if (access & NIC_LOCAL_WRITE || bytes > room)
                return M5_SYN_LOCAL_QP_OP;
            range->at = at + sizeof(struct m5_inline_seg);
            range->bytes = bytes;
            segment += (bytes + (uint32_t)sizeof(struct m5_inline_seg) - 1) / M5_SEGMENT_BYTES;
        } else {
            if (bytes == 0)
                bytes = NIC_MAX_MESSAGE;
            if (!nic_mkey_translate(nic, port_host32(data->lkey), port_host64(data->addr), bytes,
                                    access, qp->pdn, range))
                return M5_SYN_LOCAL_PROTECTION;
        }
        total += range->bytes;
        work->ranges++;
    }
    if (total > NIC_MAX_MESSAGE)
        return M5_SYN_LOCAL_LENGTH;
    work->payload_bytes = (uint32_t)total;
    return 0;
}

/* The remote address segment, second of the WQE. */
PORT_FN uint32_t nic_decode_raddr(struct nic *nic, const struct nic_qp *qp)
{
    struct nic_work *work = &nic->work;
    const struct m5_raddr_seg *raddr =
        (const struct m5_raddr_seg *)(const void *)(work->wqe + sizeof(struct m5_ctrl_seg));
    if (work->segments < 2)
        return M5_SYN_LOCAL_QP_OP;
    if (nic->strict.enabled)
        nic_check_raddr(nic, qp, raddr);
    work->raddr = port_host64(raddr->raddr);
    work->rkey = port_host32(raddr->rkey);
    return 0;
}

#endif
