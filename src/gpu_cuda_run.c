/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fat binaries and grids of a real GPU; see gpu_cuda.h.
 *
 * Each grid has a stream of its own, so that several run at once, and an event behind it, which the
 * host asks: no call here waits for a kernel without a deadline. A kernel that never returns cannot
 * be ended from outside, so the GPU is given up then.
 */
#include "gpu_cuda.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A grid that ends soon is noticed at once; a long one costs the host no core. */
#define EAGER_POLLS   2000
#define POLL_PAUSE_NS 50000

/* ---- Fat binaries ---- */

/* Functions are loaded at their first use otherwise, which may wait for a kernel in flight. */
static void load_functions(struct db_gpu_cuda *cuda, struct CUmod_st *image)
{
    const struct cuda_driver *driver = cuda->driver;
    unsigned count = 0;

    if (!driver->module_function_count || !driver->module_functions || !driver->function_load ||
        driver->module_function_count(&count, image) || count == 0)
        return;
    struct CUfunc_st **functions = calloc(count, sizeof(struct CUfunc_st *));
    if (functions && driver->module_functions(functions, count, image) == CUDA_OK)
        for (unsigned i = 0; i < count; i++)
            driver->function_load(functions[i]);
    free(functions);
}

static int refuse_image(struct db_gpu_cuda *cuda, int result)
{
    const char *text = cuda_result_text(cuda->driver, result);
    int major = cuda->driver->version / 1000, minor = cuda->driver->version % 1000 / 10;

    switch (result) {
    case CUDA_OUT_OF_MEMORY:
        return cuda_fail(cuda, -ENOMEM, result, "no memory for the kernels");
    case CUDA_NO_BINARY_FOR_GPU:
        return db_gpu_fail(-ENOEXEC,
                           "GPU cuda:%u (%s, sm_%u) has no kernels in this program (%s): build it "
                           "for that architecture, or " DB_GPU_USE_CPU,
                           cuda->index, cuda->name, cuda->capability, text);
    case CUDA_INVALID_IMAGE:
    case CUDA_UNSUPPORTED_PTX:
        return db_gpu_fail(-ENOEXEC,
                           "the NVIDIA driver, which supports CUDA %d.%d, is too old for the "
                           "kernels of this program (%s): install a later one, or " DB_GPU_USE_CPU,
                           major, minor, text);
    default:
        return cuda_fail(cuda, -EIO, result, "the kernels cannot be loaded");
    }
}

int cuda_load(struct db_gpu *gpu, const void *image, size_t bytes)
{
    struct db_gpu_cuda *cuda = (struct db_gpu_cuda *)gpu;
    struct CUmod_st *loaded = NULL;

    if (!bytes)
        return db_gpu_fail(-EINVAL, "a fat binary of 0 bytes holds no kernels");
    if (cuda->image_count == CUDA_MAX_IMAGES)
        return db_gpu_fail(-ENOMEM, "more than %d fat binaries on one GPU", CUDA_MAX_IMAGES);
    int error = cuda_enter(cuda);
    if (error)
        return error;
    int result = cuda->driver->module_load(&loaded, image);
    if (result) {
        error = refuse_image(cuda, result);
    } else {
        load_functions(cuda, loaded);
        cuda->images[cuda->image_count++] = loaded;
    }
    cuda_leave(cuda);
    return error;
}

/* ---- Grids ---- */

/* cuda_enter() for a kernel, which the sentence names. */
static int enter_for(struct db_gpu_cuda *cuda, const char *kernel)
{
    char text[256];
    int error = cuda_enter(cuda);

    if (!error)
        return 0;
    snprintf(text, sizeof(text), "%s", db_gpu_error_text());
    return db_gpu_fail(error, "kernel %s: %s", kernel, text);
}

static int find_function(struct db_gpu_cuda *cuda, const struct port_kernel *kernel,
                         struct CUfunc_st **function)
{
    int result = CUDA_NOT_FOUND;

    for (uint32_t i = 0; i < cuda->image_count && result == CUDA_NOT_FOUND; i++)
        result = cuda->driver->module_function(function, cuda->images[i], kernel->name);
    if (result == CUDA_NOT_FOUND)
        return db_gpu_fail(-ENOENT,
                           "kernel %s is in none of the %u fat binaries loaded on GPU cuda:%u; was "
                           "this program built without nvcc?",
                           kernel->name, cuda->image_count, cuda->index);
    return result ? cuda_fail(cuda, -EIO, result, kernel->name) : 0;
}

/* Whether all CTAs are resident at once, beside the grids in flight, which take their shares. */
static int check_resident(struct db_gpu_cuda *cuda, const struct port_kernel *kernel,
                          struct CUfunc_st *function, struct db_gpu_shape shape, uint32_t *most)
{
    int blocks = 0;
    double taken = 0;

    int result = cuda->driver->occupancy(&blocks, function, (int)shape.threads, shape.shared_bytes);
    if (result)
        return cuda_fail(cuda, -EIO, result, kernel->name);
    *most = (uint32_t)blocks * cuda->multiprocessors;
    for (const struct db_gpu_grid *grid = cuda->grids; grid; grid = grid->next)
        taken += (double)grid->ctas / grid->max_ctas;
    if (*most && (double)shape.ctas / *most + taken <= 1.0)
        return 0;
    return db_gpu_fail(-EINVAL,
                       "kernel %s: %u CTAs of %u threads with %u bytes of shared memory; GPU "
                       "cuda:%u (%s) holds %u of them at once%s",
                       kernel->name, shape.ctas, shape.threads, shape.shared_bytes, cuda->index,
                       cuda->name, *most, taken > 0 ? ", and other kernels are in flight" : "");
}

static void grid_free(struct db_gpu_grid *grid)
{
    const struct cuda_driver *driver = grid->cuda->driver;

    if (grid->end)
        driver->event_destroy(grid->end);
    if (grid->stream)
        driver->stream_destroy(grid->stream);
    free(grid);
}

/* Starts it; the context is current. */
static int start(struct db_gpu_grid *grid, const struct port_kernel *kernel,
                 struct CUfunc_st *function, struct db_gpu_shape shape, const void *args)
{
    struct db_gpu_cuda *cuda = grid->cuda;
    const struct cuda_driver *driver = cuda->driver;
    void *copy = malloc(kernel->args_bytes); /* the driver takes no pointer to constants */

    if (!copy)
        return db_gpu_fail(-ENOMEM, "kernel %s: no memory for its grid", kernel->name);
    memcpy(copy, args, kernel->args_bytes);
    void *parameters[] = {copy};
    int result = driver->stream_create(&grid->stream, CUDA_STREAM_ALONE);
    if (!result)
        result = driver->event_create(&grid->end, CUDA_EVENT_NO_TIMING);
    if (!result && shape.shared_bytes)
        result = driver->function_set(function, CUDA_FUNCTION_SHARED, (int)shape.shared_bytes);
    if (!result)
        result = driver->launch(function, shape.ctas, 1, 1, shape.threads, 1, 1, shape.shared_bytes,
                                grid->stream, parameters, NULL);
    if (!result)
        result = driver->event_record(grid->end, grid->stream);
    free(copy);
    if (result == CUDA_OK)
        return 0;
    int error = result == CUDA_OUT_OF_MEMORY             ? -ENOMEM
                : result == CUDA_LAUNCH_OUT_OF_RESOURCES ? -EINVAL
                                                         : -EIO;
    return db_gpu_fail(error, "kernel %s does not start on GPU cuda:%u (%s): %s", kernel->name,
                       cuda->index, cuda->name, cuda_result_text(driver, result));
}

int cuda_launch(struct db_gpu *gpu, const struct port_kernel *kernel, struct db_gpu_shape shape,
                const void *args, struct db_gpu_grid **launched)
{
    struct db_gpu_cuda *cuda = (struct db_gpu_cuda *)gpu;
    struct CUfunc_st *function = NULL;

    if (!shape.ctas || !shape.threads)
        return db_gpu_fail(-EINVAL, "kernel %s: a grid of %u CTAs of %u threads is empty",
                           kernel->name, shape.ctas, shape.threads);
    if (shape.threads > DB_GPU_MAX_CTA_THREADS)
        return db_gpu_fail(-EINVAL, "kernel %s: %u threads in a CTA; at most %d are possible",
                           kernel->name, shape.threads, DB_GPU_MAX_CTA_THREADS);
    int error = enter_for(cuda, kernel->name);
    if (error)
        return error;
    struct db_gpu_grid *grid = calloc(1, sizeof(*grid));
    if (!grid) {
        error = db_gpu_fail(-ENOMEM, "kernel %s: no memory for its grid", kernel->name);
        goto leave;
    }
    grid->cuda = cuda;
    grid->name = kernel->name;
    grid->ctas = shape.ctas;
    error = find_function(cuda, kernel, &function);
    if (!error)
        error = check_resident(cuda, kernel, function, shape, &grid->max_ctas);
    if (!error)
        error = start(grid, kernel, function, shape, args);
    if (error) {
        grid_free(grid);
        goto leave;
    }
    grid->next = cuda->grids;
    cuda->grids = grid;
    *launched = grid;
leave:
    cuda_leave(cuda);
    return error;
}

/* CUDA_OK when it has ended, CUDA_NOT_READY, or its fault; CUDA_UNKNOWN where nobody can tell. */
static int ask(struct db_gpu_grid *grid)
{
    if (cuda_enter(grid->cuda))
        return CUDA_UNKNOWN;
    int result = grid->cuda->driver->event_query(grid->end);
    cuda_leave(grid->cuda);
    return result;
}

bool cuda_done(struct db_gpu_grid *grid)
{
    return ask(grid) != CUDA_NOT_READY;
}

static int ask_until(struct db_gpu_grid *grid, uint64_t deadline_ns)
{
    const struct timespec pause = {.tv_nsec = POLL_PAUSE_NS};
    int result;

    for (uint32_t polls = 1;; polls++) {
        result = ask(grid);
        if (result != CUDA_NOT_READY || port_now_ns() > deadline_ns)
            return result;
        if (polls < EAGER_POLLS)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
}

int cuda_wait(struct db_gpu_grid *grid, uint64_t deadline_ns)
{
    struct db_gpu_cuda *cuda = grid->cuda;
    const char *name = grid->name;

    for (struct db_gpu_grid **link = &cuda->grids; *link; link = &(*link)->next) {
        if (*link == grid) {
            *link = grid->next;
            break;
        }
    }
    int result = cuda->broken ? CUDA_OK : ask_until(grid, deadline_ns);
    int error = enter_for(cuda, name);
    if (!error && result == CUDA_OK) {
        grid_free(grid);
        cuda_leave(cuda);
        return 0;
    }
    grid->next = cuda->lost;
    cuda->lost = grid;
    /* A fault is of the whole context, and a kernel that runs on may still use all its memory. */
    cuda->broken = true;
    if (error)
        return error;
    cuda_leave(cuda);
    if (result == CUDA_NOT_READY)
        return db_gpu_fail(-EIO,
                           "kernel %s had not ended at its deadline, and nothing can end it: GPU "
                           "cuda:%u (%s) takes no more kernels of this process",
                           name, cuda->index, cuda->name);
    if (result == CUDA_UNKNOWN)
        return db_gpu_fail(-EIO,
                           "kernel %s cannot be asked after any more, and may still run: GPU "
                           "cuda:%u (%s) takes no more kernels of this process",
                           name, cuda->index, cuda->name);
    return db_gpu_fail(-EIO,
                       "kernel %s faulted on GPU cuda:%u (%s), which takes no more kernels of this "
                       "process: %s",
                       name, cuda->index, cuda->name, cuda_result_text(cuda->driver, result));
}
