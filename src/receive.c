/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving, on the host: what a put with immediate consumes at its target; doorbell.h.
 */
#include <errno.h>

#include "error.h"
#include "queue.h"

int db_queue_post_receives(struct db_queue *queue, uint32_t count)
{
    uint64_t in_use = queue->recv_posted - queue->recv_taken;

    if (count > queue->attr.recv_depth - in_use)
        return db_fail(-EINVAL,
                       "%u receives do not fit: QP %#x was made for %u at once, of which %llu are "
                       "posted; see recv_depth",
                       count, queue->qp->qpn, queue->attr.recv_depth, (unsigned long long)in_use);
    queue->recv_posted += count;
    /* The receives were written when the ring was made; the release is for the first of them. */
    port_st32(&queue->qp->record->receive.raw,
              port_bswap32((uint32_t)queue->recv_posted & M5_INDEX_MASK), PORT_RELEASE,
              PORT_SYSTEM);
    return 0;
}

int db_queue_poll_receive(struct db_queue *queue, struct db_receive *receive)
{
    uint32_t depth = queue->attr.recv_depth;
    uint64_t count = queue->recv_consumed;

    if (depth == 0)
        return db_fail(-EINVAL, "QP %#x was made without receives; see recv_depth", queue->qp->qpn);
    const struct m5_cqe *cqe =
        (const struct m5_cqe *)(const void *)(queue->memory + queue->layout.recv_cq +
                                              (count & (depth - 1)) * sizeof(struct m5_cqe));
    if (!db_cqe_is_new((const uint8_t *)cqe, count, depth))
        return 0;

    *receive = (struct db_receive){
        .imm = port_host32(cqe->imm),
        .bytes = port_host32(cqe->byte_count),
        .qpn = port_host32(cqe->opcode_qpn) & M5_QPN_MASK,
    };
    uint32_t opcode = cqe->op_own >> 4;
    uint32_t syndrome = ((const struct m5_error_cqe *)(const void *)cqe)->syndrome;
    queue->recv_consumed++;
    queue->recv_taken++;
    /* Release: the CQE was read before its slot is given back to the device. */
    port_st32(&db_queue_recv_cq_record(queue)->consumer.raw,
              port_bswap32((uint32_t)queue->recv_consumed & 0xffffffu), PORT_RELEASE, PORT_SYSTEM);
    if (opcode == M5_CQE_RESPONDER_ERROR)
        return db_fail(-EIO,
                       "a receive of QP %#x failed with syndrome %#x: the queue is in error; "
                       "db_queue_reset() brings it back",
                       queue->qp->qpn, syndrome);
    return 1;
}
