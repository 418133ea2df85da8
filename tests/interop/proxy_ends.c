/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See proxy_ends.h.
 */
#include "proxy_ends.h"

#include <softnic.h>
#include <string.h>

struct db_queue *proxy_ends_add(struct proxy_ends *ends, const struct db_queue_attr *attr)
{
    struct db_queue_attr full = *attr;
    struct db_queue *queue;

    full.proxy = ends->proxy;
    QUEUE_OK(db_queue_create(ends->device, &full, &queue));
    return queue;
}

void proxy_ends_start(struct proxy_ends *ends, const struct db_proxy_attr *proxy,
                      const struct db_queue_attr *attr, size_t bytes)
{
    const struct db_queue_attr peer = {.depth = 64, .recv_depth = 64};
    struct db_keys keys;

    *ends = (struct proxy_ends){.bytes = bytes};
    QUEUE_OK(db_device_open(SOFTNIC_DEVICE_NAME, NULL, &ends->device));
    queue_end_create(&ends->peer, ends->device, &peer, bytes);
    ends->buffer = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    CHECK(ends->buffer, "no memory");
    memset(ends->buffer, 0, bytes);
    QUEUE_OK(db_region_register(ends->device, DB_MEMORY_HOST, ends->buffer, bytes, DB_ACCESS_ALL,
                                &ends->region));
    QUEUE_OK(db_proxy_create(ends->device, proxy, &ends->proxy));
    ends->queue = proxy_ends_add(ends, attr);
    ends->qp = db_queue_device_view(ends->queue);
    keys = db_region_keys(ends->region);
    QUEUE_OK(db_queue_keys(ends->queue, DB_SIDE_LOCAL, &keys, &ends->local));
    QUEUE_OK(db_queue_keys(ends->queue, DB_SIDE_REMOTE, &ends->peer.keys, &ends->remote));
    QUEUE_OK(db_queue_connect(ends->queue, ends->peer.queue));
}

void proxy_ends_destroy(struct proxy_ends *ends)
{
    db_queue_destroy(ends->queue);
    db_proxy_destroy(ends->proxy);
    queue_end_destroy(&ends->peer);
    db_region_destroy(ends->region);
    free(ends->buffer);
    db_device_close(ends->device);
}
