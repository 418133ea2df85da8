/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings of a proxy, and the tables of memory that their descriptors name; proxy.h. A proxied
 * queue (queue.c) has one ring.
 *
 * Slots lie on pages of their own in host memory, with the progress behind them on a line of its
 * own, unless the caller gave GPU memory for it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "error.h"
#include "gdr.h"
#include "proxy.h"

#define PAGE_BYTES     4096u
#define LINE_BYTES     128u
#define MIN_RING_DEPTH 2u
#define MAX_RING_DEPTH 65536u

/* ---- Attributes ---- */

static int check_protocol(const struct db_queue_attr *attr)
{
    if (attr->protocol > DB_PROTOCOL_TUNED)
        return db_fail(-EINVAL, "protocol %d is not known; 0 to %d are", (int)attr->protocol,
                       (int)DB_PROTOCOL_TUNED);
    if (attr->protocol == DB_PROTOCOL_TUNED && attr->producers > 1)
        return db_fail(-EINVAL,
                       "the tuned protocol is for one producer, which counts its slots by itself: "
                       "%u would take the same slots and lose descriptors; use a ring for each, or "
                       "DB_PROTOCOL_BEST",
                       attr->producers);
    return 0;
}

int db_proxy_ring_check(const struct db_queue_attr *attr, struct db_queue_attr *full)
{
    const struct db_proxy *proxy = attr->proxy;

    *full = *attr;
    if (full->producers == 0)
        full->producers = 1;
    if (full->timeout_ns == 0)
        full->timeout_ns = DB_TIMEOUT_NS;
    if (attr->depth < MIN_RING_DEPTH || attr->depth > MAX_RING_DEPTH ||
        (attr->depth & (attr->depth - 1)))
        return db_fail(-EINVAL,
                       "depth %u cannot be: a proxied queue has %u to %u descriptors, a power of "
                       "two",
                       attr->depth, MIN_RING_DEPTH, MAX_RING_DEPTH);
    if (attr->worker > proxy->worker_count)
        return db_fail(-EINVAL, "the proxy has no worker %u; it has 1 to %u, and 0 is any",
                       attr->worker, proxy->worker_count);
    if (attr->cq_depth || attr->recv_depth || attr->collapsed || attr->without_record ||
        attr->exchange_record)
        return db_fail(-EINVAL, "a proxied queue has no CQ, no receives and no record of its own; "
                                "leave cq_depth, recv_depth, collapsed, without_record and "
                                "exchange_record 0");
    if (attr->progress > DB_MEMORY_GPU)
        return db_fail(-EINVAL, "progress in memory of kind %d is not known; 0 and 1 are",
                       (int)attr->progress);
    return check_protocol(full);
}

/* ---- Memory ---- */

static int gpu_failed(int error, const char *what)
{
    return db_fail(error, "%s: %s", what, db_gpu_error_text());
}

/* GPU memory, which a worker reaches through GDRCopy; or as it is, where CPU threads play the GPU.
 */
static int create_gpu_progress(struct db_proxy_ring *ring)
{
    struct db_gpu_buffer *buffer = &ring->gpu_progress;
    void *here;

    if (!ring->gpu)
        return db_fail(-EINVAL, "progress in GPU memory needs a GPU; set gpu");
    int error =
        ring->gpu->backend->alloc(ring->gpu, DB_GPU_MEMORY_GPU, sizeof(*ring->progress), buffer);
    if (error)
        return gpu_failed(error, "no GPU memory for a worker's progress");
    here = buffer->host;
    if (!here)
        error = db_gdr_map((uintptr_t)buffer->device, sizeof(*ring->progress), &ring->gdr, &here);
    if (!error)
        ring->progress = here;
    return error;
}

static int create_memory(struct db_proxy_ring *ring, const struct db_queue_attr *attr)
{
    ring->progress_at =
        (attr->depth * sizeof(struct db_descriptor) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    ring->memory_bytes =
        (ring->progress_at + LINE_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    void *memory =
        mmap(NULL, ring->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return db_fail(-ENOMEM, "no memory for a ring of %u descriptors", attr->depth);
    ring->memory = memory;
    ring->slots = memory;
    ring->progress = (struct db_ring_progress *)(void *)(ring->memory + ring->progress_at);
    if (!ring->gpu)
        return 0;
    int error = ring->gpu->backend->map(ring->gpu, DB_GPU_PAGES_MEMORY, memory, ring->memory_bytes,
                                        &ring->mapped);
    return error ? gpu_failed(error, "a ring cannot be mapped into the GPU") : 0;
}

static void destroy_memory(struct db_proxy_ring *ring)
{
    db_gdr_unmap(ring->gdr);
    if (ring->gpu_progress.device)
        ring->gpu->backend->free(ring->gpu, &ring->gpu_progress);
    if (ring->mapped)
        ring->gpu->backend->unmap(ring->gpu, ring->memory);
    if (ring->memory)
        munmap(ring->memory, ring->memory_bytes);
}

/* Clears the ring, and makes the view that of whoever pushes. */
static void fill_view(const struct db_proxy_ring *ring, const struct db_queue_attr *attr,
                      struct db_ring *view)
{
    bool baseline = attr->protocol == DB_PROTOCOL_BASELINE;

    *view = (struct db_ring){
        .slots = ring->memory,
        .progress = ring->progress,
        .timeout_ns = attr->timeout_ns,
        .depth = attr->depth,
        .producers = attr->producers > 1 || baseline ? DB_MANY_PRODUCERS : DB_ONE_PRODUCER,
        .baseline = baseline,
    };
    db_ring_clear(view, ring->progress, 0);
    if (ring->mapped) {
        view->slots = ring->mapped;
        view->progress =
            (const struct db_ring_progress *)(const void *)(view->slots + ring->progress_at);
    }
    if (ring->gpu_progress.device)
        view->progress = ring->gpu_progress.device;
    db_ring_aim(view, &view->own);
}

int db_proxy_ring_create(const struct db_queue_attr *attr, struct db_proxy_ring **ring,
                         struct db_ring *view)
{
    struct db_proxy_ring *made = calloc(1, sizeof(*made));

    if (!made)
        return db_fail(-ENOMEM, "no memory for a ring");
    made->gpu = attr->gpu;
    made->depth = attr->depth;
    int error = create_memory(made, attr);
    if (!error && attr->progress == DB_MEMORY_GPU)
        error = create_gpu_progress(made);
    if (error) {
        destroy_memory(made);
        free(made);
        return error;
    }
    fill_view(made, attr, view);
    *ring = made;
    return 0;
}

/* ---- Being served ---- */

static struct db_worker *choose_worker(struct db_proxy *proxy, uint32_t number)
{
    struct db_worker *best = &proxy->workers[0];

    if (number)
        return &proxy->workers[number - 1];
    for (uint32_t i = 1; i < proxy->worker_count; i++)
        if (__builtin_popcount(proxy->workers[i].served) < __builtin_popcount(best->served))
            best = &proxy->workers[i];
    return best;
}

/* The worker is held. */
static int add(struct db_worker *worker, struct db_proxy_ring *ring)
{
    uint32_t state = __atomic_load_n(&worker->state, __ATOMIC_ACQUIRE);

    if (state != DB_WORKER_RUNNING)
        return db_fail(-ENOTRECOVERABLE,
                       "worker %u of the proxy %s and serves no more queues; destroy the proxy and "
                       "create another",
                       worker->number,
                       state == DB_WORKER_STOPPED ? "was stopped"
                       : state == DB_WORKER_LOST  ? "was ended"
                                                  : "has a queue pair in error");
    if (worker->served == UINT32_MAX)
        return db_fail(-ENOSPC, "worker %u of the proxy serves %u queues already", worker->number,
                       DB_MAX_WORKER_QUEUES);
    ring->number = (uint32_t)__builtin_ctz(~worker->served);
    ring->worker = worker;
    worker->rings[ring->number] = ring;
    worker->served |= 1u << ring->number;
    return 0;
}

int db_proxy_ring_attach(struct db_proxy *proxy, uint32_t number, struct db_proxy_ring *ring)
{
    pthread_mutex_lock(&proxy->mutex);
    struct db_worker *worker = choose_worker(proxy, number);
    db_worker_hold(worker);
    int error = add(worker, ring);
    db_worker_let_go(worker);
    pthread_mutex_unlock(&proxy->mutex);
    if (!error)
        db_proxy_hold(proxy);
    return error;
}

uint32_t db_proxy_ring_qpn(const struct db_proxy_ring *ring)
{
    return ring->worker->pair.qp->qp_num;
}

/* Forgets what the worker still has of the ring. The worker is held. */
static void take_out(struct db_worker *worker, const struct db_proxy_ring *ring)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < worker->batch_count; i++) {
        const struct db_request *request = &worker->batch[worker->batch_first + i];
        if (request->ring != ring)
            worker->batch[worker->batch_first + kept++] = *request;
    }
    worker->batch_count = kept;
    for (uint32_t i = 0; i < worker->pair.depth; i++)
        if (worker->run[i].ring == ring)
            worker->run[i].ring = NULL;
    worker->rings[ring->number] = NULL;
    worker->served &= ~(1u << ring->number);
    worker->empty &= ~(1u << ring->number);
}

static void detach(struct db_proxy_ring *ring)
{
    struct db_worker *worker = ring->worker;
    struct db_proxy *proxy = worker->proxy;

    pthread_mutex_lock(&proxy->mutex);
    db_worker_hold(worker);
    take_out(worker, ring);
    db_worker_let_go(worker);
    pthread_mutex_unlock(&proxy->mutex);
    db_proxy_release(proxy);
}

void db_proxy_ring_destroy(struct db_proxy_ring *ring)
{
    if (ring->worker)
        detach(ring);
    destroy_memory(ring);
    free(ring);
}

/* ---- Memory that descriptors name ---- */

static uint32_t find_place(const struct db_places *places, const struct db_place *wanted)
{
    uint32_t i = 0;

    while (i < places->count &&
           (places->at[i].iova != wanted->iova || places->at[i].bytes != wanted->bytes ||
            places->at[i].key != wanted->key))
        i++;
    return i;
}

int db_proxy_keys(struct db_proxy *proxy, enum db_side side, const struct db_keys *region,
                  struct db_keys *keys)
{
    struct db_places *places = side == DB_SIDE_LOCAL ? &proxy->regions : &proxy->windows;
    struct db_place wanted = {region->iova, region->bytes,
                              side == DB_SIDE_LOCAL ? region->lkey : region->rkey};

    if (region->bytes > DB_RING_OFFSETS)
        return db_fail(-EINVAL,
                       "a region of %zu bytes is more than a descriptor's offset of 40 "
                       "bits reaches; register it in parts",
                       region->bytes);
    pthread_mutex_lock(&proxy->mutex);
    uint32_t place = find_place(places, &wanted);
    bool full = place == DB_RING_PLACES;
    if (!full && place == places->count) {
        places->at[place] = wanted;
        /* Release: pairs with the acquire of a worker that looks a place up. */
        __atomic_store_n(&places->count, place + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&proxy->mutex);
    if (full)
        return db_fail(-ENOSPC,
                       "a proxy's descriptors name at most %u %s regions; use larger ones, or "
                       "another proxy",
                       DB_RING_PLACES, side == DB_SIDE_LOCAL ? "local" : "remote");
    *keys = (struct db_keys){.lkey = place, .rkey = place, .iova = 0, .bytes = region->bytes};
    return 0;
}
