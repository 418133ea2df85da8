/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creating, modifying and destroying completion queues and queue pairs; see objects.h. The
 * execution path reads what is set here; the engine stands still meanwhile.
 */
#include <errno.h>

#include "doorbell.h"
#include "fault.h"
#include "objects.h"

/* ---- Completion queues ---- */

struct nic_cq *nic_cq_find(struct nic *nic, uint32_t cqn)
{
    return cqn != 0 && cqn < NIC_MAX_CQS && nic->cqs[cqn].cqn ? &nic->cqs[cqn] : NULL;
}

int nic_cq_create(struct nic *nic, const struct nic_cq_attr *attr, uint32_t *cqn)
{
    if (attr->depth_log2 > NIC_MAX_CQ_DEPTH_LOG2 ||
        (attr->cqe_bytes != 64 && attr->cqe_bytes != 128) || !nic_uar_exists(nic, attr->uar_page) ||
        !attr->ring || (uintptr_t)attr->ring % 64 || !attr->record || (uintptr_t)attr->record % 8)
        return -EINVAL;

    for (uint32_t tried = 0; tried < NIC_MAX_CQS; tried++) {
        uint32_t n = nic->next_cqn;
        nic->next_cqn = n + 1 < NIC_MAX_CQS ? n + 1 : NIC_FIRST_CQN;
        struct nic_cq *cq = &nic->cqs[n];
        if (cq->cqn)
            continue;
        if (!nic_try_store32(nic, &attr->record->arm.raw, port_be32(NIC_NEVER_ARMED).raw))
            return -EFAULT;
        *cq = (struct nic_cq){
            .cqn = n,
            .flags = attr->flags,
            .ring = attr->ring,
            .record = attr->record,
            .depth_log2 = attr->depth_log2,
            .cqe_bytes = attr->cqe_bytes,
            .uar_page = attr->uar_page,
            .next_on_uar = nic->first_cq_on_uar[attr->uar_page],
            .last_arm = NIC_NEVER_ARMED,
            .owner = attr->owner,
        };
        nic->first_cq_on_uar[attr->uar_page] = n;
        *cqn = n;
        return 0;
    }
    return -ENOMEM;
}

int nic_cq_destroy(struct nic *nic, uint32_t cqn)
{
    struct nic_cq *cq = nic_cq_find(nic, cqn);
    if (!cq)
        return -EINVAL;
    if (cq->users)
        return -EBUSY;
    uint32_t *link = &nic->first_cq_on_uar[cq->uar_page];
    while (*link != cqn)
        link = &nic->cqs[*link].next_on_uar;
    *link = cq->next_on_uar;
    if (cq->events) {
        link = &nic->first_cq_event;
        while (*link != cqn)
            link = &nic->cqs[*link].next_event;
        *link = cq->next_event;
    }
    *cq = (struct nic_cq){0};
    return 0;
}

/* ---- Queue pairs ---- */

struct nic_qp *nic_qp_find(struct nic *nic, uint32_t qpn)
{
    return qpn != 0 && qpn < NIC_MAX_QPS && nic->qps[qpn].qpn ? &nic->qps[qpn] : NULL;
}

static bool qp_attr_valid(struct nic *nic, const struct nic_qp_attr *attr)
{
    if (!nic_pd_exists(nic, attr->pdn) || !nic_cq_find(nic, attr->send_cqn) ||
        !nic_cq_find(nic, attr->recv_cqn) || !nic_uar_exists(nic, attr->uar_page) ||
        !attr->record || (uintptr_t)attr->record % 8)
        return false;
    if (attr->sq &&
        ((uintptr_t)attr->sq % M5_BLOCK_BYTES || 1u << attr->sq_depth_log2 > NIC_MAX_DEPTH))
        return false;
    if (attr->rq && ((uintptr_t)attr->rq % M5_SEGMENT_BYTES || attr->rq_stride_log2 < 4 ||
                     1u << attr->rq_stride_log2 > NIC_MAX_RQ_BYTES ||
                     1u << attr->rq_depth_log2 > NIC_MAX_DEPTH))
        return false;
    return true;
}

int nic_qp_create(struct nic *nic, const struct nic_qp_attr *attr, uint32_t *qpn)
{
    if (!qp_attr_valid(nic, attr))
        return -EINVAL;
    if (attr->without_record && nic->recordless[attr->uar_page])
        return -EBUSY;
    for (uint32_t tried = 0; tried < NIC_MAX_QPS; tried++) {
        uint32_t n = nic->next_qpn;
        nic->next_qpn = n + 1 < NIC_MAX_QPS ? n + 1 : NIC_FIRST_QPN;
        struct nic_qp *qp = &nic->qps[n];
        if (qp->qpn)
            continue;
        *qp = (struct nic_qp){
            .qpn = n,
            .given = 1,
            .state = NIC_QP_RESET,
            .pdn = attr->pdn,
            .send_cqn = attr->send_cqn,
            .recv_cqn = attr->recv_cqn,
            .user_index = attr->user_index,
            .uar_page = attr->uar_page,
            .next_on_uar = nic->first_on_uar[attr->uar_page],
            .record = attr->record,
            .without_record = attr->without_record,
            .rings_next = attr->without_record,
            .owner = attr->owner,
            .sq = attr->sq,
            .sq_depth_log2 = attr->sq_depth_log2,
            .rq = attr->rq,
            .rq_depth_log2 = attr->rq_depth_log2,
            .rq_stride_log2 = attr->rq_stride_log2,
        };
        nic->first_on_uar[attr->uar_page] = n;
        if (attr->without_record)
            nic->recordless[attr->uar_page] = n;
        nic->pd_users[attr->pdn]++;
        nic->cqs[attr->send_cqn].users++;
        nic->cqs[attr->recv_cqn].users++;
        *qpn = n;
        return 0;
    }
    return -ENOMEM;
}

/* Takes the QP off a list of QPNs that ends with 0, if it is on it. */
static void unwatch(struct nic *nic, uint32_t *link, uint32_t qpn)
{
    while (*link && *link != qpn)
        link = &nic->qps[*link].next_watched;
    if (*link)
        *link = nic->qps[qpn].next_watched;
}

/* A doorbell that waits in the register of a QP without a record is none of the next user's. */
static void empty_register(struct nic *nic, const struct nic_qp *qp)
{
    if (qp->without_record)
        nic_take(nic_register(nic, qp->uar_page, M5_UAR_SEND_NO_RECORD));
}

int nic_qp_destroy(struct nic *nic, uint32_t qpn)
{
    struct nic_qp *qp = nic_qp_find(nic, qpn);
    if (!qp)
        return -EINVAL;
    uint32_t *link = &nic->first_on_uar[qp->uar_page];
    while (*link != qpn)
        link = &nic->qps[*link].next_on_uar;
    *link = qp->next_on_uar;
    if (qp->without_record)
        nic->recordless[qp->uar_page] = 0;
    empty_register(nic, qp);
    if (qp->watched) {
        unwatch(nic, &nic->first_watched, qpn);
        unwatch(nic, &nic->rest_watched, qpn);
    }
    if (qp->events) {
        link = &nic->first_qp_event;
        while (*link != qpn)
            link = &nic->qps[*link].next_event;
        *link = qp->next_event;
    }
    nic->pd_users[qp->pdn]--;
    nic->cqs[qp->send_cqn].users--;
    nic->cqs[qp->recv_cqn].users--;
    *qp = (struct nic_qp){.given = 1};
    return 0;
}

/* The moves that the IB specification allows software to make. */
static bool move_allowed(uint32_t from, uint32_t to)
{
    if (to == NIC_QP_RESET || to == NIC_QP_ERR)
        return true;
    switch (from) {
    case NIC_QP_RESET:
        return to == NIC_QP_INIT;
    case NIC_QP_INIT:
        return to == NIC_QP_INIT || to == NIC_QP_RTR;
    case NIC_QP_RTR:
        return to == NIC_QP_RTS;
    case NIC_QP_RTS:
    case NIC_QP_SQD:
        return to == NIC_QP_RTS || to == NIC_QP_SQD;
    default:
        return false;
    }
}

/* An empty queue pair: what reset leaves. The program clears its record itself. */
static void qp_reset(struct nic *nic, struct nic_qp *qp)
{
    empty_register(nic, qp);
    qp->sq_done = 0;
    qp->rq_done = 0;
    qp->remote_qpn = 0;
    qp->access = 0;
    qp->stall = NIC_RUNNING;
    qp->suspicion = NIC_NO_SUSPICION;
    qp->doorbell_index = 0;
    qp->last_wqe_index = 0;
    qp->rings_next = qp->without_record;
}

int nic_qp_modify(struct nic *nic, uint32_t qpn, const struct nic_qp_modify *modify)
{
    struct nic_qp *qp = nic_qp_find(nic, qpn);
    if (!qp || !move_allowed(qp->state, modify->state))
        return -EINVAL;
    if ((modify->mask & NIC_QP_RNR_RETRY && modify->rnr_retry > 7) ||
        (modify->mask & NIC_QP_RETRY_COUNT && modify->retry_count > 7) ||
        (modify->mask & NIC_QP_ACK_TIMEOUT && modify->ack_timeout > 31) ||
        (modify->mask & NIC_QP_MIN_RNR_TIMER && modify->min_rnr_timer > 31))
        return -EINVAL;

    uint32_t from = qp->state;
    qp->state = modify->state;
    if (modify->state == NIC_QP_RESET)
        qp_reset(nic, qp);
    if (modify->mask & NIC_QP_REMOTE_QPN)
        qp->remote_qpn = modify->remote_qpn;
    if (modify->mask & NIC_QP_ACCESS)
        qp->access = modify->access;
    if (modify->mask & NIC_QP_MIN_RNR_TIMER)
        qp->min_rnr_timer = modify->min_rnr_timer;
    if (modify->mask & NIC_QP_RNR_RETRY)
        qp->rnr_retry = modify->rnr_retry;
    if (modify->mask & NIC_QP_RETRY_COUNT)
        qp->retry_count = modify->retry_count;
    if (modify->mask & NIC_QP_ACK_TIMEOUT)
        qp->ack_timeout = modify->ack_timeout;

    if (modify->state == NIC_QP_ERR)
        nic_enter_error(nic, qp);
    if (modify->state == NIC_QP_RTS && (from == NIC_QP_SQD || nic->strict.early)) {
        qp->recheck = from == NIC_QP_SQD;
        nic_watch(nic, qp);
    }
    if (modify->state == NIC_QP_SQD && from == NIC_QP_RTS)
        nic_qp_event(nic, qp, NIC_EVENT_SQ_DRAINED);
    return 0;
}
