/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptors that GPU threads hand to a proxy, and what its workers tell them: the paper,
 * section 4, "mini-proxy". Included by ring.h and by the proxy's workers.
 *
 * A descriptor is 16 bytes in two halves of 64 bits, little-endian as both sides are. Each half has
 * a validity bit, which is 1 in the first lap of the ring and flips in each later one: so a
 * descriptor is there when both say so, whatever was there before and in whichever order the halves
 * arrive. Memory is named by its place in the proxy's tables and an offset.
 *
 *   bits    half 0                             half 1
 *   0       valid                              valid
 *   3:1     operation, enum db_ring_op         bytes - 1, low 23 bits, in 23:1
 *   8:4     window: place of remote memory
 *   13:9    region: place of local memory
 *   15:14   flags, enum db_ring_flags
 *   23:16   bytes - 1, high 8 bits
 *   63:24   offset in the window               offset in the region
 *
 * An operation with a value instead of local memory (DB_RING_VALUE, DB_RING_OPERAND) has bits 63:1
 * of the value in bits 63:1 of half 1, and bit 0 of it in bit 16 of half 0.
 *
 * A put with immediate and a fetch-and-add are two descriptors in a row: DB_RING_OPERAND with the
 * immediate or the addend, then the operation.
 */
#ifndef DOORBELL_IMPL_RING_FORMAT_H
#define DOORBELL_IMPL_RING_FORMAT_H

#include <assert.h>

#include "port.h"

enum db_ring_op {
    DB_RING_PUT = 1,       /* region to window */
    DB_RING_PUT_IMM = 2,   /* the same; behind its operand */
    DB_RING_GET = 3,       /* window to region */
    DB_RING_FETCH_ADD = 4, /* 8 bytes of the window, their old value to the region; behind its
                              operand */
    DB_RING_VALUE = 5,     /* 8 bytes from the descriptor to the window */
    DB_RING_OPERAND = 6,   /* for the descriptor behind it */
};

enum db_ring_flags {
    DB_RING_FENCE = 1,     /* after the gets and atomics before it */
    DB_RING_SOLICITED = 2, /* put with immediate: wakes a peer that sleeps until it arrives */
};

#define DB_RING_PLACES      32u          /* of each table */
#define DB_RING_OFFSETS     (1ull << 40) /* bytes of a window or a region */
#define DB_RING_OFFSET_BITS 24           /* where an offset starts in its half */
#define DB_RING_VALID       1ull
#define DB_RING_MAX_BYTES   (1ull << 31) /* of one operation */

struct db_descriptor {
    uint64_t half[2];
};

static_assert(sizeof(struct db_descriptor) == 16, "descriptor");

/* What a worker tells the producers of one ring: in host memory, or in GPU memory that it reaches
 * through a mapping. Counts never wrap. Written by the worker alone; one line. */
struct db_ring_progress {
    uint64_t posted;    /* descriptors below this were given to the NIC, and their slots are free */
    uint64_t completed; /* operations below this are complete */
    uint64_t error;     /* 0; as done.error of struct db_qp; or one of the two below */
    uint64_t reserved[5];
};

static_assert(sizeof(struct db_ring_progress) == 64, "progress");

/* Values of the error word when no operation is to blame. */
#define DB_RING_WORKER_LOST 2ull /* its thread ended, or its NIC cannot be used any more */
#define DB_RING_STOPPED     3ull /* the proxy was stopped */

/* ---- Writing: device code ---- */

/* Half of a descriptor: an offset above the bits of `low`. In 32-bit pieces, which cost a GPU less
 * than a shift and an OR of 64. */
PORT_FN uint64_t db_descriptor_half(uint64_t offset, uint32_t low)
{
    return (uint64_t)(uint32_t)(offset >> (32 - DB_RING_OFFSET_BITS)) << 32 |
           ((uint32_t)offset << DB_RING_OFFSET_BITS | low);
}

/* A descriptor of local memory, `bytes` (1 to 2^31) of it, without its validity. */
PORT_FN struct db_descriptor db_descriptor_memory(enum db_ring_op op, uint32_t flags,
                                                  uint32_t window, uint64_t window_offset,
                                                  uint32_t region, uint64_t region_offset,
                                                  uint32_t bytes)
{
    struct db_descriptor descriptor = {
        {db_descriptor_half(window_offset, (bytes - 1) >> 23 << 16 | flags << 14 | region << 9 |
                                               window << 4 | (uint32_t)op << 1),
         db_descriptor_half(region_offset, ((bytes - 1) & 0x7fffffu) << 1)}};
    return descriptor;
}

/* A descriptor with a value; `window` and its offset are 0 for an operand. */
PORT_FN struct db_descriptor db_descriptor_value(enum db_ring_op op, uint32_t window,
                                                 uint64_t window_offset, uint64_t value)
{
    struct db_descriptor descriptor = {
        {db_descriptor_half(window_offset,
                            ((uint32_t)value & 1) << 16 | window << 4 | (uint32_t)op << 1),
         value & ~DB_RING_VALID}};
    return descriptor;
}

/* Whether an operation's descriptor lies behind one with its immediate or addend. */
PORT_FN bool db_ring_op_has_operand(uint32_t op)
{
    return op == DB_RING_PUT_IMM || op == DB_RING_FETCH_ADD;
}

/* Where descriptor `index` lies in the slots of a ring of `depth`, a power of two: bytes. */
PORT_FN uint64_t db_ring_slot(uint64_t index, uint32_t depth)
{
    return (index & (depth - 1)) * sizeof(struct db_descriptor);
}

/* The validity of descriptor `index` of a ring of `depth`, a power of two. */
PORT_FN uint64_t db_ring_lap(uint64_t index, uint32_t depth)
{
    return ((uint32_t)index & depth) == 0 ? DB_RING_VALID : 0;
}

/* ---- Reading: the worker ---- */

PORT_FN uint32_t db_descriptor_op(struct db_descriptor d)
{
    return (uint32_t)d.half[0] >> 1 & 7;
}

PORT_FN uint32_t db_descriptor_window(struct db_descriptor d)
{
    return (uint32_t)d.half[0] >> 4 & 31;
}

PORT_FN uint32_t db_descriptor_region(struct db_descriptor d)
{
    return (uint32_t)d.half[0] >> 9 & 31;
}

PORT_FN uint32_t db_descriptor_flags(struct db_descriptor d)
{
    return (uint32_t)d.half[0] >> 14 & 3;
}

PORT_FN uint32_t db_descriptor_bytes(struct db_descriptor d)
{
    return (((uint32_t)d.half[0] >> 16 & 0xff) << 23 | ((uint32_t)d.half[1] >> 1 & 0x7fffff)) + 1;
}

PORT_FN uint64_t db_descriptor_window_offset(struct db_descriptor d)
{
    return d.half[0] >> DB_RING_OFFSET_BITS;
}

PORT_FN uint64_t db_descriptor_region_offset(struct db_descriptor d)
{
    return d.half[1] >> DB_RING_OFFSET_BITS;
}

PORT_FN uint64_t db_descriptor_operand(struct db_descriptor d)
{
    return (d.half[1] & ~DB_RING_VALID) | (d.half[0] >> 16 & 1);
}

#endif
