/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU played by CPU threads: its state, shared by gpu_cpu.c (what the host calls) and
 * gpu_cpu_run.c (what runs on the workers). Not for others.
 *
 * A worker is an OS thread. It plays CTA n, n + workers, n + 2 workers, ...: every thread of theirs
 * is a fiber on it, in one ring of those that can run, which goes round at each pause and each warp
 * or block operation that must wait. So all CTAs of a grid are resident however few cores there
 * are.
 *
 * Only its worker touches a CTA, its warps and its threads; grid->stop is the one word that the
 * host and the workers share while a grid runs.
 */
#ifndef DOORBELL_SRC_GPU_CPU_H
#define DOORBELL_SRC_GPU_CPU_H

#include <pthread.h>

#include "fiber.h"
#include <doorbell/gpu.h>

#define CPU_MAX_WORKERS 64
#define CPU_MAX_THREADS                                                                            \
    16384 /* two mappings each; a process may have 65,530 (vm.max_map_count)                       \
           */

enum cpu_thread_state {
    CPU_RUNNING, /* or pausing */
    CPU_IN_WARP,
    CPU_IN_BARRIER,
    CPU_RETURNED,
};

struct cpu_thread {
    struct port_cpu_place place;
    struct fiber fiber;
    struct cpu_worker *worker;
    struct cpu_cta *cta;
    struct cpu_thread *next; /* in the ring of those that can run */
    struct cpu_thread *previous;
    enum cpu_thread_state state;
    const struct cpu_meeting *meeting; /* that it waits in */
    uint64_t received;                 /* what that meeting brought */
};

/* A warp operation that some lanes have reached. */
struct cpu_meeting {
    uint32_t mask;
    uint32_t arrived;
    int source; /* lane whose value all get; -1 for none */
    uint64_t value;
};

/* A waiting lane is in one meeting, so there are never more meetings than lanes. */
struct cpu_warp {
    struct cpu_meeting meetings[PORT_WARP_THREADS];
    uint32_t active; /* bit n: meetings[n] is in use */
};

struct cpu_cta {
    struct cpu_thread *threads;
    struct cpu_warp *warps;
    void *shared;
    uint32_t index;
    uint32_t thread_count;
    uint32_t living;   /* have not returned */
    uint32_t runnable; /* of the living */
    uint32_t in_barrier;
};

struct cpu_worker {
    pthread_t os_thread;
    struct fiber fiber; /* the OS thread's own stack */
    struct db_gpu_grid *grid;
    struct cpu_thread *first; /* the ring, before it starts */
    uint32_t first_cta;
    uint32_t cores;
    uint32_t
        turns_left; /* switches until it looks up: at grid->stop, and whether to yield the core */
};

struct db_gpu_cpu {
    struct db_gpu gpu;
    uint32_t workers;
    bool broken; /* a grid could not be ended; its memory is never freed */
    struct fiber_pool stacks;
    struct db_gpu_grid *grids;
};

struct db_gpu_grid {
    struct db_gpu_cpu *gpu;
    struct db_gpu_grid *next;
    const struct port_kernel *kernel;
    void *args;
    struct db_gpu_shape shape;
    struct cpu_cta *ctas;
    struct cpu_thread *threads;
    struct cpu_warp *warps;
    char *shared;
    uint32_t fibers; /* created, of threads[] */
    struct cpu_worker *workers;
    uint32_t worker_count;
    uint32_t stop; /* atomic: the workers leave */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t working; /* workers that have not left */
    int error;        /* the first failure that a thread reported */
    char error_text[384];
};

/* Puts the fibers of a worker's CTAs in its ring; before the worker starts. */
void cpu_worker_prepare(struct cpu_worker *worker);

/* Runs a worker's CTAs until all have returned or the grid stops. The argument is the worker. */
void *cpu_worker_run(void *argument);

/* The body of each fiber. The argument is the struct cpu_thread. */
void cpu_thread_run(void *argument);

/* Ends the grid with an error; the first one counts. From any thread. */
__attribute__((format(printf, 3, 4))) void cpu_grid_fail(struct db_gpu_grid *grid, int error,
                                                         const char *format, ...);

/* What a thread that has not returned is doing, for a person. */
void cpu_thread_describe(const struct cpu_thread *thread, char *text, size_t bytes);

/* The cores that this process may use. */
uint32_t cpu_cores(void);

#endif
