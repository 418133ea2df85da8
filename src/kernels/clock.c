/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A GPU's clock against its timer; see clock.h. One source for a C11 compiler and nvcc.
 */
#include "clock.h"

/* The timer of a GPU steps by tens of nanoseconds: starts right behind a step. */
PORT_FN uint64_t next_step(void)
{
    uint64_t before = port_now_ns(), now;
    do {
        now = port_now_ns();
        port_pause();
    } while (now == before);
    return now;
}

PORT_KERNEL(db_clock, struct db_clock_args, args)
{
    if (port_block() != 0 || port_thread() != 0)
        return;
    uint64_t start_ns = next_step();
    uint64_t start = port_clock();
    uint64_t end_ns;
    do {
        end_ns = next_step();
    } while (end_ns - start_ns < args->ns);
    uint64_t end = port_clock();
    args->read[0] = start_ns;
    args->read[1] = start;
    args->read[2] = end_ns;
    args->read[3] = end;
}
