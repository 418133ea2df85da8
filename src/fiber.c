/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fibers (fiber.h): stacks, the switch, and what sanitizers must hear of it.
 *
 * The switch saves what the calling convention preserves across a call, control words of the
 * floating-point unit included (System V x86-64 ABI 3.2.1; AAPCS64 6.1), and nothing else. Other
 * processors, and FIBER_UCONTEXT, use <ucontext.h>, which makes a system call a switch.
 */
#include "fiber.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* Device code has small frames and no recursion; printf in a kernel under test must fit as well. */
#if defined(FIBER_ASAN) || defined(FIBER_TSAN)
#define STACK_BYTES ((size_t)256 << 10)
#else
#define STACK_BYTES ((size_t)64 << 10)
#endif

/* ---- The switch itself ---- */

#if !defined(FIBER_UCONTEXT)

/* Stores the stack pointer of the caller to *save and continues where `load` was saved. */
void fiber_swap(void **save, void *load);
/* Where a fresh fiber starts: calls the function in one preserved register with another. */
void fiber_first(void);

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden fiber_swap\n"
        ".globl fiber_swap\n"
        ".type fiber_swap, @function\n"
        "fiber_swap:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size fiber_swap, . - fiber_swap\n"
        ".hidden fiber_first\n"
        ".globl fiber_first\n"
        ".type fiber_first, @function\n"
        "fiber_first:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    movq %r12, %rdi\n"
        "    callq *%r13\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size fiber_first, . - fiber_first\n");

/* What fiber_swap pops, upwards. */
struct saved_registers {
    uint32_t mxcsr;
    uint32_t x87_control;
    uint64_t r15, r14, r13, r12, rbx, rbp;
    uint64_t return_to;
};

static void *first_frame(struct fiber *fiber, void (*run)(struct fiber *))
{
    /* After the return the stack pointer is at the top, 16-byte aligned as before any call. */
    struct saved_registers *frame = (void *)((char *)fiber->stack + fiber->stack_bytes);
    frame--;
    *frame = (struct saved_registers){
        .mxcsr = 0x1f80, /* all exceptions masked, round to nearest: as a new thread has it */
        .x87_control = 0x37f,
        .r12 = (uintptr_t)fiber,
        .r13 = (uintptr_t)run,
        .return_to = (uintptr_t)fiber_first,
    };
    return frame;
}

#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden fiber_swap\n"
        ".globl fiber_swap\n"
        ".type fiber_swap, %function\n"
        "fiber_swap:\n"
        "    sub sp, sp, #176\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mrs x9, fpcr\n"
        "    str x9, [sp, #160]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldr x9, [sp, #160]\n"
        "    msr fpcr, x9\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #176\n"
        "    ret\n"
        ".size fiber_swap, . - fiber_swap\n"
        ".hidden fiber_first\n"
        ".globl fiber_first\n"
        ".type fiber_first, %function\n"
        "fiber_first:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined x30\n"
        "    mov x0, x19\n"
        "    blr x20\n"
        "    brk #0\n"
        "    .cfi_endproc\n"
        ".size fiber_first, . - fiber_first\n");

/* What fiber_swap loads, upwards. */
struct saved_registers {
    uint64_t x19, x20, x21_to_x28[8];
    uint64_t x29, x30;
    uint64_t d8_to_d15[8];
    uint64_t fpcr;
    uint64_t pad;
};

static void *first_frame(struct fiber *fiber, void (*run)(struct fiber *))
{
    struct saved_registers *frame = (void *)((char *)fiber->stack + fiber->stack_bytes);
    frame--;
    *frame = (struct saved_registers){
        .x19 = (uintptr_t)fiber,
        .x20 = (uintptr_t)run,
        .x30 = (uintptr_t)fiber_first,
    };
    return frame;
}
#endif

#endif

/* ---- Switching, with the sanitizers told ---- */

FIBER_UNWATCHED static void run(struct fiber *fiber)
{
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
    fiber->entry(fiber->argument);
}

FIBER_UNWATCHED static void swap(struct fiber *from, struct fiber *to)
{
#ifdef FIBER_TSAN
    __tsan_switch_to_fiber(to->tsan, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef FIBER_UCONTEXT
    swapcontext(&from->context, &to->context);
#else
    fiber_swap(&from->saved, to->saved);
#endif
}

FIBER_UNWATCHED void fiber_switch(struct fiber *from, struct fiber *to)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#endif
    swap(from, to);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}

FIBER_UNWATCHED _Noreturn void fiber_switch_last(struct fiber *from, struct fiber *to)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(NULL, to->stack, to->stack_bytes);
#endif
    swap(from, to);
    __builtin_trap();
}

FIBER_UNWATCHED void fiber_join(struct fiber *fiber, struct fiber *thread)
{
#ifdef FIBER_TSAN
    __tsan_switch_to_fiber(fiber->tsan, __tsan_switch_to_fiber_no_sync);
    __tsan_switch_to_fiber(thread->tsan, 0);
#else
    (void)fiber;
    (void)thread;
#endif
}

void fiber_adopt(struct fiber *fiber)
{
    memset(fiber, 0, sizeof(*fiber));
#ifdef FIBER_ASAN
    pthread_attr_t attributes;
    if (!pthread_getattr_np(pthread_self(), &attributes)) {
        pthread_attr_getstack(&attributes, &fiber->stack, &fiber->stack_bytes);
        pthread_attr_destroy(&attributes);
    }
#endif
#ifdef FIBER_TSAN
    fiber->tsan = __tsan_get_current_fiber();
#endif
}

/* ---- Stacks ---- */

/* The link of a stack in the pool: its topmost word, whose page every fiber touches anyway. */
static void **stack_link(void *stack)
{
    return (void **)((char *)stack + STACK_BYTES) - 1;
}

static void *stack_get(struct fiber_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    void *stack = pool->first;
    if (stack)
        pool->first = *stack_link(stack);
    pthread_mutex_unlock(&pool->mutex);
    if (stack)
        return stack;

    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    char *base = mmap(NULL, guard + STACK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    if (mprotect(base, guard, PROT_NONE)) {
        munmap(base, guard + STACK_BYTES);
        return NULL;
    }
    return base + guard;
}

static void stack_put(struct fiber_pool *pool, void *stack)
{
#ifdef FIBER_ASAN
    /* A fiber that was left in the middle left its frames' red zones. */
    __asan_unpoison_memory_region(stack, STACK_BYTES);
#endif
    pthread_mutex_lock(&pool->mutex);
    *stack_link(stack) = pool->first;
    pool->first = stack;
    pthread_mutex_unlock(&pool->mutex);
}

void fiber_pool_empty(struct fiber_pool *pool)
{
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    while (pool->first) {
        char *stack = pool->first;
        pool->first = *stack_link(stack);
        munmap(stack - guard, guard + STACK_BYTES);
    }
}

#ifdef FIBER_UCONTEXT
/* makecontext() passes ints only. */
static void first_context(unsigned high, unsigned low)
{
    run((struct fiber *)((uintptr_t)high << 32 | low));
}
#endif

int fiber_create(struct fiber *fiber, struct fiber_pool *pool, void (*entry)(void *argument),
                 void *argument)
{
    memset(fiber, 0, sizeof(*fiber));
    fiber->stack = stack_get(pool);
    if (!fiber->stack)
        return -ENOMEM;
    fiber->stack_bytes = STACK_BYTES;
    fiber->entry = entry;
    fiber->argument = argument;
#ifdef FIBER_UCONTEXT
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = fiber->stack_bytes;
    makecontext(&fiber->context, (void (*)(void))first_context, 2,
                (unsigned)((uint64_t)(uintptr_t)fiber >> 32), (unsigned)(uintptr_t)fiber);
#else
    fiber->saved = first_frame(fiber, run);
#endif
#ifdef FIBER_TSAN
    fiber->tsan = __tsan_create_fiber(0);
#endif
    return 0;
}

void fiber_destroy(struct fiber *fiber, struct fiber_pool *pool)
{
#ifdef FIBER_TSAN
    __tsan_destroy_fiber(fiber->tsan);
#endif
    stack_put(pool, fiber->stack);
    fiber->stack = NULL;
}
