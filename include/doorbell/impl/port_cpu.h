/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPU backend of port.h: C11 threads, or fibers that play GPU threads. Included by port.h
 * alone.
 *
 * A CPU has one coherent view of memory, so the scope of an operation changes nothing here. The
 * functions named port_cpu_* are defined by the GPU backend for the CPU (src/gpu_cpu.c); only code
 * that pauses or uses warp primitives needs them at link time.
 */
#ifndef DOORBELL_IMPL_PORT_CPU_H
#define DOORBELL_IMPL_PORT_CPU_H

#include <stdbool.h>
#include <string.h>
#include <time.h>

/* A condition that the fast path never meets: what hangs on it is laid out apart, so that the fast
 * path's instructions follow each other. */
#define PORT_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* What does not change while anybody posts. */
#define port_constant(from) (from)

/* Nothing is gained by having a value early. */
#define port_ready32(value) ((void)(value))
#define port_ready64(value) ((void)(value))

/* Written before a loop whose iterations are independent: several are worked on at once. */
#define PORT_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define PORT_UNROLL(times) PORT_PRAGMA(unroll times)
#else
#define PORT_UNROLL(times) PORT_PRAGMA(GCC unroll times)
#endif

/* PORT_FN: always inlined, so that literal orders and scopes fold. PORT_CODE: larger functions,
 * left to the compiler. PORT_COLD: never inlined; waits that a fast path only jumps to, so that its
 * own instructions follow each other. */
#define PORT_FN   static inline __attribute__((always_inline, unused))
#define PORT_CODE static inline __attribute__((unused))
#define PORT_COLD static __attribute__((noinline, cold, unused))

#if defined(__SANITIZE_THREAD__)
#define PORT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PORT_TSAN 1
#endif
#endif

/*
 * ThreadSanitizer does not model fences. Under it a release fence is a release of one process-wide
 * word, and every acquire also acquires that word: it keeps each ordering that the code asks for,
 * so a missing fence or a missing acquire is still reported.
 */
#ifdef PORT_TSAN
extern uint32_t port_cpu_fence_word;
#define PORT_TSAN_ACQUIRE() ((void)__atomic_load_n(&port_cpu_fence_word, __ATOMIC_ACQUIRE))
#else
#define PORT_TSAN_ACQUIRE() ((void)0)
#endif

void port_cpu_pause(void);
unsigned port_cpu_lane(void);
void port_cpu_syncwarp(uint32_t mask);
uint64_t port_cpu_broadcast64(uint32_t mask, uint64_t value, unsigned source_lane);

PORT_FN uint32_t port_bswap32(uint32_t value)
{
    return __builtin_bswap32(value);
}

PORT_FN uint32_t port_ld32(const uint32_t *word, enum port_order order, enum port_scope scope)
{
    (void)scope;
    if (order == PORT_RELAXED)
        return __atomic_load_n(word, __ATOMIC_RELAXED);
    uint32_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    PORT_TSAN_ACQUIRE();
    return value;
}

PORT_FN uint64_t port_ld64(const uint64_t *word, enum port_order order, enum port_scope scope)
{
    (void)scope;
    if (order == PORT_RELAXED)
        return __atomic_load_n(word, __ATOMIC_RELAXED);
    uint64_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    PORT_TSAN_ACQUIRE();
    return value;
}

PORT_FN void port_st32(uint32_t *word, uint32_t value, enum port_order order, enum port_scope scope)
{
    (void)scope;
    __atomic_store_n(word, value, order == PORT_RELEASE ? __ATOMIC_RELEASE : __ATOMIC_RELAXED);
}

PORT_FN void port_st64(uint64_t *word, uint64_t value, enum port_order order, enum port_scope scope)
{
    (void)scope;
    __atomic_store_n(word, value, order == PORT_RELEASE ? __ATOMIC_RELEASE : __ATOMIC_RELAXED);
}

/* One 16-byte store to a 16-byte aligned address. It may tear at 8 bytes. */
PORT_FN void port_st16(void *to, uint64_t lo, uint64_t hi)
{
    typedef uint64_t pair __attribute__((vector_size(16), may_alias));
    *(volatile pair *)to = (pair){lo, hi};
}

/* The same into memory that another agent may read at any moment; each half is whole. Relaxed. */
PORT_FN void port_st16_shared(void *to, uint64_t lo, uint64_t hi)
{
#ifdef PORT_TSAN
    uint64_t *halves = (uint64_t *)to;
    __atomic_store_n(&halves[0], lo, __ATOMIC_RELAXED);
    __atomic_store_n(&halves[1], hi, __ATOMIC_RELAXED);
#else
    port_st16(to, lo, hi);
#endif
}

/* A count in plain memory that the calling thread alone reads and writes. */
PORT_FN uint64_t port_ld_own64(const uint64_t *count)
{
    return *count;
}

PORT_FN void port_st_own64(uint64_t *count, uint64_t value)
{
    *count = value;
}

/* 8 bytes of plain memory at any address. */
PORT_FN uint64_t port_ld_plain64(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

/* Orders only: a release makes earlier stores visible before later ones, an acquire keeps later
 * loads after earlier ones. */
PORT_FN void port_fence(enum port_order order, enum port_scope scope)
{
    (void)scope;
#ifdef PORT_TSAN
    if (order == PORT_ACQUIRE)
        PORT_TSAN_ACQUIRE();
    else
        __atomic_fetch_add(&port_cpu_fence_word, 1, __ATOMIC_ACQ_REL);
#else
    __atomic_thread_fence(order == PORT_RELEASE   ? __ATOMIC_RELEASE
                          : order == PORT_ACQUIRE ? __ATOMIC_ACQUIRE
                                                  : __ATOMIC_ACQ_REL);
#endif
}

/* Acquires what `found` stands for, which a relaxed load of `word` found. Returns that, or what is
 * found now. */
PORT_FN uint64_t port_acquire64(const uint64_t *word, uint64_t found, enum port_scope scope)
{
#ifdef PORT_TSAN
    (void)found;
    return port_ld64(word, PORT_ACQUIRE, scope);
#else
    (void)word;
    port_fence(PORT_ACQUIRE, scope);
    return found;
#endif
}

/* The atomics return the value before the operation, and are relaxed. */
PORT_FN uint32_t port_add32(uint32_t *word, uint32_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

/* Replaces a word; a store that is made of what it returns comes behind it. */
PORT_FN uint32_t port_xchg32(uint32_t *word, uint32_t value)
{
    uint32_t seen = __atomic_exchange_n(word, value, __ATOMIC_RELAXED);
    port_fence(PORT_RELEASE, PORT_GPU);
    return seen;
}

PORT_FN uint64_t port_add64(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

PORT_FN uint32_t port_cas32(uint32_t *word, uint32_t expected, uint32_t desired)
{
    __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    return expected;
}

PORT_FN uint64_t port_cas64(uint64_t *word, uint64_t expected, uint64_t desired)
{
    __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    return expected;
}

/* The same with acquire and release at GPU scope; a compare that fails still acquires. */
PORT_FN uint64_t port_add64_ordered(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}

PORT_FN uint64_t port_cas64_ordered(uint64_t *word, uint64_t expected, uint64_t desired)
{
    __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    return expected;
}

PORT_FN uint64_t port_max64(uint64_t *word, uint64_t value)
{
    uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (seen < value && !__atomic_compare_exchange_n(word, &seen, value, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED))
        ;
    return seen;
}

/* Reads and replaces; what was released before the value read was stored is visible (acquire). */
PORT_FN uint64_t port_xchg64(uint64_t *word, uint64_t value)
{
    uint64_t seen = __atomic_exchange_n(word, value, __ATOMIC_ACQUIRE);
    PORT_TSAN_ACQUIRE();
    return seen;
}

/* The 8-byte store to a NIC's doorbell register. It orders nothing by itself. */
PORT_FN void port_doorbell(void *reg, uint64_t value)
{
    __atomic_store_n((uint64_t *)reg, value, __ATOMIC_RELAXED);
}

/* A polling loop's failed iteration: lets other fibers of this CPU thread run. */
PORT_FN void port_pause(void)
{
    port_cpu_pause();
}

/* Asks for a line that will be read (or, `to_write`, stored to) soon. */
PORT_FN void port_prefetch(const void *line, bool to_write)
{
    if (!to_write)
        __builtin_prefetch(line, 0, 3);
    else
#if defined(__x86_64__)
        /* The builtin asks for a line to read unless the compiler is told of the processor; one
         * that lacks this instruction does nothing at it. */
        __asm__ volatile("prefetchw %0" ::"m"(*(const char *)line));
#else
        __builtin_prefetch(line, 1, 3);
#endif
}

/* Keeps the compiler from moving memory accesses across this point; no instruction. */
PORT_FN void port_compiler_barrier(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- Warp primitives ---- */

/* The calling thread's index in its warp, 0 to 31. */
PORT_FN unsigned port_lane(void)
{
    return port_cpu_lane();
}

PORT_FN unsigned port_first_lane(uint32_t mask)
{
    return (unsigned)__builtin_ctz(mask);
}

PORT_FN uint32_t port_count_lanes(uint32_t mask)
{
    return (uint32_t)__builtin_popcount(mask);
}

/* Waits for every lane named in `mask`; what each wrote before is visible to all of them after. */
PORT_FN void port_syncwarp(uint32_t mask)
{
    port_cpu_syncwarp(mask);
}

/* Every lane named in `mask` gets the value that `source_lane` passed. */
PORT_FN uint64_t port_broadcast64(uint32_t mask, uint64_t value, unsigned source_lane)
{
    return port_cpu_broadcast64(mask, value, source_lane);
}

/* ---- Clocks ---- */

/* Nanoseconds of a clock that all threads share. */
PORT_FN uint64_t port_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Ticks of the fastest clock there is; the rate is the backend's (the TSC, here). */
PORT_FN uint64_t port_clock(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return port_now_ns();
#endif
}

#ifdef PORT_WEAK
#include "port_weak.h" /* the same operations under a weaker memory model; for a test */
#endif

#endif
