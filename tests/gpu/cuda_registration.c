/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: with a NIC that reaches GPU memory, a region and a queue's rings there are registered
 * through a dma-buf where driver and NIC have it, else as peer memory; where neither goes the
 * sentence gives both reasons and the remedy. The software device, which does not reach it, says
 * so.
 *
 * The NIC is the software device, told that it is none. The fake driver's GPU memory is host memory
 * and its dma-bufs name it, so this program stands in front of the calls that register and passes
 * them on as host memory.
 */
#include <dlfcn.h>
#include <doorbell/device.h>
#include <doorbell/doorbell.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>

#include "fake_control.h"
#include "src/device.h"
#include "tests/open_files.h"

static struct fake_driver *fake;
static struct db_gpu *gpu;
static struct db_device *device;

/* ---- In front of the NIC ---- */

static char calls[64];     /* that registered, or tried to: "dma-buf peer " */
static int refuse_dma_buf; /* errno values; 0: taken */
static int refuse_peer;
static bool counting;

static bool refused(const char *call, int error)
{
    if (!counting)
        return false;
    strcat(calls, call);
    errno = error;
    return error != 0;
}

/* The library's own function behind ours. */
#define REAL(name) ((__typeof__(&(name)))(uintptr_t)dlsym(RTLD_NEXT, #name))

/* The memory `offset` bytes into a dma-buf. */
static void *find(int fd, uint64_t offset, size_t bytes)
{
    struct fake_dma_buf range;

    CHECK(pread(fd, &range, sizeof(range), 0) == (ssize_t)sizeof(range), "%d is no dma-buf", fd);
    CHECK(offset + bytes <= range.bytes, "%llu of %zu bytes is not in %llu",
          (unsigned long long)offset, bytes, (unsigned long long)range.bytes);
    return (void *)(uintptr_t)(range.address + offset);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, int access)
{
    void *memory = find(fd, offset, length);

    CHECK((uintptr_t)memory == iova, "%p is registered as %#llx", memory, (unsigned long long)iova);
    if (refused("dma-buf ", refuse_dma_buf))
        return NULL;
    return REAL(ibv_reg_mr_iova2)(pd, memory, length, iova, (unsigned)access);
}

/* What the macro ibv_reg_mr() becomes when its flags are not a constant. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova,
                                unsigned int access)
{
    return refused("peer ", refuse_peer) ? NULL
                                         : REAL(ibv_reg_mr_iova2)(pd, addr, bytes, iova, access);
}

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg_ex(struct ibv_context *context,
                                                 struct mlx5dv_devx_umem_in *in)
{
    CHECK(in->comp_mask == MLX5DV_UMEM_MASK_DMABUF, "%#llx", (unsigned long long)in->comp_mask);
    void *memory = find(in->dmabuf_fd, (uintptr_t)in->addr, in->size);
    return refused("dma-buf ", refuse_dma_buf)
               ? NULL
               : REAL(mlx5dv_devx_umem_reg)(context, memory, in->size, in->access);
}

/* For the queue's host memory, too, which is refused nothing. */
struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg(struct ibv_context *context, void *addr, size_t bytes,
                                              uint32_t access)
{
    bool host = counting && calls[0] == '\0';

    if (host)
        strcat(calls, "host ");
    else if (refused("peer ", refuse_peer))
        return NULL;
    return REAL(mlx5dv_devx_umem_reg)(context, addr, bytes, access);
}

/* ---- What is registered ---- */

static struct db_gpu_buffer memory;

/* Of a part of it, which begins and ends within pages. */
static int make_region(void)
{
    struct db_gpu_buffer part = {.device = (uint8_t *)memory.device + 5000, .bytes = 77777};
    struct db_region *region;
    int error = db_region_register_buffer(device, gpu, &part, DB_ACCESS_ALL, &region);

    CHECK(!error == (region != NULL), "%d with %p", error, (void *)region);
    if (!error)
        CHECK(db_region_keys(region).iova == (uintptr_t)part.device &&
                  db_region_keys(region).bytes == part.bytes,
              "%llu bytes", (unsigned long long)db_region_keys(region).bytes);
    db_region_destroy(region);
    return error;
}

static int make_queue(void)
{
    struct db_queue_attr attr = {.depth = 16,
                                 .gpu = gpu,
                                 .ring = DB_MEMORY_GPU,
                                 .cq = DB_MEMORY_GPU,
                                 .record = DB_MEMORY_GPU};
    struct db_queue *queue;
    int error = db_queue_create(device, &attr, &queue);

    CHECK(!error == (queue != NULL), "%d with %p", error, (void *)queue);
    db_queue_destroy(queue);
    return error;
}

static const struct {
    const char *name;
    int (*make)(void);
    const char *before; /* the call for what lies in host memory */
} things[] = {
    {"a region of 77777 bytes", make_region, ""},
    {"a queue's rings of", make_queue, "host "},
};

/* What the driver and the NIC say to a dma-buf, what the NIC says to an address, and what comes of
 * it. */
static const struct {
    int driver, dma_buf, peer; /* 0: yes */
    const char *calls;
    int error;
    const char *words;
} rows[] = {
    {0, 0, 0, "dma-buf ", 0, ""},
    {0, EOPNOTSUPP, 0, "dma-buf peer ", 0, ""},
    {801, 0, 0, "peer ", 0, ""},
    {801, 0, EFAULT, "peer ", -EOPNOTSUPP, "dma-buf (GPU cuda:0|FAKE_801|memory (Bad address)"},
    {0, EOPNOTSUPP, EFAULT, "dma-buf peer ", -EOPNOTSUPP,
     "dma-buf (mlx5_soft0 does not take it: Operation not supported)|memory (Bad address)"},
    {0, EINVAL, ENOMEM, "dma-buf peer ", -ENOMEM, "Invalid argument|memory (Cannot allocate"},
    {0, ENOMEM, EFAULT, "dma-buf peer ", -ENOMEM, "Cannot allocate memory)|memory (Bad address)"},
};

static void try_row(size_t row, size_t thing)
{
    char name[96], want[64];
    unsigned files = open_files();

    snprintf(name, sizeof(name), "row %zu, %s", row, things[thing].name);
    snprintf(want, sizeof(want), "%s%s", things[thing].before, rows[row].calls);
    fake->fail_call = rows[row].driver ? "cuMemGetHandleForAddressRange" : NULL;
    fake->fail_result = rows[row].driver;
    refuse_dma_buf = rows[row].dma_buf;
    refuse_peer = rows[row].peer;
    calls[0] = '\0';
    counting = true;
    int error = things[thing].make();
    counting = false;
    CHECK(error == rows[row].error && strcmp(calls, want) == 0, "%s: %d, '%s' instead of '%s'",
          name, error, calls, want);
    if (error) {
        expect_words(name, db_error_text(), rows[row].words);
        expect_words(name, db_error_text(), "nvidia_peermem|kernel with dma-buf|`doorbell info`");
        expect_words(name, db_error_text(), things[thing].name);
    }
    CHECK(open_files() == files, "%s: a dma-buf is left open", name);
    CHECK(fake->gpu_memory == 1, "%s: GPU memory is left", name);
}

/* ---- Puts over it ---- */

struct put_args {
    struct db_qp *qp;
    struct db_keys keys;
    int32_t *status;
};

PORT_KERNEL(put_values, struct put_args, args)
{
    uint64_t index = 0;
    int status = DB_OK;
    for (uint64_t i = 0; i < 100 && !status; i++) {
        status = db_put_value(args->qp, args->keys.iova + 8 * i, args->keys.rkey, i + 1000, &index);
        if (!status)
            status = db_wait(args->qp, index);
    }
    *args->status = status;
}

static void run_kernel(const struct fake_launch *launch)
{
    put_values.on_cpu(launch->args);
}

/* Rings and payloads in GPU memory that was registered through dma-bufs. */
static void puts_arrive(void)
{
    struct db_queue_attr attr = {
        .depth = 16, .gpu = gpu, .ring = DB_MEMORY_GPU, .record = DB_MEMORY_GPU};
    struct db_gpu_shape shape = {.ctas = 1, .threads = 1};
    int32_t status = -1;
    uint64_t values[100];
    struct db_region *region;
    struct db_queue *queue;
    struct db_gpu_grid *grid;

    CHECK(db_region_register_buffer(device, gpu, &memory, DB_ACCESS_ALL, &region) == 0, "%s",
          db_error_text());
    CHECK(db_queue_create(device, &attr, &queue) == 0, "%s", db_error_text());
    CHECK(db_queue_connect(queue, queue) == 0, "%s", db_error_text());
    struct put_args args = {db_queue_device_view(queue), db_region_keys(region), &status};
    CHECK(gpu->backend->launch(gpu, &put_values, shape, &args, &grid) == 0, "%s",
          db_gpu_error_text());
    CHECK(gpu->backend->wait(grid, port_now_ns() + 10000000000u) == 0 && status == DB_OK,
          "status %d: %s", status, db_gpu_error_text());
    CHECK(gpu->backend->copy(gpu, values, memory.device, sizeof(values)) == 0, "%s",
          db_gpu_error_text());
    for (uint64_t i = 0; i < 100; i++)
        CHECK(values[i] == i + 1000, "word %u: %llu", (unsigned)i, (unsigned long long)values[i]);
    db_queue_destroy(queue);
    db_region_destroy(region);
}

int main(void)
{
    struct db_gpu_config config = {.index = 0};

    fake = fake_control();
    fake->run = run_kernel;
    fake->refuse_io = true;
    CHECK(db_gpu_cuda_backend.open(&config, &gpu) == 0, "%s", db_gpu_error_text());
    CHECK(gpu->backend->load(gpu, "image", 5) == 0, "%s", db_gpu_error_text());
    CHECK(gpu->backend->alloc(gpu, DB_GPU_MEMORY_GPU, 100000, &memory) == 0, "%s",
          db_gpu_error_text());
    CHECK(db_device_open(NULL, NULL, &device) == 0, "%s", db_error_text());

    for (size_t thing = 0; thing < sizeof(things) / sizeof(things[0]); thing++) {
        CHECK(things[thing].make() == -EOPNOTSUPP, "%s: %s", things[thing].name, db_error_text());
        expect_words(things[thing].name, db_error_text(),
                     "out of reach of mlx5_soft0|engine runs on the CPU|host memory");
    }
    device->path.software = false;
    CHECK(db_region_register_buffer(device, gpu, &(struct db_gpu_buffer){.device = memory.device},
                                    DB_ACCESS_ALL, &(struct db_region *){NULL}) == -EINVAL,
          "0 bytes: %s", db_error_text());
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
        for (size_t thing = 0; thing < sizeof(things) / sizeof(things[0]); thing++)
            try_row(row, thing);
    puts_arrive();

    gpu->backend->free(gpu, &memory);
    db_device_close(device);
    gpu->backend->close(gpu);
    expect_nothing(fake, "the end");
    return 0;
}
