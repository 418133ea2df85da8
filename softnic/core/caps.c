/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capability pages and addresses; see caps.h. The limits are those of nic.h, and what a page does
 * not name here is not served, so it reads 0. Commands: PRM "QUERY_HCA_CAP", "QUERY_ROCE_ADDRESS"
 * and "QUERY_NIC_VPORT_CONTEXT".
 */
#include "caps.h"

#include "prm_command.h"

/* Of a power of two, at compile time. */
#define LOG2(n) ((uint32_t)__builtin_ctzll(n))

/* ---- Addresses ---- */

/* fe80::50:f2ff:fe00:1 is what EUI-64 makes of NIC_MAC. */
#define LINK_LOCAL                                                                                 \
    {                                                                                              \
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x50, 0xf2, 0xff, 0xfe, 0x00, 0x00, 0x01               \
    }
#define LOOPBACK                                                                                   \
    {                                                                                              \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1                                     \
    }

static const struct nic_roce_address addresses[NIC_ROCE_ADDRESSES] = {
    {LINK_LOCAL, M5_ROCE_V1, M5_ROCE_L3_IPV6},
    {LINK_LOCAL, M5_ROCE_V2, M5_ROCE_L3_IPV6},
    {LOOPBACK, M5_ROCE_V1, M5_ROCE_L3_IPV4},
    {LOOPBACK, M5_ROCE_V2, M5_ROCE_L3_IPV4},
};

const struct nic_roce_address *nic_roce_address(uint32_t index)
{
    return index < NIC_ROCE_ADDRESSES ? &addresses[index] : NULL;
}

enum prm_syndrome prm_query_roce_address(const struct prm_call *call)
{
    uint8_t *layout = call->out + m5_query_roce_address_out_roce_address;
    const struct nic_roce_address *address =
        nic_roce_address(prm_get(call->in, m5_query_roce_address_in_roce_address_index));

    /* Port 0 stands for the device's own port. */
    if (!address || prm_get(call->in, m5_query_roce_address_in_vhca_port_num) > 1)
        return PRM_SYN_ROCE_INDEX;
    memcpy(prm_at(layout, m5_roce_addr_layout_source_l3_address), address->gid,
           sizeof(address->gid));
    prm_set(layout, m5_roce_addr_layout_source_mac_47_32, (uint32_t)(NIC_MAC >> 32));
    prm_set(layout, m5_roce_addr_layout_source_mac_31_0, (uint32_t)NIC_MAC);
    prm_set(layout, m5_roce_addr_layout_roce_l3_type, address->l3_type);
    prm_set(layout, m5_roce_addr_layout_roce_version, address->version);
    return PRM_SYN_OK;
}

enum prm_syndrome prm_query_nic_vport_context(const struct prm_call *call)
{
    uint8_t *context = call->out + m5_query_nic_vport_context_out_nic_vport_context;
    uint8_t *mac = context + m5_nic_vport_context_permanent_address;

    if (prm_get(call->in, m5_query_nic_vport_context_in_other_vport))
        return PRM_SYN_OTHER_FUNCTION;
    prm_set(context, m5_nic_vport_context_roce_en, 1);
    prm_set(context, m5_nic_vport_context_mtu, NIC_PORT_MTU);
    prm_set64(context, m5_nic_vport_context_system_image_guid, NIC_GUID);
    prm_set64(context, m5_nic_vport_context_port_guid, NIC_GUID);
    prm_set64(context, m5_nic_vport_context_node_guid, NIC_GUID);
    prm_set(mac, m5_mac_address_layout_mac_addr_47_32, (uint32_t)(NIC_MAC >> 32));
    prm_set(mac, m5_mac_address_layout_mac_addr_31_0, (uint32_t)NIC_MAC);
    return PRM_SYN_OK;
}

/* ---- Capability pages ---- */

struct cap {
    enum m5_prm_field field;
    uint32_t value;
};

static const struct cap general[] = {
    {m5_cmd_hca_cap_hca_cap_2, 1},
    {m5_cmd_hca_cap_log_max_qp, LOG2(NIC_MAX_QPS)},
    {m5_cmd_hca_cap_log_max_qp_sz, LOG2(NIC_MAX_DEPTH)},
    {m5_cmd_hca_cap_log_max_cq, LOG2(NIC_MAX_CQS)},
    {m5_cmd_hca_cap_log_max_cq_sz, NIC_MAX_CQ_DEPTH_LOG2},
    {m5_cmd_hca_cap_log_max_mkey, LOG2(NIC_MAX_MKEYS)},
    {m5_cmd_hca_cap_log_max_ra_req_qp, LOG2(NIC_MAX_RD_ATOMIC)},
    {m5_cmd_hca_cap_log_max_ra_res_qp, LOG2(NIC_MAX_RD_ATOMIC)},
    {m5_cmd_hca_cap_log_max_msg, LOG2(NIC_MAX_MESSAGE)},
    {m5_cmd_hca_cap_port_type, M5_PORT_ETHERNET},
    {m5_cmd_hca_cap_num_ports, 1},
    {m5_cmd_hca_cap_cqe_version, 1},
    {m5_cmd_hca_cap_compact_address_vector, 1},
    {m5_cmd_hca_cap_rc, 1},
    {m5_cmd_hca_cap_roce, 1},
    {m5_cmd_hca_cap_atomic, 1},
    {m5_cmd_hca_cap_cq_oi, 1},
    {m5_cmd_hca_cap_cq_moderation, 1},
    {m5_cmd_hca_cap_uar_4k, 1},
    {m5_cmd_hca_cap_uar_sz, LOG2(NIC_UAR_PAGES *M5_UAR_BYTES >> 20)},
    {m5_cmd_hca_cap_log_pg_sz, LOG2(4096)},
    {m5_cmd_hca_cap_bf, 1},
    {m5_cmd_hca_cap_log_bf_reg_size, LOG2(2 * M5_UAR_SEND_STRIDE)}, /* two halves */
    {m5_cmd_hca_cap_max_wqe_sz_sq, NIC_MAX_SQ_BYTES},
    {m5_cmd_hca_cap_max_wqe_sz_rq, NIC_MAX_RQ_BYTES},
    {m5_cmd_hca_cap_log_uar_page_sz, 0},
    {m5_cmd_hca_cap_num_of_uars_per_page, 1},
};

static const struct cap atomics[] = {
    {m5_atomic_caps_atomic_req_8B_endianness_mode, M5_ATOMIC_HOST_ENDIAN},
    {m5_atomic_caps_supported_atomic_req_8B_endianness_mode_1, 1},
    {m5_atomic_caps_atomic_operations, M5_ATOMIC_COMPARE_SWAP | M5_ATOMIC_FETCH_ADD |
                                           M5_ATOMIC_MASKED_COMPARE_SWAP |
                                           M5_ATOMIC_MASKED_FETCH_ADD},
    {m5_atomic_caps_atomic_size_qp, 4 + 8},
};

static const struct cap roce[] = {
    {m5_roce_cap_l3_type, M5_ROCE_L3_CAP_IPV4 | M5_ROCE_L3_CAP_IPV6},
    {m5_roce_cap_roce_version, 1u << M5_ROCE_V1 | 1u << M5_ROCE_V2},
    {m5_roce_cap_r_roce_dest_udp_port, 4791},
    {m5_roce_cap_r_roce_min_src_udp_port, 0xc000},
    {m5_roce_cap_r_roce_max_src_udp_port, 0xffff},
    {m5_roce_cap_roce_address_table_size, NIC_ROCE_ADDRESSES},
};

static const struct cap general_2[] = {
    {m5_cmd_hca_cap_2_send_dbr_mode_no_dbr_ext, 1}, /* of QPs that share no UAR page */
};

static void fill(uint8_t *page, const struct cap *caps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        prm_set(page, caps[i].field, caps[i].value);
}

#define FILL(page, caps) fill(page, caps, sizeof(caps) / sizeof((caps)[0]))

/* What is in force is also the most there can be, so bit 0 of op_mod makes no difference. */
enum prm_syndrome prm_query_hca_cap(const struct prm_call *call)
{
    uint8_t *page = call->out + m5_query_hca_cap_out_capability;
    uint32_t number = prm_get(call->in, m5_mbox_in_op_mod) >> 1;

    if (prm_get(call->in, m5_query_hca_cap_in_other_function))
        return PRM_SYN_OTHER_FUNCTION;
    if (number >= M5_CAP_PAGES)
        return PRM_SYN_CAP_PAGE;
    switch (number) {
    case M5_CAP_GENERAL:
        FILL(page, general);
        break;
    case M5_CAP_ATOMIC:
        FILL(page, atomics);
        break;
    case M5_CAP_ROCE:
        FILL(page, roce);
        break;
    case M5_CAP_GENERAL_2:
        FILL(page, general_2);
        break;
    default: /* a page of features that are not served, such as on-demand paging: zeros */
        break;
    }
    return PRM_SYN_OK;
}
