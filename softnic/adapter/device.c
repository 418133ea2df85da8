/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the software device says about itself over uverbs: GET_CONTEXT and the queries. The figures
 * are the device core's limits (core/nic.h); whatever the core does not do is reported absent, so
 * that libmlx5 refuses it before it comes here.
 */
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>

#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include "attrs.h"
#include "calls.h"
#include "identity.h"

static int check_context_request(const struct mlx5_ib_alloc_ucontext_req_v2 *request)
{
    if (request->comp_mask != 0 || (request->flags & ~(uint32_t)MLX5_IB_ALLOC_UCTX_DEVX) != 0)
        return soft_refuse(EOPNOTSUPP, "GET_CONTEXT: unknown flags %#x, mask %#x", request->flags,
                           request->comp_mask);
    if (request->max_cqe_version < 1)
        return soft_refuse(EOPNOTSUPP, "GET_CONTEXT: this libmlx5 does not know CQE version 1");
    if ((request->lib_caps & MLX5_LIB_CAP_DYN_UAR) == 0)
        return soft_refuse(EOPNOTSUPP, "GET_CONTEXT: this libmlx5 does not know dynamic UARs");
    return 0;
}

int soft_get_context(struct soft_call *call)
{
    const struct mlx5_ib_alloc_ucontext_resp answer = {
        .qp_tab_size = 1u << 18,
        .bf_reg_size = 512,
        .cache_line_size = 64,
        .max_sq_desc_sz = NIC_MAX_SQ_BYTES,
        .max_rq_desc_sz = NIC_MAX_RQ_BYTES,
        .max_send_wqebb = NIC_MAX_DEPTH,
        .max_recv_wr = NIC_MAX_DEPTH,
        .max_srq_recv_wr = NIC_MAX_DEPTH - 1, /* so that CREATE_SRQ comes here to be refused */
        .num_ports = SOFT_PORTS,
        .response_length = sizeof(answer),
        .cqe_version = 1,
        .cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE,
        .eth_min_inline = MLX5_USER_INLINE_MODE_NONE,
        .log_uar_size = 12,
        .num_uars_per_page = 1,
    };
    const uint32_t vectors = SOFT_COMP_VECTORS;
    const uint64_t core_support = IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS;
    struct mlx5_ib_alloc_ucontext_req_v2 request;
    int error;

    if (call->context->active)
        return soft_refuse(EINVAL, "GET_CONTEXT: called a second time");
    error = soft_in(call, UVERBS_ATTR_UHW_IN, &request, sizeof(request));
    if (error == 0)
        error = check_context_request(&request);
    if (error == 0)
        error = soft_out(call, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof(vectors));
    if (error == 0)
        error = soft_out(call, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &core_support,
                         sizeof(core_support));
    if (error == 0)
        error = soft_out(call, UVERBS_ATTR_UHW_OUT, &answer, sizeof(answer));
    if (error != 0)
        return error;
    call->context->devx = (request.flags & MLX5_IB_ALLOC_UCTX_DEVX) != 0;
    call->context->active = true;
    return 0;
}

static struct ib_uverbs_query_device_resp describe_device(void)
{
    struct ib_uverbs_query_device_resp device = {
        .fw_ver = (uint64_t)SOFT_FW_MAJOR << 32 | SOFT_FW_MINOR << 16 | SOFT_FW_SUBMINOR,
        .max_mr_size = UINT64_MAX,
        .page_size_cap = 0xfffffffffffff000,
        .vendor_id = SOFT_VENDOR_ID,
        .vendor_part_id = SOFT_PART_ID,
        .max_qp = NIC_MAX_QPS - NIC_FIRST_QPN,
        .max_qp_wr = NIC_MAX_DEPTH,
        .device_cap_flags = IB_UVERBS_DEVICE_CURR_QP_STATE_MOD | IB_UVERBS_DEVICE_SYS_IMAGE_GUID |
                            IB_UVERBS_DEVICE_RC_RNR_NAK_GEN,
        .max_sge = NIC_MAX_SGE,
        .max_sge_rd = NIC_MAX_SGE,
        .max_cq = NIC_MAX_CQS - NIC_FIRST_CQN,
        .max_cqe = (1u << 22) - 1,
        .max_mr = NIC_MAX_MKEYS - NIC_FIRST_MKEY,
        .max_pd = NIC_MAX_PDS - 1,
        .max_qp_rd_atom = NIC_MAX_RD_ATOMIC,
        .max_qp_init_rd_atom = NIC_MAX_RD_ATOMIC,
        .max_res_rd_atom = (NIC_MAX_QPS - NIC_FIRST_QPN) * NIC_MAX_RD_ATOMIC,
        .atomic_cap = 1, /* IBV_ATOMIC_HCA */
        .max_pkeys = 1,
        .local_ca_ack_delay = 16,
        .phys_port_cnt = SOFT_PORTS,
    };

    device.node_guid = htobe64(NIC_GUID);
    device.sys_image_guid = device.node_guid;
    return device;
}

int soft_query_device(struct soft_call *call)
{
    const struct ib_uverbs_query_device_resp device = describe_device();

    /* libibverbs sends this command without room for an answer, before GET_CONTEXT, to learn
     * whether commands go through ioctl at all: any error but "unknown" says that they do. */
    if (soft_attr(call, UVERBS_ATTR_CORE_OUT) == NULL)
        return -ENOSPC;
    if (!call->context->active)
        return -EINVAL;
    return soft_out(call, UVERBS_ATTR_CORE_OUT, &device, sizeof(device));
}

int soft_query_device_ex(struct soft_call *call)
{
    const struct ib_uverbs_ex_query_device_resp device = {
        .base = describe_device(),
        .response_length = sizeof(device),
        .device_cap_flags_ex = device.base.device_cap_flags,
        .cq_moderation_caps = {.max_cq_moderation_count = UINT16_MAX,
                               .max_cq_moderation_period = UINT16_MAX},
    };
    const struct mlx5_ib_query_device_resp mlx5 = {.response_length = sizeof(mlx5)};
    struct ib_uverbs_ex_query_device request;
    int error = soft_in(call, UVERBS_ATTR_CORE_IN, &request, sizeof(request));

    if (error != 0)
        return error;
    if (request.comp_mask != 0)
        return soft_refuse(EINVAL, "QUERY_DEVICE: unknown mask %#x", request.comp_mask);
    error = soft_out(call, UVERBS_ATTR_CORE_OUT, &device, sizeof(device));
    if (error == 0)
        error = soft_out(call, UVERBS_ATTR_UHW_OUT, &mlx5, sizeof(mlx5));
    return error;
}

static const struct ib_uverbs_query_port_resp port = {
    .port_cap_flags = IB_UVERBS_PCF_CM_SUP | IB_UVERBS_PCF_IP_BASED_GIDS,
    .max_msg_sz = NIC_MAX_MESSAGE,
    .gid_tbl_len = SOFT_GIDS,
    .pkey_tbl_len = 1,
    .state = 4,      /* active */
    .max_mtu = 5,    /* 4096 */
    .active_mtu = 5, /* 4096 */
    .max_vl_num = 1,
    .active_width = SOFT_LINK_WIDTH,
    .active_speed = SOFT_LINK_SPEED,
    .phys_state = 5, /* link up */
    .link_layer = 2, /* Ethernet */
};

static int check_port(uint64_t number)
{
    return number == 1 ? 0
                       : soft_refuse(EINVAL, "there is no port %llu", (unsigned long long)number);
}

int soft_query_port(struct soft_call *call)
{
    const struct ib_uverbs_query_port_resp_ex answer = {.legacy_resp = port};
    int error = check_port(soft_in_number(call, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 0));

    return error != 0 ? error
                      : soft_out(call, UVERBS_ATTR_QUERY_PORT_RESP, &answer, sizeof(answer));
}

int soft_query_port_write(struct soft_call *call)
{
    struct ib_uverbs_query_port request;
    int error = soft_in(call, UVERBS_ATTR_CORE_IN, &request, sizeof(request));

    if (error == 0)
        error = check_port(request.port_num);
    return error != 0 ? error : soft_out(call, UVERBS_ATTR_CORE_OUT, &port, sizeof(port));
}

/* No flag is set: the port has no e-switch. */
int soft_query_mlx5_port(struct soft_call *call)
{
    const struct mlx5_ib_uapi_query_port answer = {0};
    int error = check_port(soft_in_number(call, MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, 0));

    return error != 0 ? error : soft_out(call, MLX5_IB_ATTR_QUERY_PORT, &answer, sizeof(answer));
}

static struct ib_uverbs_gid_entry describe_gid(uint32_t index)
{
    const struct nic_roce_address *address = nic_roce_address(index);
    const char *netdev = soft_gid_netdev(index);
    struct ib_uverbs_gid_entry entry = {
        .gid_index = index,
        .port_num = 1,
        .gid_type = address->version == M5_ROCE_V2 ? IB_UVERBS_GID_TYPE_ROCE_V2
                                                   : IB_UVERBS_GID_TYPE_ROCE_V1,
        .netdev_ifindex = netdev == NULL ? 0 : if_nametoindex(netdev),
    };

    memcpy(entry.gid, address->gid, sizeof(address->gid));
    return entry;
}

int soft_query_gid_entry(struct soft_call *call)
{
    uint64_t index = soft_in_number(call, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, SOFT_GIDS);
    struct ib_uverbs_gid_entry entry;
    int error = check_port(soft_in_number(call, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 0));

    if (error != 0)
        return error;
    if (soft_in_number(call, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0) != 0)
        return soft_refuse(EINVAL, "QUERY_GID_ENTRY: no flags are known");
    if (index >= SOFT_GIDS)
        return soft_refuse(EINVAL, "there is no GID %llu", (unsigned long long)index);
    entry = describe_gid((uint32_t)index);
    return soft_out(call, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry, sizeof(entry));
}

int soft_query_gid_table(struct soft_call *call)
{
    uint64_t size = soft_in_number(call, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 0);
    const uint64_t count = SOFT_GIDS;
    size_t room;
    uint8_t *to = soft_out_bytes(call, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, &room);

    if (soft_in_number(call, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0) != 0)
        return soft_refuse(EINVAL, "QUERY_GID_TABLE: no flags are known");
    if (size < offsetof(struct ib_uverbs_gid_entry, netdev_ifindex))
        return soft_refuse(EINVAL, "QUERY_GID_TABLE: entries of %llu bytes are too small",
                           (unsigned long long)size);
    if (to == NULL || room / size < count)
        return soft_refuse(EINVAL, "QUERY_GID_TABLE: there is no room for %u entries", SOFT_GIDS);
    for (uint32_t index = 0; index < count; index++, to += size) {
        const struct ib_uverbs_gid_entry entry = describe_gid(index);
        memset(to, 0, size);
        memcpy(to, &entry, size < sizeof(entry) ? size : sizeof(entry));
    }
    return soft_out(call, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &count, sizeof(count));
}
