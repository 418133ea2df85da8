/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: every row of m5_prm_format.h and every code of m5_prm_codes.h is what the mlx5 kernel
 * driver uses. The oracle is Linux's include/linux/mlx5/mlx5_ifc.h, as Debian's
 * linux-headers-*-common installs it: there a structure is an array of bytes, one for each bit, so
 * offsetof and sizeof are bits. The list of rows is the format header's own, so a row cannot be
 * left out here.
 *
 * Skipped (77) where that header is not installed.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <doorbell/impl/m5_prm_format.h>

#if __has_include(<mlx5_ifc.h>)

typedef uint8_t u8;
#define BIT(n)     (1u << (n))
#define BIT_ULL(n) (1ull << (n))
#include <mlx5_ifc.h>

/* The part that all commands share, from one of them. */
#define mlx5_ifc_mbox_in_bits  mlx5_ifc_destroy_cq_in_bits
#define mlx5_ifc_mbox_out_bits mlx5_ifc_create_cq_out_bits

/* A place in bits; `theirs` is UNKNOWN where the oracle has no such field. */
struct row {
    const char *structure, *field;
    size_t bit, width;
    size_t their_bit, their_width;
};

#define UNKNOWN        SIZE_MAX
#define THEIRS(name)   struct mlx5_ifc_##name##_bits
#define SIZEOF(s, f)   sizeof(((THEIRS(s) *)0)->f)
#define OFFSETOF(s, f) offsetof(THEIRS(s), f)

#define SKIP(...)
#define SIZE_ROW(s, bytes) {#s, "", 0, (size_t)m5_##s##_bytes * 8, 0, sizeof(THEIRS(s))},
#define PART_ROW(s, part, byte)                                                                    \
    {#s, #part, (size_t)m5_##s##_##part * 8, 0, OFFSETOF(s, part), SIZEOF(s, part)},
#define FIELD_ROW(s, f, byte, high, low)                                                           \
    {#s, #f, M5_PRM_BIT(m5_##s##_##f), M5_PRM_WIDTH(m5_##s##_##f), OFFSETOF(s, f), SIZEOF(s, f)},
#define NEWER_ROW(s, f, byte, high, low)                                                           \
    {#s, #f, M5_PRM_BIT(m5_##s##_##f), M5_PRM_WIDTH(m5_##s##_##f), UNKNOWN, UNKNOWN},

static const struct row sizes[] = {M5_PRM_LAYOUT(SIZE_ROW, SKIP, SKIP, SKIP)};
static const struct row parts[] = {M5_PRM_LAYOUT(SKIP, PART_ROW, SKIP, SKIP)};
static const struct row fields[] = {M5_PRM_LAYOUT(SKIP, SKIP, FIELD_ROW, NEWER_ROW)};

/* The fields that the oracle calls reserved, as rdma-core's tests/mlx5_prm_structs.py adds them up.
 */
static const struct row newer[] = {
    {"create_cq_in", "cq_umem_offset", 0, 0, 0x280, 64},
    {"create_cq_in", "cq_umem_id", 0, 0, 0x2c0, 32},
    {"cqc", "dbr_umem_id", 0, 0, 0x20, 32},
    {"create_qp_in", "wq_umem_offset", 0, 0, 0x800, 64},
    {"create_qp_in", "wq_umem_id", 0, 0, 0x840, 32},
    {"qpc", "send_dbr_mode", 0, 0, 0x80, 2},
    {"qpc", "dbr_umem_id", 0, 0, 0x720, 32},
    {"cmd_hca_cap_2", "send_dbr_mode_no_dbr_int", 0, 0, 0x2e0, 1},
    {"cmd_hca_cap_2", "send_dbr_mode_no_dbr_ext", 0, 0, 0x2e1, 1},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static unsigned failures;

static void fail(const struct row *row, const char *what, size_t ours, size_t theirs)
{
    fprintf(stderr, "%s.%s: %s is 0x%zx bits, must be 0x%zx\n", row->structure, row->field, what,
            ours, theirs);
    failures++;
}

static size_t size_of(const char *structure)
{
    for (size_t i = 0; i < COUNT(sizes); i++)
        if (strcmp(sizes[i].structure, structure) == 0)
            return sizes[i].width;
    fprintf(stderr, "%s: has no SIZE row\n", structure);
    failures++;
    return 0;
}

/* What no oracle is needed for: a field lies inside its structure, inside one word, and beside the
 * structure's other fields. */
static void check_alone(size_t index)
{
    const struct row *row = &fields[index];
    size_t word = row->width > 32 ? 32 : 32 - row->bit % 32;

    if (row->bit + row->width > size_of(row->structure))
        fail(row, "end", row->bit + row->width, size_of(row->structure));
    if (row->width <= 32 ? row->width > word : row->bit % 32 != 0)
        fail(row, "width", row->width, word);
    for (size_t i = 0; i < index; i++)
        if (strcmp(fields[i].structure, row->structure) == 0 &&
            fields[i].bit < row->bit + row->width && row->bit < fields[i].bit + fields[i].width)
            fail(row, "place that another field has", row->bit, fields[i].bit);
}

/* The row's place as somebody else states it. */
static struct row with_oracle(struct row row)
{
    for (size_t i = 0; row.their_bit == UNKNOWN && i < COUNT(newer); i++)
        if (strcmp(newer[i].structure, row.structure) == 0 &&
            strcmp(newer[i].field, row.field) == 0) {
            row.their_bit = newer[i].their_bit;
            row.their_width = newer[i].their_width;
        }
    return row; /* one that nobody states has UNKNOWN, which no row of ours can be */
}

static void check_layouts(void)
{
    for (size_t i = 0; i < COUNT(sizes); i++)
        if (sizes[i].width != sizes[i].their_width)
            fail(&sizes[i], "size", sizes[i].width, sizes[i].their_width);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (parts[i].bit != parts[i].their_bit)
            fail(&parts[i], "place", parts[i].bit, parts[i].their_bit);
    for (size_t i = 0; i < COUNT(fields); i++) {
        struct row row = with_oracle(fields[i]);
        check_alone(i);
        if (row.bit != row.their_bit)
            fail(&row, "place", row.bit, row.their_bit);
        if (row.width != row.their_width)
            fail(&row, "width", row.width, row.their_width);
    }
}

/* ---- Commands that share the layout of another ---- */

#define SAME(a, b, f)                                                                              \
    _Static_assert(OFFSETOF(a, f) == OFFSETOF(b, f) && SIZEOF(a, f) == SIZEOF(b, f), #a " " #f)
#define SAME_MOVE(command)                                                                         \
    SAME(command, rst2init_qp_in, opcode);                                                         \
    SAME(command, rst2init_qp_in, op_mod);                                                         \
    SAME(command, rst2init_qp_in, qpn);                                                            \
    SAME(command, rst2init_qp_in, opt_param_mask);                                                 \
    SAME(command, rst2init_qp_in, qpc);                                                            \
    _Static_assert(sizeof(THEIRS(command)) == sizeof(THEIRS(rst2init_qp_in)), #command)
#define SAME_HEAD(command)                                                                         \
    SAME(command, rst2init_qp_in, opcode);                                                         \
    SAME(command, rst2init_qp_in, qpn);                                                            \
    _Static_assert(sizeof(THEIRS(command)) == (size_t)m5_query_qp_in_bytes * 8, #command)

SAME_MOVE(init2init_qp_in);
SAME_MOVE(init2rtr_qp_in);
SAME_MOVE(rtr2rts_qp_in);
SAME_MOVE(rts2rts_qp_in);
SAME_MOVE(sqd2rts_qp_in);
SAME_MOVE(sqerr2rts_qp_in);
SAME_HEAD(qp_2err_in);
SAME_HEAD(qp_2rst_in);
SAME_HEAD(query_qp_in);
SAME_HEAD(destroy_qp_in);
SAME(create_cq_in, query_cq_in, opcode);
SAME(create_cq_in, query_hca_cap_in, opcode);
SAME(create_cq_in, query_hca_cap_in, op_mod);
SAME(create_cq_in, query_roce_address_in, opcode);
SAME(create_cq_in, query_nic_vport_context_in, opcode);
SAME(create_cq_out, query_hca_cap_out, status);
SAME(create_cq_out, query_hca_cap_out, syndrome);
SAME(create_cq_out, query_qp_out, syndrome);
SAME(create_cq_out, rst2init_qp_out, syndrome);
SAME(create_cq_out, query_roce_address_out, syndrome);

/* ---- Codes ---- */

struct code {
    const char *name;
    unsigned ours, theirs;
};

#define CODE(ours, theirs)                                                                         \
    {                                                                                              \
#ours, (unsigned)(ours), (unsigned)(theirs)                                                \
    }

static const struct code codes[] = {
    CODE(M5_CMD_QUERY_HCA_CAP, MLX5_CMD_OP_QUERY_HCA_CAP),
    CODE(M5_CMD_CREATE_CQ, MLX5_CMD_OP_CREATE_CQ),
    CODE(M5_CMD_DESTROY_CQ, MLX5_CMD_OP_DESTROY_CQ),
    CODE(M5_CMD_QUERY_CQ, MLX5_CMD_OP_QUERY_CQ),
    CODE(M5_CMD_MODIFY_CQ, MLX5_CMD_OP_MODIFY_CQ),
    CODE(M5_CMD_CREATE_QP, MLX5_CMD_OP_CREATE_QP),
    CODE(M5_CMD_DESTROY_QP, MLX5_CMD_OP_DESTROY_QP),
    CODE(M5_CMD_RST2INIT_QP, MLX5_CMD_OP_RST2INIT_QP),
    CODE(M5_CMD_INIT2RTR_QP, MLX5_CMD_OP_INIT2RTR_QP),
    CODE(M5_CMD_RTR2RTS_QP, MLX5_CMD_OP_RTR2RTS_QP),
    CODE(M5_CMD_RTS2RTS_QP, MLX5_CMD_OP_RTS2RTS_QP),
    CODE(M5_CMD_SQERR2RTS_QP, MLX5_CMD_OP_SQERR2RTS_QP),
    CODE(M5_CMD_2ERR_QP, MLX5_CMD_OP_2ERR_QP),
    CODE(M5_CMD_2RST_QP, MLX5_CMD_OP_2RST_QP),
    CODE(M5_CMD_QUERY_QP, MLX5_CMD_OP_QUERY_QP),
    CODE(M5_CMD_SQD_RTS_QP, MLX5_CMD_OP_SQD_RTS_QP),
    CODE(M5_CMD_INIT2INIT_QP, MLX5_CMD_OP_INIT2INIT_QP),
    CODE(M5_CMD_QUERY_NIC_VPORT_CONTEXT, MLX5_CMD_OP_QUERY_NIC_VPORT_CONTEXT),
    CODE(M5_CMD_QUERY_ROCE_ADDRESS, MLX5_CMD_OP_QUERY_ROCE_ADDRESS),
    CODE(M5_CAP_GENERAL, MLX5_SET_HCA_CAP_OP_MOD_GENERAL_DEVICE),
    CODE(M5_CAP_ODP, MLX5_SET_HCA_CAP_OP_MOD_ODP),
    CODE(M5_CAP_ATOMIC, MLX5_SET_HCA_CAP_OP_MOD_ATOMIC),
    CODE(M5_CAP_ROCE, MLX5_SET_HCA_CAP_OP_MOD_ROCE),
    CODE(M5_PORT_INFINIBAND, MLX5_CAP_PORT_TYPE_IB),
    CODE(M5_PORT_ETHERNET, MLX5_CAP_PORT_TYPE_ETH),
    CODE(M5_CQC_STATUS_OK, MLX5_CQC_STATUS_OK),
    CODE(M5_CQC_STATUS_OVERFLOW, MLX5_CQC_STATUS_CQ_OVERFLOW),
    CODE(M5_CQC_ST_ARMED_SOLICITED, MLX5_CQC_ST_SOLICITED_NOTIFICATION_REQUEST_ARMED),
    CODE(M5_CQC_ST_ARMED, MLX5_CQC_ST_NOTIFICATION_REQUEST_ARMED),
    CODE(M5_CQC_ST_FIRED, MLX5_CQC_ST_FIRED),
    CODE(M5_CQC_CQE_64, MLX5_CQC_CQE_SZ_64_BYTES),
    CODE(M5_CQC_CQE_128, MLX5_CQC_CQE_SZ_128_BYTES),
    CODE(M5_MODIFY_CQ_FIELDS, MLX5_MODIFY_CQ_IN_OP_MOD_MODIFY_CQ),
    CODE(M5_MODIFY_CQ_RESIZE, MLX5_MODIFY_CQ_IN_OP_MOD_RESIZE_CQ),
    CODE(M5_MODIFY_CQ_PERIOD, MLX5_MODIFY_FIELD_SELECT_MODIFY_FIELD_SELECT_CQ_PERIOD),
    CODE(M5_MODIFY_CQ_MAX_COUNT, MLX5_MODIFY_FIELD_SELECT_MODIFY_FIELD_SELECT_CQ_MAX_COUNT),
    CODE(M5_MODIFY_CQ_OI, MLX5_MODIFY_FIELD_SELECT_MODIFY_FIELD_SELECT_OI),
    CODE(M5_MODIFY_CQ_EQN, MLX5_MODIFY_FIELD_SELECT_MODIFY_FIELD_SELECT_C_EQN),
    CODE(M5_QPC_RST, MLX5_QPC_STATE_RST),
    CODE(M5_QPC_INIT, MLX5_QPC_STATE_INIT),
    CODE(M5_QPC_RTR, MLX5_QPC_STATE_RTR),
    CODE(M5_QPC_RTS, MLX5_QPC_STATE_RTS),
    CODE(M5_QPC_SQER, MLX5_QPC_STATE_SQER),
    CODE(M5_QPC_ERR, MLX5_QPC_STATE_ERR),
    CODE(M5_QPC_SQ_DRAINING, MLX5_QPC_STATE_SQD),
    CODE(M5_QPC_ST_RC, MLX5_QPC_ST_RC),
    CODE(M5_QPC_ST_UC, MLX5_QPC_ST_UC),
    CODE(M5_QPC_ST_UD, MLX5_QPC_ST_UD),
    CODE(M5_QPC_ST_DCI, MLX5_QPC_ST_DCI),
    CODE(M5_QPC_PM_MIGRATED, MLX5_QPC_PM_STATE_MIGRATED),
    CODE(M5_QPC_ATOMIC_IB_SPEC, MLX5_QPC_ATOMIC_MODE_IB_SPEC),
    CODE(M5_QPC_ATOMIC_ONLY_8, MLX5_QPC_ATOMIC_MODE_ONLY_8B),
    CODE(M5_QPC_ATOMIC_UP_TO_8, MLX5_QPC_ATOMIC_MODE_UP_TO_8B),
    CODE(M5_QPC_MTU_4096, MLX5_QPC_MTU_4K_BYTES),
};

int main(void)
{
    check_layouts();
    for (size_t i = 0; i < COUNT(codes); i++)
        if (codes[i].ours != codes[i].theirs) {
            fprintf(stderr, "%s is 0x%x, must be 0x%x\n", codes[i].name, codes[i].ours,
                    codes[i].theirs);
            failures++;
        }
    printf("%zu structures, %zu parts, %zu fields (%zu of them newer than Linux 6.1), %zu codes: "
           "%u differ\n",
           COUNT(sizes), COUNT(parts), COUNT(fields), COUNT(newer), COUNT(codes), failures);
    return failures != 0;
}

#else

int main(void)
{
    puts("skipped: no mlx5_ifc.h; on Debian, apt-get install linux-headers-amd64");
    return 77;
}

#endif
