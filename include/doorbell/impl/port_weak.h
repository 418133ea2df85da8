/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A variant of the CPU backend in which stores become visible as late, and in as odd an order, as a
 * GPU may let them, which x86 does not: for the test of the orderings themselves. Included by
 * port_cpu.h where PORT_WEAK is defined; the model behind it is the test's (tests/interop/
 * order_weak.c).
 *
 *   - Relaxed stores, and both halves of a 16-byte one, wait in a buffer of their device thread.
 * They leave it one by one, at later operations of the thread or its pauses, in any order but that
 * of two to one address; always in the end. The thread itself reads what it stored.
 *   - A release (fence, store or atomic) first lets out all that its scope reaches: GPU scope does
 *     not reach host memory, so stores to a ring there stay where they are.
 *   - Barriers make the others' earlier stores this thread's own: a later release of any thread
 *     behind the barrier lets them out too (cumulativity). A broadcast orders nothing.
 *   - A doorbell is seen at once, whatever waits in the buffer.
 *
 * Not modelled: loads that return old values, and doorbells that arrive late.
 */
#ifndef DOORBELL_IMPL_PORT_WEAK_H
#define DOORBELL_IMPL_PORT_WEAK_H

uint64_t port_weak_load(const void *word, uint32_t bytes);
void port_weak_store(void *word, uint64_t value, uint32_t bytes);
/* Lets out what a release at `scope` reaches. */
void port_weak_release(enum port_scope scope);
/* Lets out what waits for this word alone, before something that must not pass it. */
void port_weak_catch_up(const void *word);
void port_weak_pause(void);
void port_weak_syncwarp(uint32_t mask);
void port_weak_syncthreads(void);

#ifndef PORT_WEAK_MODEL /* the model itself stores with the operations of port_cpu.h */

PORT_FN uint32_t port_weak_ld32(const uint32_t *word, enum port_order order, enum port_scope scope)
{
    (void)order; /* an x86 load, and the compiler cannot see into the call */
    (void)scope;
    return (uint32_t)port_weak_load(word, 4);
}

PORT_FN uint64_t port_weak_ld64(const uint64_t *word, enum port_order order, enum port_scope scope)
{
    (void)order;
    (void)scope;
    return port_weak_load(word, 8);
}

PORT_FN void port_weak_st32(uint32_t *word, uint32_t value, enum port_order order,
                            enum port_scope scope)
{
    if (order == PORT_RELEASE) {
        port_weak_release(scope);
        port_weak_catch_up(word);
        port_st32(word, value, order, scope);
    } else {
        port_weak_store(word, value, 4);
    }
}

PORT_FN void port_weak_st64(uint64_t *word, uint64_t value, enum port_order order,
                            enum port_scope scope)
{
    if (order == PORT_RELEASE) {
        port_weak_release(scope);
        port_weak_catch_up(word);
        port_st64(word, value, order, scope);
    } else {
        port_weak_store(word, value, 8);
    }
}

PORT_FN void port_weak_st16(void *to, uint64_t lo, uint64_t hi)
{
    port_weak_store(to, lo, 8);
    port_weak_store((uint8_t *)to + 8, hi, 8);
}

PORT_FN void port_weak_fence(enum port_order order, enum port_scope scope)
{
    if (order != PORT_ACQUIRE)
        port_weak_release(scope);
    port_fence(order, scope);
}

PORT_FN uint32_t port_weak_add32(uint32_t *word, uint32_t value)
{
    port_weak_catch_up(word);
    return port_add32(word, value);
}

PORT_FN uint64_t port_weak_add64(uint64_t *word, uint64_t value)
{
    port_weak_catch_up(word);
    return port_add64(word, value);
}

PORT_FN uint32_t port_weak_cas32(uint32_t *word, uint32_t expected, uint32_t desired)
{
    port_weak_catch_up(word);
    return port_cas32(word, expected, desired);
}

PORT_FN uint64_t port_weak_cas64(uint64_t *word, uint64_t expected, uint64_t desired)
{
    port_weak_catch_up(word);
    return port_cas64(word, expected, desired);
}

PORT_FN uint64_t port_weak_add64_ordered(uint64_t *word, uint64_t value)
{
    port_weak_release(PORT_GPU);
    port_weak_catch_up(word);
    return port_add64_ordered(word, value);
}

PORT_FN uint64_t port_weak_cas64_ordered(uint64_t *word, uint64_t expected, uint64_t desired)
{
    port_weak_release(PORT_GPU);
    port_weak_catch_up(word);
    return port_cas64_ordered(word, expected, desired);
}

PORT_FN uint64_t port_weak_max64(uint64_t *word, uint64_t value)
{
    port_weak_catch_up(word);
    return port_max64(word, value);
}

/* Done at once, where everybody sees it, and it takes nothing else along. */
PORT_FN uint32_t port_weak_xchg32(uint32_t *word, uint32_t value)
{
    port_weak_catch_up(word);
    return port_xchg32(word, value);
}

PORT_FN uint64_t port_weak_xchg64(uint64_t *word, uint64_t value)
{
    port_weak_catch_up(word);
    return port_xchg64(word, value);
}

#define port_ld32            port_weak_ld32
#define port_ld64            port_weak_ld64
#define port_st32            port_weak_st32
#define port_st64            port_weak_st64
#define port_st16            port_weak_st16
#define port_fence           port_weak_fence
#define port_add32           port_weak_add32
#define port_add64           port_weak_add64
#define port_cas32           port_weak_cas32
#define port_cas64           port_weak_cas64
#define port_add64_ordered   port_weak_add64_ordered
#define port_cas64_ordered   port_weak_cas64_ordered
#define port_max64           port_weak_max64
#define port_xchg32          port_weak_xchg32
#define port_xchg64          port_weak_xchg64
#define port_pause           port_weak_pause
#define port_syncwarp        port_weak_syncwarp
#define port_cpu_syncthreads port_weak_syncthreads /* port_kernel.h's port_syncthreads() */

#endif

#endif
