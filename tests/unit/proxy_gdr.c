/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a worker's progress goes to GPU memory through GDRCopy where its library is there, and
 * everything that it may lack (the library, the kernel module, memory that it takes) is a sentence
 * and leaves nothing behind. The library is played by this program, whose gdr_ functions are found
 * in the program itself; the GPU by CPU threads, with memory that the host cannot reach.
 */
#include <doorbell/device.h>
#include <doorbell/doorbell.h>
#include <doorbell/gpu.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "../../src/gdr.h"
#include "../check.h"

/* ---- GDRCopy ---- */

struct gdr_mh_s {
    unsigned long h;
};

static int opened, pinned, mapped, fail_at;
static unsigned long pinned_at;

/* clang-format off */
void *gdr_open(void);
int gdr_close(void *gdr);
int gdr_pin_buffer(void *gdr, unsigned long address, size_t bytes, uint64_t token, uint32_t space,
                   struct gdr_mh_s *handle);
int gdr_unpin_buffer(void *gdr, struct gdr_mh_s handle);
int gdr_map(void *gdr, struct gdr_mh_s handle, void **address, size_t bytes);
int gdr_unmap(void *gdr, struct gdr_mh_s handle, void *address, size_t bytes);
/* clang-format on */

void *gdr_open(void)
{
    if (fail_at == 1)
        return NULL;
    opened++;
    return &opened;
}

int gdr_close(void *gdr)
{
    CHECK(gdr == &opened, "another handle is closed");
    opened--;
    return 0;
}

int gdr_pin_buffer(void *gdr, unsigned long address, size_t bytes, uint64_t token, uint32_t space,
                   struct gdr_mh_s *handle)
{
    (void)gdr;
    CHECK(address % 65536 == 0 && bytes == 65536 && token == 0 && space == 0,
          "%#lx, %zu bytes are pinned", address, bytes);
    if (fail_at == 2)
        return EINVAL;
    pinned++;
    pinned_at = address;
    handle->h = 42;
    return 0;
}

int gdr_unpin_buffer(void *gdr, struct gdr_mh_s handle)
{
    (void)gdr;
    CHECK(handle.h == 42, "another buffer is unpinned");
    pinned--;
    return 0;
}

int gdr_map(void *gdr, struct gdr_mh_s handle, void **address, size_t bytes)
{
    (void)gdr;
    (void)bytes;
    CHECK(handle.h == 42, "another buffer is mapped");
    if (fail_at == 3)
        return ENOMEM;
    mapped++;
    *address = (void *)pinned_at;
    return 0;
}

int gdr_unmap(void *gdr, struct gdr_mh_s handle, void *address, size_t bytes)
{
    (void)gdr;
    (void)handle;
    (void)bytes;
    CHECK(address == (void *)pinned_at, "another mapping is undone");
    mapped--;
    return 0;
}

/* ---- The GPU ---- */

static int alloc_hidden(struct db_gpu *gpu, enum db_gpu_memory kind, size_t bytes,
                        struct db_gpu_buffer *buffer)
{
    int error = db_gpu_cpu_backend.alloc(gpu, kind, bytes, buffer);
    if (kind == DB_GPU_MEMORY_GPU)
        buffer->host = NULL;
    return error;
}

static void free_hidden(struct db_gpu *gpu, struct db_gpu_buffer *buffer)
{
    buffer->host = buffer->device;
    db_gpu_cpu_backend.free(gpu, buffer);
}

/* ---- The test ---- */

static struct db_device *device;
static struct db_proxy *proxy;
static struct db_queue_attr attr = {.depth = 16, .progress = DB_MEMORY_GPU};

static void refused(int error, const char *words)
{
    struct db_queue *queue;

    int got = db_queue_create(device, &attr, &queue);
    CHECK(got == error && !queue, "%d, wanted %d", got, error);
    CHECK(strstr(db_error_text(), words), "no \"%s\" in: %s", words, db_error_text());
    CHECK(opened == 0 && pinned == 0 && mapped == 0, "%d opened, %d pinned, %d mapped are left",
          opened, pinned, mapped);
}

static void served(void)
{
    static uint64_t memory[2];
    struct db_region *region;
    struct db_queue *queue;
    struct db_keys keys;
    uint64_t index;

    CHECK(
        !db_region_register(device, DB_MEMORY_HOST, memory, sizeof(memory), DB_ACCESS_ALL, &region),
        "%s", db_error_text());
    keys = db_region_keys(region);
    CHECK(!db_queue_create(device, &attr, &queue), "%s", db_error_text());
    CHECK(opened == 1 && pinned == 1 && mapped == 1, "no mapping");
    CHECK(!db_queue_connect(queue, queue), "%s", db_error_text());
    CHECK(!db_queue_keys(queue, DB_SIDE_REMOTE, &keys, &keys), "%s", db_error_text());
    struct db_qp *qp = db_queue_device_view(queue);
    CHECK((uintptr_t)qp->ring->progress / 65536 * 65536 == pinned_at,
          "the kernel reads its progress elsewhere");
    for (uint64_t i = 0; i < 100; i++) {
        CHECK(!db_put_value(qp, 0, keys.rkey, i, &index), "%s", db_error_text());
        CHECK(!db_wait(qp, index), "%s", db_queue_check(queue) ? db_error_text() : "timeout");
        CHECK(memory[0] == i, "%llu arrived", (unsigned long long)memory[0]);
    }
    db_queue_destroy(queue);
    CHECK(opened == 0 && pinned == 0 && mapped == 0, "the mapping is left");
    db_region_destroy(region);
}

int main(void)
{
    const struct db_proxy_attr proxy_attr = {.workers = 1};
    const struct db_gpu_config config = {.workers = 1};
    struct db_gpu_backend hidden = db_gpu_cpu_backend;
    struct db_gpu *gpu;

    hidden.alloc = alloc_hidden;
    hidden.free = free_hidden;
    CHECK(!db_gpu_cpu_backend.open(&config, &gpu), "%s", db_gpu_error_text());
    gpu->backend = &hidden;
    attr.gpu = gpu;
    CHECK(!db_device_open(NULL, NULL, &device), "%s", db_error_text());
    CHECK(!db_proxy_create(device, &proxy_attr, &proxy), "%s", db_error_text());
    attr.proxy = proxy;

    db_gdr_library = "libdoorbell-has-no-such-library.so";
    refused(-ENOSYS, "libdoorbell-has-no-such-library.so is not there");
    db_gdr_library = "libc.so.6";
    refused(-ENOSYS, "lacks a function of GDRCopy 2");
    db_gdr_library = NULL;
    fail_at = 1;
    refused(-ENODEV, "gdrdrv is not loaded");
    fail_at = 2;
    refused(-EINVAL, "does not take the 64 KiB");
    fail_at = 3;
    refused(-EINVAL, "cannot map the 64 KiB");
    fail_at = 0;
    served();

    db_proxy_destroy(proxy);
    db_device_close(device);
    gpu->backend = &db_gpu_cpu_backend;
    gpu->backend->close(gpu);
    printf("progress in GPU memory\n");
    return 0;
}
