/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues and queue pairs of the verbs interface, as cq.c, qp.c and qp_modify.c share
 * them. `object` comes first: handles name it. */
#ifndef SOFTNIC_ADAPTER_QUEUES_H
#define SOFTNIC_ADAPTER_QUEUES_H

#include <rdma/ib_user_ioctl_verbs.h>

#include "verbs.h"

struct soft_cq {
    struct soft_object object;
    struct soft_source completions;
    struct soft_source async;
};

struct soft_qp {
    struct soft_object object;
    struct soft_source async;
    bool signal_all;             /* libmlx5 itself asks for a CQE in each WQE */
    bool tell_drained;           /* the program asked for the event when it moved the QP to SQD */
    struct ib_uverbs_qp_cap cap; /* as asked for */
    uint32_t receive_depth;      /* what the receive ring holds */
    uint32_t receive_sges;
    /* What the device does not need but a query gives back; its state comes from the device. */
    struct ib_uverbs_query_qp_resp attr;
};

/* The page number of a UAR that this context owns, by its id. -EINVAL. */
int soft_uar_page(const struct soft_context *context, uint64_t id, uint32_t *page);

/* The event queue that a create call names, or the context's first. -EINVAL: not an asynchronous
 * event descriptor. */
struct soft_call;
int soft_async_of(const struct soft_call *call, uint16_t id, struct soft_events **events);

#endif
