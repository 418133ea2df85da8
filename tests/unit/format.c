/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: m5_format.h says what rdma-core's mlx5dv.h says, field by field; and the WQEs that wqe.h
 * builds are, byte for byte, what mlx5dv's own helpers make of the same request, also where the
 * index leaves its 16 bits.
 */
#include <doorbell/device.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"

#define SAME_SIZE(ours, theirs)                                                                    \
    CHECK(sizeof(struct ours) == sizeof(struct theirs), #ours ": %zu bytes, %zu in " #theirs,      \
          sizeof(struct ours), sizeof(struct theirs))

#define SAME_PLACE(ours, field, theirs, other)                                                     \
    CHECK(offsetof(struct ours, field) == offsetof(struct theirs, other),                          \
          #ours "." #field " at %zu, " #theirs "." #other " at %zu", offsetof(struct ours, field), \
          offsetof(struct theirs, other))

#define SAME_VALUE(ours, theirs)                                                                   \
    CHECK((unsigned)(ours) == (unsigned)(theirs), #ours " is %#x, " #theirs " %#x",                \
          (unsigned)(ours), (unsigned)(theirs))

static void segments(void)
{
    SAME_SIZE(m5_ctrl_seg, mlx5_wqe_ctrl_seg);
    SAME_PLACE(m5_ctrl_seg, opmod_idx_opcode, mlx5_wqe_ctrl_seg, opmod_idx_opcode);
    SAME_PLACE(m5_ctrl_seg, qpn_ds, mlx5_wqe_ctrl_seg, qpn_ds);
    SAME_PLACE(m5_ctrl_seg, signature, mlx5_wqe_ctrl_seg, signature);
    SAME_PLACE(m5_ctrl_seg, flags, mlx5_wqe_ctrl_seg, fm_ce_se);
    SAME_PLACE(m5_ctrl_seg, imm, mlx5_wqe_ctrl_seg, imm);
    SAME_SIZE(m5_raddr_seg, mlx5_wqe_raddr_seg);
    SAME_PLACE(m5_raddr_seg, raddr, mlx5_wqe_raddr_seg, raddr);
    SAME_PLACE(m5_raddr_seg, rkey, mlx5_wqe_raddr_seg, rkey);
    SAME_SIZE(m5_data_seg, mlx5_wqe_data_seg);
    SAME_PLACE(m5_data_seg, byte_count, mlx5_wqe_data_seg, byte_count);
    SAME_PLACE(m5_data_seg, lkey, mlx5_wqe_data_seg, lkey);
    SAME_PLACE(m5_data_seg, addr, mlx5_wqe_data_seg, addr);
    SAME_SIZE(m5_inline_seg, mlx5_wqe_inl_data_seg);
    SAME_PLACE(m5_inline_seg, byte_count, mlx5_wqe_inl_data_seg, byte_count);
    SAME_SIZE(m5_atomic_seg, mlx5_wqe_atomic_seg);
    SAME_PLACE(m5_atomic_seg, swap_add, mlx5_wqe_atomic_seg, swap_add);
    SAME_PLACE(m5_atomic_seg, compare, mlx5_wqe_atomic_seg, compare);
    SAME_SIZE(m5_av, mlx5_wqe_av);
    SAME_PLACE(m5_av, dc_key, mlx5_wqe_av, key.dc_key);
    SAME_PLACE(m5_av, dqp_dct, mlx5_wqe_av, dqp_dct);
    SAME_PLACE(m5_av, stat_rate_sl, mlx5_wqe_av, stat_rate_sl);
    SAME_PLACE(m5_av, fl_mlid, mlx5_wqe_av, fl_mlid);
    SAME_PLACE(m5_av, rlid, mlx5_wqe_av, rlid);
    SAME_PLACE(m5_av, rmac, mlx5_wqe_av, rmac);
    SAME_PLACE(m5_av, tclass, mlx5_wqe_av, tclass);
    SAME_PLACE(m5_av, hop_limit, mlx5_wqe_av, hop_limit);
    SAME_PLACE(m5_av, grh_gid_fl, mlx5_wqe_av, grh_gid_fl);
    SAME_PLACE(m5_av, rgid, mlx5_wqe_av, rgid);
}

static void completions(void)
{
    SAME_SIZE(m5_cqe, mlx5_cqe64);
    SAME_PLACE(m5_cqe, srqn_uidx, mlx5_cqe64, srqn_uidx);
    SAME_PLACE(m5_cqe, imm, mlx5_cqe64, imm_inval_pkey);
    SAME_PLACE(m5_cqe, byte_count, mlx5_cqe64, byte_cnt);
    SAME_PLACE(m5_cqe, timestamp, mlx5_cqe64, timestamp);
    SAME_PLACE(m5_cqe, opcode_qpn, mlx5_cqe64, sop_drop_qpn);
    SAME_PLACE(m5_cqe, wqe_counter, mlx5_cqe64, wqe_counter);
    SAME_PLACE(m5_cqe, signature, mlx5_cqe64, signature);
    SAME_PLACE(m5_cqe, op_own, mlx5_cqe64, op_own);
    SAME_SIZE(m5_error_cqe, mlx5_err_cqe);
    SAME_PLACE(m5_error_cqe, vendor_syndrome, mlx5_err_cqe, vendor_err_synd);
    SAME_PLACE(m5_error_cqe, syndrome, mlx5_err_cqe, syndrome);
    SAME_PLACE(m5_error_cqe, opcode_qpn, mlx5_err_cqe, s_wqe_opcode_qpn);
    SAME_PLACE(m5_error_cqe, wqe_counter, mlx5_err_cqe, wqe_counter);
    SAME_PLACE(m5_error_cqe, op_own, mlx5_err_cqe, op_own);
    CHECK(offsetof(struct m5_qp_record, receive) == MLX5_RCV_DBR * sizeof(uint32_t),
          "receive half");
    CHECK(offsetof(struct m5_qp_record, send) == MLX5_SND_DBR * sizeof(uint32_t), "send half");
}

static void values(void)
{
    SAME_VALUE(M5_OP_NOP, MLX5_OPCODE_NOP);
    SAME_VALUE(M5_OP_SEND_INVAL, MLX5_OPCODE_SEND_INVAL);
    SAME_VALUE(M5_OP_WRITE, MLX5_OPCODE_RDMA_WRITE);
    SAME_VALUE(M5_OP_WRITE_IMM, MLX5_OPCODE_RDMA_WRITE_IMM);
    SAME_VALUE(M5_OP_SEND, MLX5_OPCODE_SEND);
    SAME_VALUE(M5_OP_SEND_IMM, MLX5_OPCODE_SEND_IMM);
    SAME_VALUE(M5_OP_READ, MLX5_OPCODE_RDMA_READ);
    SAME_VALUE(M5_OP_ATOMIC_CS, MLX5_OPCODE_ATOMIC_CS);
    SAME_VALUE(M5_OP_ATOMIC_FA, MLX5_OPCODE_ATOMIC_FA);
    SAME_VALUE(M5_OP_ATOMIC_MASKED_CS, MLX5_OPCODE_ATOMIC_MASKED_CS);
    SAME_VALUE(M5_OP_ATOMIC_MASKED_FA, MLX5_OPCODE_ATOMIC_MASKED_FA);
    SAME_VALUE(M5_CTRL_CQ_UPDATE, MLX5_WQE_CTRL_CQ_UPDATE);
    SAME_VALUE(M5_CTRL_SOLICITED, MLX5_WQE_CTRL_SOLICITED);
    SAME_VALUE(M5_CTRL_FENCE, MLX5_WQE_CTRL_FENCE);
    SAME_VALUE(M5_CTRL_INITIATOR_SMALL_FENCE, MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE);
    SAME_VALUE(M5_INLINE_FLAG, MLX5_INLINE_SEG);
    SAME_VALUE(M5_LKEY_END, MLX5_INVALID_LKEY);
    SAME_VALUE(M5_BLOCK_BYTES, MLX5_SEND_WQE_BB);
    SAME_VALUE(M5_CQE_REQUESTER, MLX5_CQE_REQ);
    SAME_VALUE(M5_CQE_RESPONDER_WRITE_IMM, MLX5_CQE_RESP_WR_IMM);
    SAME_VALUE(M5_CQE_RESPONDER_SEND, MLX5_CQE_RESP_SEND);
    SAME_VALUE(M5_CQE_RESPONDER_SEND_IMM, MLX5_CQE_RESP_SEND_IMM);
    SAME_VALUE(M5_CQE_RESPONDER_SEND_INVAL, MLX5_CQE_RESP_SEND_INV);
    SAME_VALUE(M5_CQE_REQUESTER_ERROR, MLX5_CQE_REQ_ERR);
    SAME_VALUE(M5_CQE_RESPONDER_ERROR, MLX5_CQE_RESP_ERR);
    SAME_VALUE(M5_CQE_INVALID, MLX5_CQE_INVALID);
    SAME_VALUE(M5_SYN_LOCAL_LENGTH, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    SAME_VALUE(M5_SYN_LOCAL_QP_OP, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    SAME_VALUE(M5_SYN_LOCAL_PROTECTION, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
    SAME_VALUE(M5_SYN_FLUSHED, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
    SAME_VALUE(M5_SYN_MW_BIND, MLX5_CQE_SYNDROME_MW_BIND_ERR);
    SAME_VALUE(M5_SYN_BAD_RESPONSE, MLX5_CQE_SYNDROME_BAD_RESP_ERR);
    SAME_VALUE(M5_SYN_LOCAL_ACCESS, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR);
    SAME_VALUE(M5_SYN_REMOTE_INVALID_REQUEST, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
    SAME_VALUE(M5_SYN_REMOTE_ACCESS, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    SAME_VALUE(M5_SYN_REMOTE_OPERATION, MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
    SAME_VALUE(M5_SYN_TRANSPORT_RETRY_EXCEEDED, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
    SAME_VALUE(M5_SYN_RNR_RETRY_EXCEEDED, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
    SAME_VALUE(M5_SYN_REMOTE_ABORTED, MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR);
}

/* ---- Bytes ---- */

enum { QPN = 0x123456, DEPTH = 4 };

static _Alignas(64) uint8_t ring[DEPTH * M5_BLOCK_BYTES];

static struct db_qp queue(void)
{
    struct db_qp qp;
    memset(&qp, 0, sizeof(qp));
    qp.sq = ring;
    qp.depth = DEPTH;
    qp.qpn = QPN;
    return qp;
}

static const uint64_t raddr = 0x1122334455667788, laddr = 0x99aabbccddeeff00;
static const uint32_t rkey = 0xa1b2c3d4, lkey = 0x01020304, bytes = 0x1c00;

/* What mlx5dv makes of a write of one pointer. */
static void by_mlx5dv(uint8_t *wqe, uint64_t index, uint8_t opcode, uint32_t imm)
{
    struct mlx5_wqe_ctrl_seg *ctrl = (struct mlx5_wqe_ctrl_seg *)(void *)wqe;
    struct mlx5_wqe_raddr_seg *to = (struct mlx5_wqe_raddr_seg *)(void *)(wqe + 16);
    memset(wqe, 0, 48); /* it leaves two bytes as they were */
    mlx5dv_set_ctrl_seg(ctrl, (uint16_t)index, opcode, 0, QPN, MLX5_WQE_CTRL_CQ_UPDATE, 3, 0,
                        htobe32(imm));
    to->raddr = htobe64(raddr);
    to->rkey = htobe32(rkey);
    to->reserved = 0;
    mlx5dv_set_data_seg((struct mlx5_wqe_data_seg *)(void *)(wqe + 32), bytes, lkey, laddr);
}

static void compare(const uint8_t *theirs, size_t n, uint64_t index, const char *what)
{
    const uint8_t *ours = ring + index % DEPTH * M5_BLOCK_BYTES;
    for (size_t i = 0; i < n; i++)
        CHECK(ours[i] == theirs[i], "%s at index %#llx: byte %zu is %#x, %#x expected", what,
              (unsigned long long)index, i, ours[i], theirs[i]);
}

static void built_bytes(uint64_t index)
{
    struct db_qp qp = queue();
    _Alignas(16) uint8_t wqe[M5_BLOCK_BYTES];

    by_mlx5dv(wqe, index, MLX5_OPCODE_RDMA_WRITE, 0);
    db_build_write(&qp, index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes);
    compare(wqe, 48, index, "write");
    by_mlx5dv(wqe, index, MLX5_OPCODE_RDMA_READ, 0);
    db_build_read(&qp, index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes);
    compare(wqe, 48, index, "read");
    by_mlx5dv(wqe, index, MLX5_OPCODE_RDMA_WRITE_IMM, 0xcafe1234);
    db_build_write_imm(&qp, index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes, 0xcafe1234);
    compare(wqe, 48, index, "write with immediate");

    /* The doorbell is the first 8 bytes of a control segment of that index. */
    struct mlx5_wqe_ctrl_seg ctrl;
    mlx5dv_set_ctrl_seg(&ctrl, (uint16_t)index, 0, 0, QPN, 0, 0, 0, 0);
    uint64_t word = db_ctrl_word(QPN, index, 0, 0);
    CHECK(memcmp(&word, &ctrl, sizeof(word)) == 0, "doorbell at index %#llx",
          (unsigned long long)index);
}

int main(void)
{
    static const uint64_t indices[] = {0, 1, 255, 65535, 65536, 65537, 131071, 1ull << 40};
    segments();
    completions();
    values();
    for (size_t i = 0; i < sizeof(indices) / sizeof(indices[0]); i++)
        built_bytes(indices[i]);
    return 0;
}
