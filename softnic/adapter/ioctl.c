/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA_VERBS_IOCTL: finds the function for an object and a method, or for a command of the older
 * write() interface that libibverbs wraps in an ioctl. What the device does not serve is refused by
 * name with EOPNOTSUPP; what this version of the interface does not have gives EPROTONOSUPPORT,
 * upon which libibverbs falls back to an older way; ENOTTY would turn all ioctls off, and never
 * occurs.
 */
#include <errno.h>

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include "attrs.h"
#include "calls.h"

#define MOST_ATTRS 64

/* ---- Commands of the write() interface ---- */

#define EXTENDED IB_USER_VERBS_CMD_FLAG_EXTENDED

static const struct write_command {
    uint32_t command;
    int (*run)(struct soft_call *call); /* NULL: not served */
    const char *name;
} write_commands[] = {
    {IB_USER_VERBS_CMD_QUERY_DEVICE, soft_query_device, "QUERY_DEVICE"},
    {IB_USER_VERBS_CMD_QUERY_PORT, soft_query_port_write, "QUERY_PORT"},
    {IB_USER_VERBS_CMD_ALLOC_PD, soft_alloc_pd, "ALLOC_PD"},
    {IB_USER_VERBS_CMD_DEALLOC_PD, soft_dealloc_pd, "DEALLOC_PD"},
    {IB_USER_VERBS_CMD_REG_MR, soft_reg_mr, "REG_MR"},
    {IB_USER_VERBS_CMD_DEREG_MR, soft_dereg_mr, "DEREG_MR"},
    {IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, soft_create_comp_channel, "CREATE_COMP_CHANNEL"},
    {IB_USER_VERBS_CMD_MODIFY_QP, soft_modify_qp, "MODIFY_QP"},
    {IB_USER_VERBS_CMD_QUERY_QP, soft_query_qp, "QUERY_QP"},
    {EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, soft_query_device_ex, "QUERY_DEVICE (extended)"},
    {EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP, soft_modify_qp, "MODIFY_QP (extended)"},
    {EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_CQ, soft_modify_cq, "MODIFY_CQ"},
    {IB_USER_VERBS_CMD_REREG_MR, NULL, "REREG_MR"},
    {IB_USER_VERBS_CMD_ALLOC_MW, NULL, "ALLOC_MW (memory windows)"},
    {IB_USER_VERBS_CMD_RESIZE_CQ, NULL, "RESIZE_CQ"},
    {IB_USER_VERBS_CMD_CREATE_AH, NULL, "CREATE_AH (address handles)"},
    {IB_USER_VERBS_CMD_ATTACH_MCAST, NULL, "ATTACH_MCAST (multicast)"},
    {IB_USER_VERBS_CMD_CREATE_SRQ, NULL, "CREATE_SRQ (shared receive queues)"},
    {IB_USER_VERBS_CMD_CREATE_XSRQ, NULL, "CREATE_XSRQ (shared receive queues)"},
    {IB_USER_VERBS_CMD_OPEN_XRCD, NULL, "OPEN_XRCD (XRC domains)"},
    {IB_USER_VERBS_CMD_OPEN_QP, NULL, "OPEN_QP (XRC)"},
    {EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_FLOW, NULL, "CREATE_FLOW (flow steering)"},
    {EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_WQ, NULL, "CREATE_WQ (work queues)"},
    {EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, NULL, "CREATE_RWQ_IND_TBL"},
};

static int invoke_write(struct soft_call *call)
{
    const uint64_t command = soft_in_number(call, UVERBS_ATTR_WRITE_CMD, UINT64_MAX);

    for (size_t i = 0; i < sizeof(write_commands) / sizeof(write_commands[0]); i++) {
        const struct write_command *known = &write_commands[i];
        if (known->command != command)
            continue;
        if (known->run == NULL)
            return soft_refuse(EOPNOTSUPP, "%s is not served", known->name);
        /* The probe for this very way comes before GET_CONTEXT. */
        if (!call->context->active && known->run != soft_query_device)
            return soft_refuse(EINVAL, "%s: the context is not active", known->name);
        return known->run(call);
    }
    return soft_refuse(EOPNOTSUPP, "command %#llx is not known", (unsigned long long)command);
}

/* ---- Methods ---- */

#define END 0xffff

static const struct method {
    uint16_t object;
    uint16_t method;
    int (*run)(struct soft_call *call);
    uint16_t attrs[18]; /* those it knows, up to END */
} methods[] = {
    {UVERBS_OBJECT_DEVICE,
     UVERBS_METHOD_INVOKE_WRITE,
     invoke_write,
     {UVERBS_ATTR_CORE_IN, UVERBS_ATTR_CORE_OUT, UVERBS_ATTR_WRITE_CMD, UVERBS_ATTR_UHW_IN,
      UVERBS_ATTR_UHW_OUT, END}},
    {UVERBS_OBJECT_DEVICE,
     UVERBS_METHOD_GET_CONTEXT,
     soft_get_context,
     {UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT,
      UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT, END}},
    {UVERBS_OBJECT_DEVICE,
     UVERBS_METHOD_QUERY_PORT,
     soft_query_port,
     {UVERBS_ATTR_QUERY_PORT_PORT_NUM, UVERBS_ATTR_QUERY_PORT_RESP, END}},
    {UVERBS_OBJECT_DEVICE,
     UVERBS_METHOD_QUERY_GID_TABLE,
     soft_query_gid_table,
     {UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS,
      UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, END}},
    {UVERBS_OBJECT_DEVICE,
     UVERBS_METHOD_QUERY_GID_ENTRY,
     soft_query_gid_entry,
     {UVERBS_ATTR_QUERY_GID_ENTRY_PORT, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX,
      UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, END}},
    {UVERBS_OBJECT_DEVICE,
     MLX5_IB_METHOD_QUERY_PORT,
     soft_query_mlx5_port,
     {MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, MLX5_IB_ATTR_QUERY_PORT, END}},
    {UVERBS_OBJECT_ASYNC_EVENT,
     UVERBS_METHOD_ASYNC_EVENT_ALLOC,
     soft_alloc_async,
     {UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, END}},
    {UVERBS_OBJECT_PD,
     UVERBS_METHOD_PD_DESTROY,
     soft_destroy_pd,
     {UVERBS_ATTR_DESTROY_PD_HANDLE, END}},
    {UVERBS_OBJECT_MR,
     UVERBS_METHOD_MR_DESTROY,
     soft_destroy_mr,
     {UVERBS_ATTR_DESTROY_MR_HANDLE, END}},
    {UVERBS_OBJECT_CQ,
     UVERBS_METHOD_CQ_CREATE,
     soft_create_cq,
     {UVERBS_ATTR_CREATE_CQ_HANDLE, UVERBS_ATTR_CREATE_CQ_CQE, UVERBS_ATTR_CREATE_CQ_USER_HANDLE,
      UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR,
      UVERBS_ATTR_CREATE_CQ_FLAGS, UVERBS_ATTR_CREATE_CQ_RESP_CQE, UVERBS_ATTR_CREATE_CQ_EVENT_FD,
      UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT, END}},
    {UVERBS_OBJECT_CQ,
     UVERBS_METHOD_CQ_DESTROY,
     soft_destroy_cq,
     {UVERBS_ATTR_DESTROY_CQ_HANDLE, UVERBS_ATTR_DESTROY_CQ_RESP, END}},
    {UVERBS_OBJECT_QP,
     UVERBS_METHOD_QP_CREATE,
     soft_create_qp,
     {UVERBS_ATTR_CREATE_QP_HANDLE, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE,
      UVERBS_ATTR_CREATE_QP_PD_HANDLE, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE,
      UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE,
      UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, UVERBS_ATTR_CREATE_QP_USER_HANDLE,
      UVERBS_ATTR_CREATE_QP_CAP, UVERBS_ATTR_CREATE_QP_TYPE, UVERBS_ATTR_CREATE_QP_FLAGS,
      UVERBS_ATTR_CREATE_QP_SOURCE_QPN, UVERBS_ATTR_CREATE_QP_EVENT_FD,
      UVERBS_ATTR_CREATE_QP_RESP_CAP, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, UVERBS_ATTR_UHW_IN,
      UVERBS_ATTR_UHW_OUT, END}},
    {UVERBS_OBJECT_QP,
     UVERBS_METHOD_QP_DESTROY,
     soft_destroy_qp,
     {UVERBS_ATTR_DESTROY_QP_HANDLE, UVERBS_ATTR_DESTROY_QP_RESP, END}},
    {MLX5_IB_OBJECT_DEVX,
     MLX5_IB_METHOD_DEVX_OTHER,
     soft_devx_general,
     {MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, END}},
    {MLX5_IB_OBJECT_DEVX,
     MLX5_IB_METHOD_DEVX_QUERY_EQN,
     soft_devx_query_eqn,
     {MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, END}},
    {MLX5_IB_OBJECT_DEVX_OBJ,
     MLX5_IB_METHOD_DEVX_OBJ_CREATE,
     soft_devx_create,
     {MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN,
      MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, END}},
    {MLX5_IB_OBJECT_DEVX_OBJ,
     MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
     soft_devx_destroy_call,
     {MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, END}},
    {MLX5_IB_OBJECT_DEVX_OBJ,
     MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
     soft_devx_modify,
     {MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
      MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, END}},
    {MLX5_IB_OBJECT_DEVX_OBJ,
     MLX5_IB_METHOD_DEVX_OBJ_QUERY,
     soft_devx_query,
     {MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
      MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, END}},
    {MLX5_IB_OBJECT_DEVX_UMEM,
     MLX5_IB_METHOD_DEVX_UMEM_REG,
     soft_umem_reg,
     {MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR,
      MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS,
      MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP,
      MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, END}},
    {MLX5_IB_OBJECT_DEVX_UMEM,
     MLX5_IB_METHOD_DEVX_UMEM_DEREG,
     soft_umem_dereg,
     {MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, END}},
    {MLX5_IB_OBJECT_UAR,
     MLX5_IB_METHOD_UAR_OBJ_ALLOC,
     soft_uar_alloc,
     {MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE,
      MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH,
      MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, END}},
    {MLX5_IB_OBJECT_UAR,
     MLX5_IB_METHOD_UAR_OBJ_DESTROY,
     soft_uar_free,
     {MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, END}},
};

#define EVERY_METHOD 0xffff

/* Methods that exist, but not here. */
static const struct {
    uint16_t object;
    uint16_t method;
    const char *name;
} absent[] = {
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, "INFO_HANDLES"},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, "importing a context"},
    {UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, "importing a protection domain"},
    {UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, "registering device memory"},
    {UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, "ADVISE_MR (on-demand paging)"},
    {UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, "importing a memory region"},
    {UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, "registering a DMA buffer (REG_DMABUF_MR)"},
    {UVERBS_OBJECT_SRQ, EVERY_METHOD, "a shared receive queue"},
    {UVERBS_OBJECT_AH, EVERY_METHOD, "an address handle"},
    {UVERBS_OBJECT_MW, EVERY_METHOD, "a memory window"},
    {UVERBS_OBJECT_FLOW, EVERY_METHOD, "flow steering"},
    {UVERBS_OBJECT_XRCD, EVERY_METHOD, "an XRC domain"},
    {UVERBS_OBJECT_RWQ_IND_TBL, EVERY_METHOD, "an indirection table"},
    {UVERBS_OBJECT_WQ, EVERY_METHOD, "a work queue (WQ)"},
    {UVERBS_OBJECT_FLOW_ACTION, EVERY_METHOD, "a flow action"},
    {UVERBS_OBJECT_DM, EVERY_METHOD, "device memory"},
    {UVERBS_OBJECT_COUNTERS, EVERY_METHOD, "a counters object"},
    {MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, "DEVX QUERY_UAR"},
    {MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, "DEVX event subscription"},
    {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY, "DEVX asynchronous query"},
    {MLX5_IB_OBJECT_FLOW_MATCHER, EVERY_METHOD, "a flow matcher"},
    {MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, EVERY_METHOD, "a DEVX asynchronous command channel"},
    {MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, EVERY_METHOD, "a DEVX event channel"},
    {MLX5_IB_OBJECT_VAR, EVERY_METHOD, "a VirtIO doorbell page (VAR)"},
    {MLX5_IB_OBJECT_PP, EVERY_METHOD, "packet pacing"},
    {MLX5_IB_OBJECT_STEERING_ANCHOR, EVERY_METHOD, "a steering anchor"},
};

static int refuse(uint16_t object, uint16_t method)
{
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        if (absent[i].object == object &&
            (absent[i].method == method || absent[i].method == EVERY_METHOD))
            return soft_refuse(EOPNOTSUPP, "%s is not served", absent[i].name);
    return soft_refuse(EPROTONOSUPPORT, "object %#x, method %#x is not known", object, method);
}

static const struct method *find_method(uint16_t object, uint16_t method)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (methods[i].object == object && methods[i].method == method)
            return &methods[i];
    return NULL;
}

/* An attribute that the caller insists on and that the method does not have. */
static const struct ib_uverbs_attr *unknown_attr(const struct method *method,
                                                 const struct soft_call *call)
{
    for (unsigned i = 0; i < call->count; i++) {
        const struct ib_uverbs_attr *attr = &call->attrs[i];
        const uint16_t *known = method->attrs;
        if (!(attr->flags & UVERBS_ATTR_F_MANDATORY))
            continue;
        while (*known != END && *known != attr->attr_id)
            known++;
        if (*known == END)
            return attr;
    }
    return NULL;
}

static int dispatch(struct soft_call *call, uint16_t object, uint16_t number)
{
    const struct method *method = find_method(object, number);
    const struct ib_uverbs_attr *unknown;

    if (soft_device() == NULL)
        return soft_refuse(EIO, "the device has stopped");
    if (method == NULL)
        return refuse(object, number);
    unknown = unknown_attr(method, call);
    if (unknown != NULL)
        return soft_refuse(EPROTONOSUPPORT, "object %#x, method %#x has no attribute %#x", object,
                           number, unknown->attr_id);
    if (!call->context->active && method->run != soft_get_context && method->run != invoke_write)
        return soft_refuse(EINVAL, "object %#x, method %#x: the context is not active", object,
                           number);
    return method->run(call);
}

int soft_ioctl(struct soft_context *context, struct ib_uverbs_ioctl_hdr *header)
{
    struct soft_call call = {.context = context};
    int error;

    if (header == NULL)
        return -EFAULT;
    call.attrs = header->attrs;
    call.count = header->num_attrs;
    if (call.count > MOST_ATTRS ||
        header->length != sizeof(*header) + call.count * sizeof(header->attrs[0]) ||
        header->reserved1 != 0 || header->reserved2 != 0)
        return soft_refuse(EINVAL, "malformed ioctl header");
    if (header->driver_id != RDMA_DRIVER_MLX5)
        return soft_refuse(EINVAL, "driver %u is not mlx5", header->driver_id);
    pthread_mutex_lock(&soft_lock);
    error = dispatch(&call, header->object_id, header->method_id);
    pthread_mutex_unlock(&soft_lock);
    return error;
}
