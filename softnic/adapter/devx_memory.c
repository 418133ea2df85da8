/* SPDX-License-Identifier: BSD-3-Clause */
/* What DEVX clients prepare before they create queues: umems and UAR pages. */
#include "devx.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include "attrs.h"
#include "calls.h"
#include "queues.h"

static int check_umem(const struct soft_call *call, uint64_t start, uint64_t bytes)
{
    const uint64_t access = soft_in_number(call, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 0);
    const uint64_t served = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |
                            IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC |
                            IB_UVERBS_ACCESS_OPTIONAL_RANGE;

    if (soft_attr(call, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD) != NULL)
        return soft_refuse(EOPNOTSUPP, "UMEM_REG: DMA buffers are not served");
    if (access & ~served)
        return soft_refuse(EOPNOTSUPP, "UMEM_REG: access flags %#llx are not served",
                           (unsigned long long)(access & ~served));
    if (bytes == 0 || start + bytes < start)
        return soft_refuse(EINVAL, "UMEM_REG: %#llx + %#llx is no range", (unsigned long long)start,
                           (unsigned long long)bytes);
    if (!soft_mapped(start, bytes, (access & IB_UVERBS_ACCESS_LOCAL_WRITE) != 0))
        return soft_refuse(EFAULT, "UMEM_REG: %#llx + %#llx is not all mapped with its access",
                           (unsigned long long)start, (unsigned long long)bytes);
    return 0;
}

int soft_umem_reg(struct soft_call *call)
{
    const uint64_t start = soft_in_number(call, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 0);
    const uint64_t bytes = soft_in_number(call, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 0);
    struct soft_umem *umem;
    int error = check_umem(call, start, bytes);

    if (error != 0)
        return error;
    umem = calloc(1, sizeof(*umem));
    if (umem == NULL)
        return -ENOMEM;
    umem->memory = (struct prm_umem){.addr = (void *)(uintptr_t)start, .bytes = bytes};
    error = soft_object_add(call->context, &umem->object, SOFT_UMEM);
    if (error != 0)
        goto no_handle;
    umem->object.number = umem->object.handle;
    error = soft_out(call, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, &umem->object.number,
                     sizeof(umem->object.number));
    if (error == 0)
        error = soft_out_number(call, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, umem->object.handle);
    if (error == 0)
        return 0;

    soft_object_remove(call->context, umem->object.handle);
no_handle:
    free(umem);
    return error;
}

int soft_umem_destroy(struct soft_context *context, struct soft_object *object)
{
    struct soft_umem *umem = (struct soft_umem *)object;

    (void)context;
    if (umem->users != 0)
        return soft_refuse(EBUSY, "UMEM_DEREG: queues or records lie in umem %u", object->number);
    free(umem);
    return 0;
}

int soft_umem_dereg(struct soft_call *call)
{
    struct soft_object *umem = soft_in_object(call, MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, SOFT_UMEM);

    return umem == NULL ? -EINVAL : soft_object_destroy(call->context, umem);
}

/* BlueFlame and non-cached pages differ in how a CPU maps them; here both are memory. */
int soft_uar_alloc(struct soft_call *call)
{
    const uint64_t type = soft_in_number(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, UINT64_MAX);
    const uint32_t length = M5_UAR_BYTES;
    struct soft_object *uar;
    uint64_t offset;
    uint32_t id;
    int error;

    if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)
        return soft_refuse(EOPNOTSUPP, "UAR_ALLOC: type %llu is not served",
                           (unsigned long long)type);
    uar = calloc(1, sizeof(*uar));
    if (uar == NULL)
        return -ENOMEM;
    error = nic_uar_alloc(nic_hold(soft_device()), &uar->number);
    nic_release(soft_device());
    if (error != 0) {
        soft_refuse(-error, "UAR_ALLOC: all %d pages are in use", NIC_UAR_PAGES);
        goto no_page;
    }
    error = soft_object_add(call->context, uar, SOFT_UAR);
    if (error != 0)
        goto no_handle;
    id = NIC_FIRST_UAR + uar->number;
    offset = (uint64_t)uar->number * M5_UAR_BYTES;
    error = soft_out(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof(offset));
    if (error == 0)
        error = soft_out(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length, sizeof(length));
    if (error == 0)
        error = soft_out(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &id, sizeof(id));
    if (error == 0)
        error = soft_out_number(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, uar->handle);
    if (error == 0)
        return 0;

    soft_object_remove(call->context, uar->handle);
no_handle:
    nic_uar_free(nic_hold(soft_device()), uar->number);
    nic_release(soft_device());
no_page:
    free(uar);
    return error;
}

int soft_uar_destroy(struct soft_context *context, struct soft_object *object)
{
    int error = nic_uar_free(nic_hold(soft_device()), object->number);

    (void)context;
    nic_release(soft_device());
    if (error == 0)
        free(object);
    return error;
}

int soft_uar_free(struct soft_call *call)
{
    struct soft_object *uar = soft_in_object(call, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, SOFT_UAR);

    return uar == NULL ? -EINVAL : soft_object_destroy(call->context, uar);
}

int soft_uar_page(const struct soft_context *context, uint64_t id, uint32_t *page)
{
    for (uint32_t i = 0; i < context->capacity; i++) {
        const struct soft_object *object = context->objects[i];
        if (object != NULL && object->kind == SOFT_UAR && NIC_FIRST_UAR + object->number == id) {
            *page = object->number;
            return 0;
        }
    }
    return soft_refuse(EINVAL, "UAR page %#llx is not this context's", (unsigned long long)id);
}
