/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DOCA GPUNetIO's one-sided calls of one thread, by how the queue pair is shared. Compiled at run
 * time against the headers that NCCL installs; the structures are those of NCCL 2.28.9.
 */
#include <cuda.h>

#include <nccl_device/gin/gdaki/doca_gpunetio/doca_gpunetio_device.h>

#include "doca_queue.h"

static_assert(sizeof(doca_gpu_dev_verbs_qp) <= ARM_STATE_BYTES, "a queue pair needs more room");

ARM_KERNEL(vendor_doca_setup)
{
    doca_queue_fill((doca_gpu_dev_verbs_qp *)args.state, args);
}

template <doca_gpu_dev_verbs_resource_sharing_mode sharing>
static __device__ __forceinline__ void put(const arm_args &args)
{
    doca_gpu_dev_verbs_qp *qp = (doca_gpu_dev_verbs_qp *)args.state;
    doca_gpu_dev_verbs_addr to = {args.raddr, arm_be32(ARM_RKEY)};
    doca_gpu_dev_verbs_addr from = {args.laddr, arm_be32(ARM_LKEY)};
    arm_time(args, [&] { doca_gpu_dev_verbs_put<sharing>(qp, to, from, args.bytes); });
}

template <doca_gpu_dev_verbs_resource_sharing_mode sharing>
static __device__ __forceinline__ void put_value(const arm_args &args)
{
    doca_gpu_dev_verbs_qp *qp = (doca_gpu_dev_verbs_qp *)args.state;
    doca_gpu_dev_verbs_addr to = {args.raddr, arm_be32(ARM_RKEY)};
    arm_time(args, [&] { doca_gpu_dev_verbs_p<uint64_t, sharing>(qp, to, args.value); });
}

ARM_KERNEL(vendor_doca_put_exclusive)
{
    put<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE>(args);
}

ARM_KERNEL(vendor_doca_put_cta)
{
    put<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA>(args);
}

ARM_KERNEL(vendor_doca_put_gpu)
{
    put<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>(args);
}

ARM_KERNEL(vendor_doca_p_exclusive)
{
    put_value<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE>(args);
}

ARM_KERNEL(vendor_doca_p_cta)
{
    put_value<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA>(args);
}

ARM_KERNEL(vendor_doca_p_gpu)
{
    put_value<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU>(args);
}
