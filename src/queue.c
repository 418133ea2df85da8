/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues: creation, state and end; doorbell.h. Their parts are in the files that queue.h names.
 */
#include "queue.h"

#include <errno.h>
#include <stdlib.h>

#include "device.h"
#include "error.h"
#include "prm.h"

/* A QPN that no device gives, for what a detached queue's WQEs and CQEs carry. */
#define DETACHED_QPN 0xdb0000u

/* Takes a queue's parts back, as many as there are: users before what they use. */
static void end(struct db_queue *queue)
{
    db_queue_gpu_view_destroy(queue);
    db_queue_objects_destroy(queue);
    db_queue_gpu_parts_destroy(queue);
    db_queue_memory_destroy(queue);
}

static int create(struct db_device *device, const struct db_queue_attr *attr,
                  struct db_queue **queue)
{
    struct db_queue_attr full;
    int error = db_queue_attr_check(device, attr, &full);

    if (error)
        return error;
    struct db_queue *made = calloc(1, sizeof(*made));
    if (!made)
        return db_fail(-ENOMEM, "no memory for a queue");
    made->attr = full;
    error = db_queue_memory_create(made);
    if (error)
        goto no_memory;
    error = db_queue_gpu_parts_create(made);
    if (error)
        goto no_objects;
    if (device) {
        made->device = device;
        error = db_queue_objects_create(made);
    } else {
        made->qp->qpn = DETACHED_QPN;
    }
    if (!error)
        error = db_queue_gpu_view_create(made);
    if (error)
        goto no_objects;
    if (device)
        db_device_hold(device);
    *queue = made;
    return 0;

no_objects:
    end(made);
no_memory:
    free(made);
    return error;
}

int db_queue_create(struct db_device *device, const struct db_queue_attr *attr,
                    struct db_queue **queue)
{
    *queue = NULL;
    if (!device)
        return db_fail(-EINVAL,
                       "a queue needs an open device; db_queue_create_detached() does not");
    return attr->proxy ? db_queue_proxied_create(device, attr, queue) : create(device, attr, queue);
}

int db_queue_create_detached(const struct db_queue_attr *attr, struct db_queue **queue)
{
    *queue = NULL;
    return create(NULL, attr, queue);
}

struct db_qp *db_queue_device_view(struct db_queue *queue)
{
    return queue->attr.gpu ? (struct db_qp *)queue->on_gpu.view.device : queue->qp;
}

void db_queue_destroy(struct db_queue *queue)
{
    if (!queue)
        return;
    struct db_device *device = queue->device;
    if (queue->proxied)
        db_queue_proxied_destroy(queue);
    else
        end(queue);
    free(queue);
    if (device)
        db_device_release(device);
}

/* ---- State ---- */

static enum db_queue_state state_of(uint64_t qpc_state)
{
    switch (qpc_state) {
    case M5_QPC_RST:
        return DB_QUEUE_RESET;
    case M5_QPC_INIT:
        return DB_QUEUE_INIT;
    case M5_QPC_RTR:
        return DB_QUEUE_RTR;
    case M5_QPC_RTS:
        return DB_QUEUE_READY;
    case M5_QPC_ERR:
    case M5_QPC_SQER:
        return DB_QUEUE_ERROR;
    default:
        return DB_QUEUE_OTHER;
    }
}

int db_queue_query(struct db_queue *queue, struct db_queue_info *info)
{
    const struct db_queue_attr *attr = &queue->attr;
    struct db_prm prm;

    if (queue->proxied)
        return db_queue_proxied_query(queue, info);
    *info = (struct db_queue_info){
        .state = DB_QUEUE_DETACHED,
        .qpn = queue->qp->qpn,
        .peer_qpn = queue->peer_qpn,
        .depth = attr->depth,
        .cq_depth = attr->cq_depth,
        .recv_depth = attr->recv_depth,
        .executed = (uint32_t)queue->executed & M5_INDEX_MASK,
        .scope = attr->scope,
        .without_record = attr->without_record,
        .exchange_record = attr->exchange_record,
    };
    if (!queue->device)
        return 0;
    db_prm_begin(&prm, QUERY_QP, query_qp_in, query_qp_out);
    db_prm_set(prm.in, m5_query_qp_in_qpn, queue->qp->qpn);
    int error = db_prm_query(queue->device, &prm, queue->pair);
    if (error)
        return error;
    const uint8_t *qpc = prm.out + m5_query_qp_out_qpc;
    info->state = state_of(db_prm_get(qpc, m5_qpc_state));
    info->executed = (uint32_t)db_prm_get(qpc, m5_qpc_hw_sq_wqebb_counter);
    return 0;
}

/* ---- Errors ---- */

static const char *opcode_name(uint32_t opcode)
{
    switch (opcode) {
    case M5_OP_NOP:
        return "NOP";
    case M5_OP_WRITE:
        return "RDMA write";
    case M5_OP_WRITE_IMM:
        return "RDMA write with immediate";
    case M5_OP_READ:
        return "RDMA read";
    case M5_OP_ATOMIC_FA:
        return "fetch-and-add";
    default:
        return "operation";
    }
}

static const char *syndrome_text(uint32_t syndrome)
{
    switch (syndrome) {
    case M5_SYN_LOCAL_LENGTH:
        return "its length does not fit the buffer or the path";
    case M5_SYN_LOCAL_QP_OP:
        return "the WQE is not a valid one";
    case M5_SYN_LOCAL_PROTECTION:
        return "its local address is not in the region of its lkey, or may not be written";
    case M5_SYN_FLUSHED:
        return "the queue was in error already (a collapsed CQ keeps the last error alone)";
    case M5_SYN_BAD_RESPONSE:
        return "the peer's answer makes no sense";
    case M5_SYN_LOCAL_ACCESS:
        return "a peer's access to local memory failed";
    case M5_SYN_REMOTE_INVALID_REQUEST:
        return "the peer refused the request as invalid";
    case M5_SYN_REMOTE_ACCESS:
        return "its remote address is not in the region of its rkey, or the access is not allowed";
    case M5_SYN_REMOTE_OPERATION:
        return "the peer could not carry it out";
    case M5_SYN_TRANSPORT_RETRY_EXCEEDED:
        return "the peer does not answer: it is gone, or not connected to this queue";
    case M5_SYN_RNR_RETRY_EXCEEDED:
        return "the peer has posted no receive";
    case M5_SYN_REMOTE_ABORTED:
        return "the peer aborted it";
    default:
        return "the syndrome is not known here; see the PRM";
    }
}

int db_queue_check(struct db_queue *queue)
{
    struct db_error why;

    int error = queue->proxied ? db_queue_proxied_fetch(queue) : db_queue_gpu_fetch(queue);
    if (error)
        return error;
    switch (db_qp_error(queue->qp, &why)) {
    case DB_OK:
        return 0;
    case DB_ERROR_IO:
        return db_fail(-EIO,
                       "QP %#x to QP %#x: the %s at index %u failed: %s (opcode %#x, syndrome %#x, "
                       "vendor syndrome %#x)",
                       why.qpn, queue->peer_qpn, opcode_name(why.opcode), why.index,
                       syndrome_text(why.syndrome), why.opcode, why.syndrome, why.vendor_syndrome);
    default:
        return db_fail(
            -ENOTRECOVERABLE,
            "QP %#x to QP %#x: a thread gave up on blocks that it had claimed, and nobody "
            "can post behind them; db_queue_reset() empties the queue",
            queue->qp->qpn, queue->peer_qpn);
    }
}
