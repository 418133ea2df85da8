/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mlx5 queue formats: what lies in a send ring, a receive ring, a completion ring, a doorbell
 * record and a doorbell. Layouts and enumerations only; no logic.
 *
 * Included by the data path (impl/sq.h, impl/cq.h) and by the software device. Follows the ConnectX
 * programmer's reference manual (PRM), chapters "Work queue structure and access" and "Completion
 * queues"; rdma-core states the same in providers/mlx5/mlx5dv.h, which tests/unit/format.c compares
 * with this file. Every field is big-endian and written by software unless it says otherwise.
 */
#ifndef DOORBELL_IMPL_M5_FORMAT_H
#define DOORBELL_IMPL_M5_FORMAT_H

#include <assert.h>
#include <stddef.h>

#include "port.h"

#define M5_SEGMENT_BYTES 16
#define M5_BLOCK_BYTES   64 /* the unit of a send ring and of its producer index (WQEBB) */
#define M5_INDEX_BITS    16 /* what a control segment, a record and a CQE keep of an index */
#define M5_INDEX_MASK    0xffffu
#define M5_QPN_MASK      0xffffffu
#define M5_MAX_SEGMENTS  63 /* of a send WQE: what the 6 bits of its length hold */

enum m5_opcode {
    M5_OP_NOP = 0x00,
    M5_OP_SEND_INVAL = 0x01,
    M5_OP_WRITE = 0x08,
    M5_OP_WRITE_IMM = 0x09,
    M5_OP_SEND = 0x0a,
    M5_OP_SEND_IMM = 0x0b,
    M5_OP_READ = 0x10,
    M5_OP_ATOMIC_CS = 0x11,
    M5_OP_ATOMIC_FA = 0x12,
    M5_OP_ATOMIC_MASKED_CS = 0x14,
    M5_OP_ATOMIC_MASKED_FA = 0x15,
};

/* The opmod byte of a masked atomic: 8 plus log2 of the operand's bytes, less 2. */
enum m5_atomic_opmod {
    M5_ATOMIC_4_BYTES = 0x08,
    M5_ATOMIC_8_BYTES = 0x09,
};

/* ---- Send WQE: a control segment, then those that its opcode asks for ---- */

enum m5_ctrl_flags {
    M5_CTRL_SOLICITED = 1u << 1,
    M5_CTRL_CQ_UPDATE = 2u << 2, /* bits 3:2; 2 = a CQE when done, 0 = a CQE on error only */
    M5_CTRL_CE_MASK = 3u << 2,
    M5_CTRL_INITIATOR_SMALL_FENCE = 1u << 5, /* bits 7:5 are one 3-bit fence mode */
    M5_CTRL_FENCE = 4u << 5,
    M5_CTRL_FENCE_MASK = 7u << 5,
};

struct m5_ctrl_seg {
    struct be32 opmod_idx_opcode; /* 31:24 opmod, 23:8 index of the WQE's first block, 7:0 opcode */
    struct be32 qpn_ds;           /* 31:8 QPN, 5:0 length of the WQE in segments */
    uint8_t signature;            /* checked only on QPs created with WQE signatures */
    uint8_t rsvd[2];
    uint8_t flags;   /* enum m5_ctrl_flags */
    struct be32 imm; /* immediate data, or the rkey to invalidate */
};

struct m5_raddr_seg {
    struct be64 raddr; /* address in the remote key's space */
    struct be32 rkey;
    struct be32 rsvd;
};

/* A gather or scatter entry; a byte count of 0 means 2 GiB. In a receive WQE, lkey
 * M5_LKEY_END ends the list. */
struct m5_data_seg {
    struct be32 byte_count; /* bit 31 set: this is an inline segment instead */
    struct be32 lkey;
    struct be64 addr;
};

#define M5_LKEY_END    0x100u
#define M5_INLINE_FLAG 0x80000000u

/* The payload follows the word directly; the segment is padded to 16 bytes. */
struct m5_inline_seg {
    struct be32 byte_count; /* bytes of payload | M5_INLINE_FLAG */
};

struct m5_atomic_seg {
    struct be64 swap_add; /* compare-swap: the new value; fetch-add: the addend */
    struct be64 compare;
};

struct m5_masked_cs_seg {
    struct be64 swap;
    struct be64 compare;
    struct be64 swap_mask;
    struct be64 compare_mask;
};

/* 4-byte masked compare-swap: the same four operands in one segment. */
struct m5_masked_cs4_seg {
    struct be32 swap;
    struct be32 compare;
    struct be32 swap_mask;
    struct be32 compare_mask;
};

/* A set bit of the boundary stops the carry out of that bit. */
struct m5_masked_fa_seg {
    struct be64 add;
    struct be64 boundary;
};

struct m5_masked_fa4_seg {
    struct be32 add;
    struct be32 boundary;
    struct be32 rsvd[2];
};

/* Address vector; the first 16 bytes alone are the compact form (bit 31 of dqp_dct clear). */
struct m5_av {
    struct be64 dc_key; /* UD: high word is the Q_Key */
    struct be32 dqp_dct;
    uint8_t stat_rate_sl;
    uint8_t fl_mlid;
    uint8_t rlid[2];
    uint8_t rsvd0[4];
    uint8_t rmac[6];
    uint8_t tclass;
    uint8_t hop_limit;
    struct be32 grh_gid_fl;
    uint8_t rgid[16];
};

#define M5_AV_EXTENDED 0x80000000u

/* ---- CQE; written by the device ---- */

enum m5_cqe_opcode {
    M5_CQE_REQUESTER = 0x0,
    M5_CQE_RESPONDER_WRITE_IMM = 0x1,
    M5_CQE_RESPONDER_SEND = 0x2,
    M5_CQE_RESPONDER_SEND_IMM = 0x3,
    M5_CQE_RESPONDER_SEND_INVAL = 0x4,
    M5_CQE_REQUESTER_ERROR = 0xd,
    M5_CQE_RESPONDER_ERROR = 0xe,
    M5_CQE_INVALID = 0xf, /* what software fills a fresh ring with, in op_own */
};

#define M5_CQE_OWNER 0x01u /* op_own bit 0: flips each lap of the ring, 0 in the first */

struct m5_cqe {
    uint8_t
        rsvd0[32]; /* or inline scattered data; 128 B CQEs have this part in their second half */
    struct be32 srqn_uidx; /* 23:0 the QP's user index (CQE version 1) */
    struct be32 imm;       /* immediate data or invalidated rkey */
    uint8_t rsvd1[4];
    struct be32 byte_count;
    struct be64 timestamp;
    struct be32 opcode_qpn; /* 31:24 opcode of the completed send WQE, 23:0 QPN */
    uint8_t wqe_counter[2]; /* index of the completed WQE's first block, or of the receive WQE */
    uint8_t signature;
    uint8_t op_own; /* 7:4 enum m5_cqe_opcode, 3:2 format, 1 solicited, 0 owner; written last */
};

enum m5_syndrome {
    M5_SYN_LOCAL_LENGTH = 0x01,
    M5_SYN_LOCAL_QP_OP = 0x02,
    M5_SYN_LOCAL_PROTECTION = 0x04,
    M5_SYN_FLUSHED = 0x05,
    M5_SYN_MW_BIND = 0x06,
    M5_SYN_BAD_RESPONSE = 0x10,
    M5_SYN_LOCAL_ACCESS = 0x11,
    M5_SYN_REMOTE_INVALID_REQUEST = 0x12,
    M5_SYN_REMOTE_ACCESS = 0x13,
    M5_SYN_REMOTE_OPERATION = 0x14,
    M5_SYN_TRANSPORT_RETRY_EXCEEDED = 0x15,
    M5_SYN_RNR_RETRY_EXCEEDED = 0x16,
    M5_SYN_REMOTE_ABORTED = 0x22,
};

struct m5_error_cqe {
    uint8_t rsvd0[32];
    struct be32 srqn_uidx;
    uint8_t rsvd1[18];
    uint8_t vendor_syndrome;
    uint8_t syndrome; /* enum m5_syndrome */
    struct be32 opcode_qpn;
    uint8_t wqe_counter[2];
    uint8_t signature;
    uint8_t op_own;
};

/* ---- Doorbell records and doorbells ---- */

/* Queue pair: one 8-byte record in memory that the device reads. 16 significant bits each. */
struct m5_qp_record {
    struct be32 receive; /* count of receive WQEs posted */
    struct be32 send;    /* index of the next free block; not read of a queue without a record */
};

enum m5_cq_arm {
    M5_CQ_ARM_ANY = 0,
    M5_CQ_ARM_SOLICITED = 1u << 24,
};

struct m5_cq_record {
    struct be32 consumer; /* 23:0 count of CQEs consumed */
    struct be32 arm;      /* 29:28 arm sequence, 24 enum m5_cq_arm, 23:0 consumer at the arming */
};

/* What is stored to a UAR page at M5_UAR_SEND: the first 8 bytes of a control segment. Devices look
 * at the index and the QPN; the bits below them may hold anything. For a queue pair without a
 * record (send_dbr_mode) it is stored at M5_UAR_SEND_NO_RECORD, and the index is that of the next
 * free block, which a record would hold. */
struct m5_doorbell {
    struct be32 opmod_idx_opcode;
    struct be32 qpn_ds;
};

#define M5_UAR_BYTES  4096
#define M5_UAR_CQ_ARM 0x20  /* 8 bytes: the arm word, then the CQN */
#define M5_UAR_SEND   0x800 /* four registers, M5_UAR_SEND_STRIDE apart (BlueFlame halves) */

#define M5_UAR_SEND_NO_RECORD 0x600
#define M5_UAR_SEND_STRIDE    0x100
#define M5_UAR_SEND_REGISTERS 4

static_assert(sizeof(struct be32) == 4, "be32");
static_assert(sizeof(struct be64) == 8, "be64");
static_assert(sizeof(struct m5_ctrl_seg) == 16, "control segment");
static_assert(offsetof(struct m5_ctrl_seg, flags) == 11, "control flags");
static_assert(offsetof(struct m5_ctrl_seg, imm) == 12, "control immediate");
static_assert(sizeof(struct m5_raddr_seg) == 16, "remote address segment");
static_assert(offsetof(struct m5_raddr_seg, rkey) == 8, "rkey");
static_assert(sizeof(struct m5_data_seg) == 16, "data segment");
static_assert(offsetof(struct m5_data_seg, lkey) == 4, "lkey");
static_assert(offsetof(struct m5_data_seg, addr) == 8, "data address");
static_assert(sizeof(struct m5_inline_seg) == 4, "inline segment");
static_assert(sizeof(struct m5_atomic_seg) == 16, "atomic segment");
static_assert(sizeof(struct m5_masked_cs_seg) == 32, "masked compare-swap segments");
static_assert(sizeof(struct m5_masked_cs4_seg) == 16, "4-byte masked compare-swap segment");
static_assert(sizeof(struct m5_masked_fa_seg) == 16, "masked fetch-add segment");
static_assert(sizeof(struct m5_masked_fa4_seg) == 16, "4-byte masked fetch-add segment");
static_assert(sizeof(struct m5_av) == 48, "address vector");
static_assert(offsetof(struct m5_av, dqp_dct) == 8, "destination QP");
static_assert(offsetof(struct m5_av, rgid) == 32, "remote GID");
static_assert(sizeof(struct m5_cqe) == 64, "CQE");
static_assert(offsetof(struct m5_cqe, srqn_uidx) == 32, "user index");
static_assert(offsetof(struct m5_cqe, imm) == 36, "CQE immediate");
static_assert(offsetof(struct m5_cqe, byte_count) == 44, "byte count");
static_assert(offsetof(struct m5_cqe, opcode_qpn) == 56, "CQE QPN");
static_assert(offsetof(struct m5_cqe, wqe_counter) == 60, "WQE counter");
static_assert(offsetof(struct m5_cqe, op_own) == 63, "op_own");
static_assert(sizeof(struct m5_error_cqe) == 64, "error CQE");
static_assert(offsetof(struct m5_error_cqe, vendor_syndrome) == 54, "vendor syndrome");
static_assert(offsetof(struct m5_error_cqe, syndrome) == 55, "syndrome");
static_assert(sizeof(struct m5_qp_record) == 8, "QP record");
static_assert(offsetof(struct m5_qp_record, send) == 4, "send half of the record");
static_assert(sizeof(struct m5_cq_record) == 8, "CQ record");
static_assert(sizeof(struct m5_doorbell) == 8, "doorbell");

#endif
