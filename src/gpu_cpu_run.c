/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The workers of a GPU played by CPU threads (gpu_cpu.h): the ring of fibers, and the operations of
 * port.h and port_kernel.h that a device thread calls: pause, warp meetings, the block barrier.
 *
 * Device threads on one worker interleave only here, so their kernel must pause in each polling
 * loop, as port.h demands. A thread that is left when its grid stops is forgotten where it stands:
 * kernels own nothing.
 */
#include "gpu_cpu.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#define ARRIVE(meeting) __tsan_release(meeting)
#define DEPART(meeting) __tsan_acquire(meeting)
#else
#define ARRIVE(meeting) ((void)0)
#define DEPART(meeting) ((void)0)
#endif

#define SYNC_ONLY (-1)

/* Turns between two looks at grid->stop. A turn costs 4 to 16 ns (two Sapphire Rapids cores), so a
 * look comes every few microseconds and costs nothing that can be measured. */
#define TURNS 512
/* The same where workers outnumber cores: whom a thread waits for may be who needs the core. Two
 * workers on one core then pass a word forth and back in 3.4 us. */
#define TURNS_CROWDED 64

/* The device thread that the calling OS thread plays; NULL on an ordinary thread. */
static __thread struct cpu_thread *current __attribute__((tls_model("initial-exec")));

/* Workers of all grids in this process that are running. */
static uint32_t busy_workers;

/* Tells the processor that this is a polling loop. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

uint32_t cpu_cores(void)
{
    cpu_set_t allowed;
    if (!sched_getaffinity(0, sizeof(allowed), &allowed))
        return (uint32_t)CPU_COUNT(&allowed);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more than 1,024 cores */
    return online > 0 ? (uint32_t)online : 1;
}

/* ---- The ring ---- */

FIBER_UNWATCHED static void ring_insert(struct cpu_thread *thread, struct cpu_thread *before)
{
    thread->next = before;
    thread->previous = before->previous;
    before->previous->next = thread;
    before->previous = thread;
}

FIBER_UNWATCHED static void ring_remove(struct cpu_thread *thread)
{
    thread->previous->next = thread->next;
    thread->next->previous = thread->previous;
}

/* The grid has stopped: back to the worker, never to return. */
FIBER_UNWATCHED _Noreturn static void leave(struct cpu_thread *self)
{
    current = NULL;
    fiber_switch_last(&self->fiber, &self->worker->fiber);
}

FIBER_UNWATCHED static __attribute__((noinline)) void look_up(struct cpu_thread *self)
{
    struct cpu_worker *worker = self->worker;
    /* One core beside the workers' is wanted, for the thread that plays a NIC. */
    bool crowded = __atomic_load_n(&busy_workers, __ATOMIC_RELAXED) >= worker->cores;
    worker->turns_left = crowded ? TURNS_CROWDED : TURNS;
    if (__atomic_load_n(&worker->grid->stop, __ATOMIC_RELAXED))
        leave(self);
    if (crowded)
        sched_yield();
}

/* Counts a turn; every device operation that can be in an endless loop makes one. */
FIBER_UNWATCHED static inline void turn(struct cpu_thread *self)
{
    if (--self->worker->turns_left == 0)
        look_up(self);
}

FIBER_UNWATCHED static inline void resume(struct cpu_thread *self, struct cpu_thread *next)
{
    current = next;
    fiber_switch(&self->fiber, &next->fiber);
}

/* ---- Ends of threads and of grids ---- */

void cpu_grid_fail(struct db_gpu_grid *grid, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&grid->mutex);
    if (!grid->error) {
        grid->error = error;
        vsnprintf(grid->error_text, sizeof(grid->error_text), format, arguments);
    }
    pthread_mutex_unlock(&grid->mutex);
    va_end(arguments);
    __atomic_store_n(&grid->stop, 1, __ATOMIC_RELAXED);
}

static uint32_t lanes_returned(const struct cpu_cta *cta, uint32_t first_thread, uint32_t mask)
{
    uint32_t returned = 0;
    for (uint32_t lane = 0; lane < PORT_WARP_THREADS; lane++) {
        uint32_t thread = first_thread + lane;
        if (thread >= cta->thread_count || cta->threads[thread].state == CPU_RETURNED)
            returned |= 1u << lane;
    }
    return returned & mask;
}

FIBER_UNWATCHED void cpu_thread_describe(const struct cpu_thread *thread, char *text, size_t bytes)
{
    const struct cpu_cta *cta = thread->cta;
    uint32_t index = thread->place.thread;
    uint32_t first = index - index % PORT_WARP_THREADS;
    int used = snprintf(text, bytes, "thread %u of CTA %u ", index, cta->index);
    if (used < 0 || (size_t)used >= bytes)
        return;
    text += used;
    bytes -= (size_t)used;
    switch (thread->state) {
    case CPU_IN_WARP: {
        uint32_t mask = thread->meeting->mask;
        uint32_t missing = mask & ~thread->meeting->arrived;
        uint32_t returned = lanes_returned(cta, first, missing);
        snprintf(text, bytes, "waits in a warp operation of mask 0x%08x for lanes 0x%08x%s", mask,
                 missing,
                 !returned             ? ""
                 : returned == missing ? ", which have returned or do not exist"
                                       : ", some of which have returned or do not exist");
        break;
    }
    case CPU_IN_BARRIER:
        snprintf(text, bytes, "waits in port_syncthreads() for %u of %u threads",
                 cta->living - cta->in_barrier, cta->living);
        break;
    default:
        snprintf(text, bytes, "runs or polls");
        break;
    }
}

/* All living threads of the CTA wait for each other, and nobody else can wake them. */
FIBER_UNWATCHED static void deadlock(struct cpu_cta *cta)
{
    struct cpu_thread *thread = cta->threads;
    while (thread->state == CPU_RETURNED)
        thread++;
    struct db_gpu_grid *grid = thread->worker->grid;
    char text[256];
    cpu_thread_describe(thread, text, sizeof(text));
    cpu_grid_fail(grid, -EDEADLK,
                  "kernel %s is in a deadlock: %u threads of CTA %u wait for ever; %s",
                  grid->kernel->name, cta->living, cta->index, text);
}

/* Takes the running thread off the ring until another thread wakes it. */
FIBER_UNWATCHED static void block(struct cpu_thread *self, enum cpu_thread_state state)
{
    struct cpu_thread *next = self->next;
    self->state = state;
    ring_remove(self);
    if (--self->cta->runnable == 0) {
        deadlock(self->cta);
        leave(self);
    }
    resume(self, next);
}

FIBER_UNWATCHED static void wake(struct cpu_thread *thread)
{
    thread->state = CPU_RUNNING;
    thread->cta->runnable++;
    ring_insert(thread, current);
}

FIBER_UNWATCHED static void open_barrier(struct cpu_cta *cta)
{
    cta->in_barrier = 0;
    for (uint32_t i = 0; i < cta->thread_count; i++) {
        if (cta->threads[i].state == CPU_IN_BARRIER)
            wake(&cta->threads[i]);
    }
}

FIBER_UNWATCHED void cpu_thread_run(void *argument)
{
    struct cpu_thread *self = argument;
    struct cpu_cta *cta = self->cta;
    struct db_gpu_grid *grid = self->worker->grid;
    grid->kernel->on_cpu(grid->args);

    ARRIVE(&cta->in_barrier);
    self->state = CPU_RETURNED;
    cta->living--;
    cta->runnable--;
    if (cta->living && cta->in_barrier == cta->living)
        open_barrier(cta);
    struct cpu_thread *next = self->next;
    ring_remove(self);
    if (cta->living && cta->runnable == 0)
        deadlock(cta);
    else if (next != self) {
        current = next;
        fiber_switch_last(&self->fiber, &next->fiber);
    }
    leave(self);
}

FIBER_UNWATCHED void cpu_worker_prepare(struct cpu_worker *worker)
{
    struct db_gpu_grid *grid = worker->grid;
    worker->turns_left = 1;
    worker->cores = cpu_cores();
    for (uint32_t i = worker->first_cta; i < grid->shape.ctas; i += grid->worker_count) {
        struct cpu_cta *cta = &grid->ctas[i];
        for (uint32_t t = 0; t < cta->thread_count; t++) {
            struct cpu_thread *thread = &cta->threads[t];
            thread->worker = worker;
            thread->next = thread->previous = thread;
            if (worker->first)
                ring_insert(thread, worker->first);
            else
                worker->first = thread;
        }
    }
}

FIBER_UNWATCHED void *cpu_worker_run(void *argument)
{
    struct cpu_worker *worker = argument;
    struct db_gpu_grid *grid = worker->grid;

    __atomic_fetch_add(&busy_workers, 1, __ATOMIC_RELAXED);
    fiber_adopt(&worker->fiber);
    current = worker->first;
    fiber_switch(&worker->fiber, &worker->first->fiber);
    for (uint32_t i = worker->first_cta; i < grid->shape.ctas; i += grid->worker_count) {
        for (uint32_t t = 0; t < grid->shape.threads; t++)
            fiber_join(&grid->ctas[i].threads[t].fiber, &worker->fiber);
    }
    __atomic_fetch_sub(&busy_workers, 1, __ATOMIC_RELAXED);

    pthread_mutex_lock(&grid->mutex);
    grid->working--;
    pthread_cond_broadcast(&grid->changed);
    pthread_mutex_unlock(&grid->mutex);
    return NULL;
}

/* ---- What port.h and port_kernel.h call ---- */

FIBER_UNWATCHED const struct port_cpu_place *port_cpu_place(void)
{
    static const struct port_cpu_place host = {.thread = 0, .threads = 1, .block = 0, .blocks = 1};
    return current ? &current->place : &host;
}

FIBER_UNWATCHED unsigned port_cpu_lane(void)
{
    return current ? current->place.thread % PORT_WARP_THREADS : 0;
}

FIBER_UNWATCHED void port_cpu_pause(void)
{
    struct cpu_thread *self = current;
    if (!self) {
        cpu_relax();
        return;
    }
    turn(self);
    if (self->next != self)
        resume(self, self->next);
    else
        cpu_relax();
}

/* The meeting of this mask in the calling thread's warp, a fresh one when the thread is the first.
 */
FIBER_UNWATCHED static struct cpu_meeting *find_meeting(struct cpu_thread *self, uint32_t mask,
                                                        int source)
{
    uint32_t index = self->place.thread;
    uint32_t lane = index % PORT_WARP_THREADS;
    struct cpu_cta *cta = self->cta;
    struct cpu_warp *warp = &cta->warps[index / PORT_WARP_THREADS];
    struct cpu_meeting *found = NULL;
    for (uint32_t active = warp->active; active; active &= active - 1) {
        struct cpu_meeting *other = &warp->meetings[__builtin_ctz(active)];
        if (other->mask == mask && other->source == source) {
            found = other;
            break;
        }
        /* They wait for this lane and it would wait for them, in another operation. */
        if (other->arrived & mask && other->mask >> lane & 1) {
            cpu_grid_fail(self->worker->grid, -EINVAL,
                          "kernel %s: lanes 0x%08x of CTA %u wait in a warp operation of mask "
                          "0x%08x; lane %u came to another, of mask 0x%08x",
                          self->worker->grid->kernel->name, other->arrived, cta->index, other->mask,
                          lane, mask);
            leave(self);
        }
    }
    if (found)
        return found;
    uint32_t slot = (uint32_t)__builtin_ctz(~warp->active);
    warp->active |= 1u << slot;
    found = &warp->meetings[slot];
    *found = (struct cpu_meeting){.mask = mask, .source = source};
    return found;
}

/* The last lane of the mask to come wakes the others, with the source lane's value. */
FIBER_UNWATCHED static uint64_t meet(uint32_t mask, uint64_t value, int source)
{
    struct cpu_thread *self = current;
    if (!self)
        return value;
    turn(self);
    struct cpu_cta *cta = self->cta;
    uint32_t index = self->place.thread;
    uint32_t lane = index % PORT_WARP_THREADS;
    if (!(mask >> lane & 1) || (source != SYNC_ONLY && !(mask >> source & 1))) {
        cpu_grid_fail(self->worker->grid, -EINVAL,
                      "kernel %s: thread %u of CTA %u, lane %u, used mask 0x%08x, which must name "
                      "the lane itself and the source lane",
                      self->worker->grid->kernel->name, index, cta->index, lane, mask);
        leave(self);
    }
    struct cpu_meeting *meeting = find_meeting(self, mask, source);
    ARRIVE(meeting);
    meeting->arrived |= 1u << lane;
    if ((int)lane == source)
        meeting->value = value;
    if (meeting->arrived == mask) {
        struct cpu_warp *warp = &cta->warps[index / PORT_WARP_THREADS];
        warp->active &= ~(1u << (meeting - warp->meetings));
        self->received = meeting->value;
        for (uint32_t others = mask & ~(1u << lane); others; others &= others - 1) {
            struct cpu_thread *other = self - lane + __builtin_ctz(others);
            other->received = meeting->value;
            wake(other);
        }
    } else {
        self->meeting = meeting;
        block(self, CPU_IN_WARP);
    }
    DEPART(meeting);
    return self->received;
}

FIBER_UNWATCHED void port_cpu_syncwarp(uint32_t mask)
{
    meet(mask, 0, SYNC_ONLY);
}

FIBER_UNWATCHED uint64_t port_cpu_broadcast64(uint32_t mask, uint64_t value, unsigned source_lane)
{
    return meet(mask, value, (int)(source_lane % PORT_WARP_THREADS));
}

FIBER_UNWATCHED void port_cpu_syncthreads(void)
{
    struct cpu_thread *self = current;
    if (!self)
        return;
    turn(self);
    struct cpu_cta *cta = self->cta;
    ARRIVE(&cta->in_barrier);
    if (++cta->in_barrier == cta->living)
        open_barrier(cta);
    else
        block(self, CPU_IN_BARRIER);
    DEPART(&cta->in_barrier);
}
