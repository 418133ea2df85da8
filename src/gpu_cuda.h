/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A real GPU, through the CUDA driver: its state, shared by gpu_cuda.c (what it is),
 * gpu_cuda_memory.c (memory and mappings) and gpu_cuda_run.c (fat binaries and grids). Not for
 * others.
 *
 * All of them use the GPU's primary context, which other CUDA code of the process may use too, and
 * leave the calling thread's current context as it was.
 */
#ifndef DOORBELL_SRC_GPU_CUDA_H
#define DOORBELL_SRC_GPU_CUDA_H

#include "cuda_driver.h"
#include <doorbell/gpu.h>
#include <pthread.h>

#define CUDA_MAX_IMAGES 16

/* Memory that the GPU reaches, each kind released in its own way. */
enum cuda_memory_kind {
    CUDA_MEMORY_GPU,
    CUDA_MEMORY_HOST,   /* allocated by the driver */
    CUDA_MEMORY_MAPPED, /* somebody's pages, registered */
};

struct cuda_memory {
    struct cuda_memory *next;
    enum cuda_memory_kind kind;
    uint64_t base;   /* GPU: as the driver gave it, below `device` by the alignment */
    uint8_t *device; /* address for kernels */
    uint8_t *host;   /* NULL: GPU memory */
    size_t bytes;
    unsigned uses; /* CUDA_MEMORY_MAPPED: how often it was mapped */
};

struct db_gpu_cuda {
    struct db_gpu gpu;
    const struct cuda_driver *driver;
    int device;
    uint32_t index;
    char name[128];
    char bus_id[32];
    uint32_t capability;
    uint32_t multiprocessors;
    size_t page_bytes; /* of the host: 4 KiB on x86, often 64 KiB on Arm */
    struct CUctx_st *context;
    struct CUstream_st *copies; /* beside the grids, which copies must not wait for */
    struct CUmod_st *images[CUDA_MAX_IMAGES];
    uint32_t image_count;
    int kernels_error; /* of the library's own, with its sentence */
    char kernels_text[384];
    struct cuda_memory *memory;
    struct db_gpu_grid *grids;
    bool broken;              /* a kernel faulted or does not end: nothing of it is ever freed */
    struct db_gpu_grid *lost; /* what was in flight then */
    struct db_gpu_cuda *next_lost; /* of the GPUs that were closed broken */
};

struct db_gpu_grid {
    struct db_gpu_cuda *cuda;
    struct db_gpu_grid *next;
    const char *name;
    struct CUstream_st *stream;
    struct CUevent_st *end;
    uint32_t ctas;
    uint32_t max_ctas; /* of its kernel and shape that are resident at once on an idle GPU */
};

/* Makes the GPU's context current, until cuda_leave(). -EIO with a sentence when the GPU is of no
 * further use. */
int cuda_enter(struct db_gpu_cuda *cuda);
void cuda_leave(struct db_gpu_cuda *cuda);

/* A sentence about a call that failed: "what: CUDA_ERROR_...". Returns `error`. */
int cuda_fail(struct db_gpu_cuda *cuda, int error, int result, const char *what);

/* gpu_cuda_memory.c */
int cuda_alloc(struct db_gpu *gpu, enum db_gpu_memory kind, size_t bytes,
               struct db_gpu_buffer *buffer);
void cuda_free(struct db_gpu *gpu, struct db_gpu_buffer *buffer);
int cuda_copy(struct db_gpu *gpu, void *to, const void *from, size_t bytes);
int cuda_map(struct db_gpu *gpu, enum db_gpu_pages kind, void *host, size_t bytes, void **device);
void cuda_unmap(struct db_gpu *gpu, void *host);
int cuda_dma_buf(struct db_gpu *gpu, void *address, size_t bytes, int *fd, uint64_t *offset);

/* Forgets what was not freed; the context still stands. */
void cuda_memory_end(struct db_gpu_cuda *cuda);

/* gpu_cuda_run.c */
int cuda_load(struct db_gpu *gpu, const void *image, size_t bytes);
int cuda_launch(struct db_gpu *gpu, const struct port_kernel *kernel, struct db_gpu_shape shape,
                const void *args, struct db_gpu_grid **grid);
bool cuda_done(struct db_gpu_grid *grid);
int cuda_wait(struct db_gpu_grid *grid, uint64_t deadline_ns);

#endif
