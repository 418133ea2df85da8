/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A DOCA GPUNetIO queue pair over plain memory. Included by doca.cu and gin.cu, behind the header
 * that declares the structures.
 */
#ifndef BENCH_VENDORS_DOCA_QUEUE_H
#define BENCH_VENDORS_DOCA_QUEUE_H

#include "arm.h"

static_assert(sizeof(doca_gpu_dev_verbs_qp) == 280, "doca_gpu_dev_verbs_qp is not of 280 bytes");
static_assert(sizeof(doca_gpu_dev_verbs_cq) == 56, "doca_gpu_dev_verbs_cq is not of 56 bytes");
static_assert(DOCA_GPUNETIO_VERBS_MKEY_SWAPPED == 1, "keys are not expected in big-endian order");

/* Fills a queue pair that nothing was posted to and all of whose slots are free for good. */
static __device__ void doca_queue_fill(doca_gpu_dev_verbs_qp *qp, const arm_args &args)
{
    *qp = {};
    qp->sq_num = ARM_QPN;
    qp->sq_num_shift8 = ARM_QPN << 8;
    qp->sq_num_shift8_be = arm_be32(ARM_QPN << 8);
    qp->sq_num_shift8_be_1ds = arm_be32(ARM_QPN << 8 | 1);
    qp->sq_num_shift8_be_2ds = arm_be32(ARM_QPN << 8 | 2);
    qp->sq_num_shift8_be_3ds = arm_be32(ARM_QPN << 8 | 3);
    qp->sq_num_shift8_be_4ds = arm_be32(ARM_QPN << 8 | 4);
    qp->sq_wqe_num = ARM_DEPTH;
    qp->sq_wqe_mask = ARM_DEPTH - 1;
    qp->sq_wqe_daddr = args.ring;
    qp->sq_dbrec = args.record + 1;
    qp->sq_db = args.doorbell;
    qp->nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB;
    qp->mem_type = DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU;
    qp->cq_sq.cqe_daddr = args.cq;
    qp->cq_sq.cqe_num = ARM_DEPTH;
    qp->cq_sq.cqe_mask = ARM_DEPTH - 1;
    qp->cq_sq.cqe_ci = ARM_CONSUMED;
    qp->cq_sq.mem_type = DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU;
}

#endif
