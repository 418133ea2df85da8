/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting through libibverbs: a batch is one ibv_post_send() of chained requests, the last of which
 * is signalled; completions come from ibv_poll_cq(). The other way is proxy_post_wqe.c.
 */
#include <endian.h>
#include <errno.h>

#include "proxy.h"

#define POLL_BATCH 16

/* The syndrome that libmlx5 made this status of. */
static uint32_t syndrome_of(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_LOC_LEN_ERR:
        return M5_SYN_LOCAL_LENGTH;
    case IBV_WC_LOC_PROT_ERR:
        return M5_SYN_LOCAL_PROTECTION;
    case IBV_WC_WR_FLUSH_ERR:
        return M5_SYN_FLUSHED;
    case IBV_WC_MW_BIND_ERR:
        return M5_SYN_MW_BIND;
    case IBV_WC_BAD_RESP_ERR:
        return M5_SYN_BAD_RESPONSE;
    case IBV_WC_LOC_ACCESS_ERR:
        return M5_SYN_LOCAL_ACCESS;
    case IBV_WC_REM_INV_REQ_ERR:
        return M5_SYN_REMOTE_INVALID_REQUEST;
    case IBV_WC_REM_ACCESS_ERR:
        return M5_SYN_REMOTE_ACCESS;
    case IBV_WC_REM_OP_ERR:
        return M5_SYN_REMOTE_OPERATION;
    case IBV_WC_RETRY_EXC_ERR:
        return M5_SYN_TRANSPORT_RETRY_EXCEEDED;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return M5_SYN_RNR_RETRY_EXCEEDED;
    case IBV_WC_REM_ABORT_ERR:
        return M5_SYN_REMOTE_ABORTED;
    default:
        return M5_SYN_LOCAL_QP_OP;
    }
}

static void fill(const struct db_request *request, struct ibv_send_wr *wr, struct ibv_sge *memory)
{
    *memory = (struct ibv_sge){request->laddr, request->bytes, request->lkey};
    wr->send_flags = (request->flags & DB_RING_FENCE ? (unsigned)IBV_SEND_FENCE : 0) |
                     (request->flags & DB_RING_SOLICITED ? (unsigned)IBV_SEND_SOLICITED : 0);
    wr->wr.rdma.remote_addr = request->raddr;
    wr->wr.rdma.rkey = request->rkey;
    switch (request->op) {
    case DB_RING_VALUE: /* copied by the post */
        *memory = (struct ibv_sge){(uintptr_t)&request->operand, sizeof(request->operand), 0};
        wr->opcode = IBV_WR_RDMA_WRITE;
        wr->send_flags |= (unsigned)IBV_SEND_INLINE;
        break;
    case DB_RING_PUT_IMM:
        wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        wr->imm_data = htobe32((uint32_t)request->operand);
        break;
    case DB_RING_GET:
        wr->opcode = IBV_WR_RDMA_READ;
        break;
    case DB_RING_FETCH_ADD:
        wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr->wr.atomic.remote_addr = request->raddr;
        wr->wr.atomic.compare_add = request->operand;
        wr->wr.atomic.swap = 0;
        wr->wr.atomic.rkey = request->rkey;
        break;
    default:
        wr->opcode = IBV_WR_RDMA_WRITE;
        break;
    }
}

/* wr_id is the number of requests that are complete with this one. */
static int post(struct db_pair *pair, const struct db_request *requests, uint32_t count)
{
    struct ibv_send_wr *wr = pair->requests, *bad = NULL;

    for (uint32_t i = 0; i < count; i++) {
        fill(&requests[i], &wr[i], &pair->memory[i]);
        wr[i].wr_id = pair->posted + i + 1;
        wr[i].sg_list = &pair->memory[i];
        wr[i].num_sge = 1;
        wr[i].next = &wr[i + 1];
    }
    wr[count - 1].next = NULL;
    wr[count - 1].send_flags |= (unsigned)IBV_SEND_SIGNALED;
    int error = ibv_post_send(pair->qp, wr, &bad);
    if (error == 0)
        return (int)count;
    /* ENOMEM is a full queue; what stands before `bad` was posted. */
    return error == ENOMEM ? (int)(bad - wr) : -error;
}

static int poll(struct db_pair *pair)
{
    struct ibv_wc wc[POLL_BATCH];
    int found = ibv_poll_cq(pair->cq, POLL_BATCH, wc);

    for (int i = 0; i < found; i++) {
        if (wc[i].status == IBV_WC_SUCCESS) {
            pair->completed = wc[i].wr_id;
            continue;
        }
        pair->completed = wc[i].wr_id - 1;
        pair->syndrome = syndrome_of(wc[i].status);
        pair->vendor_syndrome = wc[i].vendor_err;
        return -EIO;
    }
    if (found >= 0)
        return 0;
    pair->syndrome = M5_SYN_LOCAL_QP_OP; /* the completion queue itself is of no more use */
    pair->vendor_syndrome = 0;
    return -EIO;
}

const struct db_post_way db_post_verbs = {
    .name = "ibv_post_send",
    .post = post,
    .poll = poll,
};
