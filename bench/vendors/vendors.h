/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The issue paths of the established libraries on a GPU, beside ours: DOCA GPUNetIO, NCCL GIN and
 * NVSHMEM IBGDA, whose device code is headers only. Their headers are looked for at run time, our
 * sources over them (*.cu here) are compiled by the machine's nvcc, and the kernels that result
 * post to queues that lie in plain memory: what is timed is the issue path only, without a NIC.
 * Included by the case that asks for it (vendors_run) and by the tests of the parts.
 */
#ifndef BENCH_VENDORS_VENDORS_H
#define BENCH_VENDORS_VENDORS_H

#include <doorbell/gpu.h>

#include "../bench.h"

/* What a library reads and writes at each post, but for the ring. */
#define VENDORS_PAGE_BYTES 4096u

/*
 * Times one put of 8 bytes by one thread for every library that is there, and reports a record for
 * each way to put. First each posts a single put, and its WQE, doorbell record and doorbell are
 * compared with ours, but for the bytes that the library leaves undefined: the record is valid when
 * they agree. `path` is where headers are looked for, a list with ':' between; NULL: the CUDA
 * toolkit, the packages of Python and the system's folders.
 *
 * The setting, which ours has to share to be compared: ring, record and structures in GPU memory,
 * doorbell and the proxy's credits in mapped host memory, no slot used twice in a launch, at most
 * ARM_COUNT (arm.h) timed posts in a launch, VENDORS_PAUSE_TICKS of the SM's clock between two
 * posts.
 *
 * Tells the user what is skipped and why: no compiler, no headers, headers that our source does not
 * compile over; and of which versions it is not known whether it calls them well.
 *
 * `page` is GPU memory of VENDORS_PAGE_BYTES in the half of the L2 that `half` names; NULL: it does
 * not matter where.
 *
 * Returns BENCH_SKIPPED when nothing could run, BENCH_FAIL when a kernel failed or a WQE differs.
 */
enum bench_status vendors_run(struct bench *b, struct db_gpu *gpu, const char *path, uint8_t *page,
                              const char *half);

#define VENDORS_PAUSE_TICKS 4000u

#endif
