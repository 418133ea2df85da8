/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the PRM commands for QPs do what they say, or are refused with their own status and
 * syndrome and change nothing: each transition starts from its own state alone, takes its required
 * parameters always and the optional ones when named.
 *
 * Runs prm_execute() on a bare device core; see prm_device.h.
 */
#include "prm_device.h"

#include <core/caps.h>

#define QPC  m5_create_qp_in_qpc
#define PATH (m5_rst2init_qp_in_qpc + m5_qpc_primary_address_path)

static uint32_t send_cqn, recv_cqn;

static const struct nic_qp *create_qp(struct command *command)
{
    CHECK(execute(command) == 0);
    CHECK(command->result.object == PRM_QP);
    CHECK(command->result.number == get(command->out, m5_create_qp_out_qpn));
    const struct nic_qp *qp = nic_qp_find(nic, command->result.number);
    CHECK(qp && qp->state == NIC_QP_RESET && qp->user_index == 0xabcdef && qp->owner == NULL);
    CHECK(qp->pdn == pdn && (uint8_t *)qp->record == record_memory + 128);
    return qp;
}

static void do_qp(enum m5_prm_opcode opcode, uint32_t qpn)
{
    struct command command;

    build_on_qp(&command, opcode, qpn);
    CHECK(execute(&command) == 0);
}

static void test_create_qp(void)
{
    static const struct spoiler spoilers[] = {
        {QPC, m5_qpc_st, M5_QPC_ST_UD, PRM_SYN_QP_SERVICE, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_st, 0xff, PRM_SYN_QP_SERVICE, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_rq_type, M5_QPC_RQ_SHARED, PRM_SYN_QP_RQ_TYPE, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_rq_type, 2, PRM_SYN_QP_RQ_TYPE, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_wq_signature, 1, PRM_SYN_QP_SIGNATURE, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_send_dbr_mode, 2, PRM_SYN_QP_DBR_MODE, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_send_dbr_mode, 3, PRM_SYN_QP_DBR_MODE, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_cd_master, 1, PRM_SYN_QP_CROSS_CHANNEL, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_cd_slave_send, 1, PRM_SYN_QP_CROSS_CHANNEL, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_cd_slave_receive, 1, PRM_SYN_QP_CROSS_CHANNEL, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_pd, 0, PRM_SYN_QP_PD, M5_STAT_BAD_RES},
        {QPC, m5_qpc_pd, 0xffffff, PRM_SYN_QP_PD, M5_STAT_BAD_RES},
        {QPC, m5_qpc_uar_page, 0, PRM_SYN_UAR, M5_STAT_BAD_RES},
        {QPC, m5_qpc_uar_page, NIC_FIRST_UAR + NIC_UAR_PAGES, PRM_SYN_UAR, M5_STAT_BAD_RES},
        {QPC, m5_qpc_cqn_snd, 0, PRM_SYN_QP_SEND_CQ, M5_STAT_BAD_RES},
        {QPC, m5_qpc_cqn_snd, 0xffffff, PRM_SYN_QP_SEND_CQ, M5_STAT_BAD_RES},
        {QPC, m5_qpc_cqn_rcv, 0, PRM_SYN_QP_RECV_CQ, M5_STAT_BAD_RES},
        {QPC, m5_qpc_log_rq_stride, 6, PRM_SYN_QP_RQ_STRIDE, M5_STAT_EXCEED_LIM},
        {QPC, m5_qpc_log_rq_size, 15, PRM_SYN_RING_BOUNDS, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_log_sq_size, 15, PRM_SYN_RING_BOUNDS, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_dbr_umem_id, 1, PRM_SYN_RECORD_UMEM, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_dbr_addr, RECORD_BYTES, PRM_SYN_RECORD_BOUNDS, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_dbr_addr, UINT64_MAX - 7, PRM_SYN_RECORD_BOUNDS, M5_STAT_BAD_PARAM},
        {QPC, m5_qpc_dbr_addr, 130, PRM_SYN_RECORD_ALIGNMENT, M5_STAT_BAD_PARAM},
        {0, m5_create_qp_in_wq_umem_id, 0, PRM_SYN_RING_UMEM, M5_STAT_BAD_PARAM},
        {0, m5_create_qp_in_wq_umem_offset, 8200, PRM_SYN_RING_ALIGNMENT, M5_STAT_BAD_PARAM},
        {0, m5_create_qp_in_wq_umem_offset, RING_BYTES - 2496, PRM_SYN_RING_BOUNDS,
         M5_STAT_BAD_PARAM},
        {0, m5_create_qp_in_wq_umem_offset, UINT64_MAX - 63, PRM_SYN_RING_BOUNDS,
         M5_STAT_BAD_PARAM},
    };
    struct command command;
    const struct nic_qp *qp;

    build_create_qp(&command, send_cqn, recv_cqn);
    refused_each(&command, spoilers, COUNT(spoilers));
    refused_short(&command);
    build_create_qp(&command, send_cqn, recv_cqn); /* two receive WQEs of 16 bytes */
    put(command.in + QPC, m5_qpc_log_rq_size, 1);
    put(command.in + QPC, m5_qpc_log_rq_stride, 0);
    refused(&command, PRM_SYN_QP_SQ_ALIGNMENT, M5_STAT_BAD_PARAM);

    build_create_qp(&command, send_cqn, recv_cqn);
    put(command.in, m5_create_qp_in_wq_umem_offset, RING_BYTES - 2560); /* up to the last byte */
    qp = create_qp(&command);
    CHECK(qp->rq == ring_memory + RING_BYTES - 2560 && qp->sq == qp->rq + 512);
    CHECK(qp->rq_depth_log2 == 3 && qp->rq_stride_log2 == 6 && qp->sq_depth_log2 == 5);
    CHECK(qp->send_cqn == send_cqn && qp->recv_cqn == recv_cqn);
    do_qp(M5_CMD_DESTROY_QP, qp->qpn);

    build_create_qp(&command, send_cqn,
                    recv_cqn); /* a queue that is not there needs neither ring nor CQ */
    put(command.in + QPC, m5_qpc_rq_type, M5_QPC_RQ_NONE);
    put(command.in + QPC, m5_qpc_cqn_rcv, 0);
    qp = create_qp(&command);
    CHECK(!qp->rq && qp->sq == ring_memory + 8192 && qp->recv_cqn == send_cqn);
    do_qp(M5_CMD_DESTROY_QP, qp->qpn);

    build_create_qp(&command, send_cqn, recv_cqn);
    put(command.in + QPC, m5_qpc_no_sq, 1);
    put(command.in + QPC, m5_qpc_cqn_snd, 0);
    qp = create_qp(&command);
    CHECK(!qp->sq && qp->rq == ring_memory + 8192 && qp->send_cqn == recv_cqn);
    do_qp(M5_CMD_DESTROY_QP, qp->qpn);

    put(command.in + QPC, m5_qpc_rq_type, M5_QPC_RQ_NONE); /* one that only peers use */
    put(command.in, m5_create_qp_in_wq_umem_id, 0);
    qp = create_qp(&command);
    CHECK(!qp->sq && !qp->rq);
    do_qp(M5_CMD_DESTROY_QP, qp->qpn);
}

/* One without a send record has its page's register to itself. */
static void test_without_record(void)
{
    struct command command;

    build_create_qp(&command, send_cqn, recv_cqn);
    put(command.in + QPC, m5_qpc_send_dbr_mode, M5_QPC_SEND_NO_RECORD);
    const struct nic_qp *qp = create_qp(&command);
    CHECK(qp->without_record);
    build_create_qp(&command, send_cqn, recv_cqn);
    put(command.in + QPC, m5_qpc_send_dbr_mode, M5_QPC_SEND_NO_RECORD);
    refused(&command, PRM_SYN_QP_REGISTER, M5_STAT_BUSY);

    struct command query;
    build_on_qp(&query, M5_CMD_QUERY_QP, qp->qpn);
    CHECK(execute(&query) == 0);
    CHECK(get(query.out + m5_query_qp_out_qpc, m5_qpc_send_dbr_mode) == M5_QPC_SEND_NO_RECORD);
    do_qp(M5_CMD_DESTROY_QP, qp->qpn);
    qp = create_qp(&command);
    do_qp(M5_CMD_DESTROY_QP, qp->qpn);
}

static uint32_t make_qp(void)
{
    struct command command;

    build_create_qp(&command, send_cqn, recv_cqn);
    return create_qp(&command)->qpn;
}

/* Each transition starts from its own state alone, and from no other. */
static void test_states(void)
{
    static const enum m5_prm_opcode way[] = {M5_CMD_2RST_QP, M5_CMD_RST2INIT_QP, M5_CMD_INIT2RTR_QP,
                                             M5_CMD_RTR2RTS_QP};
    static const struct {
        enum m5_prm_opcode opcode;
        uint32_t from, to;
    } moves[] = {
        {M5_CMD_RST2INIT_QP, NIC_QP_RESET, NIC_QP_INIT},
        {M5_CMD_INIT2INIT_QP, NIC_QP_INIT, NIC_QP_INIT},
        {M5_CMD_INIT2RTR_QP, NIC_QP_INIT, NIC_QP_RTR},
        {M5_CMD_RTR2RTS_QP, NIC_QP_RTR, NIC_QP_RTS},
        {M5_CMD_RTS2RTS_QP, NIC_QP_RTS, NIC_QP_RTS},
        {M5_CMD_SQD_RTS_QP, NIC_QP_SQD, NIC_QP_RTS},
    };
    uint32_t qpn = make_qp();
    const struct nic_qp *qp = nic_qp_find(nic, qpn);
    struct command command;

    for (uint32_t state = NIC_QP_RESET; state <= NIC_QP_ERR; state++) {
        if (state == NIC_QP_SQE)
            continue; /* RC never enters it */
        for (size_t i = 0; i < COUNT(moves); i++) {
            for (uint32_t j = 0; j <= (state > NIC_QP_RTS ? NIC_QP_RTS : state); j++)
                do_qp(way[j], qpn);
            if (state == NIC_QP_ERR)
                do_qp(M5_CMD_2ERR_QP, qpn);
            struct nic_qp_modify drain = {.state = NIC_QP_SQD};
            if (state == NIC_QP_SQD)
                CHECK(nic_qp_modify(nic, qpn, &drain) == 0);
            CHECK(qp->state == state);
            build_on_qp(&command, M5_CMD_QUERY_QP, qpn);
            CHECK(execute(&command) == 0);
            CHECK(get(command.out + m5_query_qp_out_qpc, m5_qpc_state) ==
                  (state == NIC_QP_SQD ? M5_QPC_SQ_DRAINED : state));

            build_on_qp(&command, moves[i].opcode, qpn);
            if (moves[i].from != state) {
                refused(&command, PRM_SYN_QP_STATE, M5_STAT_BAD_RES_STATE);
            } else {
                CHECK(execute(&command) == 0);
                CHECK(qp->state == moves[i].to);
            }
        }
        do_qp(M5_CMD_2ERR_QP, qpn);
        CHECK(qp->state == NIC_QP_ERR);
        do_qp(M5_CMD_2RST_QP, qpn);
        CHECK(qp->state == NIC_QP_RESET);
    }
    build_on_qp(&command, M5_CMD_SQERR2RTS_QP, qpn);
    refused(&command, PRM_SYN_OPCODE, M5_STAT_BAD_OPERATION);
    do_qp(M5_CMD_DESTROY_QP, qpn);
}

/* One move of a QP with one field set, that is refused. */
static void refuse_move(uint32_t qpn, enum m5_prm_opcode opcode, size_t part,
                        enum m5_prm_field field, uint64_t value, enum prm_syndrome syndrome,
                        enum m5_prm_status status)
{
    struct command command;

    build_on_qp(&command, opcode, qpn);
    put(command.in + part, field, value);
    refused(&command, syndrome, status);
}

static void set_rights(uint8_t *qpc, uint32_t read, uint32_t write, uint32_t atomic)
{
    put(qpc, m5_qpc_rre, read);
    put(qpc, m5_qpc_rwe, write);
    put(qpc, m5_qpc_rae, atomic);
    put(qpc, m5_qpc_atomic_mode, atomic ? M5_QPC_ATOMIC_UP_TO_8 : 0);
}

/* Required parameters are always taken, optional ones when named, others refused. */
static void test_parameters(void)
{
    const size_t qpc_part = m5_rst2init_qp_in_qpc;
    uint32_t qpn = make_qp();
    const struct nic_qp *qp = nic_qp_find(nic, qpn);
    struct command command;
    uint8_t *qpc = command.in + qpc_part;

    refuse_move(qpn, M5_CMD_RST2INIT_QP, PATH, m5_ads_vhca_port_num, 2, PRM_SYN_QP_PORT,
                M5_STAT_BAD_INDEX);
    refuse_move(qpn, M5_CMD_RST2INIT_QP, PATH, m5_ads_pkey_index, 1, PRM_SYN_QP_PKEY,
                M5_STAT_BAD_INDEX);
    refuse_move(qpn, M5_CMD_RST2INIT_QP, 0, m5_rst2init_qp_in_opt_param_mask, M5_QP_OPT_ACK_TIMEOUT,
                PRM_SYN_QP_OPTIONAL, M5_STAT_BAD_PARAM);
    build_on_qp(&command, M5_CMD_RST2INIT_QP, qpn);
    put(command.in + PATH, m5_ads_vhca_port_num, 1);
    set_rights(qpc, 1, 1, 1);
    CHECK(execute(&command) == 0);
    CHECK(qp->access == (NIC_REMOTE_READ | NIC_REMOTE_WRITE | NIC_REMOTE_ATOMIC));

    build_on_qp(&command, M5_CMD_INIT2INIT_QP, qpn); /* names one right of three */
    put(command.in, m5_rst2init_qp_in_opt_param_mask, M5_QP_OPT_RWE);
    CHECK(execute(&command) == 0);
    CHECK(qp->access == (NIC_REMOTE_READ | NIC_REMOTE_ATOMIC));
    build_on_qp(&command, M5_CMD_INIT2INIT_QP, qpn); /* atomics without a mode are none */
    put(command.in, m5_rst2init_qp_in_opt_param_mask, M5_QP_OPT_RAE);
    put(qpc, m5_qpc_rae, 1);
    CHECK(execute(&command) == 0);
    CHECK(qp->access == NIC_REMOTE_READ);

    refuse_move(qpn, M5_CMD_INIT2RTR_QP, qpc_part, m5_qpc_mtu, 0, PRM_SYN_QP_MTU,
                M5_STAT_BAD_PARAM);
    refuse_move(qpn, M5_CMD_INIT2RTR_QP, qpc_part, m5_qpc_mtu, 6, PRM_SYN_QP_MTU,
                M5_STAT_BAD_PARAM);
    refuse_move(qpn, M5_CMD_INIT2RTR_QP, qpc_part, m5_qpc_log_rra_max, 5, PRM_SYN_QP_RD_ATOMIC,
                M5_STAT_EXCEED_LIM);
    refuse_move(qpn, M5_CMD_INIT2RTR_QP, PATH, m5_ads_src_addr_index, NIC_ROCE_ADDRESSES,
                PRM_SYN_QP_ADDRESS, M5_STAT_BAD_INDEX);
    build_on_qp(&command, M5_CMD_INIT2RTR_QP, qpn);
    put(qpc, m5_qpc_remote_qpn, 0x123456);
    put(qpc, m5_qpc_min_rnr_nak, 12);
    put(qpc, m5_qpc_log_rra_max, 4);
    put(qpc, m5_qpc_rwe, 1); /* not named: has no effect */
    CHECK(execute(&command) == 0);
    CHECK(qp->remote_qpn == 0x123456 && qp->min_rnr_timer == 12 && qp->access == NIC_REMOTE_READ);

    refuse_move(qpn, M5_CMD_RTR2RTS_QP, qpc_part, m5_qpc_log_sra_max, 7, PRM_SYN_QP_RD_ATOMIC,
                M5_STAT_EXCEED_LIM);
    build_on_qp(&command, M5_CMD_RTR2RTS_QP, qpn);
    put(qpc, m5_qpc_retry_count, 5);
    put(qpc, m5_qpc_rnr_retry, 6);
    put(command.in + PATH, m5_ads_ack_timeout, 14);
    put(qpc, m5_qpc_min_rnr_nak, 3); /* not named */
    CHECK(execute(&command) == 0);
    CHECK(qp->retry_count == 5 && qp->rnr_retry == 6 && qp->ack_timeout == 14);
    CHECK(qp->min_rnr_timer == 12 && qp->remote_qpn == 0x123456);

    build_on_qp(&command, M5_CMD_RTS2RTS_QP, qpn);
    put(command.in, m5_rst2init_qp_in_opt_param_mask, M5_QP_OPT_MIN_RNR_NAK | M5_QP_OPT_RWE);
    put(qpc, m5_qpc_min_rnr_nak, 1);
    set_rights(qpc, 0, 1, 0);
    CHECK(execute(&command) == 0);
    CHECK(qp->min_rnr_timer == 1 && qp->access == (NIC_REMOTE_READ | NIC_REMOTE_WRITE));
    refuse_move(qpn, M5_CMD_RTS2RTS_QP, 0, m5_rst2init_qp_in_opt_param_mask, 1u << 31,
                PRM_SYN_QP_OPTIONAL, M5_STAT_BAD_PARAM);

    build_on_qp(&command, M5_CMD_QUERY_QP, qpn);
    CHECK(execute(&command) == 0);
    const uint8_t *answer = command.out + m5_query_qp_out_qpc;
    CHECK(get(answer, m5_qpc_state) == M5_QPC_RTS && get(answer, m5_qpc_remote_qpn) == 0x123456);
    CHECK(get(answer, m5_qpc_pd) == pdn && get(answer, m5_qpc_uar_page) == uar_id);
    CHECK(get(answer, m5_qpc_log_sq_size) == 5 && get(answer, m5_qpc_log_rq_size) == 3);
    CHECK(get(answer, m5_qpc_log_rq_stride) == 2 && get(answer, m5_qpc_no_sq) == 0);
    CHECK(get(answer, m5_qpc_cqn_snd) == send_cqn && get(answer, m5_qpc_cqn_rcv) == recv_cqn);
    CHECK(get(answer, m5_qpc_rre) == 1 && get(answer, m5_qpc_rwe) == 1);
    CHECK(get(answer, m5_qpc_rae) == 0 && get(answer, m5_qpc_user_index) == 0xabcdef);
    CHECK(get(answer, m5_qpc_rnr_retry) == 6 && get(answer, m5_qpc_retry_count) == 5);
    CHECK(get(answer + m5_qpc_primary_address_path, m5_ads_ack_timeout) == 14);
    do_qp(M5_CMD_DESTROY_QP, qpn);
}

static void test_other_qp_commands(void)
{
    static const enum m5_prm_opcode opcodes[] = {M5_CMD_RST2INIT_QP, M5_CMD_2ERR_QP, M5_CMD_2RST_QP,
                                                 M5_CMD_QUERY_QP, M5_CMD_DESTROY_QP};
    static const uint32_t strangers[] = {0, 1, 0xffffff, NIC_MAX_QPS};
    struct command command;

    for (size_t i = 0; i < COUNT(opcodes); i++)
        for (size_t j = 0; j < COUNT(strangers); j++) {
            build_on_qp(&command, opcodes[i], strangers[j]);
            refused(&command, PRM_SYN_QPN, M5_STAT_BAD_RES);
        }

    uint32_t qpn = make_qp();
    build_on_cq(&command, M5_CMD_DESTROY_CQ, send_cqn);
    refused(&command, PRM_SYN_CQ_BUSY, M5_STAT_BUSY);
    build_on_cq(&command, M5_CMD_DESTROY_CQ, recv_cqn);
    refused(&command, PRM_SYN_CQ_BUSY, M5_STAT_BUSY);

    build_on_qp(&command, M5_CMD_DESTROY_QP, qpn);
    CHECK(execute(&command) == 0);
    CHECK(command.result.object == PRM_QP && command.result.number == qpn);
    build_on_qp(&command, M5_CMD_DESTROY_QP, qpn);
    refused(&command, PRM_SYN_QPN, M5_STAT_BAD_RES);
}

int main(void)
{
    device_open();
    send_cqn = create_cq();
    recv_cqn = create_cq();
    test_create_qp();
    test_without_record();
    test_states();
    test_parameters();
    test_other_qp_commands();
    destroy_cq(send_cqn);
    destroy_cq(recv_cqn);
    device_close();
    return 0;
}
