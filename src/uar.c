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

/* On the software device the register of queues without a record is memory, so of two doorbells
 * that meet there one is lost, and without a record nothing else tells of it: such queues share no
 * page. */
static bool rings_alone(const struct db_queue *queue)
{
    return queue->attr.without_record && queue->device->path.software;
}

/* A store to a write-combining register stays in a CPU's buffer until something pushes it out, so
 * it is the default only where it is ordinary memory: on the software device. */
static struct mlx5dv_devx_uar *allocate_any(const struct db_queue *queue)
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
        return uar || rings_alone(queue) ? uar : mlx5dv_devx_alloc_uar(context, UAR_NON_CACHED);
    }
}

/* Who rings alone on a page; NULL: nobody does. */
static struct db_queue *owner_of(const struct db_device *device, uint32_t page_id)
{
    struct db_queue *queue = device->recordless;

    while (queue && queue->uar->page_id != page_id)
        queue = queue->next_recordless;
    return queue;
}

/*
 * On a page on which no other queue rings alone. What libmlx5 gives on the page of one that does
 * stays with that one, or it would be given again for each queue that comes. Returns 0, -EBUSY when
 * there is one register for all, or what libmlx5 says.
 */
static int allocate_alone(struct db_queue *queue)
{
    while (true) {
        struct mlx5dv_devx_uar *uar = allocate_any(queue);
        if (!uar)
            return db_errno();
        struct db_queue *owner = owner_of(queue->device, uar->page_id);
        if (!owner) {
            queue->uar = uar;
            return 0;
        }
        if (uar == owner->uar || owner->uar_rest_count == DB_UAR_REST) {
            mlx5dv_devx_free_uar(uar);
            return -EBUSY;
        }
        owner->uar_rest[owner->uar_rest_count++] = uar;
    }
}

static int allocate(struct db_queue *queue)
{
    struct db_device *device = queue->device;

    if (!rings_alone(queue)) {
        queue->uar = allocate_any(queue);
        return queue->uar ? 0 : db_errno();
    }
    pthread_mutex_lock(&device->lock);
    int error = allocate_alone(queue);
    if (!error) {
        queue->next_recordless = device->recordless;
        device->recordless = queue;
    }
    pthread_mutex_unlock(&device->lock);
    return error;
}

static int refuse(const struct db_queue *queue, int error)
{
    const char *name = queue->device->path.name;

    if (!rings_alone(queue))
        return db_fail(error,
                       "%s gives no doorbell register: %s; use DB_UAR_NON_CACHED, which all queues "
                       "share",
                       name, strerror(-error));
    if (error == -EBUSY)
        return db_fail(error,
                       "queues without a doorbell record cannot share a register of %s, where one "
                       "of two doorbells would be lost; use DB_UAR_DEFAULT",
                       name);
    return db_fail(error,
                   "%s has no register left for another queue without a doorbell record: %s; use "
                   "queues with a record, or fewer",
                   name, strerror(-error));
}

int db_queue_uar_create(struct db_queue *queue)
{
    int error = allocate(queue);

    if (error)
        return refuse(queue, error);
    uint8_t *reg = queue->uar->reg_addr;
    if (queue->attr.without_record)
        reg = reg - (uintptr_t)reg % M5_UAR_BYTES + M5_UAR_SEND_NO_RECORD;
    queue->doorbell = reg;
    if (!queue->attr.forwarded)
        queue->qp->doorbell = queue->doorbell;
    return 0;
}

static void forget(struct db_queue *queue)
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
    if (rings_alone(queue))
        forget(queue);
    while (queue->uar_rest_count)
        mlx5dv_devx_free_uar(queue->uar_rest[--queue->uar_rest_count]);
    mlx5dv_devx_free_uar(queue->uar);
}
