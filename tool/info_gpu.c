/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPUs of this machine; see info_gpu.h.
 */
#include "info_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Maps a page of this process, as a queue's memory would be. */
static void try_mapping(struct db_gpu *gpu, struct info_gpu *info)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *device;

    if (page == MAP_FAILED) {
        snprintf(info->mapping, sizeof(info->mapping), "not tried: no memory");
        return;
    }
    if (gpu->backend->map(gpu, DB_GPU_PAGES_MEMORY, page, bytes, &device)) {
        snprintf(info->mapping, sizeof(info->mapping), "no: %s", db_gpu_error_text());
    } else {
        gpu->backend->unmap(gpu, page);
        snprintf(info->mapping, sizeof(info->mapping),
                 "yes: a queue's memory is mapped into it, and a doorbell register as I/O memory "
                 "first, as ordinary memory second");
    }
    munmap(page, bytes);
}

static void read_one(uint32_t index, struct info_gpu *info)
{
    struct db_gpu_config config = {.index = index};
    struct db_gpu *gpu;

    if (db_gpu_cuda_backend.open(&config, &gpu)) {
        snprintf(info->error, sizeof(info->error), "%s", db_gpu_error_text());
        return;
    }
    if (gpu->backend->properties(gpu, &info->properties))
        snprintf(info->error, sizeof(info->error), "%s", db_gpu_error_text());
    info->stated_mhz = gpu->backend->stated_mhz(gpu);
    if (gpu->backend->kernels(gpu))
        snprintf(info->kernels, sizeof(info->kernels), "no: %s", db_gpu_error_text());
    else
        snprintf(info->kernels, sizeof(info->kernels), "yes");
    try_mapping(gpu, info);
    gpu->backend->close(gpu);
}

void info_gpus_read(struct info_gpus *gpus)
{
    uint32_t count = 0;

    *gpus = (struct info_gpus){0};
    if (db_gpu_cuda_backend.count(&count)) {
        snprintf(gpus->why_none, sizeof(gpus->why_none), "%s", db_gpu_error_text());
        return;
    }
    gpus->gpu = calloc(count, sizeof(*gpus->gpu));
    if (!gpus->gpu) {
        snprintf(gpus->why_none, sizeof(gpus->why_none), "no memory for a list of %u", count);
        return;
    }
    gpus->count = count;
    for (uint32_t i = 0; i < count; i++)
        read_one(i, &gpus->gpu[i]);
}

void info_gpus_free(struct info_gpus *gpus)
{
    free(gpus->gpu);
    *gpus = (struct info_gpus){0};
}

const char *info_gpu_memory(const struct info_gpu *gpu, const char *software, const char **why)
{
    if (software) {
        *why = "the software device's engine runs on the CPU, which does not reach GPU memory; "
               "rings, records, CQs and payloads lie in host memory";
        return "none";
    }
    if (gpu->properties.dma_buf) {
        *why = gpu->properties.peer_memory
                   ? "the driver exports a dma-buf; where kernel or rdma-core takes none, peer "
                     "memory is next, whose module nvidia_peermem is loaded"
                   : "the driver exports a dma-buf; where kernel or rdma-core takes none, there is "
                     "no other way, since the module nvidia_peermem is not loaded";
        return "dma-buf";
    }
    if (gpu->properties.peer_memory) {
        *why = "the driver exports no dma-buf, and the module nvidia_peermem is loaded";
        return "peer memory";
    }
    *why = "the driver exports no dma-buf (its open kernel modules do), and the module "
           "nvidia_peermem is not loaded; use one of them, or host memory";
    return "none";
}
