/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of a proxy: a ring that one of its workers serves, behind the same handle and the same
 * device view as a queue pair; queue.h. What the ring is made of is in proxy_ring.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "error.h"
#include "proxy.h"
#include "queue.h"

/* What device code uses: in GPU memory for the kernels of a GPU, with the host's copy here. */
struct view {
    struct db_qp qp;
    struct db_ring ring;
};

/* ---- Creation and end ---- */

static int gpu_failed(int error, const char *what)
{
    return db_fail(error, "%s: %s", what, db_gpu_error_text());
}

/* The view as kernels see it: the same, but for where its ring is. */
static int create_gpu_view(struct db_queue *queue, const struct view *view)
{
    struct db_gpu *gpu = queue->attr.gpu;
    struct db_gpu_buffer *buffer = &queue->on_gpu.view;
    struct view copy = *view;

    if (!gpu)
        return 0;
    int error = gpu->backend->alloc(gpu, DB_GPU_MEMORY_GPU, sizeof(copy), buffer);
    if (error)
        return gpu_failed(error, "no GPU memory for a queue's view");
    copy.qp.ring = &((struct view *)buffer->device)->ring;
    copy.ring.many = &copy.qp.ring->shared;
    error = gpu->backend->copy(gpu, buffer->device, &copy, sizeof(copy));
    return error ? gpu_failed(error, "a queue cannot be copied to the GPU") : 0;
}

static int create_view(struct db_queue *queue)
{
    struct view *view;
    void *memory;

    if (posix_memalign(&memory, _Alignof(struct view), sizeof(*view)))
        return db_fail(-ENOMEM, "no memory for a proxied queue");
    memset(memory, 0, sizeof(*view));
    view = memory;
    queue->qp = &view->qp;
    int error = db_proxy_ring_create(&queue->attr, &queue->proxied, &view->ring);
    if (error)
        return error;
    error = db_proxy_ring_attach(queue->attr.proxy, queue->attr.worker, queue->proxied);
    if (error)
        return error;
    view->qp.ring = &view->ring;
    view->qp.timeout_ns = queue->attr.timeout_ns;
    view->qp.qpn = db_proxy_ring_qpn(queue->proxied);
    view->qp.depth = queue->attr.depth;
    return create_gpu_view(queue, view);
}

int db_queue_proxied_create(struct db_device *device, const struct db_queue_attr *attr,
                            struct db_queue **queue)
{
    struct db_queue_attr full;

    if (attr->proxy->device != device)
        return db_fail(-EINVAL, "the proxy is of another device than the queue: of %s, not of %s",
                       attr->proxy->device->path.name, device->path.name);
    int error = db_proxy_ring_check(attr, &full);
    if (error)
        return error;
    struct db_queue *made = calloc(1, sizeof(*made));
    if (!made)
        return db_fail(-ENOMEM, "no memory for a queue");
    made->attr = full;
    made->device = device;
    error = create_view(made);
    if (error) {
        db_queue_proxied_destroy(made);
        free(made);
        return error;
    }
    db_device_hold(device);
    *queue = made;
    return 0;
}

void db_queue_proxied_destroy(struct db_queue *queue)
{
    struct db_gpu *gpu = queue->attr.gpu;

    if (queue->on_gpu.view.device)
        gpu->backend->free(gpu, &queue->on_gpu.view);
    if (queue->proxied)
        db_proxy_ring_destroy(queue->proxied);
    free(queue->qp);
}

/* ---- Keys ---- */

int db_queue_keys(struct db_queue *queue, enum db_side side, const struct db_keys *region,
                  struct db_keys *keys)
{
    if (queue->proxied)
        return db_proxy_keys(queue->attr.proxy, side, region, keys);
    *keys = *region;
    return 0;
}

/* ---- State ---- */

static enum db_queue_state state_of(enum ibv_qp_state state)
{
    switch (state) {
    case IBV_QPS_RESET:
        return DB_QUEUE_RESET;
    case IBV_QPS_INIT:
        return DB_QUEUE_INIT;
    case IBV_QPS_RTR:
        return DB_QUEUE_RTR;
    case IBV_QPS_RTS:
        return DB_QUEUE_READY;
    case IBV_QPS_SQE:
    case IBV_QPS_ERR:
        return DB_QUEUE_ERROR;
    default:
        return DB_QUEUE_OTHER;
    }
}

int db_queue_proxied_query(struct db_queue *queue, struct db_queue_info *info)
{
    const struct db_proxy_ring *ring = queue->proxied;
    const struct db_pair *pair = &ring->worker->pair;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    int error = ibv_query_qp(pair->qp, &attr, IBV_QP_STATE, &init);
    if (error)
        return db_fail(-error, "QP %#x of a proxy does not tell its state: %s", queue->qp->qpn,
                       strerror(error));
    *info = (struct db_queue_info){
        .state = state_of(attr.qp_state),
        .qpn = queue->qp->qpn,
        .peer_qpn = pair->peer.qpn,
        .depth = queue->attr.depth,
        .executed = (uint32_t)port_ld64(&ring->progress->completed, PORT_ACQUIRE, PORT_SYSTEM) &
                    M5_INDEX_MASK,
        .scope = DB_SCOPE_SYSTEM,
    };
    return 0;
}

/* Whether a producer gave up on slots that it had reserved; the word is where the view is. */
static int is_broken(const struct db_queue *queue, bool *broken)
{
    struct db_gpu *gpu = queue->attr.gpu;
    const struct view *view = (const struct view *)(const void *)queue->qp;
    uint64_t word;

    if (!gpu) {
        *broken = port_ld64(&view->ring.shared.broken, PORT_ACQUIRE, PORT_GPU) != 0;
        return 0;
    }
    view = queue->on_gpu.view.device;
    int error = gpu->backend->copy(gpu, &word, &view->ring.shared.broken, sizeof(word));
    *broken = word != 0;
    return error ? gpu_failed(error, "a queue cannot be copied from the GPU") : 0;
}

int db_queue_proxied_fetch(struct db_queue *queue)
{
    const struct db_proxy_ring *ring = queue->proxied;
    uint64_t word = port_ld64(&ring->progress->error, PORT_ACQUIRE, PORT_SYSTEM);
    bool broken = false;

    queue->peer_qpn = ring->worker->pair.peer.qpn;
    if (word & DB_ERROR_VALID)
        port_st64(&queue->qp->done.error, word, PORT_RELAXED, PORT_SYSTEM);
    if (word == DB_RING_WORKER_LOST)
        return db_fail(
            -ENOTRECOVERABLE,
            "worker %u of the proxy was ended, or its queue pair takes no more requests; "
            "destroy the proxy and create another",
            ring->worker->number);
    if (word == DB_RING_STOPPED)
        return db_fail(-ESHUTDOWN, "the proxy was stopped: its worker %u serves no more queues",
                       ring->worker->number);
    int error = word ? 0 : is_broken(queue, &broken);
    if (broken)
        return db_fail(-ENOTRECOVERABLE,
                       "a thread gave up on slots of the ring that it had reserved, and nobody can "
                       "push behind them; destroy the queue and create another");
    return error;
}

/* ---- Connecting: the worker's queue pair, which all its queues share ---- */

int db_queue_proxied_endpoint(const struct db_queue *queue, struct db_endpoint *endpoint)
{
    db_pair_endpoint(queue->device, &queue->proxied->worker->pair, endpoint);
    return 0;
}

int db_queue_proxied_connect(struct db_queue *queue, const struct db_endpoint *endpoint)
{
    struct db_proxy *proxy = queue->attr.proxy;
    struct db_pair *pair = &queue->proxied->worker->pair;

    pthread_mutex_lock(&proxy->mutex);
    bool again = pair->peer.qpn == endpoint->qpn && pair->peer.psn == endpoint->psn &&
                 memcmp(pair->peer.gid, endpoint->gid, sizeof(endpoint->gid)) == 0;
    int error = again ? 0 : db_pair_connect(queue->device, pair, endpoint);
    queue->peer_qpn = pair->peer.qpn;
    pthread_mutex_unlock(&proxy->mutex);
    return error;
}
