/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software device's control calls: what the uverbs adapter and the PRM commands both come down
 * to. Set-up only; data moves in execute.h.
 *
 * Every function that takes a struct nic wants it held (nic_hold()), unless it says otherwise. All
 * return 0 or a negative errno value, and a call that fails changes nothing.
 */
#ifndef SOFTNIC_CORE_OBJECTS_H
#define SOFTNIC_CORE_OBJECTS_H

#include <stdbool.h>

#include "nic.h"

/* ---- Memory keys, protection domains, UAR pages ---- */

/* A protection domain's number, never 0. */
int nic_pd_alloc(struct nic *nic, uint32_t *pdn);

/* -EBUSY while a QP or a memory key uses it. */
int nic_pd_free(struct nic *nic, uint32_t pdn);
bool nic_pd_exists(const struct nic *nic, uint32_t pdn);

struct nic_mkey_attr {
    uint32_t pdn;
    uint32_t access; /* enum nic_access */
    uint64_t start;  /* iova of the first byte, 0 for a zero-based key */
    uint64_t bytes;
    void *host;
};

/* Errors: -EINVAL (remote write or atomic without local write, unknown PD, range that wraps),
 * -ENOMEM (no free key). */
int nic_mkey_create(struct nic *nic, const struct nic_mkey_attr *attr, uint32_t *key);
int nic_mkey_destroy(struct nic *nic, uint32_t key);

/* Hands out a UAR page: its id is NIC_FIRST_UAR + page, its offset in nic_uar_fd() page * 4096. */
int nic_uar_alloc(struct nic *nic, uint32_t *page);

/* -EBUSY while a QP or a CQ is bound to it. */
int nic_uar_free(struct nic *nic, uint32_t page);
bool nic_uar_exists(const struct nic *nic, uint32_t page);

/* ---- Completion queues ---- */

struct nic_cq_attr {
    void *ring;
    struct m5_cq_record *record;
    uint32_t depth_log2;
    uint32_t cqe_bytes; /* 64 or 128 */
    uint32_t flags;     /* enum nic_cq_flags */
    uint32_t uar_page;  /* page number, not id */
    void *owner;
};

/* -EINVAL: depth above 2^22, a CQE size other than 64 or 128, unknown UAR page, misaligned ring;
 * -EFAULT: the record's memory is gone. */
int nic_cq_create(struct nic *nic, const struct nic_cq_attr *attr, uint32_t *cqn);

/* -EBUSY while a QP completes to it. */
int nic_cq_destroy(struct nic *nic, uint32_t cqn);

/* ---- Queue pairs (RC) ---- */

struct nic_qp_attr {
    uint32_t pdn;
    uint32_t send_cqn;
    uint32_t recv_cqn;
    uint32_t user_index;
    uint32_t uar_page; /* page number, not id */
    struct m5_qp_record *record;
    bool without_record;    /* of sends; the record's receive half counts all the same */
    void *sq;               /* NULL = none */
    uint32_t sq_depth_log2; /* in 64-byte blocks */
    void *rq;               /* NULL = none */
    uint32_t rq_depth_log2;
    uint32_t rq_stride_log2; /* of bytes, 4 to 9 */
    void *owner;
};

/* -EINVAL: unknown PD, CQ or UAR page, a depth beyond NIC_MAX_DEPTH, misaligned ring. -EBUSY:
 * another QP without a record has the page's register. */
int nic_qp_create(struct nic *nic, const struct nic_qp_attr *attr, uint32_t *qpn);
int nic_qp_destroy(struct nic *nic, uint32_t qpn);

enum nic_qp_attr_mask { /* which fields of nic_qp_modify are set */
                        NIC_QP_REMOTE_QPN = 1u << 0,
                        NIC_QP_ACCESS = 1u << 1,
                        NIC_QP_MIN_RNR_TIMER = 1u << 2,
                        NIC_QP_RNR_RETRY = 1u << 3,
                        NIC_QP_RETRY_COUNT = 1u << 4,
                        NIC_QP_ACK_TIMEOUT = 1u << 5,
};

struct nic_qp_modify {
    uint32_t mask;
    uint32_t state; /* enum nic_qp_state to go to; the current one to stay */
    uint32_t remote_qpn;
    uint32_t access;
    uint32_t min_rnr_timer;
    uint32_t rnr_retry;
    uint32_t retry_count;
    uint32_t ack_timeout;
};

/*
 * Moves a QP through the states of the IB specification (10.3.1): RESET, INIT, RTR, RTS in that
 * order, INIT to INIT, RTS to RTS, RTS to SQD and back, anything to ERR or RESET. -EINVAL for any
 * other move, with nothing changed. A move to ERR flushes both queues; a move to RESET empties
 * them.
 */
int nic_qp_modify(struct nic *nic, uint32_t qpn, const struct nic_qp_modify *modify);

/* The object of that number, or NULL. */
struct nic_qp *nic_qp_find(struct nic *nic, uint32_t qpn);
struct nic_cq *nic_cq_find(struct nic *nic, uint32_t cqn);

#endif
