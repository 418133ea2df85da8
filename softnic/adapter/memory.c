/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions of the verbs interface. */
#include <errno.h>
#include <stdlib.h>

#include <rdma/mlx5-abi.h>

#include "attrs.h"
#include "calls.h"

int soft_alloc_pd(struct soft_call *call)
{
    struct soft_object *pd = calloc(1, sizeof(*pd));
    struct ib_uverbs_alloc_pd_resp answer;
    struct mlx5_ib_alloc_pd_resp mlx5;
    int error;

    if (pd == NULL)
        return -ENOMEM;
    error = nic_pd_alloc(nic_hold(soft_device()), &pd->number);
    nic_release(soft_device());
    if (error != 0)
        goto no_pd;
    error = soft_object_add(call->context, pd, SOFT_PD);
    if (error != 0)
        goto no_handle;
    answer.pd_handle = pd->handle;
    mlx5.pdn = pd->number;
    error = soft_out(call, UVERBS_ATTR_CORE_OUT, &answer, sizeof(answer));
    if (error == 0)
        error = soft_out(call, UVERBS_ATTR_UHW_OUT, &mlx5, sizeof(mlx5));
    if (error == 0)
        return 0;

    soft_object_remove(call->context, pd->handle);
no_handle:
    nic_pd_free(nic_hold(soft_device()), pd->number);
    nic_release(soft_device());
no_pd:
    free(pd);
    return error;
}

int soft_pd_destroy(struct soft_context *context, struct soft_object *object)
{
    int error = nic_pd_free(nic_hold(soft_device()), object->number);

    (void)context;
    nic_release(soft_device());
    if (error == 0)
        free(object);
    return error;
}

static int destroy_pd(struct soft_call *call, uint64_t handle)
{
    struct soft_object *pd = soft_object_find(call->context, SOFT_PD, handle);

    return pd == NULL ? -EINVAL : soft_object_destroy(call->context, pd);
}

int soft_destroy_pd(struct soft_call *call)
{
    return destroy_pd(call, soft_in_number(call, UVERBS_ATTR_DESTROY_PD_HANDLE, 0));
}

int soft_dealloc_pd(struct soft_call *call)
{
    struct ib_uverbs_dealloc_pd request;
    int error = soft_in(call, UVERBS_ATTR_CORE_IN, &request, sizeof(request));

    return error != 0 ? error : destroy_pd(call, request.pd_handle);
}

static const uint32_t served_access = NIC_LOCAL_WRITE | NIC_REMOTE_WRITE | NIC_REMOTE_READ |
                                      NIC_REMOTE_ATOMIC | IB_UVERBS_ACCESS_ZERO_BASED |
                                      IB_UVERBS_ACCESS_HUGETLB;

/* Optional flags are hints and may be ignored; any other promises something that must hold. */
static int check_access(uint32_t access)
{
    const uint32_t beyond = access & ~(served_access | IB_UVERBS_ACCESS_OPTIONAL_RANGE);

    if (beyond & IB_UVERBS_ACCESS_ON_DEMAND)
        return soft_refuse(EOPNOTSUPP, "REG_MR: on-demand paging is not served");
    if (beyond & IB_UVERBS_ACCESS_MW_BIND)
        return soft_refuse(EOPNOTSUPP, "REG_MR: memory windows are not served");
    if (beyond != 0)
        return soft_refuse(EOPNOTSUPP, "REG_MR: access flags %#x are not served", beyond);
    if (access & (NIC_REMOTE_WRITE | NIC_REMOTE_ATOMIC) && !(access & NIC_LOCAL_WRITE))
        return soft_refuse(EINVAL,
                           "REG_MR: remote write or atomic access needs local write access");
    return 0;
}

static int check_range(const struct ib_uverbs_reg_mr *request)
{
    const uint64_t page_mask = M5_UAR_BYTES - 1;
    const bool writable =
        (request->access_flags & (NIC_LOCAL_WRITE | NIC_REMOTE_WRITE | NIC_REMOTE_ATOMIC)) != 0;

    if (request->length == 0)
        return soft_refuse(EINVAL, "REG_MR: the region is empty");
    if (request->start + request->length < request->start)
        return soft_refuse(EINVAL, "REG_MR: %#llx + %#llx wraps",
                           (unsigned long long)request->start, (unsigned long long)request->length);
    if (!(request->access_flags & IB_UVERBS_ACCESS_ZERO_BASED) &&
        ((request->start ^ request->hca_va) & page_mask) != 0)
        return soft_refuse(EINVAL, "REG_MR: address %#llx and iova %#llx differ within a page",
                           (unsigned long long)request->start, (unsigned long long)request->hca_va);
    if (!soft_mapped(request->start, request->length, writable))
        return soft_refuse(EFAULT, "REG_MR: %#llx + %#llx is not all mapped%s",
                           (unsigned long long)request->start, (unsigned long long)request->length,
                           writable ? " and writable" : "");
    return 0;
}

static int answer_mr(struct soft_call *call, const struct soft_object *mr)
{
    const struct ib_uverbs_reg_mr_resp answer = {
        .mr_handle = mr->handle,
        .lkey = mr->number,
        .rkey = mr->number,
    };

    return soft_out(call, UVERBS_ATTR_CORE_OUT, &answer, sizeof(answer));
}

int soft_reg_mr(struct soft_call *call)
{
    struct ib_uverbs_reg_mr request;
    struct nic_mkey_attr attr;
    struct soft_object *pd, *mr;
    int error = soft_in(call, UVERBS_ATTR_CORE_IN, &request, sizeof(request));

    if (error == 0)
        error = check_access(request.access_flags);
    if (error == 0)
        error = check_range(&request);
    if (error != 0)
        return error;
    pd = soft_object_find(call->context, SOFT_PD, request.pd_handle);
    if (pd == NULL)
        return soft_refuse(EINVAL, "REG_MR: no such protection domain");
    mr = calloc(1, sizeof(*mr));
    if (mr == NULL)
        return -ENOMEM;

    attr = (struct nic_mkey_attr){
        .pdn = pd->number,
        .access = request.access_flags &
                  (NIC_LOCAL_WRITE | NIC_REMOTE_WRITE | NIC_REMOTE_READ | NIC_REMOTE_ATOMIC),
        .start = request.access_flags & IB_UVERBS_ACCESS_ZERO_BASED ? 0 : request.hca_va,
        .bytes = request.length,
        .host = (void *)(uintptr_t)request.start,
    };
    error = nic_mkey_create(nic_hold(soft_device()), &attr, &mr->number);
    nic_release(soft_device());
    if (error != 0)
        goto no_key;
    error = soft_object_add(call->context, mr, SOFT_MR);
    if (error != 0)
        goto no_handle;
    error = answer_mr(call, mr);
    if (error == 0)
        return 0;

    soft_object_remove(call->context, mr->handle);
no_handle:
    nic_mkey_destroy(nic_hold(soft_device()), mr->number);
    nic_release(soft_device());
no_key:
    free(mr);
    return error;
}

int soft_mr_destroy(struct soft_context *context, struct soft_object *object)
{
    int error = nic_mkey_destroy(nic_hold(soft_device()), object->number);

    (void)context;
    nic_release(soft_device());
    if (error == 0)
        free(object);
    return error;
}

static int destroy_mr(struct soft_call *call, uint64_t handle)
{
    struct soft_object *mr = soft_object_find(call->context, SOFT_MR, handle);

    return mr == NULL ? -EINVAL : soft_object_destroy(call->context, mr);
}

int soft_destroy_mr(struct soft_call *call)
{
    return destroy_mr(call, soft_in_number(call, UVERBS_ATTR_DESTROY_MR_HANDLE, 0));
}

int soft_dereg_mr(struct soft_call *call)
{
    struct ib_uverbs_dereg_mr request;
    int error = soft_in(call, UVERBS_ATTR_CORE_IN, &request, sizeof(request));

    return error != 0 ? error : destroy_mr(call, request.mr_handle);
}
