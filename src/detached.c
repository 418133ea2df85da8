/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device of a detached queue, played by a host thread: it takes WQEs and writes CQEs, and moves
 * no data; doorbell.h.
 */
#include <errno.h>
#include <string.h>

#include "error.h"
#include "queue.h"

/* How many blocks were published, as a device would learn it: low 16 bits. */
static uint32_t published_index(const struct db_queue *queue)
{
    const struct db_qp *qp = queue->qp;

    if (qp->with_record != DB_WITHOUT_RECORD) {
        /* Acquire: pairs with the release before the record in db_ring(). */
        return port_bswap32(port_ld32(&qp->record->send.raw, PORT_ACQUIRE, PORT_SYSTEM)) &
               M5_INDEX_MASK;
    }
    /* Acquire: pairs with the release before the doorbell in db_ring(). */
    uint64_t word = port_ld64(qp->doorbell, PORT_ACQUIRE, PORT_SYSTEM);
    return port_bswap32((uint32_t)word) >> 8 & M5_INDEX_MASK;
}

static void write_cqe(struct db_queue *queue, uint32_t opcode)
{
    struct db_qp *qp = queue->qp;
    uint64_t slot = qp->cq_collapsed ? 0 : queue->produced & (qp->cq_depth - 1);
    uint32_t owner = (queue->produced & qp->cq_depth) != 0;
    uint32_t index = (uint32_t)queue->executed & M5_INDEX_MASK;
    uint64_t tail = (uint64_t)port_bswap32(index << 16 | (uint32_t)M5_CQE_REQUESTER << 4 | owner)
                        << 32 |
                    port_bswap32(opcode << 24 | qp->qpn);

    /* Release: pairs with the acquire in db_cqe_load(); the WQE was read before. */
    port_st64((uint64_t *)(void *)(qp->cq + slot * sizeof(struct m5_cqe) + 56), tail, PORT_RELEASE,
              PORT_SYSTEM);
    queue->produced++;
}

int db_detached_complete(struct db_queue *queue, uint32_t count)
{
    struct db_qp *qp = queue->qp;

    if (queue->device)
        return db_fail(-EINVAL, "QP %#x is a device's; only a detached queue is completed by hand",
                       qp->qpn);
    if (db_queue_uses_gpu_memory(&queue->attr))
        return db_fail(-EINVAL,
                       "the CPU does not reach a queue in GPU memory; a kernel may play its "
                       "device");
    uint32_t waiting = (published_index(queue) - (uint32_t)queue->executed) & M5_INDEX_MASK;
    int taken = 0;
    for (; waiting > 0 && (uint32_t)taken < count; taken++) {
        struct m5_ctrl_seg ctrl;
        memcpy(&ctrl, qp->sq + (queue->executed & (qp->depth - 1)) * M5_BLOCK_BYTES, sizeof(ctrl));
        uint32_t blocks = ((port_host32(ctrl.qpn_ds) & 0x3f) + 3) / 4;
        if (blocks == 0 || blocks > waiting)
            return db_fail(-EIO, "the detached queue holds no WQE at index %llu",
                           (unsigned long long)queue->executed);
        if (ctrl.flags & M5_CTRL_CQ_UPDATE)
            write_cqe(queue, port_host32(ctrl.opmod_idx_opcode) & 0xff);
        queue->executed += blocks;
        waiting -= blocks;
    }
    return taken;
}

int db_detached_ring(struct db_queue *queue, void *blocks)
{
    const struct db_queue_attr *attr = &queue->attr;
    size_t bytes = (size_t)attr->depth * M5_BLOCK_BYTES;

    if (queue->device)
        return db_fail(-EINVAL, "QP %#x is a device's; only a detached queue's ring can be read",
                       queue->qp->qpn);
    if (attr->ring == DB_MEMORY_GPU)
        return db_queue_gpu_read(queue, queue->layout.ring, bytes, blocks);
    memcpy(blocks, queue->qp->sq, bytes);
    return 0;
}
