/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One kernel for each way to post, straight through, so that tests/unit/ptx_paths.sh can count its
 * stores and fences in the PTX. Compiled by nvcc alone.
 */
#include <doorbell/device.h>
#include <doorbell/impl/port_kernel.h>

struct path_args {
    struct db_qp *qp;
    uint64_t raddr;
    uint64_t laddr;
    uint32_t rkey;
    uint32_t lkey;
    uint64_t *index;
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
OWNER_PATH(path_owner_system, DB_ORDER_SYSTEM, DB_WITH_RECORD)

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
        uint64_t index = *args->index;                                                             \
        db_build_write_value(qp, index, DB_SIGNALED, args->raddr, args->rkey, 7);                  \
        publication;                                                                               \
    }

SHARED_PATH(path_publish, db_publish(qp, index, index + 1, DB_ORDER_GPU, DB_WITH_RECORD))
SHARED_PATH(path_locked, db_publish_locked(qp, index, index + 1, DB_ORDER_GPU, DB_WITH_RECORD))
SHARED_PATH(path_ticket,
            db_publish_ticket(qp, index, index, index + 1, DB_ORDER_GPU, DB_WITH_RECORD))
SHARED_PATH(path_handoff, db_publish_handoff(qp, index, 1, DB_ORDER_GPU, DB_WITH_RECORD))
