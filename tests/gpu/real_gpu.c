/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: on a real GPU kernels run and see what they should: each kind of memory, copies while a
 * kernel runs, pages of a file as a doorbell's page, two grids at once; the measured clock is a
 * clock; and a kernel that faults or outlives its deadline ends in a sentence. Skipped without a
 * GPU or without kernels in this build.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/kernels/clock.h"
#include "tests/check.h"
#include <doorbell/gpu.h>
#include <string.h>

#define MS UINT64_C(1000000)

static const struct db_gpu_backend *const cuda = &db_gpu_cuda_backend;

static struct db_gpu *open_gpu(uint32_t index)
{
    struct db_gpu_config config = {.index = index};
    struct db_gpu *gpu;

    CHECK(cuda->open(&config, &gpu) == 0, "%s", db_gpu_error_text());
    return gpu;
}

static struct db_gpu_grid *start(struct db_gpu *gpu, uint64_t ns, void *read)
{
    struct db_clock_args args = {.ns = ns, .read = read};
    struct db_gpu_shape shape = {.ctas = 1, .threads = 1};
    struct db_gpu_grid *grid;

    CHECK(cuda->launch(gpu, &db_clock, shape, &args, &grid) == 0, "%s", db_gpu_error_text());
    return grid;
}

static void finish(struct db_gpu_grid *grid)
{
    CHECK(cuda->wait(grid, port_now_ns() + 5000 * MS) == 0, "%s", db_gpu_error_text());
}

/* A reading of both clocks over `ns` makes sense. */
static void check_reading(const uint64_t *read, uint64_t ns, const char *where)
{
    uint64_t took = read[2] - read[0];
    double ghz = (double)(read[3] - read[1]) / (double)took;

    CHECK(took >= ns && took < 10 * ns, "%s: %llu ns", where, (unsigned long long)took);
    CHECK(ghz > 0.1 && ghz < 5, "%s: %.2f GHz", where, ghz);
}

static void memory(struct db_gpu *gpu)
{
    struct db_gpu_buffer host, own;
    uint64_t read[4];

    CHECK(cuda->alloc(gpu, DB_GPU_MEMORY_HOST, sizeof(read), &host) == 0, "%s",
          db_gpu_error_text());
    CHECK(cuda->alloc(gpu, DB_GPU_MEMORY_GPU, sizeof(read), &own) == 0, "%s", db_gpu_error_text());
    finish(start(gpu, MS, host.device));
    check_reading(host.host, MS, "pinned host memory");

    finish(start(gpu, MS, own.device));
    CHECK(cuda->copy(gpu, read, own.device, sizeof(read)) == 0, "%s", db_gpu_error_text());
    check_reading(read, MS, "GPU memory");

    /* A copy does not wait for a kernel in flight. */
    struct db_gpu_grid *grid = start(gpu, 500 * MS, own.device);
    CHECK(cuda->copy(gpu, host.host, host.device, sizeof(read)) == 0, "%s", db_gpu_error_text());
    CHECK(!cuda->done(grid), "the copy waited for the kernel");
    finish(grid);
    cuda->free(gpu, &host);
    cuda->free(gpu, &own);
}

/* What the software device's registers are: pages of a file in memory. */
static void file_pages(struct db_gpu *gpu)
{
    int fd = memfd_create("doorbell", 0);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0, "memfd: %s", strerror(errno));
    uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *device;

    CHECK(page != MAP_FAILED, "mmap: %s", strerror(errno));
    CHECK(cuda->map(gpu, DB_GPU_PAGES_IO, page + 256, 32, &device) == 0, "%s", db_gpu_error_text());
    finish(start(gpu, MS, device));
    check_reading(page + 256, MS, "a mapped page");
    cuda->unmap(gpu, page + 256);
    munmap(page, 4096);
    close(fd);
}

static void two_grids(struct db_gpu *gpu)
{
    struct db_gpu_buffer buffer;

    CHECK(cuda->alloc(gpu, DB_GPU_MEMORY_HOST, 8 * sizeof(uint64_t), &buffer) == 0, "%s",
          db_gpu_error_text());
    uint64_t *read = buffer.host;
    struct db_gpu_grid *one = start(gpu, 300 * MS, buffer.device);
    struct db_gpu_grid *two = start(gpu, 300 * MS, (uint64_t *)buffer.device + 4);
    finish(two);
    finish(one);
    CHECK(read[0] < read[6] && read[4] < read[2], "they ran one after the other");
    cuda->free(gpu, &buffer);
}

static void clock_rate(struct db_gpu *gpu)
{
    struct db_gpu_properties properties;
    uint64_t hz = 0;

    CHECK(cuda->properties(gpu, &properties) == 0, "%s", db_gpu_error_text());
    CHECK(cuda->clock_hz(gpu, &hz) == 0, "%s", db_gpu_error_text());
    CHECK((double)hz < 1.1 * (double)properties.max_clock_hz, "%.0f MHz of at most %.0f",
          (double)hz / 1e6, (double)properties.max_clock_hz / 1e6);
    printf("%s: sm_%u, %u SMs, SM clock %.0f MHz measured, %u MHz stated\n", properties.name,
           properties.capability, properties.multiprocessors, (double)hz / 1e6,
           cuda->stated_mhz(gpu));
}

/* Each in a process of its own, whose end gives the GPU back. */
static void lost_kernel(void (*lose)(void), const char *what)
{
    fflush(stdout);
    pid_t child = fork();
    int status;

    if (child == 0) {
        lose();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0, "%s: status %#x", what,
          (unsigned)status);
}

static void outlive(void)
{
    struct db_gpu *gpu = open_gpu(0);
    struct db_gpu_buffer buffer;

    CHECK(cuda->alloc(gpu, DB_GPU_MEMORY_HOST, 4096, &buffer) == 0, "%s", db_gpu_error_text());
    struct db_gpu_grid *grid = start(gpu, 1500 * MS, buffer.device);
    CHECK(cuda->wait(grid, port_now_ns() + 100 * MS) == -EIO, "it ended");
    CHECK(strstr(db_gpu_error_text(), "db_clock had not ended"), "%s", db_gpu_error_text());
    CHECK(cuda->alloc(gpu, DB_GPU_MEMORY_HOST, 4096, &buffer) == -EIO, "it is of use");
    printf("%s\n", db_gpu_error_text());
    fflush(stdout);
}

static void fault(void)
{
    struct db_gpu *gpu = open_gpu(0);
    struct db_gpu_grid *grid = start(gpu, MS, NULL);

    CHECK(cuda->wait(grid, port_now_ns() + 5000 * MS) == -EIO, "it ended well");
    CHECK(strstr(db_gpu_error_text(), "db_clock faulted"), "%s", db_gpu_error_text());
    printf("%s\n", db_gpu_error_text());
    fflush(stdout);
}

int main(void)
{
    uint32_t count = 0;
    uint64_t hz;

    /* Children first: the driver does not live through a fork. */
    pid_t child = fork();
    int status;
    if (child == 0)
        _exit(cuda->count(&count) == 0 && count > 0 ? 0 : 77);
    CHECK(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
    if (status != 0)
        SKIP("no GPU");
    lost_kernel(outlive, "a kernel that outlives its deadline");
    lost_kernel(fault, "a kernel that faults");

    CHECK(cuda->count(&count) == 0, "%s", db_gpu_error_text());
    for (uint32_t i = 0; i < count; i++) {
        struct db_gpu *gpu = open_gpu(i);
        if (cuda->clock_hz(gpu, &hz) == -ENOSYS)
            SKIP("this build has no GPU kernels");
        clock_rate(gpu);
        memory(gpu);
        file_pages(gpu);
        two_grids(gpu);
        cuda->close(gpu);
    }
    return 0;
}
