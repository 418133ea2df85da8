/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing completions. Part of the one-source execution path.
 *
 * A CQE's last 8 bytes (QPN, wqe_counter, op_own) are one release store, so that op_own is never
 * seen before the rest, and a reader of a collapsed CQ never sees half of wqe_counter.
 */
#ifndef SOFTNIC_CORE_CQE_H
#define SOFTNIC_CORE_CQE_H

#include "dma.h"

struct nic_completion {
    uint32_t opcode; /* enum m5_cqe_opcode */
    uint32_t qpn;
    uint32_t user_index;
    uint32_t wqe_opcode; /* requester: of the send WQE; responder: 0 */
    uint32_t wqe_counter;
    uint32_t byte_count;
    uint32_t imm;
    uint32_t syndrome; /* error CQEs */
    bool solicited;
};

PORT_FN void nic_cq_event(struct nic *nic, struct nic_cq *cq, enum nic_cq_event event)
{
    if (cq->events == 0) {
        cq->next_event = nic->first_cq_event;
        nic->first_cq_event = cq->cqn;
    }
    cq->events |= event;
}

/* The consumer count is 24 bits wide and never behind what was last seen. */
PORT_FN void nic_cq_read_consumer(struct nic *nic, struct nic_cq *cq)
{
    nic_touch(nic, NIC_TOUCH_CQ);
    /* Acquire: the slots counted here were read by the program before it released the count. */
    struct be32 wire = {port_ld32(&cq->record->consumer.raw, PORT_ACQUIRE, PORT_SYSTEM)};
    nic_touch(nic, NIC_TOUCH_NOTHING);
    cq->consumed += (port_host32(wire) - (uint32_t)cq->consumed) & 0xffffffu;
}

PORT_FN bool nic_cq_full(struct nic *nic, struct nic_cq *cq)
{
    if (cq->flags & NIC_CQ_IGNORE_OVERRUN || cq->produced - cq->consumed < 1ull << cq->depth_log2)
        return false;
    nic_cq_read_consumer(nic, cq);
    return cq->produced - cq->consumed >= 1ull << cq->depth_log2;
}

PORT_FN void nic_cq_fail(struct nic *nic, struct nic_cq *cq)
{
    cq->failed = 1;
    nic_cq_event(nic, cq, NIC_CQ_FAILED);
}

/* Where the next CQE's 64 bytes go. */
PORT_FN uint8_t *nic_cq_slot(const struct nic_cq *cq)
{
    uint64_t slot =
        cq->flags & NIC_CQ_COLLAPSED ? 0 : cq->produced & ((1ull << cq->depth_log2) - 1);
    return cq->ring + slot * cq->cqe_bytes + (cq->cqe_bytes - sizeof(struct m5_cqe));
}

DMA_CODE void nic_cqe_store(struct nic_cq *cq, const struct nic_completion *done, bool error)
{
    uint8_t *at = nic_cq_slot(cq);
    uint32_t owner = (uint32_t)(cq->produced >> cq->depth_log2) & M5_CQE_OWNER;
    uint32_t op_own = done->opcode << 4 | (done->solicited ? 2u : 0u) | owner;
    uint64_t user_imm =
        (uint64_t)port_be32(done->imm).raw << 32 | port_be32(done->user_index & M5_QPN_MASK).raw;
    uint64_t count = error ? 0 : (uint64_t)port_be32(done->byte_count).raw << 32;
    uint64_t syndrome = error ? (uint64_t)port_be32(done->syndrome).raw << 32 : 0;
    uint64_t tail = (uint64_t)port_be32((done->wqe_counter & M5_INDEX_MASK) << 16 | op_own).raw
                        << 32 |
                    port_be32(done->wqe_opcode << 24 | done->qpn).raw;

    /* Bytes 0 to 31 are reserved; 48 to 55 hold the timestamp, or in an error the syndromes. */
    port_st16(at + 32, user_imm, count);
    port_st64((uint64_t *)(void *)(at + 48), syndrome, PORT_RELAXED, PORT_SYSTEM);
    /* Release: CQE and payload must be visible before op_own. Pairs with the acquire of the
     * program's poll. */
    port_st64((uint64_t *)(void *)(at + 56), tail, PORT_RELEASE, PORT_SYSTEM);
}

/* Puts one CQE, and an event when the CQ is armed for it. A CQ that is full, or whose memory is
 * gone, fails; returns false then. */
PORT_CODE bool nic_complete(struct nic *nic, uint32_t cqn, const struct nic_completion *done)
{
    struct nic_cq *cq = &nic->cqs[cqn];
    bool error = done->opcode == M5_CQE_REQUESTER_ERROR || done->opcode == M5_CQE_RESPONDER_ERROR;
    if (cq->failed)
        return false;
    nic->touching_cqn = cqn;
    if (nic_cq_full(nic, cq)) {
        nic_cq_fail(nic, cq);
        return false;
    }
    nic_touch(nic, NIC_TOUCH_CQ);
    nic_cqe_store(cq, done, error);
    nic_touch(nic, NIC_TOUCH_NOTHING);

    cq->produced++;
    nic->counters.cqes++;
    nic->counters.error_cqes += error;
    if (done->solicited || error)
        cq->solicited = cq->produced;
    if (cq->armed == NIC_CQ_ARMED_ANY ||
        (cq->armed == NIC_CQ_ARMED_SOLICITED && (done->solicited || error))) {
        cq->armed = NIC_CQ_NOT_ARMED;
        nic_cq_event(nic, cq, NIC_CQ_COMPLETION);
    }
    return true;
}

#endif
