/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a queue whose kernels run on a CUDA GPU is mapped into it whole, its view's pointers are
 * the GPU's, parts lie where the attributes place them, and puts through it arrive; whoever fails
 * on the way leaves nothing. Over the fake driver (fake_driver.c), whose kernels this program runs.
 */
#include <doorbell/device.h>
#include <doorbell/doorbell.h>
#include <errno.h>

#include "fake_control.h"

static struct fake_driver *fake;
static struct db_gpu *gpu;

/* ---- A kernel that the fake driver runs on the launching thread ---- */

struct put_args {
    struct db_qp *qp;
    uint64_t raddr;
    uint32_t rkey;
    uint32_t count;
    int32_t *status;
};

PORT_KERNEL(put_values, struct put_args, args)
{
    uint64_t index = 0;
    int status = DB_OK;
    for (uint32_t i = 0; i < args->count && !status; i++) {
        status = db_put_value(args->qp, args->raddr + 8ull * (i % 64), args->rkey, i + 1, &index);
        if (!status)
            status = db_wait(args->qp, index);
    }
    *args->status = status;
}

static struct db_queue *forwarded_queue; /* whose doorbell somebody else must ring */

static void run_put(const struct fake_launch *launch)
{
    if (strcmp(launch->name, "put_values") == 0)
        put_values.on_cpu(launch->args);
}

static int run(struct db_qp *qp, const struct db_keys *keys, uint32_t count, int32_t *status)
{
    struct put_args args = {qp, keys->iova, keys->rkey, count, status};
    struct db_gpu_shape shape = {.ctas = 1, .threads = 1};
    struct db_gpu_grid *grid;

    int error = gpu->backend->launch(gpu, &put_values, shape, &args, &grid);
    return error ? error : gpu->backend->wait(grid, port_now_ns() + 10000000000u);
}

/* ---- Attached to the software device ---- */

static void puts_arrive(struct db_device *device)
{
    struct db_queue_attr attr = {.depth = 16, .gpu = gpu};
    struct db_gpu_buffer memory;
    struct db_region *region;
    struct db_queue *queue[2];
    int32_t status = -1;

    fake->refuse_io = true; /* as pages of a file are */
    CHECK(gpu->backend->alloc(gpu, DB_GPU_MEMORY_HOST, 4096, &memory) == 0, "%s",
          db_gpu_error_text());
    CHECK(db_region_register_buffer(device, gpu, &memory, DB_ACCESS_ALL, &region) == 0, "%s",
          db_error_text());
    struct db_keys keys = db_region_keys(region);
    for (int i = 0; i < 2; i++)
        CHECK(db_queue_create(device, &attr, &queue[i]) == 0, "%s", db_error_text());
    CHECK(db_queue_connect(queue[0], queue[1]) == 0, "%s", db_error_text());
    CHECK(fake->registrations >= 3, "2 queues' memory and registers: %d", fake->registrations);

    for (int round = 0; round < 2; round++) {
        CHECK(run(db_queue_device_view(queue[0]), &keys, 1000, &status) == 0, "%s",
              db_gpu_error_text());
        CHECK(status == DB_OK, "status %d: %s", status, db_error_text());
        for (uint64_t i = 0; i < 64; i++)
            CHECK(((uint64_t *)memory.host)[i] == (i < 40 ? 961 + i : 897 + i), "word %u: %llu",
                  (unsigned)i, (unsigned long long)((uint64_t *)memory.host)[i]);
        CHECK(db_queue_check(queue[0]) == 0, "%s", db_error_text());
        memset(memory.host, 0, memory.bytes);
        /* Emptied, it goes on. */
        for (int i = 0; i < 2; i++)
            CHECK(db_queue_reset(queue[i]) == 0, "%s", db_error_text());
        CHECK(db_queue_connect(queue[0], queue[1]) == 0, "%s", db_error_text());
    }

    /* An error reaches the host through the GPU's memory. */
    struct db_keys wrong = {.iova = keys.iova, .rkey = keys.rkey ^ 0x7700};
    CHECK(run(db_queue_device_view(queue[0]), &wrong, 1, &status) == 0, "%s", db_gpu_error_text());
    CHECK(status == DB_ERROR_IO, "status %d", status);
    CHECK(db_queue_check(queue[0]) == -EIO, "%s", db_error_text());
    expect_words("rkey", db_error_text(), "RDMA write|rkey");

    for (int i = 0; i < 2; i++)
        db_queue_destroy(queue[i]);
    db_region_destroy(region);
    gpu->backend->free(gpu, &memory);
    CHECK(fake->registrations == 0 && fake->gpu_memory == 0, "%d %d", fake->registrations,
          fake->gpu_memory);
}

/* A kernel that only stores the doorbell word; this thread rings. */
static void post_only(const struct fake_launch *launch)
{
    const struct put_args *args = launch->args;
    uint64_t index = 0;

    *args->status = db_put_value(args->qp, args->raddr, args->rkey, 77, &index);
    CHECK(db_queue_forward(forwarded_queue) == 1, "%s", db_error_text());
    CHECK(db_queue_forward(forwarded_queue) == 0, "there was one doorbell");
    if (!*args->status)
        *args->status = db_wait(args->qp, index);
}

static void forwarded(struct db_device *device)
{
    struct db_queue_attr attr = {.depth = 16, .gpu = gpu, .forwarded = true};
    struct db_gpu_buffer memory;
    struct db_region *region;
    int32_t status = -1;

    CHECK(gpu->backend->alloc(gpu, DB_GPU_MEMORY_HOST, 4096, &memory) == 0, "%s",
          db_gpu_error_text());
    CHECK(db_region_register_buffer(device, gpu, &memory, DB_ACCESS_ALL, &region) == 0, "%s",
          db_error_text());
    struct db_keys keys = db_region_keys(region);
    CHECK(db_queue_create(device, &attr, &forwarded_queue) == 0, "%s", db_error_text());
    CHECK(db_queue_connect(forwarded_queue, forwarded_queue) == 0, "%s", db_error_text());
    CHECK(fake->registrations == 1, "no register is mapped: %d", fake->registrations);
    fake->run = post_only;
    CHECK(run(db_queue_device_view(forwarded_queue), &keys, 1, &status) == 0 && status == 0,
          "status %d: %s", status, db_gpu_error_text());
    CHECK(*(uint64_t *)memory.host == 77, "the put did not arrive");
    fake->run = run_put;
    db_queue_destroy(forwarded_queue);
    db_region_destroy(region);
    gpu->backend->free(gpu, &memory);

    struct db_queue *queue;
    attr.forwarded = false;
    CHECK(db_queue_create(device, &attr, &queue) == 0, "%s", db_error_text());
    CHECK(db_queue_forward(queue) == -EINVAL, "it rings itself");
    db_queue_destroy(queue);
}

/* ---- Detached, in GPU memory ---- */

static void places(void)
{
    struct db_queue_attr attr = {.depth = 64,
                                 .collapsed = true,
                                 .gpu = gpu,
                                 .ring = DB_MEMORY_GPU,
                                 .cq = DB_MEMORY_HOST,
                                 .record = DB_MEMORY_GPU};
    static uint8_t ring[64 * 64];
    struct db_queue_info info;
    struct db_queue *queue;
    struct db_qp view;

    fake->map_offset = UINT64_C(1) << 42;
    CHECK(db_queue_create_detached(&attr, &queue) == 0, "%s", db_error_text());
    CHECK(gpu->backend->copy(gpu, &view, db_queue_device_view(queue), sizeof(view)) == 0, "%s",
          db_gpu_error_text());
    CHECK((uintptr_t)view.doorbell >> 42 && (uintptr_t)view.cq >> 42, "%p %p: host memory",
          view.doorbell, (void *)view.cq);
    CHECK(!((uintptr_t)view.sq >> 47) && (uintptr_t)view.record - (uintptr_t)view.sq < 1 << 20,
          "%p %p: GPU memory", (void *)view.sq, (void *)view.record);
    CHECK((uintptr_t)view.slot_ready ==
              (uintptr_t)db_queue_device_view(queue) + sizeof(struct db_qp),
          "%p", (void *)view.slot_ready);
    CHECK(view.order == DB_ORDER_GPU, "the scope that is safe: %u", view.order);
    CHECK(db_queue_query(queue, &info) == 0 && info.scope == DB_SCOPE_GPU && !info.without_record,
          "%d", (int)info.scope);
    CHECK(db_detached_complete(queue, 1) == -EINVAL, "the CPU does not reach it");

    /* What a kernel writes is in the ring; a reset empties it. */
    memset(view.sq, 0x5a, 64);
    CHECK(db_detached_ring(queue, ring) == 0 && ring[0] == 0x5a && ring[63] == 0x5a && !ring[64],
          "%s", db_error_text());
    CHECK(db_queue_reset(queue) == 0 && db_detached_ring(queue, ring) == 0 && ring[0] == 0, "%s",
          db_error_text());
    db_queue_destroy(queue);

    attr.exchange_record = true;
    CHECK(db_queue_create_detached(&attr, &queue) == 0, "%s", db_error_text());
    CHECK(gpu->backend->copy(gpu, &view, db_queue_device_view(queue), sizeof(view)) == 0, "%s",
          db_gpu_error_text());
    CHECK(view.with_record == DB_RECORD_EXCHANGED && db_queue_query(queue, &info) == 0 &&
              info.exchange_record,
          "%u", view.with_record);
    db_queue_destroy(queue);
    attr.scope = DB_SCOPE_SYSTEM;
    CHECK(db_queue_create_detached(&attr, &queue) == -EINVAL, "system scope");
    expect_words("exchanged", db_error_text(), "exchanged record|GPU memory, and GPU scope");
    attr.scope = DB_SCOPE_SAFE;
    attr.without_record = true;
    CHECK(db_queue_create_detached(&attr, &queue) == -EINVAL, "no record");
    expect_words("exchanged", db_error_text(), "exchanged record needs a record");
    attr.without_record = false;
    attr.record = DB_MEMORY_HOST;
    CHECK(db_queue_create_detached(&attr, &queue) == -EINVAL, "a record in host memory");
    expect_words("exchanged", db_error_text(), "exchanged record|GPU memory, and GPU scope");
    fake->map_offset = 0;
    CHECK(fake->registrations == 0 && fake->gpu_memory == 0, "%d %d", fake->registrations,
          fake->gpu_memory);
}

/* Every call of the driver that creation makes fails once, in turn. */
static void failures(struct db_device *device)
{
    static const char *const calls[] = {"cuMemAlloc_v2", "cuMemsetD8Async", "cuMemHostRegister_v2",
                                        "cuMemHostGetDevicePointer_v2", "cuMemcpyAsync"};
    struct db_queue_attr attached = {.depth = 16, .gpu = gpu};
    struct db_queue_attr detached = {.depth = 16, .gpu = gpu, .ring = DB_MEMORY_GPU};
    struct db_queue *queue;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (int on_device = 0; on_device < 2; on_device++) {
            fake->fail_call = calls[i];
            fake->fail_result = 999;
            int error = on_device ? db_queue_create(device, &attached, &queue)
                                  : db_queue_create_detached(&detached, &queue);
            CHECK(error < 0 && !queue, "%s: %d", calls[i], error);
            expect_words(calls[i], db_error_text(), "FAKE_999");
            CHECK(fake->registrations == 0 && fake->gpu_memory == 0, "%s left %d %d", calls[i],
                  fake->registrations, fake->gpu_memory);
        }
    }
    fake->refuse_pages = true;
    CHECK(db_queue_create(device, &attached, &queue) < 0, "pages are refused");
    fake->refuse_pages = false;

    struct db_queue_attr in_gpu = {.depth = 16, .gpu = gpu, .ring = DB_MEMORY_GPU};
    CHECK(db_queue_create(device, &in_gpu, &queue) == -EOPNOTSUPP, "the software device");
    expect_words("ring", db_error_text(), "send ring|engine runs on the CPU|host memory");
    in_gpu = (struct db_queue_attr){.depth = 16, .ring = DB_MEMORY_GPU};
    CHECK(db_queue_create_detached(&in_gpu, &queue) == -EOPNOTSUPP, "no GPU was named");
    expect_words("no GPU", db_error_text(), "needs a GPU|host memory");

    struct db_gpu_buffer memory;
    struct db_region *region;
    CHECK(gpu->backend->alloc(gpu, DB_GPU_MEMORY_GPU, 4096, &memory) == 0, "%s",
          db_gpu_error_text());
    CHECK(db_region_register_buffer(device, gpu, &memory, DB_ACCESS_ALL, &region) == -EOPNOTSUPP,
          "GPU memory");
    gpu->backend->free(gpu, &memory);
}

int main(void)
{
    struct db_gpu_config config = {.index = 0};
    struct db_device *device;

    fake = fake_control();
    fake->run = run_put;
    CHECK(db_gpu_cuda_backend.open(&config, &gpu) == 0, "%s", db_gpu_error_text());
    CHECK(gpu->backend->load(gpu, "image", 5) == 0, "%s", db_gpu_error_text());
    CHECK(db_device_open(NULL, NULL, &device) == 0, "%s", db_error_text());
    puts_arrive(device);
    forwarded(device);
    places();
    failures(device);
    db_device_close(device);
    gpu->backend->close(gpu);
    expect_nothing(fake, "the end");
    return 0;
}
