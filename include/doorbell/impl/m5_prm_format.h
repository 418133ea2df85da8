/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layouts of the PRM commands that create, modify, query and destroy CQs and RC QPs, and of
 * those that tell what a device can do. Facts only: no logic, no accessors.
 *
 * Included by the software device, which decodes these commands (softnic/core), and by the host
 * library, which encodes them (src/); each has accessors of its own, so that they check each other.
 * Follows the ConnectX programmer's reference manual (PRM), chapter "Command reference". Structures
 * and fields are named as in Linux's include/linux/mlx5/mlx5_ifc.h (struct mlx5_ifc_*_bits), with
 * which tests/unit/prm_layout.c compares every row below.
 */
#ifndef DOORBELL_IMPL_M5_PRM_FORMAT_H
#define DOORBELL_IMPL_M5_PRM_FORMAT_H

#include <stdint.h>

#include "m5_prm_codes.h"

/* clang-format off */

/*
 * A structure is a list of rows:
 *   SIZE(structure, bytes)                     the whole structure, without any list at its end
 *   PART(structure, part, byte)                a structure inside, from that byte on
 *   FIELD(structure, field, byte, high, low)   bits high:low of the big-endian word at that byte,
 *                                              as the PRM draws them; a word has 32 bits, but 64
 *                                              (or 128) where high is 63 (or 127)
 *   NEWER(...)                                 a FIELD that Linux 6.1 still calls reserved; its
 *                                              source is tests/mlx5_prm_structs.py of rdma-core
 * A row FIELD(cqc, uar_page, ...) becomes the enumerator m5_cqc_uar_page of enum m5_prm_field; PART
 * and SIZE rows become m5_create_cq_in_cq_context and m5_cqc_bytes, in bytes.
 */

/* ---- Every command (PRM "Command input and output mailbox") ---- */

#define M5_PRM_MAILBOX(SIZE, PART, FIELD, NEWER)                                                   \
    SIZE(mbox_in, 0x10)                                                                            \
    FIELD(mbox_in, opcode, 0x00, 31, 16)  /* enum m5_prm_opcode */                                 \
    FIELD(mbox_in, uid, 0x00, 15, 0)      /* the kernel's, not the program's, to set */            \
    FIELD(mbox_in, op_mod, 0x04, 15, 0)                                                            \
    SIZE(mbox_out, 0x10)                                                                           \
    FIELD(mbox_out, status, 0x00, 31, 24) /* enum m5_prm_status */                                 \
    FIELD(mbox_out, syndrome, 0x04, 31, 0)

/* ---- Completion queues (PRM "Completion queue context", "CREATE_CQ" and neighbours) ---- */

#define M5_PRM_CQC(SIZE, PART, FIELD, NEWER)                                                       \
    SIZE(cqc, 0x40)                                                                                \
    FIELD(cqc, status, 0x00, 31, 28)          /* out; enum m5_cqc_status */                        \
    FIELD(cqc, dbr_umem_valid, 0x00, 25, 25)  /* the kernel sets it for DEVX commands */           \
    FIELD(cqc, apu_cq, 0x00, 24, 24)                                                               \
    FIELD(cqc, cqe_sz, 0x00, 23, 21)          /* enum m5_cqc_cqe_sz */                             \
    FIELD(cqc, cc, 0x00, 20, 20)              /* collapsed: every CQE goes to slot 0 */            \
    FIELD(cqc, scqe_break_moderation_en, 0x00, 18, 18)                                             \
    FIELD(cqc, oi, 0x00, 17, 17)              /* overrun ignore: no consumer check */              \
    FIELD(cqc, cq_period_mode, 0x00, 16, 15)                                                       \
    FIELD(cqc, cqe_comp_en, 0x00, 14, 14)                                                          \
    FIELD(cqc, st, 0x00, 11, 8)               /* enum m5_cqc_st */                                 \
    NEWER(cqc, dbr_umem_id, 0x04, 31, 0)                                                           \
    FIELD(cqc, page_offset, 0x08, 11, 6)                                                           \
    FIELD(cqc, log_cq_size, 0x0c, 28, 24)     /* log2 of the CQEs */                               \
    FIELD(cqc, uar_page, 0x0c, 23, 0)         /* where it is armed */                              \
    FIELD(cqc, cq_period, 0x10, 27, 16)       /* moderation: microseconds */                       \
    FIELD(cqc, cq_max_count, 0x10, 15, 0)     /* moderation: CQEs */                               \
    FIELD(cqc, c_eqn_or_apu_element, 0x14, 31, 0)                                                  \
    FIELD(cqc, log_page_size, 0x18, 28, 24)                                                        \
    FIELD(cqc, last_notified_index, 0x20, 23, 0)                                                   \
    FIELD(cqc, last_solicit_index, 0x24, 23, 0)                                                    \
    FIELD(cqc, consumer_counter, 0x28, 23, 0)                                                      \
    FIELD(cqc, producer_counter, 0x2c, 23, 0) /* out */                                            \
    FIELD(cqc, dbr_addr, 0x38, 63, 0)         /* of the record, in the umem */

#define M5_PRM_CQ_COMMANDS(SIZE, PART, FIELD, NEWER)                                               \
    SIZE(create_cq_in, 0x110)                                                                      \
    PART(create_cq_in, cq_context, 0x10)                                                           \
    NEWER(create_cq_in, cq_umem_offset, 0x50, 63, 0) /* of the ring, in the umem */                \
    NEWER(create_cq_in, cq_umem_id, 0x58, 31, 0)                                                   \
    FIELD(create_cq_in, cq_umem_valid, 0x5c, 31, 31) /* the kernel sets it for DEVX commands */    \
    SIZE(create_cq_out, 0x10)                                                                      \
    FIELD(create_cq_out, cqn, 0x08, 23, 0)                                                         \
    SIZE(modify_cq_in, 0x110)                                                                      \
    FIELD(modify_cq_in, cqn, 0x08, 23, 0)                                                          \
    FIELD(modify_cq_in, modify_field_select_resize_field_select, 0x0c, 31, 0)                      \
    PART(modify_cq_in, cq_context, 0x10)                                                           \
    SIZE(modify_cq_out, 0x10)                                                                      \
    SIZE(query_cq_in, 0x10)                                                                        \
    FIELD(query_cq_in, cqn, 0x08, 23, 0)                                                           \
    SIZE(query_cq_out, 0x110)                                                                      \
    PART(query_cq_out, cq_context, 0x10)                                                           \
    SIZE(destroy_cq_in, 0x10)                                                                      \
    FIELD(destroy_cq_in, cqn, 0x08, 23, 0)

/* ---- Queue pairs (PRM "Queue pair context", "Address path", "CREATE_QP" and neighbours) ---- */

#define M5_PRM_ADS(SIZE, PART, FIELD, NEWER)                                                       \
    SIZE(ads, 0x2c)                                                                                \
    FIELD(ads, fl, 0x00, 31, 31)                                                                   \
    FIELD(ads, pkey_index, 0x00, 15, 0)                                                            \
    FIELD(ads, grh, 0x04, 23, 23)                                                                  \
    FIELD(ads, mlid, 0x04, 22, 16)                                                                 \
    FIELD(ads, rlid, 0x04, 15, 0)                                                                  \
    FIELD(ads, ack_timeout, 0x08, 31, 27)     /* 4.096 us << it; 0 = for ever */                   \
    FIELD(ads, src_addr_index, 0x08, 23, 16)  /* index of the GID */                               \
    FIELD(ads, stat_rate, 0x08, 11, 8)                                                             \
    FIELD(ads, hop_limit, 0x08, 7, 0)                                                              \
    FIELD(ads, tclass, 0x0c, 27, 20)                                                               \
    FIELD(ads, flow_label, 0x0c, 19, 0)                                                            \
    FIELD(ads, rgid_rip, 0x10, 127, 0)                                                             \
    FIELD(ads, ecn, 0x20, 23, 22)                                                                  \
    FIELD(ads, dscp, 0x20, 21, 16)                                                                 \
    FIELD(ads, udp_sport, 0x20, 15, 0)                                                             \
    FIELD(ads, eth_prio, 0x24, 30, 28)                                                             \
    FIELD(ads, sl, 0x24, 27, 24)                                                                   \
    FIELD(ads, vhca_port_num, 0x24, 23, 16)   /* from 1 */                                         \
    FIELD(ads, rmac_47_32, 0x24, 15, 0)                                                            \
    FIELD(ads, rmac_31_0, 0x28, 31, 0)

#define M5_PRM_QPC(SIZE, PART, FIELD, NEWER)                                                       \
    SIZE(qpc, 0xe8)                                                                                \
    FIELD(qpc, state, 0x00, 31, 28)           /* out; enum m5_qpc_state */                         \
    FIELD(qpc, st, 0x00, 23, 16)              /* enum m5_qpc_st */                                 \
    FIELD(qpc, pm_state, 0x00, 12, 11)                                                             \
    FIELD(qpc, wq_signature, 0x04, 31, 31)                                                         \
    FIELD(qpc, pd, 0x04, 23, 0)                                                                    \
    FIELD(qpc, mtu, 0x08, 31, 29)             /* 1 = 256 bytes to 5 = 4096 */                      \
    FIELD(qpc, log_msg_max, 0x08, 28, 24)                                                          \
    FIELD(qpc, log_rq_size, 0x08, 22, 19)     /* log2 of the receive WQEs */                       \
    FIELD(qpc, log_rq_stride, 0x08, 18, 16)   /* log2 of a receive WQE's segments of 16 bytes */   \
    FIELD(qpc, no_sq, 0x08, 15, 15)                                                                \
    FIELD(qpc, log_sq_size, 0x08, 14, 11)     /* log2 of the blocks of 64 bytes */                 \
    FIELD(qpc, ts_format, 0x08, 7, 6)                                                              \
    FIELD(qpc, rlky, 0x08, 4, 4)                                                                   \
    FIELD(qpc, counter_set_id, 0x0c, 31, 24)                                                       \
    FIELD(qpc, uar_page, 0x0c, 23, 0)                                                              \
    NEWER(qpc, send_dbr_mode, 0x10, 31, 30)   /* enum m5_qpc_send_dbr_mode */                      \
    FIELD(qpc, user_index, 0x10, 23, 0)       /* what its CQEs carry (CQE version 1) */            \
    FIELD(qpc, log_page_size, 0x14, 28, 24)                                                        \
    FIELD(qpc, remote_qpn, 0x14, 23, 0)                                                            \
    PART(qpc, primary_address_path, 0x18)                                                          \
    PART(qpc, secondary_address_path, 0x44)                                                        \
    FIELD(qpc, log_ack_req_freq, 0x70, 31, 28)                                                     \
    FIELD(qpc, log_sra_max, 0x70, 23, 21)     /* log2 of reads and atomics that it may issue */    \
    FIELD(qpc, retry_count, 0x70, 18, 16)                                                          \
    FIELD(qpc, rnr_retry, 0x70, 15, 13)       /* 7 = for ever */                                   \
    FIELD(qpc, fre, 0x70, 11, 11)                                                                  \
    FIELD(qpc, next_send_psn, 0x78, 23, 0)                                                         \
    FIELD(qpc, cqn_snd, 0x7c, 23, 0)                                                               \
    FIELD(qpc, last_acked_psn, 0x88, 23, 0)                                                        \
    FIELD(qpc, ssn, 0x8c, 23, 0)                                                                   \
    FIELD(qpc, log_rra_max, 0x90, 23, 21)     /* log2 of reads and atomics that peers may issue */ \
    FIELD(qpc, atomic_mode, 0x90, 19, 16)     /* enum m5_qpc_atomic_mode */                        \
    FIELD(qpc, rre, 0x90, 15, 15)             /* peers may read */                                 \
    FIELD(qpc, rwe, 0x90, 14, 14)             /* peers may write */                                \
    FIELD(qpc, rae, 0x90, 13, 13)             /* peers may do atomics, as atomic_mode says */      \
    FIELD(qpc, page_offset, 0x90, 11, 6)                                                           \
    FIELD(qpc, cd_slave_receive, 0x90, 2, 2)                                                       \
    FIELD(qpc, cd_slave_send, 0x90, 1, 1)                                                          \
    FIELD(qpc, cd_master, 0x90, 0, 0)                                                              \
    FIELD(qpc, min_rnr_nak, 0x94, 28, 24)     /* IB encoding of a time */                          \
    FIELD(qpc, next_rcv_psn, 0x94, 23, 0)                                                          \
    FIELD(qpc, cqn_rcv, 0x9c, 23, 0)                                                               \
    FIELD(qpc, dbr_addr, 0xa0, 63, 0)         /* of the record, in the umem */                     \
    FIELD(qpc, rq_type, 0xac, 26, 24)         /* enum m5_qpc_rq_type */                            \
    FIELD(qpc, srqn_rmpn_xrqn, 0xac, 23, 0)                                                        \
    FIELD(qpc, hw_sq_wqebb_counter, 0xb4, 31, 16) /* out: blocks executed */                       \
    FIELD(qpc, sw_sq_wqebb_counter, 0xb4, 15, 0)  /* out: blocks posted, as last read */           \
    FIELD(qpc, hw_rq_counter, 0xb8, 31, 0)        /* out: receive WQEs consumed */                 \
    FIELD(qpc, sw_rq_counter, 0xbc, 31, 0)                                                         \
    FIELD(qpc, cs_req, 0xc4, 15, 8)                                                                \
    FIELD(qpc, cs_res, 0xc4, 7, 0)                                                                 \
    FIELD(qpc, dbr_umem_valid, 0xd0, 28, 28)  /* the kernel sets it for DEVX commands */           \
    NEWER(qpc, dbr_umem_id, 0xe4, 31, 0)

/* Every command that moves a QP or changes it in its state is laid out as RST2INIT_QP; those that
 * only name a QP (2ERR_QP, 2RST_QP, QUERY_QP, DESTROY_QP) are its first 16 bytes. */
#define M5_PRM_QP_COMMANDS(SIZE, PART, FIELD, NEWER)                                               \
    SIZE(create_qp_in, 0x110)                                                                      \
    FIELD(create_qp_in, opt_param_mask, 0x10, 31, 0)                                               \
    PART(create_qp_in, qpc, 0x18)                                                                  \
    NEWER(create_qp_in, wq_umem_offset, 0x100, 63, 0) /* of the receive ring, in the umem; the     \
                                                         send ring follows it directly */          \
    NEWER(create_qp_in, wq_umem_id, 0x108, 31, 0)                                                  \
    FIELD(create_qp_in, wq_umem_valid, 0x10c, 31, 31) /* the kernel sets it for DEVX commands */   \
    SIZE(create_qp_out, 0x10)                                                                      \
    FIELD(create_qp_out, qpn, 0x08, 23, 0)                                                         \
    SIZE(rst2init_qp_in, 0x110)                                                                    \
    FIELD(rst2init_qp_in, qpn, 0x08, 23, 0)                                                        \
    FIELD(rst2init_qp_in, opt_param_mask, 0x10, 31, 0) /* enum m5_qp_opt */                        \
    PART(rst2init_qp_in, qpc, 0x18)                                                                \
    SIZE(rst2init_qp_out, 0x10)                                                                    \
    SIZE(query_qp_in, 0x10)                                                                        \
    FIELD(query_qp_in, qpn, 0x08, 23, 0)                                                           \
    SIZE(query_qp_out, 0x110)                                                                      \
    FIELD(query_qp_out, opt_param_mask, 0x10, 31, 0)                                               \
    PART(query_qp_out, qpc, 0x18)                                                                  \
    SIZE(destroy_qp_in, 0x10)                                                                      \
    FIELD(destroy_qp_in, qpn, 0x08, 23, 0)

/* ---- Capabilities (PRM "QUERY_HCA_CAP" and its capability pages) ---- */

#define M5_PRM_QUERY_CAP(SIZE, PART, FIELD, NEWER)                                                 \
    SIZE(query_hca_cap_in, 0x10)                                                                   \
    FIELD(query_hca_cap_in, other_function, 0x08, 31, 31)                                          \
    FIELD(query_hca_cap_in, function_id, 0x08, 15, 0)                                              \
    SIZE(query_hca_cap_out, 0x1010)                                                                \
    PART(query_hca_cap_out, capability, 0x10) /* the page that op_mod names */

#define M5_PRM_CAP_GENERAL(SIZE, PART, FIELD, NEWER)                                               \
    SIZE(cmd_hca_cap, 0x100)                                                                       \
    FIELD(cmd_hca_cap, hca_cap_2, 0x04, 31, 31)                                                    \
    FIELD(cmd_hca_cap, vhca_id, 0x04, 15, 0)                                                       \
    FIELD(cmd_hca_cap, log_max_srq_sz, 0x10, 31, 24)                                               \
    FIELD(cmd_hca_cap, log_max_qp_sz, 0x10, 23, 16)                                                \
    FIELD(cmd_hca_cap, log_max_qp, 0x10, 4, 0)                                                     \
    FIELD(cmd_hca_cap, ece_support, 0x14, 28, 28)                                                  \
    FIELD(cmd_hca_cap, log_max_srq, 0x14, 20, 16)                                                  \
    FIELD(cmd_hca_cap, log_max_cq_sz, 0x18, 23, 16)                                                \
    FIELD(cmd_hca_cap, log_max_cq, 0x18, 4, 0)                                                     \
    FIELD(cmd_hca_cap, log_max_mkey, 0x1c, 21, 16)                                                 \
    FIELD(cmd_hca_cap, log_max_ra_req_dc, 0x24, 21, 16)                                            \
    FIELD(cmd_hca_cap, log_max_ra_res_dc, 0x24, 5, 0)                                              \
    FIELD(cmd_hca_cap, log_max_ra_req_qp, 0x28, 21, 16)                                            \
    FIELD(cmd_hca_cap, log_max_ra_res_qp, 0x28, 5, 0)                                              \
    FIELD(cmd_hca_cap, cache_line_128byte, 0x2c, 27, 27)                                           \
    FIELD(cmd_hca_cap, gid_table_size, 0x2c, 15, 0)  /* InfiniBand ports: 8 << it */               \
    FIELD(cmd_hca_cap, pkey_table_size, 0x30, 15, 0) /* InfiniBand ports: 128 << it */             \
    FIELD(cmd_hca_cap, local_ca_ack_delay, 0x34, 20, 16)                                           \
    FIELD(cmd_hca_cap, port_type, 0x34, 9, 8)        /* enum m5_port_type */                       \
    FIELD(cmd_hca_cap, num_ports, 0x34, 7, 0)                                                      \
    FIELD(cmd_hca_cap, log_max_msg, 0x38, 28, 24)                                                  \
    FIELD(cmd_hca_cap, init2_lag_tx_port_affinity, 0x3c, 7, 7)                                     \
    FIELD(cmd_hca_cap, cqe_version, 0x3c, 3, 0)                                                    \
    FIELD(cmd_hca_cap, compact_address_vector, 0x40, 31, 31)                                       \
    FIELD(cmd_hca_cap, drain_sigerr, 0x40, 16, 16)                                                 \
    FIELD(cmd_hca_cap, wq_signature, 0x40, 11, 11)                                                 \
    FIELD(cmd_hca_cap, sctr_data_cqe, 0x40, 10, 10)                                                \
    FIELD(cmd_hca_cap, dct, 0x40, 5, 5)                                                            \
    FIELD(cmd_hca_cap, qos, 0x40, 4, 4)                                                            \
    FIELD(cmd_hca_cap, eth_net_offloads, 0x40, 3, 3)                                               \
    FIELD(cmd_hca_cap, roce, 0x40, 2, 2)                                                           \
    FIELD(cmd_hca_cap, atomic, 0x40, 1, 1)                                                         \
    FIELD(cmd_hca_cap, cq_oi, 0x44, 31, 31)                                                        \
    FIELD(cmd_hca_cap, cq_resize, 0x44, 30, 30)                                                    \
    FIELD(cmd_hca_cap, cq_moderation, 0x44, 29, 29)                                                \
    FIELD(cmd_hca_cap, cq_eq_remap, 0x44, 25, 25)                                                  \
    FIELD(cmd_hca_cap, pg, 0x44, 24, 24)             /* on-demand paging */                        \
    FIELD(cmd_hca_cap, cd, 0x44, 19, 19)                                                           \
    FIELD(cmd_hca_cap, apm, 0x44, 17, 17)                                                          \
    FIELD(cmd_hca_cap, xrc, 0x44, 3, 3)                                                            \
    FIELD(cmd_hca_cap, ud, 0x44, 2, 2)                                                             \
    FIELD(cmd_hca_cap, uc, 0x44, 1, 1)                                                             \
    FIELD(cmd_hca_cap, rc, 0x44, 0, 0)                                                             \
    FIELD(cmd_hca_cap, uar_4k, 0x48, 31, 31)                                                       \
    FIELD(cmd_hca_cap, uar_sz, 0x48, 21, 16)         /* log2 of the UAR space in MiB */            \
    FIELD(cmd_hca_cap, log_pg_sz, 0x48, 7, 0)                                                      \
    FIELD(cmd_hca_cap, bf, 0x4c, 31, 31)                                                           \
    FIELD(cmd_hca_cap, log_bf_reg_size, 0x4c, 20, 16)                                              \
    FIELD(cmd_hca_cap, lag_tx_port_affinity, 0x4c, 7, 7)                                           \
    FIELD(cmd_hca_cap, lag_master, 0x4c, 4, 4)                                                     \
    FIELD(cmd_hca_cap, num_lag_ports, 0x4c, 3, 0)                                                  \
    FIELD(cmd_hca_cap, max_wqe_sz_sq, 0x50, 15, 0)   /* bytes */                                   \
    FIELD(cmd_hca_cap, max_wqe_sz_rq, 0x54, 15, 0)   /* bytes */                                   \
    FIELD(cmd_hca_cap, max_wqe_sz_sq_dc, 0x58, 15, 0)                                              \
    FIELD(cmd_hca_cap, log_uar_page_sz, 0x90, 15, 0) /* in units of 4 KiB */                       \
    FIELD(cmd_hca_cap, device_frequency_mhz, 0x98, 31, 0)                                          \
    FIELD(cmd_hca_cap, device_frequency_khz, 0x9c, 31, 0)                                          \
    FIELD(cmd_hca_cap, num_of_uars_per_page, 0xa4, 31, 0)                                          \
    FIELD(cmd_hca_cap, cqe_compression, 0xb4, 0, 0)

#define M5_PRM_CAP_OTHERS(SIZE, PART, FIELD, NEWER)                                                \
    SIZE(cmd_hca_cap_2, 0x100)                                                                     \
    NEWER(cmd_hca_cap_2, send_dbr_mode_no_dbr_int, 0x5c, 31, 31)                                   \
    NEWER(cmd_hca_cap_2, send_dbr_mode_no_dbr_ext, 0x5c, 30, 30) /* QPs without a send record */   \
    SIZE(odp_cap, 0x100)                                                                           \
    FIELD(odp_cap, sig, 0x08, 31, 31)                                                              \
    SIZE(atomic_caps, 0x100)                                                                       \
    FIELD(atomic_caps, atomic_req_8B_endianness_mode, 0x08, 31, 30) /* enum m5_atomic_endianness */\
    FIELD(atomic_caps, supported_atomic_req_8B_endianness_mode_1, 0x08, 25, 25)                    \
    FIELD(atomic_caps, atomic_operations, 0x10, 15, 0)              /* enum m5_atomic_operation */ \
    FIELD(atomic_caps, atomic_size_qp, 0x14, 15, 0) /* the sum of the operand sizes, in bytes */   \
    FIELD(atomic_caps, atomic_size_dc, 0x18, 15, 0)                                                \
    SIZE(roce_cap, 0x100)                                                                          \
    FIELD(roce_cap, roce_apm, 0x00, 31, 31)                                                        \
    FIELD(roce_cap, sw_r_roce_src_udp_port, 0x00, 27, 27)                                          \
    FIELD(roce_cap, l3_type, 0x10, 19, 16)          /* enum m5_roce_l3_cap */                      \
    FIELD(roce_cap, roce_version, 0x10, 7, 0)       /* 1 << enum m5_roce_version */                \
    FIELD(roce_cap, r_roce_dest_udp_port, 0x14, 15, 0)                                             \
    FIELD(roce_cap, r_roce_max_src_udp_port, 0x18, 31, 16)                                         \
    FIELD(roce_cap, r_roce_min_src_udp_port, 0x18, 15, 0)                                          \
    FIELD(roce_cap, roce_address_table_size, 0x1c, 15, 0)

/* ---- Addresses (PRM "QUERY_ROCE_ADDRESS", "QUERY_NIC_VPORT_CONTEXT") ---- */

#define M5_PRM_ADDRESSES(SIZE, PART, FIELD, NEWER)                                                 \
    SIZE(query_roce_address_in, 0x10)                                                              \
    FIELD(query_roce_address_in, roce_address_index, 0x08, 31, 16)                                 \
    FIELD(query_roce_address_in, vhca_port_num, 0x08, 3, 0)                                        \
    SIZE(query_roce_address_out, 0x30)                                                             \
    PART(query_roce_address_out, roce_address, 0x10)                                               \
    SIZE(roce_addr_layout, 0x20)                                                                   \
    FIELD(roce_addr_layout, source_l3_address, 0x00, 127, 0)                                       \
    FIELD(roce_addr_layout, vlan_valid, 0x10, 28, 28)                                              \
    FIELD(roce_addr_layout, vlan_id, 0x10, 27, 16)                                                 \
    FIELD(roce_addr_layout, source_mac_47_32, 0x10, 15, 0)                                         \
    FIELD(roce_addr_layout, source_mac_31_0, 0x14, 31, 0)                                          \
    FIELD(roce_addr_layout, roce_l3_type, 0x18, 11, 8) /* enum m5_roce_l3_type */                  \
    FIELD(roce_addr_layout, roce_version, 0x18, 7, 0)  /* enum m5_roce_version */                  \
    SIZE(query_nic_vport_context_in, 0x10)                                                         \
    FIELD(query_nic_vport_context_in, other_vport, 0x08, 31, 31)                                   \
    FIELD(query_nic_vport_context_in, vport_number, 0x08, 15, 0)                                   \
    SIZE(query_nic_vport_context_out, 0x110)                                                       \
    PART(query_nic_vport_context_out, nic_vport_context, 0x10)                                     \
    SIZE(nic_vport_context, 0x100)                                                                 \
    FIELD(nic_vport_context, min_wqe_inline_mode, 0x00, 26, 24)                                    \
    FIELD(nic_vport_context, roce_en, 0x00, 0, 0)                                                  \
    FIELD(nic_vport_context, mtu, 0x24, 15, 0)                                                     \
    FIELD(nic_vport_context, system_image_guid, 0x28, 63, 0)                                       \
    FIELD(nic_vport_context, port_guid, 0x30, 63, 0)                                               \
    FIELD(nic_vport_context, node_guid, 0x38, 63, 0)                                               \
    PART(nic_vport_context, permanent_address, 0xf4)                                               \
    SIZE(mac_address_layout, 0x08)                                                                 \
    FIELD(mac_address_layout, mac_addr_47_32, 0x00, 15, 0)                                         \
    FIELD(mac_address_layout, mac_addr_31_0, 0x04, 31, 0)

/* All of them. */
#define M5_PRM_LAYOUT(SIZE, PART, FIELD, NEWER)                                                    \
    M5_PRM_MAILBOX(SIZE, PART, FIELD, NEWER)                                                       \
    M5_PRM_CQC(SIZE, PART, FIELD, NEWER)                                                           \
    M5_PRM_CQ_COMMANDS(SIZE, PART, FIELD, NEWER)                                                   \
    M5_PRM_ADS(SIZE, PART, FIELD, NEWER)                                                           \
    M5_PRM_QPC(SIZE, PART, FIELD, NEWER)                                                           \
    M5_PRM_QP_COMMANDS(SIZE, PART, FIELD, NEWER)                                                   \
    M5_PRM_QUERY_CAP(SIZE, PART, FIELD, NEWER)                                                     \
    M5_PRM_CAP_GENERAL(SIZE, PART, FIELD, NEWER)                                                   \
    M5_PRM_CAP_OTHERS(SIZE, PART, FIELD, NEWER)                                                    \
    M5_PRM_ADDRESSES(SIZE, PART, FIELD, NEWER)

/* clang-format on */

/* A field in one number: bits from the structure's start << 8 | width in bits. */
#define M5_PRM_PLACE(byte, high, low)                                                              \
    (((byte)*8 + ((high) > 31 ? 0 : 31 - (high))) << 8 | ((high) - (low) + 1))
#define M5_PRM_BIT(place)   ((uint32_t)(place) >> 8)
#define M5_PRM_WIDTH(place) ((uint32_t)(place)&0xff)

#define M5_PRM_SKIP(...)
#define M5_PRM_SIZE_ROW(structure, bytes)      m5_##structure##_bytes = (bytes),
#define M5_PRM_PART_ROW(structure, part, byte) m5_##structure##_##part = (byte),
#define M5_PRM_FIELD_ROW(structure, field, byte, high, low)                                        \
    m5_##structure##_##field = M5_PRM_PLACE(byte, high, low),

enum m5_prm_size { M5_PRM_LAYOUT(M5_PRM_SIZE_ROW, M5_PRM_SKIP, M5_PRM_SKIP, M5_PRM_SKIP) };

enum m5_prm_part { M5_PRM_LAYOUT(M5_PRM_SKIP, M5_PRM_PART_ROW, M5_PRM_SKIP, M5_PRM_SKIP) };

enum m5_prm_field { M5_PRM_LAYOUT(M5_PRM_SKIP, M5_PRM_SKIP, M5_PRM_FIELD_ROW, M5_PRM_FIELD_ROW) };

#define M5_PRM_CAP_PAGE_BYTES 0x1000

#endif
