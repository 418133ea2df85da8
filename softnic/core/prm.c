/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PRM commands: finding a command's row, its lengths, its memory; and the commands for completion
 * queues. See prm.h. A command checks everything before it changes anything.
 */
#include "prm.h"

#include <errno.h>

#include "prm_command.h"

/* ---- Memory ---- */

/* The address of bytes [offset, offset + bytes) of a umem, or NULL where it has fewer. */
static uint8_t *inside(const struct prm_umem *umem, uint64_t offset, uint64_t bytes)
{
    if (offset > umem->bytes || bytes > umem->bytes - offset)
        return NULL;
    return (uint8_t *)umem->addr + offset;
}

enum prm_syndrome prm_find_ring(const struct prm_call *call, uint32_t umem_id, uint64_t offset,
                                uint64_t bytes, uint8_t **ring)
{
    const struct prm_umem *umem = call->client->umem(call->client->context, umem_id);
    if (!umem)
        return PRM_SYN_RING_UMEM;
    *ring = inside(umem, offset, bytes);
    if (!*ring)
        return PRM_SYN_RING_BOUNDS;
    return (uintptr_t)*ring % M5_BLOCK_BYTES ? PRM_SYN_RING_ALIGNMENT : PRM_SYN_OK;
}

enum prm_syndrome prm_find_record(const struct prm_call *call, uint32_t umem_id, uint64_t offset,
                                  void **record)
{
    const struct prm_umem *umem = call->client->umem(call->client->context, umem_id);
    if (!umem)
        return PRM_SYN_RECORD_UMEM;
    *record = inside(umem, offset, sizeof(struct m5_cq_record));
    if (!*record)
        return PRM_SYN_RECORD_BOUNDS;
    return (uintptr_t)*record % sizeof(struct m5_cq_record) ? PRM_SYN_RECORD_ALIGNMENT : PRM_SYN_OK;
}

enum prm_syndrome prm_core_refusal(int error)
{
    return error == -ENOMEM ? PRM_SYN_NO_ROOM : PRM_SYN_CORE;
}

/* ---- Completion queues ---- */

/* What a CQ context asks for; its memory and its UAR page are found elsewhere. */
static enum prm_syndrome read_cqc(const uint8_t *cqc, struct nic_cq_attr *attr)
{
    uint32_t cqe_sz = prm_get(cqc, m5_cqc_cqe_sz);

    if (cqe_sz != M5_CQC_CQE_64 && cqe_sz != M5_CQC_CQE_128)
        return PRM_SYN_CQE_SIZE;
    if (prm_get(cqc, m5_cqc_cqe_comp_en))
        return PRM_SYN_CQ_COMPRESSION;
    if (prm_get(cqc, m5_cqc_apu_cq))
        return PRM_SYN_CQ_APU;
    if (prm_get(cqc, m5_cqc_log_cq_size) > NIC_MAX_CQ_DEPTH_LOG2)
        return PRM_SYN_CQ_DEPTH;

    attr->depth_log2 = prm_get(cqc, m5_cqc_log_cq_size);
    attr->cqe_bytes = cqe_sz == M5_CQC_CQE_128 ? 128 : 64;
    attr->flags = 0;
    if (prm_get(cqc, m5_cqc_cc))
        attr->flags |= NIC_CQ_COLLAPSED;
    if (prm_get(cqc, m5_cqc_oi))
        attr->flags |= NIC_CQ_IGNORE_OVERRUN;
    return PRM_SYN_OK;
}

static enum prm_syndrome create_cq(const struct prm_call *call)
{
    const uint8_t *cqc = call->in + m5_create_cq_in_cq_context;
    struct nic_cq_attr attr = {0};
    uint8_t *ring;
    void *record;

    enum prm_syndrome syndrome = read_cqc(cqc, &attr);
    if (!syndrome)
        syndrome = prm_uar(call->client->nic, prm_get(cqc, m5_cqc_uar_page), &attr.uar_page);
    if (!syndrome)
        syndrome = prm_find_ring(call, prm_get(call->in, m5_create_cq_in_cq_umem_id),
                                 prm_get64(call->in, m5_create_cq_in_cq_umem_offset),
                                 (uint64_t)attr.cqe_bytes << attr.depth_log2, &ring);
    if (!syndrome)
        syndrome = prm_find_record(call, prm_get(cqc, m5_cqc_dbr_umem_id),
                                   prm_get64(cqc, m5_cqc_dbr_addr), &record);
    if (syndrome)
        return syndrome;

    attr.ring = ring;
    attr.record = record;
    uint32_t cqn;
    int error = nic_cq_create(call->client->nic, &attr, &cqn);
    if (error)
        return prm_core_refusal(error);
    prm_set(call->out, m5_create_cq_out_cqn, cqn);
    *call->result = (struct prm_result){PRM_CQ, cqn};
    return PRM_SYN_OK;
}

/* Moderation is accepted and has no effect: events are never delayed. */
static enum prm_syndrome modify_cq(const struct prm_call *call)
{
    const uint32_t served = M5_MODIFY_CQ_PERIOD | M5_MODIFY_CQ_MAX_COUNT | M5_MODIFY_CQ_OI;
    uint32_t select = prm_get(call->in, m5_modify_cq_in_modify_field_select_resize_field_select);
    struct nic_cq *cq = nic_cq_find(call->client->nic, prm_get(call->in, m5_modify_cq_in_cqn));

    if (prm_get(call->in, m5_mbox_in_op_mod) != M5_MODIFY_CQ_FIELDS)
        return PRM_SYN_CQ_RESIZE;
    if (!cq)
        return PRM_SYN_CQN;
    if (select & ~served)
        return PRM_SYN_CQ_SELECT;
    if (select & M5_MODIFY_CQ_OI) {
        cq->flags &= ~(uint32_t)NIC_CQ_IGNORE_OVERRUN;
        if (prm_get(call->in + m5_modify_cq_in_cq_context, m5_cqc_oi))
            cq->flags |= NIC_CQ_IGNORE_OVERRUN;
    }
    return PRM_SYN_OK;
}

static uint32_t cqc_st(const struct nic_cq *cq)
{
    switch (cq->armed) {
    case NIC_CQ_ARMED_ANY:
        return M5_CQC_ST_ARMED;
    case NIC_CQ_ARMED_SOLICITED:
        return M5_CQC_ST_ARMED_SOLICITED;
    default:
        return M5_CQC_ST_FIRED;
    }
}

static enum prm_syndrome query_cq(const struct prm_call *call)
{
    const struct nic_cq *cq = nic_cq_find(call->client->nic, prm_get(call->in, m5_query_cq_in_cqn));
    uint8_t *cqc = call->out + m5_query_cq_out_cq_context;

    if (!cq)
        return PRM_SYN_CQN;
    prm_set(cqc, m5_cqc_status, cq->failed ? M5_CQC_STATUS_OVERFLOW : M5_CQC_STATUS_OK);
    prm_set(cqc, m5_cqc_dbr_umem_valid, 1);
    prm_set(cqc, m5_cqc_cqe_sz, cq->cqe_bytes == 128 ? M5_CQC_CQE_128 : M5_CQC_CQE_64);
    prm_set(cqc, m5_cqc_cc, (cq->flags & NIC_CQ_COLLAPSED) != 0);
    prm_set(cqc, m5_cqc_oi, (cq->flags & NIC_CQ_IGNORE_OVERRUN) != 0);
    prm_set(cqc, m5_cqc_st, cqc_st(cq));
    prm_set(cqc, m5_cqc_log_cq_size, cq->depth_log2);
    prm_set(cqc, m5_cqc_uar_page, NIC_FIRST_UAR + cq->uar_page);
    prm_set(cqc, m5_cqc_consumer_counter, (uint32_t)cq->consumed);
    prm_set(cqc, m5_cqc_producer_counter, (uint32_t)cq->produced);
    return PRM_SYN_OK;
}

static enum prm_syndrome destroy_cq(const struct prm_call *call)
{
    uint32_t cqn = prm_get(call->in, m5_destroy_cq_in_cqn);

    if (!nic_cq_find(call->client->nic, cqn))
        return PRM_SYN_CQN;
    int error = nic_cq_destroy(call->client->nic, cqn);
    if (error)
        return error == -EBUSY ? PRM_SYN_CQ_BUSY : prm_core_refusal(error);
    *call->result = (struct prm_result){PRM_CQ, cqn};
    return PRM_SYN_OK;
}

/* ---- The commands served ---- */

struct command {
    uint16_t opcode;   /* enum m5_prm_opcode */
    uint16_t in_bytes; /* least lengths */
    uint16_t out_bytes;
    enum prm_method method;
    prm_handler *execute;
};

#define COMMAND(opcode, in, out, method, execute)                                                  \
    {                                                                                              \
        M5_CMD_##opcode, m5_##in##_bytes, m5_##out##_bytes, PRM_##method, execute                  \
    }
#define QP_MOVE(opcode) COMMAND(opcode, rst2init_qp_in, rst2init_qp_out, MODIFY, prm_move_qp)
#define QP_STOP(opcode) COMMAND(opcode, query_qp_in, rst2init_qp_out, MODIFY, prm_move_qp)

static const struct command commands[] = {
    COMMAND(QUERY_HCA_CAP, query_hca_cap_in, query_hca_cap_out, GENERAL, prm_query_hca_cap),
    COMMAND(CREATE_CQ, create_cq_in, create_cq_out, CREATE, create_cq),
    COMMAND(DESTROY_CQ, destroy_cq_in, mbox_out, DESTROY, destroy_cq),
    COMMAND(QUERY_CQ, query_cq_in, query_cq_out, QUERY, query_cq),
    COMMAND(MODIFY_CQ, modify_cq_in, modify_cq_out, MODIFY, modify_cq),
    COMMAND(CREATE_QP, create_qp_in, create_qp_out, CREATE, prm_create_qp),
    COMMAND(DESTROY_QP, destroy_qp_in, mbox_out, DESTROY, prm_destroy_qp),
    COMMAND(QUERY_QP, query_qp_in, query_qp_out, QUERY, prm_query_qp),
    QP_MOVE(RST2INIT_QP),
    QP_MOVE(INIT2INIT_QP),
    QP_MOVE(INIT2RTR_QP),
    QP_MOVE(RTR2RTS_QP),
    QP_MOVE(RTS2RTS_QP),
    QP_MOVE(SQD_RTS_QP),
    QP_STOP(2ERR_QP),
    QP_STOP(2RST_QP),
    COMMAND(QUERY_NIC_VPORT_CONTEXT, query_nic_vport_context_in, query_nic_vport_context_out,
            GENERAL, prm_query_nic_vport_context),
    COMMAND(QUERY_ROCE_ADDRESS, query_roce_address_in, query_roce_address_out, GENERAL,
            prm_query_roce_address),
};

static const struct command *command_of(uint32_t opcode)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (commands[i].opcode == opcode)
            return &commands[i];
    return NULL;
}

enum prm_method prm_method_of(const void *in, size_t in_bytes)
{
    if (in_bytes < m5_mbox_in_bytes)
        return PRM_UNKNOWN;
    const struct command *command = command_of(prm_get(in, m5_mbox_in_opcode));
    return command ? command->method : PRM_UNKNOWN;
}

/* ---- Refusals ---- */

struct refusal {
    enum m5_prm_status status;
    const char *text;
};

#define REFUSAL(name, status, text) [PRM_SYN_##name - PRM_SYN_BASE - 1] = {M5_STAT_##status, text},

static const struct refusal refusals[] = {PRM_SYNDROMES(REFUSAL)};

const char *prm_syndrome_text(uint32_t syndrome)
{
    if (syndrome == PRM_SYN_OK)
        return "no refusal";
    if (syndrome <= PRM_SYN_BASE || syndrome >= PRM_SYN_END)
        return "not a syndrome of this device";
    return refusals[syndrome - PRM_SYN_BASE - 1].text;
}

/* Takes whatever the command had written out of the answer, and says why. */
static int refuse(void *out, size_t out_bytes, enum prm_syndrome syndrome)
{
    memset(out, 0, out_bytes);
    prm_set(out, m5_mbox_out_status, refusals[syndrome - PRM_SYN_BASE - 1].status);
    prm_set(out, m5_mbox_out_syndrome, syndrome);
    return -EREMOTEIO;
}

int prm_execute(const struct prm_client *client, const void *in, size_t in_bytes, void *out,
                size_t out_bytes, struct prm_result *result)
{
    struct prm_call call = {.client = client, .out = out, .result = result};

    *result = (struct prm_result){PRM_NO_OBJECT, 0};
    if (in_bytes < m5_mbox_in_bytes || out_bytes < m5_mbox_out_bytes)
        return -EINVAL;
    memcpy(call.in, in, in_bytes < sizeof(call.in) ? in_bytes : sizeof(call.in));

    const struct command *command = command_of(prm_get(call.in, m5_mbox_in_opcode));
    if (!command)
        return refuse(out, out_bytes, PRM_SYN_OPCODE);
    if (in_bytes < command->in_bytes)
        return refuse(out, out_bytes, PRM_SYN_INPUT_LENGTH);
    if (out_bytes < command->out_bytes)
        return refuse(out, out_bytes, PRM_SYN_OUTPUT_LENGTH);

    memset(out, 0, out_bytes);
    enum prm_syndrome syndrome = command->execute(&call);
    return syndrome ? refuse(out, out_bytes, syndrome) : 0;
}
