/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of the verbs interface: creation and destruction. RC alone is served. */
#include <errno.h>
#include <stdlib.h>

#include <rdma/mlx5-abi.h>

#include "attrs.h"
#include "calls.h"
#include "queues.h"

static const char *type_name(uint64_t type)
{
    switch (type) {
    case IB_UVERBS_QPT_UC:
        return "UC";
    case IB_UVERBS_QPT_UD:
        return "UD";
    case IB_UVERBS_QPT_RAW_PACKET:
        return "raw packet";
    case IB_UVERBS_QPT_XRC_INI:
    case IB_UVERBS_QPT_XRC_TGT:
        return "XRC";
    case IB_UVERBS_QPT_DRIVER:
        return "driver (DC)";
    default:
        return "unknown";
    }
}

static int check_flags(uint32_t flags)
{
    /* SCATTER_CQE allows the device to put payload into a CQE; it need not. */
    const uint32_t served =
        MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE | MLX5_QP_FLAG_UAR_PAGE_INDEX;
    static const struct {
        uint32_t flag;
        const char *name;
    } named[] = {
        {MLX5_QP_FLAG_SIGNATURE, "WQE signatures (MLX5_QP_SIGNATURE)"},
        {MLX5_QP_FLAG_TUNNEL_OFFLOADS, "tunnel offloads"},
        {MLX5_QP_FLAG_BFREG_INDEX, "static UARs"},
        {MLX5_QP_FLAG_TYPE_DCT, "DC targets"},
        {MLX5_QP_FLAG_TYPE_DCI, "DC initiators"},
        {MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC, "TIR loopback"},
        {MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC, "TIR loopback"},
        {MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE, "packet based credit mode"},
        {MLX5_QP_FLAG_DCI_STREAM, "DCI streams"},
    };

    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
        if (flags & named[i].flag)
            return soft_refuse(EOPNOTSUPP, "CREATE_QP: %s are not served", named[i].name);
    if (flags & ~served)
        return soft_refuse(EOPNOTSUPP, "CREATE_QP: flags %#x are not served", flags & ~served);
    if (!(flags & MLX5_QP_FLAG_UAR_PAGE_INDEX))
        return soft_refuse(EOPNOTSUPP, "CREATE_QP: the request names no UAR page");
    return 0;
}

static int check_kind(const struct soft_call *call)
{
    uint64_t type = soft_in_number(call, UVERBS_ATTR_CREATE_QP_TYPE, 0);
    uint64_t flags = soft_in_number(call, UVERBS_ATTR_CREATE_QP_FLAGS, 0);

    if (type != IB_UVERBS_QPT_RC)
        return soft_refuse(EOPNOTSUPP, "CREATE_QP: type %llu (%s) is not served; RC is",
                           (unsigned long long)type, type_name(type));
    if (soft_attr(call, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE) != NULL)
        return soft_refuse(EOPNOTSUPP, "CREATE_QP: shared receive queues are not served");
    if (soft_attr(call, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE) != NULL)
        return soft_refuse(EOPNOTSUPP, "CREATE_QP: indirection tables are not served");
    if (soft_attr(call, UVERBS_ATTR_CREATE_QP_SOURCE_QPN) != NULL)
        return soft_refuse(EOPNOTSUPP, "CREATE_QP: a chosen source QPN is not served");
    if (flags & ~(uint64_t)IB_UVERBS_QP_CREATE_SQ_SIG_ALL)
        return soft_refuse(EOPNOTSUPP, "CREATE_QP: verbs flags %#llx are not served",
                           (unsigned long long)flags);
    return 0;
}

static bool is_power_of_two(uint32_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

static uint32_t log2_of(uint32_t power)
{
    return (uint32_t)__builtin_ctz(power);
}

/* The rings lie in one buffer: the receive queue, then the send queue. */
static int place_rings(const struct mlx5_ib_create_qp *request, struct nic_qp_attr *attr)
{
    uint64_t receive_bytes = 0, send_bytes = 0;

    if (request->rq_wqe_count != 0) {
        if (!is_power_of_two(request->rq_wqe_count) || request->rq_wqe_count > NIC_MAX_DEPTH ||
            request->rq_wqe_shift < 4 || request->rq_wqe_shift > 9)
            return soft_refuse(EINVAL, "CREATE_QP: a receive queue of %u x 2^%u bytes",
                               request->rq_wqe_count, request->rq_wqe_shift);
        receive_bytes = (uint64_t)request->rq_wqe_count << request->rq_wqe_shift;
        attr->rq = (void *)(uintptr_t)request->buf_addr;
        attr->rq_depth_log2 = log2_of(request->rq_wqe_count);
        attr->rq_stride_log2 = request->rq_wqe_shift;
    }
    if (request->sq_wqe_count != 0) {
        if (!is_power_of_two(request->sq_wqe_count) || request->sq_wqe_count > NIC_MAX_DEPTH)
            return soft_refuse(EINVAL, "CREATE_QP: a send queue of %u blocks",
                               request->sq_wqe_count);
        send_bytes = (uint64_t)request->sq_wqe_count * M5_BLOCK_BYTES;
        attr->sq = (void *)(uintptr_t)(request->buf_addr + receive_bytes);
        attr->sq_depth_log2 = log2_of(request->sq_wqe_count);
    }
    attr->record = (void *)(uintptr_t)request->db_addr;
    if ((receive_bytes + send_bytes != 0 &&
         !soft_mapped(request->buf_addr, receive_bytes + send_bytes, true)) ||
        !soft_mapped(request->db_addr, sizeof(struct m5_qp_record), true))
        return soft_refuse(EFAULT, "CREATE_QP: its rings or its record are not mapped");
    return 0;
}

/* Translates the request into what the device wants. */
static int read_request(const struct soft_call *call, struct nic_qp_attr *attr)
{
    const struct soft_object *pd = soft_in_object(call, UVERBS_ATTR_CREATE_QP_PD_HANDLE, SOFT_PD);
    const struct soft_object *send_cq =
        soft_in_object(call, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, SOFT_CQ);
    const struct soft_object *recv_cq =
        soft_in_object(call, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, SOFT_CQ);
    struct mlx5_ib_create_qp request;
    int error = soft_in(call, UVERBS_ATTR_UHW_IN, &request, sizeof(request));

    if (error == 0)
        error = check_flags(request.flags);
    if (error != 0)
        return error;
    if (pd == NULL || send_cq == NULL || recv_cq == NULL)
        return soft_refuse(EINVAL, "CREATE_QP: no such protection domain or completion queue");
    *attr = (struct nic_qp_attr){
        .pdn = pd->number,
        .send_cqn = send_cq->number,
        .recv_cqn = recv_cq->number,
        .user_index = request.uidx,
    };
    error = soft_uar_page(call->context, request.bfreg_index, &attr->uar_page);
    return error != 0 ? error : place_rings(&request, attr);
}

static int answer(struct soft_call *call, const struct soft_qp *qp, uint32_t uar_page)
{
    const struct mlx5_ib_create_qp_resp mlx5 = {.bfreg_index = NIC_FIRST_UAR + uar_page};
    const uint32_t qpn = qp->object.number;
    int error = soft_out(call, UVERBS_ATTR_CREATE_QP_RESP_CAP, &qp->cap, sizeof(qp->cap));

    if (error == 0)
        error = soft_out(call, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, sizeof(qpn));
    if (error == 0)
        error = soft_out(call, UVERBS_ATTR_UHW_OUT, &mlx5, sizeof(mlx5));
    if (error == 0)
        error = soft_out_number(call, UVERBS_ATTR_CREATE_QP_HANDLE, qp->object.handle);
    return error;
}

int soft_create_qp(struct soft_call *call)
{
    struct soft_events *async = NULL;
    struct ib_uverbs_qp_cap cap;
    struct nic_qp_attr attr = {0};
    struct soft_qp *qp;
    int error = check_kind(call);

    if (error == 0)
        error = read_request(call, &attr);
    if (error == 0)
        error = soft_in(call, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
    if (error == 0)
        error = soft_async_of(call, UVERBS_ATTR_CREATE_QP_EVENT_FD, &async);
    if (error != 0)
        return error;
    qp = calloc(1, sizeof(*qp));
    if (qp == NULL) {
        error = -ENOMEM;
        goto done;
    }
    qp->cap = cap;
    qp->receive_depth = attr.rq == NULL ? 0 : 1u << attr.rq_depth_log2;
    qp->receive_sges = attr.rq == NULL ? 0 : (1u << attr.rq_stride_log2) / M5_SEGMENT_BYTES;
    qp->signal_all = soft_in_number(call, UVERBS_ATTR_CREATE_QP_FLAGS, 0) != 0;
    soft_source_open(&qp->async, async, soft_in_number(call, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 0));

    attr.owner = qp;
    error = nic_qp_create(nic_hold(soft_device()), &attr, &qp->object.number);
    nic_release(soft_device());
    if (error != 0) {
        soft_refuse(-error, "CREATE_QP: the device refuses it");
        goto no_device_qp;
    }
    error = soft_object_add(call->context, &qp->object, SOFT_QP);
    if (error != 0)
        goto no_handle;
    error = answer(call, qp, attr.uar_page);
    if (error == 0)
        goto done;

    soft_object_remove(call->context, qp->object.handle);
no_handle:
    nic_qp_destroy(nic_hold(soft_device()), qp->object.number);
    nic_release(soft_device());
no_device_qp:
    soft_source_close(&qp->async);
    free(qp);
done:
    if (async != NULL)
        soft_events_put(async);
    return error;
}

static int release_qp(struct soft_qp *qp, struct ib_uverbs_destroy_qp_resp *reported)
{
    int error = nic_qp_destroy(nic_hold(soft_device()), qp->object.number);

    nic_release(soft_device());
    if (error != 0)
        return error;
    reported->events_reported = soft_source_close(&qp->async);
    free(qp);
    return 0;
}

int soft_qp_destroy(struct soft_context *context, struct soft_object *object)
{
    struct ib_uverbs_destroy_qp_resp reported;

    (void)context;
    return release_qp((struct soft_qp *)object, &reported);
}

int soft_destroy_qp(struct soft_call *call)
{
    uint64_t handle = soft_in_number(call, UVERBS_ATTR_DESTROY_QP_HANDLE, 0);
    struct soft_qp *qp = soft_object_find(call->context, SOFT_QP, handle);
    struct ib_uverbs_destroy_qp_resp reported;
    int error;

    if (qp == NULL)
        return -EINVAL;
    error = release_qp(qp, &reported);
    if (error != 0)
        return error;
    soft_object_remove(call->context, (uint32_t)handle);
    return soft_out(call, UVERBS_ATTR_DESTROY_QP_RESP, &reported, sizeof(reported));
}

void soft_qp_event(void *owner, enum nic_event event)
{
    struct soft_qp *qp = owner;

    if (event != NIC_EVENT_SQ_DRAINED || qp->tell_drained)
        soft_source_raise(&qp->async, (uint32_t)event);
}
