/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a real GPU reaches: its own, the driver's host memory, and pages of this process that
 * are registered with it; see gpu_cuda.h.
 */
#include "gpu_cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A dma-buf of GPU memory is made of the GPU's pages of 64 KiB. */
#define GPU_PAGE_BYTES 65536u

static uint64_t round_up(uint64_t value, size_t power)
{
    return (value + power - 1) & ~(uint64_t)(power - 1);
}

static struct cuda_memory *add(struct db_gpu_cuda *cuda, enum cuda_memory_kind kind)
{
    struct cuda_memory *memory = calloc(1, sizeof(*memory));

    if (!memory) {
        db_gpu_fail(-ENOMEM, "no memory to keep a GPU buffer in mind");
        return NULL;
    }
    memory->kind = kind;
    memory->uses = 1;
    memory->next = cuda->memory;
    cuda->memory = memory;
    return memory;
}

/* Gives back what is in mind, if the driver gave anything; the context is current. */
static void drop(struct db_gpu_cuda *cuda, struct cuda_memory *memory)
{
    const struct cuda_driver *driver = cuda->driver;

    for (struct cuda_memory **link = &cuda->memory; *link; link = &(*link)->next) {
        if (*link == memory) {
            *link = memory->next;
            break;
        }
    }
    if (memory->kind == CUDA_MEMORY_GPU && memory->base)
        driver->memory_free(memory->base);
    else if (memory->kind == CUDA_MEMORY_HOST && memory->host)
        driver->host_free(memory->host);
    else if (memory->kind == CUDA_MEMORY_MAPPED && memory->host)
        driver->host_unregister(memory->host);
    free(memory);
}

void cuda_memory_end(struct db_gpu_cuda *cuda)
{
    while (cuda->memory)
        drop(cuda, cuda->memory);
}

/* ---- Buffers ---- */

static int no_room(struct db_gpu_cuda *cuda, int result, const char *what)
{
    return cuda_fail(cuda, result == CUDA_OUT_OF_MEMORY ? -ENOMEM : -EIO, result, what);
}

static int alloc_gpu(struct db_gpu_cuda *cuda, struct cuda_memory *memory, size_t bytes)
{
    const struct cuda_driver *driver = cuda->driver;
    /* Whole pages of GPU and host, so that what is exported of it is within it. */
    size_t page = cuda->page_bytes > GPU_PAGE_BYTES ? cuda->page_bytes : GPU_PAGE_BYTES;
    size_t whole = round_up(bytes, page);

    int result = driver->memory_allocate(&memory->base, whole + page);
    if (result) {
        memory->base = 0;
        return no_room(cuda, result, "no GPU memory; see `nvidia-smi` for who holds it");
    }
    uint64_t aligned = round_up(memory->base, page);
    memory->device = (uint8_t *)(uintptr_t)aligned;
    result = driver->memory_set(aligned, 0, whole, cuda->copies);
    if (!result)
        result = driver->stream_wait(cuda->copies);
    return result ? cuda_fail(cuda, -EIO, result, "its memory cannot be cleared") : 0;
}

static int alloc_host(struct db_gpu_cuda *cuda, struct cuda_memory *memory, size_t bytes)
{
    const struct cuda_driver *driver = cuda->driver;
    void *host = NULL;
    uint64_t device = 0;

    int result = driver->host_allocate(&host, bytes, CUDA_HOST_PORTABLE | CUDA_HOST_DEVICEMAP);
    if (result)
        return no_room(cuda, result, "no pinned host memory; see `ulimit -l` and free memory");
    memory->host = host;
    result = driver->host_device_address(&device, host, 0);
    if (result)
        return cuda_fail(cuda, -EIO, result, "pinned host memory is not mapped into it");
    memset(host, 0, bytes);
    memory->device = (uint8_t *)(uintptr_t)device;
    return 0;
}

int cuda_alloc(struct db_gpu *gpu, enum db_gpu_memory kind, size_t bytes,
               struct db_gpu_buffer *buffer)
{
    struct db_gpu_cuda *cuda = (struct db_gpu_cuda *)gpu;

    if (!bytes)
        return db_gpu_fail(-EINVAL, "a GPU buffer of 0 bytes was asked for");
    int error = cuda_enter(cuda);
    if (error)
        return error;
    struct cuda_memory *memory =
        add(cuda, kind == DB_GPU_MEMORY_GPU ? CUDA_MEMORY_GPU : CUDA_MEMORY_HOST);
    if (memory) {
        memory->bytes = bytes;
        error = kind == DB_GPU_MEMORY_GPU ? alloc_gpu(cuda, memory, bytes)
                                          : alloc_host(cuda, memory, bytes);
    } else {
        error = -ENOMEM;
    }
    if (!error)
        *buffer = (struct db_gpu_buffer){
            .device = memory->device, .host = memory->host, .bytes = bytes, .kind = kind};
    else if (memory)
        drop(cuda, memory);
    cuda_leave(cuda);
    return error;
}

void cuda_free(struct db_gpu *gpu, struct db_gpu_buffer *buffer)
{
    struct db_gpu_cuda *cuda = (struct db_gpu_cuda *)gpu;

    /* On a broken GPU the memory stays: to free it would wait for the kernel. */
    if (buffer->device && cuda_enter(cuda) == 0) {
        struct cuda_memory *memory = cuda->memory;
        while (memory && memory->device != (uint8_t *)buffer->device)
            memory = memory->next;
        if (memory)
            drop(cuda, memory);
        cuda_leave(cuda);
    }
    memset(buffer, 0, sizeof(*buffer));
}

int cuda_copy(struct db_gpu *gpu, void *to, const void *from, size_t bytes)
{
    struct db_gpu_cuda *cuda = (struct db_gpu_cuda *)gpu;

    int error = cuda_enter(cuda);
    if (error)
        return error;
    int result = cuda->driver->memory_copy((uintptr_t)to, (uintptr_t)from, bytes, cuda->copies);
    if (!result)
        result = cuda->driver->stream_wait(cuda->copies);
    if (result)
        error = cuda_fail(cuda, -EIO, result, "a copy failed");
    cuda_leave(cuda);
    return error;
}

/* ---- Pages of this process ---- */

static struct cuda_memory *find_mapping(struct db_gpu_cuda *cuda, const uint8_t *first,
                                        const uint8_t *end)
{
    struct cuda_memory *memory = cuda->memory;

    while (memory && !(memory->kind == CUDA_MEMORY_MAPPED && memory->host <= first &&
                       end <= memory->host + memory->bytes))
        memory = memory->next;
    return memory;
}

/* Registers as I/O memory first, when that is what it is: hardware needs it, and the software
 * device's registers, which are ordinary memory, refuse it. */
static int register_pages(struct db_gpu_cuda *cuda, enum db_gpu_pages kind, uint8_t *first,
                          size_t bytes)
{
    const struct cuda_driver *driver = cuda->driver;
    unsigned flags = CUDA_HOST_PORTABLE | CUDA_HOST_DEVICEMAP;
    int as_io = CUDA_OK;
    char io_text[160] = "";

    if (kind == DB_GPU_PAGES_IO) {
        as_io = driver->host_register(first, bytes, flags | CUDA_HOST_IOMEMORY);
        if (as_io == CUDA_OK)
            return 0;
        snprintf(io_text, sizeof(io_text), "%s", cuda_result_text(driver, as_io));
    }
    int result = driver->host_register(first, bytes, flags);
    if (result == CUDA_OK)
        return 0;
    if (kind == DB_GPU_PAGES_IO)
        return db_gpu_fail(-EOPNOTSUPP,
                           "GPU cuda:%u (%s) cannot ring a doorbell: its page is refused as I/O "
                           "memory (%s) and as ordinary memory (%s); " DB_GPU_FORWARD ", "
                           "or load the nvidia module with "
                           "NVreg_RegistryDwords=\"PeerMappingOverride=1\"",
                           cuda->index, cuda->name, io_text, cuda_result_text(driver, result));
    if (result == CUDA_ALREADY_REGISTERED)
        return cuda_fail(cuda, -EBUSY, result,
                         "pages to map are registered already, by other code or in part");
    return no_room(cuda, result, "host memory cannot be mapped into it; see `ulimit -l`");
}

static int map_pages(struct db_gpu_cuda *cuda, enum db_gpu_pages kind, uint8_t *first, size_t bytes)
{
    uint64_t device = 0;
    struct cuda_memory *memory = add(cuda, CUDA_MEMORY_MAPPED);

    if (!memory)
        return -ENOMEM;
    int error = register_pages(cuda, kind, first, bytes);
    if (!error) {
        memory->host = first;
        memory->bytes = bytes;
        int result = cuda->driver->host_device_address(&device, first, 0);
        memory->device = (uint8_t *)(uintptr_t)device;
        if (result)
            error = cuda_fail(cuda, -EIO, result, "registered pages have no address in it");
    }
    if (error)
        drop(cuda, memory);
    return error;
}

int cuda_map(struct db_gpu *gpu, enum db_gpu_pages kind, void *host, size_t bytes, void **device)
{
    struct db_gpu_cuda *cuda = (struct db_gpu_cuda *)gpu;
    size_t page = cuda->page_bytes;
    uint8_t *first = (uint8_t *)((uintptr_t)host & ~(page - 1));
    uint8_t *end = (uint8_t *)round_up((uintptr_t)host + bytes, page);

    int error = cuda_enter(cuda);
    if (error)
        return error;
    /* Queues may share a page of registers, and the driver registers each page once. */
    struct cuda_memory *memory = find_mapping(cuda, first, end);
    if (memory)
        memory->uses++;
    else
        error = map_pages(cuda, kind, first, (size_t)(end - first));
    if (!error) {
        memory = find_mapping(cuda, first, end);
        *device = memory->device + ((uint8_t *)host - memory->host);
    }
    cuda_leave(cuda);
    return error;
}

void cuda_unmap(struct db_gpu *gpu, void *host)
{
    struct db_gpu_cuda *cuda = (struct db_gpu_cuda *)gpu;

    if (cuda_enter(cuda))
        return;
    struct cuda_memory *memory = find_mapping(cuda, host, (uint8_t *)host + 1);
    if (memory && --memory->uses == 0)
        drop(cuda, memory);
    cuda_leave(cuda);
}

/* The driver takes whole pages of the host alone: CUDA Driver API, cuMemGetHandleForAddressRange().
 */
int cuda_dma_buf(struct db_gpu *gpu, void *address, size_t bytes, int *fd, uint64_t *offset)
{
    struct db_gpu_cuda *cuda = (struct db_gpu_cuda *)gpu;
    uint64_t first = (uintptr_t)address & ~(cuda->page_bytes - 1);
    uint64_t end = round_up((uintptr_t)address + bytes, cuda->page_bytes);

    if (!cuda->driver->range_handle)
        return db_gpu_fail(-EOPNOTSUPP, "the NVIDIA driver exports no GPU memory as a dma-buf; "
                                        "drivers for CUDA 11.7 and later do");
    int error = cuda_enter(cuda);
    if (error)
        return error;
    int result = cuda->driver->range_handle(fd, first, end - first, CUDA_RANGE_DMA_BUF, 0);
    if (result)
        error = cuda_fail(cuda, -EOPNOTSUPP, result, "it exports no dma-buf of its memory");
    *offset = (uintptr_t)address - first;
    cuda_leave(cuda);
    return error;
}
