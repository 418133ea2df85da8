/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a WQE: its CQE, its slot, and what an error does to its queue pair. Part of the
 * one-source execution path. Follows the IB specification, 10.3.1 (states) and 10.10.2 (errors).
 */
#ifndef SOFTNIC_CORE_RETIRE_H
#define SOFTNIC_CORE_RETIRE_H

#include "cqe.h"
#include "decode.h"

/* The engine looks at a watched QP in every round, until nothing is left to wait for. */
PORT_FN void nic_watch(struct nic *nic, struct nic_qp *qp)
{
    if (qp->watched)
        return;
    qp->watched = 1;
    qp->next_watched = nic->first_watched;
    nic->first_watched = qp->qpn;
}

PORT_FN void nic_qp_event(struct nic *nic, struct nic_qp *qp, enum nic_event event)
{
    if (qp->events == 0) {
        qp->next_event = nic->first_qp_event;
        nic->first_qp_event = qp->qpn;
    }
    qp->events |= 1u << event;
}

/* A watched QP in error has its queues flushed by nic_flush(). */
PORT_FN void nic_enter_error(struct nic *nic, struct nic_qp *qp)
{
    qp->state = NIC_QP_ERR;
    qp->stall = NIC_RUNNING;
    qp->suspicion = NIC_NO_SUSPICION;
    nic_watch(nic, qp);
}

/* An error that no CQE can tell: the queue's own memory is gone, or its CQ takes no more. */
PORT_FN void nic_qp_fatal(struct nic *nic, struct nic_qp *qp)
{
    if (qp->state == NIC_QP_ERR && qp->events & 1u << NIC_EVENT_QP_FATAL)
        return;
    nic_enter_error(nic, qp);
    nic_qp_event(nic, qp, NIC_EVENT_QP_FATAL);
}

/* How many blocks software has published and the device has not executed; more than the ring holds
 * when the record, or the doorbell in its place, makes no sense. */
PORT_FN uint32_t nic_sq_available(struct nic *nic, const struct nic_qp *qp)
{
    if (qp->without_record)
        return (qp->doorbell_index - (uint32_t)qp->sq_done) & M5_INDEX_MASK;
    nic_touch(nic, NIC_TOUCH_SEND_RING);
    /* Acquire: pairs with the release before the program's store of the record; the WQEs that it
     * counts must be visible before they are fetched. */
    struct be32 wire = {port_ld32(&qp->record->send.raw, PORT_ACQUIRE, PORT_SYSTEM)};
    nic_touch(nic, NIC_TOUCH_NOTHING);
    return (port_host32(wire) - (uint32_t)qp->sq_done) & M5_INDEX_MASK;
}

/* The same for receive WQEs. */
PORT_FN uint32_t nic_rq_available(struct nic *nic, const struct nic_qp *qp)
{
    if (!qp->rq)
        return 0;
    nic_touch(nic, NIC_TOUCH_RECV_RING);
    struct be32 wire = {port_ld32(&qp->record->receive.raw, PORT_ACQUIRE, PORT_SYSTEM)};
    nic_touch(nic, NIC_TOUCH_NOTHING);
    uint32_t available = (port_host32(wire) - (uint32_t)qp->rq_done) & M5_INDEX_MASK;
    return available <= 1u << qp->rq_depth_log2 ? available : 0;
}

/* Retires the send WQE in nic->work: `syndrome` 0 is success. */
PORT_CODE void nic_retire_send(struct nic *nic, struct nic_qp *qp, uint32_t syndrome)
{
    const struct nic_work *work = &nic->work;
    struct nic_completion done = {
        .opcode = syndrome ? M5_CQE_REQUESTER_ERROR : M5_CQE_REQUESTER,
        .qpn = qp->qpn,
        .user_index = qp->user_index,
        .wqe_opcode = work->opcode,
        .wqe_counter = work->index,
        .byte_count = work->payload_bytes,
        .syndrome = syndrome,
    };

    if (nic->strict.poison) {
        nic_touch(nic, NIC_TOUCH_SEND_RING);
        nic_poison(qp, work->blocks);
        nic_touch(nic, NIC_TOUCH_NOTHING);
    }
    qp->sq_done += work->blocks;
    qp->last_wqe_index = work->index;
    nic->counters.send_wqes++;
    nic->counters.payload_bytes += syndrome ? 0 : work->payload_bytes;
    if (syndrome && qp->state != NIC_QP_ERR)
        nic_enter_error(nic, qp);
    if ((syndrome || work->flags & M5_CTRL_CQ_UPDATE) && !nic_complete(nic, qp->send_cqn, &done))
        nic_qp_fatal(nic, qp);
}

/* Retires the receive WQE at rq_done. */
PORT_CODE void nic_retire_receive(struct nic *nic, struct nic_qp *qp, struct nic_completion *done)
{
    done->qpn = qp->qpn;
    done->user_index = qp->user_index;
    done->wqe_counter = (uint32_t)qp->rq_done & M5_INDEX_MASK;
    qp->rq_done++;
    nic->counters.recv_wqes++;
    if (done->opcode == M5_CQE_RESPONDER_ERROR && qp->state != NIC_QP_ERR)
        nic_enter_error(nic, qp);
    if (!nic_complete(nic, qp->recv_cqn, done))
        nic_qp_fatal(nic, qp);
}

/* Completes everything posted to a QP in error as flushed. */
PORT_CODE void nic_flush(struct nic *nic, struct nic_qp *qp)
{
    uint32_t depth = 1u << qp->sq_depth_log2;
    for (;;) {
        uint32_t available =
            qp->sq && !nic->cqs[qp->send_cqn].failed ? nic_sq_available(nic, qp) : 0;
        if (available == 0 || available > depth)
            break;
        nic_fetch(nic, qp, available);
        nic_retire_send(nic, qp, M5_SYN_FLUSHED);
    }
    while (!nic->cqs[qp->recv_cqn].failed && nic_rq_available(nic, qp)) {
        struct nic_completion flushed = {
            .opcode = M5_CQE_RESPONDER_ERROR,
            .syndrome = M5_SYN_FLUSHED,
        };
        nic_retire_receive(nic, qp, &flushed);
    }
}

#endif
