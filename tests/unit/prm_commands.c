/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the PRM commands for CQs and the queries do what they say, or are refused with their own
 * status and syndrome and change nothing; unknown and truncated commands are refused; every
 * syndrome has a line of its own.
 *
 * Runs prm_execute() on a bare device core; see prm_device.h. QPs: prm_qp_commands.c.
 */
#include "prm_device.h"

#include <string.h>

#include <core/caps.h>

#define CQC m5_create_cq_in_cq_context

static void test_create_cq(void)
{
    static const struct spoiler spoilers[] = {
        {CQC, m5_cqc_cqe_sz, 2, PRM_SYN_CQE_SIZE, M5_STAT_BAD_PARAM},
        {CQC, m5_cqc_cqe_sz, 7, PRM_SYN_CQE_SIZE, M5_STAT_BAD_PARAM},
        {CQC, m5_cqc_cqe_comp_en, 1, PRM_SYN_CQ_COMPRESSION, M5_STAT_BAD_PARAM},
        {CQC, m5_cqc_apu_cq, 1, PRM_SYN_CQ_APU, M5_STAT_BAD_PARAM},
        {CQC, m5_cqc_log_cq_size, 23, PRM_SYN_CQ_DEPTH, M5_STAT_EXCEED_LIM},
        {CQC, m5_cqc_log_cq_size, 31, PRM_SYN_CQ_DEPTH, M5_STAT_EXCEED_LIM},
        {CQC, m5_cqc_log_cq_size, 10, PRM_SYN_RING_BOUNDS, M5_STAT_BAD_PARAM},
        {CQC, m5_cqc_log_cq_size, 22, PRM_SYN_RING_BOUNDS, M5_STAT_BAD_PARAM},
        {CQC, m5_cqc_uar_page, 0, PRM_SYN_UAR, M5_STAT_BAD_RES},
        {CQC, m5_cqc_uar_page, NIC_FIRST_UAR + 1, PRM_SYN_UAR, M5_STAT_BAD_RES},
        {CQC, m5_cqc_uar_page, 0xffffff, PRM_SYN_UAR, M5_STAT_BAD_RES},
        {CQC, m5_cqc_dbr_umem_id, 0, PRM_SYN_RECORD_UMEM, M5_STAT_BAD_PARAM},
        {CQC, m5_cqc_dbr_addr, RECORD_BYTES, PRM_SYN_RECORD_BOUNDS, M5_STAT_BAD_PARAM},
        {CQC, m5_cqc_dbr_addr, RECORD_BYTES - 4, PRM_SYN_RECORD_BOUNDS, M5_STAT_BAD_PARAM},
        {CQC, m5_cqc_dbr_addr, UINT64_MAX, PRM_SYN_RECORD_BOUNDS, M5_STAT_BAD_PARAM},
        {CQC, m5_cqc_dbr_addr, 4, PRM_SYN_RECORD_ALIGNMENT, M5_STAT_BAD_PARAM},
        {0, m5_create_cq_in_cq_umem_id, 0, PRM_SYN_RING_UMEM, M5_STAT_BAD_PARAM},
        {0, m5_create_cq_in_cq_umem_id, UINT32_MAX, PRM_SYN_RING_UMEM, M5_STAT_BAD_PARAM},
        {0, m5_create_cq_in_cq_umem_offset, 32, PRM_SYN_RING_ALIGNMENT, M5_STAT_BAD_PARAM},
        {0, m5_create_cq_in_cq_umem_offset, RING_BYTES - 960, PRM_SYN_RING_BOUNDS,
         M5_STAT_BAD_PARAM},
        {0, m5_create_cq_in_cq_umem_offset, RING_BYTES, PRM_SYN_RING_BOUNDS, M5_STAT_BAD_PARAM},
        {0, m5_create_cq_in_cq_umem_offset, UINT64_MAX - 63, PRM_SYN_RING_BOUNDS,
         M5_STAT_BAD_PARAM},
    };
    struct command command;

    build_create_cq(&command);
    refused_each(&command, spoilers, COUNT(spoilers));
    refused_short(&command);

    build_create_cq(&command);
    put(command.in, m5_create_cq_in_cq_umem_offset, RING_BYTES - 2048); /* up to the last byte */
    put(command.in + CQC, m5_cqc_cqe_sz, M5_CQC_CQE_128);
    put(command.in + CQC, m5_cqc_dbr_addr, RECORD_BYTES - 8);
    put(command.in + CQC, m5_cqc_cc, 1);
    put(command.in + CQC, m5_cqc_oi, 1);
    put(command.in + CQC, m5_cqc_cq_period, 16);
    put(command.in + CQC, m5_cqc_cq_max_count, 8);
    CHECK(execute(&command) == 0);
    const struct nic_cq *cq = nic_cq_find(nic, command.result.number);
    CHECK(cq && cq->ring == ring_memory + RING_BYTES - 2048);
    CHECK((uint8_t *)cq->record == record_memory + RECORD_BYTES - 8);
    CHECK(cq->depth_log2 == 4 && cq->cqe_bytes == 128 && cq->uar_page == uar_id - NIC_FIRST_UAR);
    CHECK(cq->flags == (NIC_CQ_COLLAPSED | NIC_CQ_IGNORE_OVERRUN) && cq->owner == NULL);
    destroy_cq(command.result.number);
}

/* A umem that ends within a CQE and within a record: the last byte counts. */
static void test_odd_umem(void)
{
    static const struct {
        uint64_t offset;
        enum prm_syndrome ring, record;
    } cases[] = {
        {0, PRM_SYN_RING_BOUNDS, PRM_SYN_OK}, /* 1024 bytes of ring, 8 of record */
        {1016, PRM_SYN_RING_BOUNDS, PRM_SYN_RECORD_BOUNDS},
        {ODD_BYTES, PRM_SYN_RING_BOUNDS, PRM_SYN_RECORD_BOUNDS},
        {ODD_BYTES + 1, PRM_SYN_RING_BOUNDS, PRM_SYN_RECORD_BOUNDS},
        {UINT64_MAX, PRM_SYN_RING_BOUNDS, PRM_SYN_RECORD_BOUNDS},
    };
    struct command command;

    for (size_t i = 0; i < COUNT(cases); i++) {
        build_create_cq(&command);
        put(command.in, m5_create_cq_in_cq_umem_id, ODD_UMEM);
        put(command.in, m5_create_cq_in_cq_umem_offset, cases[i].offset);
        refused(&command, cases[i].ring, M5_STAT_BAD_PARAM);
        build_create_cq(&command);
        put(command.in + CQC, m5_cqc_dbr_umem_id, ODD_UMEM);
        put(command.in + CQC, m5_cqc_dbr_addr, cases[i].offset);
        if (cases[i].record) {
            refused(&command, cases[i].record, M5_STAT_BAD_PARAM);
        } else {
            CHECK(execute(&command) == 0);
            destroy_cq(command.result.number);
        }
    }
}

static void test_other_cq_commands(void)
{
    static const enum m5_prm_opcode opcodes[] = {M5_CMD_MODIFY_CQ, M5_CMD_QUERY_CQ,
                                                 M5_CMD_DESTROY_CQ};
    static const uint32_t strangers[] = {0, 0xffffff, NIC_MAX_CQS, 40};
    struct command command;
    uint32_t cqn = create_cq();
    struct nic_cq *cq = nic_cq_find(nic, cqn);

    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 4; j++) {
            build_on_cq(&command, opcodes[i], strangers[j]);
            refused(&command, PRM_SYN_CQN, M5_STAT_BAD_RES);
        }

    build_on_cq(&command, M5_CMD_MODIFY_CQ, cqn);
    put(command.in, m5_mbox_in_op_mod, M5_MODIFY_CQ_RESIZE);
    refused(&command, PRM_SYN_CQ_RESIZE, M5_STAT_BAD_OPERATION);
    build_on_cq(&command, M5_CMD_MODIFY_CQ, cqn);
    put(command.in, m5_modify_cq_in_modify_field_select_resize_field_select,
        M5_MODIFY_CQ_OI | M5_MODIFY_CQ_EQN);
    refused(&command, PRM_SYN_CQ_SELECT, M5_STAT_BAD_PARAM);

    for (uint32_t oi = 2; oi-- > 0;) {
        build_on_cq(&command, M5_CMD_MODIFY_CQ, cqn);
        put(command.in, m5_modify_cq_in_modify_field_select_resize_field_select,
            M5_MODIFY_CQ_OI | M5_MODIFY_CQ_PERIOD | M5_MODIFY_CQ_MAX_COUNT);
        put(command.in + m5_modify_cq_in_cq_context, m5_cqc_oi, oi);
        CHECK(execute(&command) == 0);
        CHECK(cq->flags == (oi ? NIC_CQ_IGNORE_OVERRUN : 0));
    }

    cq->produced = 0x1000005;
    cq->armed = NIC_CQ_ARMED_SOLICITED;
    build_on_cq(&command, M5_CMD_QUERY_CQ, cqn);
    CHECK(execute(&command) == 0);
    const uint8_t *cqc = command.out + m5_query_cq_out_cq_context;
    CHECK(get(cqc, m5_cqc_status) == M5_CQC_STATUS_OK && get(cqc, m5_cqc_log_cq_size) == 4);
    CHECK(get(cqc, m5_cqc_uar_page) == uar_id && get(cqc, m5_cqc_cqe_sz) == M5_CQC_CQE_64);
    CHECK(get(cqc, m5_cqc_st) == M5_CQC_ST_ARMED_SOLICITED && get(cqc, m5_cqc_cc) == 0);
    CHECK(get(cqc, m5_cqc_producer_counter) == 5);

    cq->armed = NIC_CQ_ARMED_ANY;
    build_on_cq(&command, M5_CMD_QUERY_CQ, cqn);
    CHECK(execute(&command) == 0 && get(cqc, m5_cqc_st) == M5_CQC_ST_ARMED);
    cq->armed = NIC_CQ_NOT_ARMED;
    cq->failed = 1;
    build_on_cq(&command, M5_CMD_QUERY_CQ, cqn);
    CHECK(execute(&command) == 0 && get(cqc, m5_cqc_st) == M5_CQC_ST_FIRED);
    CHECK(get(cqc, m5_cqc_status) == M5_CQC_STATUS_OVERFLOW);

    destroy_cq(cqn);
    build_on_cq(&command, M5_CMD_DESTROY_CQ, cqn);
    refused(&command, PRM_SYN_CQN, M5_STAT_BAD_RES);
}

/* ---- Queries ---- */

static void build_query_cap(struct command *command)
{
    begin(command, M5_CMD_QUERY_HCA_CAP, m5_query_hca_cap_in_bytes, m5_query_hca_cap_out_bytes);
    put(command->in, m5_mbox_in_op_mod, M5_CAP_GENERAL << 1 | 1);
}

static const uint8_t *query_cap(struct command *command, uint32_t page, uint32_t current)
{
    build_query_cap(command);
    put(command->in, m5_mbox_in_op_mod, page << 1 | current);
    CHECK(execute(command) == 0);
    return command->out + m5_query_hca_cap_out_capability;
}

static void test_capabilities(void)
{
    struct command command;
    const uint8_t *page;

    build_query_cap(&command);
    refused_short(&command);
    build_query_cap(&command);
    put(command.in, m5_query_hca_cap_in_other_function, 1);
    refused(&command, PRM_SYN_OTHER_FUNCTION, M5_STAT_BAD_PARAM);
    build_query_cap(&command);
    put(command.in, m5_mbox_in_op_mod, M5_CAP_PAGES << 1);
    refused(&command, PRM_SYN_CAP_PAGE, M5_STAT_BAD_PARAM);

    for (uint32_t current = 0; current <= 1; current++) {
        page = query_cap(&command, M5_CAP_GENERAL, current);
        CHECK(get(page, m5_cmd_hca_cap_port_type) == M5_PORT_ETHERNET);
        CHECK(get(page, m5_cmd_hca_cap_rc) == 1 && get(page, m5_cmd_hca_cap_ud) == 0);
        CHECK(1u << get(page, m5_cmd_hca_cap_log_max_qp) == NIC_MAX_QPS);
        CHECK(1u << get(page, m5_cmd_hca_cap_log_max_qp_sz) == NIC_MAX_DEPTH);
        CHECK(1u << get(page, m5_cmd_hca_cap_log_max_cq) == NIC_MAX_CQS);
        CHECK(get(page, m5_cmd_hca_cap_log_max_cq_sz) == NIC_MAX_CQ_DEPTH_LOG2);
        CHECK(1u << get(page, m5_cmd_hca_cap_log_max_mkey) == NIC_MAX_MKEYS);
        CHECK(1u << get(page, m5_cmd_hca_cap_log_max_ra_req_qp) == NIC_MAX_RD_ATOMIC);
        CHECK(1u << get(page, m5_cmd_hca_cap_log_max_ra_res_qp) == NIC_MAX_RD_ATOMIC);
        CHECK(get(page, m5_cmd_hca_cap_max_wqe_sz_sq) == NIC_MAX_SQ_BYTES);
        CHECK(get(page, m5_cmd_hca_cap_max_wqe_sz_rq) == NIC_MAX_RQ_BYTES);
        CHECK(get(page, m5_cmd_hca_cap_cqe_version) == 1);
        CHECK(get(page, m5_cmd_hca_cap_hca_cap_2) == 1);
        CHECK(get(page, m5_cmd_hca_cap_roce) == 1 && get(page, m5_cmd_hca_cap_atomic) == 1);
        CHECK(get(page, m5_cmd_hca_cap_log_max_srq) == 0 && get(page, m5_cmd_hca_cap_dct) == 0);
    }
    page = query_cap(&command, M5_CAP_GENERAL_2, 1);
    CHECK(get(page, m5_cmd_hca_cap_2_send_dbr_mode_no_dbr_ext) == 1);
    CHECK(get(page, m5_cmd_hca_cap_2_send_dbr_mode_no_dbr_int) == 0);
    page = query_cap(&command, M5_CAP_ATOMIC, 1);
    CHECK(get(page, m5_atomic_caps_atomic_operations) == 15);
    CHECK(get(page, m5_atomic_caps_atomic_size_qp) == 12);
    page = query_cap(&command, M5_CAP_ROCE, 1);
    CHECK(get(page, m5_roce_cap_roce_address_table_size) == NIC_ROCE_ADDRESSES);
    CHECK(get(page, m5_roce_cap_r_roce_dest_udp_port) == 4791);
    CHECK(get(page, m5_roce_cap_r_roce_min_src_udp_port) <
          get(page, m5_roce_cap_r_roce_max_src_udp_port));
    page = query_cap(&command, M5_CAP_ODP, 1);
    for (size_t i = 0; i < M5_PRM_CAP_PAGE_BYTES; i++)
        CHECK(page[i] == 0);
}

static void build_query_address(struct command *command)
{
    begin(command, M5_CMD_QUERY_ROCE_ADDRESS, m5_query_roce_address_in_bytes,
          m5_query_roce_address_out_bytes);
}

static void build_query_vport(struct command *command)
{
    begin(command, M5_CMD_QUERY_NIC_VPORT_CONTEXT, m5_query_nic_vport_context_in_bytes,
          m5_query_nic_vport_context_out_bytes);
}

static void test_addresses(void)
{
    static const uint8_t link_local[16] = {0xfe, 0x80, [9] = 0x50, 0xf2, 0xff, 0xfe, 0, 0, 1};
    static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
    struct command command;

    build_query_address(&command);
    refused_short(&command);
    for (uint32_t i = 0; i < NIC_ROCE_ADDRESSES; i++) {
        build_query_address(&command);
        put(command.in, m5_query_roce_address_in_roce_address_index, i);
        command.out_bytes += 64; /* clients pass more than the layout */
        CHECK(execute(&command) == 0);
        const uint8_t *layout = command.out + m5_query_roce_address_out_roce_address;
        CHECK(memcmp(layout, i < 2 ? link_local : loopback, 16) == 0);
        CHECK(get(layout, m5_roce_addr_layout_roce_version) == (i % 2 ? M5_ROCE_V2 : M5_ROCE_V1));
        CHECK(get(layout, m5_roce_addr_layout_source_mac_47_32) == 0x0250);
        CHECK(get(layout, m5_roce_addr_layout_source_mac_31_0) == 0xf2000001);
    }
    build_query_address(&command);
    put(command.in, m5_query_roce_address_in_roce_address_index, NIC_ROCE_ADDRESSES);
    refused(&command, PRM_SYN_ROCE_INDEX, M5_STAT_BAD_INDEX);
    build_query_address(&command);
    put(command.in, m5_query_roce_address_in_vhca_port_num, 2);
    refused(&command, PRM_SYN_ROCE_INDEX, M5_STAT_BAD_INDEX);

    build_query_vport(&command);
    refused_short(&command);
    build_query_vport(&command);
    put(command.in, m5_query_nic_vport_context_in_other_vport, 1);
    refused(&command, PRM_SYN_OTHER_FUNCTION, M5_STAT_BAD_PARAM);
    build_query_vport(&command);
    CHECK(execute(&command) == 0);
    const uint8_t *context = command.out + m5_query_nic_vport_context_out_nic_vport_context;
    CHECK(get(context, m5_nic_vport_context_roce_en) == 1);
    CHECK(get(context, m5_nic_vport_context_node_guid) == NIC_GUID);
    CHECK(get(context + m5_nic_vport_context_permanent_address,
              m5_mac_address_layout_mac_addr_31_0) == 0xf2000001);
}

/* Opcodes nobody serves, and what the ioctls learn about those that are served. */
static void test_opcodes(void)
{
    struct command command;
    unsigned served = 0;

    for (uint32_t opcode = 0; opcode <= UINT16_MAX; opcode++) {
        begin(&command, opcode, m5_mbox_in_bytes, m5_mbox_out_bytes);
        if (prm_method_of(command.in, command.in_bytes) != PRM_UNKNOWN)
            served++;
        else if (opcode % 251 == 0 || (opcode >= 0x400 && opcode < 0x600))
            refused(&command, PRM_SYN_OPCODE, M5_STAT_BAD_OPERATION);
    }
    CHECK(served == 18);
    begin(&command, M5_CMD_CREATE_QP, 16, 16);
    CHECK(prm_method_of(command.in, 16) == PRM_CREATE);
    CHECK(prm_method_of(command.in, 15) == PRM_UNKNOWN);
    begin(&command, M5_CMD_2RST_QP, 16, 16);
    CHECK(prm_method_of(command.in, 16) == PRM_MODIFY);
    begin(&command, M5_CMD_QUERY_CQ, 16, 16);
    CHECK(prm_method_of(command.in, 16) == PRM_QUERY);
    begin(&command, M5_CMD_DESTROY_CQ, 16, 16);
    CHECK(prm_method_of(command.in, 16) == PRM_DESTROY);
    begin(&command, M5_CMD_QUERY_ROCE_ADDRESS, 16, 16);
    CHECK(prm_method_of(command.in, 16) == PRM_GENERAL);
}

/* A full table refuses, and has room again once one object is gone. The table is filled by hand: it
 * is the answer that counts here. */
static void test_exhaustion(void)
{
    struct command command;

    for (uint32_t n = NIC_FIRST_CQN; n < NIC_MAX_CQS; n++)
        nic->cqs[n].cqn = n;
    build_create_cq(&command);
    refused(&command, PRM_SYN_NO_ROOM, M5_STAT_NO_RES);
    nic->cqs[NIC_MAX_CQS - 1].cqn = 0;
    CHECK(create_cq() == NIC_MAX_CQS - 1);
    destroy_cq(NIC_MAX_CQS - 1);
    for (uint32_t n = NIC_FIRST_CQN; n < NIC_MAX_CQS; n++)
        nic->cqs[n].cqn = 0;
}

static void test_syndromes(void)
{
    for (uint32_t i = PRM_SYN_BASE + 1; i < PRM_SYN_END; i++)
        for (uint32_t j = PRM_SYN_BASE + 1; j < i; j++)
            CHECK(strcmp(prm_syndrome_text(i), prm_syndrome_text(j)) != 0);
    CHECK(prm_syndrome_text(0) && prm_syndrome_text(PRM_SYN_BASE) && prm_syndrome_text(UINT32_MAX));
    CHECK(strcmp(prm_syndrome_text(PRM_SYN_END), prm_syndrome_text(UINT32_MAX)) == 0);
}

int main(void)
{
    device_open();
    test_syndromes();
    test_opcodes();
    test_capabilities();
    test_addresses();
    test_create_cq();
    test_odd_umem();
    test_other_cq_commands();
    test_exhaustion();
    device_close();
    return 0;
}
