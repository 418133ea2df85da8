/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: vendors_run() measures every way to put of the libraries that are there, skips with a
 * reason what is not, tells a WQE that differs from ours, and stops when the GPU is lost. The GPU
 * is played: it posts with our own encoder; and so is nvcc, by a script.
 */
#include "bench/vendors/arm.h"
#include "bench/vendors/library.h"
#include "bench/vendors/vendors.h"
#include "tests/check.h"

#include <doorbell/device.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The GPU ---- */

static struct {
    unsigned images;
    unsigned launches;
    const char *spoil; /* the kernel whose WQEs are wrong */
    const char *lost;  /* the kernel that does not end */
    const char *last;
    uint64_t hz;
} gpu_state;

static int gpu_properties(struct db_gpu *gpu, struct db_gpu_properties *properties)
{
    (void)gpu;
    *properties = (struct db_gpu_properties){.capability = 90};
    return 0;
}

static int gpu_clock_hz(struct db_gpu *gpu, uint64_t *hz)
{
    (void)gpu;
    *hz = gpu_state.hz;
    return 0;
}

static int gpu_load(struct db_gpu *gpu, const void *image, size_t bytes)
{
    (void)gpu;
    CHECK(bytes == 6 && memcmp(image, "image\n", 6) == 0, "%zu bytes of image", bytes);
    gpu_state.images++;
    return 0;
}

static int gpu_alloc(struct db_gpu *gpu, enum db_gpu_memory kind, size_t bytes,
                     struct db_gpu_buffer *buffer)
{
    (void)gpu;
    void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    CHECK(memory, "no memory");
    memset(memory, 0, bytes);
    *buffer = (struct db_gpu_buffer){
        .device = memory, .host = kind == DB_GPU_MEMORY_HOST ? memory : NULL, .bytes = bytes};
    return 0;
}

static void gpu_free(struct db_gpu *gpu, struct db_gpu_buffer *buffer)
{
    (void)gpu;
    free(buffer->device);
}

static int gpu_copy(struct db_gpu *gpu, void *to, const void *from, size_t bytes)
{
    (void)gpu;
    memcpy(to, from, bytes);
    return 0;
}

static const struct vendors_arm *arm_of(const char *name)
{
    for (size_t i = 0; i < VENDORS_LIBRARIES; i++)
        for (size_t k = 0; k < VENDORS_ARMS_MAX; k++)
            if (vendors_library[i].arm[k].system &&
                strcmp(vendors_library[i].arm[k].kernel.name, name) == 0)
                return &vendors_library[i].arm[k];
    return NULL;
}

/* Posts the last put of a launch to the first slot, as a library's first would be. */
static void post(const struct vendors_arm *arm, const struct arm_args *args)
{
    struct db_qp qp = {.sq = args->ring, .depth = 1, .qpn = ARM_QPN};
    uint64_t words[8] = {args->bytes << 7 | 3,
                         args->laddr << 1 | 1,
                         ARM_RKEY << 1 | 1,
                         args->raddr << 1 | 1,
                         ARM_RKEY << 1 | 1,
                         1,
                         1,
                         1};

    if (arm->post == VENDORS_DESCRIPTOR)
        memcpy(args->ring, words, sizeof(words));
    else if (arm->post == VENDORS_WQE_POINTER)
        db_build_write(&qp, 0, DB_SIGNALED, args->raddr, ARM_RKEY, args->laddr, ARM_LKEY,
                       args->bytes);
    else
        db_build_write_value(&qp, 0, DB_SIGNALED, args->raddr, ARM_RKEY, args->value);
    for (size_t i = 0; i < 4; i++)
        memset(args->ring + arm->gap[i].from, 0x77, (size_t)(arm->gap[i].to - arm->gap[i].from));
    args->record[1] = port_bswap32(1);
    *args->doorbell = db_ctrl_word(ARM_QPN, 1, 0, 0);
    if (gpu_state.spoil && strcmp(gpu_state.spoil, arm->kernel.name) == 0)
        args->ring[25] ^= 1;
}

static int gpu_launch(struct db_gpu *gpu, const struct port_kernel *kernel,
                      struct db_gpu_shape shape, const void *arguments, struct db_gpu_grid **grid)
{
    const struct arm_args *args = arguments;
    const struct vendors_arm *arm = arm_of(kernel->name);

    (void)gpu;
    CHECK(shape.ctas == 1 && shape.threads == 1 && kernel->args_bytes == sizeof(*args), "shape");
    CHECK(args->warmup + args->count < ARM_DEPTH && args->count <= ARM_COUNT, "%u and %u puts",
          args->warmup, args->count);
    gpu_state.launches++;
    gpu_state.last = kernel->name;
    *grid = NULL;
    if (!arm) {
        CHECK(strstr(kernel->name, "_setup"), "%s is launched", kernel->name);
        args->results->notes = strstr(kernel->name, "nvshmem") ? ARM_NOTE_ANY_MEMORY : 0;
        return 0;
    }
    post(arm, args);
    for (uint32_t i = 0; i < args->count; i++)
        args->ticks[i] = 1500 + i % 2;
    args->results->posted = args->warmup + args->count;
    args->results->last_ticks = 2000000000;
    args->results->last_ns = 1000000000;
    return 0;
}

static int gpu_wait(struct db_gpu_grid *grid, uint64_t deadline_ns)
{
    (void)grid;
    (void)deadline_ns;
    if (!gpu_state.lost || strcmp(gpu_state.lost, gpu_state.last) != 0)
        return 0;
    return db_gpu_fail(-EIO, "kernel %s had not ended at its deadline", gpu_state.last);
}

static const struct db_gpu_backend backend = {
    .kind = "cuda",
    .properties = gpu_properties,
    .clock_hz = gpu_clock_hz,
    .load = gpu_load,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .copy = gpu_copy,
    .launch = gpu_launch,
    .wait = gpu_wait,
};

/* ---- The compiler and the headers ---- */

static char root[VENDORS_PATH_BYTES];

static void write_file(const char *name, mode_t mode, const char *text)
{
    char path[2 * VENDORS_PATH_BYTES];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0 && chmod(path, mode) == 0, "%s",
          path);
}

/* Writes what -o names; refuses what is linked, if told to. */
static void write_compiler(const char *refused)
{
    char script[1024], path[2 * VENDORS_PATH_BYTES];

    snprintf(script, sizeof(script),
             "#!/bin/sh\n"
             "case \" $* \" in *' %s '*) echo 'x.cu: note'; echo 'x.cu(7): error: other'; exit 2;;"
             " esac\n"
             "case \" $* \" in *' -arch=sm_90 '*) ;; *) exit 3;; esac\n"
             "while [ \"$1\" != -o ]; do shift; done\n"
             "echo image >\"$2\"\n",
             refused);
    write_file("nvcc", 0700, script);
    snprintf(path, sizeof(path), "%s/nvcc", root);
    setenv("NVCC", path, 1);
}

static void write_headers(const struct vendors_library *library)
{
    char path[2 * VENDORS_PATH_BYTES];

    snprintf(path, sizeof(path), "nvidia/%s/include/%s", library->package, library->marker);
    write_file(path, 0600, "");
    snprintf(path, sizeof(path), "nvidia/%s/include/%s", library->package, library->version_header);
    write_file(path, 0600, "#define NCCL_MAJOR 2\n#define NCCL_MINOR 28\n#define NCCL_PATCH 9\n");
}

/* ---- Runs ---- */

static struct bench_results results;

static enum bench_status run_with(const struct db_gpu_backend *with, const char *path)
{
    static const struct bench_case row = {.name = "issue", .paper = {"T3"}};
    struct bench_options options;
    struct db_gpu gpu = {with};

    bench_options_init(&options);
    options.iters = 3000;
    options.repetitions = 2;
    bench_results_free(&results);
    results = (struct bench_results){0};
    gpu_state.images = gpu_state.launches = 0;
    struct bench b = {.row = &row, .options = &options, .results = &results};
    return vendors_run(&b, &gpu, path, NULL, NULL);
}

static void check_all(void)
{
    enum bench_status status = run_with(&backend, root);

    CHECK(status == BENCH_PASS, "status %d", status);
    CHECK(results.count == 11 && gpu_state.images == 3, "%zu results, %u images", results.count,
          gpu_state.images);
    for (size_t i = 0; i < results.count; i++) {
        const struct bench_record *record = &results.record[i];
        CHECK(record->valid == BENCH_VALID && record->stats.n == 6000, "%s: %llu samples",
              record->system, (unsigned long long)record->stats.n);
        CHECK(record->stats.typical > 0.749 && record->stats.typical < 0.752, "%s: %g us",
              record->system, record->stats.typical);
    }
    CHECK(strcmp(results.record[0].config[5].text, "NCCL 2.28.9") == 0, "%s",
          results.record[0].config[5].text);
    CHECK(strcmp(results.record[10].config[5].text, "NVSHMEM of unknown version") == 0, "%s",
          results.record[10].config[5].text);
    CHECK(strncmp(results.record[0].posted, results.record[0].ours, 16) == 0 &&
              strchr(results.record[0].ours, '?'),
          "%s beside %s", results.record[0].posted, results.record[0].ours);
    CHECK(strcmp(results.record[8].system, "gin-proxy") == 0 && results.record[8].posted &&
              !results.record[8].ours,
          "record 8 is of %s", results.record[8].system);
    CHECK(vendors_made_for(&vendors_library[0], "NCCL 2.28.9") &&
              !vendors_made_for(&vendors_library[0], "NCCL 2.28.90") &&
              !vendors_made_for(&vendors_library[2], "NVSHMEM of unknown version"),
          "versions");
    CHECK(!results.record[0].config[9].key && results.record[10].config[9].key, "notes");
}

static void check_faults(void)
{
    gpu_state.spoil = "vendor_gin_gdaki_put";
    enum bench_status status = run_with(&backend, root);
    gpu_state.spoil = NULL;
    CHECK(status == BENCH_FAIL && results.count == 11, "status %d, %zu results", status,
          results.count);
    for (size_t i = 0; i < results.count; i++)
        CHECK((results.record[i].valid == BENCH_INVALID) == (i == 6), "result %zu", i);

    gpu_state.lost = "vendor_doca_put_gpu";
    status = run_with(&backend, root);
    gpu_state.lost = NULL;
    CHECK(status == BENCH_FAIL && results.count == 2 && gpu_state.images == 1,
          "status %d, %zu results", status, results.count);

    gpu_state.hz = 1500000000;
    status = run_with(&backend, root);
    gpu_state.hz = 2000000000;
    CHECK(status == BENCH_DEGRADED && results.count == 11, "a wrong clock: status %d", status);
}

static void check_skips(void)
{
    enum bench_status status = run_with(&db_gpu_cpu_backend, root);
    CHECK(status == BENCH_SKIPPED, "on the CPU: status %d", status);

    status = run_with(&backend, "/nonexistent");
    CHECK(status == BENCH_SKIPPED && gpu_state.launches == 0, "no headers: status %d", status);

    write_compiler("-dlink");
    status = run_with(&backend, root);
    CHECK(status == BENCH_PASS && results.count == 9, "one of three: status %d, %zu results",
          status, results.count);

    write_compiler("-w");
    status = run_with(&backend, root);
    CHECK(status == BENCH_SKIPPED && gpu_state.images == 0, "no compilation: status %d", status);

    struct vendors_image image;
    char why[VENDORS_WHY_BYTES];
    CHECK(vendors_compile(&vendors_library[0], getenv("NVCC"), "sm_90", root, &image, why) < 0 &&
              strcmp(why, "x.cu(7): error: other") == 0,
          "%s", why);

    setenv("NVCC", "/nonexistent/nvcc", 1);
    status = run_with(&backend, root);
    CHECK(status == BENCH_SKIPPED && gpu_state.launches == 0, "no nvcc: status %d", status);
}

int main(void)
{
    CHECK(vendors_folder_make(root) == 0, "no folder");
    for (size_t i = 0; i < VENDORS_LIBRARIES; i++)
        write_headers(&vendors_library[i]);
    write_compiler("nothing");
    gpu_state.hz = 2000000000;
    check_all();
    check_faults();
    check_skips();
    bench_results_free(&results);
    vendors_folder_remove(root);
    return 0;
}
