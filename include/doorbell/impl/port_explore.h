/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The explorer's backend of port.h: no operation touches memory. Each is handed, with its order,
 * its scope and its place in the source, to the weak-memory explorer (explore/), which decides what
 * it returns. Included by port.h alone, where DOORBELL_EXPLORE is defined.
 *
 * The operations are macros, so that each carries the line and the function that it stands in: a
 * trace names them, and the mutation test weakens one of them at a time.
 */
#ifndef DOORBELL_IMPL_PORT_EXPLORE_H
#define DOORBELL_IMPL_PORT_EXPLORE_H

#include <stdbool.h>
#include <string.h>

#define PORT_FN   static inline __attribute__((always_inline, unused))
#define PORT_CODE static inline __attribute__((unused))
#define PORT_COLD static __attribute__((noinline, unused))

#define PORT_UNLIKELY(condition) (condition)

/* What does not change while anybody posts. */
#define port_constant(from) (from)

/* Nothing is gained by having a value early. */
#define port_ready32(value) ((void)(value))
#define port_ready64(value) ((void)(value))

enum port_op_kind {
    PORT_OP_LOAD,
    PORT_OP_STORE,
    PORT_OP_STORE16,
    PORT_OP_FENCE,
    PORT_OP_ADD,
    PORT_OP_CAS,
    PORT_OP_MAX,
    PORT_OP_EXCHANGE,
    PORT_OP_DOORBELL,
    PORT_OP_PAUSE,
    PORT_OP_SYNCWARP,
    PORT_OP_BROADCAST,
    PORT_OP_STEP,  /* between two calls of a program: what follows depends on `a` alone */
    PORT_OP_CHECK, /* `text` is the claim, a != 0 when it holds */
    PORT_OP_END,   /* the thread's function has returned */
};

struct port_site {
    const char *file;
    const char *function;
    unsigned line;
};

/* One operation of one thread. Atomics that are ordered, and fences in both directions, have both
 * `acquire` and `release`. */
struct port_op {
    struct port_site site;
    enum port_op_kind kind;
    const void *address;
    const char *text;
    uint64_t a, b;    /* values: stored, low and high half, expected and desired; lane mask in b */
    unsigned lane;    /* of a broadcast: whose value all get */
    bool acquire;     /* loads, fences, atomics */
    bool release;     /* stores, fences, atomics */
    bool system;      /* scope */
    bool is_ordering; /* it asks for an order: what a mutation may weaken */
};

/* Hands an operation to the explorer; returns what it loads, or 0. */
uint64_t port_explore(struct port_op op);

/* The calling thread's lane. */
unsigned port_explore_lane(void);

#define PORT_POLLS_PER_LOOK 1

#define PORT_SITE ((struct port_site){__FILE__, __func__, __LINE__})

PORT_FN uint64_t port_explore_load(struct port_site site, const void *word, enum port_order order,
                                   enum port_scope scope)
{
    bool acquire = order == PORT_ACQUIRE;
    return port_explore((struct port_op){.site = site,
                                         .kind = PORT_OP_LOAD,
                                         .address = word,
                                         .acquire = acquire,
                                         .system = scope == PORT_SYSTEM,
                                         .is_ordering = acquire});
}

PORT_FN void port_explore_store(struct port_site site, void *word, uint64_t value,
                                enum port_order order, enum port_scope scope)
{
    bool release = order == PORT_RELEASE;
    port_explore((struct port_op){.site = site,
                                  .kind = PORT_OP_STORE,
                                  .address = word,
                                  .a = value,
                                  .release = release,
                                  .system = scope == PORT_SYSTEM,
                                  .is_ordering = release});
}

PORT_FN void port_explore_fence(struct port_site site, enum port_order order, enum port_scope scope)
{
    port_explore((struct port_op){.site = site,
                                  .kind = PORT_OP_FENCE,
                                  .acquire = order != PORT_RELEASE,
                                  .release = order != PORT_ACQUIRE,
                                  .system = scope == PORT_SYSTEM,
                                  .is_ordering = true});
}

PORT_FN uint64_t port_explore_atomic(struct port_site site, enum port_op_kind kind, void *word,
                                     uint64_t a, uint64_t b, bool acquire, bool release)
{
    return port_explore((struct port_op){.site = site,
                                         .kind = kind,
                                         .address = word,
                                         .a = a,
                                         .b = b,
                                         .acquire = acquire,
                                         .release = release,
                                         .is_ordering = acquire || release});
}

PORT_FN uint64_t port_explore_plain(struct port_site site, enum port_op_kind kind, void *address,
                                    uint64_t a, uint64_t b, unsigned lane)
{
    return port_explore((struct port_op){.site = site,
                                         .kind = kind,
                                         .address = address,
                                         .a = a,
                                         .b = b,
                                         .lane = lane,
                                         .acquire = kind == PORT_OP_SYNCWARP,
                                         .release = kind == PORT_OP_SYNCWARP,
                                         .system = true,
                                         .is_ordering = kind == PORT_OP_SYNCWARP});
}

#define port_ld32(word, order, scope)                                                              \
    ((uint32_t)port_explore_load(PORT_SITE, (const uint32_t *){word}, order, scope))
#define port_ld64(word, order, scope)                                                              \
    port_explore_load(PORT_SITE, (const uint64_t *){word}, order, scope)
#define port_st32(word, value, order, scope)                                                       \
    port_explore_store(PORT_SITE, (uint32_t *){word}, (uint32_t){value}, order, scope)
#define port_st64(word, value, order, scope)                                                       \
    port_explore_store(PORT_SITE, (uint64_t *){word}, value, order, scope)
#define port_st16(to, lo, hi)              ((void)port_explore_plain(PORT_SITE, PORT_OP_STORE16, to, lo, hi, 0))
#define port_st16_shared(to, lo, hi)       port_st16(to, lo, hi)
#define port_fence(order, scope)           port_explore_fence(PORT_SITE, order, scope)
#define port_acquire64(word, found, scope) (port_fence(PORT_ACQUIRE, scope), found)
#define port_doorbell(reg, value)                                                                  \
    ((void)port_explore_plain(PORT_SITE, PORT_OP_DOORBELL, reg, value, 0, 0))
#define port_pause() ((void)port_explore_plain(PORT_SITE, PORT_OP_PAUSE, NULL, 0, 0, 0))
#define port_syncwarp(mask)                                                                        \
    ((void)port_explore_plain(PORT_SITE, PORT_OP_SYNCWARP, NULL, 0, mask, 0))
#define port_broadcast64(mask, value, source)                                                      \
    port_explore_plain(PORT_SITE, PORT_OP_BROADCAST, NULL, value, mask, source)

#define port_add64(word, value)                                                                    \
    port_explore_atomic(PORT_SITE, PORT_OP_ADD, (uint64_t *){word}, value, 0, false, false)
#define port_cas64(word, expected, desired)                                                        \
    port_explore_atomic(PORT_SITE, PORT_OP_CAS, (uint64_t *){word}, expected, desired, false, false)
#define port_add64_ordered(word, value)                                                            \
    port_explore_atomic(PORT_SITE, PORT_OP_ADD, (uint64_t *){word}, value, 0, true, true)
#define port_cas64_ordered(word, expected, desired)                                                \
    port_explore_atomic(PORT_SITE, PORT_OP_CAS, (uint64_t *){word}, expected, desired, true, true)
#define port_max64(word, value)                                                                    \
    port_explore_atomic(PORT_SITE, PORT_OP_MAX, (uint64_t *){word}, value, 0, false, false)
#define port_xchg32(word, value)                                                                   \
    ((uint32_t)port_explore_atomic(PORT_SITE, PORT_OP_EXCHANGE, (uint32_t *){word}, value, 0,      \
                                   false, false))
#define port_xchg64(word, value)                                                                   \
    port_explore_atomic(PORT_SITE, PORT_OP_EXCHANGE, (uint64_t *){word}, value, 0, true, false)

PORT_FN uint32_t port_bswap32(uint32_t value)
{
    return __builtin_bswap32(value);
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

/* Plain memory is constant while an exploration runs. */
PORT_FN uint64_t port_ld_plain64(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof(value));
    return value;
}

PORT_FN void port_prefetch(const void *line, bool to_write)
{
    (void)line;
    (void)to_write;
}

PORT_FN void port_compiler_barrier(void)
{
}

PORT_FN unsigned port_lane(void)
{
    return port_explore_lane();
}

PORT_FN unsigned port_first_lane(uint32_t mask)
{
    return (unsigned)__builtin_ctz(mask);
}

PORT_FN uint32_t port_count_lanes(uint32_t mask)
{
    return (uint32_t)__builtin_popcount(mask);
}

/* Time stands still: no deadline passes. */
PORT_FN uint64_t port_now_ns(void)
{
    return 0;
}

PORT_FN uint64_t port_clock(void)
{
    return 0;
}

#endif
