/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send WQEs written and CQEs read byte by byte, as the PRM's figures number the bytes: an encoder
 * and a decoder that share nothing with the library's and the device's. Included by the programs of
 * tests/unit and tests/interop that post without libmlx5.
 */
#ifndef DOORBELL_TESTS_WQE_BYTES_H
#define DOORBELL_TESTS_WQE_BYTES_H

#include <stdint.h>
#include <string.h>

#include <doorbell/impl/m5_format.h>

static inline void bytes_put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static inline void bytes_put64(uint8_t *at, uint64_t value)
{
    bytes_put32(at, (uint32_t)(value >> 32));
    bytes_put32(at + 4, (uint32_t)value);
}

static inline uint32_t bytes_get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* ---- Send WQEs ---- */

struct wqe {
    uint8_t bytes[1024];
    uint32_t used;
};

/* The control segment, but for what wqe_address() knows. */
static inline void wqe_begin(struct wqe *wqe, uint32_t opcode, uint32_t opmod, uint32_t flags,
                             uint32_t imm)
{
    memset(wqe, 0, sizeof(*wqe));
    wqe->bytes[0] = (uint8_t)opmod;
    wqe->bytes[3] = (uint8_t)opcode;
    wqe->bytes[11] = (uint8_t)flags;
    bytes_put32(wqe->bytes + 12, imm);
    wqe->used = 16;
}

static inline void wqe_raddr(struct wqe *wqe, uint64_t raddr, uint32_t rkey)
{
    bytes_put64(wqe->bytes + wqe->used, raddr);
    bytes_put32(wqe->bytes + wqe->used + 8, rkey);
    wqe->used += 16;
}

static inline void wqe_data(struct wqe *wqe, const void *address, uint32_t lkey, uint32_t bytes)
{
    bytes_put32(wqe->bytes + wqe->used, bytes);
    bytes_put32(wqe->bytes + wqe->used + 4, lkey);
    bytes_put64(wqe->bytes + wqe->used + 8, (uintptr_t)address);
    wqe->used += 16;
}

static inline void wqe_inline(struct wqe *wqe, const void *data, uint32_t bytes)
{
    bytes_put32(wqe->bytes + wqe->used, 0x80000000u | bytes);
    memcpy(wqe->bytes + wqe->used + 4, data, bytes);
    wqe->used += (4 + bytes + 15) / 16 * 16;
}

/* One segment of two 64-bit operands, or of four 32-bit ones. */
static inline void wqe_operands64(struct wqe *wqe, uint64_t first, uint64_t second)
{
    bytes_put64(wqe->bytes + wqe->used, first);
    bytes_put64(wqe->bytes + wqe->used + 8, second);
    wqe->used += 16;
}

static inline void wqe_operands32(struct wqe *wqe, uint32_t first, uint32_t second, uint32_t third,
                                  uint32_t fourth)
{
    bytes_put32(wqe->bytes + wqe->used, first);
    bytes_put32(wqe->bytes + wqe->used + 4, second);
    bytes_put32(wqe->bytes + wqe->used + 8, third);
    bytes_put32(wqe->bytes + wqe->used + 12, fourth);
    wqe->used += 16;
}

/* The index of its first block, its QP, its length. */
static inline void wqe_address(struct wqe *wqe, uint64_t index, uint32_t qpn)
{
    wqe->bytes[1] = (uint8_t)(index >> 8);
    wqe->bytes[2] = (uint8_t)index;
    bytes_put32(wqe->bytes + 4, qpn << 8 | wqe->used / 16);
}

static inline uint32_t wqe_blocks(const struct wqe *wqe)
{
    return (wqe->used + 63) / 64;
}

/* Into the ring of 2^depth_log2 blocks, from block `index` on, around its end. */
static inline void wqe_copy(const struct wqe *wqe, uint8_t *ring, uint32_t depth_log2,
                            uint64_t index)
{
    uint64_t mask = (1ull << depth_log2) - 1;
    for (uint32_t i = 0; i < wqe_blocks(wqe); i++)
        memcpy(ring + ((index + i) & mask) * 64, wqe->bytes + 64 * i, 64);
}

/* The doorbell: the WQE's first 8 bytes, in one store. */
static inline uint64_t wqe_doorbell(const struct wqe *wqe)
{
    uint64_t value;
    memcpy(&value, wqe->bytes, sizeof(value));
    return value;
}

/* ---- CQEs ---- */

struct cqe {
    uint32_t opcode;
    uint32_t owner;
    uint32_t solicited;
    uint32_t format; /* op_own bits 3:2 */
    uint32_t wqe_counter;
    uint32_t qpn;
    uint32_t wqe_opcode;
    uint32_t byte_count;
    uint32_t imm;
    uint32_t user_index;
    uint32_t syndrome; /* of an error CQE, else 0 */
    uint32_t vendor;
};

/* `at` is the CQE's 64 bytes. */
static inline struct cqe cqe_read(const uint8_t *at)
{
    struct cqe cqe = {
        .opcode = at[63] >> 4,
        .format = at[63] >> 2 & 3,
        .solicited = at[63] >> 1 & 1,
        .owner = at[63] & 1,
        .wqe_counter = (uint32_t)at[60] << 8 | at[61],
        .qpn = bytes_get32(at + 56) & 0xffffff,
        .wqe_opcode = at[56],
        .imm = bytes_get32(at + 36),
        .user_index = bytes_get32(at + 32),
    };
    if (cqe.opcode == M5_CQE_REQUESTER_ERROR || cqe.opcode == M5_CQE_RESPONDER_ERROR) {
        cqe.vendor = at[54];
        cqe.syndrome = at[55];
    } else {
        cqe.byte_count = bytes_get32(at + 44);
    }
    return cqe;
}

/* Has the device written CQE number `count` of a ring of 2^depth_log2 there? It stores the last 8
 * bytes as one, so they are loaded as one. */
static inline int cqe_is_there(const uint8_t *at, uint32_t depth_log2, uint64_t count)
{
    uint64_t tail = __atomic_load_n((const uint64_t *)(const void *)(at + 56), __ATOMIC_ACQUIRE);
    uint8_t op_own;
    memcpy(&op_own, (const uint8_t *)&tail + 7, 1);
    return op_own >> 4 != M5_CQE_INVALID && (op_own & 1) == (count >> depth_log2 & 1);
}

#endif
