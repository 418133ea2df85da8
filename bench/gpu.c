/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPU of an experiment: which one the options mean, its kernels, its clock; see transport.h.
 */
#include "transport.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A GPU that idled raises its clock over some time: it is measured until two readings agree. */
#define CLOCK_TRIES 40
#define CLOCK_AGREE 0.002

/* The shortest span whose rate is exact to 1 in 500, at timer steps of 32 ns. */
#define SPAN_MIN_NS 20000u

/* The fat binaries of bench/kernels/. */
extern const struct db_gpu_image bench_kernel_images[];
extern const size_t bench_kernel_image_count;

/* A real GPU and its kernels. */
static int open_cuda(const struct bench *b, struct transport *t)
{
    struct db_gpu_config config = {.index = (uint32_t)b->options->gpu_index};
    int error = db_gpu_cuda_backend.open(&config, &t->gpu);

    if (!error)
        error = t->gpu->backend->kernels(t->gpu);
    for (size_t i = 0; i < bench_kernel_image_count && !error; i++) {
        const struct db_gpu_image *image = &bench_kernel_images[i];
        error = t->gpu->backend->load(t->gpu, image->start, (size_t)(image->end - image->start));
    }
    return error;
}

/* The GPU that the options name; without --gpu a real one, where there is one that runs kernels.
 * The choice holds for the whole run, in which a GPU may still be lost. */
static enum bench_status open_gpu(const struct bench *b, struct transport *t)
{
    static enum bench_gpu chosen = BENCH_GPU_AUTO;
    struct db_gpu_config config = {.index = 0};
    enum bench_gpu which = b->options->gpu == BENCH_GPU_AUTO ? chosen : b->options->gpu;
    const char *asked_for = b->options->gpu_text ? b->options->gpu_text : "cuda";

    if (which != BENCH_GPU_CPU) {
        int error = open_cuda(b, t);
        if (which == BENCH_GPU_AUTO)
            chosen = error ? BENCH_GPU_CPU : BENCH_GPU_CUDA;
        if (!error)
            return BENCH_PASS;
        if (which == BENCH_GPU_CUDA)
            return bench_fail(b, "--gpu=%s: %s", asked_for, db_gpu_error_text());
        if (error != -ENODEV) /* there is none */
            bench_warn(b, "CPU threads play the GPU: %s", db_gpu_error_text());
        if (t->gpu)
            t->gpu->backend->close(t->gpu);
        t->gpu = NULL;
    }
    if (db_gpu_cpu_backend.open(&config, &t->gpu))
        return bench_fail(b, "%s", db_gpu_error_text());
    return BENCH_PASS;
}

static int measure_clock(struct transport *t)
{
    double last = 0;

    for (int i = 0; i < CLOCK_TRIES; i++) {
        uint64_t hz;
        int error = t->gpu->backend->clock_hz(t->gpu, &hz);
        if (error)
            return error;
        t->ns_per_tick = 1e9 / (double)hz;
        if (fabs((double)hz / last - 1) < CLOCK_AGREE)
            break;
        last = (double)hz;
    }
    return 0;
}

enum bench_status transport_open_gpu(struct bench *b, struct transport *t)
{
    enum bench_status status = open_gpu(b, t);
    if (status != BENCH_PASS)
        return status;
    const struct db_gpu_backend *backend = t->gpu->backend;
    if (backend->properties(t->gpu, &t->gpu_properties))
        return bench_fail(b, "%s", db_gpu_error_text());
    if (measure_clock(t))
        return bench_fail(b, "%s", db_gpu_error_text());
    snprintf(b->where.gpu_kind, sizeof(b->where.gpu_kind), "%s", backend->kind);
    snprintf(b->where.gpu_name, sizeof(b->where.gpu_name), "%s", t->gpu_properties.name);
    b->where.gpu_sm_mhz = b->where.gpu_sm_before_mhz = 1e3 / t->ns_per_tick;
    b->where.gpu_sm_stated_mhz = backend->stated_mhz(t->gpu);
    /* CPU threads tick by the processor's counter, which the harness checks, and lose the CPU
     * between two readings. */
    bool played = strcmp(backend->kind, "cpu") == 0;
    sm_clock_start(&b->sm_clock, played ? 0 : b->where.gpu_sm_before_mhz);
    return BENCH_PASS;
}

double transport_ns_per_tick(struct bench *b, const struct transport *t,
                             const struct bench_span *span)
{
    uint64_t ns = span->last_ns - span->first_ns;
    uint64_t ticks = span->last_ticks - span->first_ticks;

    if (ns < SPAN_MIN_NS)
        return t->ns_per_tick;
    sm_clock_add(&b->sm_clock, (double)ticks, (double)ns);
    if (ticks == 0)
        return t->ns_per_tick;
    b->where.gpu_sm_mhz = 1e3 * (double)ticks / (double)ns;
    b->where.gpu_sm_stated_mhz = t->gpu->backend->stated_mhz(t->gpu);
    return (double)ns / (double)ticks;
}

enum bench_status transport_read_clock(struct bench *b, const struct transport *t)
{
    uint64_t hz;

    if (b->sm_clock.before_mhz <= 0)
        return BENCH_PASS;
    if (t->gpu->backend->clock_hz(t->gpu, &hz))
        return bench_fail(b, "%s", db_gpu_error_text());
    sm_clock_add(&b->sm_clock, (double)hz * SM_CLOCK_READING_NS / 1e9, SM_CLOCK_READING_NS);
    b->where.gpu_sm_mhz = (double)hz / 1e6;
    b->where.gpu_sm_stated_mhz = t->gpu->backend->stated_mhz(t->gpu);
    return BENCH_PASS;
}

uint32_t transport_os_threads(const struct transport *t, uint32_t ctas)
{
    uint32_t most = t->gpu_properties.multiprocessors;

    if (strcmp(t->gpu->backend->kind, "cpu") != 0)
        return 0;
    return ctas < most ? ctas : most;
}

enum bench_status transport_run_within(struct bench *b, struct transport *t,
                                       const struct port_kernel *kernel, uint32_t ctas,
                                       uint32_t threads, const void *args, uint64_t ns)
{
    const struct db_gpu_backend *backend = t->gpu->backend;
    struct db_gpu_shape shape = {.ctas = ctas, .threads = threads};
    struct db_gpu_grid *grid;

    if (backend->launch(t->gpu, kernel, shape, args, &grid))
        return bench_fail(b, "%s", db_gpu_error_text());
    uint64_t deadline = bench_monotonic_ns() + ns;
    if (backend->wait(grid, deadline) == 0)
        return BENCH_PASS;
    if (bench_monotonic_ns() > deadline)
        return bench_fail(b, "%s; it had %g s, and a longer --timeout gives more",
                          db_gpu_error_text(), (double)ns / 1e9);
    return bench_fail(b, "%s", db_gpu_error_text());
}

enum bench_status transport_run(struct bench *b, struct transport *t,
                                const struct port_kernel *kernel, uint32_t ctas, uint32_t threads,
                                const void *args)
{
    /* The kernel's own waits end first, and say more. A rate may run for as long as was asked. */
    return transport_run_within(b, t, kernel, ctas, threads, args,
                                2 * (b->options->timeout_ns + b->options->duration_ns));
}
