/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the one-source code needs of a compiler and of a machine: memory operations with an order
 * and a scope, waits with a deadline, warp primitives, clocks and byte order.
 *
 * Included by every format and data-path header and by the software device. Only the files named
 * port*.h know which backend they are compiled for:
 *   port_cuda.h  nvcc device code
 *   port_cpu.h   C11; CPU threads, or fibers that play GPU threads
 *   port_explore.h  C11; the weak-memory explorer (explore/), where DOORBELL_EXPLORE is defined
 *
 * The contract that code over this header keeps (it costs nothing on CUDA, and lets the same source
 * run under a weak-memory explorer and a simulator):
 *   - words that another agent reads or writes are touched only through port_ operations, always
 *     with the same size; plain loads are for constants fixed at set-up;
 *   - every unbounded loop is a port_wait_*, or calls port_pause() once in each failed iteration,
 *     which changes no local state. It lets the other lanes of a warp go on;
 *     port_pause_shared(false) need not;
 *   - order and scope are literals, so that they fold;
 *   - warp code names its mask; nothing relies on implicit lockstep;
 *   - state lives in arguments, on the stack or in the queue.
 */
#ifndef DOORBELL_IMPL_PORT_H
#define DOORBELL_IMPL_PORT_H

#include <stdint.h>

/* Who must see an ordered access. GPU scope reaches the GPU's L2 (so everything that reads GPU
 * memory through it, a NIC included); system scope reaches host memory as well. Thread scope is of
 * relaxed loads and stores of 64-bit words that are the calling thread's alone, until a release
 * hands them on and an acquire takes them: a GPU answers them from the SM's own cache. */
enum port_scope {
    PORT_GPU,
    PORT_SYSTEM,
    PORT_THREAD,
};

enum port_order {
    PORT_RELAXED,
    PORT_ACQUIRE,
    PORT_RELEASE,
    PORT_ACQUIRE_RELEASE, /* of fences: an acquire, and a release behind it, that wait together */
};

/* A deadline that never passes; for tests of the wait itself and for waits bounded elsewhere. */
#define PORT_NEVER UINT64_MAX

#if defined(__CUDACC__)
#include "port_cuda.h"
#elif defined(DOORBELL_EXPLORE)
#include "port_explore.h"
#else
#include "port_cpu.h"
#endif

/* port_pause() in a wait for a NIC or a CPU; `shared`: another lane of the warp may
 * hold what is waited for. */
#ifndef port_pause_shared
#define port_pause_shared(shared) ((void)(shared), port_pause())
#endif

/* ---- What is done when `so`, and else not at all ---- */

/* Without a branch on a GPU, where one costs a thread more than what it jumps over. */
#ifndef PORT_HAS_IF
#define port_st16_shared_if(so, to, lo, hi) ((so) ? port_st16_shared(to, lo, hi) : (void)0)
#define port_doorbell_if(so, reg, value)    ((so) ? port_doorbell(reg, value) : (void)0)
#endif

/* ---- Byte order, and bits ---- */

/* The low 16 bits of `value` as they lie in a big-endian word: in its last two bytes, or in its
 * second and third with `last` (below 256) behind them. */
#ifndef PORT_HAS_BE16
PORT_FN uint32_t port_be_low16(uint32_t value)
{
    return port_bswap32(value & 0xffff);
}

PORT_FN uint32_t port_be_mid16(uint32_t value, uint32_t last)
{
    return port_bswap32((value & 0xffff) << 8 | last);
}
#endif

/* Of a power of two. */
PORT_FN uint32_t port_log2(uint32_t value)
{
    return port_count_lanes(value - 1);
}

/* port_bswap32() for values that are literals where it is called: nvcc folds shifts, and does not
 * look through a permutation of bytes. */
PORT_FN uint32_t port_bswap32_literal(uint32_t value)
{
    return value >> 24 | (value >> 8 & 0xff00) | (value & 0xff00) << 8 | value << 24;
}

/* ---- Byte order as a type ---- */

/* A 32-bit big-endian word as it lies in memory. 64-bit wire fields are two of them, high word
 * first, so that nvcc can store 16 bytes at a time. */
struct be32 {
    uint32_t raw;
};

struct be64 {
    struct be32 hi;
    struct be32 lo;
};

PORT_FN struct be32 port_be32(uint32_t value)
{
    struct be32 wire = {port_bswap32(value)};
    return wire;
}

PORT_FN uint32_t port_host32(struct be32 wire)
{
    return port_bswap32(wire.raw);
}

PORT_FN struct be64 port_be64(uint64_t value)
{
    struct be64 wire = {port_be32((uint32_t)(value >> 32)), port_be32((uint32_t)value)};
    return wire;
}

PORT_FN uint64_t port_host64(struct be64 wire)
{
    return (uint64_t)port_host32(wire.hi) << 32 | port_host32(wire.lo);
}

/* ---- Waits ---- */

/* How many failed polls pass between two looks at the clock: a look costs about as much as a poll
 * of a line that is not in the cache, so it must be rare, and the deadline stays exact to
 * microseconds. */
#define PORT_POLLS_PER_CLOCK 64

/* How many pass between two looks for a failure, in another word than the one that is polled: a
 * load more for each poll makes what is waited for be seen later. Before the clock's turn there
 * always was one. The explorer looks each time; it has no time to lose, but schedules. */
#ifndef PORT_POLLS_PER_LOOK
#define PORT_POLLS_PER_LOOK 16
#endif

/* After failed poll number `polls`, from 1 on: have `timeout_ns` passed since the first look at the
 * clock? `*deadline` is 0 before that look. */
PORT_FN bool port_timed_out(uint32_t polls, uint64_t timeout_ns, uint64_t *deadline)
{
    if (polls % PORT_POLLS_PER_CLOCK != 0)
        return false;
    uint64_t now = port_now_ns();
    if (*deadline != 0)
        return now > *deadline;
    *deadline = now + timeout_ns;
    return false;
}

/*
 * Blocks until *word == want, or until port_now_ns() passes deadline_ns. Returns 0, or -1 when the
 * deadline passed first. What the writer released before storing `want` is visible afterwards
 * (acquire at `scope`).
 */
PORT_FN int port_wait_eq32(const uint32_t *word, uint32_t want, enum port_scope scope,
                           uint64_t deadline_ns)
{
    for (uint32_t polls = 1; port_ld32(word, PORT_ACQUIRE, scope) != want; polls++) {
        if (polls % PORT_POLLS_PER_CLOCK == 0 && port_now_ns() > deadline_ns)
            return -1;
        port_pause();
    }
    return 0;
}

/* Blocks until *word >= want (64-bit counts never wrap); otherwise as port_wait_eq32(). */
PORT_FN int port_wait_ge64(const uint64_t *word, uint64_t want, enum port_scope scope,
                           uint64_t deadline_ns)
{
    for (uint32_t polls = 1; port_ld64(word, PORT_ACQUIRE, scope) < want; polls++) {
        if (polls % PORT_POLLS_PER_CLOCK == 0 && port_now_ns() > deadline_ns)
            return -1;
        port_pause();
    }
    return 0;
}

#endif
