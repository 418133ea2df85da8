/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strict mode: what hardware would punish, or what undefined behaviour would hide, said aloud. Part
 * of the one-source execution path; the texts are in strict.c.
 */
#ifndef SOFTNIC_CORE_STRICT_H
#define SOFTNIC_CORE_STRICT_H

#include "dma.h"

/* What a poisoned slot holds, 16 times over: the same in both byte orders, with opcode 0xdb, which
 * no device has; not one byte repeated, as payloads often are. */
#define NIC_POISON 0xdb5a5adbu

PORT_CODE void nic_diagnose(struct nic *nic, enum nic_diag kind, uint32_t qpn, uint32_t index,
                            uint32_t detail)
{
    if (!nic->strict.enabled)
        return;
    nic->counters.diag[kind]++;
    if (nic->diag_logged == NIC_DIAG_LOG)
        return;
    struct nic_diag_entry *entry = &nic->diag_log[nic->diag_logged++];
    entry->kind = kind;
    entry->qpn = qpn;
    entry->index = index & M5_INDEX_MASK;
    entry->detail = detail;
}

/* A uniform number below `bound` (xorshift64*, seeded once: runs repeat). */
PORT_FN uint64_t nic_random(struct nic *nic, uint64_t bound)
{
    uint64_t x = nic->strict.random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    nic->strict.random = x;
    return (x * 0x2545f4914f6cdd1dull >> 11) % bound;
}

/* A fetch comes when the device gets to it: lets a random time pass. */
PORT_FN void nic_fetch_delay(struct nic *nic)
{
    if (nic->strict.fetch_delay_ns == 0)
        return;
    uint64_t until = port_now_ns() + nic_random(nic, nic->strict.fetch_delay_ns + 1ull);
    while (port_now_ns() < until)
        ;
}

/* Overwrites executed blocks. They are the device's until the CQE that retires them is written. */
DMA_CODE void nic_poison(struct nic_qp *qp, uint32_t blocks)
{
    uint64_t word = (uint64_t)NIC_POISON << 32 | NIC_POISON;
    for (uint32_t i = 0; i < blocks; i++) {
        uint8_t *at = nic_sq_block(qp, i);
        for (uint32_t byte = 0; byte < M5_BLOCK_BYTES; byte += 8)
            *(volatile dma_word *)(at + byte) = word;
    }
}

/* A send index that a doorbell naming `wanted` could go with: `wanted` is the first block of the
 * last WQE, or the next free block, as the program's author chose. */
PORT_FN bool nic_goes_with(const struct nic_qp *qp, uint32_t index, uint32_t wanted)
{
    uint32_t beyond = ((index & M5_INDEX_MASK) - wanted) & M5_INDEX_MASK;
    return (index & M5_INDEX_MASK) != (qp->sq_done & M5_INDEX_MASK) &&
           beyond <= NIC_MAX_SQ_BYTES / M5_BLOCK_BYTES;
}

/* A doorbell was rung and the record's send half does not account for it: names the mistake that
 * does, if one is known. `wanted` is the index that the doorbell named. */
PORT_CODE enum nic_diag nic_explain_record(const struct nic_qp *qp, struct be32 send,
                                           struct be32 receive, uint32_t wanted)
{
    uint32_t ahead = (port_host32(send) - (uint32_t)qp->sq_done) & M5_INDEX_MASK;

    if (nic_goes_with(qp, send.raw, wanted))
        return NIC_DIAG_RECORD_ORDER;
    if (nic_goes_with(qp, port_host32(receive), wanted) || nic_goes_with(qp, receive.raw, wanted))
        return NIC_DIAG_RECORD_HALF;
    return ahead > 1u << qp->sq_depth_log2 ? NIC_DIAG_RECORD_RANGE : NIC_DIAG_RECORD_STALE;
}

#endif
