/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fibers: call stacks that one OS thread switches between by itself, in tens of nanoseconds. They
 * play the threads of a GPU. Included by the CPU backend (gpu_cpu.h) and by its test.
 *
 * A fiber runs on the OS thread that first switched to it, and never moves to another. Switches are
 * announced to AddressSanitizer and ThreadSanitizer; to the latter each fiber is a thread of its
 * own, which a switch orders with nothing, so that races between fibers are reported.
 */
#ifndef DOORBELL_SRC_FIBER_H
#define DOORBELL_SRC_FIBER_H

#include <pthread.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#endif
#endif

/* For code that runs between fibers: it shares data without an order that ThreadSanitizer would
 * know, and must not push a frame of one fiber and pop it from another. */
#if defined(FIBER_TSAN) && defined(__clang__)
#define FIBER_UNWATCHED __attribute__((disable_sanitizer_instrumentation))
#elif defined(FIBER_TSAN)
#define FIBER_UNWATCHED __attribute__((no_sanitize("thread")))
#else
#define FIBER_UNWATCHED
#endif

#if !defined(FIBER_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define FIBER_UCONTEXT 1
#endif
#ifdef FIBER_UCONTEXT
#include <ucontext.h>
#endif

struct fiber {
    void *stack; /* lowest address; NULL for a thread's own */
    size_t stack_bytes;
    void (*entry)(void *argument);
    void *argument;
#ifdef FIBER_UCONTEXT
    ucontext_t context;
#else
    void *saved; /* the stack pointer, below the registers that a function call preserves */
#endif
#ifdef FIBER_ASAN
    void *fake_stack;
#endif
#ifdef FIBER_TSAN
    void *tsan;
#endif
};

/* Stacks that were used and wait for their next fiber. Zero-initialise, but for the mutex. */
struct fiber_pool {
    pthread_mutex_t mutex;
    void *first;
};

/*
 * Prepares a fiber that will run entry(argument) when it is first switched to. `entry` must not
 * return: it ends in fiber_switch_last(). The stack is of the pool, with a guard page below it.
 * -ENOMEM.
 */
int fiber_create(struct fiber *fiber, struct fiber_pool *pool, void (*entry)(void *argument),
                 void *argument);

/* Gives the stack back. The fiber need not have ended; what it held is forgotten. */
void fiber_destroy(struct fiber *fiber, struct fiber_pool *pool);

/* Unmaps the stacks that the pool holds. */
void fiber_pool_empty(struct fiber_pool *pool);

/* Makes `fiber` stand for the calling OS thread, so that it can be switched from and back to. */
void fiber_adopt(struct fiber *fiber);

/* Suspends `from`, which is running, and resumes `to`. Returns when something switches to `from`.
 */
void fiber_switch(struct fiber *from, struct fiber *to);

/* The same for good: `from` is never resumed. */
_Noreturn void fiber_switch_last(struct fiber *from, struct fiber *to);

/* Orders all that `fiber` did before what the calling `thread` (adopted, running) does next. The
 * processor knows that order; this tells ThreadSanitizer. */
void fiber_join(struct fiber *fiber, struct fiber *thread);

#endif
