/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NVSHMEM IBGDA's put_nbi and p of one thread, behind the public calls: what those do after they
 * have found that the peer is not reached by NVLink. Compiled at run time; the structures are those
 * of NVSHMEM 3.4.5. The library's state lives in constant memory that its host side would fill;
 * here it is a constant.
 */
#include <cuda_runtime.h>

#include <device/nvshmem_device_macros.h>
#include <non_abi/device/pt-to-pt/ibgda_device.cuh>

#include "arm.h"

static_assert(sizeof(nvshmemi_ibgda_device_state_t) == 8384,
              "nvshmemi_ibgda_device_state_t is not of 8384 bytes");
static_assert(sizeof(nvshmemi_device_host_state_t) == 776,
              "nvshmemi_device_host_state_t is not of 776 bytes");
static_assert(sizeof(nvshmemi_ibgda_device_qp_t) == 184, "an IBGDA queue pair is not of 184 bytes");
static_assert(sizeof(nvshmemi_ibgda_device_cq_t) == 72, "an IBGDA CQ is not of 72 bytes");

#define PES   2
#define MY_PE 0
#define PEER  1

/* All user addresses are the local heap, since a constant can point to no other place; the peer's
 * lies higher. */
#define HEAP_LOG2 47
#define PEER_HEAP UINT64_C(0x0000010000000000)

static __device__ nvshmemi_ibgda_device_qp_t queue_pairs[PES]; /* one for each PE */
static __device__ nvshmemi_ibgda_device_cq_t completion_queue;
static __device__ uint8_t switches[1];
static __device__ void *peer_heaps[PES];

static constexpr nvshmemi_device_host_state_t host_state()
{
    nvshmemi_device_host_state_t s = {};
    s.version = (1 << 16) + sizeof(s);
    s.mype = MY_PE;
    s.npes = PES;
    s.node_mype = 0;
    s.node_npes = 1;
    s.heap_size = UINT64_C(1) << HEAP_LOG2; /* from address 0 */
    s.peer_heap_base_remote = peer_heaps;
    s.ibgda_is_initialized = true;
    s.nvshmemi_is_nvshmem_initialized = true;
    return s;
}
__constant__ nvshmemi_device_host_state_t nvshmemi_device_state_d = host_state();

static constexpr nvshmemi_ibgda_device_state_t device_state()
{
    nvshmemi_ibgda_device_state_t s = {};
    s.version = (1 << 16) + sizeof(s);
    s.dci_map_type = NVSHMEMI_IBGDA_DEVICE_QP_MAP_TYPE_CTA;
    s.ndcts_per_pe = 1;
    s.num_qp_groups = 1;
    s.num_dct_groups = 1;
    s.num_rc_per_pe = 1;
    s.rc_map_type = NVSHMEMI_IBGDA_DEVICE_QP_MAP_TYPE_CTA;
    s.num_requests_in_batch = 32;
    s.log2_cumem_granularity = HEAP_LOG2; /* the heap is one chunk, with one key */
    s.num_devices_initialized = 1;
    s.nic_buf_on_gpumem = true;
    s.constmem.lkeys[0].key = arm_be32(ARM_LKEY);
    s.constmem.lkeys[0].next_addr = UINT64_C(1) << HEAP_LOG2;
    s.constmem.rkeys[PEER].key = arm_be32(ARM_RKEY);
    s.constmem.rkeys[PEER].next_addr = UINT64_C(1) << HEAP_LOG2;
    s.globalmem.qp_group_switches = switches;
    s.globalmem.cqs = &completion_queue;
    s.globalmem.rcs = queue_pairs;
    return s;
}
__constant__ nvshmemi_ibgda_device_state_t nvshmemi_ibgda_device_state_d = device_state();

ARM_KERNEL(vendor_nvshmem_setup)
{
    nvshmemi_ibgda_device_qp_t *qp = &queue_pairs[PEER];
    nvshmemi_ibgda_device_cq_t *cq = &completion_queue;

    *qp = {};
    qp->version = (1 << 16) + sizeof(*qp);
    qp->qp_type = NVSHMEMI_IBGDA_DEVICE_QP_TYPE_RC;
    qp->qpn = ARM_QPN;
    qp->tx_wq.nwqes = ARM_DEPTH;
    qp->tx_wq.wqe = args.ring;
    qp->tx_wq.dbrec = args.record + 1;
    qp->tx_wq.bf = args.doorbell;
    qp->tx_wq.cq = cq;
    qp->tx_wq.prod_idx = &qp->mvars.tx_wq.prod_idx;
    qp->mvars.version = (1 << 16) + sizeof(qp->mvars);
    qp->mvars.tx_wq.cons_idx = ARM_CONSUMED;

    *cq = {};
    cq->version = (1 << 16) + sizeof(*cq);
    cq->qp_type = NVSHMEMI_IBGDA_DEVICE_QP_TYPE_RC;
    cq->cqe = args.cq;
    cq->prod_idx = &qp->mvars.tx_wq.prod_idx;
    cq->cons_idx = &qp->mvars.tx_wq.cons_idx;
    cq->resv_head = &qp->mvars.tx_wq.resv_head;
    cq->ready_head = &qp->mvars.tx_wq.ready_head;
    cq->ncqes = ARM_DEPTH;
    cq->qpn = ARM_QPN;

    peer_heaps[PEER] = (void *)PEER_HEAP;
    switches[0] = 0;
#ifdef NVSHMEM_IBGDA_SUPPORT_GPUMEM_ONLY
    args.results->notes = ARM_NOTE_GPU_MEMORY;
#else
    args.results->notes = ARM_NOTE_ANY_MEMORY;
#endif
}

/* The calls exist in device code only. A symmetric address is that of the local heap. */
ARM_KERNEL(vendor_nvshmem_put_nbi)
{
#ifdef __CUDA_ARCH__
    void *to = (void *)(args.raddr - PEER_HEAP);
    arm_time(args, [&] {
        nvshmemi_ibgda_rma_nbi<NVSHMEMI_THREADGROUP_THREAD, NVSHMEMI_OP_PUT>(to, (void *)args.laddr,
                                                                             args.bytes, PEER);
    });
#endif
}

ARM_KERNEL(vendor_nvshmem_p)
{
#ifdef __CUDA_ARCH__
    void *to = (void *)(args.raddr - PEER_HEAP);
    arm_time(args, [&] { nvshmemi_ibgda_rma_p<uint64_t>(to, args.value, PEER); });
#endif
}
