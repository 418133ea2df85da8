/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester's half of RC: one send WQE from fetch to retirement, and the queue around it. Part
 * of the one-source execution path; nic_serve() is its entry.
 *
 * Between queue pairs of one process a request is executed on the peer directly. Execution is in
 * order and complete before the next WQE starts, so fences have nothing left to wait for.
 */
#ifndef SOFTNIC_CORE_EXECUTE_H
#define SOFTNIC_CORE_EXECUTE_H

#include "respond.h"

/* The peer as a responder: there, ready to receive, and connected back to this QP. */
PORT_FN struct nic_qp *nic_peer(struct nic *nic, const struct nic_qp *qp)
{
    uint32_t qpn = qp->remote_qpn;
    struct nic_qp *peer = qpn < NIC_MAX_QPS ? &nic->qps[qpn] : NULL;
    if (!peer || peer->qpn == 0 || peer->remote_qpn != qp->qpn)
        return NULL;
    return peer->state == NIC_QP_RTR || peer->state == NIC_QP_RTS || peer->state == NIC_QP_SQD
               ? peer
               : NULL;
}

/* Nobody answered the WQE in nic->work: says so when this device never gave the remote QPN out, as
 * it is with that of a queue pair in another process. A peer that was destroyed is no stranger. */
PORT_CODE void nic_explain_silence(struct nic *nic, const struct nic_qp *qp)
{
    uint32_t qpn = qp->remote_qpn;
    if (qpn >= NIC_MAX_QPS || !nic->qps[qpn].given)
        nic_diagnose(nic, NIC_DIAG_NO_SUCH_PEER, qp->qpn, nic->work.index, qpn);
}

/* Nanoseconds of an RNR NAK timer; IB specification, table 45 (units of 10 us). */
PORT_CODE uint64_t nic_rnr_timer_ns(uint32_t code)
{
    static const uint16_t units[32] = {65535, 1,    2,    3,     4,     6,     8,     12,
                                       16,    24,   32,   48,    64,    96,    128,   192,
                                       256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                       4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return units[code & 31] * 10000ull;
}

/*
 * The request could not be served now. Starts the stall's timer, or when it ran out takes one
 * retry. Returns the syndrome when the retries are used up, 0 to go on waiting.
 */
PORT_CODE uint32_t nic_stall(struct nic *nic, struct nic_qp *qp, enum nic_stall kind,
                             uint64_t timer_ns)
{
    bool for_ever = kind == NIC_STALL_RNR ? qp->rnr_retry == 7 : qp->ack_timeout == 0;
    uint64_t now = port_now_ns();

    if (qp->stall != kind) {
        qp->stall = kind;
        qp->retries_left = kind == NIC_STALL_RNR ? qp->rnr_retry : qp->retry_count;
        qp->stall_until_ns = now + timer_ns;
        nic_watch(nic, qp);
        if (kind == NIC_STALL_RNR && qp->retries_left == 0)
            return M5_SYN_RNR_RETRY_EXCEEDED;
        return 0;
    }
    if (now < qp->stall_until_ns || for_ever)
        return 0;
    if (qp->retries_left == 0)
        return kind == NIC_STALL_RNR ? M5_SYN_RNR_RETRY_EXCEEDED : M5_SYN_TRANSPORT_RETRY_EXCEEDED;
    qp->retries_left--;
    qp->stall_until_ns = now + timer_ns;
    return 0;
}

/* Decodes what the opcode asks for into nic->work. Returns 0 or a syndrome. */
PORT_CODE uint32_t nic_decode(struct nic *nic, const struct nic_qp *qp, struct nic_atomic *atomic)
{
    uint32_t syndrome;
    switch (nic->work.opcode) {
    case M5_OP_NOP:
        return 0;
    case M5_OP_WRITE:
    case M5_OP_WRITE_IMM:
        syndrome = nic_decode_raddr(nic, qp);
        return syndrome ? syndrome : nic_decode_payload(nic, qp, 2, 0);
    case M5_OP_READ:
        syndrome = nic_decode_raddr(nic, qp);
        return syndrome ? syndrome : nic_decode_payload(nic, qp, 2, NIC_LOCAL_WRITE);
    case M5_OP_SEND:
    case M5_OP_SEND_IMM:
        return nic_decode_payload(nic, qp, 1, 0);
    case M5_OP_ATOMIC_CS:
    case M5_OP_ATOMIC_FA:
    case M5_OP_ATOMIC_MASKED_CS:
    case M5_OP_ATOMIC_MASKED_FA:
        syndrome = nic_decode_raddr(nic, qp);
        if (!syndrome)
            syndrome = nic_decode_atomic(&nic->work, atomic);
        if (!syndrome)
            syndrome = nic_decode_payload(nic, qp, 2 + atomic->segments, NIC_LOCAL_WRITE);
        if (!syndrome && nic->work.payload_bytes != atomic->bytes)
            syndrome = M5_SYN_LOCAL_LENGTH;
        return syndrome;
    default:
        return M5_SYN_LOCAL_QP_OP;
    }
}

PORT_FN uint32_t nic_respond(struct nic *nic, struct nic_qp *peer, const struct nic_atomic *atomic)
{
    switch (nic->work.opcode) {
    case M5_OP_WRITE:
    case M5_OP_WRITE_IMM:
        return nic_respond_write(nic, peer);
    case M5_OP_READ:
        return nic_respond_read(nic, peer);
    case M5_OP_SEND:
    case M5_OP_SEND_IMM:
        return nic_respond_send(nic, peer);
    default:
        return nic_respond_atomic(nic, peer, atomic);
    }
}

/* How many blocks ahead of its work the device asks for a batch's WQEs. */
#define NIC_PREFETCH_BLOCKS 6

PORT_FN void nic_prefetch_block(const struct nic_qp *qp, uint32_t ahead)
{
    port_prefetch(nic_sq_block(qp, ahead), false);
}

/* Executes the next WQE. Returns false when the queue has to wait. */
PORT_CODE bool nic_execute(struct nic *nic, struct nic_qp *qp, uint32_t available)
{
    struct nic_atomic atomic = {0};
    uint32_t syndrome = nic_fetch(nic, qp, available);
    if (!syndrome)
        syndrome = nic_decode(nic, qp, &atomic);

    if (!syndrome && nic->work.opcode != M5_OP_NOP) {
        struct nic_qp *peer = nic_peer(nic, qp);
        if (!peer) {
            bool begins = qp->stall != NIC_STALL_NO_PEER;
            syndrome = nic_stall(nic, qp, NIC_STALL_NO_PEER, 4096ull << qp->ack_timeout);
            /* What waits for ever says so at once. */
            if (syndrome || (begins && qp->ack_timeout == 0))
                nic_explain_silence(nic, qp);
            if (!syndrome)
                return false;
        } else {
            syndrome = nic_respond(nic, peer, &atomic);
            if (syndrome == NIC_RESPOND_RNR) {
                nic->counters.rnr_naks++;
                syndrome = nic_stall(nic, qp, NIC_STALL_RNR, nic_rnr_timer_ns(peer->min_rnr_timer));
                if (!syndrome)
                    return false;
            }
        }
    }
    qp->stall = NIC_RUNNING;
    nic_retire_send(nic, qp, syndrome);
    return true;
}

/* How many blocks of a queue are executed at a turn: as many as programs post at once, so that most
 * posts are one turn, and few enough that a full queue delays its neighbours by microseconds. */
#define NIC_TURN_BLOCKS 64u

/*
 * Executes what is published now, a turn of it, unless the queue has to wait; in the error state
 * flushes it. Returns how many blocks were published; more than the ring holds means that the
 * record or the doorbell makes no sense, and nothing was executed.
 */
PORT_CODE uint32_t nic_serve(struct nic *nic, struct nic_qp *qp)
{
    nic->touching_id = qp->qpn;
    qp->unfinished = 0;
    if (qp->state == NIC_QP_ERR)
        nic_flush(nic, qp);
    if (qp->state != NIC_QP_RTS || !qp->sq)
        return 0;

    uint32_t available = nic_sq_available(nic, qp);
    if (available == 0 || available > 1u << qp->sq_depth_log2)
        return available;
    nic_fetch_delay(nic);
    uint64_t end = qp->sq_done + available;
    uint64_t stop = qp->sq_done + (available < NIC_TURN_BLOCKS ? available : NIC_TURN_BLOCKS);
    for (uint32_t ahead = 1; ahead < NIC_PREFETCH_BLOCKS && ahead < available; ahead++)
        nic_prefetch_block(qp, ahead);
    while (qp->sq_done < stop && qp->state == NIC_QP_RTS) {
        if (qp->sq_done + NIC_PREFETCH_BLOCKS < end)
            nic_prefetch_block(qp, NIC_PREFETCH_BLOCKS);
        if (!nic_execute(nic, qp, (uint32_t)(end - qp->sq_done)))
            return available;
    }
    if (qp->state == NIC_QP_ERR) {
        nic_flush(nic, qp);
    } else if (qp->sq_done < end) {
        qp->unfinished = 1;
        nic_watch(nic, qp);
    }
    return available;
}

#endif
