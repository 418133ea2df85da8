/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CUDA driver that a test controls: GPU memory is host memory, a launch calls the test, and any
 * call can be made to fail. Built as libcuda.so.1, which the library finds by LD_LIBRARY_PATH.
 * Included by fake_driver.c and by the tests over it, which get the one struct fake_driver from
 * the library's symbol "fake_driver".
 *
 * A program that knows nothing of it is steered by the environment: FAKE_DRIVER_INIT is what
 * cuInit() returns, FAKE_DRIVER_VERSION the version, FAKE_DRIVER_COUNT how many GPUs there are,
 * FAKE_DRIVER_LOAD what cuModuleLoadData() returns; with FAKE_DRIVER_DMA_BUF=0 no dma-bufs are
 * exported.
 */
#ifndef DOORBELL_TESTS_GPU_FAKE_DRIVER_H
#define DOORBELL_TESTS_GPU_FAKE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_launch {
    char name[64];
    unsigned ctas;
    unsigned threads;
    unsigned shared_bytes;
    const void *args;
};

/* What fake_nvml.c knows, which is built as libnvidia-ml.so.1: the second GPU. */
#define FAKE_NVML_BUS_ID "0000:01:00.0"
#define FAKE_NVML_SM_MHZ 1755u

#define FAKE_MODULE_FUNCTIONS 3 /* as many has each module, as the driver counts them */

/* What a dma-buf holds, which is a file here: the memory that it stands for. */
struct fake_dma_buf {
    uint64_t address;
    uint64_t bytes;
};

struct fake_driver {
    /* What happens. */
    const char *fail_call; /* the driver's symbol, "cuMemAlloc_v2" */
    int fail_result;       /* that it returns then, once or always */
    bool fail_always;      /* else the failure is forgotten when it happened */
    bool refuse_io;        /* I/O memory is not what ordinary pages are: CUDA_ERROR_INVALID_VALUE */
    bool refuse_doorbells; /* what was refused so is refused as ordinary memory too */
    bool refuse_pages;     /* no page is registered at all: CUDA_ERROR_NOT_PERMITTED */
    uint64_t map_offset;   /* what host memory's address in the GPU differs by */
    unsigned polls_running; /* how often a kernel is not ready; UINT32_MAX: for ever */
    int fault;              /* what asking for a kernel's end returns then */
    int blocks_per_sm;      /* that are resident at once */
    int device_count;
    size_t page_bytes;                             /* of the host, of which dma-bufs are made */
    void (*run)(const struct fake_launch *launch); /* NULL: kernels do nothing */

    /* What happened. */
    struct fake_launch last;
    unsigned io_registrations; /* as I/O memory, granted */
    unsigned functions_loaded; /* ahead of their first use */

    /* What lives. */
    int contexts;
    int pushed; /* contexts on the stacks of all threads */
    int modules;
    int streams;
    int events;
    int gpu_memory;
    int host_memory;
    int registrations;
};

#endif
