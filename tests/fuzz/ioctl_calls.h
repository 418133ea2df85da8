/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs calls that fuzz/ioctl.c starts from: one function a kind, which fills `call` with a
 * right one over the newest objects. Included by that file alone. Structures are those of the
 * kernel's uapi headers, as libibverbs and libmlx5 fill them.
 */
#ifndef DOORBELL_TESTS_FUZZ_IOCTL_CALLS_H
#define DOORBELL_TESTS_FUZZ_IOCTL_CALLS_H

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <doorbell/impl/m5_prm_format.h>

#include "ioctl_attrs.h"

/* ---- PRM commands, field by field ---- */

static void put(uint8_t *structure, enum m5_prm_field field, uint64_t value)
{
    for (uint32_t i = 0; i < M5_PRM_WIDTH(field); i++) {
        uint32_t bit = M5_PRM_BIT(field) + i;
        uint8_t mask = (uint8_t)(0x80 >> bit % 8);
        structure[bit / 8] &= (uint8_t)~mask;
        if (value >> (M5_PRM_WIDTH(field) - 1 - i) & 1)
            structure[bit / 8] |= mask;
    }
}

static void prm_create_cq(struct input *input)
{
    begin(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
    add_number(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0);
    uint8_t *in = add_in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, NULL, m5_create_cq_in_bytes);
    uint8_t *cqc = in + m5_create_cq_in_cq_context;
    put(in, m5_mbox_in_opcode, M5_CMD_CREATE_CQ);
    put(in, m5_create_cq_in_cq_umem_id, any(UMEM, input));
    put(cqc, m5_cqc_dbr_umem_id, any(UMEM, input));
    put(cqc, m5_cqc_dbr_addr, 8 * take(input, 1));
    put(cqc, m5_cqc_log_cq_size, 4);
    put(cqc, m5_cqc_uar_page, any(UAR, input));
    add_out(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, m5_create_cq_out_bytes);
}

static void prm_create_qp(struct input *input)
{
    begin(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
    add_number(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0);
    uint8_t *in = add_in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, NULL, m5_create_qp_in_bytes);
    uint8_t *qpc = in + m5_create_qp_in_qpc;
    put(in, m5_mbox_in_opcode, M5_CMD_CREATE_QP);
    put(in, m5_create_qp_in_wq_umem_id, any(UMEM, input));
    put(qpc, m5_qpc_pd, any(PDN, input));
    put(qpc, m5_qpc_uar_page, any(UAR, input));
    put(qpc, m5_qpc_log_rq_size, 3);
    put(qpc, m5_qpc_log_rq_stride, 2);
    put(qpc, m5_qpc_log_sq_size, 5);
    put(qpc, m5_qpc_cqn_snd, any(CQN, input));
    put(qpc, m5_qpc_cqn_rcv, any(CQN, input));
    put(qpc, m5_qpc_dbr_umem_id, any(UMEM, input));
    put(qpc, m5_qpc_dbr_addr, 8 * take(input, 1));
    add_out(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, m5_create_qp_out_bytes);
}

static void prm_modify(struct input *input)
{
    static const uint16_t opcodes[] = {M5_CMD_RST2INIT_QP, M5_CMD_INIT2RTR_QP, M5_CMD_RTR2RTS_QP,
                                       M5_CMD_2ERR_QP,     M5_CMD_2RST_QP,     M5_CMD_MODIFY_CQ};
    uint16_t opcode = opcodes[take(input, 1) % 6];
    bool is_cq = opcode == M5_CMD_MODIFY_CQ;
    begin(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY);
    add_number(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE,
               any(is_cq ? DEVX_CQ : DEVX_QP, input) ^ (take(input, 1) == 1 ? 1 : 0));
    uint8_t *in = add_in(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, NULL, m5_rst2init_qp_in_bytes);
    put(in, m5_mbox_in_opcode, opcode);
    put(in, m5_rst2init_qp_in_qpn, any(is_cq ? CQN : QPN, input));
    if (opcode == M5_CMD_INIT2RTR_QP)
        put(in + m5_rst2init_qp_in_qpc, m5_qpc_mtu, 3);
    add_out(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, m5_mbox_out_bytes);
}

static void prm_query(struct input *input)
{
    bool is_cq = take(input, 1) & 1;
    begin(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY);
    add_number(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, any(is_cq ? DEVX_CQ : DEVX_QP, input));
    uint8_t *in = add_in(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, NULL, m5_query_qp_in_bytes);
    put(in, m5_mbox_in_opcode, is_cq ? M5_CMD_QUERY_CQ : M5_CMD_QUERY_QP);
    put(in, m5_query_qp_in_qpn, any(is_cq ? CQN : QPN, input));
    add_out(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, m5_query_qp_out_bytes);
}

static void prm_general(struct input *input)
{
    static const uint16_t opcodes[] = {M5_CMD_QUERY_HCA_CAP, M5_CMD_QUERY_ROCE_ADDRESS,
                                       M5_CMD_QUERY_NIC_VPORT_CONTEXT};
    begin(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
    uint8_t *in = add_in(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, NULL, m5_mbox_in_bytes);
    put(in, m5_mbox_in_opcode, opcodes[take(input, 1) % 3]);
    put(in, m5_mbox_in_op_mod, take(input, 1) % 0x42);
    add_out(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, m5_query_hca_cap_out_bytes);
}

/* ---- Right calls of each kind ---- */

static void get_context(struct input *input)
{
    struct mlx5_ib_alloc_ucontext_req_v2 request = {
        .flags = MLX5_IB_ALLOC_UCTX_DEVX,
        .max_cqe_version = 1,
        .lib_caps = MLX5_LIB_CAP_DYN_UAR,
    };
    (void)input;
    begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
    add_in(UVERBS_ATTR_UHW_IN, &request, sizeof(request));
    add_out(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4);
    add_out(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8);
    add_out(UVERBS_ATTR_UHW_OUT, sizeof(struct mlx5_ib_alloc_ucontext_resp));
}

static void alloc_pd(struct input *input)
{
    struct ib_uverbs_alloc_pd request = {0};
    (void)input;
    begin_write(IB_USER_VERBS_CMD_ALLOC_PD, &request, sizeof(request),
                sizeof(struct ib_uverbs_alloc_pd_resp));
    add_out(UVERBS_ATTR_UHW_OUT, sizeof(struct mlx5_ib_alloc_pd_resp));
}

static void reg_mr(struct input *input)
{
    struct ib_uverbs_reg_mr request = {
        .start = place(input, 1),
        .length = take(input, 3),
        .pd_handle = (uint32_t)any(PD, input),
        .access_flags = (uint32_t)take(input, 1),
    };
    request.hca_va = request.start;
    begin_write(IB_USER_VERBS_CMD_REG_MR, &request, sizeof(request),
                sizeof(struct ib_uverbs_reg_mr_resp));
}

static void dereg_mr(struct input *input)
{
    struct ib_uverbs_dereg_mr request = {.mr_handle = (uint32_t)any(MR, input)};
    begin_write(IB_USER_VERBS_CMD_DEREG_MR, &request, sizeof(request), 0);
}

static void dealloc_pd(struct input *input)
{
    struct ib_uverbs_dealloc_pd request = {.pd_handle = (uint32_t)any(PD, input)};
    begin_write(IB_USER_VERBS_CMD_DEALLOC_PD, &request, sizeof(request), 0);
}

static void create_channel(struct input *input)
{
    struct ib_uverbs_create_comp_channel request = {0};
    (void)input;
    begin_write(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &request, sizeof(request),
                sizeof(struct ib_uverbs_create_comp_channel_resp));
}

static void alloc_async(struct input *input)
{
    (void)input;
    begin(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
    add_number(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
}

static void create_cq(struct input *input)
{
    struct mlx5_ib_create_cq request = {
        .buf_addr = place(input, 64),
        .db_addr = place(input, 8),
        .cqe_size = 64,
        .flags = 2, /* a UAR page index follows */
        .uar_page_index = (uint16_t)any(UAR, input),
    };
    uint32_t with = (uint32_t)take(input, 1);
    begin(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
    add_number(UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
    add_word(UVERBS_ATTR_CREATE_CQ_CQE, 1 + take(input, 1), 4);
    add_word(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 0x1234567890, 8);
    if (with & 1)
        add_number(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, any(CHANNEL, input));
    if (with & 2)
        add_number(UVERBS_ATTR_CREATE_CQ_EVENT_FD, any(ASYNC, input));
    add_word(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 0, 4);
    add_word(UVERBS_ATTR_CREATE_CQ_FLAGS, take(input, 1) & 2, 4);
    add_in(UVERBS_ATTR_UHW_IN, &request, sizeof(request));
    call.attrs[call.count - 1].fixed = 16;
    add_out(UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4);
    add_out(UVERBS_ATTR_UHW_OUT, sizeof(struct mlx5_ib_create_cq_resp));
}

static void create_qp(struct input *input)
{
    struct ib_uverbs_qp_cap cap = {16, 16, 2, 2, 64};
    struct mlx5_ib_create_qp request = {
        .buf_addr = place(input, 64),
        .db_addr = place(input, 8),
        .sq_wqe_count = 16,
        .rq_wqe_count = 16,
        .rq_wqe_shift = 6,
        .flags = MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_UAR_PAGE_INDEX,
        .uidx = 0x123456,
        .bfreg_index = (uint32_t)any(UAR, input),
    };
    begin(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
    add_number(UVERBS_ATTR_CREATE_QP_HANDLE, 0);
    add_number(UVERBS_ATTR_CREATE_QP_PD_HANDLE, any(PD, input));
    add_number(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, any(CQ, input));
    add_number(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, any(CQ, input));
    add_word(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 0x1234567890, 8);
    add_in(UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
    add_word(UVERBS_ATTR_CREATE_QP_TYPE, IB_UVERBS_QPT_RC, 8);
    add_in(UVERBS_ATTR_UHW_IN, &request, sizeof(request));
    call.attrs[call.count - 1].fixed = 16;
    add_out(UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(cap));
    add_out(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4);
    add_out(UVERBS_ATTR_UHW_OUT, sizeof(struct mlx5_ib_create_qp_resp));
}

static void modify_qp(struct input *input)
{
    static const uint32_t masks[] = {0x1, 0x39, 0x129181, 0x12e01, 0x1};
    static const uint8_t states[] = {0, 1, 2, 3, 6};
    uint32_t step = (uint32_t)take(input, 1) % 5;
    struct ib_uverbs_ex_modify_qp request = {
        .base = {.dest = {.dgid = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
                          .is_global = 1,
                          .sgid_index = 3,
                          .port_num = 1},
                 .qp_handle = (uint32_t)any(QP, input),
                 .attr_mask = masks[step],
                 .dest_qp_num = (uint32_t)any(QPN, input),
                 .path_mtu = 3,
                 .qp_state = states[step],
                 .port_num = 1,
                 .qp_access_flags = 0xf}};
    bool extended = take(input, 1) & 1;
    begin_write(extended ? IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP
                         : IB_USER_VERBS_CMD_MODIFY_QP,
                &request, extended ? sizeof(request) : sizeof(request.base), 0);
    if (extended)
        add_out(UVERBS_ATTR_CORE_OUT, sizeof(struct ib_uverbs_ex_modify_qp_resp));
}

static void query_qp(struct input *input)
{
    struct ib_uverbs_query_qp request = {.qp_handle = (uint32_t)any(QP, input),
                                         .attr_mask = 0x1fffff};
    begin_write(IB_USER_VERBS_CMD_QUERY_QP, &request, sizeof(request),
                sizeof(struct ib_uverbs_query_qp_resp));
}

static void modify_cq(struct input *input)
{
    struct ib_uverbs_ex_modify_cq request = {.cq_handle = (uint32_t)any(CQ, input),
                                             .attr_mask = 1,
                                             .attr = {(uint16_t)take(input, 2), 0}};
    begin_write(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_CQ, &request,
                sizeof(request), 0);
}

static void query_device(struct input *input)
{
    struct ib_uverbs_ex_query_device request = {0};
    bool extended = take(input, 1) & 1;
    begin_write(extended ? IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE
                         : IB_USER_VERBS_CMD_QUERY_DEVICE,
                &request, sizeof(request),
                extended ? sizeof(struct ib_uverbs_ex_query_device_resp)
                         : sizeof(struct ib_uverbs_query_device_resp));
    if (extended)
        add_out(UVERBS_ATTR_UHW_OUT, sizeof(struct mlx5_ib_query_device_resp));
}

static void query_port(struct input *input)
{
    struct ib_uverbs_query_port request = {.port_num = 1};
    switch (take(input, 1) % 3) {
    case 0:
        begin_write(IB_USER_VERBS_CMD_QUERY_PORT, &request, sizeof(request),
                    sizeof(struct ib_uverbs_query_port_resp));
        break;
    case 1:
        begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
        add_word(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1, 1);
        add_out(UVERBS_ATTR_QUERY_PORT_RESP, sizeof(struct ib_uverbs_query_port_resp_ex));
        break;
    default:
        begin(UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT);
        add_word(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, 1, 4);
        add_out(MLX5_IB_ATTR_QUERY_PORT, sizeof(struct mlx5_ib_uapi_query_port));
        break;
    }
}

static void query_gids(struct input *input)
{
    if (take(input, 1) & 1) {
        begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE);
        add_word(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, sizeof(struct ib_uverbs_gid_entry), 8);
        add_word(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0, 4);
        add_out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES,
                (uint32_t)take(input, 1) % 8 * (uint32_t)sizeof(struct ib_uverbs_gid_entry));
        add_out(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8);
        return;
    }
    begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY);
    add_word(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 1, 4);
    add_word(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, take(input, 1), 4);
    add_word(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0, 4);
    add_out(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, sizeof(struct ib_uverbs_gid_entry));
}

static void umem_reg(struct input *input)
{
    begin(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
    add_number(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0);
    add_word(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, place(input, 64), 8);
    call.attrs[1].fixed = 8;
    add_word(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8192 + take(input, 2), 8);
    add_word(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 1, 4);
    add_out(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4);
}

static void uar_alloc(struct input *input)
{
    begin(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
    add_number(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0);
    add_word(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, take(input, 1) & 1, 8);
    add_out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8);
    add_out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4);
    add_out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4);
}

static void query_eqn(struct input *input)
{
    begin(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN);
    add_word(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, take(input, 1) & 1, 4);
    add_out(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, 4);
}

static void destroy(struct input *input)
{
    static const struct {
        uint16_t object, method, handle, answer;
        uint32_t answer_bytes;
        enum object newest;
    } ways[] = {
        {UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, UVERBS_ATTR_DESTROY_PD_HANDLE, 0, 0, PD},
        {UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, UVERBS_ATTR_DESTROY_MR_HANDLE, 0, 0, MR},
        {UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, UVERBS_ATTR_DESTROY_CQ_HANDLE,
         UVERBS_ATTR_DESTROY_CQ_RESP, sizeof(struct ib_uverbs_destroy_cq_resp), CQ},
        {UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, UVERBS_ATTR_DESTROY_QP_HANDLE,
         UVERBS_ATTR_DESTROY_QP_RESP, sizeof(struct ib_uverbs_destroy_qp_resp), QP},
        {MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG,
         MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, 0, 0, UMEM_HANDLE},
        {MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, 0,
         0, UAR_HANDLE},
        {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
         MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, 0, 0, DEVX_CQ},
        {MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
         MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, 0, 0, DEVX_QP},
    };
    uint32_t way = (uint32_t)take(input, 1) % (sizeof(ways) / sizeof(ways[0]));
    begin(ways[way].object, ways[way].method);
    add_number(ways[way].handle, any(ways[way].newest, input));
    if (ways[way].answer_bytes)
        add_out(ways[way].answer, ways[way].answer_bytes);
}

/* An object and a method out of the blue, without attributes that could be taken for pointers. */
static void unknown(struct input *input)
{
    begin((uint16_t)(take(input, 1) | (take(input, 1) & 1 ? (1u << UVERBS_ID_NS_SHIFT) : 0u)),
          (uint16_t)(take(input, 1) | (take(input, 1) & 1 ? (1u << UVERBS_ID_NS_SHIFT) : 0u)));
}

static void (*const builders[])(struct input *) = {
    get_context, alloc_pd,  reg_mr,      dereg_mr,  dealloc_pd, create_channel, alloc_async,
    create_cq,   create_qp, modify_qp,   query_qp,  modify_cq,  query_device,   query_port,
    query_gids,  umem_reg,  uar_alloc,   query_eqn, destroy,    prm_create_cq,  prm_create_qp,
    prm_modify,  prm_query, prm_general, unknown,
};

#endif
