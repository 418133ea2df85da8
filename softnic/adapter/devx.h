/* SPDX-License-Identifier: BSD-3-Clause */
/* DEVX objects as devx.c and devx_memory.c share them. `object` comes first: handles name it. */
#ifndef SOFTNIC_ADAPTER_DEVX_H
#define SOFTNIC_ADAPTER_DEVX_H

#include "core/prm.h"
#include "verbs.h"

struct soft_umem { /* its number and umem id is its handle */
    struct soft_object object;
    struct prm_umem memory;
    uint32_t users; /* rings and records that lie in it */
};

#define SOFT_QUEUE_UMEMS 4 /* a queue's ring and its record, with room to spare */

struct soft_devx_queue {
    struct soft_object object;
    struct soft_umem *umems[SOFT_QUEUE_UMEMS];
};

#endif
