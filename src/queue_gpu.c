/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues whose kernels run on a GPU: their parts in GPU memory, their mappings into the GPU and
 * their device view there; see queue.h. On the GPU that CPU threads play the same steps are taken,
 * over host memory.
 */
#include <errno.h>
#include <string.h>

#include "error.h"
#include "queue.h"

/* The GPU's sentence as the library's. */
static int gpu_failed(int error, const char *what)
{
    return db_fail(error, "%s: %s", what, db_gpu_error_text());
}

int db_queue_gpu_parts_create(struct db_queue *queue)
{
    const struct db_queue_attr *attr = &queue->attr;

    if (!db_queue_uses_gpu_memory(attr))
        return 0;
    int error = attr->gpu->backend->alloc(attr->gpu, DB_GPU_MEMORY_GPU, queue->layout.bytes,
                                          &queue->on_gpu.parts);
    return error ? gpu_failed(error, "no GPU memory for a queue") : 0;
}

void db_queue_gpu_parts_destroy(struct db_queue *queue)
{
    struct db_gpu *gpu = queue->attr.gpu;

    if (queue->on_gpu.parts.device)
        gpu->backend->free(gpu, &queue->on_gpu.parts);
}

static int map(struct db_queue *queue)
{
    struct db_gpu *gpu = queue->attr.gpu;
    struct db_queue_on_gpu *on_gpu = &queue->on_gpu;

    int error = gpu->backend->map(gpu, DB_GPU_PAGES_MEMORY, queue->memory, queue->layout.bytes,
                                  &on_gpu->memory);
    if (error)
        return gpu_failed(error, "a queue's memory cannot be mapped into the GPU");
    if (!queue->device || queue->attr.forwarded)
        return 0;
    error = gpu->backend->map(gpu, DB_GPU_PAGES_IO, queue->doorbell, sizeof(uint64_t),
                              &on_gpu->doorbell);
    return error ? gpu_failed(error, "a doorbell cannot be mapped into the GPU") : 0;
}

int db_queue_gpu_view_create(struct db_queue *queue)
{
    const struct db_queue_attr *attr = &queue->attr;
    struct db_gpu *gpu = attr->gpu;

    if (!gpu)
        return 0;
    int error =
        gpu->backend->alloc(gpu, DB_GPU_MEMORY_GPU, db_queue_view_bytes(attr), &queue->on_gpu.view);
    if (error)
        return gpu_failed(error, "no GPU memory for a queue's view");
    error = map(queue);
    return error ? error : db_queue_gpu_store(queue);
}

void db_queue_gpu_view_destroy(struct db_queue *queue)
{
    struct db_gpu *gpu = queue->attr.gpu;
    struct db_queue_on_gpu *on_gpu = &queue->on_gpu;

    if (on_gpu->doorbell)
        gpu->backend->unmap(gpu, queue->doorbell);
    if (on_gpu->memory)
        gpu->backend->unmap(gpu, queue->memory);
    if (on_gpu->view.device)
        gpu->backend->free(gpu, &on_gpu->view);
}

/* ---- Between the host's copy and the GPU's ---- */

/* Where a piece of the layout is for kernels. */
static uint8_t *place(const struct db_queue *queue, enum db_memory kind, size_t at)
{
    void *base = kind == DB_MEMORY_GPU ? queue->on_gpu.parts.device : queue->on_gpu.memory;
    return (uint8_t *)base + at;
}

static void fill_view(const struct db_queue *queue, struct db_qp *view)
{
    const struct db_queue_attr *attr = &queue->attr;
    const struct db_layout *layout = &queue->layout;

    *view = *queue->qp;
    view->sq = place(queue, attr->ring, layout->ring);
    view->record = (struct m5_qp_record *)(void *)place(queue, attr->record, layout->record);
    view->doorbell = queue->on_gpu.doorbell ? queue->on_gpu.doorbell
                                            : place(queue, DB_MEMORY_HOST, layout->doorbell);
    view->cq = place(queue, attr->cq, layout->cq);
    view->cq_record = (struct m5_cq_record *)(void *)place(queue, attr->cq, layout->cq_record);
    view->slot_ready = (uint32_t *)(void *)((struct db_qp *)queue->on_gpu.view.device + 1);
}

static int copy(const struct db_queue *queue, void *to, const void *from, size_t bytes)
{
    struct db_gpu *gpu = queue->attr.gpu;
    int error = gpu->backend->copy(gpu, to, from, bytes);

    return error ? gpu_failed(error, "a queue cannot be copied to or from the GPU") : 0;
}

/* Copies a piece of the layout to or from GPU memory, if it lies there. */
static int copy_part(struct db_queue *queue, enum db_memory kind, size_t at, size_t bytes,
                     bool to_gpu)
{
    if (kind != DB_MEMORY_GPU || bytes == 0)
        return 0;
    uint8_t *on_gpu = place(queue, kind, at), *here = queue->memory + at;
    return to_gpu ? copy(queue, on_gpu, here, bytes) : copy(queue, here, on_gpu, bytes);
}

static int copy_small_parts(struct db_queue *queue, bool to_gpu)
{
    const struct db_queue_attr *attr = &queue->attr;
    const struct db_layout *layout = &queue->layout;

    int error =
        copy_part(queue, attr->cq, layout->cq, attr->cq_depth * sizeof(struct m5_cqe), to_gpu);
    if (!error)
        error = copy_part(queue, attr->cq, layout->cq_record, sizeof(struct m5_cq_record), to_gpu);
    if (!error)
        error = copy_part(queue, attr->record, layout->record, sizeof(struct m5_qp_record), to_gpu);
    return error;
}

int db_queue_gpu_fetch(struct db_queue *queue)
{
    struct db_qp view;

    if (!queue->on_gpu.view.device)
        return 0;
    int error = copy(queue, &view, queue->on_gpu.view.device, sizeof(view));
    if (error)
        return error;
    queue->qp->post = view.post;
    queue->qp->done = view.done;
    return copy_small_parts(queue, false);
}

int db_queue_gpu_store(struct db_queue *queue)
{
    const struct db_queue_attr *attr = &queue->attr;
    struct db_qp view;

    if (!queue->on_gpu.view.device)
        return 0;
    fill_view(queue, &view);
    int error = copy(queue, queue->on_gpu.view.device, &view, sizeof(view));
    if (!error)
        error = copy(queue, (struct db_qp *)queue->on_gpu.view.device + 1, queue->qp->slot_ready,
                     attr->depth * sizeof(uint32_t));
    if (!error)
        error = copy_small_parts(queue, true);
    if (error)
        return error;
    /* The receive ring stands before the send ring, so it lies where that does. */
    size_t first = queue->layout.recv_ring;
    size_t end = queue->layout.ring + (size_t)attr->depth * M5_BLOCK_BYTES;
    return copy_part(queue, attr->ring, first, end - first, true);
}

int db_queue_gpu_read(struct db_queue *queue, size_t at, size_t bytes, void *to)
{
    return copy(queue, to, place(queue, DB_MEMORY_GPU, at), bytes);
}

/* ---- The doorbell that a CPU thread forwards ---- */

int db_queue_forward(struct db_queue *queue)
{
    const uint64_t *word = (const uint64_t *)(const void *)(queue->memory + queue->layout.doorbell);

    if (!queue->device || !queue->attr.forwarded)
        return db_fail(-EINVAL,
                       "QP %#x rings its device itself: forwarding is for a queue of a "
                       "device with attr.forwarded",
                       queue->qp->qpn);
    /* Acquire: pairs with the release before the doorbell in db_ring(), so that the device finds
     * behind this ring what the poster released before its own. */
    uint64_t now = port_ld64(word, PORT_ACQUIRE, PORT_SYSTEM);
    if (now == queue->forwarded)
        return 0;
    queue->forwarded = now;
    port_doorbell(queue->doorbell, now);
    return 1;
}
