/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A proxied queue on the software device, with a buffer that its descriptors name, and the queue of
 * a peer: what the programs proxy_*.c in tests/interop start from.
 */
#ifndef DOORBELL_TESTS_PROXY_ENDS_H
#define DOORBELL_TESTS_PROXY_ENDS_H

#include "queue_ends.h"

struct proxy_ends {
    struct db_device *device;
    struct db_proxy *proxy;
    struct db_queue *queue; /* proxied */
    struct db_qp *qp;
    struct queue_end peer; /* its buffer is the remote memory */
    struct db_region *region;
    uint8_t *buffer;      /* the local memory */
    struct db_keys local; /* as the proxied queue names them */
    struct db_keys remote;
    size_t bytes; /* of each buffer */
};

/* Opens the device and makes all of it, connected. `attr` is the proxied queue's, without proxy. */
void proxy_ends_start(struct proxy_ends *ends, const struct db_proxy_attr *proxy,
                      const struct db_queue_attr *attr, size_t bytes);
void proxy_ends_destroy(struct proxy_ends *ends);

/* One more queue of the same proxy, whose worker is connected. */
struct db_queue *proxy_ends_add(struct proxy_ends *ends, const struct db_queue_attr *attr);

#endif
