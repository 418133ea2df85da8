/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways to register GPU memory, in their order; see gpu_register.h.
 */
#include "gpu_register.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "error.h"

#define WHY_BYTES 384

/* `why` is the reason when it fails. */
static int through_dma_buf(const struct db_device *device, struct db_gpu *gpu,
                           const struct db_gpu_buffer *buffer, const struct db_gpu_ways *ways,
                           void *registration, char why[WHY_BYTES])
{
    uint64_t offset;
    int fd;

    int error = gpu->backend->dma_buf(gpu, buffer->device, buffer->bytes, &fd, &offset);
    if (error) {
        snprintf(why, WHY_BYTES, "%s", db_gpu_error_text());
        return error;
    }
    error = ways->dma_buf(registration, fd, offset);
    close(fd);
    snprintf(why, WHY_BYTES, "%s does not take it: %s", device->path.name, strerror(-error));
    return error;
}

int db_gpu_register(const struct db_device *device, struct db_gpu *gpu,
                    const struct db_gpu_buffer *buffer, const char *what,
                    const struct db_gpu_ways *ways, void *registration)
{
    char why[WHY_BYTES];

    int dma_buf = through_dma_buf(device, gpu, buffer, ways, registration, why);
    if (!dma_buf)
        return 0;
    int peer_memory = ways->peer_memory(registration);
    if (!peer_memory)
        return 0;
    /* To a kernel without the module the address is not mapped: -EFAULT. */
    return db_fail(peer_memory == -EFAULT ? dma_buf : peer_memory,
                   "%s of %zu bytes in GPU memory cannot be registered with %s, neither through a "
                   "dma-buf (%s) nor as peer memory (%s); load the module nvidia_peermem, or use "
                   "an NVIDIA driver and a kernel with dma-buf, or host memory; `doorbell info` "
                   "says what there is",
                   what, buffer->bytes, device->path.name, why, strerror(-peer_memory));
}
