/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a CQ made by ibv_create_cq_ex and read by ibv_start_poll, ibv_next_poll and ibv_end_poll
 * (ibv_create_cq_ex(3)) tells the same as ibv_poll_cq, entry by entry, over many laps of the ring,
 * good and bad, with CQEs of 64 and of 128 bytes.
 */
#include "rc_pair.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <sched.h>
#include <string.h>

enum { BATCH = 24 };

/* Begins polling, waiting for the first entry. */
static void start(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr attr = {0};
    uint64_t deadline = rc_now_ns() + RC_DEADLINE_NS;
    int err;

    while ((err = ibv_start_poll(cq, &attr)) == ENOENT) {
        CHECK(rc_now_ns() < deadline, "no completion in time");
        sched_yield();
    }
    CHECK(err == 0, "ibv_start_poll: %s", strerror(err));
}

/* Goes to the next entry; when none is there yet, ends and begins again. */
static void next(struct ibv_cq_ex *cq)
{
    int err = ibv_next_poll(cq);

    if (err == ENOENT) {
        ibv_end_poll(cq);
        start(cq);
    } else {
        CHECK(err == 0, "ibv_next_poll: %s", strerror(err));
    }
}

static void expect_empty(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr attr = {0};
    int err = ibv_start_poll(cq, &attr);

    CHECK(err == ENOENT, "ibv_start_poll of an empty CQ returned %d", err);
}

/* The entry that is being read is a good one with these fields. */
static void check_entry(struct ibv_cq_ex *cq, const struct rc_end *end, uint64_t wr_id,
                        enum ibv_wc_opcode opcode)
{
    CHECK(cq->status == IBV_WC_SUCCESS, "%s (vendor 0x%x)", ibv_wc_status_str(cq->status),
          ibv_wc_read_vendor_err(cq));
    CHECK(cq->wr_id == wr_id, "request %llu, %llu expected", (unsigned long long)cq->wr_id,
          (unsigned long long)wr_id);
    CHECK(ibv_wc_read_opcode(cq) == opcode, "opcode %d, %d expected", (int)ibv_wc_read_opcode(cq),
          (int)opcode);
    CHECK(ibv_wc_read_qp_num(cq) == end->qp->qp_num, "QP 0x%x, 0x%x expected",
          ibv_wc_read_qp_num(cq), end->qp->qp_num);
}

/* BATCH requests of every kind, read back as one run of entries at each end. */
static void lap(struct rc_pair *pair, uint64_t first)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE_WITH_IMM,
                                                 IBV_WR_RDMA_READ,     IBV_WR_SEND,
                                                 IBV_WR_SEND_WITH_IMM, IBV_WR_SEND};
    static const enum ibv_wc_opcode results[] = {IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE,
                                                 IBV_WC_RDMA_READ,  IBV_WC_SEND,
                                                 IBV_WC_SEND,       IBV_WC_SEND};
    struct rc_end *a = &pair->a, *b = &pair->b;
    bool started = false;

    rc_fill(a->buffer, 8192, first, 0);
    for (uint64_t i = 0; i < BATCH; i++) {
        if (opcodes[i % 6] != IBV_WR_RDMA_WRITE && opcodes[i % 6] != IBV_WR_RDMA_READ)
            rc_post_recv(b, first + i, 8192 + 256 * i, 256);
        rc_post(a, b, opcodes[i % 6], first + i, opcodes[i % 6] == IBV_WR_RDMA_READ ? 16384 : 0,
                8192 + 256 * i, 100 + i, IBV_SEND_SIGNALED);
    }
    for (uint64_t i = 0; i < BATCH; i++) {
        i == 0 ? start(a->send_cq_ex) : next(a->send_cq_ex);
        check_entry(a->send_cq_ex, a, first + i, results[i % 6]);
        if (results[i % 6] == IBV_WC_RDMA_READ)
            CHECK(ibv_wc_read_byte_len(a->send_cq_ex) == 100 + i, "%u bytes read",
                  ibv_wc_read_byte_len(a->send_cq_ex));
    }
    ibv_end_poll(a->send_cq_ex);
    for (uint64_t i = 0; i < BATCH; i++) {
        enum ibv_wr_opcode opcode = opcodes[i % 6];
        bool immediate = opcode == IBV_WR_RDMA_WRITE_WITH_IMM || opcode == IBV_WR_SEND_WITH_IMM;
        struct ibv_cq_ex *cq = b->recv_cq_ex;
        unsigned int flags;

        if (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_READ)
            continue;
        started ? next(cq) : start(cq);
        started = true;
        check_entry(cq, b, first + i,
                    opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
        CHECK(ibv_wc_read_byte_len(cq) == 100 + i, "%u bytes received", ibv_wc_read_byte_len(cq));
        flags = ibv_wc_read_wc_flags(cq);
        CHECK(!!(flags & IBV_WC_WITH_IMM) == immediate, "flags 0x%x", flags);
        if (immediate)
            CHECK(ibv_wc_read_imm_data(cq) == rc_immediate(first + i), "immediate 0x%x",
                  ibv_wc_read_imm_data(cq));
        CHECK(ibv_wc_read_src_qp(cq) == 0 || ibv_wc_read_src_qp(cq) == a->qp->qp_num,
              "source QP 0x%x", ibv_wc_read_src_qp(cq));
        CHECK(ibv_wc_read_sl(cq) == 0 && ibv_wc_read_dlid_path_bits(cq) == 0,
              "service level %u, path bits %u", ibv_wc_read_sl(cq), ibv_wc_read_dlid_path_bits(cq));
        rc_verify(b->buffer + 8192 + 256 * i, 100 + i, first, 0, "received");
    }
    ibv_end_poll(b->recv_cq_ex);
}

/* One bad request between good ones: the entries say which, why, and what became of the rest. */
static void errors(struct rc_pair *pair)
{
    struct rc_end *a = &pair->a;
    struct ibv_sge good = rc_sge(a, 0, 8), bad = good;
    struct ibv_send_wr wr[3];

    bad.lkey ^= 0x55500;
    for (unsigned int i = 0; i < 3; i++)
        wr[i] = (struct ibv_send_wr){
            .wr_id = i,
            .next = i < 2 ? &wr[i + 1] : NULL,
            .sg_list = i == 1 ? &bad : &good,
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_SIGNALED,
            .wr.rdma = {.remote_addr = (uintptr_t)pair->b.buffer, .rkey = pair->b.mr->rkey},
        };
    rc_post_chain(a, wr);
    start(a->send_cq_ex);
    check_entry(a->send_cq_ex, a, 0, IBV_WC_RDMA_WRITE);
    next(a->send_cq_ex);
    CHECK(a->send_cq_ex->status == IBV_WC_LOC_PROT_ERR && a->send_cq_ex->wr_id == 1,
          "request %llu: %s", (unsigned long long)a->send_cq_ex->wr_id,
          ibv_wc_status_str(a->send_cq_ex->status));
    CHECK(ibv_wc_read_qp_num(a->send_cq_ex) == a->qp->qp_num, "QP 0x%x",
          ibv_wc_read_qp_num(a->send_cq_ex));
    next(a->send_cq_ex);
    CHECK(a->send_cq_ex->status == IBV_WC_WR_FLUSH_ERR && a->send_cq_ex->wr_id == 2,
          "request %llu: %s", (unsigned long long)a->send_cq_ex->wr_id,
          ibv_wc_status_str(a->send_cq_ex->status));
    ibv_end_poll(a->send_cq_ex);
}

static void standard_fields(void)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    options.extended_cq = true;
    rc_start(&pair, &options);
    expect_empty(pair.a.send_cq_ex);
    for (uint64_t i = 0; i < 500; i++) {
        lap(&pair, i * BATCH);
        expect_empty(pair.a.send_cq_ex);
        expect_empty(pair.b.recv_cq_ex);
    }
    /* Such a CQ may be polled the old way too. */
    rc_post(&pair.a, &pair.b, IBV_WR_RDMA_READ, 7, 0, 0, 8, IBV_SEND_SIGNALED);
    rc_expect(pair.a.send_cq, &pair.a, 7, IBV_WC_RDMA_READ);
    errors(&pair);
    rc_destroy(&pair);
}

/* 128-byte entries, chosen for one CQ by mlx5dv_create_cq. */
static void large_entries(void)
{
    struct ibv_context *context = rc_open();
    struct ibv_cq_init_attr_ex attr = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
                                     .cqe_size = 128};
    struct rc_options options = rc_defaults();
    struct ibv_qp_init_attr init = {
        .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct rc_pair pair;

    options.extended_cq = true;
    rc_create(&pair, context, &options);
    CHECK(ibv_destroy_qp(pair.a.qp) == 0, "ibv_destroy_qp failed");
    CHECK(ibv_destroy_cq(pair.a.send_cq) == 0, "ibv_destroy_cq failed");
    pair.a.send_cq_ex = mlx5dv_create_cq(context, &attr, &dv);
    CHECK(pair.a.send_cq_ex, "mlx5dv_create_cq with 128-byte entries: %s", strerror(errno));
    pair.a.send_cq = ibv_cq_ex_to_cq(pair.a.send_cq_ex);
    init.send_cq = pair.a.send_cq;
    init.recv_cq = pair.a.recv_cq;
    pair.a.qp = ibv_create_qp(pair.pd, &init);
    CHECK(pair.a.qp, "ibv_create_qp: %s", strerror(errno));
    rc_connect(&pair);
    for (uint64_t i = 0; i < 100; i++)
        lap(&pair, i * BATCH);
    errors(&pair);
    rc_destroy(&pair);
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
}

int main(void)
{
    standard_fields();
    large_entries();
    return 0;
}
