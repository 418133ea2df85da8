/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a kernel's source needs beyond port.h: how a kernel is declared and defined, where the
 * calling thread is in its grid, the barrier and the shared memory of its block.
 *
 * Included by kernel sources, which a C11 compiler and nvcc (-x cu) both compile, and by the host
 * code that launches them. nvcc makes a device entry called NAME of a kernel; the C compiler makes
 * a constant called NAME, which holds what either backend of the host's doorbell/gpu.h needs to
 * launch it.
 *
 *     struct fill_args { uint64_t *words; uint64_t count; };    in a header, with
 *     PORT_KERNEL_DECLARE(fill);
 *
 *     PORT_KERNEL(fill, struct fill_args, args)                 in a kernel source
 *     {
 *         for (uint64_t i = port_thread(); i < args->count; i += port_threads())
 *             args->words[i] = i;
 *     }
 *
 * The arguments are one struct of plain values and device addresses, copied at the launch. Sources
 * keep to what C11 and C++17 share: conversions from void * and from integers to enumerations are
 * written as casts, designated initialisers stand in the order of the members, no goto passes an
 * initialised variable, static_assert() is <assert.h>'s, and `restrict` is left out.
 */
#ifndef DOORBELL_IMPL_PORT_KERNEL_H
#define DOORBELL_IMPL_PORT_KERNEL_H

#include <stddef.h>

#include "port.h"

#define PORT_WARP_THREADS 32

/* A kernel as the host sees it. */
struct port_kernel {
    const char *name;                 /* the device entry's symbol in the fat binary */
    void (*on_cpu)(const void *args); /* what one CPU fiber runs */
    size_t args_bytes;
};

#if defined(__CUDACC__)

#define PORT_KERNEL_DECLARE(kernel) struct port_kernel

/* __grid_constant__ lets the body take the address of the arguments where the driver put them. */
#define PORT_KERNEL(kernel, args_type, args)                                                       \
    static __device__ __forceinline__ void kernel##_thread(const args_type *args);                 \
    extern "C" __global__ void kernel(const __grid_constant__ args_type kernel##_args)             \
    {                                                                                              \
        kernel##_thread(&kernel##_args);                                                           \
    }                                                                                              \
    static __device__ __forceinline__ void kernel##_thread(const args_type *args)

/* The calling thread's index in its block, the threads of a block, the block's index in the grid
 * and the blocks of the grid. Grids and blocks have one dimension. */
PORT_FN uint32_t port_thread(void)
{
    return threadIdx.x;
}

PORT_FN uint32_t port_threads(void)
{
    return blockDim.x;
}

PORT_FN uint32_t port_block(void)
{
    return blockIdx.x;
}

PORT_FN uint32_t port_blocks(void)
{
    return gridDim.x;
}

/* Waits for all threads of the block that have not returned; what each wrote before is visible to
 * all of them after. */
PORT_FN void port_syncthreads(void)
{
    __syncthreads();
}

/* The block's shared memory: as many bytes as the launch asked for, 16-byte aligned, with no
 * particular content. Only plain accesses, ordered by port_syncthreads() and port_syncwarp(). */
PORT_FN void *port_shared(void)
{
    extern __shared__ uint4 port_cuda_shared[];
    return port_cuda_shared;
}

#else

#define PORT_KERNEL_DECLARE(kernel) extern const struct port_kernel kernel

#define PORT_KERNEL(kernel, args_type, args)                                                       \
    static void kernel##_thread(const args_type *args);                                            \
    static void kernel##_on_cpu(const void *kernel_args)                                           \
    {                                                                                              \
        kernel##_thread((const args_type *)kernel_args);                                           \
    }                                                                                              \
    PORT_KERNEL_DECLARE(kernel);                                                                   \
    const struct port_kernel kernel = {                                                            \
        .name = #kernel, .on_cpu = kernel##_on_cpu, .args_bytes = sizeof(args_type)};              \
    static void kernel##_thread(const args_type *args)

/* Where a thread of a grid is. An ordinary host thread is the only thread of the only block. */
struct port_cpu_place {
    uint32_t thread;
    uint32_t threads;
    uint32_t block;
    uint32_t blocks;
    void *shared;
};

const struct port_cpu_place *port_cpu_place(void);
void port_cpu_syncthreads(void);

PORT_FN uint32_t port_thread(void)
{
    return port_cpu_place()->thread;
}

PORT_FN uint32_t port_threads(void)
{
    return port_cpu_place()->threads;
}

PORT_FN uint32_t port_block(void)
{
    return port_cpu_place()->block;
}

PORT_FN uint32_t port_blocks(void)
{
    return port_cpu_place()->blocks;
}

PORT_FN void port_syncthreads(void)
{
    port_cpu_syncthreads();
}

PORT_FN void *port_shared(void)
{
    return port_cpu_place()->shared;
}

#endif

#endif
