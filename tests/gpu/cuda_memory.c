/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: memory of a CUDA GPU and pages mapped into it are what was asked for, a dma-buf is the
 * whole pages around its range, and whatever the driver refuses ends in a sentence that names the
 * thing and the remedy, with nothing left behind. Over the fake driver (fake_driver.c).
 */
#include <errno.h>
#include <unistd.h>

#include "fake_control.h"
#include "src/gpu_cuda.h"

static struct fake_driver *fake;
static const struct db_gpu_backend *const cuda = &db_gpu_cuda_backend;

static void buffers(void)
{
    static const struct {
        enum db_gpu_memory kind;
        const char *call;
        int result;
        int error;
        const char *words;
    } rows[] = {
        {DB_GPU_MEMORY_GPU, "cuMemAlloc_v2", 2, -ENOMEM, "no GPU memory|nvidia-smi"},
        {DB_GPU_MEMORY_GPU, "cuMemsetD8Async", 999, -EIO, "cleared"},
        {DB_GPU_MEMORY_HOST, "cuMemHostAlloc", 2, -ENOMEM, "pinned host memory|ulimit"},
        {DB_GPU_MEMORY_HOST, "cuMemHostGetDevicePointer_v2", 999, -EIO, "not mapped"},
    };
    struct db_gpu *gpu = fake_open_gpu();
    struct db_gpu_buffer buffer, other;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fake->fail_call = rows[i].call;
        fake->fail_result = rows[i].result;
        CHECK(cuda->alloc(gpu, rows[i].kind, 100, &buffer) == rows[i].error, "%s: %s", rows[i].call,
              db_gpu_error_text());
        expect_words(rows[i].call, db_gpu_error_text(), rows[i].words);
        CHECK(fake->gpu_memory == 0 && fake->host_memory == 0, "%s left memory", rows[i].call);
    }
    CHECK(cuda->alloc(gpu, DB_GPU_MEMORY_GPU, 0, &buffer) == -EINVAL, "0 bytes");
    CHECK(cuda->alloc(gpu, DB_GPU_MEMORY_GPU, 100, &buffer) == 0, "%s", db_gpu_error_text());
    CHECK(cuda->alloc(gpu, DB_GPU_MEMORY_HOST, 5000, &other) == 0, "%s", db_gpu_error_text());
    CHECK(!buffer.host && other.host && (uintptr_t)buffer.device % 65536 == 0, "%p %p %p",
          buffer.host, other.host, buffer.device);
    for (size_t i = 0; i < 100; i++)
        CHECK(((char *)buffer.device)[i] == 0, "byte %zu is not zero", i);
    CHECK(((char *)other.host)[4999] == 0, "not zero");
    CHECK(cuda->copy(gpu, buffer.device, "hello", 6) == 0, "%s", db_gpu_error_text());
    CHECK(cuda->copy(gpu, other.host, buffer.device, 6) == 0, "%s", db_gpu_error_text());
    CHECK(strcmp(other.host, "hello") == 0, "%s", (char *)other.host);
    fake->fail_call = "cuMemcpyAsync";
    fake->fail_result = 700;
    CHECK(cuda->copy(gpu, other.host, buffer.device, 6) == -EIO, "copy");
    cuda->free(gpu, &buffer);
    CHECK(fake->gpu_memory == 0 && !buffer.device, "not freed");
    cuda->free(gpu, &buffer); /* is nothing */
    cuda->close(gpu);         /* takes what was not freed */
    expect_nothing(fake, "buffers");
}

/* The dma-buf of `bytes` at `address` is the whole pages around them. */
static void exported(struct db_gpu *gpu, uint8_t *address, size_t bytes, size_t page)
{
    uintptr_t first = (uintptr_t)address / page * page;
    uintptr_t end = ((uintptr_t)address + bytes + page - 1) / page * page;
    struct fake_dma_buf range;
    uint64_t offset;
    int fd;

    CHECK(cuda->dma_buf(gpu, address, bytes, &fd, &offset) == 0, "pages of %zu: %s", page,
          db_gpu_error_text());
    CHECK(pread(fd, &range, sizeof(range), 0) == (ssize_t)sizeof(range), "%d", fd);
    CHECK(range.address == first && range.bytes == end - first &&
              offset == (uintptr_t)address - first,
          "pages of %zu: %llu bytes, the offset is %llu", page, (unsigned long long)range.bytes,
          (unsigned long long)offset);
    close(fd);
}

static void exports(void)
{
    static const size_t pages[] = {4096, 65536, 131072};
    struct db_gpu *gpu = fake_open_gpu();
    struct db_gpu_cuda *state = (struct db_gpu_cuda *)gpu;
    struct db_gpu_buffer buffer;
    uint64_t offset;
    int fd;

    CHECK(state->page_bytes == (size_t)sysconf(_SC_PAGESIZE), "%zu", state->page_bytes);
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        size_t page = pages[i];
        fake->page_bytes = state->page_bytes = page;
        CHECK(cuda->alloc(gpu, DB_GPU_MEMORY_GPU, 2 * page + 1, &buffer) == 0, "%s",
              db_gpu_error_text());
        uint8_t *memory = buffer.device;
        exported(gpu, memory, buffer.bytes, page);
        exported(gpu, memory + page + 100, 10, page);
        exported(gpu, memory + page - 1, 2, page);
        cuda->free(gpu, &buffer);
    }
    fake->page_bytes = 4096;

    CHECK(cuda->alloc(gpu, DB_GPU_MEMORY_GPU, 1, &buffer) == 0, "%s", db_gpu_error_text());
    fake->fail_call = "cuMemGetHandleForAddressRange";
    fake->fail_result = 801;
    CHECK(cuda->dma_buf(gpu, buffer.device, 1, &fd, &offset) == -EOPNOTSUPP, "no dma-buf");
    expect_words("no dma-buf", db_gpu_error_text(), "cuda:1|no dma-buf|FAKE_801");
    struct cuda_driver before_it = *state->driver;
    before_it.range_handle = NULL;
    state->driver = &before_it;
    CHECK(cuda->dma_buf(gpu, buffer.device, 1, &fd, &offset) == -EOPNOTSUPP, "no such call");
    expect_words("no such call", db_gpu_error_text(), "dma-buf|11.7");
    cuda->close(gpu);
    expect_nothing(fake, "exports");
}

static void mappings(void)
{
    static char pages[3 * 4096] __attribute__((aligned(4096)));
    struct db_gpu *gpu = fake_open_gpu();
    void *device = NULL, *again = NULL;

    /* Registers: as I/O memory where that goes, as ordinary memory where it does not. */
    fake->map_offset = UINT64_C(1) << 40;
    CHECK(cuda->map(gpu, DB_GPU_PAGES_IO, pages + 0x800, 8, &device) == 0, "%s",
          db_gpu_error_text());
    CHECK(device == pages + 0x800 + fake->map_offset && fake->io_registrations == 1, "%p %p",
          device, (void *)pages);
    cuda->unmap(gpu, pages + 0x800);
    CHECK(fake->registrations == 0, "it is still registered");

    fake->refuse_io = true;
    CHECK(cuda->map(gpu, DB_GPU_PAGES_IO, pages + 0x800, 8, &device) == 0, "%s",
          db_gpu_error_text());
    CHECK(fake->registrations == 1 && fake->io_registrations == 1, "as ordinary memory");
    /* Another queue's register on the same page. */
    CHECK(cuda->map(gpu, DB_GPU_PAGES_IO, pages + 0xa00, 8, &again) == 0, "%s",
          db_gpu_error_text());
    CHECK(fake->registrations == 1 && again == (char *)device + 0x200, "one page, two users");
    cuda->unmap(gpu, pages + 0x800);
    CHECK(fake->registrations == 1, "the other one needs it");
    cuda->unmap(gpu, pages + 0xa00);
    CHECK(fake->registrations == 0, "it is still registered");

    fake->refuse_pages = true;
    fake->refuse_io = false;
    CHECK(cuda->map(gpu, DB_GPU_PAGES_IO, pages, 8, &device) == -EOPNOTSUPP, "refused");
    expect_words("both", db_gpu_error_text(),
                 "ring a doorbell|I/O|ordinary|FAKE_800|CPU thread|PeerMappingOverride");
    CHECK(cuda->map(gpu, DB_GPU_PAGES_MEMORY, pages, 4096, &device) == -EIO, "refused");
    expect_words("memory", db_gpu_error_text(), "mapped|FAKE_800|ulimit");
    fake->refuse_pages = false;

    fake->fail_call = "cuMemHostRegister_v2";
    fake->fail_result = 712;
    CHECK(cuda->map(gpu, DB_GPU_PAGES_MEMORY, pages, 4096, &device) == -EBUSY, "registered");
    fake->fail_call = "cuMemHostGetDevicePointer_v2";
    fake->fail_result = 999;
    CHECK(cuda->map(gpu, DB_GPU_PAGES_MEMORY, pages, 4096, &device) == -EIO, "no address");
    CHECK(fake->registrations == 0, "it is still registered");
    cuda->unmap(gpu, pages); /* was never mapped */

    /* Ordinary memory that begins and ends anywhere. */
    CHECK(cuda->map(gpu, DB_GPU_PAGES_MEMORY, pages + 4000, 200, &device) == 0, "%s",
          db_gpu_error_text());
    CHECK(device == pages + 4000 + fake->map_offset, "%p", device);
    fake->map_offset = 0;
    cuda->close(gpu);
    expect_nothing(fake, "mappings");
}

int main(void)
{
    fake = fake_control();
    buffers();
    exports();
    mappings();
    return 0;
}
