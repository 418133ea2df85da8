/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A real GPU, as the host sees it: the "cuda" row of gpu.h. Opening, properties and the clock are
 * here; the other parts are in the files that gpu_cuda.h names.
 */
#include "gpu_cuda.h"

#include "kernels/clock.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long the clock is measured: it is read at steps of the timer, of which the coarsest known is
 * a microsecond, so the rate is exact to 1 in 5,000. */
#define CLOCK_NS 5000000u

/* The fat binary of src/kernels/, empty in a build without nvcc, and the CUDA version that made it
 * and every other of this build (cmake/Kernels.cmake). */
extern const struct db_gpu_image db_kernel_images[];
extern const size_t db_kernel_image_count;
extern const uint32_t db_kernel_cuda_version;

int cuda_enter(struct db_gpu_cuda *cuda)
{
    if (cuda->broken)
        return db_gpu_fail(-EIO,
                           "GPU cuda:%u is of no further use in this process: a kernel on it "
                           "faulted or did not end",
                           cuda->index);
    int result = cuda->driver->context_push(cuda->context);
    return result ? cuda_fail(cuda, -EIO, result, "its context cannot be used") : 0;
}

void cuda_leave(struct db_gpu_cuda *cuda)
{
    struct CUctx_st *left;
    cuda->driver->context_pop(&left);
}

int cuda_fail(struct db_gpu_cuda *cuda, int error, int result, const char *what)
{
    return db_gpu_fail(error, "GPU cuda:%u (%s): %s: %s", cuda->index, cuda->name, what,
                       cuda_result_text(cuda->driver, result));
}

/* ---- Opening ---- */

static int cuda_count(uint32_t *count)
{
    const struct cuda_driver *driver;
    int devices = 0;

    *count = 0;
    int error = cuda_driver_load(&driver);
    if (error)
        return error;
    int result = driver->device_count(&devices);
    if (result)
        return db_gpu_fail(-EIO, "the NVIDIA driver does not tell how many GPUs there are: %s",
                           cuda_result_text(driver, result));
    if (devices <= 0)
        return db_gpu_fail(-ENODEV, "the NVIDIA driver shows no GPU; see `nvidia-smi` and "
                                    "CUDA_VISIBLE_DEVICES, or " DB_GPU_USE_CPU);
    *count = (uint32_t)devices;
    return 0;
}

static uint32_t attribute(const struct db_gpu_cuda *cuda, enum cuda_attribute which)
{
    int value = 0;

    if (cuda->driver->device_attribute(&value, (int)which, cuda->device) || value < 0)
        return 0;
    return (uint32_t)value;
}

static int identify(struct db_gpu_cuda *cuda)
{
    int result = cuda->driver->device_get(&cuda->device, (int)cuda->index);

    if (!result)
        result = cuda->driver->device_name(cuda->name, sizeof(cuda->name), cuda->device);
    if (!result)
        result = cuda->driver->device_bus_id(cuda->bus_id, sizeof(cuda->bus_id), cuda->device);
    if (result)
        return cuda_fail(cuda, -EIO, result, "the driver does not tell what it is");
    cuda->capability =
        10 * attribute(cuda, CUDA_CAPABILITY_MAJOR) + attribute(cuda, CUDA_CAPABILITY_MINOR);
    cuda->multiprocessors = attribute(cuda, CUDA_MULTIPROCESSORS);
    return 0;
}

/* The context and what the library needs in it. */
static int prepare(struct db_gpu_cuda *cuda)
{
    int result = cuda->driver->context_retain(&cuda->context, cuda->device);
    if (result)
        return cuda_fail(cuda, result == CUDA_OUT_OF_MEMORY ? -ENOMEM : -EIO, result,
                         "it gives no context; see `nvidia-smi` for who else uses it");
    int error = cuda_enter(cuda);
    if (error)
        return error;
    result = cuda->driver->stream_create(&cuda->copies, CUDA_STREAM_ALONE);
    if (result)
        error = cuda_fail(cuda, -EIO, result, "it gives no stream for copies");
    cuda_leave(cuda);
    return error;
}

static int load_own(struct db_gpu_cuda *cuda)
{
    uint32_t driver = (uint32_t)cuda->driver->version, made = db_kernel_cuda_version;
    int error = 0;

    if (db_kernel_image_count == 0)
        return db_gpu_fail(-ENOSYS, "this program has no GPU kernels: it was built without nvcc; "
                                    "build it with nvcc, or " DB_GPU_USE_CPU);
    if (driver / 1000 < made / 1000)
        return db_gpu_fail(-ENOEXEC,
                           "the NVIDIA driver supports CUDA %u.%u, but the kernels of this program "
                           "were made with CUDA %u.%u; install a later driver, or " DB_GPU_USE_CPU,
                           driver / 1000, driver % 1000 / 10, made / 1000, made % 1000 / 10);
    for (size_t i = 0; i < db_kernel_image_count && !error; i++)
        error = cuda_load(&cuda->gpu, db_kernel_images[i].start,
                          (size_t)(db_kernel_images[i].end - db_kernel_images[i].start));
    return error;
}

/* Every call that frees something would wait for the kernel that does not end, so all is kept until
 * the process ends; in a list, where tools that look for leaks find it. */
static void keep_lost(struct db_gpu_cuda *cuda)
{
    static struct db_gpu_cuda *lost;

    cuda->next_lost = __atomic_load_n(&lost, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&lost, &cuda->next_lost, cuda, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        continue;
}

static void cuda_close(struct db_gpu *gpu)
{
    struct db_gpu_cuda *cuda = (struct db_gpu_cuda *)gpu;
    const struct cuda_driver *driver = cuda->driver;

    while (cuda->grids && !cuda->broken)
        cuda_wait(cuda->grids, 0);
    if (cuda->broken) {
        keep_lost(cuda);
        return;
    }
    if (cuda->context && cuda_enter(cuda) == 0) {
        cuda_memory_end(cuda);
        for (uint32_t i = 0; i < cuda->image_count; i++)
            driver->module_unload(cuda->images[i]);
        if (cuda->copies)
            driver->stream_destroy(cuda->copies);
        cuda_leave(cuda);
    }
    if (cuda->context)
        driver->context_release(cuda->device);
    free(cuda);
}

static int cuda_open(const struct db_gpu_config *config, struct db_gpu **gpu)
{
    const struct cuda_driver *driver;
    uint32_t count;
    int error = cuda_count(&count);

    if (error)
        return error;
    if (config->index >= count)
        return db_gpu_fail(-ENODEV,
                           "GPU cuda:%u does not exist: the driver shows %u, from cuda:0; see "
                           "CUDA_VISIBLE_DEVICES",
                           config->index, count);
    cuda_driver_load(&driver);
    struct db_gpu_cuda *cuda = calloc(1, sizeof(*cuda));
    if (!cuda)
        return db_gpu_fail(-ENOMEM, "no memory for GPU cuda:%u", config->index);
    cuda->gpu.backend = &db_gpu_cuda_backend;
    cuda->driver = driver;
    cuda->index = config->index;
    cuda->page_bytes = (size_t)sysconf(_SC_PAGESIZE);

    error = identify(cuda);
    if (!error)
        error = prepare(cuda);
    if (error) {
        cuda_close(&cuda->gpu);
        return error;
    }
    /* Its memory is of use without kernels. */
    cuda->kernels_error = load_own(cuda);
    if (cuda->kernels_error)
        snprintf(cuda->kernels_text, sizeof(cuda->kernels_text), "%s", db_gpu_error_text());
    *gpu = &cuda->gpu;
    return 0;
}

/* ---- What it is ---- */

static int cuda_properties(struct db_gpu *gpu, struct db_gpu_properties *properties)
{
    struct db_gpu_cuda *cuda = (struct db_gpu_cuda *)gpu;
    size_t bytes = 0;

    int result = cuda->driver->device_memory(&bytes, cuda->device);
    if (result)
        return cuda_fail(cuda, -EIO, result, "the driver does not tell its memory");
    *properties = (struct db_gpu_properties){
        .multiprocessors = cuda->multiprocessors,
        .max_cta_threads = attribute(cuda, CUDA_MAX_THREADS_PER_BLOCK),
        .max_threads = cuda->multiprocessors * attribute(cuda, CUDA_MAX_THREADS_PER_MULTIPROCESSOR),
        .memory_bytes = bytes,
        .max_clock_hz = 1000ull * attribute(cuda, CUDA_CLOCK_KHZ),
        .capability = cuda->capability,
        .driver_version = (uint32_t)cuda->driver->version,
        .maps_host = attribute(cuda, CUDA_CAN_MAP_HOST_MEMORY),
        .registers_host = attribute(cuda, CUDA_HOST_REGISTER_SUPPORTED),
        .host_atomics = attribute(cuda, CUDA_HOST_NATIVE_ATOMICS),
        .dma_buf = attribute(cuda, CUDA_DMA_BUF) && cuda->driver->range_handle,
        .peer_memory = attribute(cuda, CUDA_GPU_DIRECT_RDMA) &&
                       access("/sys/module/nvidia_peermem", F_OK) == 0,
    };
    snprintf(properties->name, sizeof(properties->name), "%s", cuda->name);
    snprintf(properties->bus_id, sizeof(properties->bus_id), "%s", cuda->bus_id);
    return 0;
}

static int cuda_kernels(struct db_gpu *gpu)
{
    const struct db_gpu_cuda *cuda = (const struct db_gpu_cuda *)gpu;

    return cuda->kernels_error ? db_gpu_fail(cuda->kernels_error, "%s", cuda->kernels_text) : 0;
}

static int cuda_clock_hz(struct db_gpu *gpu, uint64_t *hz)
{
    struct db_gpu_cuda *cuda = (struct db_gpu_cuda *)gpu;
    struct db_gpu_shape shape = {.ctas = 1, .threads = 1};
    struct db_gpu_buffer buffer;
    struct db_gpu_grid *grid;

    int error = cuda_kernels(gpu);
    if (error)
        return error;
    error = cuda_alloc(gpu, DB_GPU_MEMORY_HOST, 4 * sizeof(uint64_t), &buffer);
    if (error)
        return error;
    struct db_clock_args args = {.ns = CLOCK_NS, .read = buffer.device};
    error = cuda_launch(gpu, &db_clock, shape, &args, &grid);
    if (!error)
        error = cuda_wait(grid, port_now_ns() + 2000000000u);
    const uint64_t *read = buffer.host;
    if (!error && read[2] <= read[0])
        error = db_gpu_fail(-EIO, "the timer of GPU cuda:%u stands still", cuda->index);
    if (!error)
        *hz = (uint64_t)((double)(read[3] - read[1]) * 1e9 / (double)(read[2] - read[0]));
    cuda_free(gpu, &buffer);
    return error;
}

static uint32_t cuda_stated_mhz(struct db_gpu *gpu)
{
    return cuda_stated_sm_mhz(((struct db_gpu_cuda *)gpu)->bus_id);
}

const struct db_gpu_backend db_gpu_cuda_backend = {
    .kind = "cuda",
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .properties = cuda_properties,
    .kernels = cuda_kernels,
    .clock_hz = cuda_clock_hz,
    .stated_mhz = cuda_stated_mhz,
    .load = cuda_load,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy = cuda_copy,
    .map = cuda_map,
    .unmap = cuda_unmap,
    .dma_buf = cuda_dma_buf,
    .launch = cuda_launch,
    .done = cuda_done,
    .wait = cuda_wait,
};
