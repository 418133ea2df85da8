/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device as a running thing: one thread that notices doorbells and executes, how it sleeps, and
 * how control calls stop it for a moment.
 */
#ifndef SOFTNIC_CORE_ENGINE_H
#define SOFTNIC_CORE_ENGINE_H

#include "objects.h"

struct nic_host; /* a struct nic, its thread and its memory */

enum nic_poll {
    NIC_POLL_ADAPTIVE, /* spins while there is work and a while after, then sleeps until a doorbell
                        */
    NIC_POLL_SPIN,     /* never sleeps; lowest latency, one core */
};

struct nic_config {
    enum nic_poll poll;
    struct nic_strict strict;
    uint64_t numbers; /* chooses the first QPN and the first memory key; 0 = the tables' first */
};

/* Called by the engine, which holds the device: the callee must not block and must not call back
 * into the device. */
struct nic_callbacks {
    void (*completion)(void *cq_owner);
    void (*async_event)(void *owner, enum nic_event event); /* owner of the CQ or the QP */
};

/* Creates a device with no objects and starts its thread. -ENOMEM, or what thread creation gives.
 */
int nic_start(const struct nic_config *config, const struct nic_callbacks *callbacks,
              struct nic_host **host);

/* Stops the thread and frees everything. */
void nic_stop(struct nic_host *host);

/* Stops the engine between two turns and keeps it stopped until nic_release(). Takes microseconds
 * while the engine is awake; wakes it first when it sleeps. Not recursive. */
struct nic *nic_hold(struct nic_host *host);
void nic_release(struct nic_host *host);

/* The memfd that holds the UAR pages; the device's own, not to be closed. */
int nic_uar_fd(const struct nic_host *host);

/* A copy of the counters; may be called at any time without holding. */
void nic_read_counters(struct nic_host *host, struct nic_counters *counters);

/* One line for each diagnostic kind: what it means, for a person. Static strings. */
const char *nic_diag_name(enum nic_diag kind);
const char *nic_diag_text(enum nic_diag kind);

#endif
