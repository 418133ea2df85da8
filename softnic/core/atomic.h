/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote atomics: decoding their operands and applying them. Part of the one-source execution path.
 * Operands are big-endian in the WQE; memory and the value returned are in host order.
 *
 * Every atomic is a compare-swap loop over a function of the old value, so that atomics of a CPU or
 * a GPU on the same word are not lost either.
 */
#ifndef SOFTNIC_CORE_ATOMIC_H
#define SOFTNIC_CORE_ATOMIC_H

#include "dma.h"

struct nic_atomic {
    uint32_t bytes;    /* 4 or 8 */
    uint32_t segments; /* that its operands take */
    bool swap;         /* compare-swap, not fetch-add */
    uint64_t operand;  /* new value or addend */
    uint64_t compare;
    uint64_t operand_mask; /* compare-swap: bits that are replaced; fetch-add: field boundaries */
    uint64_t compare_mask;
};

/* Reads the operands behind the remote address segment. Returns 0 or a syndrome. */
PORT_CODE uint32_t nic_decode_atomic(const struct nic_work *work, struct nic_atomic *atomic)
{
    const void *at = work->wqe + 2 * M5_SEGMENT_BYTES;
    bool masked = work->opcode == M5_OP_ATOMIC_MASKED_CS || work->opcode == M5_OP_ATOMIC_MASKED_FA;

    atomic->swap = work->opcode == M5_OP_ATOMIC_CS || work->opcode == M5_OP_ATOMIC_MASKED_CS;
    atomic->bytes = masked && work->opmod == M5_ATOMIC_4_BYTES ? 4 : 8;
    atomic->segments = masked && atomic->swap && atomic->bytes == 8 ? 2 : 1;
    if (work->segments < 2 + atomic->segments)
        return M5_SYN_LOCAL_QP_OP;
    if (masked && work->opmod != M5_ATOMIC_4_BYTES && work->opmod != M5_ATOMIC_8_BYTES)
        return M5_SYN_LOCAL_QP_OP;

    if (!masked) {
        const struct m5_atomic_seg *seg = (const struct m5_atomic_seg *)at;
        atomic->operand = port_host64(seg->swap_add);
        atomic->compare = port_host64(seg->compare);
        atomic->operand_mask = atomic->swap ? UINT64_MAX : 0;
        atomic->compare_mask = UINT64_MAX;
    } else if (atomic->bytes == 4) {
        const struct m5_masked_cs4_seg *seg = (const struct m5_masked_cs4_seg *)at;
        atomic->operand = port_host32(seg->swap);
        atomic->compare = port_host32(seg->compare);
        atomic->operand_mask = port_host32(seg->swap_mask);
        atomic->compare_mask = port_host32(seg->compare_mask);
        if (!atomic->swap)
            atomic->operand_mask = port_host32(seg->compare); /* struct m5_masked_fa4_seg */
    } else if (atomic->swap) {
        const struct m5_masked_cs_seg *seg = (const struct m5_masked_cs_seg *)at;
        atomic->operand = port_host64(seg->swap);
        atomic->compare = port_host64(seg->compare);
        atomic->operand_mask = port_host64(seg->swap_mask);
        atomic->compare_mask = port_host64(seg->compare_mask);
    } else {
        const struct m5_masked_fa_seg *seg = (const struct m5_masked_fa_seg *)at;
        atomic->operand = port_host64(seg->add);
        atomic->operand_mask = port_host64(seg->boundary);
    }
    return 0;
}

/* Adds field by field: a carry out of a bit that `boundary` marks is dropped. */
PORT_FN uint64_t nic_add_fields(uint64_t old, uint64_t addend, uint64_t boundary)
{
    if (boundary == 0)
        return old + addend;
    uint64_t sum = 0, carry = 0;
    for (uint32_t bit = 0; bit < 64; bit++) {
        uint64_t digit = (old >> bit & 1) + (addend >> bit & 1) + carry;
        sum |= (digit & 1) << bit;
        carry = boundary >> bit & 1 ? 0 : digit >> 1;
    }
    return sum;
}

PORT_FN uint64_t nic_atomic_result(const struct nic_atomic *atomic, uint64_t old)
{
    if (!atomic->swap)
        return nic_add_fields(old, atomic->operand, atomic->operand_mask);
    if ((old ^ atomic->compare) & atomic->compare_mask)
        return old;
    return (old & ~atomic->operand_mask) | (atomic->operand & atomic->operand_mask);
}

/* Applies it to the aligned word at `at`; returns the old value. */
PORT_CODE uint64_t nic_atomic_apply(const struct nic_atomic *atomic, void *at)
{
    uint64_t old = 0; /* a guess; the first compare tells the truth */
    for (;;) {
        uint64_t result = nic_atomic_result(atomic, old);
        uint64_t seen = atomic->bytes == 4 ? dma_cas32(at, (uint32_t)old, (uint32_t)result)
                                           : dma_cas64(at, old, result);
        if (seen == old)
            return old;
        old = seen;
    }
}

#endif
