/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NCCL GIN's calls of one thread, over its two backends: GDAKI, which posts to a DOCA queue pair,
 * and the proxy, which leaves a descriptor for a CPU thread. Compiled at run time; the structures
 * are those of NCCL 2.28.9. Of the scopes that a put may name, these are its defaults.
 */
#define NCCL_GIN_GDAKI_ENABLE 1 /* else only known for device code */
#define NCCL_GIN_PROXY_ENABLE 1

#include <nccl_device/coop.h>
#include <nccl_device/gin/gin_device_api.h>

#include "doca_queue.h"

static_assert(sizeof(ncclGinCtx) == 24, "ncclGinCtx is not of 24 bytes");
static_assert(sizeof(ncclGinGdakiGPUContext) == 72, "ncclGinGdakiGPUContext is not of 72 bytes");
static_assert(sizeof(ncclGinGdakiMemHandle) == 16, "ncclGinGdakiMemHandle is not of 16 bytes");
static_assert(sizeof(ncclGinProxyGpuCtx_t) == 48, "ncclGinProxyGpuCtx_t is not of 48 bytes");

#define PEER 0

struct state {
    doca_gpu_dev_verbs_qp qp[1];
    ncclGinGdakiGPUContext gdaki;
    ncclGinGdakiMemHandle window;
    ncclGinProxyGpuCtx_t proxy;
    uint32_t rkey[1];
    uint32_t produced[1];
};
static_assert(sizeof(state) <= ARM_STATE_BYTES, "the context needs more room");

ARM_KERNEL(vendor_gin_setup)
{
    state *s = (state *)args.state;
    doca_queue_fill(&s->qp[PEER], args);
    s->rkey[PEER] = arm_be32(ARM_RKEY);
    s->gdaki = {};
    s->gdaki.gdqp = s->qp;
    s->gdaki.companion_gdqp = s->qp;
    s->window.rkeys = s->rkey;
    s->window.lkey = arm_be32(ARM_LKEY);

    s->produced[PEER] = 0;
    s->proxy = {};
    s->proxy.nranks = 1;
    s->proxy.queueSize = ARM_DEPTH;
    s->proxy.queues = (ncclGinProxyGfd_t *)args.ring;
    s->proxy.pis = s->produced;
    s->proxy.cis = args.credit;
}

template <ncclNetDeviceType backend>
static __device__ __forceinline__ void put(const arm_args &args, ncclGinCtx context, void *window)
{
    arm_time(args, [&] {
        ncclGinApi_Put<backend>::call(context, ncclCoopThread(), PEER, true, window, args.raddr,
                                      window, args.laddr, args.bytes, false, 0, ncclGinSignalInc, 0,
                                      false, 0, false, nullptr, cuda::thread_scope_thread,
                                      cuda::thread_scope_device);
    });
}

ARM_KERNEL(vendor_gin_gdaki_put)
{
    state *s = (state *)args.state;
    ncclGinCtx context = {NCCL_NET_DEVICE_GIN_GDAKI, 0, 1, &s->gdaki};
    put<NCCL_NET_DEVICE_GIN_GDAKI>(args, context, &s->window);
}

ARM_KERNEL(vendor_gin_gdaki_put_value)
{
    state *s = (state *)args.state;
    ncclGinCtx context = {NCCL_NET_DEVICE_GIN_GDAKI, 0, 1, &s->gdaki};
    arm_time(args, [&] {
        ncclGinApi_PutValue<NCCL_NET_DEVICE_GIN_GDAKI>::call(
            context, ncclCoopThread(), PEER, &s->window, args.raddr, args.value, false, 0,
            ncclGinSignalInc, 0, false, nullptr, cuda::thread_scope_thread,
            cuda::thread_scope_device);
    });
}

/* The proxy passes windows on as they are, so any value shows whether it did. */
ARM_KERNEL(vendor_gin_proxy_put)
{
    state *s = (state *)args.state;
    ncclGinCtx context = {NCCL_NET_DEVICE_GIN_PROXY, 0, 1, &s->proxy};
    put<NCCL_NET_DEVICE_GIN_PROXY>(args, context, (void *)(uintptr_t)ARM_RKEY);
}
