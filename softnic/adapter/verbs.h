/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An open uverbs context: its objects by handle, and what a verbs call is while it is at work.
 *
 * Included by the files that serve ioctls. A handle names an object within its context only;
 * closing the context destroys what is left, users before what they use. Everything here wants
 * soft_lock, except the functions that the engine calls.
 */
#ifndef SOFTNIC_ADAPTER_VERBS_H
#define SOFTNIC_ADAPTER_VERBS_H

#include <rdma/rdma_user_ioctl_cmds.h>

#include "events.h"
#include "process.h"

/* In the order in which a closing context destroys them. */
enum soft_kind {
    SOFT_QP,
    SOFT_DEVX_QP,
    SOFT_CQ,
    SOFT_DEVX_CQ,
    SOFT_MR,
    SOFT_UMEM,
    SOFT_UAR,
    SOFT_PD,
    SOFT_KINDS,
};

/* The first member of every object that has a handle. */
struct soft_object {
    enum soft_kind kind;
    uint32_t handle;
    uint32_t number; /* what the device calls it: PDN, key, UAR page, CQN, QPN */
};

struct soft_context {
    bool active; /* GET_CONTEXT was called */
    bool devx;
    struct soft_events *async;    /* the first asynchronous event queue, or NULL */
    struct soft_object **objects; /* by handle - 1; NULL = free */
    uint32_t capacity;
    uint32_t search_from; /* no slot below it is free */
};

/* One ioctl at work. */
struct soft_call {
    struct soft_context *context;
    struct ib_uverbs_attr *attrs;
    unsigned count;
};

struct soft_context *soft_context_open(void);

/* Takes soft_lock itself. */
void soft_context_close(struct soft_context *context);

/* In a forked child: frees its copy of a context, which stands for nothing there. */
void soft_context_forget(struct soft_context *context);

/* Serves RDMA_VERBS_IOCTL. Takes soft_lock itself. Returns 0 or a negative errno. */
int soft_ioctl(struct soft_context *context, struct ib_uverbs_ioctl_hdr *header);

/* ---- Handles (handles.c) ---- */

/* Gives the object a handle. -ENOMEM. */
int soft_object_add(struct soft_context *context, struct soft_object *object, enum soft_kind kind);

/* The object of that kind and handle, or NULL. */
void *soft_object_find(const struct soft_context *context, enum soft_kind kind, uint64_t handle);

/* Takes the handle back from an object that was not finished. */
void soft_object_remove(struct soft_context *context, uint32_t handle);

/* Destroys an object that the program, or the end of its context, gives up: -EBUSY while another
 * one uses it. On success the object is gone. */
int soft_object_destroy(struct soft_context *context, struct soft_object *object);

/* What soft_object_destroy() calls for each kind: they free the object. */
int soft_pd_destroy(struct soft_context *context, struct soft_object *object);
int soft_mr_destroy(struct soft_context *context, struct soft_object *object);
int soft_cq_destroy(struct soft_context *context, struct soft_object *object);
int soft_qp_destroy(struct soft_context *context, struct soft_object *object);
int soft_uar_destroy(struct soft_context *context, struct soft_object *object);
int soft_umem_destroy(struct soft_context *context, struct soft_object *object);
int soft_devx_destroy(struct soft_context *context, struct soft_object *object);

/* ---- Memory (mapped.c) ---- */

/* True when the whole range lies in this process's memory, readable, and writable if asked. */
bool soft_mapped(uint64_t start, uint64_t bytes, bool writable);

/* ---- What the engine calls ---- */

void soft_cq_completed(void *cq);
void soft_cq_failed(void *cq);
void soft_qp_event(void *qp, enum nic_event event);

#endif
