/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU played by CPU threads, as the host sees it: the "cpu" row of gpu.h. What runs on the
 * workers is in gpu_cpu_run.c.
 *
 * Device memory is host memory and every mapping is the identity. A grid gets its OS threads at the
 * launch and gives them back at the wait; its fibers' stacks are kept for the next.
 */
#include "gpu_cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* How long after grid->stop a worker may still be between two turns, before it counts as lost. */
#define STOP_GRACE_NS 2000000000u

static int cpu_count(uint32_t *count)
{
    *count = 1;
    return 0;
}

/* Workers beside which a core stays free for the thread that plays a NIC: with one worker a core,
 * the two would take turns of milliseconds. */
static uint32_t default_workers(void)
{
    uint32_t cores = cpu_cores();
    return cores > 1 ? cores - 1 : 1;
}

static int cpu_open(const struct db_gpu_config *config, struct db_gpu **gpu)
{
    if (config->index)
        return db_gpu_fail(-ENODEV, "GPU cpu:%u does not exist: there is one, cpu:0",
                           config->index);
    if (config->workers > CPU_MAX_WORKERS)
        return db_gpu_fail(-EINVAL, "%u CPU threads to play a GPU: at most %d are possible",
                           config->workers, CPU_MAX_WORKERS);
    struct db_gpu_cpu *cpu = calloc(1, sizeof(*cpu));
    if (!cpu)
        return db_gpu_fail(-ENOMEM, "no memory for a GPU played by CPU threads");
    cpu->gpu.backend = &db_gpu_cpu_backend;
    cpu->workers = config->workers ? config->workers : default_workers();
    if (cpu->workers > CPU_MAX_WORKERS)
        cpu->workers = CPU_MAX_WORKERS;
    pthread_mutex_init(&cpu->stacks.mutex, NULL);
    *gpu = &cpu->gpu;
    return 0;
}

static void cpu_close(struct db_gpu *gpu)
{
    struct db_gpu_cpu *cpu = (struct db_gpu_cpu *)gpu;
    while (cpu->grids)
        db_gpu_cpu_backend.wait(cpu->grids, 0);
    if (cpu->broken)
        return; /* a thread that cannot be ended may still use it */
    fiber_pool_empty(&cpu->stacks);
    pthread_mutex_destroy(&cpu->stacks.mutex);
    free(cpu);
}

/* ---- What it is ---- */

static void processor_name(char *name, size_t bytes)
{
    FILE *info = fopen("/proc/cpuinfo", "re");
    char line[256];
    snprintf(name, bytes, "unknown model");
    while (info && fgets(line, sizeof(line), info)) {
        char *value = strstr(line, ": ");
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        value[strcspn(value, "\n")] = 0;
        snprintf(name, bytes, "%s", value + 2);
        break;
    }
    if (info)
        fclose(info);
}

/* port_clock() against the monotonic clock over 5 ms: exact to about 1 in 10,000. */
static int cpu_clock_hz(struct db_gpu *gpu, uint64_t *hz)
{
    (void)gpu;
    uint64_t ns = port_now_ns();
    uint64_t ticks = port_clock();
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    ns = port_now_ns() - ns;
    ticks = port_clock() - ticks;
    *hz = (uint64_t)((double)ticks * 1e9 / (double)ns);
    return 0;
}

static int cpu_properties(struct db_gpu *gpu, struct db_gpu_properties *properties)
{
    struct db_gpu_cpu *cpu = (struct db_gpu_cpu *)gpu;
    char processor[96];
    processor_name(processor, sizeof(processor));
    memset(properties, 0, sizeof(*properties));
    snprintf(properties->name, sizeof(properties->name), "CPU threads (%s)", processor);
    properties->multiprocessors = cpu->workers;
    properties->max_cta_threads = DB_GPU_MAX_CTA_THREADS;
    properties->max_threads = CPU_MAX_THREADS;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    properties->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    return cpu_clock_hz(gpu, &properties->max_clock_hz);
}

/* ---- Memory ---- */

static int cpu_alloc(struct db_gpu *gpu, enum db_gpu_memory kind, size_t bytes,
                     struct db_gpu_buffer *buffer)
{
    (void)gpu;
    if (!bytes)
        return db_gpu_fail(-EINVAL, "a GPU buffer of 0 bytes was asked for");
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return db_gpu_fail(-ENOMEM, "no memory for a GPU buffer of %zu bytes: %s", bytes,
                           strerror(errno));
    *buffer =
        (struct db_gpu_buffer){.device = memory, .host = memory, .bytes = bytes, .kind = kind};
    return 0;
}

static void cpu_free(struct db_gpu *gpu, struct db_gpu_buffer *buffer)
{
    (void)gpu;
    if (buffer->host)
        munmap(buffer->host, buffer->bytes);
    memset(buffer, 0, sizeof(*buffer));
}

static int cpu_copy(struct db_gpu *gpu, void *to, const void *from, size_t bytes)
{
    (void)gpu;
    memmove(to, from, bytes);
    return 0;
}

static int cpu_map(struct db_gpu *gpu, enum db_gpu_pages kind, void *host, size_t bytes,
                   void **device)
{
    (void)gpu;
    (void)kind;
    (void)bytes;
    *device = host;
    return 0;
}

static void cpu_unmap(struct db_gpu *gpu, void *host)
{
    (void)gpu;
    (void)host;
}

static int cpu_dma_buf(struct db_gpu *gpu, void *address, size_t bytes, int *fd, uint64_t *offset)
{
    (void)gpu;
    (void)address;
    (void)bytes;
    (void)fd;
    (void)offset;
    return db_gpu_fail(-EOPNOTSUPP, "the memory of a GPU that CPU threads play is host memory");
}

static uint32_t cpu_stated_mhz(struct db_gpu *gpu)
{
    (void)gpu;
    return 0;
}

static int cpu_kernels(struct db_gpu *gpu)
{
    (void)gpu;
    return 0;
}

static int cpu_load(struct db_gpu *gpu, const void *image, size_t bytes)
{
    (void)gpu;
    (void)image;
    (void)bytes;
    return 0;
}

/* ---- Grids ---- */

static int check_launch(const struct db_gpu_cpu *cpu, const struct port_kernel *kernel,
                        struct db_gpu_shape shape)
{
    if (cpu->broken)
        return db_gpu_fail(-EIO, "kernel %s cannot start: an earlier one never ended",
                           kernel->name);
    if (!shape.ctas || !shape.threads)
        return db_gpu_fail(-EINVAL, "kernel %s: a grid of %u CTAs of %u threads is empty",
                           kernel->name, shape.ctas, shape.threads);
    if (shape.threads > DB_GPU_MAX_CTA_THREADS)
        return db_gpu_fail(-EINVAL, "kernel %s: %u threads in a CTA; at most %d are possible",
                           kernel->name, shape.threads, DB_GPU_MAX_CTA_THREADS);
    if ((uint64_t)shape.ctas * shape.threads > CPU_MAX_THREADS)
        return db_gpu_fail(-EINVAL,
                           "kernel %s: %u CTAs of %u threads; CPU threads play at most %d in "
                           "all",
                           kernel->name, shape.ctas, shape.threads, CPU_MAX_THREADS);
    return 0;
}

static void grid_free(struct db_gpu_grid *grid)
{
    for (uint32_t i = 0; i < grid->fibers; i++)
        fiber_destroy(&grid->threads[i].fiber, &grid->gpu->stacks);
    pthread_cond_destroy(&grid->changed);
    pthread_mutex_destroy(&grid->mutex);
    free(grid->workers);
    free(grid->shared);
    free(grid->warps);
    free(grid->threads);
    free(grid->ctas);
    free(grid->args);
    free(grid);
}

/* Memory that is not there must not look like zeroes: shared memory has no particular content. */
#define SHARED_FILL 0xa5

static size_t shared_stride(struct db_gpu_shape shape)
{
    return ((size_t)shape.shared_bytes + 63) & ~(size_t)63;
}

/* Everything a fiber may read is written before it is created: that is what orders the two. */
static int grid_allocate(struct db_gpu_grid *grid, const void *args)
{
    struct db_gpu_shape shape = grid->shape;
    uint32_t threads = shape.ctas * shape.threads;
    uint32_t warps = (shape.threads + PORT_WARP_THREADS - 1) / PORT_WARP_THREADS;
    size_t shared_bytes = shape.ctas * shared_stride(shape);
    grid->args = malloc(grid->kernel->args_bytes);
    grid->ctas = calloc(shape.ctas, sizeof(*grid->ctas));
    grid->threads = calloc(threads, sizeof(*grid->threads));
    grid->warps = calloc((size_t)shape.ctas * warps, sizeof(*grid->warps));
    grid->workers = calloc(grid->worker_count, sizeof(*grid->workers));
    grid->shared = shared_bytes ? aligned_alloc(64, shared_bytes) : NULL;
    if (!grid->args || !grid->ctas || !grid->threads || !grid->warps || !grid->workers ||
        (shared_bytes && !grid->shared))
        return -ENOMEM;
    memcpy(grid->args, args, grid->kernel->args_bytes);
    if (grid->shared)
        memset(grid->shared, SHARED_FILL, shared_bytes);

    for (uint32_t i = 0; i < shape.ctas; i++) {
        struct cpu_cta *cta = &grid->ctas[i];
        cta->index = i;
        cta->thread_count = cta->living = cta->runnable = shape.threads;
        cta->threads = &grid->threads[i * shape.threads];
        cta->warps = &grid->warps[i * warps];
        cta->shared = grid->shared ? grid->shared + i * shared_stride(shape) : NULL;
        for (uint32_t t = 0; t < shape.threads; t++) {
            struct cpu_thread *thread = &cta->threads[t];
            thread->cta = cta;
            thread->place = (struct port_cpu_place){.thread = t,
                                                    .threads = shape.threads,
                                                    .block = i,
                                                    .blocks = shape.ctas,
                                                    .shared = cta->shared};
            if (fiber_create(&thread->fiber, &grid->gpu->stacks, cpu_thread_run, thread))
                return -ENOMEM;
            grid->fibers++;
        }
    }
    return 0;
}

/* Ends a grid some of whose workers could not start. */
static void grid_withdraw(struct db_gpu_grid *grid, uint32_t started)
{
    __atomic_store_n(&grid->stop, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(grid->workers[i].os_thread, NULL);
}

static int cpu_launch(struct db_gpu *gpu, const struct port_kernel *kernel,
                      struct db_gpu_shape shape, const void *args, struct db_gpu_grid **launched)
{
    struct db_gpu_cpu *cpu = (struct db_gpu_cpu *)gpu;
    int error = check_launch(cpu, kernel, shape);
    if (error)
        return error;
    struct db_gpu_grid *grid = calloc(1, sizeof(*grid));
    if (!grid)
        return db_gpu_fail(-ENOMEM, "kernel %s: no memory for its grid", kernel->name);
    grid->gpu = cpu;
    grid->kernel = kernel;
    grid->shape = shape;
    grid->worker_count = shape.ctas < cpu->workers ? shape.ctas : cpu->workers;
    pthread_mutex_init(&grid->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&grid->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);

    error = grid_allocate(grid, args);
    if (error) {
        db_gpu_fail(error, "kernel %s: no memory for %u CTAs of %u threads", kernel->name,
                    shape.ctas, shape.threads);
        goto free_grid;
    }
    grid->working = grid->worker_count;
    for (uint32_t i = 0; i < grid->worker_count; i++) {
        struct cpu_worker *worker = &grid->workers[i];
        worker->grid = grid;
        worker->first_cta = i;
        cpu_worker_prepare(worker);
        error = -pthread_create(&worker->os_thread, NULL, cpu_worker_run, worker);
        if (error) {
            db_gpu_fail(error, "kernel %s: cannot start CPU thread %u of %u: %s", kernel->name,
                        i + 1, grid->worker_count, strerror(-error));
            grid_withdraw(grid, i);
            goto free_grid;
        }
    }
    grid->next = cpu->grids;
    cpu->grids = grid;
    *launched = grid;
    return 0;

free_grid:
    grid_free(grid);
    return error;
}

/* Blocks until no worker is left, or the deadline; whether none is. */
static bool workers_left_by(struct db_gpu_grid *grid, uint64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                                .tv_nsec = (long)(deadline_ns % 1000000000u)};
    int timed_out = 0;
    pthread_mutex_lock(&grid->mutex);
    while (grid->working && !timed_out)
        timed_out = pthread_cond_timedwait(&grid->changed, &grid->mutex, &deadline);
    bool left = !grid->working;
    pthread_mutex_unlock(&grid->mutex);
    return left;
}

static bool cpu_done(struct db_gpu_grid *grid)
{
    return workers_left_by(grid, 0);
}

static int deadline_passed(const struct db_gpu_grid *grid)
{
    uint32_t threads = grid->shape.ctas * grid->shape.threads;
    uint32_t living = 0;
    const struct cpu_thread *first = NULL;
    for (uint32_t i = 0; i < threads; i++) {
        if (grid->threads[i].state == CPU_RETURNED)
            continue;
        if (!living++)
            first = &grid->threads[i];
    }
    if (!first)
        return 0; /* the last one returned just then */
    char text[256];
    cpu_thread_describe(first, text, sizeof(text));
    return db_gpu_fail(-ETIMEDOUT,
                       "kernel %s was ended at its deadline: %u of %u threads had not returned; %s",
                       grid->kernel->name, living, threads, text);
}

static int cpu_wait(struct db_gpu_grid *grid, uint64_t deadline_ns)
{
    struct db_gpu_cpu *cpu = grid->gpu;
    for (struct db_gpu_grid **link = &cpu->grids; *link; link = &(*link)->next) {
        if (*link == grid) {
            *link = grid->next;
            break;
        }
    }
    bool in_time = workers_left_by(grid, deadline_ns);
    __atomic_store_n(&grid->stop, 1, __ATOMIC_RELAXED);
    if (!in_time && !workers_left_by(grid, port_now_ns() + STOP_GRACE_NS)) {
        cpu->broken = true;
        for (uint32_t i = 0; i < grid->worker_count; i++)
            pthread_detach(grid->workers[i].os_thread);
        return db_gpu_fail(-EIO,
                           "kernel %s cannot be ended: a thread of it loops without port_pause(); "
                           "this GPU takes no more kernels",
                           grid->kernel->name);
    }
    for (uint32_t i = 0; i < grid->worker_count; i++)
        pthread_join(grid->workers[i].os_thread, NULL);
    int error = 0;
    if (grid->error)
        error = db_gpu_fail(grid->error, "%s", grid->error_text);
    else if (!in_time)
        error = deadline_passed(grid);
    grid_free(grid);
    return error;
}

const struct db_gpu_backend db_gpu_cpu_backend = {
    .kind = "cpu",
    .count = cpu_count,
    .open = cpu_open,
    .close = cpu_close,
    .properties = cpu_properties,
    .kernels = cpu_kernels,
    .clock_hz = cpu_clock_hz,
    .stated_mhz = cpu_stated_mhz,
    .load = cpu_load,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy = cpu_copy,
    .map = cpu_map,
    .unmap = cpu_unmap,
    .dma_buf = cpu_dma_buf,
    .launch = cpu_launch,
    .done = cpu_done,
    .wait = cpu_wait,
};
