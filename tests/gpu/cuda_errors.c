/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: whatever a CUDA driver refuses ends in a sentence that names the thing and the remedy, and
 * nothing is left behind. Over the fake driver (fake_driver.c).
 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_control.h"
#include "src/gpu_cuda.h"

#define SECOND_NS 1000000000ull

static struct fake_driver *fake;
static const struct db_gpu_backend *const cuda = &db_gpu_cuda_backend;

struct some_args {
    uint64_t value;
    void *pointer;
};

static const struct port_kernel some_kernel = {.name = "some_kernel",
                                               .args_bytes = sizeof(struct some_args)};
static const struct port_kernel other_kernel = {.name = "other_kernel",
                                                .args_bytes = sizeof(struct some_args)};
static const struct port_kernel missing_kernel = {.name = "no_such_kernel",
                                                  .args_bytes = sizeof(struct some_args)};

/* ---- The driver itself, which is loaded once in a process ---- */

static void driver_says(const char *init, int want, const char *words)
{
    pid_t child = fork();

    if (child == 0) {
        uint32_t count = 7;
        setenv("FAKE_DRIVER_INIT", init, 1);
        int error = cuda->count(&count);
        CHECK(error == want && count == 0, "cuInit %s: %d, %u GPUs", init, error, count);
        expect_words(init, db_gpu_error_text(), words);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "cuInit %s: status %#x", init,
          (unsigned)status);
}

static void drivers(void)
{
    driver_says("100", -ENODEV, "finds no GPU|CUDA_ERROR_FAKE_100|nvidia-smi|CPU threads");
    driver_says("34", -EIO, "toolkit's stub|LD_LIBRARY_PATH|CPU threads");
    driver_says("803", -EIO, "different versions|reboot|CPU threads");
    driver_says("999", -EIO, "does not start|CUDA_ERROR_FAKE_999|nvidia-smi|CPU threads");
}

/* ---- Opening ---- */

static void opening(void)
{
    static const struct {
        const char *call;
        int result;
        int error;
        const char *words;
    } rows[] = {
        {"cuDeviceGetCount", 999, -EIO, "how many GPUs|FAKE_999"},
        {"cuDeviceGet", 101, -EIO, "cuda:1|FAKE_101"},
        {"cuDevicePrimaryCtxRetain", 2, -ENOMEM, "cuda:1|Fake GPU 1|context|nvidia-smi"},
        {"cuDevicePrimaryCtxRetain", 46, -EIO, "cuda:1|FAKE_46"},
        {"cuCtxPushCurrent_v2", 201, -EIO, "cuda:1|context"},
        {"cuStreamCreate", 2, -EIO, "stream"},
    };
    struct db_gpu_config config = {.index = 1};
    struct db_gpu *gpu;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake->fail_call = rows[i].call;
        fake->fail_result = rows[i].result;
        int error = cuda->open(&config, &gpu);
        CHECK(error == rows[i].error, "%s: %d: %s", rows[i].call, error, db_gpu_error_text());
        expect_words(rows[i].call, db_gpu_error_text(), rows[i].words);
        fake->fail_call = NULL;
        expect_nothing(fake, rows[i].call);
    }
    config.index = 2;
    CHECK(cuda->open(&config, &gpu) == -ENODEV, "GPU 2 of 2");
    expect_words("index", db_gpu_error_text(), "cuda:2|shows 2|CUDA_VISIBLE_DEVICES");
    uint32_t count = 7;
    fake->device_count = 0;
    CHECK(cuda->count(&count) == -ENODEV && count == 0, "%u GPUs", count);
    CHECK(cuda->open(&config, &gpu) == -ENODEV, "no GPU");
    expect_words("no GPU", db_gpu_error_text(), "shows no GPU|CUDA_VISIBLE_DEVICES|CPU threads");
    fake->device_count = 2;
    expect_nothing(fake, "index");
}

static void properties(void)
{
    struct db_gpu_properties p;
    struct db_gpu *gpu = fake_open_gpu();

    CHECK(cuda->properties(gpu, &p) == 0, "%s", db_gpu_error_text());
    CHECK(strcmp(p.name, "Fake GPU 1") == 0 && strcmp(p.bus_id, "0000:01:00.0") == 0, "%s %s",
          p.name, p.bus_id);
    CHECK(p.multiprocessors == 4 && p.max_threads == 8192 && p.capability == 90, "%u %u %u",
          p.multiprocessors, p.max_threads, p.capability);
    CHECK(p.driver_version == 13000 && p.max_clock_hz == 1980000000, "%u", p.driver_version);
    CHECK(p.dma_buf, "the fake driver exports dma-bufs");
    CHECK(strcmp(p.bus_id, FAKE_NVML_BUS_ID) == 0 && cuda->stated_mhz(gpu) == FAKE_NVML_SM_MHZ,
          "%u MHz", cuda->stated_mhz(gpu));
    cuda->close(gpu);

    struct db_gpu_config unknown = {.index = 0};
    CHECK(cuda->open(&unknown, &gpu) == 0, "%s", db_gpu_error_text());
    CHECK(cuda->stated_mhz(gpu) == 0, "%u MHz of a GPU that NVML does not know",
          cuda->stated_mhz(gpu));
    cuda->close(gpu);
    expect_nothing(fake, "properties");
}

/* ---- Kernels ---- */

/* A GPU without kernels opens, for its memory, and keeps the reason. */
static void no_kernels(void)
{
    struct db_gpu *gpu = fake_open_gpu();
    uint64_t hz;

    int built = cuda->kernels(gpu);
    CHECK(built == 0 || built == -ENOSYS, "%d: %s", built, db_gpu_error_text());
    cuda->close(gpu);
    if (built)
        return;
    fake->fail_call = "cuModuleLoadData";
    fake->fail_result = 209;
    gpu = fake_open_gpu();
    db_gpu_fail(0, "another sentence");
    CHECK(cuda->kernels(gpu) == -ENOEXEC, "%s", db_gpu_error_text());
    expect_words("kernels", db_gpu_error_text(), "cuda:1|sm_90|no kernels|build it");
    CHECK(cuda->clock_hz(gpu, &hz) == -ENOEXEC, "clock");
    expect_words("clock", db_gpu_error_text(), "cuda:1|sm_90|no kernels|build it");
    cuda->close(gpu);
    expect_nothing(fake, "no kernels");
}

/* A function that is loaded at its first launch may wait for the kernel in flight, so all of an
 * image are loaded with it; a driver that cannot does without. */
static void eager_functions(struct db_gpu *gpu)
{
    static const struct {
        const char *fails;
        unsigned loaded;
    } rows[] = {
        {"nothing", FAKE_MODULE_FUNCTIONS},
        {"cuModuleGetFunctionCount", 0},
        {"cuModuleEnumerateFunctions", 0},
        {"cuFuncLoad", FAKE_MODULE_FUNCTIONS - 1},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned before = fake->functions_loaded;
        fake->fail_call = rows[i].fails;
        fake->fail_result = 999;
        CHECK(cuda->load(gpu, "image", 5) == 0, "%s fails: %s", rows[i].fails, db_gpu_error_text());
        CHECK(fake->functions_loaded - before == rows[i].loaded, "%s fails: %u are loaded",
              rows[i].fails, fake->functions_loaded - before);
    }
    fake->fail_call = NULL;
}

static void images(void)
{
    static const struct {
        int result;
        int error;
        const char *words;
    } rows[] = {
        {209, -ENOEXEC, "cuda:1|sm_90|no kernels|build it"},
        {222, -ENOEXEC, "CUDA 13.0|too old|later"},
        {200, -ENOEXEC, "CUDA 13.0|too old|later"},
        {2, -ENOMEM, "no memory for the kernels"},
        {999, -EIO, "cannot be loaded|FAKE_999"},
    };
    struct db_gpu *gpu = fake_open_gpu();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake->fail_call = "cuModuleLoadData";
        fake->fail_result = rows[i].result;
        int error = cuda->load(gpu, "image", 5);
        CHECK(error == rows[i].error, "%d: %d", rows[i].result, error);
        expect_words("load", db_gpu_error_text(), rows[i].words);
    }
    CHECK(cuda->load(gpu, "", 0) == -EINVAL, "0 bytes");
    eager_functions(gpu);
    int error = 0;
    for (int i = 0; i < 20 && !error; i++)
        error = cuda->load(gpu, "image", 5);
    CHECK(error == -ENOMEM, "20 images: %d", error);
    cuda->close(gpu);
    expect_nothing(fake, "images");
}

static int launch(struct db_gpu *gpu, const struct port_kernel *kernel, uint32_t ctas,
                  uint32_t threads, struct db_gpu_grid **grid)
{
    struct db_gpu_shape shape = {.ctas = ctas, .threads = threads, .shared_bytes = 128};
    struct some_args args = {.value = 42};

    return cuda->launch(gpu, kernel, shape, &args, grid);
}

static uint64_t ran_with;

static void remember(const struct fake_launch *launched)
{
    ran_with = ((const struct some_args *)launched->args)->value;
}

static void launches(void)
{
    struct db_gpu *gpu = fake_open_gpu();
    struct db_gpu_grid *grid, *second;

    CHECK(cuda->load(gpu, "image", 5) == 0, "%s", db_gpu_error_text());
    fake->run = remember;
    fake->polls_running = 3;
    CHECK(launch(gpu, &some_kernel, 4, 96, &grid) == 0, "%s", db_gpu_error_text());
    CHECK(ran_with == 42 && fake->last.ctas == 4 && fake->last.threads == 96 &&
              fake->last.shared_bytes == 128,
          "%llu %u %u %u", (unsigned long long)ran_with, fake->last.ctas, fake->last.threads,
          fake->last.shared_bytes);
    CHECK(!cuda->done(grid), "it still runs");

    /* 8 CTAs are resident at once: 4 more are possible, 5 are not. */
    CHECK(launch(gpu, &some_kernel, 5, 96, &second) == -EINVAL, "9 of 8 CTAs");
    expect_words("resident", db_gpu_error_text(), "some_kernel|5 CTAs|holds 8|in flight");
    CHECK(launch(gpu, &some_kernel, 4, 96, &second) == 0, "%s", db_gpu_error_text());
    CHECK(cuda->wait(second, port_now_ns() + SECOND_NS) == 0, "%s", db_gpu_error_text());
    CHECK(cuda->wait(grid, port_now_ns() + SECOND_NS) == 0, "%s", db_gpu_error_text());
    CHECK(launch(gpu, &some_kernel, 9, 96, &grid) == -EINVAL, "9 of 8 CTAs");
    expect_words("alone", db_gpu_error_text(), "some_kernel|9 CTAs|holds 8");
    CHECK(launch(gpu, &some_kernel, 0, 96, &grid) == -EINVAL, "no CTA");
    expect_words("no CTA", db_gpu_error_text(), "some_kernel|is empty");
    CHECK(launch(gpu, &some_kernel, 1, 2048, &grid) == -EINVAL, "2048 threads");
    expect_words("threads", db_gpu_error_text(), "some_kernel|2048|at most 1024");
    CHECK(launch(gpu, &missing_kernel, 1, 1, &grid) == -ENOENT, "no such kernel");
    expect_words("missing", db_gpu_error_text(), "no_such_kernel|none of|nvcc");

    static const char *const calls[] = {
        "cuCtxPushCurrent_v2", "cuModuleGetFunction", "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        "cuStreamCreate",      "cuEventCreate",       "cuFuncSetAttribute",
        "cuLaunchKernel",      "cuEventRecord"};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        int streams = fake->streams;
        fake->fail_call = calls[i];
        fake->fail_result = 999;
        CHECK(launch(gpu, &some_kernel, 1, 1, &grid) == -EIO, "%s", calls[i]);
        expect_words(calls[i], db_gpu_error_text(), "some_kernel|FAKE_999");
        CHECK(fake->streams == streams && fake->events == 0, "%s left a stream or an event",
              calls[i]);
    }
    cuda->close(gpu);
    expect_nothing(fake, "launches");
    fake->run = NULL;
    fake->polls_running = 0;
}

/* What a lost GPU holds is never given back; the next part begins with none of it. */
static void forget(void)
{
    memset(&fake->contexts, 0, (size_t)((char *)(fake + 1) - (char *)&fake->contexts));
}

/* After these a GPU is of no further use in its process. What it holds is never given back, because
 * to free it would wait for the kernel. */
static void lost_kernels(void)
{
    struct db_gpu *gpu = fake_open_gpu();
    struct db_gpu_buffer buffer;
    struct db_gpu_grid *grid, *second;

    CHECK(cuda->load(gpu, "image", 5) == 0, "%s", db_gpu_error_text());
    CHECK(cuda->alloc(gpu, DB_GPU_MEMORY_GPU, 100, &buffer) == 0, "%s", db_gpu_error_text());
    CHECK(launch(gpu, &some_kernel, 1, 1, &grid) == 0, "%s", db_gpu_error_text());
    CHECK(launch(gpu, &other_kernel, 1, 1, &second) == 0, "%s", db_gpu_error_text());
    fake->polls_running = UINT32_MAX;
    CHECK(cuda->wait(grid, port_now_ns() + SECOND_NS / 20) == -EIO, "no end");
    expect_words("no end", db_gpu_error_text(), "some_kernel|deadline|nothing can end it|cuda:1");
    CHECK(cuda->wait(second, port_now_ns() + SECOND_NS) == -EIO, "beside it");
    expect_words("beside it", db_gpu_error_text(), "other_kernel|no further use|cuda:1");
    CHECK(launch(gpu, &some_kernel, 1, 1, &grid) == -EIO, "after it");
    expect_words("after it", db_gpu_error_text(), "some_kernel|no further use|cuda:1");
    CHECK(cuda->copy(gpu, &grid, buffer.device, 8) == -EIO, "copy after it");
    cuda->free(gpu, &buffer);
    cuda->close(gpu);
    CHECK(fake->gpu_memory == 1, "it was freed under a running kernel");

    forget();
    fake->polls_running = 0;
    fake->fault = 700;
    gpu = fake_open_gpu();
    CHECK(cuda->load(gpu, "image", 5) == 0, "%s", db_gpu_error_text());
    CHECK(launch(gpu, &some_kernel, 1, 1, &grid) == 0, "%s", db_gpu_error_text());
    CHECK(cuda->wait(grid, port_now_ns() + SECOND_NS) == -EIO, "fault");
    expect_words("fault", db_gpu_error_text(), "some_kernel|faulted|FAKE_700|no more kernels");
    CHECK(launch(gpu, &some_kernel, 1, 1, &grid) == -EIO, "after a fault");
    cuda->close(gpu);
    fake->fault = 0;
    forget();

    gpu = fake_open_gpu();
    CHECK(cuda->load(gpu, "image", 5) == 0, "%s", db_gpu_error_text());
    CHECK(launch(gpu, &some_kernel, 1, 1, &grid) == 0, "%s", db_gpu_error_text());
    fake->fail_call = "cuCtxPushCurrent_v2";
    fake->fail_result = 201;
    CHECK(cuda->wait(grid, port_now_ns() + SECOND_NS) == -EIO, "nobody can tell");
    expect_words("nobody can tell", db_gpu_error_text(),
                 "some_kernel|may still run|no more kernels");
    cuda->close(gpu);
    forget();
}

int main(void)
{
    fake = fake_control();
    drivers();
    opening();
    properties();
    no_kernels();
    images();
    launches();
    lost_kernels();
    return 0;
}
