/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA backend of port.h: device code of nvcc (or of clang in CUDA mode). Included by port.h
 * alone.
 *
 * Each memory operation is one PTX instruction, with the order and the scope in its name: chapters
 * "Memory Consistency Model" and "Instruction Set" of the PTX ISA. Words lie in GPU memory or in
 * mapped host memory, never in shared memory, so every access names the global space. Relaxed
 * operations have no "memory" clobber: the compiler may keep plain constants in registers across
 * them, and only an ordered access or a fence makes it read and write them again.
 */
#ifndef DOORBELL_IMPL_PORT_CUDA_H
#define DOORBELL_IMPL_PORT_CUDA_H

/* A condition that the fast path never meets: what hangs on it is laid out apart, so that the fast
 * path's instructions follow each other. */
#define PORT_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Written before a loop whose iterations are independent: several are worked on at once. */
#define PORT_PRAGMA(text)  _Pragma(#text)
#define PORT_UNROLL(times) PORT_PRAGMA(unroll times)

#define PORT_FN   static __device__ __forceinline__
#define PORT_CODE static __device__
#define PORT_COLD static __device__ __noinline__

/* One-directional fences need PTX 8.6 (CUDA 12.7) and sm_90. On an H200 a release costs 0.237 us at
 * GPU scope where the two-directional fence costs 0.280 us. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 &&                                              \
    (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 7))
#define PORT_CUDA_RELEASE "release"
#define PORT_CUDA_ACQUIRE "acquire"
#define PORT_CUDA_ACQUIRE_WAITS_FOR_LOADS
#else
#define PORT_CUDA_RELEASE "acq_rel"
#define PORT_CUDA_ACQUIRE "acq_rel"
#endif

PORT_FN uint64_t port_cuda_global(const void *address)
{
    return (uint64_t)__cvta_generic_to_global(address);
}

PORT_FN uint32_t port_bswap32(uint32_t value)
{
    return __byte_perm(value, 0, 0x0123);
}

/* A permutation does what a mask and a swap take two instructions for. */
#define PORT_HAS_BE16
PORT_FN uint32_t port_be_low16(uint32_t value)
{
    return __byte_perm(value, 0, 0x0144);
}

PORT_FN uint32_t port_be_mid16(uint32_t value, uint32_t last)
{
    return __byte_perm(value, 0, 0x4015) | last << 24;
}

/* Has a value worked out here, where a compiler would do it behind the branch that comes next: on
 * an H200 a branch waits 13 cycles for its condition. */
PORT_FN void port_ready32(uint32_t value)
{
    asm volatile("" ::"r"(value));
}

PORT_FN void port_ready64(uint64_t value)
{
    asm volatile("" ::"l"(value));
}

/* What does not change while anybody posts, of 8 or 16 bytes and aligned so. Strong, at the scope
 * that the SM's own cache answers: ptxas fetches a weak one late, or again, behind what empties
 * that cache. Not volatile: one that nobody uses is not fetched. */
template <typename Constant> PORT_FN Constant port_constant(const Constant &from)
{
    static_assert(sizeof(Constant) == 8 || sizeof(Constant) == 16, "one load");
    uint64_t part[2];
    Constant constant;
    if (sizeof(Constant) == 16)
        asm("ld.relaxed.cta.global.v2.u64 {%0, %1}, [%2];"
            : "=l"(part[0]), "=l"(part[1])
            : "l"(port_cuda_global(&from)));
    else
        asm("ld.relaxed.cta.global.u64 %0, [%1];" : "=l"(part[0]) : "l"(port_cuda_global(&from)));
    memcpy(&constant, part, sizeof(constant));
    return constant;
}

PORT_FN uint32_t port_ld32(const uint32_t *word, enum port_order order, enum port_scope scope)
{
    uint64_t from = port_cuda_global(word);
    uint32_t value;
    if (order == PORT_RELAXED && scope == PORT_GPU)
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from));
    else if (order == PORT_RELAXED)
        asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from));
    else if (scope == PORT_GPU)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    else
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

PORT_FN uint64_t port_ld64(const uint64_t *word, enum port_order order, enum port_scope scope)
{
    uint64_t from = port_cuda_global(word);
    uint64_t value;
    if (order == PORT_RELAXED && scope == PORT_THREAD)
        asm volatile("ld.relaxed.cta.global.u64 %0, [%1];" : "=l"(value) : "l"(from));
    else if (order == PORT_RELAXED && scope == PORT_GPU)
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from));
    else if (order == PORT_RELAXED)
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from));
    else if (scope == PORT_GPU)
        asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    else
        asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}

PORT_FN void port_st32(uint32_t *word, uint32_t value, enum port_order order, enum port_scope scope)
{
    uint64_t to = port_cuda_global(word);
    if (order == PORT_RELAXED && scope == PORT_GPU)
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value));
    else if (order == PORT_RELAXED)
        asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value));
    else if (scope == PORT_GPU)
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
    else
        asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

PORT_FN void port_st64(uint64_t *word, uint64_t value, enum port_order order, enum port_scope scope)
{
    uint64_t to = port_cuda_global(word);
    if (order == PORT_RELAXED && scope == PORT_THREAD)
        asm volatile("st.relaxed.cta.global.u64 [%0], %1;" ::"l"(to), "l"(value));
    else if (order == PORT_RELAXED && scope == PORT_GPU)
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value));
    else if (order == PORT_RELAXED)
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value));
    else if (scope == PORT_GPU)
        asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
    else
        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

/* One 16-byte store to a 16-byte aligned address, which may tear at 4 bytes: PTX promises single
 * words of a vector only. As four words, since a compiler that is given two halves keeps each in a
 * pair of registers, copies them together late, and waits for the store before to free the place.
 * Relaxed at system scope: a CPU or a NIC may read it without a fence. */
PORT_FN void port_st16(void *to, uint64_t lo, uint64_t hi)
{
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(port_cuda_global(to)),
                 "r"((uint32_t)lo), "r"((uint32_t)(lo >> 32)), "r"((uint32_t)hi),
                 "r"((uint32_t)(hi >> 32)));
}

/* The same into memory that another agent may read at any moment; each half is whole. */
PORT_FN void port_st16_shared(void *to, uint64_t lo, uint64_t hi)
{
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(port_cuda_global(to)),
                 "l"(lo), "l"(hi));
}

/* A count in plain memory that the calling thread alone reads and writes. Looked up here: a plain
 * load is one that ptxas may put off. Who loads it so stores it so, or the compiler may take the
 * store for one that nobody reads. */
PORT_FN uint64_t port_ld_own64(const uint64_t *count)
{
    return port_ld64(count, PORT_RELAXED, PORT_THREAD);
}

PORT_FN void port_st_own64(uint64_t *count, uint64_t value)
{
    port_st64(count, value, PORT_RELAXED, PORT_THREAD);
}

/* 8 bytes of plain memory at any address; two loads when it is a multiple of 4. */
PORT_FN uint64_t port_ld_plain64(const void *from)
{
    uint64_t value = 0;
    if (((uintptr_t)from & 3) == 0) {
        const uint32_t *halves = (const uint32_t *)from;
        return (uint64_t)halves[1] << 32 | halves[0];
    }
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)((const uint8_t *)from)[i] << (8 * i);
    return value;
}

/* Orders only: a release makes earlier stores visible before later ones, an acquire keeps later
 * loads after earlier ones. */
PORT_FN void port_fence(enum port_order order, enum port_scope scope)
{
    if (order == PORT_ACQUIRE_RELEASE && scope == PORT_GPU)
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
    else if (order == PORT_ACQUIRE_RELEASE)
        asm volatile("fence.acq_rel.sys;" ::: "memory");
    else if (order == PORT_RELEASE && scope == PORT_GPU)
        asm volatile("fence." PORT_CUDA_RELEASE ".gpu;" ::: "memory");
    else if (order == PORT_RELEASE)
        asm volatile("fence." PORT_CUDA_RELEASE ".sys;" ::: "memory");
    else if (scope == PORT_GPU)
        asm volatile("fence." PORT_CUDA_ACQUIRE ".gpu;" ::: "memory");
    else
        asm volatile("fence." PORT_CUDA_ACQUIRE ".sys;" ::: "memory");
}

/* Acquires what `found` stands for, which a relaxed load of `word` found. Returns that, or what is
 * found now: an acquire fence waits for the loads and atomics that are under way, all at once, and
 * for nothing else; but where fences have two directions it is dearer than one load more. */
PORT_FN uint64_t port_acquire64(const uint64_t *word, uint64_t found, enum port_scope scope)
{
#ifdef PORT_CUDA_ACQUIRE_WAITS_FOR_LOADS
    (void)word;
    port_fence(PORT_ACQUIRE, scope);
    return found;
#else
    (void)found;
    return port_ld64(word, PORT_ACQUIRE, scope);
#endif
}

/* The atomics work in the L2, at GPU scope: no other agent updates a word that they update. They
 * return the value before the operation, and are relaxed. */
PORT_FN uint32_t port_add32(uint32_t *word, uint32_t value)
{
    uint32_t seen;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(seen)
                 : "l"(port_cuda_global(word)), "r"(value));
    return seen;
}

/*
 * Replaces a word in GPU memory; a store that is made of what it returns comes behind it. An atomic
 * is done in the half of the L2 that the word belongs to, which all who read GPU memory go by, and
 * answers from there. (A load need not: docs/memory_order.md.)
 */
PORT_FN uint32_t port_xchg32(uint32_t *word, uint32_t value)
{
    uint32_t seen;
    asm volatile("atom.relaxed.gpu.global.exch.b32 %0, [%1], %2;"
                 : "=r"(seen)
                 : "l"(port_cuda_global(word)), "r"(value));
    return seen;
}

PORT_FN uint64_t port_add64(uint64_t *word, uint64_t value)
{
    uint64_t seen;
    asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
                 : "=l"(seen)
                 : "l"(port_cuda_global(word)), "l"(value));
    return seen;
}

PORT_FN uint32_t port_cas32(uint32_t *word, uint32_t expected, uint32_t desired)
{
    uint32_t seen;
    asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(seen)
                 : "l"(port_cuda_global(word)), "r"(expected), "r"(desired));
    return seen;
}

PORT_FN uint64_t port_cas64(uint64_t *word, uint64_t expected, uint64_t desired)
{
    uint64_t seen;
    asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(seen)
                 : "l"(port_cuda_global(word)), "l"(expected), "l"(desired));
    return seen;
}

/* The same with acquire and release at GPU scope; a compare that fails still acquires. */
PORT_FN uint64_t port_add64_ordered(uint64_t *word, uint64_t value)
{
    uint64_t seen;
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;"
                 : "=l"(seen)
                 : "l"(port_cuda_global(word)), "l"(value)
                 : "memory");
    return seen;
}

PORT_FN uint64_t port_cas64_ordered(uint64_t *word, uint64_t expected, uint64_t desired)
{
    uint64_t seen;
    asm volatile("atom.acq_rel.gpu.global.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(seen)
                 : "l"(port_cuda_global(word)), "l"(expected), "l"(desired)
                 : "memory");
    return seen;
}

PORT_FN uint64_t port_max64(uint64_t *word, uint64_t value)
{
    uint64_t seen;
    asm volatile("atom.relaxed.gpu.global.max.u64 %0, [%1], %2;"
                 : "=l"(seen)
                 : "l"(port_cuda_global(word)), "l"(value));
    return seen;
}

/* Reads and replaces; what was released before the value read was stored is visible (acquire). */
PORT_FN uint64_t port_xchg64(uint64_t *word, uint64_t value)
{
    uint64_t seen;
    asm volatile("atom.acquire.gpu.global.exch.b64 %0, [%1], %2;"
                 : "=l"(seen)
                 : "l"(port_cuda_global(word)), "l"(value)
                 : "memory");
    return seen;
}

/* The 8-byte store to a NIC's doorbell register. It orders nothing by itself. */
PORT_FN void port_doorbell(void *reg, uint64_t value)
{
    asm volatile("st.mmio.relaxed.sys.global.u64 [%0], %1;" ::"l"(port_cuda_global(reg)),
                 "l"(value));
}

/* ---- When `so`, and else not at all; see port.h ---- */

#define PORT_HAS_IF

PORT_FN void port_st16_shared_if(bool so, void *to, uint64_t lo, uint64_t hi)
{
    asm volatile("{ .reg .pred so; setp.ne.u32 so, %3, 0;"
                 " @so st.relaxed.sys.global.v2.u64 [%0], {%1, %2}; }" ::"l"(port_cuda_global(to)),
                 "l"(lo), "l"(hi), "r"((uint32_t)so));
}

PORT_FN void port_doorbell_if(bool so, void *reg, uint64_t value)
{
    asm volatile("{ .reg .pred so; setp.ne.u32 so, %2, 0;"
                 " @so st.mmio.relaxed.sys.global.u64 [%0], %1; }" ::"l"(port_cuda_global(reg)),
                 "l"(value), "r"((uint32_t)so));
}

/* Asks for a line that will be read (or, `to_write`, stored to) soon; the L2 is as near as a line
 * can come that other agents write. */
PORT_FN void port_prefetch(const void *line, bool to_write)
{
    (void)to_write;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(port_cuda_global(line)));
}

/* Keeps the compiler from moving memory accesses across this point; no instruction. */
PORT_FN void port_compiler_barrier(void)
{
    asm volatile("" ::: "memory");
}

/*
 * A polling loop's failed iteration: the other lanes of the warp go on. The compiler does not see
 * to it. It puts a YIELD into innermost loops alone, so a lane that polled for a completion in a
 * loop around another one kept the lane that held the CQ's lock from running, for ever (H200,
 * CUDA 13.0).
 */
PORT_FN void port_pause(void)
{
    asm volatile("nanosleep.u32 0;");
}

/* Without other lanes there is nothing to do: a poll waits for the L2 or for PCIe, and the SM runs
 * other warps meanwhile. What a poll takes beyond that, a put and its completion take two or three
 * times. */
#define port_pause_shared(shared) ((shared) ? port_pause() : (void)0)

/* ---- Warp primitives ---- */

/* The calling thread's index in its warp, 0 to 31. */
PORT_FN unsigned port_lane(void)
{
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

PORT_FN unsigned port_first_lane(uint32_t mask)
{
    return (unsigned)__ffs((int)mask) - 1;
}

PORT_FN uint32_t port_count_lanes(uint32_t mask)
{
    return (uint32_t)__popc(mask);
}

/* Waits for every lane named in `mask`; what each wrote before is visible to all of them after. */
PORT_FN void port_syncwarp(uint32_t mask)
{
    __syncwarp(mask);
}

/* Every lane named in `mask` gets the value that `source_lane` passed. */
PORT_FN uint64_t port_broadcast64(uint32_t mask, uint64_t value, unsigned source_lane)
{
    return __shfl_sync(mask, (unsigned long long)value, (int)source_lane);
}

/* ---- Clocks ---- */

/* Nanoseconds of a clock that all SMs share; on an H200 it steps by 32 ns. */
PORT_FN uint64_t port_now_ns(void)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* Ticks of the fastest clock there is: the SM's own, at the SM's rate. */
PORT_FN uint64_t port_clock(void)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
    return now;
}

#endif
