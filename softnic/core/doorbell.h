/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the device notices work: doorbell registers, CQ arms, and the QPs that it watches without
 * one. Part of the one-source execution path; nic_round() is one turn of the engine.
 *
 * A register is memory, so of two doorbells that meet in it one is lost. The records are the truth:
 * any doorbell on a page makes the device look at every QP bound to that page (NIC_DOORBELL_SCAN).
 * A QP without a record has none but its doorbell, and so a register to itself: one QP a page.
 */
#ifndef SOFTNIC_CORE_DOORBELL_H
#define SOFTNIC_CORE_DOORBELL_H

#include "execute.h"

PORT_CODE void nic_suspect(struct nic *nic, struct nic_qp *qp, enum nic_suspicion what)
{
    if (qp->suspicion == (uint32_t)what)
        return;
    qp->suspicion = what;
    qp->suspect_since = port_now_ns();
    nic_watch(nic, qp);
}

/*
 * Does the doorbell name the next free block, as some programs do, and was everything before it
 * executed for another doorbell? Then the record says the same, and no WQE has been built there.
 * The caller watches for faults.
 */
PORT_CODE bool nic_names_free_block(const struct nic_qp *qp, struct be32 send)
{
    uint32_t index = qp->doorbell_index, done = (uint32_t)qp->sq_done & M5_INDEX_MASK;
    const struct m5_ctrl_seg *ctrl = (const struct m5_ctrl_seg *)(const void *)nic_sq_block(qp, 0);

    if (index != done || (port_host32(send) & M5_INDEX_MASK) != done)
        return false;
    struct be32 first = {port_ld32(&ctrl->opmod_idx_opcode.raw, PORT_RELAXED, PORT_SYSTEM)};
    struct be32 second = {port_ld32(&ctrl->qpn_ds.raw, PORT_RELAXED, PORT_SYSTEM)};
    return (port_host32(first) >> 8 & M5_INDEX_MASK) != index ||
           port_host32(second) >> 8 != qp->qpn;
}

PORT_CODE void nic_diagnose_range(struct nic *nic, const struct nic_qp *qp, uint32_t index)
{
    nic_diagnose(nic, NIC_DIAG_DOORBELL_RANGE, qp->qpn, index,
                 (uint32_t)qp->sq_done & M5_INDEX_MASK);
}

/* A suspicion that lasted. */
PORT_CODE void nic_convict(struct nic *nic, struct nic_qp *qp)
{
    if (qp->without_record) { /* stale, as nothing else is suspected of it */
        qp->suspicion = NIC_NO_SUSPICION;
        nic_diagnose_range(nic, qp, qp->doorbell_index);
        return;
    }
    nic->touching_id = qp->qpn;
    nic_touch(nic, NIC_TOUCH_SEND_RING);
    struct be32 send = {port_ld32(&qp->record->send.raw, PORT_RELAXED, PORT_SYSTEM)};
    struct be32 receive = {port_ld32(&qp->record->receive.raw, PORT_RELAXED, PORT_SYSTEM)};
    bool innocent = qp->suspicion == NIC_SUSPECT_STALE && nic_names_free_block(qp, send);
    nic_touch(nic, NIC_TOUCH_NOTHING);
    uint32_t suspicion = innocent ? NIC_NO_SUSPICION : qp->suspicion;

    qp->suspicion = NIC_NO_SUSPICION;
    if (suspicion == NIC_SUSPECT_UNRUNG)
        nic_diagnose(nic, NIC_DIAG_UNRUNG, qp->qpn, qp->last_wqe_index, port_host32(send));
    else if (suspicion == NIC_SUSPECT_LOST)
        nic_diagnose(nic, NIC_DIAG_DOORBELL_LOST, qp->qpn, (uint32_t)qp->sq_done,
                     port_host32(send));
    else if (suspicion == NIC_SUSPECT_STALE) {
        enum nic_diag kind = nic_explain_record(qp, send, receive, qp->doorbell_index);
        struct be32 half = kind == NIC_DIAG_RECORD_HALF ? receive : send;
        nic_diagnose(nic, kind, qp->qpn, qp->doorbell_index, port_host32(half));
    }
}

/* Does the last doorbell name the last WQE executed, or one behind it? Without a record nothing is
 * executed that none named. */
PORT_FN bool nic_rung(const struct nic_qp *qp)
{
    return qp->without_record || (int16_t)(uint16_t)(qp->doorbell_index - qp->last_wqe_index) >= 0;
}

/* A register that several QPs share may have lost a doorbell without anybody's fault. A QP without
 * a record has another. */
PORT_CODE bool nic_alone_on_page(const struct nic *nic, const struct nic_qp *qp)
{
    for (uint32_t qpn = nic->first_on_uar[qp->uar_page]; qpn; qpn = nic->qps[qpn].next_on_uar)
        if (qpn != qp->qpn && !nic->qps[qpn].without_record)
            return false;
    return true;
}

/* Serves a QP whose doorbell was not the reason. */
PORT_CODE void nic_serve_unrung(struct nic *nic, struct nic_qp *qp)
{
    uint64_t before = qp->sq_done;
    nic_serve(nic, qp);
    if (nic->strict.enabled && qp->sq_done != before && qp->state == NIC_QP_RTS &&
        nic_alone_on_page(nic, qp) && !nic_rung(qp))
        nic_suspect(nic, qp, NIC_SUSPECT_UNRUNG);
}

/* The QPs on `page` that the doorbell did not name. */
PORT_CODE void nic_scan_page(struct nic *nic, uint32_t page, const struct nic_qp *named)
{
    for (uint32_t qpn = nic->first_on_uar[page]; qpn; qpn = nic->qps[qpn].next_on_uar) {
        struct nic_qp *qp = &nic->qps[qpn];
        if (qp == named || !qp->sq || qp->stall != NIC_RUNNING || qp->unfinished)
            continue;
        if (nic->strict.doorbell_mode == NIC_DOORBELL_SCAN || qp->without_record) {
            nic_serve_unrung(nic, qp);
            continue;
        }
        nic->touching_id = qpn;
        if (qp->state == NIC_QP_RTS && nic_sq_available(nic, qp) != 0)
            nic_suspect(nic, qp, NIC_SUSPECT_LOST);
    }
}

/* Some programs name the first block of their last WQE, some the next free block; which, is learned
 * from doorbells that brought work, when all of it is executed. */
PORT_FN void nic_learn_ring(struct nic_qp *qp)
{
    qp->rings_next |= !qp->unfinished && qp->doorbell_index == (qp->sq_done & M5_INDEX_MASK);
}

/* Can the doorbell that named `index` be accounted for by what was executed? */
PORT_FN bool nic_ring_is_served(const struct nic_qp *qp, uint32_t index)
{
    int16_t ahead = (int16_t)(uint16_t)((uint32_t)qp->sq_done - index);
    return ahead > 0 || (ahead == 0 && qp->rings_next);
}

/* Does the doorbell take back what the last one published, and is not executed yet? */
PORT_FN bool nic_rings_back(const struct nic_qp *qp, uint32_t index)
{
    uint32_t published = (qp->doorbell_index - (uint32_t)qp->sq_done) & M5_INDEX_MASK;
    return published <= 1u << qp->sq_depth_log2 &&
           ((index - (uint32_t)qp->sq_done) & M5_INDEX_MASK) < published;
}

/* A doorbell named this QP: serves it, and says what is odd. */
PORT_CODE void nic_ring_qp(struct nic *nic, struct nic_qp *qp, uint32_t index)
{
    if (qp->without_record) {
        if (qp->state < NIC_QP_RTS)
            return; /* from before a reset: the index would count as published when it is ready */
        if (nic_rings_back(qp, index))
            nic_diagnose_range(nic, qp, index);
    } else {
        /* This line and the next come from the program's core; asked for together they come in one
         * trip. */
        port_prefetch(qp->record, false);
    }
    nic_prefetch_block(qp, 0);
    qp->doorbell_index = index;
    if (qp->stall != NIC_RUNNING || qp->state != NIC_QP_RTS) {
        if (qp->state == NIC_QP_ERR)
            nic_serve(nic, qp);
        return; /* a stalled queue goes on by its timer */
    }
    if (qp->unfinished)
        return; /* it has its turn after the doorbells */
    uint32_t available = nic_serve(nic, qp);
    if (available != 0 && available <= 1u << qp->sq_depth_log2) {
        nic_learn_ring(qp);
        qp->suspicion = NIC_NO_SUSPICION;
        if (nic->strict.enabled && nic_alone_on_page(nic, qp) && !nic_rung(qp))
            nic_suspect(nic, qp, NIC_SUSPECT_UNRUNG);
    } else if (available != 0 || !nic_ring_is_served(qp, index)) {
        nic_suspect(nic, qp, NIC_SUSPECT_STALE);
    } else {
        qp->suspicion = NIC_NO_SUSPICION;
    }
}

/* `recordless`: the register is that of a QP without a record. */
PORT_CODE void nic_ring(struct nic *nic, uint32_t page, bool recordless, uint64_t value)
{
    struct be32 first = {(uint32_t)value}, second = {(uint32_t)(value >> 32)};
    uint32_t index = port_host32(first) >> 8 & M5_INDEX_MASK;
    uint32_t qpn = port_host32(second) >> 8;
    struct nic_qp *qp = qpn < NIC_MAX_QPS ? &nic->qps[qpn] : NULL;

    nic->counters.doorbells++;
    if (first.raw == NIC_POISON) {
        /* A copy of a whole WQE into the register (BlueFlame) that began after the block was
         * executed, for another doorbell, and poisoned. */
        qp = NULL;
    } else if (!qp || qp->qpn == 0 || qp->uar_page != page || !qp->sq) {
        nic_diagnose(nic, NIC_DIAG_DOORBELL_QPN, qpn, index, port_host32(second));
        qp = NULL;
    } else if (recordless != (qp->without_record != 0)) {
        nic_diagnose(nic, NIC_DIAG_DOORBELL_PLACE, qpn, index, port_host32(second));
        qp = NULL;
    } else {
        nic_ring_qp(nic, qp, index);
    }
    nic_scan_page(nic, page, qp);
}

/* ---- CQ arms ---- */

PORT_CODE void nic_arm(struct nic *nic, struct nic_cq *cq, uint32_t word)
{
    uint32_t behind = ((uint32_t)cq->produced - word) & 0xffffffu;
    bool solicited = word & M5_CQ_ARM_SOLICITED;
    /* CQEs that came after what the program had consumed when it armed. */
    bool missed = solicited ? cq->produced - cq->solicited < behind : behind != 0;

    cq->last_arm = word;
    nic->counters.cq_arms++;
    cq->armed = solicited ? NIC_CQ_ARMED_SOLICITED : NIC_CQ_ARMED_ANY;
    if (missed) {
        cq->armed = NIC_CQ_NOT_ARMED;
        nic_cq_event(nic, cq, NIC_CQ_COMPLETION);
    }
}

/*
 * All CQs of a page share one arm register, so arms merge in it: the records tell. Every CQ whose
 * record says something new is armed, and one that says the same again is not: its arm was taken
 * when another CQ's doorbell made the device look. The register itself is believed only for a CQ
 * whose record was never written.
 */
PORT_CODE void nic_arm_page(struct nic *nic, uint32_t page, uint64_t value)
{
    struct be32 word = {(uint32_t)value}, cqn = {(uint32_t)(value >> 32)};
    uint32_t named = port_host32(cqn) & M5_QPN_MASK;

    for (uint32_t n = nic->first_cq_on_uar[page]; n; n = nic->cqs[n].next_on_uar) {
        struct nic_cq *cq = &nic->cqs[n];
        if (cq->failed)
            continue; /* its record may be gone */
        nic->touching_id = 0;
        nic->touching_cqn = n;
        nic_touch(nic, NIC_TOUCH_CQ);
        struct be32 wire = {port_ld32(&cq->record->arm.raw, PORT_ACQUIRE, PORT_SYSTEM)};
        nic_touch(nic, NIC_TOUCH_NOTHING);
        uint32_t said = port_host32(wire);
        if (said == NIC_NEVER_ARMED && n == named)
            said = port_host32(word);
        if (said != cq->last_arm && said != NIC_NEVER_ARMED)
            nic_arm(nic, cq, said);
    }
}

/* ---- One turn ---- */

PORT_FN uint64_t *nic_register(const struct nic *nic, uint32_t page, uint32_t offset)
{
    return (uint64_t *)(void *)(nic->uar + (size_t)page * M5_UAR_BYTES + offset);
}

/* Takes what is in a register and leaves it empty. 0 = nothing. */
PORT_FN uint64_t nic_take(uint64_t *reg)
{
    if (port_ld64(reg, PORT_RELAXED, PORT_SYSTEM) == 0)
        return 0;
    /* Acquire: pairs with the release before the program's doorbell store. */
    return port_xchg64(reg, 0);
}

/* Looks at everything, since a fault ended a round: of doorbells and arms that had merged with the
 * one that was being served, nothing is left in the registers. */
PORT_CODE void nic_look_everywhere(struct nic *nic)
{
    for (uint32_t page = 0; page < nic->uar_used; page++) {
        nic_scan_page(nic, page, NULL);
        nic_arm_page(nic, page, 0);
    }
}

/* Looks at a register for sends. Returns whether there was anything. */
PORT_FN bool nic_poll_send(struct nic *nic, uint32_t page, uint32_t offset)
{
    uint64_t value = nic_take(nic_register(nic, page, offset));
    if (value)
        nic_ring(nic, page, offset == M5_UAR_SEND_NO_RECORD, value);
    return value != 0;
}

/* Looks at every register once. Returns whether there was anything. */
PORT_CODE bool nic_poll_registers(struct nic *nic)
{
    bool any = false;
    for (uint32_t page = 0; page < nic->uar_used; page++) {
        for (uint32_t i = 0; i < M5_UAR_SEND_REGISTERS; i++)
            any |= nic_poll_send(nic, page, M5_UAR_SEND + i * M5_UAR_SEND_STRIDE);
        if (nic->recordless[page] || nic->strict.enabled)
            any |= nic_poll_send(nic, page, M5_UAR_SEND_NO_RECORD);
        uint64_t arm = nic_take(nic_register(nic, page, M5_UAR_CQ_ARM));
        if (arm) {
            any = true;
            nic_arm_page(nic, page, arm);
        }
    }
    return any;
}

/* One look at a watched QP. Returns false when there is nothing left to wait for. */
PORT_CODE bool nic_look_at(struct nic *nic, struct nic_qp *qp)
{
    if (qp->state == NIC_QP_ERR) {
        nic_serve(nic, qp);
        return true;
    }
    if (qp->stall != NIC_RUNNING) {
        nic->touching_id = qp->qpn;
        struct nic_qp *peer = nic_peer(nic, qp);
        bool ready = peer && (qp->stall == NIC_STALL_NO_PEER || nic_rq_available(nic, peer));
        if (ready || nic->now_ns >= qp->stall_until_ns)
            nic_serve(nic, qp);
        return true;
    }
    if (qp->recheck) {
        qp->recheck = 0;
        nic_serve(nic, qp);
    } else if (qp->unfinished) {
        nic_serve(nic, qp);
        nic_learn_ring(qp);
        /* Of a doorbell that came meanwhile nothing was asked yet. */
        if (!qp->unfinished && qp->state == NIC_QP_RTS && qp->stall == NIC_RUNNING &&
            !nic_ring_is_served(qp, qp->doorbell_index))
            nic_suspect(nic, qp, NIC_SUSPECT_STALE);
    }
    if (qp->suspicion == NIC_SUSPECT_STALE) {
        uint32_t available = nic_serve(nic, qp);
        /* Nothing is left also when another doorbell on the page had the record looked at. */
        if (available == 0 ? nic_ring_is_served(qp, qp->doorbell_index)
                           : available <= 1u << qp->sq_depth_log2)
            qp->suspicion = NIC_NO_SUSPICION;
    }
    if (qp->suspicion != NIC_NO_SUSPICION && nic->now_ns - qp->suspect_since > NIC_SUSPICION_NS)
        nic_convict(nic, qp);
    if (nic->strict.early && qp->state == NIC_QP_RTS) {
        nic_serve_unrung(nic, qp);
        return true;
    }
    return qp->stall != NIC_RUNNING || qp->suspicion != NIC_NO_SUSPICION || qp->unfinished;
}

/* How many queues with work left have a turn between two looks at the doorbells: so many full ones
 * at most delay a queue that rings for little, however many there are. */
#define NIC_TURNS_A_ROUND 4u

/* Looks at each watched QP, in several rounds when many have work left. What is still to be looked
 * at lies in the device, so that nobody is forgotten when a round ends, by a fault too. Returns
 * whether any had work left from its last turn. */
PORT_CODE bool nic_poll_watched(struct nic *nic)
{
    uint32_t turns = 0;
    nic->now_ns = port_now_ns();
    if (nic->rest_watched == 0) {
        nic->rest_watched = nic->first_watched;
        nic->first_watched = 0;
    }
    while (nic->rest_watched && turns < NIC_TURNS_A_ROUND) {
        struct nic_qp *qp = &nic->qps[nic->rest_watched];
        nic->rest_watched = qp->next_watched;
        qp->watched = 0;
        turns += qp->unfinished != 0;
        if (nic_look_at(nic, qp))
            nic_watch(nic, qp);
    }
    return turns > 0;
}

/* One turn of the engine: doorbells first, so that a queue with much to do delays nobody who rings
 * for little. Returns whether there was anything to do. */
PORT_CODE bool nic_round(struct nic *nic)
{
    bool any = nic_poll_registers(nic);
    if (nic->first_watched || nic->rest_watched)
        any |= nic_poll_watched(nic);
    return any;
}

#endif
