/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder's half of RC: what a request does to the peer's memory and receive queue. Part of
 * the one-source execution path. Each function returns 0, a syndrome for the requester's CQE, or
 * NIC_RESPOND_RNR; a refusal that the IB specification (9.9.3) calls fatal for the responder also
 * moves the peer to error.
 */
#ifndef SOFTNIC_CORE_RESPOND_H
#define SOFTNIC_CORE_RESPOND_H

#include "atomic.h"
#include "retire.h"

#define NIC_RESPOND_RNR 0x100u /* no receive WQE: not a syndrome */

PORT_CODE uint32_t nic_refuse(struct nic *nic, struct nic_qp *peer, enum nic_event event,
                              uint32_t syndrome)
{
    nic_enter_error(nic, peer);
    nic_qp_event(nic, peer, event);
    return syndrome;
}

/* Checks the request's remote range against the peer's rights and the key's. */
PORT_FN uint32_t nic_remote_range(struct nic *nic, struct nic_qp *peer, uint32_t bytes,
                                  uint32_t access, struct nic_range *range)
{
    const struct nic_work *work = &nic->work;
    if ((peer->access & access) != access)
        return nic_refuse(nic, peer, NIC_EVENT_QP_REQ_ERR, M5_SYN_REMOTE_INVALID_REQUEST);
    if (!nic_mkey_translate(nic, work->rkey, work->raddr, bytes, access, peer->pdn, range))
        return nic_refuse(nic, peer, NIC_EVENT_QP_ACCESS_ERR, M5_SYN_REMOTE_ACCESS);
    return 0;
}

PORT_CODE uint32_t nic_respond_write(struct nic *nic, struct nic_qp *peer)
{
    const struct nic_work *work = &nic->work;
    struct nic_range to;
    uint32_t syndrome = nic_remote_range(nic, peer, work->payload_bytes, NIC_REMOTE_WRITE, &to);
    if (syndrome)
        return syndrome;
    bool notify = work->opcode == M5_OP_WRITE_IMM;
    if (notify && nic_rq_available(nic, peer) == 0)
        return NIC_RESPOND_RNR;

    nic_touch(nic, NIC_TOUCH_PAYLOAD);
    for (uint32_t i = 0; i < work->ranges && work->payload_bytes > 0; i++) {
        dma_copy(to.at, work->range[i].at, work->range[i].bytes);
        to.at += work->range[i].bytes;
    }
    nic_touch(nic, NIC_TOUCH_NOTHING);
    if (notify) {
        struct nic_completion done = {
            .opcode = M5_CQE_RESPONDER_WRITE_IMM,
            .byte_count = work->payload_bytes,
            .imm = work->imm,
            .solicited = work->flags & M5_CTRL_SOLICITED,
        };
        nic_retire_receive(nic, peer, &done);
    }
    return 0;
}

/* Copies to the requester's ranges. */
PORT_FN void nic_scatter_local(struct nic *nic, const uint8_t *from)
{
    const struct nic_work *work = &nic->work;
    nic_touch(nic, NIC_TOUCH_PAYLOAD);
    for (uint32_t i = 0; i < work->ranges && work->payload_bytes > 0; i++) {
        dma_copy(work->range[i].at, from, work->range[i].bytes);
        from += work->range[i].bytes;
    }
    nic_touch(nic, NIC_TOUCH_NOTHING);
}

PORT_CODE uint32_t nic_respond_read(struct nic *nic, struct nic_qp *peer)
{
    struct nic_range from;
    uint32_t syndrome =
        nic_remote_range(nic, peer, nic->work.payload_bytes, NIC_REMOTE_READ, &from);
    if (syndrome)
        return syndrome;
    nic_scatter_local(nic, from.at);
    return 0;
}

PORT_CODE uint32_t nic_respond_atomic(struct nic *nic, struct nic_qp *peer,
                                      const struct nic_atomic *atomic)
{
    struct nic_range word;
    uint64_t old;
    if (nic->work.raddr % atomic->bytes != 0)
        return nic_refuse(nic, peer, NIC_EVENT_QP_REQ_ERR, M5_SYN_REMOTE_INVALID_REQUEST);
    uint32_t syndrome = nic_remote_range(nic, peer, atomic->bytes, NIC_REMOTE_ATOMIC, &word);
    if (syndrome)
        return syndrome;
    /* A zero-based key may start at an address that is not aligned. */
    if ((uintptr_t)word.at % atomic->bytes != 0)
        return nic_refuse(nic, peer, NIC_EVENT_QP_REQ_ERR, M5_SYN_REMOTE_INVALID_REQUEST);
    nic_touch(nic, NIC_TOUCH_PAYLOAD);
    old = nic_atomic_apply(atomic, word.at);
    nic_scatter_local(nic, (const uint8_t *)&old);
    return 0;
}

/* What a message meets in the peer's receive WQE. */
enum nic_scatter {
    NIC_SCATTER_OK,
    NIC_SCATTER_TOO_LONG,
    NIC_SCATTER_PROTECTION,
};

/* Walks the receive WQE's list and the message's ranges side by side. */
PORT_CODE enum nic_scatter nic_scatter_message(struct nic *nic, const struct nic_qp *peer)
{
    const struct nic_work *work = &nic->work;
    uint64_t mask = (1ull << peer->rq_depth_log2) - 1;
    uint32_t entries = (1u << peer->rq_stride_log2) / M5_SEGMENT_BYTES;
    struct m5_data_seg list[NIC_MAX_RQ_BYTES / M5_SEGMENT_BYTES];
    struct nic_range to = {NULL, 0};
    uint32_t entry = 0;

    nic_touch(nic, NIC_TOUCH_RECV_RING);
    dma_bulk(list, peer->rq + ((peer->rq_done & mask) << peer->rq_stride_log2),
             1ull << peer->rq_stride_log2);
    nic_touch(nic, NIC_TOUCH_MESSAGE);
    for (uint32_t i = 0; i < work->ranges; i++) {
        struct nic_range from = work->range[i];
        while (from.bytes > 0) {
            if (to.bytes == 0) {
                if (entry == entries || port_host32(list[entry].lkey) == M5_LKEY_END)
                    return NIC_SCATTER_TOO_LONG;
                uint32_t bytes = port_host32(list[entry].byte_count);
                if (!nic_mkey_translate(
                        nic, port_host32(list[entry].lkey), port_host64(list[entry].addr),
                        bytes ? bytes : NIC_MAX_MESSAGE, NIC_LOCAL_WRITE, peer->pdn, &to))
                    return NIC_SCATTER_PROTECTION;
                entry++;
            }
            uint32_t bytes = from.bytes < to.bytes ? from.bytes : to.bytes;
            dma_copy(to.at, from.at, bytes);
            from.at += bytes;
            from.bytes -= bytes;
            to.at += bytes;
            to.bytes -= bytes;
        }
    }
    nic_touch(nic, NIC_TOUCH_NOTHING);
    return NIC_SCATTER_OK;
}

PORT_CODE uint32_t nic_respond_send(struct nic *nic, struct nic_qp *peer)
{
    const struct nic_work *work = &nic->work;
    if (nic_rq_available(nic, peer) == 0)
        return NIC_RESPOND_RNR;

    enum nic_scatter met = nic_scatter_message(nic, peer);
    nic_touch(nic, NIC_TOUCH_NOTHING);
    struct nic_completion done = {
        .opcode =
            work->opcode == M5_OP_SEND_IMM ? M5_CQE_RESPONDER_SEND_IMM : M5_CQE_RESPONDER_SEND,
        .byte_count = work->payload_bytes,
        .imm = work->opcode == M5_OP_SEND_IMM ? work->imm : 0,
        .solicited = work->flags & M5_CTRL_SOLICITED,
    };
    if (met != NIC_SCATTER_OK) {
        done.opcode = M5_CQE_RESPONDER_ERROR;
        done.syndrome = met == NIC_SCATTER_TOO_LONG ? M5_SYN_LOCAL_LENGTH : M5_SYN_LOCAL_PROTECTION;
    }
    nic_retire_receive(nic, peer, &done);
    if (met == NIC_SCATTER_TOO_LONG)
        return M5_SYN_REMOTE_INVALID_REQUEST;
    return met == NIC_SCATTER_PROTECTION ? M5_SYN_REMOTE_OPERATION : 0;
}

#endif
