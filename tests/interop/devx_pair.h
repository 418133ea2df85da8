/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two RC queue pairs made by PRM commands through libmlx5's DEVX calls, as GPU-initiated libraries
 * make theirs, and what posts hand-built WQEs to them and reads their CQEs. Each end has one block
 * of memory: rings, records and payload. Included by the programs tests/interop/devx_*.c.
 *
 * A function that cannot do what it says ends the program with a sentence; none waits for ever.
 */
#ifndef DOORBELL_TESTS_DEVX_PAIR_H
#define DOORBELL_TESTS_DEVX_PAIR_H

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include <doorbell/impl/m5_prm_format.h>

#include "../check.h"
#include "../wqe_bytes.h"

#define DEVX_PAYLOAD_BYTES (1u << 20)

#define DEVX_PATIENCE_NS 20000000000ull

enum {
    DEVX_USER_INDEX_A = 0xabcde1,
    DEVX_USER_INDEX_B = 0x000def,
};

/* Start from devx_defaults() and change what the test is about. */
struct devx_options {
    uint32_t sq_depth_log2;  /* blocks of 64 bytes */
    uint32_t rq_depth_log2;  /* receive WQEs */
    uint32_t rq_stride_log2; /* bytes of one, 4 to 9 */
    uint32_t cq_depth_log2;  /* of each of the CQs */
    uint32_t cqe_bytes;      /* 64 or 128 */
    bool collapsed;          /* of the send CQs */
    bool ignore_overrun;     /* of the send CQs */
    bool remote_read, remote_write, remote_atomic;
    uint32_t retry_count, rnr_retry, ack_timeout, min_rnr_timer;
};

struct devx_cq {
    struct mlx5dv_devx_obj *object;
    uint32_t cqn;
    uint32_t depth_log2;
    uint32_t cqe_bytes;
    uint8_t *ring;
    uint8_t *record; /* consumer count, arm word */
    uint64_t polled;
};

struct devx_end {
    struct mlx5dv_devx_obj *object;
    uint32_t qpn;
    uint32_t user_index;
    struct devx_cq send_cq, recv_cq;
    uint8_t *memory; /* all of it */
    size_t memory_bytes;
    struct mlx5dv_devx_umem *umem;
    uint8_t *sq, *rq;
    uint8_t *record; /* receive count, send index */
    uint64_t posted; /* blocks; starts where devx_start() was told */
    uint64_t recvs;
    uint8_t *payload; /* DEVX_PAYLOAD_BYTES */
    struct ibv_mr *mr;
};

struct devx_pair {
    struct devx_options options;
    struct ibv_context *context;
    struct ibv_pd *pd;
    uint32_t pdn;
    struct mlx5dv_devx_uar *uar;
    struct devx_end a, b;
};

struct devx_options devx_defaults(void);

/* Opens the software device with DEVX, makes both ends and moves them to RTS. */
void devx_start(struct devx_pair *pair, const struct devx_options *options);
void devx_destroy(struct devx_pair *pair);

/* Resets both ends, empties rings and records, and connects them again. */
void devx_recover(struct devx_pair *pair);

/* M5_CMD_2ERR_QP or M5_CMD_2RST_QP. */
void devx_move(struct devx_end *end, enum m5_prm_opcode opcode);
/* RESET to INIT, RTR and RTS, towards `peer_qpn`. */
void devx_connect(const struct devx_pair *pair, struct devx_end *end, uint32_t peer_qpn);

/* What QUERY_QP says of a field of the context. */
uint32_t devx_query(const struct devx_end *end, enum m5_prm_field field);

/* Writes the WQE into the next blocks, with its index and QPN. Returns the index, 16 bits. */
uint32_t devx_write_wqe(const struct devx_pair *pair, struct devx_end *end, struct wqe *wqe);
/* Publishes all that was written, and rings. */
void devx_ring(const struct devx_pair *pair, const struct devx_end *end, const struct wqe *last);
/* Both. */
uint32_t devx_post(const struct devx_pair *pair, struct devx_end *end, struct wqe *wqe);

struct devx_scatter {
    void *address;
    uint32_t lkey;
    uint32_t bytes;
};

/* Posts a receive WQE of `count` entries, ended as the PRM says when there is room. */
void devx_post_recv(const struct devx_pair *pair, struct devx_end *end,
                    const struct devx_scatter *list, uint32_t count);

/* The next CQE, which must come within DEVX_PATIENCE_NS; its slot is handed back. */
struct cqe devx_poll(struct devx_cq *cq);
/* No CQE may come within `milliseconds`. */
void devx_expect_none(const struct devx_cq *cq, uint32_t milliseconds);
const uint8_t *devx_slot(const struct devx_cq *cq, uint64_t count);

/* The next CQE of the end's send CQ: success of that WQE. */
struct cqe devx_expect(struct devx_end *end, uint32_t opcode, uint32_t index, uint32_t bytes);
/* The next one is an error of that WQE. */
void devx_expect_error(struct devx_end *end, uint32_t opcode, uint32_t index, uint32_t syndrome);
/* The next CQE of the receive CQ is an error. */
void devx_expect_recv_error(struct devx_end *end, uint32_t index, uint32_t syndrome);

uint64_t devx_now_ns(void);

#endif
