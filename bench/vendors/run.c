/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vendors_run(): finds, compiles and loads each library's kernels, compares what they post with
 * ours, times them, and reports.
 */
#include "vendors.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arm.h"
#include "library.h"

/* Puts that nobody times, in a launch that finds its code and its lines cached already. */
#define WARM 16u

/* GPU memory: the ring, then these. */
#define PAGE_AT    ((size_t)ARM_DEPTH * 64)
#define RESULTS_AT (PAGE_AT + VENDORS_PAGE_BYTES)
#define TICKS_AT   (RESULTS_AT + 128)
#define GPU_BYTES  (TICKS_AT + ARM_COUNT * sizeof(uint64_t))

/* In the page, or in one that is given. */
#define RECORD_AT 0
#define CQ_AT     128
#define STATE_AT  256
static_assert(STATE_AT + ARM_STATE_BYTES == VENDORS_PAGE_BYTES, "a page");

/* Mapped host memory: the doorbell, on a line of its own the proxy's credit, and the proxy's ring.
 */
#define CREDIT_AT    128
#define HOST_RING_AT 4096
#define HOST_BYTES   (HOST_RING_AT + (size_t)ARM_DEPTH * 64)

struct run {
    struct bench *b;
    struct db_gpu *gpu;
    const struct db_gpu_backend *backend;
    struct db_gpu_buffer memory;
    struct db_gpu_buffer host;
    struct bench_samples samples;
    uint64_t *ticks; /* [ARM_COUNT] copied out */
    struct arm_args args;
    double hz;        /* of the SM's clock, before */
    char arch[16];    /* of the GPU, as nvcc names it */
    const char *text; /* the library and its version, for results */
    const char *half; /* of the L2, that the page is in; NULL: not known */
    bool broken;      /* a launch or a copy failed: the GPU is of no further use */
};

/* Texts of results live until the program ends. */
static char version_text[VENDORS_LIBRARIES][96];
static struct vendors_dump dump_text[VENDORS_LIBRARIES][VENDORS_ARMS_MAX];

static struct vendors_dump *dump_of(const struct vendors_library *library,
                                    const struct vendors_arm *arm)
{
    return &dump_text[library - vendors_library][arm - library->arm];
}

/* ---- One launch ---- */

static enum bench_status gpu_failed(struct run *r)
{
    r->broken = true;
    return bench_fail(r->b, "%s", db_gpu_error_text());
}

static enum bench_status launch(struct run *r, const struct port_kernel *kernel)
{
    const struct db_gpu_shape shape = {.ctas = 1, .threads = 1};
    struct db_gpu_grid *grid;

    if (r->backend->launch(r->gpu, kernel, shape, &r->args, &grid))
        return gpu_failed(r);
    if (r->backend->wait(grid, bench_monotonic_ns() + r->b->options->timeout_ns))
        return gpu_failed(r);
    return BENCH_PASS;
}

static enum bench_status copy(struct run *r, void *to, const void *from, size_t bytes)
{
    return r->backend->copy(r->gpu, to, from, bytes) ? gpu_failed(r) : BENCH_PASS;
}

/* A fresh queue, and `warmup` and `count` puts on it. */
static enum bench_status post(struct run *r, const struct vendors_library *library,
                              const struct vendors_arm *arm, uint32_t warmup, uint32_t count,
                              struct arm_results *results)
{
    r->args.warmup = warmup;
    r->args.count = count;
    memset(r->host.host, 0, HOST_RING_AT);
    *results = (struct arm_results){0};

    enum bench_status status = copy(r, r->args.results, results, sizeof(*results));
    if (status == BENCH_PASS)
        status = launch(r, &library->setup);
    if (status == BENCH_PASS)
        status = launch(r, &arm->kernel);
    if (status == BENCH_PASS)
        status = copy(r, results, r->args.results, sizeof(*results));
    if (status == BENCH_PASS && results->posted != warmup + count)
        status = bench_fail(r->b, "%s ended after %u of %u puts", arm->kernel.name, results->posted,
                            warmup + count);
    return status;
}

/* ---- What one put looks like ---- */

static enum bench_status compare(struct run *r, const struct vendors_library *library,
                                 const struct vendors_arm *arm, enum bench_valid *valid,
                                 struct arm_results *results)
{
    struct vendors_posted posted;
    char why[VENDORS_WHY_BYTES];

    memset(posted.slot, VENDORS_POISON, sizeof(posted.slot));
    posted.record = 0;
    enum bench_status status = copy(r, r->args.ring, posted.slot, sizeof(posted.slot));
    if (status == BENCH_PASS)
        status = copy(r, r->args.record + 1, &posted.record, sizeof(posted.record));
    if (status == BENCH_PASS)
        status = post(r, library, arm, 0, 1, results);
    if (status == BENCH_PASS)
        status = copy(r, posted.slot, r->args.ring, sizeof(posted.slot));
    if (status == BENCH_PASS)
        status = copy(r, &posted.record, r->args.record + 1, sizeof(posted.record));
    if (status != BENCH_PASS)
        return status;
    memcpy(&posted.doorbell, r->host.host, sizeof(posted.doorbell));

    vendors_posted_dump(arm, &posted, dump_of(library, arm));
    *valid = vendors_posted_agrees(arm, &posted, why) ? BENCH_VALID : BENCH_INVALID;
    if (*valid == BENCH_VALID)
        return BENCH_PASS;
    return bench_fail(r->b, "%s %s (%s, %s): %s", arm->system, arm->op, arm->sharing, r->text, why);
}

/* ---- How long it takes ---- */

/* A clock that changed meanwhile: what is compared was not measured at one clock. */
static enum bench_status check_clock(struct run *r, const struct vendors_arm *arm,
                                     const struct sm_clock *clock)
{
    char why[SM_CLOCK_WHY_BYTES];

    if (sm_clock_agrees(clock, why))
        return BENCH_PASS;
    return bench_degrade(r->b, "%s %s: %s", arm->system, arm->op, why);
}

static enum bench_status sample(struct run *r, const struct vendors_library *library,
                                const struct vendors_arm *arm, uint32_t warmup, uint32_t count,
                                struct sm_clock *clock)
{
    struct arm_results results;

    enum bench_status status = post(r, library, arm, warmup, count, &results);
    if (status == BENCH_PASS)
        status = copy(r, r->ticks, r->args.ticks, count * sizeof(*r->ticks));
    if (status != BENCH_PASS)
        return status;
    double ns = (double)(results.last_ns - results.first_ns);
    double ticks = (double)(results.last_ticks - results.first_ticks);
    double ns_per_tick = ns < SM_CLOCK_READING_NS ? 1e9 / r->hz : ns / ticks;
    for (uint32_t i = 0; i < count; i++)
        bench_samples_add(&r->samples, (double)r->ticks[i] * ns_per_tick);
    sm_clock_add(clock, ticks, ns);
    return BENCH_PASS;
}

static enum bench_status report(struct run *r, const struct vendors_library *library,
                                const struct vendors_arm *arm, enum bench_valid valid,
                                uint32_t notes)
{
    const struct vendors_dump *dump = dump_of(library, arm);
    bool proxy = arm->post == VENDORS_DESCRIPTOR;
    bool inlined = arm->post == VENDORS_WQE_INLINE;
    struct bench_record record = {
        .system = arm->system,
        .config = {{"op", arm->op, 0},
                   {"payload", inlined ? "inline" : "pointer", 0},
                   {"sharing", arm->sharing, 0},
                   {"record", proxy ? "none" : "with", 0},
                   {"ring", proxy ? "host memory" : "GPU memory", 0},
                   {"library", r->text, 0},
                   {"threads", NULL, 1},
                   {"queues", NULL, 1},
                   {"scope", "issue path only, no NIC", 0}},
        .metric = proxy ? "enqueue" : "issue",
        .unit = "us",
        .msg_bytes = VENDORS_BYTES,
        .valid = valid,
        .posted = dump->posted,
        .ours = dump->ours[0] ? dump->ours : NULL,
    };
    size_t used = 9;
    if (r->half)
        record.config[used++] = (struct bench_config){"half", r->half, 0};
    if (notes)
        record.config[used++] = (struct bench_config){
            "nic_buffers", notes & ARM_NOTE_GPU_MEMORY ? "GPU memory only" : "any memory", 0};
    return bench_report(r->b, &record, &r->samples);
}

static enum bench_status measure(struct run *r, const struct vendors_library *library,
                                 const struct vendors_arm *arm)
{
    const struct bench_options *options = r->b->options;
    uint64_t room = ARM_DEPTH - ARM_COUNT - 1;
    enum bench_valid valid = BENCH_UNCHECKED;
    struct arm_results results = {0};
    struct sm_clock clock = {.before_mhz = r->hz / 1e6};
    struct bench_pace pace;
    uint64_t n;

    /* A CPU thread reads the proxy's ring, a NIC the others. */
    r->args.ring = arm->post == VENDORS_DESCRIPTOR ? (uint8_t *)r->host.device + HOST_RING_AT
                                                   : r->memory.device;
    bench_samples_clear(&r->samples);
    enum bench_status status = compare(r, library, arm, &valid, &results);
    for (uint64_t i = 0; i < options->repetitions && !r->broken; i++) {
        uint64_t warmup = options->warmup_iters < room ? options->warmup_iters : room;
        bench_pace_start(&pace, r->b, arm->system);
        while ((n = bench_pace_next(&pace, ARM_COUNT)) > 0) {
            status =
                bench_worse(status, sample(r, library, arm, (uint32_t)warmup, (uint32_t)n, &clock));
            if (r->broken)
                return status;
            warmup = WARM;
        }
    }
    if (valid == BENCH_UNCHECKED)
        return status;
    status = bench_worse(status, check_clock(r, arm, &clock));
    return bench_worse(status, report(r, library, arm, valid, results.notes));
}

/* ---- One library ---- */

static enum bench_status run_library(struct run *r, const struct vendors_library *library,
                                     const char *nvcc, const char *path)
{
    char *text = version_text[library - vendors_library];
    char folder[VENDORS_PATH_BYTES], why[VENDORS_WHY_BYTES];
    struct vendors_image image;

    if (!vendors_find_headers(library, nvcc, path, folder, why))
        return bench_skip(r->b, "%s: %s", library->name, why);
    vendors_version(library, folder, text, sizeof(version_text[0]));
    r->text = text;
    if (vendors_compile(library, nvcc, r->arch, folder, &image, why))
        return bench_skip(r->b,
                          "%s: our source, made for %s %s, does not compile over %s in %s: %s",
                          library->name, library->vendor, library->made_for, text, folder, why);
    int error = r->backend->load(r->gpu, image.bytes, image.size);
    free(image.bytes);
    if (error)
        return bench_fail(r->b, "%s: %s", library->name, db_gpu_error_text());
    if (!vendors_made_for(library, text))
        bench_warn(r->b,
                   "%s: our source was made for %s %s and compiles over %s as well; that the WQEs "
                   "agree is checked, whether it is called as its authors would is not",
                   library->name, library->vendor, library->made_for, text);

    enum bench_status status = BENCH_SKIPPED;
    for (size_t i = 0; i < VENDORS_ARMS_MAX && library->arm[i].system && !r->broken; i++)
        status = bench_worse(status, measure(r, library, &library->arm[i]));
    return status;
}

/* ---- All of them ---- */

static enum bench_status set_up(struct run *r, uint8_t *page)
{
    struct db_gpu_properties properties;
    uint64_t hz;

    if (bench_samples_init(&r->samples, bench_capacity(r->b)))
        return bench_fail(r->b, "no memory for the samples");
    r->ticks = malloc(ARM_COUNT * sizeof(*r->ticks));
    if (!r->ticks)
        return bench_fail(r->b, "no memory for the ticks");
    if (r->backend->alloc(r->gpu, DB_GPU_MEMORY_GPU, GPU_BYTES, &r->memory) ||
        r->backend->alloc(r->gpu, DB_GPU_MEMORY_HOST, HOST_BYTES, &r->host) ||
        r->backend->properties(r->gpu, &properties) || r->backend->clock_hz(r->gpu, &hz))
        return bench_fail(r->b, "%s", db_gpu_error_text());
    snprintf(r->arch, sizeof(r->arch), "sm_%u", properties.capability);
    r->hz = (double)hz;

    uint8_t *memory = r->memory.device, *host = r->host.device;
    if (!page)
        page = memory + PAGE_AT;
    r->args = (struct arm_args){
        .record = (uint32_t *)(void *)(page + RECORD_AT),
        .doorbell = (uint64_t *)(void *)host,
        .credit = (uint32_t *)(void *)(host + CREDIT_AT),
        .cq = page + CQ_AT,
        .state = page + STATE_AT,
        .ticks = (uint64_t *)(void *)(memory + TICKS_AT),
        .results = (struct arm_results *)(void *)(memory + RESULTS_AT),
        .laddr = VENDORS_LADDR,
        .raddr = VENDORS_RADDR,
        .value = VENDORS_VALUE,
        .bytes = VENDORS_BYTES,
        .pause_ticks = VENDORS_PAUSE_TICKS,
    };
    return BENCH_PASS;
}

enum bench_status vendors_run(struct bench *b, struct db_gpu *gpu, const char *path, uint8_t *page,
                              const char *half)
{
    struct run r = {.b = b, .gpu = gpu, .backend = gpu->backend, .half = half};
    char nvcc[VENDORS_PATH_BYTES], why[VENDORS_WHY_BYTES];

    if (strcmp(gpu->backend->kind, "cuda") != 0)
        return bench_skip(b, "the vendors' device code needs a GPU; --gpu cuda uses one");
    if (!vendors_find_nvcc(nvcc, why))
        return bench_skip(b, "the vendors' device code is compiled on this machine: %s", why);

    enum bench_status status = set_up(&r, page);
    if (status == BENCH_PASS) {
        status = BENCH_SKIPPED;
        for (size_t i = 0; i < VENDORS_LIBRARIES && !r.broken; i++)
            status = bench_worse(status, run_library(&r, &vendors_library[i], nvcc, path));
    }
    if (r.memory.device)
        r.backend->free(gpu, &r.memory);
    if (r.host.device)
        r.backend->free(gpu, &r.host);
    free(r.ticks);
    bench_samples_free(&r.samples);
    return status;
}
