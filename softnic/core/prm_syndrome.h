/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every reason why the software device refuses a PRM command: the syndrome in the answer, the
 * status beside it, and the line that tells a person. Syndromes are private to a device, on
 * hardware too.
 *
 * Included by the PRM command files and by tests. New rows go to the end, so that numbers stay.
 */
#ifndef SOFTNIC_CORE_PRM_SYNDROME_H
#define SOFTNIC_CORE_PRM_SYNDROME_H

#include <doorbell/impl/m5_prm_codes.h>

/* clang-format off */
#define PRM_SYNDROMES(ROW)                                                                         \
    ROW(OPCODE, BAD_OPERATION, "opcode is not served")                                             \
    ROW(INPUT_LENGTH, BAD_INPUT_LEN, "input is shorter than the command's layout")                 \
    ROW(OUTPUT_LENGTH, BAD_OUTPUT_LEN, "output is shorter than the command's layout")              \
    /* Memory */                                                                                   \
    ROW(RING_UMEM, BAD_PARAM,                                                                      \
        "no umem has the ring's umem id; register one, page lists are not served")                 \
    ROW(RING_BOUNDS, BAD_PARAM, "ring reaches beyond its umem")                                    \
    ROW(RING_ALIGNMENT, BAD_PARAM, "ring does not start on a multiple of 64 bytes")                \
    ROW(RECORD_UMEM, BAD_PARAM,                                                                    \
        "no umem has the doorbell record's umem id; register one, addresses are not served")       \
    ROW(RECORD_BOUNDS, BAD_PARAM, "doorbell record (8 bytes) reaches beyond its umem")             \
    ROW(RECORD_ALIGNMENT, BAD_PARAM, "doorbell record does not start on a multiple of 8 bytes")    \
    ROW(UAR, BAD_RES, "uar_page is not the id of an allocated UAR page")                           \
    ROW(NO_ROOM, NO_RES, "no free object number; destroy some first")                              \
    /* Completion queues */                                                                        \
    ROW(CQN, BAD_RES, "no CQ has that number")                                                     \
    ROW(CQ_BUSY, BUSY, "a QP still completes to the CQ; destroy the QP first")                     \
    ROW(CQ_DEPTH, EXCEED_LIM, "log_cq_size is above log_max_cq_sz")                                \
    ROW(CQE_SIZE, BAD_PARAM, "cqe_sz is neither 0 (64 bytes) nor 1 (128 bytes)")                   \
    ROW(CQ_COMPRESSION, BAD_PARAM, "CQE compression is not served")                                \
    ROW(CQ_APU, BAD_PARAM, "CQs of an APU are not served")                                         \
    ROW(CQ_RESIZE, BAD_OPERATION, "MODIFY_CQ cannot resize; create another CQ")                    \
    ROW(CQ_SELECT, BAD_PARAM, "MODIFY_CQ changes moderation and oi only")                          \
    /* Queue pairs */                                                                              \
    ROW(QPN, BAD_RES, "no QP has that number")                                                     \
    ROW(QP_SERVICE, BAD_PARAM, "st is not RC (0), the only transport service served")              \
    ROW(QP_PD, BAD_RES, "pd is not the number of a protection domain")                             \
    ROW(QP_SEND_CQ, BAD_RES, "cqn_snd is not the number of a CQ")                                  \
    ROW(QP_RECV_CQ, BAD_RES, "cqn_rcv is not the number of a CQ")                                  \
    ROW(QP_RQ_TYPE, BAD_PARAM, "rq_type is neither 0 (own ring) nor 3 (none)")                     \
    ROW(QP_RQ_STRIDE, EXCEED_LIM, "receive WQEs of log_rq_stride are above max_wqe_sz_rq")         \
    ROW(QP_SQ_ALIGNMENT, BAD_PARAM,                                                                \
        "the receive ring is no multiple of 64 bytes, so the send ring behind it is misaligned")   \
    ROW(QP_SIGNATURE, BAD_PARAM, "WQE signatures are not served")                                  \
    ROW(QP_DBR_MODE, BAD_PARAM, "send_dbr_mode is neither 0 (a record) nor 1 (none)")              \
    ROW(QP_REGISTER, BUSY,                                                                         \
        "another QP without a record has the page's doorbell register, which is memory here, so "  \
        "that doorbells would merge; use a UAR page for each")                                     \
    ROW(QP_CROSS_CHANNEL, BAD_PARAM, "cross-channel QPs (cd_master, cd_slave) are not served")     \
    ROW(QP_STATE, BAD_RES_STATE, "the QP is not in the state that the command starts from")        \
    ROW(QP_OPTIONAL, BAD_PARAM,                                                                    \
        "opt_param_mask names a parameter that this transition cannot take")                       \
    ROW(QP_MTU, BAD_PARAM, "mtu is not 1 (256 bytes) to 5 (4096 bytes)")                           \
    ROW(QP_PORT, BAD_INDEX, "vhca_port_num is not 1, the only port")                               \
    ROW(QP_PKEY, BAD_INDEX, "pkey_index is not 0, the only P_Key")                                 \
    ROW(QP_ADDRESS, BAD_INDEX, "src_addr_index is beyond the GID table")                           \
    ROW(QP_RD_ATOMIC, EXCEED_LIM, "log_sra_max or log_rra_max is above what the device can do")    \
    /* Queries */                                                                                  \
    ROW(CAP_PAGE, BAD_PARAM, "op_mod names no capability page")                                    \
    ROW(OTHER_FUNCTION, BAD_PARAM, "other functions and vports are not there to be asked about")   \
    ROW(ROCE_INDEX, BAD_INDEX, "roce_address_index or vhca_port_num is beyond its table")          \
    /* The object's own checks, which those above should leave nothing for. */                     \
    ROW(CORE, INTERNAL, "the device refused what its command checks had passed")
/* clang-format on */

#define PRM_SYNDROME_NUMBER(name, status, text) PRM_SYN_##name,

enum prm_syndrome {
    PRM_SYN_OK = 0,
    PRM_SYN_BASE = 0x50f700, /* marks a syndrome as this device's */
    PRM_SYNDROMES(PRM_SYNDROME_NUMBER) PRM_SYN_END
};

#undef PRM_SYNDROME_NUMBER

#endif
