/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues of the verbs interface. */
#include <errno.h>
#include <stdlib.h>

#include <rdma/mlx5-abi.h>

#include "attrs.h"
#include "calls.h"
#include "files.h"
#include "queues.h"

/* The event queue behind the descriptor that an attribute names, with a reference; NULL if the
 * attribute is absent. */
static int events_of(const struct soft_call *call, uint16_t id, enum soft_events_kind kind,
                     struct soft_events **events)
{
    const struct ib_uverbs_attr *attr = soft_attr(call, id);

    *events = NULL;
    if (attr == NULL)
        return 0;
    *events = soft_file_events((int)attr->data);
    if (*events != NULL && soft_events_kind(*events) == kind)
        return 0;
    if (*events != NULL)
        soft_events_put(*events);
    *events = NULL;
    return soft_refuse(EINVAL, "descriptor %d is not %s", (int)attr->data,
                       kind == SOFT_ASYNC ? "an asynchronous event descriptor"
                                          : "a completion channel");
}

int soft_async_of(const struct soft_call *call, uint16_t id, struct soft_events **events)
{
    int error = events_of(call, id, SOFT_ASYNC, events);

    if (error == 0 && *events == NULL && call->context->async != NULL) {
        *events = call->context->async;
        soft_events_get(*events);
    }
    return error;
}

static int check_request(const struct mlx5_ib_create_cq *request, uint64_t flags)
{
    if (request->cqe_comp_en != 0)
        return soft_refuse(EOPNOTSUPP, "CREATE_CQ: compressed CQEs are not served");
    if (request->flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD)
        return soft_refuse(EOPNOTSUPP, "CREATE_CQ: padding of 128-byte CQEs is not served");
    if (request->flags & MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS ||
        flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
        return soft_refuse(EOPNOTSUPP, "CREATE_CQ: completion timestamps are not served");
    if (request->flags != MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX)
        return soft_refuse(EOPNOTSUPP, "CREATE_CQ: flags %#x are not served", request->flags);
    if (flags & ~(uint64_t)IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)
        return soft_refuse(EOPNOTSUPP, "CREATE_CQ: verbs flags %#llx are not served",
                           (unsigned long long)flags);
    if (request->cqe_size != 64 && request->cqe_size != 128)
        return soft_refuse(EINVAL, "CREATE_CQ: a CQE has 64 or 128 bytes, not %u",
                           request->cqe_size);
    return 0;
}

/* Translates the request into what the device wants. */
static int read_request(const struct soft_call *call, struct nic_cq_attr *attr, uint32_t *entries)
{
    uint64_t flags = soft_in_number(call, UVERBS_ATTR_CREATE_CQ_FLAGS, 0);
    uint64_t wanted = soft_in_number(call, UVERBS_ATTR_CREATE_CQ_CQE, 0);
    struct mlx5_ib_create_cq request;
    uint32_t log2 = 0;
    int error = soft_in(call, UVERBS_ATTR_UHW_IN, &request, sizeof(request));

    if (error == 0)
        error = check_request(&request, flags);
    if (error != 0)
        return error;
    if (wanted == 0 || wanted >= 1u << 22)
        return soft_refuse(EINVAL, "CREATE_CQ: %llu entries; from 1 to %u are allowed",
                           (unsigned long long)wanted, (1u << 22) - 1);
    if (soft_in_number(call, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 0) != 0)
        return soft_refuse(EINVAL, "CREATE_CQ: there is completion vector 0 only");
    while (1u << log2 <= wanted)
        log2++;
    if (!soft_mapped(request.buf_addr, (uint64_t)request.cqe_size << log2, true) ||
        !soft_mapped(request.db_addr, sizeof(struct m5_cq_record), true))
        return soft_refuse(EFAULT, "CREATE_CQ: its ring or its record is not mapped");
    *attr = (struct nic_cq_attr){
        .ring = (void *)(uintptr_t)request.buf_addr,
        .record = (void *)(uintptr_t)request.db_addr,
        .depth_log2 = log2,
        .cqe_bytes = request.cqe_size,
        .flags = flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN ? NIC_CQ_IGNORE_OVERRUN : 0,
    };
    *entries = (1u << log2) - 1;
    return soft_uar_page(call->context, request.uar_page_index, &attr->uar_page);
}

static int answer(struct soft_call *call, const struct soft_cq *cq, uint32_t entries)
{
    const struct mlx5_ib_create_cq_resp mlx5 = {.cqn = cq->object.number};
    int error = soft_out(call, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &entries, sizeof(entries));

    if (error == 0)
        error = soft_out(call, UVERBS_ATTR_UHW_OUT, &mlx5, sizeof(mlx5));
    if (error == 0)
        error = soft_out_number(call, UVERBS_ATTR_CREATE_CQ_HANDLE, cq->object.handle);
    return error;
}

int soft_create_cq(struct soft_call *call)
{
    uint64_t element = soft_in_number(call, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 0);
    struct soft_events *channel = NULL, *async = NULL;
    struct nic_cq_attr attr;
    struct soft_cq *cq;
    uint32_t entries = 0;
    int error = read_request(call, &attr, &entries);

    if (error != 0)
        return error;
    cq = calloc(1, sizeof(*cq));
    if (cq == NULL)
        return -ENOMEM;
    error = events_of(call, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, SOFT_COMPLETIONS, &channel);
    if (error == 0)
        error = soft_async_of(call, UVERBS_ATTR_CREATE_CQ_EVENT_FD, &async);
    if (error != 0)
        goto no_cq;
    soft_source_open(&cq->completions, channel, element);
    soft_source_open(&cq->async, async, element);

    attr.owner = cq;
    error = nic_cq_create(nic_hold(soft_device()), &attr, &cq->object.number);
    nic_release(soft_device());
    if (error != 0) {
        soft_refuse(-error, "CREATE_CQ: the device refuses it");
        goto no_device_cq;
    }
    error = soft_object_add(call->context, &cq->object, SOFT_CQ);
    if (error != 0)
        goto no_handle;
    error = answer(call, cq, entries);
    if (error == 0)
        goto done;

    soft_object_remove(call->context, cq->object.handle);
no_handle:
    nic_cq_destroy(nic_hold(soft_device()), cq->object.number);
    nic_release(soft_device());
no_device_cq:
    soft_source_close(&cq->completions);
    soft_source_close(&cq->async);
no_cq:
    free(cq);
done:
    if (channel != NULL)
        soft_events_put(channel);
    if (async != NULL)
        soft_events_put(async);
    return error;
}

/* Moderation delays events; this device raises each at once, which any setting allows. */
int soft_modify_cq(struct soft_call *call)
{
    struct ib_uverbs_ex_modify_cq request;
    int error = soft_in(call, UVERBS_ATTR_CORE_IN, &request, sizeof(request));

    if (error != 0)
        return error;
    if (soft_object_find(call->context, SOFT_CQ, request.cq_handle) == NULL)
        return -EINVAL;
    if (request.attr_mask != 1) /* IBV_CQ_ATTR_MODERATE */
        return soft_refuse(EOPNOTSUPP, "MODIFY_CQ: attributes %#x are not served",
                           request.attr_mask);
    return 0;
}

static int release_cq(struct soft_cq *cq, struct ib_uverbs_destroy_cq_resp *reported)
{
    int error = nic_cq_destroy(nic_hold(soft_device()), cq->object.number);

    nic_release(soft_device());
    if (error != 0)
        return error;
    reported->comp_events_reported = soft_source_close(&cq->completions);
    reported->async_events_reported = soft_source_close(&cq->async);
    free(cq);
    return 0;
}

int soft_cq_destroy(struct soft_context *context, struct soft_object *object)
{
    struct ib_uverbs_destroy_cq_resp reported;

    (void)context;
    return release_cq((struct soft_cq *)object, &reported);
}

int soft_destroy_cq(struct soft_call *call)
{
    uint64_t handle = soft_in_number(call, UVERBS_ATTR_DESTROY_CQ_HANDLE, 0);
    struct soft_cq *cq = soft_object_find(call->context, SOFT_CQ, handle);
    struct ib_uverbs_destroy_cq_resp reported;
    int error;

    if (cq == NULL)
        return -EINVAL;
    error = release_cq(cq, &reported);
    if (error != 0)
        return error;
    soft_object_remove(call->context, (uint32_t)handle);
    return soft_out(call, UVERBS_ATTR_DESTROY_CQ_RESP, &reported, sizeof(reported));
}

void soft_cq_completed(void *owner)
{
    struct soft_cq *cq = owner;

    soft_source_raise(&cq->completions, 0);
}

void soft_cq_failed(void *owner)
{
    struct soft_cq *cq = owner;

    soft_source_raise(&cq->async, NIC_EVENT_CQ_ERR);
}
