/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One kernel for each way to post, to poll and to push, straight through, so that
 * tests/unit/ptx_paths.sh can read its stores and fences in the PTX. Compiled by nvcc alone.
 */
#define DB_QUEUES DB_QUEUES_GPU /* pushes have kernels of their own */
#include <doorbell/device.h>
#include <doorbell/impl/port_kernel.h>

struct path_args {
    struct db_qp *qp;
    uint64_t raddr;
    uint64_t laddr;
    uint32_t rkey;
    uint32_t lkey;
    uint64_t *index;
    int *status;
    const void *payload;
};

/* The owner's state is given: taking the queue is not part of the path. */
struct owner_args {
    struct db_owner owner;
    struct path_args put;
};

#define OWNER_PATH(kernel, order, record)                                                          \
    PORT_KERNEL_DECLARE(kernel);                                                                   \
    PORT_KERNEL(kernel, struct owner_args, args)                                                   \
    {                                                                                              \
        struct db_owner owner = args->owner;                                                       \
        uint64_t index = owner.claimed;                                                            \
        db_build_write_value(&owner.here, index, DB_SIGNALED, args->put.raddr, args->put.rkey, 7); \
        db_owner_publish(&owner, index, index + 1, order, record);                                 \
    }

OWNER_PATH(path_owner_none, DB_ORDER_NONE_UNSAFE, DB_WITH_RECORD)
OWNER_PATH(path_owner_gpu, DB_ORDER_GPU, DB_WITH_RECORD)
OWNER_PATH(path_owner_gpu_no_record, DB_ORDER_GPU, DB_WITHOUT_RECORD)
OWNER_PATH(path_owner_gpu_exchanged, DB_ORDER_GPU, DB_RECORD_EXCHANGED)
OWNER_PATH(path_owner_system, DB_ORDER_SYSTEM, DB_WITH_RECORD)

#define TRY_PATH(kernel, order, record)                                                            \
    PORT_KERNEL_DECLARE(kernel);                                                                   \
    PORT_KERNEL(kernel, struct owner_args, args)                                                   \
    {                                                                                              \
        struct db_owner owner = args->owner;                                                       \
        db_build_write_value(&owner.here, owner.claimed, DB_SIGNALED, args->put.raddr,             \
                             args->put.rkey, 7);                                                   \
        *args->put.status = db_owner_try_publish(&owner, order, record);                           \
    }

TRY_PATH(path_try_gpu, DB_ORDER_GPU, DB_WITH_RECORD)
TRY_PATH(path_try_gpu_no_record, DB_ORDER_GPU, DB_WITHOUT_RECORD)
TRY_PATH(path_try_gpu_exchanged, DB_ORDER_GPU, DB_RECORD_EXCHANGED)
TRY_PATH(path_try_system, DB_ORDER_SYSTEM, DB_WITH_RECORD)

PORT_KERNEL_DECLARE(path_owner_warp);
PORT_KERNEL(path_owner_warp, struct owner_args, args)
{
    struct db_owner owner = args->owner;
    uint64_t index = owner.claimed + port_lane();
    owner.claimed += PORT_WARP_THREADS;
    db_build_write(&owner.here, index, DB_SIGNALED, args->put.raddr, args->put.rkey,
                   args->put.laddr, args->put.lkey, 8);
    db_owner_publish_warp(&owner, UINT32_MAX, DB_ORDER_GPU, DB_WITH_RECORD);
}

/* Publication alone, of a WQE that was built at a claimed index. */
#define SHARED_PATH(kernel, publication)                                                           \
    PORT_KERNEL_DECLARE(kernel);                                                                   \
    PORT_KERNEL(kernel, struct path_args, args)                                                    \
    {                                                                                              \
        struct db_qp *qp = args->qp;                                                               \
        const struct db_qp here = db_qp_constants(qp);                                             \
        uint64_t index = *args->index;                                                             \
        db_build_write_value(&here, index, DB_SIGNALED, args->raddr, args->rkey, 7);               \
        publication;                                                                               \
    }

SHARED_PATH(path_publish, db_publish(qp, index, index + 1, DB_ORDER_GPU, DB_WITH_RECORD))
SHARED_PATH(path_locked,
            db_publish_locked(qp, &here, index, index + 1, DB_ORDER_GPU, DB_WITH_RECORD))
SHARED_PATH(path_ticket,
            db_publish_ticket(qp, &here, index, index, index + 1, DB_ORDER_GPU, DB_WITH_RECORD))
SHARED_PATH(path_ticket_exchanged, db_publish_ticket(qp, &here, index, index, index + 1,
                                                     DB_ORDER_GPU, DB_RECORD_EXCHANGED))
SHARED_PATH(path_handoff, db_publish_handoff(qp, &here, index, 1, DB_ORDER_GPU, DB_WITH_RECORD))

PORT_KERNEL_DECLARE(path_publish_warp);
PORT_KERNEL(path_publish_warp, struct path_args, args)
{
    struct db_qp *qp = args->qp;
    const struct db_qp here = db_qp_constants(qp);
    uint64_t first = *args->index;
    db_build_write(&here, first + port_lane(), DB_SIGNALED, args->raddr, args->rkey, args->laddr,
                   args->lkey, 8);
    db_publish_warp(qp, &here, UINT32_MAX, first, DB_ORDER_GPU, DB_WITH_RECORD);
}

/* ---- The calls of device.h, which know neither order nor record before they run ---- */

PORT_KERNEL_DECLARE(path_put);
PORT_KERNEL(path_put, struct path_args, args)
{
    uint64_t index;
    *args->status = db_put(args->qp, args->raddr, args->rkey, args->laddr, args->lkey, 8, &index);
}

PORT_KERNEL_DECLARE(path_put_inline);
PORT_KERNEL(path_put_inline, struct path_args, args)
{
    uint64_t index;
    *args->status = db_put_inline(args->qp, args->raddr, args->rkey, args->payload, 8, &index);
}

PORT_KERNEL_DECLARE(path_put_shared);
PORT_KERNEL(path_put_shared, struct path_args, args)
{
    uint64_t index;
    *args->status =
        db_put_shared(args->qp, args->raddr, args->rkey, args->laddr, args->lkey, 8, &index);
}

/* ---- One look at a CQ ---- */

#define LOOK_PATH(kernel, look)                                                                    \
    PORT_KERNEL_DECLARE(kernel);                                                                   \
    PORT_KERNEL(kernel, struct path_args, args)                                                    \
    {                                                                                              \
        struct db_qp *qp = args->qp;                                                               \
        look;                                                                                      \
    }

LOOK_PATH(path_drain, db_cq_drain(qp, DB_ALL_BLOCKS, false, PORT_ACQUIRE))
LOOK_PATH(path_drain_shared, db_cq_drain(qp, DB_ALL_BLOCKS, true, PORT_ACQUIRE))
LOOK_PATH(path_poll_shared, *args->index = db_cq_poll(qp, DB_ALL_BLOCKS, true, PORT_ACQUIRE))
LOOK_PATH(path_poll_collapsed, *args->index = db_cq_poll_collapsed(qp, PORT_ACQUIRE))

/* ---- Pushes into a proxy's ring ---- */

struct push_args {
    struct db_ring *ring;
    struct db_descriptor d;
    uint64_t *index;
    int *status;
};

#define PUSH_PATH(kernel, steps)                                                                   \
    PORT_KERNEL_DECLARE(kernel);                                                                   \
    PORT_KERNEL(kernel, struct push_args, args)                                                    \
    {                                                                                              \
        struct db_ring *ring = args->ring;                                                         \
        *args->status = db_ring_push(ring, &ring->own, args->d, steps, args->index);               \
    }

PUSH_PATH(path_push_tuned, DB_RING_TUNED)
PUSH_PATH(path_push_tuned_payload, DB_RING_TUNED | DB_RING_PAYLOAD)
PUSH_PATH(path_push_shared, DB_RING_SHARED)
PUSH_PATH(path_push_baseline, DB_RING_BASELINE)

/* Of a ring that was taken, as the fastest caller does. */
PORT_KERNEL_DECLARE(path_try_push);
PORT_KERNEL(path_try_push, struct push_args, args)
{
    struct db_ring ring;
    uint64_t index;
    db_ring_take(&ring, args->ring);
    *args->status = db_ring_try_push(&ring, &ring.own, args->d, &index);
    *args->index = index;
    db_ring_give(args->ring, &ring);
}
