/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the engine sleeps and what wakes it. A doorbell is a plain store, which nobody is told of; so
 * while the engine sleeps the UAR pages are write-protected through userfaultfd: the first store
 * wakes it at once, and a sleeping engine uses no CPU at all. Where userfaultfd is not to be had
 * the engine looks at the registers every NIC_NAP_NS instead.
 */
#ifndef SOFTNIC_CORE_IDLE_H
#define SOFTNIC_CORE_IDLE_H

#include <stdbool.h>

#include "nic.h"

#define NIC_NAP_NS 50000

struct nic_idle {
    int wake_fd;   /* eventfd: a control call has news for the engine */
    int fault_fd;  /* userfaultfd, -1 where there is none */
    int uar_fd;    /* whose mappings are protected */
    void *own_map; /* the engine's own mapping, never protected */
    bool gpu;      /* a GPU driver was seen in the process */
    struct nic_uar_map *maps;
    uint32_t map_count;
    uint32_t map_room;
};

/* `uar_fd` and `own_map` stay the caller's. */
int nic_idle_open(struct nic_idle *idle, int uar_fd, void *own_map);
void nic_idle_close(struct nic_idle *idle);

/* Protects every mapping of the UAR pages. False where that cannot be relied on: no userfaultfd, or
 * a page that was handed out is not mapped yet, so that its mapping would come unnoticed. */
bool nic_idle_protect(struct nic_idle *idle, const struct nic *nic);

/* Lets stores through again; whoever waits in one goes on. */
void nic_idle_unprotect(struct nic_idle *idle);

/* Sleeps until a store to a protected page or nic_idle_wake(); at most `ns`, 0 = no limit. False
 * when the time passed. */
bool nic_idle_sleep(struct nic_idle *idle, uint64_t ns);
void nic_idle_wake(struct nic_idle *idle);

#endif
