/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory registered with a NIC, as a region or as a queue's rings. Included by region.c and
 * queue_objects.c.
 *
 * There are two ways. A dma-buf is a file descriptor of the memory, which the GPU's driver gives
 * and the kernel's RDMA drivers take. Peer memory is an address alone, which the RDMA drivers ask
 * the module nvidia_peermem about.
 */
#ifndef DOORBELL_SRC_GPU_REGISTER_H
#define DOORBELL_SRC_GPU_REGISTER_H

#include <doorbell/gpu.h>

struct db_device;

/* How one kind of registration is made. Each returns 0 or a negative errno value. */
struct db_gpu_ways {
    /* The memory begins `offset` bytes into the dma-buf `fd`, which stays the caller's. */
    int (*dma_buf)(void *registration, int fd, uint64_t offset);
    int (*peer_memory)(void *registration);
};

/* Makes `registration` over GPU memory: through a dma-buf, or else as peer memory. `what` is for
 * the user. Returns 0; or -EOPNOTSUPP when this machine has neither way, or the errno of the one
 * that it has, with a sentence that gives both reasons. */
int db_gpu_register(const struct db_device *device, struct db_gpu *gpu,
                    const struct db_gpu_buffer *buffer, const char *what,
                    const struct db_gpu_ways *ways, void *registration);

#endif
