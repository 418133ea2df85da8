/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory that a CPU thread stores to, through GDRCopy's library where it is found at run time.
 * Included by proxy_ring.c, for progress that GPU threads read from their own memory.
 */
#ifndef DOORBELL_SRC_GDR_H
#define DOORBELL_SRC_GDR_H

#include <stddef.h>
#include <stdint.h>

struct db_gdr_mapping;

/*
 * Maps `bytes` of GPU memory at `gpu` (within one 64 KiB page of it) for stores by the CPU:
 * write-combining, so that the stores need an sfence to leave. `*cpu` is where. -ENOSYS: no
 * library; -ENODEV: its kernel module is not there; -EINVAL: it does not take the memory.
 */
int db_gdr_map(uint64_t gpu, size_t bytes, struct db_gdr_mapping **mapping, void **cpu);
void db_gdr_unmap(struct db_gdr_mapping *mapping);

/* Where the library is looked for: a name for dlopen(), or NULL for the program itself, which is
 * for tests. Before the first mapping. */
extern const char *db_gdr_library;

#endif
