/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the ibv_wr_* calls (ibv_wr_post(3)) post the same operations as ibv_post_send, alone and
 * in batches, from one entry, lists, inline data and inline lists; an aborted or refused batch
 * leaves no trace; a raw request (mlx5dv_wr_raw_wqe) carries the masked atomics and NOP that verbs
 * lack.
 */
#include "rc_pair.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

enum {
    ALL_OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
              IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
              IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
    INLINE = 200,
    SGE = 8,
    DEPTH = 64,
    TARGET = 32768, /* offset of what a request works on, in both buffers */
};

enum form { ONE_ENTRY, ENTRY_LIST, INLINE_DATA, INLINE_LIST };

/* Completes the request begun on `qp` with `bytes` from offset `from`, in the given form. */
static void set_data(struct ibv_qp_ex *qp, const struct rc_end *end, enum form form, size_t from,
                     size_t bytes, size_t pieces)
{
    struct ibv_sge list[SGE];
    struct ibv_data_buf buffers[SGE];

    for (size_t i = 0; i < pieces; i++) {
        size_t start = bytes * i / pieces, stop = bytes * (i + 1) / pieces;

        list[i] = rc_sge(end, from + start, stop - start);
        buffers[i] =
            (struct ibv_data_buf){.addr = end->buffer + from + start, .length = stop - start};
    }
    switch (form) {
    case ONE_ENTRY:
        ibv_wr_set_sge(qp, end->mr->lkey, (uintptr_t)end->buffer + from, (uint32_t)bytes);
        break;
    case ENTRY_LIST:
        ibv_wr_set_sge_list(qp, pieces, list);
        break;
    case INLINE_DATA:
        ibv_wr_set_inline_data(qp, end->buffer + from, bytes);
        break;
    case INLINE_LIST:
        ibv_wr_set_inline_data_list(qp, pieces, buffers);
        break;
    }
}

static void complete(struct ibv_qp_ex *qp)
{
    int err = ibv_wr_complete(qp);

    CHECK(err == 0, "ibv_wr_complete: %s", strerror(err));
}

static struct ibv_qp_ex *begin(const struct rc_end *end, uint64_t wr_id)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);

    ibv_wr_start(qp);
    qp->wr_id = wr_id;
    qp->wr_flags = IBV_SEND_SIGNALED;
    return qp;
}

/* One outgoing operation in one form, checked to the byte. */
static void outgoing(struct rc_pair *pair, enum ibv_wr_opcode opcode, enum form form, size_t bytes,
                     size_t pieces, uint64_t wr_id)
{
    struct rc_end *a = &pair->a, *b = &pair->b;
    uint64_t raddr = (uintptr_t)b->buffer + TARGET;
    bool writes = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    struct ibv_qp_ex *qp;

    rc_fill(a->buffer + TARGET, bytes, wr_id, 0);
    memset(b->buffer + TARGET - 8, 0xee, bytes + 16);
    if (opcode != IBV_WR_RDMA_WRITE)
        rc_post_recv(b, 1, writes ? 0 : TARGET, writes ? 0 : bytes);
    qp = begin(a, wr_id);
    if (opcode == IBV_WR_RDMA_WRITE)
        ibv_wr_rdma_write(qp, b->mr->rkey, raddr);
    else if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        ibv_wr_rdma_write_imm(qp, b->mr->rkey, raddr, rc_immediate(wr_id));
    else if (opcode == IBV_WR_SEND)
        ibv_wr_send(qp);
    else
        ibv_wr_send_imm(qp, rc_immediate(wr_id));
    set_data(qp, a, form, TARGET, bytes, pieces);
    complete(qp);
    rc_expect(a->send_cq, a, wr_id, writes ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
    if (opcode != IBV_WR_RDMA_WRITE) {
        struct ibv_wc wc =
            rc_expect(b->recv_cq, b, 1, writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);

        CHECK(wc.byte_len == bytes, "%u bytes received, %zu sent", wc.byte_len, bytes);
        CHECK(opcode == IBV_WR_SEND || wc.imm_data == rc_immediate(wr_id), "immediate 0x%x",
              wc.imm_data);
    }
    rc_verify(b->buffer + TARGET, bytes, wr_id, 0, "posted through ibv_wr");
    rc_verify_constant(b->buffer + TARGET - 8, 8, 0xee, "before the target");
    rc_verify_constant(b->buffer + TARGET + bytes, 8, 0xee, "after the target");
}

static void all_forms(struct rc_pair *pair)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                                 IBV_WR_SEND, IBV_WR_SEND_WITH_IMM};
    static const size_t sizes[] = {0, 1, 8, 16, 17, 31, 64, 100, INLINE, 4096, 32000};
    uint64_t wr_id = 0;

    for (size_t o = 0; o < 4; o++) {
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            outgoing(pair, opcodes[o], ONE_ENTRY, sizes[s], 1, ++wr_id);
            for (size_t pieces = 1; pieces <= SGE; pieces++)
                outgoing(pair, opcodes[o], ENTRY_LIST, sizes[s], pieces, ++wr_id);
            if (sizes[s] > INLINE)
                continue;
            outgoing(pair, opcodes[o], INLINE_DATA, sizes[s], 1, ++wr_id);
            for (size_t pieces = 1; pieces <= SGE; pieces++)
                outgoing(pair, opcodes[o], INLINE_LIST, sizes[s], pieces, ++wr_id);
        }
    }
}

static void incoming(struct rc_pair *pair)
{
    struct rc_end *a = &pair->a, *b = &pair->b;
    uint64_t raddr = (uintptr_t)b->buffer + TARGET;
    uint64_t value = 41, seen;

    for (size_t pieces = 1; pieces <= SGE; pieces++) {
        struct ibv_qp_ex *qp = begin(a, pieces);

        memset(a->buffer + TARGET, 0, 30000);
        rc_fill(b->buffer + TARGET, 30000, pieces, 0);
        ibv_wr_rdma_read(qp, b->mr->rkey, raddr);
        set_data(qp, a, ENTRY_LIST, TARGET, 30000, pieces);
        complete(qp);
        CHECK(rc_expect(a->send_cq, a, pieces, IBV_WC_RDMA_READ).byte_len == 30000,
              "not all was read");
        rc_verify(a->buffer + TARGET, 30000, pieces, 0, "read");
    }
    memcpy(b->buffer + TARGET, &value, 8);
    for (int i = 0; i < 3; i++) {
        /* 41 -> 42 by addition, 42 -> 7 by a swap that hits, 7 stays as the swap misses. */
        static const uint64_t before[] = {41, 42, 7}, after[] = {42, 7, 7};
        struct ibv_qp_ex *qp = begin(a, 50);

        if (i == 0)
            ibv_wr_atomic_fetch_add(qp, b->mr->rkey, raddr, 1);
        else
            ibv_wr_atomic_cmp_swp(qp, b->mr->rkey, raddr, 42, i == 1 ? 7 : 9);
        set_data(qp, a, ONE_ENTRY, TARGET, 8, 1);
        complete(qp);
        rc_expect(a->send_cq, a, 50, i == 0 ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
        memcpy(&seen, a->buffer + TARGET, 8);
        CHECK(seen == before[i], "atomic %d returned %llu", i, (unsigned long long)seen);
        memcpy(&seen, b->buffer + TARGET, 8);
        CHECK(seen == after[i], "atomic %d left %llu", i, (unsigned long long)seen);
    }
}

static void add_write(struct ibv_qp_ex *qp, struct rc_pair *pair, uint64_t wr_id, size_t slot,
                      unsigned int flags)
{
    qp->wr_id = wr_id;
    qp->wr_flags = flags;
    ibv_wr_rdma_write(qp, pair->b.mr->rkey, (uintptr_t)pair->b.buffer + slot * 8);
    ibv_wr_set_inline_data(qp, &wr_id, 8);
}

static uint64_t slot_value(const struct rc_pair *pair, size_t slot)
{
    uint64_t value;

    memcpy(&value, pair->b.buffer + slot * 8, 8);
    return value;
}

/* A batch of 1 to 64 requests is executed in order, and only its signalled ones complete. */
static void batches(struct rc_pair *pair)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(pair->a.qp);
    uint64_t id = 1;

    for (int round = 0; round < 20; round++) {
        for (size_t n = 1; n <= DEPTH; n++) {
            ibv_wr_start(qp);
            for (size_t i = 0; i < n; i++)
                add_write(qp, pair, id + i, i, i == n - 1 ? IBV_SEND_SIGNALED : 0);
            complete(qp);
            rc_expect(pair->a.send_cq, &pair->a, id + n - 1, IBV_WC_RDMA_WRITE);
            for (size_t i = 0; i < n; i++)
                CHECK(slot_value(pair, i) == id + i, "slot %zu of %zu holds %llu", i, n,
                      (unsigned long long)slot_value(pair, i));
            id += n;
        }
    }
}

/* What ibv_wr_abort drops is never executed, and what is posted next takes its place. */
static void aborts(struct rc_pair *pair)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(pair->a.qp);

    memset(pair->b.buffer, 0, 8 * DEPTH);
    for (uint64_t round = 1; round <= 300; round++) {
        size_t n = round % DEPTH;

        ibv_wr_start(qp);
        for (size_t i = 0; i < n; i++)
            add_write(qp, pair, 0xbad, 1 + i, IBV_SEND_SIGNALED);
        ibv_wr_abort(qp);
        ibv_wr_start(qp);
        add_write(qp, pair, round, 0, IBV_SEND_SIGNALED);
        complete(qp);
        rc_expect(pair->a.send_cq, &pair->a, round, IBV_WC_RDMA_WRITE);
        CHECK(slot_value(pair, 0) == round, "slot 0 holds %llu",
              (unsigned long long)slot_value(pair, 0));
    }
    rc_expect_none(pair->a.send_cq, 5);
    rc_verify_constant(pair->b.buffer + 8, 8 * (DEPTH - 1), 0, "target of an aborted write");
}

/* A batch larger than the queue is refused as a whole, and the queue goes on. */
static void refused_batch(struct rc_pair *pair)
{
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(pair->a.qp);
    size_t room = pair->a.cap.max_send_wr;
    int err;

    memset(pair->b.buffer, 0, 8);
    ibv_wr_start(qp);
    for (size_t i = 0; i <= room; i++)
        add_write(qp, pair, 0xbad, 0, IBV_SEND_SIGNALED);
    err = ibv_wr_complete(qp);
    CHECK(err == ENOMEM, "a batch of %zu in a queue of %zu: %d (%s)", room + 1, room, err,
          strerror(err));
    rc_expect_none(pair->a.send_cq, 5);
    CHECK(slot_value(pair, 0) == 0, "a refused batch was executed");
    ibv_wr_start(qp);
    for (size_t i = 0; i < room; i++)
        add_write(qp, pair, i, i % DEPTH, i == room - 1 ? IBV_SEND_SIGNALED : 0);
    complete(qp);
    rc_expect(pair->a.send_cq, &pair->a, room - 1, IBV_WC_RDMA_WRITE);
}

static void unsupported_operations(struct rc_pair *pair)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = pair->a.send_cq,
        .recv_cq = pair->a.recv_cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pair->pd,
        .send_ops_flags = IBV_QP_EX_WITH_TSO,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(pair->context, &attr);

    CHECK(!qp && errno == EOPNOTSUPP, "an RC queue pair with TSO: %p, %s", (void *)qp,
          strerror(errno));
}

/* Posts one request of `units` 16-byte units built by hand; the library's part is the ring. */
static void post_raw(struct rc_end *end, void *wqe, uint32_t opcode, uint32_t opmod, uint32_t units,
                     uint64_t wr_id)
{
    struct mlx5dv_qp_ex *mqp = mlx5dv_qp_ex_from_ibv_qp_ex(begin(end, wr_id));
    struct mlx5_wqe_ctrl_seg *control = wqe;

    control->opmod_idx_opcode = htobe32(opmod << 24 | opcode);
    control->qpn_ds = htobe32(end->qp->qp_num << 8 | units);
    control->fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE;
    mlx5dv_wr_raw_wqe(mqp, wqe);
    complete(ibv_qp_to_qp_ex(end->qp));
    rc_expect(end->send_cq, end, wr_id, IBV_WC_DRIVER2);
}

/* The extended atomics of 8 bytes: opmod 8 | (log2(8) - 2), operands big-endian. `operands` of a
 * masked compare-and-swap are swap, compare, swap mask, compare mask; of a masked fetch-and-add the
 * addend and the mask whose bits are the top bits of its fields. Returns the old value. */
static uint64_t masked(struct rc_pair *pair, uint32_t opcode, const uint64_t *operands,
                       unsigned int n_operands)
{
    struct {
        struct mlx5_wqe_ctrl_seg control;
        struct mlx5_wqe_raddr_seg remote;
        uint64_t tail[8];
    } wqe = {.remote = {.raddr = htobe64((uintptr_t)pair->b.buffer + TARGET),
                        .rkey = htobe32(pair->b.mr->rkey)}};
    struct mlx5_wqe_data_seg data = {.byte_count = htobe32(8),
                                     .lkey = htobe32(pair->a.mr->lkey),
                                     .addr = htobe64((uintptr_t)pair->a.buffer + TARGET)};
    uint64_t old;

    for (unsigned int i = 0; i < n_operands; i++)
        wqe.tail[i] = htobe64(operands[i]);
    memcpy(wqe.tail + n_operands, &data, sizeof(data));
    post_raw(&pair->a, &wqe, opcode, 8 | 1, 2 + n_operands / 2 + 1, 60);
    memcpy(&old, pair->a.buffer + TARGET, 8);
    return old;
}

static void check_memory(const struct rc_pair *pair, uint64_t expected, const char *what)
{
    uint64_t seen = slot_value(pair, TARGET / 8);

    CHECK(seen == expected, "%s left 0x%llx, 0x%llx expected", what, (unsigned long long)seen,
          (unsigned long long)expected);
}

static void raw_requests(struct ibv_context *context)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;
    struct ibv_qp_init_attr_ex attr = {
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 4, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = ALL_OPS,
    };
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE};
    struct mlx5_wqe_ctrl_seg nop = {0};
    uint64_t value = 0x1122334455667788, old;

    rc_create(&pair, context, &options);
    CHECK(ibv_destroy_qp(pair.a.qp) == 0, "ibv_destroy_qp failed");
    attr.send_cq = pair.a.send_cq;
    attr.recv_cq = pair.a.recv_cq;
    attr.pd = pair.pd;
    pair.a.qp = mlx5dv_create_qp(context, &attr, &dv);
    CHECK(pair.a.qp, "mlx5dv_create_qp with raw requests: %s", strerror(errno));
    rc_connect(&pair);
    for (uint64_t i = 0; i < 100; i++)
        post_raw(&pair.a, &nop, MLX5_OPCODE_NOP, 0, 1, i);
    memcpy(pair.b.buffer + TARGET, &value, 8);
    old = masked(&pair, MLX5_OPCODE_ATOMIC_MASKED_CS,
                 (uint64_t[]){0xaaaaaaaabbbbbbbb, 0x7788, 0xffff0000, 0xffff}, 4);
    CHECK(old == value, "a masked swap returned 0x%llx", (unsigned long long)old);
    check_memory(&pair, 0x11223344bbbb7788, "a masked swap that hits");
    old =
        masked(&pair, MLX5_OPCODE_ATOMIC_MASKED_CS, (uint64_t[]){0, 0x7789, UINT64_MAX, 0xffff}, 4);
    CHECK(old == 0x11223344bbbb7788, "a masked swap returned 0x%llx", (unsigned long long)old);
    check_memory(&pair, 0x11223344bbbb7788, "a masked swap that misses");
    value = 0x00ff00ffffffffff;
    memcpy(pair.b.buffer + TARGET, &value, 8);
    /* Fields of 16 bits: no carry leaves its field. */
    old = masked(&pair, MLX5_OPCODE_ATOMIC_MASKED_FA,
                 (uint64_t[]){0x0001000100010001, 0x8000800080008000}, 2);
    CHECK(old == value, "a masked addition returned 0x%llx", (unsigned long long)old);
    check_memory(&pair, 0x0100010000000000, "a masked addition");
    /* No mask: one field of 64 bits. */
    old = masked(&pair, MLX5_OPCODE_ATOMIC_MASKED_FA, (uint64_t[]){UINT64_MAX, 0}, 2);
    CHECK(old == 0x0100010000000000, "a masked addition returned 0x%llx", (unsigned long long)old);
    check_memory(&pair, 0x0100010000000000 - 1, "an addition without mask");
    rc_destroy(&pair);
}

int main(void)
{
    struct ibv_context *context = rc_open();
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    options.send_ops = ALL_OPS;
    options.inline_bytes = INLINE;
    options.send_sge = options.recv_sge = SGE;
    options.send_depth = DEPTH;
    rc_create(&pair, context, &options);
    rc_connect(&pair);
    all_forms(&pair);
    incoming(&pair);
    batches(&pair);
    aborts(&pair);
    refused_batch(&pair);
    unsupported_operations(&pair);
    rc_destroy(&pair);
    raw_requests(context);
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
    return 0;
}
