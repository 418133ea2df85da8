/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting with WQEs that we build ourselves (impl/wqe.h) in the ring that libmlx5 made for the
 * queue pair, and polling its CQ ourselves (impl/cq.h). The ring, the record, the doorbell register
 * and the CQ are what mlx5dv_init_obj() tells. The other way is proxy_post.c; a queue pair is used
 * in one of them only.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>

#include "error.h"
#include "proxy.h"
#include <doorbell/impl/sq.h>

/* The register is mapped write-combining, where x86 orders a store with no other, and keeps it for
 * a while: both take an sfence. Elsewhere the release does the first, and this the second. */
static void order_doorbell(void)
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static uint32_t flags_of(const struct db_request *request)
{
    return (request->flags & DB_RING_FENCE ? (uint32_t)M5_CTRL_FENCE : 0) |
           (request->flags & DB_RING_SOLICITED ? (uint32_t)M5_CTRL_SOLICITED : 0);
}

static void build(struct db_qp *qp, uint64_t index, const struct db_request *r, uint32_t flags)
{
    switch (r->op) {
    case DB_RING_VALUE:
        db_build_write_value(qp, index, flags, r->raddr, r->rkey, r->operand);
        break;
    case DB_RING_PUT_IMM:
        db_build_write_imm(qp, index, flags, r->raddr, r->rkey, r->laddr, r->lkey, r->bytes,
                           (uint32_t)r->operand);
        break;
    case DB_RING_GET:
        db_build_read(qp, index, flags, r->raddr, r->rkey, r->laddr, r->lkey, r->bytes);
        break;
    case DB_RING_FETCH_ADD:
        db_build_fetch_add(qp, index, flags, r->raddr, r->rkey, r->laddr, r->lkey, r->operand);
        break;
    default:
        db_build_write(qp, index, flags, r->raddr, r->rkey, r->laddr, r->lkey, r->bytes);
        break;
    }
}

/* Every request is one block, so that a block's index is its request's number. */
static int post(struct db_pair *pair, const struct db_request *requests, uint32_t count)
{
    struct db_qp *qp = &pair->direct;
    uint64_t end = pair->posted + count;

    for (uint32_t i = 0; i < count; i++)
        build(qp, pair->posted + i, &requests[i],
              flags_of(&requests[i]) | (i + 1 < count ? DB_UNSIGNALED : DB_SIGNALED));
    /* As db_ring(): the WQEs before the record, the record before the doorbell. */
    port_st32(&qp->record->send.raw, port_bswap32((uint32_t)end & M5_INDEX_MASK), PORT_RELEASE,
              PORT_SYSTEM);
    port_fence(PORT_RELEASE, PORT_SYSTEM);
    order_doorbell();
    port_doorbell(qp->doorbell, db_ctrl_word(qp->qpn, end, 0, 0));
    order_doorbell();
    return (int)count;
}

static int poll(struct db_pair *pair)
{
    struct db_error why;

    pair->completed = db_cq_poll(&pair->direct, DB_ALL_BLOCKS, false, PORT_ACQUIRE);
    if (db_qp_error(&pair->direct, &why) != DB_ERROR_IO)
        return 0;
    pair->completed = db_index_extend(pair->completed, why.index);
    pair->syndrome = why.syndrome;
    pair->vendor_syndrome = why.vendor_syndrome;
    return -EIO;
}

const struct db_post_way db_post_wqe = {
    .name = "own WQEs",
    .post = post,
    .poll = poll,
};

void db_pair_find_ring(struct db_pair *pair)
{
    struct mlx5dv_qp qp = {0};
    struct mlx5dv_obj object = {.qp = {.in = pair->qp, .out = &qp}};

    if (mlx5dv_init_obj(&object, MLX5DV_OBJ_QP) || qp.sq.stride != M5_BLOCK_BYTES)
        return;
    pair->direct.sq = qp.sq.buf;
    pair->direct.depth = qp.sq.wqe_cnt;
}

int db_pair_open_direct(struct db_pair *pair)
{
    struct mlx5dv_qp qp = {0};
    struct mlx5dv_cq cq = {0};
    struct mlx5dv_obj objects = {
        .qp = {.in = pair->qp, .out = &qp},
        .cq = {.in = pair->cq, .out = &cq},
    };

    if (mlx5dv_init_obj(&objects, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ))
        return db_fail(-EOPNOTSUPP, "libmlx5 does not tell where the rings of a queue pair lie; "
                                    "use DB_POST_VERBS");
    if (cq.cqe_size != sizeof(struct m5_cqe))
        return db_fail(-EOPNOTSUPP,
                       "libmlx5 made CQEs of %u bytes (see MLX5_CQE_SIZE), and DB_POST_WQE reads "
                       "those of 64; use DB_POST_VERBS",
                       cq.cqe_size);
    if (qp.sq.stride != M5_BLOCK_BYTES || qp.sq.wqe_cnt < pair->depth)
        return db_fail(-EOPNOTSUPP,
                       "libmlx5 made a send ring of %u blocks of %u bytes, too small for "
                       "DB_POST_WQE; use DB_POST_VERBS",
                       qp.sq.wqe_cnt, qp.sq.stride);
    pair->direct = (struct db_qp){
        .sq = qp.sq.buf,
        .record = (struct m5_qp_record *)(void *)qp.dbrec,
        .doorbell = qp.bf.reg,
        .cq = cq.buf,
        .cq_record = (struct m5_cq_record *)(void *)cq.dbrec,
        .qpn = pair->qp->qp_num,
        .depth = qp.sq.wqe_cnt,
        .cq_depth = cq.cqe_cnt,
        .order = DB_ORDER_SYSTEM,
        .with_record = DB_WITH_RECORD,
    };
    return 0;
}
