/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One kernel for each operation of port.h, so that tests/unit/ptx_port.sh can read in the PTX which
 * instruction it became. Compiled by nvcc alone; the formats are included because they must compile
 * there too.
 */
#include <doorbell/impl/m5_format.h>
#include <doorbell/impl/port_kernel.h>

struct words_args {
    uint32_t *w32;
    uint64_t *w64;
    uint64_t deadline_ns;
    uint32_t mask;
};

PORT_KERNEL_DECLARE(ptx_loads);

PORT_KERNEL(ptx_loads, struct words_args, args)
{
    uint64_t sum = port_ld32(args->w32, PORT_RELAXED, PORT_GPU);
    sum += port_ld32(args->w32, PORT_RELAXED, PORT_SYSTEM);
    sum += port_ld32(args->w32, PORT_ACQUIRE, PORT_GPU);
    sum += port_ld32(args->w32, PORT_ACQUIRE, PORT_SYSTEM);
    sum += port_ld64(args->w64, PORT_RELAXED, PORT_GPU);
    sum += port_ld64(args->w64, PORT_RELAXED, PORT_SYSTEM);
    sum += port_ld64(args->w64, PORT_ACQUIRE, PORT_GPU);
    sum += port_ld64(args->w64, PORT_ACQUIRE, PORT_SYSTEM);
    port_st64(args->w64, sum, PORT_RELAXED, PORT_GPU);
}

PORT_KERNEL(ptx_stores, struct words_args, args)
{
    port_st32(args->w32, 1, PORT_RELAXED, PORT_GPU);
    port_st32(args->w32, 2, PORT_RELAXED, PORT_SYSTEM);
    port_st32(args->w32, 3, PORT_RELEASE, PORT_GPU);
    port_st32(args->w32, 4, PORT_RELEASE, PORT_SYSTEM);
    port_st64(args->w64, 1, PORT_RELAXED, PORT_GPU);
    port_st64(args->w64, 2, PORT_RELAXED, PORT_SYSTEM);
    port_st64(args->w64, 3, PORT_RELEASE, PORT_GPU);
    port_st64(args->w64, 4, PORT_RELEASE, PORT_SYSTEM);
}

PORT_KERNEL(ptx_fences, struct words_args, args)
{
    (void)args;
    port_fence(PORT_RELEASE, PORT_GPU);
    port_fence(PORT_RELEASE, PORT_SYSTEM);
    port_fence(PORT_ACQUIRE, PORT_GPU);
    port_fence(PORT_ACQUIRE, PORT_SYSTEM);
}

PORT_KERNEL(ptx_atomics, struct words_args, args)
{
    uint64_t sum = port_add32(args->w32, 1);
    sum += port_cas32(args->w32, 1, 2);
    sum += port_xchg32(args->w32, 3);
    sum += port_add64(args->w64, 1);
    sum += port_cas64(args->w64, 1, 2);
    sum += port_max64(args->w64, 3);
    sum += port_xchg64(args->w64, 4);
    port_st64(args->w64, sum, PORT_RELAXED, PORT_GPU);
}

PORT_KERNEL(ptx_warp, struct words_args, args)
{
    uint64_t got = port_broadcast64(args->mask, args->deadline_ns + port_lane(), 0);
    port_syncwarp(args->mask);
    port_syncthreads();
    uint64_t *shared = (uint64_t *)port_shared();
    shared[port_thread()] = got;
    port_syncthreads();
    args->w64[port_block() * port_threads() + port_thread()] = shared[0] + port_blocks();
}

PORT_KERNEL(ptx_clocks, struct words_args, args)
{
    port_st64(args->w64, port_now_ns() + port_clock(), PORT_RELAXED, PORT_GPU);
}

PORT_KERNEL(ptx_wait, struct words_args, args)
{
    port_prefetch(args->w64, false);
    port_st32(args->w32, (uint32_t)port_wait_ge64(args->w64, 7, PORT_GPU, args->deadline_ns),
              PORT_RELAXED, PORT_GPU);
}

struct post_args {
    struct m5_ctrl_seg *slot;
    struct m5_qp_record *record;
    void *doorbell;
    uint32_t index;
    uint32_t qpn;
    uint32_t rkey;
    uint64_t raddr;
};

/* A 48-byte write, its record and its doorbell, fenced for a ring in GPU memory. */
PORT_KERNEL(ptx_post, struct post_args, args)
{
    uint32_t first = (args->index & M5_INDEX_MASK) << 8 | M5_OP_WRITE;
    struct be64 ctrl = {port_be32(first), port_be32(args->qpn << 8 | 3)};
    struct be64 raddr = port_be64(args->raddr);
    struct be32 rkey = port_be32(args->rkey);
    uint8_t *slot = (uint8_t *)args->slot;
    uint64_t bell = (uint64_t)ctrl.lo.raw << 32 | ctrl.hi.raw;
    port_st16(slot, bell, (uint64_t)M5_CTRL_CQ_UPDATE << 24);
    port_st16(slot + 16, (uint64_t)raddr.lo.raw << 32 | raddr.hi.raw, rkey.raw);
    port_st16(slot + 32, port_be32(8 | M5_INLINE_FLAG).raw, 0);
    port_fence(PORT_RELEASE, PORT_GPU);
    port_st32(&args->record->send.raw, port_be32((args->index + 1) & M5_INDEX_MASK).raw,
              PORT_RELAXED, PORT_GPU);
    port_fence(PORT_RELEASE, PORT_GPU);
    port_doorbell(args->doorbell, bell);
}
