/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device's objects of a queue, made through DEVX: umems, CQs and the queue pair. PRM,
 * "CREATE_CQ", "CREATE_QP" and the contexts that they carry.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "device.h"
#include "error.h"
#include "gpu_register.h"
#include "prm.h"
#include "queue.h"

static uint32_t log2_of(uint32_t power)
{
    return (uint32_t)__builtin_ctz(power);
}

/* ---- Memory ---- */

/* Memory of this process. */
static int register_umem(const struct db_queue *queue, void *memory, struct mlx5dv_devx_umem **umem)
{
    *umem = mlx5dv_devx_umem_reg(queue->device->context, memory, queue->layout.bytes,
                                 IBV_ACCESS_LOCAL_WRITE);
    if (*umem)
        return 0;
    int error = db_errno();
    return db_fail(error, "%zu bytes of rings cannot be registered with %s: %s; see `ulimit -l`",
                   queue->layout.bytes, queue->device->path.name, strerror(-error));
}

static int register_dma_buf(void *registration, int fd, uint64_t offset)
{
    struct db_queue *queue = registration;
    struct mlx5dv_devx_umem_in in = {
        .addr = (void *)(uintptr_t)offset, /* with a dma-buf the place in it */
        .size = queue->layout.bytes,
        .access = IBV_ACCESS_LOCAL_WRITE,
        .pgsz_bitmap = UINT64_MAX & ~UINT64_C(4095),
        .comp_mask = MLX5DV_UMEM_MASK_DMABUF,
        .dmabuf_fd = fd,
    };

    queue->gpu_umem = mlx5dv_devx_umem_reg_ex(queue->device->context, &in);
    return queue->gpu_umem ? 0 : db_errno();
}

static int register_peer_memory(void *registration)
{
    struct db_queue *queue = registration;

    queue->gpu_umem = mlx5dv_devx_umem_reg(queue->device->context, queue->on_gpu.parts.device,
                                           queue->layout.bytes, IBV_ACCESS_LOCAL_WRITE);
    return queue->gpu_umem ? 0 : db_errno();
}

static const struct db_gpu_ways gpu_ways = {
    .dma_buf = register_dma_buf,
    .peer_memory = register_peer_memory,
};

/* The parts in GPU memory, which is host memory where CPU threads play the GPU. */
static int create_gpu_umem(struct db_queue *queue)
{
    const struct db_gpu_buffer *parts = &queue->on_gpu.parts;

    if (!parts->device)
        return 0;
    if (parts->host)
        return register_umem(queue, parts->host, &queue->gpu_umem);
    return db_gpu_register(queue->device, queue->attr.gpu, parts, "a queue's rings", &gpu_ways,
                           queue);
}

static uint32_t umem_id(const struct db_queue *queue, enum db_memory kind)
{
    return kind == DB_MEMORY_GPU ? queue->gpu_umem->umem_id : queue->umem->umem_id;
}

/* ---- Completion queues ---- */

struct cq_request {
    enum db_memory kind;
    size_t ring;
    size_t record;
    uint32_t depth;
    bool collapsed;
};

static int create_cq(struct db_queue *queue, const struct cq_request *request,
                     struct mlx5dv_devx_obj **cq, uint32_t *cqn)
{
    struct db_prm prm;
    uint8_t *cqc = prm.in + m5_create_cq_in_cq_context;

    db_prm_begin(&prm, CREATE_CQ, create_cq_in, create_cq_out);
    db_prm_set(prm.in, m5_create_cq_in_cq_umem_valid, 1);
    db_prm_set(prm.in, m5_create_cq_in_cq_umem_id, umem_id(queue, request->kind));
    db_prm_set(prm.in, m5_create_cq_in_cq_umem_offset, request->ring);
    db_prm_set(cqc, m5_cqc_dbr_umem_valid, 1);
    db_prm_set(cqc, m5_cqc_dbr_umem_id, umem_id(queue, request->kind));
    db_prm_set(cqc, m5_cqc_dbr_addr, request->record);
    db_prm_set(cqc, m5_cqc_cqe_sz, M5_CQC_CQE_64);
    /* The one CQE of a collapsed CQ is never consumed, so there must be no overrun check. */
    db_prm_set(cqc, m5_cqc_cc, request->collapsed);
    db_prm_set(cqc, m5_cqc_oi, request->collapsed);
    db_prm_set(cqc, m5_cqc_log_cq_size, log2_of(request->depth));
    db_prm_set(cqc, m5_cqc_uar_page, queue->uar->page_id);
    db_prm_set(cqc, m5_cqc_c_eqn_or_apu_element, queue->device->eqn);
    int error = db_prm_create(queue->device, &prm, cq);
    if (!error)
        *cqn = (uint32_t)db_prm_get(prm.out, m5_create_cq_out_cqn);
    return error;
}

static int create_cqs(struct db_queue *queue)
{
    const struct db_layout *layout = &queue->layout;
    const struct db_queue_attr *attr = &queue->attr;
    struct cq_request send = {attr->cq, layout->cq, layout->cq_record, attr->cq_depth,
                              attr->collapsed};
    struct cq_request receive = {DB_MEMORY_HOST, layout->recv_cq, layout->recv_cq_record,
                                 attr->recv_depth, false};

    int error = create_cq(queue, &send, &queue->cq, &queue->cqn);
    queue->recv_cqn = queue->cqn;
    if (!error && attr->recv_depth)
        error = create_cq(queue, &receive, &queue->recv_cq, &queue->recv_cqn);
    return error;
}

/* ---- Queue pair ---- */

static int create_pair(struct db_queue *queue)
{
    const struct db_queue_attr *attr = &queue->attr;
    struct db_prm prm;
    uint8_t *qpc = prm.in + m5_create_qp_in_qpc;

    db_prm_begin(&prm, CREATE_QP, create_qp_in, create_qp_out);
    db_prm_set(prm.in, m5_create_qp_in_wq_umem_valid, 1);
    db_prm_set(prm.in, m5_create_qp_in_wq_umem_id, umem_id(queue, attr->ring));
    db_prm_set(prm.in, m5_create_qp_in_wq_umem_offset, queue->layout.recv_ring);
    db_prm_set(qpc, m5_qpc_st, M5_QPC_ST_RC);
    db_prm_set(qpc, m5_qpc_pm_state, M5_QPC_PM_MIGRATED);
    db_prm_set(qpc, m5_qpc_pd, queue->device->pdn);
    db_prm_set(qpc, m5_qpc_uar_page, queue->uar->page_id);
    db_prm_set(qpc, m5_qpc_log_sq_size, log2_of(attr->depth));
    if (attr->recv_depth) {
        db_prm_set(qpc, m5_qpc_rq_type, M5_QPC_RQ_REGULAR);
        db_prm_set(qpc, m5_qpc_log_rq_size, log2_of(attr->recv_depth));
        db_prm_set(qpc, m5_qpc_log_rq_stride, log2_of(DB_RECV_WQE_BYTES) - M5_QPC_RQ_STRIDE_SHIFT);
    } else {
        db_prm_set(qpc, m5_qpc_rq_type, M5_QPC_RQ_NONE);
    }
    db_prm_set(qpc, m5_qpc_cqn_snd, queue->cqn);
    db_prm_set(qpc, m5_qpc_cqn_rcv, queue->recv_cqn);
    db_prm_set(qpc, m5_qpc_send_dbr_mode,
               attr->without_record ? M5_QPC_SEND_NO_RECORD : M5_QPC_SEND_RECORD);
    db_prm_set(qpc, m5_qpc_dbr_umem_valid, 1);
    db_prm_set(qpc, m5_qpc_dbr_umem_id, umem_id(queue, attr->record));
    db_prm_set(qpc, m5_qpc_dbr_addr, queue->layout.record);
    int error = db_prm_create(queue->device, &prm, &queue->pair);
    if (!error)
        queue->qp->qpn = (uint32_t)db_prm_get(prm.out, m5_create_qp_out_qpn);
    return error;
}

int db_queue_objects_create(struct db_queue *queue)
{
    int error = register_umem(queue, queue->memory, &queue->umem);

    if (!error)
        error = create_gpu_umem(queue);
    if (!error)
        error = db_queue_uar_create(queue);
    if (!error)
        error = create_cqs(queue);
    if (!error)
        error = create_pair(queue);
    return error ? error : db_queue_init(queue);
}

/* Users before what they use. */
void db_queue_objects_destroy(struct db_queue *queue)
{
    if (queue->pair)
        mlx5dv_devx_obj_destroy(queue->pair);
    if (queue->recv_cq)
        mlx5dv_devx_obj_destroy(queue->recv_cq);
    if (queue->cq)
        mlx5dv_devx_obj_destroy(queue->cq);
    db_queue_uar_destroy(queue);
    if (queue->gpu_umem)
        mlx5dv_devx_umem_dereg(queue->gpu_umem);
    if (queue->umem)
        mlx5dv_devx_umem_dereg(queue->umem);
}
