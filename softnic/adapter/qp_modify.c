/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MODIFY_QP and QUERY_QP. A transition needs some attributes and allows others, as table 96 of the
 * InfiniBand specification (10.3.1) says for RC; what the device has no use for is kept here for
 * queries.
 */
#include <errno.h>

#include <rdma/ib_user_verbs.h>

#include "attrs.h"
#include "calls.h"
#include "identity.h"
#include "queues.h"

enum { /* the values of ibv_qp_attr_mask */
       STATE = 1 << 0,
       CUR_STATE = 1 << 1,
       EN_SQD_NOTIFY = 1 << 2,
       ACCESS = 1 << 3,
       PKEY = 1 << 4,
       PORT = 1 << 5,
       AV = 1 << 7,
       PATH_MTU = 1 << 8,
       TIMEOUT = 1 << 9,
       RETRY = 1 << 10,
       RNR_RETRY = 1 << 11,
       RQ_PSN = 1 << 12,
       MAX_READS = 1 << 13, /* as requester */
       ALT_PATH = 1 << 14,
       MIN_RNR = 1 << 15,
       SQ_PSN = 1 << 16,
       MAX_DEST_READS = 1 << 17, /* as responder */
       PATH_MIG = 1 << 18,
       DEST_QPN = 1 << 20,
       RATE_LIMIT = 1 << 25,
};

static const struct transition {
    uint8_t from;
    uint8_t to;
    uint32_t needed;
    uint32_t allowed;
} transitions[] = {
    {NIC_QP_RESET, NIC_QP_INIT, PKEY | PORT | ACCESS, 0},
    {NIC_QP_INIT, NIC_QP_INIT, 0, PKEY | PORT | ACCESS},
    {NIC_QP_INIT, NIC_QP_RTR, AV | PATH_MTU | DEST_QPN | RQ_PSN | MAX_DEST_READS | MIN_RNR,
     ACCESS | PKEY},
    {NIC_QP_RTR, NIC_QP_RTS, TIMEOUT | RETRY | RNR_RETRY | SQ_PSN | MAX_READS,
     CUR_STATE | ACCESS | MIN_RNR},
    {NIC_QP_RTS, NIC_QP_RTS, 0, CUR_STATE | ACCESS | MIN_RNR},
    {NIC_QP_RTS, NIC_QP_SQD, 0, CUR_STATE | EN_SQD_NOTIFY},
    {NIC_QP_SQD, NIC_QP_RTS, 0, CUR_STATE | ACCESS | MIN_RNR},
    {NIC_QP_SQD, NIC_QP_SQD, 0,
     PORT | AV | TIMEOUT | RETRY | RNR_RETRY | MAX_READS | MAX_DEST_READS | ACCESS | PKEY |
         MIN_RNR},
};

static int check_transition(uint32_t from, uint32_t to, uint32_t mask)
{
    if (mask & (ALT_PATH | PATH_MIG))
        return soft_refuse(EOPNOTSUPP, "MODIFY_QP: alternate paths are not served");
    if (mask & RATE_LIMIT)
        return soft_refuse(EOPNOTSUPP, "MODIFY_QP: rate limits are not served");
    if (to == NIC_QP_RESET || to == NIC_QP_ERR) {
        if (mask & ~(uint32_t)(STATE | CUR_STATE))
            return soft_refuse(EINVAL, "MODIFY_QP: attributes %#x on the way to state %u", mask,
                               to);
        return 0;
    }
    for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
        const struct transition *t = &transitions[i];
        if (t->from != from || t->to != to)
            continue;
        if ((mask & t->needed) != t->needed)
            return soft_refuse(EINVAL, "MODIFY_QP: from state %u to %u lacks attributes %#x", from,
                               to, t->needed & ~mask);
        if (mask & ~(t->needed | t->allowed | STATE))
            return soft_refuse(EINVAL, "MODIFY_QP: from state %u to %u forbids attributes %#x",
                               from, to, mask & ~(t->needed | t->allowed | STATE));
        return 0;
    }
    return soft_refuse(EINVAL, "MODIFY_QP: there is no way from state %u to %u", from, to);
}

static int check_path(const struct ib_uverbs_qp_dest *path)
{
    if (!path->is_global)
        return soft_refuse(EINVAL, "MODIFY_QP: a RoCE path needs a GID (is_global)");
    if (path->sgid_index >= SOFT_GIDS)
        return soft_refuse(EINVAL, "MODIFY_QP: there is no GID %u", path->sgid_index);
    return 0;
}

static int check_values(const struct ib_uverbs_modify_qp *request)
{
    const uint32_t mask = request->attr_mask;
    const uint32_t known = NIC_LOCAL_WRITE | NIC_REMOTE_WRITE | NIC_REMOTE_READ | NIC_REMOTE_ATOMIC;

    if (mask & PORT && request->port_num != 1)
        return soft_refuse(EINVAL, "MODIFY_QP: there is no port %u", request->port_num);
    if (mask & PKEY && request->pkey_index != 0)
        return soft_refuse(EINVAL, "MODIFY_QP: there is no P_Key %u", request->pkey_index);
    if (mask & ACCESS && request->qp_access_flags & ~known)
        return soft_refuse(EOPNOTSUPP, "MODIFY_QP: access flags %#x are not served",
                           request->qp_access_flags & ~known);
    if (mask & PATH_MTU && (request->path_mtu < 1 || request->path_mtu > 5))
        return soft_refuse(EINVAL, "MODIFY_QP: path MTU code %u; 1 to 5 are allowed",
                           request->path_mtu);
    if ((mask & MAX_READS && request->max_rd_atomic > NIC_MAX_RD_ATOMIC) ||
        (mask & MAX_DEST_READS && request->max_dest_rd_atomic > NIC_MAX_RD_ATOMIC))
        return soft_refuse(EINVAL, "MODIFY_QP: at most %d reads and atomics in flight",
                           NIC_MAX_RD_ATOMIC);
    if ((mask & TIMEOUT && request->timeout > 31) ||
        (mask & MIN_RNR && request->min_rnr_timer > 31))
        return soft_refuse(EINVAL, "MODIFY_QP: a timer code is at most 31");
    if ((mask & RETRY && request->retry_cnt > 7) || (mask & RNR_RETRY && request->rnr_retry > 7))
        return soft_refuse(EINVAL, "MODIFY_QP: a retry count is at most 7");
    return mask & AV ? check_path(&request->dest) : 0;
}

static struct nic_qp_modify translate(const struct ib_uverbs_modify_qp *request, uint32_t to)
{
    static const struct {
        uint32_t verbs;
        uint32_t device;
    } masks[] = {
        {DEST_QPN, NIC_QP_REMOTE_QPN}, {ACCESS, NIC_QP_ACCESS},     {MIN_RNR, NIC_QP_MIN_RNR_TIMER},
        {RNR_RETRY, NIC_QP_RNR_RETRY}, {RETRY, NIC_QP_RETRY_COUNT}, {TIMEOUT, NIC_QP_ACK_TIMEOUT},
    };
    struct nic_qp_modify modify = {
        .state = to,
        .remote_qpn = request->dest_qp_num & M5_QPN_MASK,
        .access = request->qp_access_flags,
        .min_rnr_timer = request->min_rnr_timer,
        .rnr_retry = request->rnr_retry,
        .retry_count = request->retry_cnt,
        .ack_timeout = request->timeout,
    };

    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
        if (request->attr_mask & masks[i].verbs)
            modify.mask |= masks[i].device;
    return modify;
}

/* Keeps for queries what the device has no use for. */
static void keep(struct soft_qp *qp, const struct ib_uverbs_modify_qp *request)
{
    const uint32_t mask = request->attr_mask;
    struct ib_uverbs_query_qp_resp *attr = &qp->attr;

    if (mask & PKEY)
        attr->pkey_index = request->pkey_index;
    if (mask & PORT)
        attr->port_num = request->port_num;
    if (mask & AV)
        attr->dest = request->dest;
    if (mask & PATH_MTU)
        attr->path_mtu = request->path_mtu;
    if (mask & RQ_PSN)
        attr->rq_psn = request->rq_psn & 0xffffff;
    if (mask & SQ_PSN)
        attr->sq_psn = request->sq_psn & 0xffffff;
    if (mask & MAX_READS)
        attr->max_rd_atomic = request->max_rd_atomic;
    if (mask & MAX_DEST_READS)
        attr->max_dest_rd_atomic = request->max_dest_rd_atomic;
}

int soft_modify_qp(struct soft_call *call)
{
    struct ib_uverbs_ex_modify_qp extended;
    const struct ib_uverbs_modify_qp *request = &extended.base;
    struct nic_qp_modify modify;
    struct soft_qp *qp;
    struct nic *nic;
    uint32_t from, to;
    int error = soft_in(call, UVERBS_ATTR_CORE_IN, &extended, sizeof(extended));

    if (error != 0)
        return error;
    qp = soft_object_find(call->context, SOFT_QP, request->qp_handle);
    if (qp == NULL)
        return -EINVAL;
    nic = nic_hold(soft_device());
    from = nic_qp_find(nic, qp->object.number)->state;
    to = request->attr_mask & STATE ? request->qp_state : from;
    if (request->attr_mask & CUR_STATE && request->cur_qp_state != from)
        error = soft_refuse(EINVAL, "MODIFY_QP: the QP is in state %u, not %u", from,
                            request->cur_qp_state);
    if (error == 0)
        error = check_transition(from, to, request->attr_mask);
    if (error == 0)
        error = check_values(request);
    if (error == 0) {
        bool tell_before = qp->tell_drained;
        if (to == NIC_QP_SQD && from != NIC_QP_SQD)
            qp->tell_drained =
                request->attr_mask & EN_SQD_NOTIFY && request->en_sqd_async_notify != 0;
        modify = translate(request, to);
        error = nic_qp_modify(nic, qp->object.number, &modify);
        if (error != 0)
            qp->tell_drained = tell_before;
    }
    if (error == 0 && to == NIC_QP_RTR && nic_qp_find(nic, modify.remote_qpn) == NULL)
        soft_debug("MODIFY_QP: QP %#x is connected to %#x, which is no queue pair of this process; "
                   "nobody will answer",
                   qp->object.number, modify.remote_qpn);
    nic_release(soft_device());
    if (error != 0)
        return error;

    if (to == NIC_QP_RESET)
        qp->attr = (struct ib_uverbs_query_qp_resp){0};
    else
        keep(qp, request);
    if (soft_attr(call, UVERBS_ATTR_CORE_OUT) != NULL) {
        const struct ib_uverbs_ex_modify_qp_resp answer = {.response_length = sizeof(answer)};
        return soft_out(call, UVERBS_ATTR_CORE_OUT, &answer, sizeof(answer));
    }
    return 0;
}

int soft_query_qp(struct soft_call *call)
{
    struct ib_uverbs_query_qp request;
    struct ib_uverbs_query_qp_resp answer;
    const struct soft_qp *qp;
    const struct nic_qp *device;
    int error = soft_in(call, UVERBS_ATTR_CORE_IN, &request, sizeof(request));

    if (error != 0)
        return error;
    qp = soft_object_find(call->context, SOFT_QP, request.qp_handle);
    if (qp == NULL)
        return -EINVAL;
    answer = qp->attr;
    answer.max_send_wr = qp->cap.max_send_wr;
    answer.max_recv_wr = qp->receive_depth;
    answer.max_send_sge = qp->cap.max_send_sge;
    answer.max_recv_sge = qp->receive_sges;
    answer.max_inline_data = qp->cap.max_inline_data;
    answer.sq_sig_all = qp->signal_all;

    device = nic_qp_find(nic_hold(soft_device()), qp->object.number);
    answer.dest_qp_num = device->remote_qpn;
    answer.qp_access_flags = device->access;
    answer.qp_state = (uint8_t)device->state;
    answer.cur_qp_state = (uint8_t)device->state;
    answer.min_rnr_timer = (uint8_t)device->min_rnr_timer;
    answer.timeout = (uint8_t)device->ack_timeout;
    answer.retry_cnt = (uint8_t)device->retry_count;
    answer.rnr_retry = (uint8_t)device->rnr_retry;
    nic_release(soft_device());
    return soft_out(call, UVERBS_ATTR_CORE_OUT, &answer, sizeof(answer));
}
