/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PRM commands for RC queue pairs: creation, the transitions between states, query, destruction.
 * See prm.h. Follows the PRM's tables of required and optional parameters of each transition; a
 * command checks everything before it changes anything.
 */
#include <errno.h>

#include "caps.h"
#include "prm_command.h"

/* ---- Creation ---- */

/* What a QP context must not ask for. */
static enum prm_syndrome check_qpc(const uint8_t *qpc)
{
    uint32_t rq_type = prm_get(qpc, m5_qpc_rq_type);

    if (prm_get(qpc, m5_qpc_st) != M5_QPC_ST_RC)
        return PRM_SYN_QP_SERVICE;
    if (rq_type != M5_QPC_RQ_REGULAR && rq_type != M5_QPC_RQ_NONE)
        return PRM_SYN_QP_RQ_TYPE;
    if (prm_get(qpc, m5_qpc_wq_signature))
        return PRM_SYN_QP_SIGNATURE;
    if (prm_get(qpc, m5_qpc_send_dbr_mode) > M5_QPC_SEND_NO_RECORD)
        return PRM_SYN_QP_DBR_MODE;
    if (prm_get(qpc, m5_qpc_cd_master) || prm_get(qpc, m5_qpc_cd_slave_send) ||
        prm_get(qpc, m5_qpc_cd_slave_receive))
        return PRM_SYN_QP_CROSS_CHANNEL;
    return PRM_SYN_OK;
}

/* A queue that a QP does not have needs no CQ: it borrows the other queue's. */
static enum prm_syndrome read_cqs(struct nic *nic, const uint8_t *qpc, struct nic_qp_attr *attr)
{
    bool has_sq = !prm_get(qpc, m5_qpc_no_sq);
    bool has_rq = prm_get(qpc, m5_qpc_rq_type) == M5_QPC_RQ_REGULAR;

    attr->send_cqn = prm_get(qpc, m5_qpc_cqn_snd);
    attr->recv_cqn = prm_get(qpc, m5_qpc_cqn_rcv);
    if (!has_sq && attr->send_cqn == 0)
        attr->send_cqn = attr->recv_cqn;
    if (!has_rq && attr->recv_cqn == 0)
        attr->recv_cqn = attr->send_cqn;
    if (!nic_cq_find(nic, attr->send_cqn))
        return PRM_SYN_QP_SEND_CQ;
    return nic_cq_find(nic, attr->recv_cqn) ? PRM_SYN_OK : PRM_SYN_QP_RECV_CQ;
}

/* The receive ring lies at wq_umem_offset, the send ring right behind it. */
static enum prm_syndrome read_rings(const struct prm_call *call, const uint8_t *qpc,
                                    struct nic_qp_attr *attr)
{
    uint64_t sq_bytes = 0, rq_bytes = 0;
    uint8_t *ring;

    if (prm_get(qpc, m5_qpc_rq_type) == M5_QPC_RQ_REGULAR) {
        attr->rq_depth_log2 = prm_get(qpc, m5_qpc_log_rq_size);
        attr->rq_stride_log2 = prm_get(qpc, m5_qpc_log_rq_stride) + M5_QPC_RQ_STRIDE_SHIFT;
        if (1u << attr->rq_stride_log2 > NIC_MAX_RQ_BYTES)
            return PRM_SYN_QP_RQ_STRIDE;
        rq_bytes = UINT64_C(1) << (attr->rq_depth_log2 + attr->rq_stride_log2);
    }
    if (!prm_get(qpc, m5_qpc_no_sq)) {
        attr->sq_depth_log2 = prm_get(qpc, m5_qpc_log_sq_size);
        sq_bytes = (uint64_t)M5_BLOCK_BYTES << attr->sq_depth_log2;
    }
    if (rq_bytes + sq_bytes == 0)
        return PRM_SYN_OK;
    if (sq_bytes && rq_bytes % M5_BLOCK_BYTES)
        return PRM_SYN_QP_SQ_ALIGNMENT;

    enum prm_syndrome syndrome = prm_find_ring(call, prm_get(call->in, m5_create_qp_in_wq_umem_id),
                                               prm_get64(call->in, m5_create_qp_in_wq_umem_offset),
                                               rq_bytes + sq_bytes, &ring);
    if (syndrome)
        return syndrome;
    attr->rq = rq_bytes ? ring : NULL;
    attr->sq = sq_bytes ? ring + rq_bytes : NULL;
    return PRM_SYN_OK;
}

enum prm_syndrome prm_create_qp(const struct prm_call *call)
{
    const uint8_t *qpc = call->in + m5_create_qp_in_qpc;
    struct nic *nic = call->client->nic;
    struct nic_qp_attr attr = {
        .pdn = prm_get(qpc, m5_qpc_pd),
        .user_index = prm_get(qpc, m5_qpc_user_index),
        .without_record = prm_get(qpc, m5_qpc_send_dbr_mode) == M5_QPC_SEND_NO_RECORD,
    };
    void *record;

    enum prm_syndrome syndrome = check_qpc(qpc);
    if (!syndrome && !nic_pd_exists(nic, attr.pdn))
        syndrome = PRM_SYN_QP_PD;
    if (!syndrome)
        syndrome = prm_uar(nic, prm_get(qpc, m5_qpc_uar_page), &attr.uar_page);
    if (!syndrome)
        syndrome = read_cqs(nic, qpc, &attr);
    if (!syndrome)
        syndrome = read_rings(call, qpc, &attr);
    if (!syndrome)
        syndrome = prm_find_record(call, prm_get(qpc, m5_qpc_dbr_umem_id),
                                   prm_get64(qpc, m5_qpc_dbr_addr), &record);
    if (syndrome)
        return syndrome;

    attr.record = record;
    uint32_t qpn;
    int error = nic_qp_create(nic, &attr, &qpn);
    if (error)
        return error == -EBUSY ? PRM_SYN_QP_REGISTER : prm_core_refusal(error);
    prm_set(call->out, m5_create_qp_out_qpn, qpn);
    *call->result = (struct prm_result){PRM_QP, qpn};
    return PRM_SYN_OK;
}

/* ---- Transitions ---- */

#define ACCESS (M5_QP_OPT_RRE | M5_QP_OPT_RWE | M5_QP_OPT_RAE)

/* Parameters that opt_param_mask has no bit for; they use bits that it leaves free. */
#define REMOTE_QPN (1u << 30)
#define PATH       (1u << 31)

#define ANY_STATE UINT8_MAX

/* A transition takes its required parameters always, and those optional ones that its
 * opt_param_mask names. P_Key index, port, path, path migration state and depth of reads are
 * checked, then have no effect on a device that executes within one process. */
struct transition {
    uint16_t opcode; /* enum m5_prm_opcode */
    uint8_t from;    /* enum nic_qp_state, or ANY_STATE */
    uint8_t to;
    uint32_t required; /* enum m5_qp_opt */
    uint32_t optional;
};

static const struct transition transitions[] = {
    {M5_CMD_RST2INIT_QP, NIC_QP_RESET, NIC_QP_INIT, ACCESS | M5_QP_OPT_PKEY_INDEX | M5_QP_OPT_PORT,
     ACCESS | M5_QP_OPT_PKEY_INDEX | M5_QP_OPT_PORT | M5_QP_OPT_PM_STATE},
    {M5_CMD_INIT2INIT_QP, NIC_QP_INIT, NIC_QP_INIT, 0,
     ACCESS | M5_QP_OPT_PKEY_INDEX | M5_QP_OPT_PORT},
    {M5_CMD_INIT2RTR_QP, NIC_QP_INIT, NIC_QP_RTR,
     REMOTE_QPN | PATH | M5_QP_OPT_MIN_RNR_NAK | M5_QP_OPT_RRA_MAX,
     ACCESS | M5_QP_OPT_PKEY_INDEX | M5_QP_OPT_RRA_MAX},
    {M5_CMD_RTR2RTS_QP, NIC_QP_RTR, NIC_QP_RTS,
     M5_QP_OPT_RETRY_COUNT | M5_QP_OPT_RNR_RETRY | M5_QP_OPT_ACK_TIMEOUT | M5_QP_OPT_SRA_MAX,
     ACCESS | M5_QP_OPT_MIN_RNR_NAK | M5_QP_OPT_SRA_MAX | M5_QP_OPT_PM_STATE},
    {M5_CMD_RTS2RTS_QP, NIC_QP_RTS, NIC_QP_RTS, 0,
     ACCESS | M5_QP_OPT_MIN_RNR_NAK | M5_QP_OPT_PM_STATE | M5_QP_OPT_DSCP | M5_QP_OPT_SGID_INDEX},
    {M5_CMD_SQD_RTS_QP, NIC_QP_SQD, NIC_QP_RTS, 0,
     ACCESS | M5_QP_OPT_MIN_RNR_NAK | M5_QP_OPT_PM_STATE | M5_QP_OPT_PKEY_INDEX | M5_QP_OPT_PORT |
         M5_QP_OPT_SRA_MAX | M5_QP_OPT_RRA_MAX | M5_QP_OPT_RETRY_COUNT | M5_QP_OPT_RNR_RETRY |
         M5_QP_OPT_ACK_TIMEOUT | M5_QP_OPT_SGID_INDEX},
    {M5_CMD_2ERR_QP, ANY_STATE, NIC_QP_ERR, 0, 0},
    {M5_CMD_2RST_QP, ANY_STATE, NIC_QP_RESET, 0, 0},
};

static const struct transition *transition_of(uint32_t opcode)
{
    for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
        if (transitions[i].opcode == opcode)
            return &transitions[i];
    return NULL;
}

/* The parameters that the device cannot take at any value. */
static enum prm_syndrome check_values(const uint8_t *qpc, uint32_t taken)
{
    const uint8_t *path = qpc + m5_qpc_primary_address_path;
    uint32_t mtu = prm_get(qpc, m5_qpc_mtu);

    if (taken & M5_QP_OPT_PORT && prm_get(path, m5_ads_vhca_port_num) > 1)
        return PRM_SYN_QP_PORT; /* 0 stands for the device's own port */
    if (taken & M5_QP_OPT_PKEY_INDEX && prm_get(path, m5_ads_pkey_index) != 0)
        return PRM_SYN_QP_PKEY;
    if (taken & PATH && (mtu < 1 || mtu > M5_QPC_MTU_4096))
        return PRM_SYN_QP_MTU;
    if (taken & (PATH | M5_QP_OPT_SGID_INDEX) &&
        prm_get(path, m5_ads_src_addr_index) >= NIC_ROCE_ADDRESSES)
        return PRM_SYN_QP_ADDRESS;
    if ((taken & M5_QP_OPT_SRA_MAX && 1u << prm_get(qpc, m5_qpc_log_sra_max) > NIC_MAX_RD_ATOMIC) ||
        (taken & M5_QP_OPT_RRA_MAX && 1u << prm_get(qpc, m5_qpc_log_rra_max) > NIC_MAX_RD_ATOMIC))
        return PRM_SYN_QP_RD_ATOMIC;
    return PRM_SYN_OK;
}

/* The rights that `taken` names come from the context, the others stay. Atomics need a mode too. */
static uint32_t new_access(const struct nic_qp *qp, const uint8_t *qpc, uint32_t taken)
{
    bool atomics = prm_get(qpc, m5_qpc_rae) && prm_get(qpc, m5_qpc_atomic_mode);
    uint32_t replaced = 0, granted = 0;

    if (taken & M5_QP_OPT_RRE)
        replaced |= NIC_REMOTE_READ;
    if (taken & M5_QP_OPT_RWE)
        replaced |= NIC_REMOTE_WRITE;
    if (taken & M5_QP_OPT_RAE)
        replaced |= NIC_REMOTE_ATOMIC;
    if (prm_get(qpc, m5_qpc_rre))
        granted |= NIC_REMOTE_READ;
    if (prm_get(qpc, m5_qpc_rwe))
        granted |= NIC_REMOTE_WRITE;
    if (atomics)
        granted |= NIC_REMOTE_ATOMIC;
    return (qp->access & ~replaced) | (granted & replaced);
}

static void read_parameters(const struct nic_qp *qp, const uint8_t *qpc, uint32_t taken,
                            struct nic_qp_modify *modify)
{
    static const struct {
        uint32_t parameter;
        uint32_t attr;
    } pairs[] = {
        {REMOTE_QPN, NIC_QP_REMOTE_QPN},
        {ACCESS, NIC_QP_ACCESS},
        {M5_QP_OPT_MIN_RNR_NAK, NIC_QP_MIN_RNR_TIMER},
        {M5_QP_OPT_RNR_RETRY, NIC_QP_RNR_RETRY},
        {M5_QP_OPT_RETRY_COUNT, NIC_QP_RETRY_COUNT},
        {M5_QP_OPT_ACK_TIMEOUT, NIC_QP_ACK_TIMEOUT},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (taken & pairs[i].parameter)
            modify->mask |= pairs[i].attr;
    modify->remote_qpn = prm_get(qpc, m5_qpc_remote_qpn);
    modify->access = new_access(qp, qpc, taken);
    modify->min_rnr_timer = prm_get(qpc, m5_qpc_min_rnr_nak);
    modify->rnr_retry = prm_get(qpc, m5_qpc_rnr_retry);
    modify->retry_count = prm_get(qpc, m5_qpc_retry_count);
    modify->ack_timeout = prm_get(qpc + m5_qpc_primary_address_path, m5_ads_ack_timeout);
}

/* What a later query answers. */
static void keep_parameters(struct nic_qp *qp, const uint8_t *qpc)
{
    if (qp->state == NIC_QP_RTR) {
        qp->mtu = prm_get(qpc, m5_qpc_mtu);
        qp->recv_psn = prm_get(qpc, m5_qpc_next_rcv_psn);
        qp->rd_atomic_in_log2 = prm_get(qpc, m5_qpc_log_rra_max);
        qp->atomic_mode = prm_get(qpc, m5_qpc_atomic_mode);
    } else if (qp->state == NIC_QP_RTS) {
        qp->send_psn = prm_get(qpc, m5_qpc_next_send_psn);
        qp->rd_atomic_out_log2 = prm_get(qpc, m5_qpc_log_sra_max);
    }
}

enum prm_syndrome prm_move_qp(const struct prm_call *call)
{
    const struct transition *move = transition_of(prm_get(call->in, m5_mbox_in_opcode));
    const uint8_t *qpc = call->in + m5_rst2init_qp_in_qpc;
    struct nic *nic = call->client->nic;
    uint32_t qpn = prm_get(call->in, m5_rst2init_qp_in_qpn);
    struct nic_qp *qp = nic_qp_find(nic, qpn);
    struct nic_qp_modify modify = {.state = move->to};

    if (!qp)
        return PRM_SYN_QPN;
    if (move->from != ANY_STATE && qp->state != move->from)
        return PRM_SYN_QP_STATE;
    if (move->required | move->optional) { /* otherwise the command has no context */
        uint32_t named = prm_get(call->in, m5_rst2init_qp_in_opt_param_mask);
        uint32_t taken = move->required | named;
        if (named & ~move->optional)
            return PRM_SYN_QP_OPTIONAL;
        enum prm_syndrome syndrome = check_values(qpc, taken);
        if (syndrome)
            return syndrome;
        read_parameters(qp, qpc, taken, &modify);
    }

    uint32_t from = qp->state;
    int error = nic_qp_modify(nic, qpn, &modify);
    if (error)
        return prm_core_refusal(error);
    if (qp->state != from)
        keep_parameters(qp, qpc);
    return PRM_SYN_OK;
}

/* ---- Query and destruction ---- */

static uint32_t qpc_state(const struct nic_qp *qp)
{
    switch (qp->state) {
    case NIC_QP_SQD:
        return M5_QPC_SQ_DRAINED;
    case NIC_QP_SQE:
        return M5_QPC_SQER;
    default: /* the others have the same numbers */
        return qp->state;
    }
}

enum prm_syndrome prm_query_qp(const struct prm_call *call)
{
    const struct nic_qp *qp = nic_qp_find(call->client->nic, prm_get(call->in, m5_query_qp_in_qpn));
    uint8_t *qpc = call->out + m5_query_qp_out_qpc;

    if (!qp)
        return PRM_SYN_QPN;
    prm_set(qpc, m5_qpc_state, qpc_state(qp));
    prm_set(qpc, m5_qpc_st, M5_QPC_ST_RC);
    prm_set(qpc, m5_qpc_pm_state, M5_QPC_PM_MIGRATED);
    prm_set(qpc, m5_qpc_pd, qp->pdn);
    prm_set(qpc, m5_qpc_no_sq, !qp->sq);
    prm_set(qpc, m5_qpc_log_sq_size, qp->sq_depth_log2);
    prm_set(qpc, m5_qpc_rq_type, qp->rq ? M5_QPC_RQ_REGULAR : M5_QPC_RQ_NONE);
    if (qp->rq) {
        prm_set(qpc, m5_qpc_log_rq_size, qp->rq_depth_log2);
        prm_set(qpc, m5_qpc_log_rq_stride, qp->rq_stride_log2 - M5_QPC_RQ_STRIDE_SHIFT);
    }
    prm_set(qpc, m5_qpc_uar_page, NIC_FIRST_UAR + qp->uar_page);
    prm_set(qpc, m5_qpc_send_dbr_mode,
            qp->without_record ? M5_QPC_SEND_NO_RECORD : M5_QPC_SEND_RECORD);
    prm_set(qpc, m5_qpc_user_index, qp->user_index);
    prm_set(qpc, m5_qpc_cqn_snd, qp->send_cqn);
    prm_set(qpc, m5_qpc_cqn_rcv, qp->recv_cqn);
    prm_set(qpc, m5_qpc_remote_qpn, qp->remote_qpn);
    prm_set(qpc, m5_qpc_rre, (qp->access & NIC_REMOTE_READ) != 0);
    prm_set(qpc, m5_qpc_rwe, (qp->access & NIC_REMOTE_WRITE) != 0);
    prm_set(qpc, m5_qpc_rae, (qp->access & NIC_REMOTE_ATOMIC) != 0);
    prm_set(qpc, m5_qpc_min_rnr_nak, qp->min_rnr_timer);
    prm_set(qpc, m5_qpc_rnr_retry, qp->rnr_retry);
    prm_set(qpc, m5_qpc_retry_count, qp->retry_count);
    prm_set(qpc + m5_qpc_primary_address_path, m5_ads_ack_timeout, qp->ack_timeout);
    prm_set(qpc, m5_qpc_mtu, qp->mtu);
    prm_set(qpc, m5_qpc_next_send_psn, qp->send_psn);
    prm_set(qpc, m5_qpc_next_rcv_psn, qp->recv_psn);
    prm_set(qpc, m5_qpc_log_sra_max, qp->rd_atomic_out_log2);
    prm_set(qpc, m5_qpc_log_rra_max, qp->rd_atomic_in_log2);
    prm_set(qpc, m5_qpc_atomic_mode, qp->atomic_mode);
    prm_set(qpc, m5_qpc_hw_sq_wqebb_counter, (uint32_t)qp->sq_done);
    prm_set(qpc, m5_qpc_hw_rq_counter, (uint32_t)qp->rq_done);
    prm_set(qpc, m5_qpc_dbr_umem_valid, 1);
    return PRM_SYN_OK;
}

enum prm_syndrome prm_destroy_qp(const struct prm_call *call)
{
    uint32_t qpn = prm_get(call->in, m5_destroy_qp_in_qpn);

    if (!nic_qp_find(call->client->nic, qpn))
        return PRM_SYN_QPN;
    int error = nic_qp_destroy(call->client->nic, qpn);
    if (error)
        return prm_core_refusal(error);
    *call->result = (struct prm_result){PRM_QP, qpn};
    return PRM_SYN_OK;
}
