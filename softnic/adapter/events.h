/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues behind completion channels and asynchronous event descriptors: a readable
 * descriptor, sources that raise events, and a count of the events that the program has read, which
 * libibverbs wants back when it destroys the source.
 *
 * Included by the verbs objects and by libc_fd.c. Raising never blocks and never allocates, so the
 * engine may do it.
 */
#ifndef SOFTNIC_ADAPTER_EVENTS_H
#define SOFTNIC_ADAPTER_EVENTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct soft_events;

enum soft_events_kind {
    SOFT_COMPLETIONS, /* a read gives struct ib_uverbs_comp_event_desc */
    SOFT_ASYNC,       /* a read gives struct ib_uverbs_async_event_desc */
};

/* Event types are the values of ibv_event_type that an object can raise; completions use type 0. */
#define SOFT_EVENT_TYPES 8

/* What raises events. Lies in its owner; at most one queue. */
struct soft_source {
    struct soft_events *events; /* NULL: nobody listens */
    struct soft_source *next;
    struct soft_source *previous;
    uint64_t element; /* what the program gets back */
    uint32_t waiting[SOFT_EVENT_TYPES];
    uint32_t total; /* sum of `waiting`; linked into the queue while not 0 */
    uint32_t reported;
};

/* Makes a queue with one reference, held by the descriptor that *fd becomes. */
int soft_events_create(enum soft_events_kind kind, struct soft_events **events, int *fd);
void soft_events_get(struct soft_events *events);
void soft_events_put(struct soft_events *events);
enum soft_events_kind soft_events_kind(const struct soft_events *events);

/* Takes one event, waiting as read() on `fd` does. Returns its bytes, or -1 with errno. */
ssize_t soft_events_read(struct soft_events *events, int fd, void *buffer, size_t bytes);

/* Joins the source to a queue and takes a reference on it; NULL leaves it silent. */
void soft_source_open(struct soft_source *source, struct soft_events *events, uint64_t element);

/* Adds an event. From any thread, the engine's included; the source must be open. */
void soft_source_raise(struct soft_source *source, uint32_t type);

/* Drops the events not yet read and leaves the queue. Returns how many were read. */
uint32_t soft_source_close(struct soft_source *source);

/* In a forked child: gives up its copy of a source, without the queue's lock, which the parent's
 * engine may have held. */
void soft_source_forget(struct soft_source *source);

#endif
