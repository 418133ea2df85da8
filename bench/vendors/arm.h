/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the host and a vendor's kernels agree on: the arguments, the one put that everybody makes,
 * and the loop that times it. Included by the sources here that nvcc compiles at run time (doca.cu,
 * gin.cu, nvshmem.cu), and by the host code that launches what became of them.
 */
#ifndef BENCH_VENDORS_ARM_H
#define BENCH_VENDORS_ARM_H

#include <stdint.h>

/* Slots of the ring. More than one launch ever posts: no slot is used twice, so that no library
 * looks for a completion. */
#define ARM_DEPTH 32768u

/* Timed posts in a launch. */
#define ARM_COUNT 2500u

/* Room for a library's own structures, in GPU memory: with the record and the CQ, a page of
 * VENDORS_PAGE_BYTES. */
#define ARM_STATE_BYTES 3840u

/* The queue pair and its keys: constants, because NVSHMEM keeps its own in constant memory. */
#define ARM_QPN  0x123456u
#define ARM_LKEY 0x00a1b2c3u
#define ARM_RKEY 0x00d4e5f6u

/* A consumer index that no post reaches: every slot counts as completed. */
#define ARM_CONSUMED (UINT64_C(1) << 62)

/* What arm_results.notes says of how NVSHMEM's headers were configured: where its queues may lie.
 */
#define ARM_NOTE_GPU_MEMORY 1u
#define ARM_NOTE_ANY_MEMORY 2u

struct arm_results {
    uint64_t first_ns; /* around the timed posts: the timer of all SMs, and the SM's own clock */
    uint64_t first_ticks;
    uint64_t last_ns;
    uint64_t last_ticks;
    uint32_t notes;
    uint32_t posted;
};

struct arm_args {
    uint8_t *ring;    /* [ARM_DEPTH * 64] */
    uint32_t *record; /* [2] receive and send half */
    uint64_t *doorbell;
    uint32_t *credit; /* what a proxy's CPU thread has consumed */
    uint8_t *cq;      /* [64] never read */
    void *state;      /* [ARM_STATE_BYTES] */
    uint64_t *ticks;  /* [count] of the SM's clock, for each timed post */
    struct arm_results *results;
    uint64_t laddr; /* the put: nobody follows these addresses */
    uint64_t raddr;
    uint64_t value; /* of a put that carries its payload */
    uint32_t bytes; /* of one that does not */
    uint32_t warmup;
    uint32_t count;       /* at most ARM_COUNT; warmup + count < ARM_DEPTH */
    uint32_t pause_ticks; /* between two posts, so that no store of one delays the next */
};

#ifdef __CUDACC__

static __device__ __forceinline__ uint64_t arm_clock()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
    return now;
}

static __device__ __forceinline__ uint64_t arm_now_ns()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

/* Both by one store to shared memory: see struct bench_interval of kernels/span.h. */
static __device__ __forceinline__ void arm_keep(uint64_t readings[2], uint64_t start, uint64_t end)
{
    asm volatile(
        "st.shared.v2.u64 [%0], {%1, %2};" ::"r"((uint32_t)__cvta_generic_to_shared(readings)),
        "l"(start), "l"(end)
        : "memory");
}

/* A key as the libraries keep it. */
static __host__ __device__ constexpr uint32_t arm_be32(uint32_t value)
{
    return value >> 24 | (value >> 8 & 0xff00) | (value << 8 & 0xff0000) | value << 24;
}

/* Makes `warmup` posts, then `count` timed ones, one at a time, as bench_issue of kernels/issue.c
 * does. */
template <typename Post>
static __device__ __forceinline__ void arm_time(const arm_args &args, Post post)
{
    /* So that no fence of a post waits for the store of a sample. */
    __shared__ alignas(16) uint64_t readings[ARM_COUNT][2];
    arm_results *results = args.results;
    for (uint32_t i = 0; i < args.warmup + args.count; i++) {
        if (i == args.warmup) {
            results->first_ns = arm_now_ns();
            results->first_ticks = arm_clock();
        }
        for (uint64_t from = arm_clock(); arm_clock() - from < args.pause_ticks;)
            continue;
        uint64_t start = arm_clock();
        post();
        uint64_t end = arm_clock();
        if (i >= args.warmup)
            arm_keep(readings[i - args.warmup], start, end);
    }
    results->last_ns = arm_now_ns();
    results->last_ticks = arm_clock();
    for (uint32_t i = 0; i < args.count; i++)
        args.ticks[i] = readings[i][1] - readings[i][0];
    results->posted = args.warmup + args.count;
}

/* A kernel of one thread. */
#define ARM_KERNEL(name) extern "C" __global__ void name(const __grid_constant__ arm_args args)

#endif

#endif
