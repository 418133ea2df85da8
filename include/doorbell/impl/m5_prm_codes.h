/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers that PRM commands carry: opcodes, statuses, capability pages and the values of the
 * fields laid out in m5_prm_format.h, which includes this file.
 *
 * Follows the ConnectX programmer's reference manual (PRM), chapters "Command reference" and
 * "Context structures"; tests/unit/prm_layout.c compares them with Linux's
 * include/linux/mlx5/mlx5_ifc.h.
 */
#ifndef DOORBELL_IMPL_M5_PRM_CODES_H
#define DOORBELL_IMPL_M5_PRM_CODES_H

enum m5_prm_opcode {
    M5_CMD_QUERY_HCA_CAP = 0x100,
    M5_CMD_CREATE_CQ = 0x400,
    M5_CMD_DESTROY_CQ = 0x401,
    M5_CMD_QUERY_CQ = 0x402,
    M5_CMD_MODIFY_CQ = 0x403,
    M5_CMD_CREATE_QP = 0x500,
    M5_CMD_DESTROY_QP = 0x501,
    M5_CMD_RST2INIT_QP = 0x502,
    M5_CMD_INIT2RTR_QP = 0x503,
    M5_CMD_RTR2RTS_QP = 0x504,
    M5_CMD_RTS2RTS_QP = 0x505,
    M5_CMD_SQERR2RTS_QP = 0x506,
    M5_CMD_2ERR_QP = 0x507,
    M5_CMD_2RST_QP = 0x50a,
    M5_CMD_QUERY_QP = 0x50b,
    M5_CMD_SQD_RTS_QP = 0x50c,
    M5_CMD_INIT2INIT_QP = 0x50e,
    M5_CMD_QUERY_NIC_VPORT_CONTEXT = 0x754,
    M5_CMD_QUERY_ROCE_ADDRESS = 0x760,
};

enum m5_prm_status {
    M5_STAT_OK = 0x00,
    M5_STAT_INTERNAL = 0x01,
    M5_STAT_BAD_OPERATION = 0x02,
    M5_STAT_BAD_PARAM = 0x03,
    M5_STAT_BAD_SYS_STATE = 0x04,
    M5_STAT_BAD_RES = 0x05, /* no such object */
    M5_STAT_BUSY = 0x06,    /* something still uses it */
    M5_STAT_EXCEED_LIM = 0x08,
    M5_STAT_BAD_RES_STATE = 0x09,
    M5_STAT_BAD_INDEX = 0x0a,
    M5_STAT_NO_RES = 0x0f,
    M5_STAT_BAD_QP_STATE = 0x10,
    M5_STAT_BAD_PKT = 0x30,
    M5_STAT_BAD_SIZE = 0x40,
    M5_STAT_BAD_INPUT_LEN = 0x50,
    M5_STAT_BAD_OUTPUT_LEN = 0x51,
};

/* op_mod of QUERY_HCA_CAP: a page << 1 | 1 for what is in force, 0 for the most there could be. */
enum m5_cap_page {
    M5_CAP_GENERAL = 0x00,
    M5_CAP_ODP = 0x02,
    M5_CAP_ATOMIC = 0x03,
    M5_CAP_ROCE = 0x04,
    M5_CAP_GENERAL_2 = 0x20,
    M5_CAP_PAGES = 0x40, /* page numbers have 6 bits */
};

enum m5_port_type {
    M5_PORT_INFINIBAND = 0,
    M5_PORT_ETHERNET = 1,
};

enum m5_cqc_status {
    M5_CQC_STATUS_OK = 0x0,
    M5_CQC_STATUS_OVERFLOW = 0x9,
};

enum m5_cqc_st {
    M5_CQC_ST_ARMED_SOLICITED = 0x6,
    M5_CQC_ST_ARMED = 0x9,
    M5_CQC_ST_FIRED = 0xa,
};

enum m5_cqc_cqe_sz {
    M5_CQC_CQE_64 = 0,
    M5_CQC_CQE_128 = 1,
};

enum m5_modify_cq_op_mod {
    M5_MODIFY_CQ_FIELDS = 0,
    M5_MODIFY_CQ_RESIZE = 1,
};

enum m5_modify_cq_select {
    M5_MODIFY_CQ_PERIOD = 1u << 0,
    M5_MODIFY_CQ_MAX_COUNT = 1u << 1,
    M5_MODIFY_CQ_OI = 1u << 2,
    M5_MODIFY_CQ_EQN = 1u << 3,
};

enum m5_qpc_state {
    M5_QPC_RST = 0,
    M5_QPC_INIT = 1,
    M5_QPC_RTR = 2,
    M5_QPC_RTS = 3,
    M5_QPC_SQER = 4,
    M5_QPC_SQ_DRAINED = 5,
    M5_QPC_ERR = 6,
    M5_QPC_SQ_DRAINING = 7,
};

enum m5_qpc_st { /* transport service */
                 M5_QPC_ST_RC = 0x0,
                 M5_QPC_ST_UC = 0x1,
                 M5_QPC_ST_UD = 0x2,
                 M5_QPC_ST_DCI = 0x5,
};

enum m5_qpc_pm_state {
    M5_QPC_PM_MIGRATED = 3,
};

enum m5_qpc_rq_type {
    M5_QPC_RQ_REGULAR = 0,
    M5_QPC_RQ_SHARED = 1, /* SRQ, RMP or XRQ */
    M5_QPC_RQ_NONE = 3,
};

enum m5_qpc_atomic_mode {
    M5_QPC_ATOMIC_NONE = 0,
    M5_QPC_ATOMIC_IB_SPEC = 1,
    M5_QPC_ATOMIC_ONLY_8 = 2,
    M5_QPC_ATOMIC_UP_TO_8 = 3,
};

enum m5_qpc_send_dbr_mode {
    M5_QPC_SEND_RECORD = 0,
    M5_QPC_SEND_NO_RECORD = 1,
};

#define M5_QPC_RQ_STRIDE_SHIFT 4 /* a receive WQE has 1 << (log_rq_stride + 4) bytes */
#define M5_QPC_MTU_4096        5

/* opt_param_mask: which fields of the context a transition that does not need them takes. */
enum m5_qp_opt {
    M5_QP_OPT_RRE = 1u << 1,
    M5_QP_OPT_RAE = 1u << 2,
    M5_QP_OPT_RWE = 1u << 3,
    M5_QP_OPT_PKEY_INDEX = 1u << 4,
    M5_QP_OPT_MIN_RNR_NAK = 1u << 6,
    M5_QP_OPT_PRIMARY_PATH = 1u << 7,
    M5_QP_OPT_SRA_MAX = 1u << 8,
    M5_QP_OPT_RRA_MAX = 1u << 9,
    M5_QP_OPT_PM_STATE = 1u << 10,
    M5_QP_OPT_RETRY_COUNT = 1u << 12,
    M5_QP_OPT_RNR_RETRY = 1u << 13,
    M5_QP_OPT_ACK_TIMEOUT = 1u << 14,
    M5_QP_OPT_PORT = 1u << 16,
    M5_QP_OPT_DSCP = 1u << 17,
    M5_QP_OPT_SGID_INDEX = 1u << 23,
};

/* Operations and byte order of atomic_caps. */
enum m5_atomic_operation {
    M5_ATOMIC_COMPARE_SWAP = 1u << 0,
    M5_ATOMIC_FETCH_ADD = 1u << 1,
    M5_ATOMIC_MASKED_COMPARE_SWAP = 1u << 2,
    M5_ATOMIC_MASKED_FETCH_ADD = 1u << 3,
};

enum m5_atomic_endianness {
    M5_ATOMIC_BIG_ENDIAN = 0,
    M5_ATOMIC_HOST_ENDIAN = 1,
};

enum m5_roce_version {
    M5_ROCE_V1 = 0,
    M5_ROCE_V2 = 2,
};

enum m5_roce_l3_type {
    M5_ROCE_L3_IPV4 = 0,
    M5_ROCE_L3_IPV6 = 1,
};

enum m5_roce_l3_cap {
    M5_ROCE_L3_CAP_IPV4 = 1u << 1,
    M5_ROCE_L3_CAP_IPV6 = 1u << 2,
};

#endif
