/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel that measures a GPU's clock against its timer. Included by clock.c, which both
 * compilers take, and by the backend that launches it.
 */
#ifndef DOORBELL_SRC_KERNELS_CLOCK_H
#define DOORBELL_SRC_KERNELS_CLOCK_H

#include <doorbell/impl/port_kernel.h>

/* One thread: reads both, spins until `ns` have passed, reads both again. */
struct db_clock_args {
    uint64_t ns;
    uint64_t *read; /* [4] nanoseconds and ticks at the start, nanoseconds and ticks at the end */
};
PORT_KERNEL_DECLARE(db_clock);

#endif
