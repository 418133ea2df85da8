/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory; doorbell.h.
 */
#include <doorbell/gpu.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "error.h"
#include "gpu_register.h"

struct db_region {
    struct db_device *device;
    struct ibv_mr *mr;
    uint64_t iova;
};

int db_memory_check(const struct db_device *device, enum db_memory kind, const struct db_gpu *gpu,
                    const char *what)
{
    if (kind == DB_MEMORY_HOST)
        return 0;
    if (kind != DB_MEMORY_GPU)
        return db_fail(-EINVAL, "%s in memory of kind %d is not known; host memory (0) is", what,
                       (int)kind);
    if (device && device->path.software)
        return db_fail(-EOPNOTSUPP,
                       "%s in GPU memory is out of reach of %s, whose engine runs on the CPU; use "
                       "host memory",
                       what, device->path.name);
    if (!gpu)
        return db_fail(-EOPNOTSUPP,
                       "%s in GPU memory needs a GPU, and none was named; name it, or use host "
                       "memory",
                       what);
    return 0;
}

static int check_request(size_t bytes, unsigned access)
{
    if (bytes == 0)
        return db_fail(-EINVAL, "a region of 0 bytes cannot be registered; 1 is the least");
    if (access & ~(unsigned)DB_ACCESS_ALL)
        return db_fail(-EINVAL, "access %#x has unknown bits; DB_ACCESS_ALL is %#x", access,
                       (unsigned)DB_ACCESS_ALL);
    if (access & (DB_ACCESS_REMOTE_WRITE | DB_ACCESS_REMOTE_ATOMIC) &&
        !(access & DB_ACCESS_LOCAL_WRITE))
        return db_fail(-EINVAL, "remote writes and atomics need DB_ACCESS_LOCAL_WRITE too");
    return 0;
}

/* Of a registration that the kernel refused. */
static int refused(const struct db_device *device, const void *addr, size_t bytes, int error)
{
    const char *remedy = "";

    if (error == -ENOMEM)
        remedy = "; see `ulimit -l`, or register less";
    else if (error == -EFAULT)
        remedy = "; it must be mapped, and writable for any access but remote reads";
    return db_fail(error, "%zu bytes at %p cannot be registered with %s: %s%s", bytes, addr,
                   device->path.name, strerror(-error), remedy);
}

/* Makes the handle of a registration, which it ends when it cannot. */
static int keep(struct db_device *device, struct ibv_mr *mr, const void *addr,
                struct db_region **region)
{
    struct db_region *made = calloc(1, sizeof(*made));

    if (!made) {
        ibv_dereg_mr(mr);
        return db_fail(-ENOMEM, "no memory for a region");
    }
    made->mr = mr;
    made->iova = (uintptr_t)addr;
    made->device = device;
    db_device_hold(device);
    *region = made;
    return 0;
}

int db_region_register(struct db_device *device, enum db_memory kind, void *addr, size_t bytes,
                       unsigned access, struct db_region **region)
{
    *region = NULL;
    if (!device)
        return db_fail(-EINVAL, "a region needs an open device");
    int error = db_memory_check(device, kind, NULL, "a region");
    if (!error)
        error = check_request(bytes, access);
    if (error)
        return error;
    struct ibv_mr *mr = ibv_reg_mr(device->pd, addr, bytes, access);
    return mr ? keep(device, mr, addr, region) : refused(device, addr, bytes, db_errno());
}

/* A region of GPU memory, while it is registered. */
struct gpu_region {
    struct ibv_pd *pd;
    const struct db_gpu_buffer *buffer;
    unsigned access;
    struct ibv_mr *mr;
};

static int register_dma_buf(void *registration, int fd, uint64_t offset)
{
    struct gpu_region *region = registration;
    const struct db_gpu_buffer *buffer = region->buffer;

    region->mr = ibv_reg_dmabuf_mr(region->pd, offset, buffer->bytes, (uintptr_t)buffer->device, fd,
                                   (int)region->access);
    return region->mr ? 0 : db_errno();
}

static int register_peer_memory(void *registration)
{
    struct gpu_region *region = registration;

    region->mr =
        ibv_reg_mr(region->pd, region->buffer->device, region->buffer->bytes, region->access);
    return region->mr ? 0 : db_errno();
}

static const struct db_gpu_ways gpu_ways = {
    .dma_buf = register_dma_buf,
    .peer_memory = register_peer_memory,
};

int db_region_register_buffer(struct db_device *device, struct db_gpu *gpu,
                              const struct db_gpu_buffer *buffer, unsigned access,
                              struct db_region **region)
{
    if (buffer->host)
        return db_region_register(device, DB_MEMORY_HOST, buffer->host, buffer->bytes, access,
                                  region);
    *region = NULL;
    if (!device)
        return db_fail(-EINVAL, "a region needs an open device");
    int error = db_memory_check(device, DB_MEMORY_GPU, gpu, "a region");
    if (!error)
        error = check_request(buffer->bytes, access);
    if (error)
        return error;
    struct gpu_region made = {.pd = device->pd, .buffer = buffer, .access = access};
    error = db_gpu_register(device, gpu, buffer, "a region", &gpu_ways, &made);
    return error ? error : keep(device, made.mr, buffer->device, region);
}

struct db_keys db_region_keys(const struct db_region *region)
{
    return (struct db_keys){
        .lkey = region->mr->lkey,
        .rkey = region->mr->rkey,
        .iova = region->iova,
        .bytes = region->mr->length,
    };
}

void db_region_destroy(struct db_region *region)
{
    if (!region)
        return;
    struct db_device *device = region->device;
    ibv_dereg_mr(region->mr);
    free(region);
    db_device_release(device);
}
