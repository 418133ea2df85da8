/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The register that a queue's doorbell is rung at: on a UAR page from libmlx5 (PRM, "User Access
 * Region").
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "device.h"
#include "error.h"
#include "queue.h"

/* Values of mlx5dv_devx_alloc_uar()'s flags; rdma-core 44's header has no name for the last. */
enum uar_flags {
    UAR_BLUEFLAME = 0,               /* one of the two registers of a page */
    UAR_NON_CACHED = 1,              /* the context's one page, for all who ask */
    UAR_DEDICATED = (int)(1u << 31), /* one of four of a non-cached page; since rdma-core 46 */
};

/* A store to a write-combining register stays in a CPU's buffer until something pushes it out, so
 * it is the default only where it is ordinary memory: on the software device. */
static struct mlx5dv_devx_uar *allocate(const struct db_queue *queue)
{
    struct ibv_context *context = queue->device->context;
    struct mlx5dv_devx_uar *uar;

    switch (queue->attr.uar) {
    case DB_UAR_BLUEFLAME:
        return mlx5dv_devx_alloc_uar(context, UAR_BLUEFLAME);
    case DB_UAR_NON_CACHED:
        return mlx5dv_devx_alloc_uar(context, UAR_NON_CACHED);
    default:
        uar = mlx5dv_devx_alloc_uar(context, (uint32_t)UAR_DEDICATED);
        if (!uar && queue->device->path.software)
            uar = mlx5dv_devx_alloc_uar(context, UAR_BLUEFLAME);
        return uar ? uar : mlx5dv_devx_alloc_uar(context, UAR_NON_CACHED);
    }
}

static bool is_taken(const struct db_device *device, uint32_t page_id)
{
    for (const struct db_queue *queue = device->recordless; queue; queue = queue->next_recordless)
        if (queue->uar->page_id == page_id)
            return true;
    return false;
}

/*
 * On a page at which no other queue without a record rings: on the software device its register for
 * them is memory, so of two doorbells that meet there one is lost, and without a record nothing
 * else tells of it. What lies on a page that is taken is held while the next is asked for; `before`
 * was held already.
 */
static struct mlx5dv_devx_uar *allocate_alone(const struct db_queue *queue,
                                              const struct mlx5dv_devx_uar *before)
{
    struct mlx5dv_devx_uar *uar = allocate(queue);

    if (!uar || !is_taken(queue->device, uar->page_id))
        return uar;
    if (uar == before) { /* there is one for all */
        errno = EBUSY;
        return NULL;
    }
    struct mlx5dv_devx_uar *next = allocate_alone(queue, uar);
    mlx5dv_devx_free_uar(uar);
    return next;
}

static void allocate_recordless(struct db_queue *queue)
{
    struct db_device *device = queue->device;

    pthread_mutex_lock(&device->lock);
    queue->uar = device->path.software ? allocate_alone(queue, NULL) : allocate(queue);
    if (queue->uar) {
        queue->next_recordless = device->recordless;
        device->recordless = queue;
    }
    pthread_mutex_unlock(&device->lock);
}

static int refuse(const struct db_queue *queue, int error)
{
    if (error == -EBUSY)
        return db_fail(error, "on the software device queues without a doorbell record cannot "
                              "share a register, where one of two doorbells would be lost; use "
                              "DB_UAR_DEFAULT");
    return db_fail(error,
                   "%s gives no doorbell register: %s; use DB_UAR_NON_CACHED, which all queues "
                   "share",
                   queue->device->path.name, strerror(-error));
}

int db_queue_uar_create(struct db_queue *queue)
{
    bool without_record = queue->attr.without_record;

    if (without_record)
        allocate_recordless(queue);
    else
        queue->uar = allocate(queue);
    if (!queue->uar)
        return refuse(queue, db_errno());
    uint8_t *reg = queue->uar->reg_addr;
    if (without_record)
        reg = reg - (uintptr_t)reg % M5_UAR_BYTES + M5_UAR_SEND_NO_RECORD;
    queue->doorbell = reg;
    if (!queue->attr.forwarded)
        queue->qp->doorbell = queue->doorbell;
    return 0;
}

static void forget_recordless(struct db_queue *queue)
{
    struct db_device *device = queue->device;

    pthread_mutex_lock(&device->lock);
    struct db_queue **link = &device->recordless;
    while (*link != queue)
        link = &(*link)->next_recordless;
    *link = queue->next_recordless;
    pthread_mutex_unlock(&device->lock);
}

void db_queue_uar_destroy(struct db_queue *queue)
{
    if (!queue->uar)
        return;
    if (queue->attr.without_record)
        forget_recordless(queue);
    mlx5dv_devx_free_uar(queue->uar);
}
