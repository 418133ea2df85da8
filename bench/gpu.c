/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPU of an experiment: which one the options mean, its kernels, its clock; see transport.h.
 */
#include "transport.h"

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

/* What the user typed, or what was chosen for him. */
static const char *asked_for(const struct bench *b)
{
    return b->options->gpu_text ? b->options->gpu_text : "cuda";
}

static enum bench_status load_kernels(const struct bench *b, const struct transport *t)
{
    const struct db_gpu_backend *backend = t->gpu->backend;

    if (backend->kernels(t->gpu))
        return bench_fail(b, "--gpu=%s: %s", asked_for(b), db_gpu_error_text());
    for (size_t i = 0; i < bench_kernel_image_count; i++) {
        const struct db_gpu_image *image = &bench_kernel_images[i];
        if (backend->load(t->gpu, image->start, (size_t)(image->end - image->start)))
            return bench_fail(b, "--gpu=%s: %s", asked_for(b), db_gpu_error_text());
    }
    return BENCH_PASS;
}

static bool cuda_is_there(void)
{
    uint32_t count;
    return bench_kernel_image_count != 0 && db_gpu_cuda_backend.count(&count) == 0 && count > 0;
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
    struct db_gpu_config config = {.index = (uint32_t)b->options->gpu_index};
    bool cuda =
        b->options->gpu == BENCH_GPU_CUDA || (b->options->gpu == BENCH_GPU_AUTO && cuda_is_there());
    const struct db_gpu_backend *backend = cuda ? &db_gpu_cuda_backend : &db_gpu_cpu_backend;

    if (backend->open(&config, &t->gpu) || backend->properties(t->gpu, &t->gpu_properties))
        return bench_fail(b, "%s%s%s%s", cuda ? "--gpu=" : "", cuda ? asked_for(b) : "",
                          cuda ? ": " : "", db_gpu_error_text());
    enum bench_status status = cuda ? load_kernels(b, t) : BENCH_PASS;
    if (status != BENCH_PASS)
        return status;
    if (measure_clock(t))
        return bench_fail(b, "%s", db_gpu_error_text());
    snprintf(b->where.gpu_kind, sizeof(b->where.gpu_kind), "%s", backend->kind);
    snprintf(b->where.gpu_name, sizeof(b->where.gpu_name), "%s", t->gpu_properties.name);
    b->where.gpu_sm_mhz = 1e3 / t->ns_per_tick;
    b->where.gpu_sm_stated_mhz = backend->stated_mhz(t->gpu);
    return BENCH_PASS;
}

double transport_ns_per_tick(struct bench *b, const struct transport *t,
                             const struct bench_span *span)
{
    uint64_t ns = span->last_ns - span->first_ns;
    uint64_t ticks = span->last_ticks - span->first_ticks;

    if (ns < SPAN_MIN_NS || ticks == 0)
        return t->ns_per_tick;
    b->where.gpu_sm_mhz = 1e3 * (double)ticks / (double)ns;
    b->where.gpu_sm_stated_mhz = t->gpu->backend->stated_mhz(t->gpu);
    return (double)ns / (double)ticks;
}

uint32_t transport_os_threads(const struct transport *t, uint32_t ctas)
{
    uint32_t most = t->gpu_properties.multiprocessors;

    if (strcmp(t->gpu->backend->kind, "cpu") != 0)
        return 0;
    return ctas < most ? ctas : most;
}

enum bench_status transport_run(struct bench *b, struct transport *t,
                                const struct port_kernel *kernel, uint32_t ctas, uint32_t threads,
                                const void *args)
{
    const struct db_gpu_backend *backend = t->gpu->backend;
    struct db_gpu_shape shape = {.ctas = ctas, .threads = threads};
    struct db_gpu_grid *grid;

    if (backend->launch(t->gpu, kernel, shape, args, &grid))
        return bench_fail(b, "%s", db_gpu_error_text());
    /* The kernel's own waits end first, and say more. */
    uint64_t had_ns = 2 * b->options->timeout_ns, deadline = bench_monotonic_ns() + had_ns;
    if (backend->wait(grid, deadline) == 0)
        return BENCH_PASS;
    if (bench_monotonic_ns() > deadline)
        return bench_fail(b,
                          "%s; it had %g s, twice what --timeout says, and a longer one gives more",
                          db_gpu_error_text(), (double)had_ns / 1e9);
    return bench_fail(b, "%s", db_gpu_error_text());
}
