/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU as the host uses it: memory that it reaches, and kernels launched on it. One table of
 * functions for each kind: "cuda", a real one through the driver; "cpu", one that CPU threads play.
 *
 * Included by the library, the benchmarks and the tests; kernels are declared by
 * doorbell/impl/port_kernel.h. Cold path only: nothing here is called while data moves.
 *
 * Every function that can fail returns 0 or a negative errno, and leaves a sentence for the user in
 * db_gpu_error_text(); those of launch() and wait() name the kernel. One host thread at a time may
 * use a struct db_gpu; done() and copy() are for any.
 */
#ifndef DOORBELL_GPU_H
#define DOORBELL_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <doorbell/impl/port_kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CUDA's limit, kept by the CPU backend so that kernels stay portable. */
#define DB_GPU_MAX_CTA_THREADS 1024

struct db_gpu_config {
    uint32_t index; /* which GPU of the kind, in the driver's order */
    uint32_t
        workers; /* "cpu": how many OS threads play its SMs; 0 = one less than there are cores */
};

struct db_gpu_properties {
    char name[128];
    uint32_t multiprocessors; /* "cpu": OS threads that run CTAs */
    uint32_t max_cta_threads;
    uint32_t max_threads; /* of one grid, all of them resident */
    uint64_t memory_bytes;
    uint64_t max_clock_hz; /* highest rate of port_clock() */

    /* "cuda" only; else zero. */
    char bus_id[32];         /* PCI address, as nvidia-smi prints it */
    uint32_t capability;     /* 10 * major + minor: 90 for sm_90 */
    uint32_t driver_version; /* of CUDA that the driver supports: 1000 * major + 10 * minor */
    bool maps_host;          /* kernels reach pinned host memory */
    bool registers_host;     /* and host memory that was not allocated as such */
    bool host_atomics;       /* atomics on host memory are atomic for the CPU too */
    bool dma_buf;            /* a NIC reaches GPU memory through a file descriptor of it */
    bool peer_memory;        /* or through the driver's peer-memory module */
};

enum db_gpu_memory {
    DB_GPU_MEMORY_HOST, /* pinned, mapped into the GPU */
    DB_GPU_MEMORY_GPU,  /* the GPU's own; on "cpu" it is host memory */
};

struct db_gpu_buffer {
    void *device; /* address for kernels */
    void *host;   /* address for the host; NULL when only copies reach the memory */
    size_t bytes;
    enum db_gpu_memory kind;
};

enum db_gpu_pages {
    DB_GPU_PAGES_MEMORY, /* ordinary memory of this process */
    DB_GPU_PAGES_IO,     /* registers of a NIC: a mapped UAR page */
};

/* A fat binary inside the program: its first byte, and the one behind its last. */
struct db_gpu_image {
    const char *start;
    const char *end;
};

/* The shape of a grid. All of its CTAs are resident at once, so that CTAs may wait for each other;
 * a shape for which that cannot be is refused. */
struct db_gpu_shape {
    uint32_t ctas;
    uint32_t threads;      /* of each CTA */
    uint32_t shared_bytes; /* what port_shared() points to */
};

struct db_gpu {
    const struct db_gpu_backend *backend; /* a backend's own state begins with this struct */
};

struct db_gpu_grid; /* a kernel in flight */

struct db_gpu_backend {
    const char *kind;

    /* How many GPUs of this kind there are. -ENODEV: none, or no driver. */
    int (*count)(uint32_t *count);

    /* Takes a GPU into use. -ENODEV: no such GPU, or no driver. */
    int (*open)(const struct db_gpu_config *config, struct db_gpu **gpu);

    /* Ends what is still in flight and frees the GPU. Its buffers must have been freed. */
    void (*close)(struct db_gpu *gpu);

    int (*properties)(struct db_gpu *gpu, struct db_gpu_properties *properties);

    /* Whether kernels of this build run on it, as far as the library's own were loaded by open():
     * 0, -ENOSYS (it was built without nvcc), or as load(). */
    int (*kernels)(struct db_gpu *gpu);

    /* The present rate of port_clock() in a kernel, in ticks a second, measured: may block for
     * 10 ms. Where kernels() fails, as that. */
    int (*clock_hz)(struct db_gpu *gpu, uint64_t *hz);

    /* What the driver says that rate is, in MHz; 0 when it does not tell. */
    uint32_t (*stated_mhz)(struct db_gpu *gpu);

    /* Makes the kernels of a fat binary known. "cpu" needs none: its kernels are linked in.
     * -ENOEXEC: it has none for this GPU, or the driver is too old for it. */
    int (*load)(struct db_gpu *gpu, const void *image, size_t bytes);

    /* Zeroed memory, aligned to the host's page at least. The caller frees it. -ENOMEM. */
    int (*alloc)(struct db_gpu *gpu, enum db_gpu_memory kind, size_t bytes,
                 struct db_gpu_buffer *buffer);
    void (*free)(struct db_gpu *gpu, struct db_gpu_buffer *buffer);

    /* Copies between any two addresses, host's or device's; done when it returns. */
    int (*copy)(struct db_gpu *gpu, void *to, const void *from, size_t bytes);

    /* Lets kernels reach memory of this process; `device` is the address of `host` there. The pages
     * stay the caller's and must be unmapped here, as often as they were mapped, before they go. */
    int (*map)(struct db_gpu *gpu, enum db_gpu_pages kind, void *host, size_t bytes, void **device);
    void (*unmap)(struct db_gpu *gpu, void *host);

    /* A dma-buf file descriptor of memory within a GPU buffer that alloc() gave; the caller closes
     * it. The dma-buf is whole pages of the host, and `address` lies `*offset` bytes into it.
     * -EOPNOTSUPP: there is none. */
    int (*dma_buf)(struct db_gpu *gpu, void *address, size_t bytes, int *fd, uint64_t *offset);

    /*
     * Starts a grid and returns at once; `args` (kernel->args_bytes of them) are copied. Several
     * may be in flight. What the host wrote before is visible to the kernel. -EINVAL: the shape is
     * not possible; -ENOMEM.
     */
    int (*launch)(struct db_gpu *gpu, const struct port_kernel *kernel, struct db_gpu_shape shape,
                  const void *args, struct db_gpu_grid **grid);

    /* Whether wait() would return at once. From any thread. */
    bool (*done)(struct db_gpu_grid *grid);

    /*
     * Blocks until the grid has ended or the host's port_now_ns() passes `deadline_ns`, and frees
     * it: `grid` is gone whatever the result. What the kernel wrote is visible to the host after 0.
     * -ETIMEDOUT: the deadline passed, and the grid was ended; the sentence says which threads had
     * not returned and what they waited for. -EDEADLK, -EINVAL: the kernel misused a warp or block
     * operation ("cpu" only). -EIO: a grid could not be ended, or faulted; the GPU is of no further
     * use.
     */
    int (*wait)(struct db_gpu_grid *grid, uint64_t deadline_ns);
};

extern const struct db_gpu_backend db_gpu_cpu_backend;
extern const struct db_gpu_backend db_gpu_cuda_backend;

/* Words in which a sentence offers another way; a caller may add how it is asked for there. */
#define DB_GPU_USE_CPU "use the GPU that CPU threads play"
#define DB_GPU_FORWARD "let a CPU thread forward it" /* a doorbell: db_queue_attr.forwarded */

/* The sentence of the last failure in the calling thread, "" before the first. It stays until the
 * thread's next failure. */
const char *db_gpu_error_text(void);

/* For backends: leaves a sentence and returns `error`. */
__attribute__((format(printf, 2, 3))) int db_gpu_fail(int error, const char *format, ...);

#ifdef __cplusplus
}
#endif

#endif
