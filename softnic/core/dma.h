/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the device reads and writes a program's memory. Included by the execution path.
 *
 * Sanitizers do not see these accesses: a device is not a thread of the program, and a program that
 * orders its stores for a device by the PRM's rules has no edge that ThreadSanitizer could know.
 * Before each access the caller says what it touches (nic_touch()): when that memory is gone, the
 * engine turns the fault into an error of that kind.
 */
#ifndef SOFTNIC_CORE_DMA_H
#define SOFTNIC_CORE_DMA_H

#include <string.h>

#include "nic.h"

#if defined(__SANITIZE_ADDRESS__) || defined(PORT_TSAN)
#define DMA_OWN_COPY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DMA_OWN_COPY 1
#endif
#endif

#ifdef DMA_OWN_COPY
#define DMA_CODE                                                                                   \
    static __attribute__((noinline, unused, no_sanitize("address", "thread", "undefined")))
#else
#define DMA_CODE PORT_FN
#endif

PORT_FN void nic_touch(struct nic *nic, enum nic_touch what)
{
    nic->touching = what;
    port_compiler_barrier();
}

typedef uint64_t dma_word __attribute__((may_alias, aligned(1)));
typedef uint32_t dma_half __attribute__((may_alias, aligned(1)));

#ifdef DMA_OWN_COPY
/* memcpy() itself is what the sanitizers watch. */
DMA_CODE void dma_bulk(void *to, const void *from, size_t bytes)
{
    volatile uint8_t *out = to;
    const volatile uint8_t *in = from;
    size_t at = 0;
    for (; at + 8 <= bytes; at += 8)
        *(volatile dma_word *)(out + at) = *(const volatile dma_word *)(in + at);
    for (; at < bytes; at++)
        out[at] = in[at];
}
#else
DMA_CODE void dma_bulk(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}
#endif

/*
 * Copies payload. The last 8 bytes become visible last, as programs that poll the end of a message
 * expect of RDMA writes; a naturally aligned 8-byte message is stored whole.
 */
DMA_CODE void dma_copy(void *to, const void *from, size_t bytes)
{
    if (bytes == 8) {
        *(volatile dma_word *)to = *(const volatile dma_word *)from;
    } else if (bytes > 8) {
        dma_bulk(to, from, bytes - 8);
        /* Pairs with the program's load of the message's end: the rest must be visible before. */
        port_fence(PORT_RELEASE, PORT_SYSTEM);
        *(volatile dma_word *)((uint8_t *)to + bytes - 8) =
            *(const volatile dma_word *)((const uint8_t *)from + bytes - 8);
    } else {
        dma_bulk(to, from, bytes);
    }
}

/* Compare-swap of an aligned word of a program. Under ThreadSanitizer, which watches atomics even
 * here, it is a plain one: the engine is the only one that updates the word then. */
DMA_CODE uint64_t dma_cas64(void *at, uint64_t expected, uint64_t desired)
{
#ifdef PORT_TSAN
    uint64_t seen = *(volatile dma_word *)at;
    if (seen == expected)
        *(volatile dma_word *)at = desired;
    return seen;
#else
    return port_cas64((uint64_t *)at, expected, desired);
#endif
}

DMA_CODE uint32_t dma_cas32(void *at, uint32_t expected, uint32_t desired)
{
#ifdef PORT_TSAN
    uint32_t seen = *(volatile dma_half *)at;
    if (seen == expected)
        *(volatile dma_half *)at = desired;
    return seen;
#else
    return port_cas32((uint32_t *)at, expected, desired);
#endif
}

/* A block of a ring into the device's own copy. */
DMA_CODE void dma_fetch_block(void *to, const void *from)
{
    dma_bulk(to, from, M5_BLOCK_BYTES);
}

#endif
