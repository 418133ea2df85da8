/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: every error of RC ends the WQE with its syndrome on both sides, the QP is in error, what
 * was posted behind it is flushed in order, and after a reset the same queues work. Malformed WQEs
 * (length 0, longer than what was published, inline longer than the WQE, unknown opcode) are local
 * QP operation errors.
 */
#include "devx_pair.h"

static struct devx_pair pair;

static void begin(struct wqe *wqe, uint32_t opcode)
{
    wqe_begin(wqe, opcode, 0, M5_CTRL_CQ_UPDATE, 0);
}

static void plain_write(struct wqe *wqe, uint32_t flags)
{
    wqe_begin(wqe, M5_OP_WRITE, 0, flags, 0);
    wqe_raddr(wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
    wqe_data(wqe, pair.a.payload, pair.a.mr->lkey, 8);
}

/* The queues work; leaves them at index 1. */
static void works(void)
{
    struct wqe wqe;
    plain_write(&wqe, M5_CTRL_CQ_UPDATE);
    devx_expect(&pair.a, M5_OP_WRITE, devx_post(&pair, &pair.a, &wqe), 8);
}

/* What happens to the receiver. */
enum peer {
    PEER_LIVES,
    PEER_FAILS,
};

/*
 * Posts `bad`, unsignalled if asked, with two WQEs of 1 and 2 blocks behind it in the same
 * doorbell. The first ends with `syndrome`, the others are flushed, as is one posted later; then
 * everything is reset and works again.
 */
static void ends_with(const char *what, struct wqe *bad, uint32_t syndrome, enum peer peer)
{
    uint32_t opcode = bad->bytes[3], bad_index, index[3];
    struct wqe next, longer;

    printf("%s\n", what);
    plain_write(&next, 0);
    plain_write(&longer, M5_CTRL_CQ_UPDATE);
    wqe_data(&longer, pair.a.payload, pair.a.mr->lkey, 8);
    wqe_data(&longer, pair.a.payload, pair.a.mr->lkey, 8);
    bad_index = devx_write_wqe(&pair, &pair.a, bad);
    index[0] = devx_write_wqe(&pair, &pair.a, &next);
    index[1] = devx_write_wqe(&pair, &pair.a, &longer);
    devx_ring(&pair, &pair.a, &longer);
    devx_expect_error(&pair.a, opcode, bad_index, syndrome);
    devx_expect_error(&pair.a, M5_OP_WRITE, index[0], M5_SYN_FLUSHED);
    devx_expect_error(&pair.a, M5_OP_WRITE, index[1], M5_SYN_FLUSHED);
    index[2] = devx_post(&pair, &pair.a, &next);
    devx_expect_error(&pair.a, M5_OP_WRITE, index[2], M5_SYN_FLUSHED);
    CHECK(devx_query(&pair.a, m5_qpc_state) == M5_QPC_ERR, "the requester is not in error");
    CHECK((devx_query(&pair.b, m5_qpc_state) == M5_QPC_ERR) == (peer == PEER_FAILS),
          "the responder is in state %u", devx_query(&pair.b, m5_qpc_state));
    devx_expect_none(&pair.a.send_cq, 2);
    devx_expect_none(&pair.b.recv_cq, 2);
    devx_recover(&pair);
    works();
}

/* ---- Local errors ---- */

static void local_errors(void)
{
    struct wqe wqe;

    begin(&wqe, M5_OP_WRITE);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey ^ 1, 8);
    ends_with("lkey of another variant", &wqe, M5_SYN_LOCAL_PROTECTION, PEER_LIVES);

    begin(&wqe, M5_OP_WRITE);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
    wqe_data(&wqe, pair.a.payload, 0xffffff00, 8);
    ends_with("lkey beyond the table", &wqe, M5_SYN_LOCAL_PROTECTION, PEER_LIVES);

    begin(&wqe, M5_OP_SEND);
    wqe_data(&wqe, pair.a.payload + DEVX_PAYLOAD_BYTES - 7, pair.a.mr->lkey, 8);
    ends_with("one byte beyond the local region", &wqe, M5_SYN_LOCAL_PROTECTION, PEER_LIVES);

    begin(&wqe, M5_OP_WRITE);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 0); /* 0 stands for 2 GiB */
    ends_with("2 GiB of a small region", &wqe, M5_SYN_LOCAL_PROTECTION, PEER_LIVES);

    struct ibv_mr *readable = ibv_reg_mr(pair.pd, pair.a.payload, 4096, 0);
    CHECK(readable, "ibv_reg_mr without local write");
    begin(&wqe, M5_OP_READ);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
    wqe_data(&wqe, pair.a.payload, readable->lkey, 8);
    ends_with("a read into memory without local write", &wqe, M5_SYN_LOCAL_PROTECTION, PEER_LIVES);
    ibv_dereg_mr(readable);

    begin(&wqe, M5_OP_ATOMIC_FA);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
    wqe_operands64(&wqe, 1, 0);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 16);
    ends_with("an atomic's answer of 16 bytes", &wqe, M5_SYN_LOCAL_LENGTH, PEER_LIVES);
}

/* ---- Remote errors ---- */

static void remote_errors(void)
{
    struct wqe wqe;

    begin(&wqe, M5_OP_WRITE);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey ^ 0x80);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 8);
    ends_with("bad rkey", &wqe, M5_SYN_REMOTE_ACCESS, PEER_FAILS);

    begin(&wqe, M5_OP_READ);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload + DEVX_PAYLOAD_BYTES - 4, pair.b.mr->rkey);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 8);
    ends_with("a read beyond the region", &wqe, M5_SYN_REMOTE_ACCESS, PEER_FAILS);

    begin(&wqe, M5_OP_WRITE);
    wqe_raddr(&wqe, UINT64_MAX - 3, pair.b.mr->rkey);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 8);
    ends_with("an address that wraps", &wqe, M5_SYN_REMOTE_ACCESS, PEER_FAILS);

    struct ibv_mr *local = ibv_reg_mr(pair.pd, pair.b.payload, 4096, IBV_ACCESS_LOCAL_WRITE);
    CHECK(local, "ibv_reg_mr for local use");
    begin(&wqe, M5_OP_WRITE);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, local->rkey);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 8);
    ends_with("a region without remote write", &wqe, M5_SYN_REMOTE_ACCESS, PEER_FAILS);

    struct ibv_pd *pd = ibv_alloc_pd(pair.context);
    struct ibv_mr *foreign =
        ibv_reg_mr(pd, pair.b.payload, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(foreign, "ibv_reg_mr in another PD");
    begin(&wqe, M5_OP_WRITE);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, foreign->rkey);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 8);
    ends_with("a region of another PD", &wqe, M5_SYN_REMOTE_ACCESS, PEER_FAILS);
    ibv_dereg_mr(foreign);
    ibv_dealloc_pd(pd);

    begin(&wqe, M5_OP_ATOMIC_FA);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload + 4, pair.b.mr->rkey);
    wqe_operands64(&wqe, 1, 0);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 8);
    ends_with("a misaligned atomic", &wqe, M5_SYN_REMOTE_INVALID_REQUEST, PEER_FAILS);

    /* Of the receiver's list: too short, then with a key that is none. */
    struct devx_scatter small = {pair.b.payload, pair.b.mr->lkey, 7};
    begin(&wqe, M5_OP_SEND);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 8);
    devx_post_recv(&pair, &pair.b, &small, 1);
    devx_post_recv(&pair, &pair.b, &small, 1);
    uint32_t index = devx_post(&pair, &pair.a, &wqe);
    devx_expect_error(&pair.a, M5_OP_SEND, index, M5_SYN_REMOTE_INVALID_REQUEST);
    devx_expect_recv_error(&pair.b, 0, M5_SYN_LOCAL_LENGTH);
    devx_expect_recv_error(&pair.b, 1, M5_SYN_FLUSHED);
    devx_recover(&pair);
    works();

    struct devx_scatter unknown = {pair.b.payload, local->lkey, 64};
    ibv_dereg_mr(local);
    devx_post_recv(&pair, &pair.b, &unknown, 1);
    index = devx_post(&pair, &pair.a, &wqe);
    devx_expect_error(&pair.a, M5_OP_SEND, index, M5_SYN_REMOTE_OPERATION);
    devx_expect_recv_error(&pair.b, 0, M5_SYN_LOCAL_PROTECTION);
    devx_recover(&pair);
    works();
}

/* What the peer's queue pair does not allow, with a region that does. */
static void refused_by_qp(void)
{
    struct wqe wqe;

    pair.options.remote_read = pair.options.remote_write = pair.options.remote_atomic = false;
    static const uint32_t opcodes[] = {M5_OP_WRITE, M5_OP_READ, M5_OP_ATOMIC_FA};
    for (int i = 0; i < 3; i++) {
        devx_recover(&pair);
        begin(&wqe, opcodes[i]);
        wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
        if (opcodes[i] == M5_OP_ATOMIC_FA)
            wqe_operands64(&wqe, 1, 0);
        wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 8);
        uint32_t index = devx_post(&pair, &pair.a, &wqe);
        devx_expect_error(&pair.a, opcodes[i], index, M5_SYN_REMOTE_INVALID_REQUEST);
    }
    pair.options = devx_defaults();
    devx_recover(&pair);
    works();
}

/* ---- Nobody answers ---- */

static void retries(void)
{
    struct wqe wqe;

    /* The peer is in reset: C01, with WQEs queued behind. */
    pair.options.ack_timeout = 10; /* 4.2 ms */
    pair.options.retry_count = 2;
    pair.options.rnr_retry = 1;
    pair.options.min_rnr_timer = 12; /* 0.64 ms */
    devx_recover(&pair);
    devx_move(&pair.b, M5_CMD_2RST_QP);
    plain_write(&wqe, M5_CTRL_CQ_UPDATE);
    uint64_t start = devx_now_ns();
    uint32_t first = devx_write_wqe(&pair, &pair.a, &wqe);
    uint32_t second = devx_write_wqe(&pair, &pair.a, &wqe);
    devx_ring(&pair, &pair.a, &wqe);
    devx_expect_error(&pair.a, M5_OP_WRITE, first, M5_SYN_TRANSPORT_RETRY_EXCEEDED);
    CHECK(devx_now_ns() - start >= 3 * 4096ull * 1024, "given up after %llu ns, before 3 timeouts",
          (unsigned long long)(devx_now_ns() - start));
    devx_expect_error(&pair.a, M5_OP_WRITE, second, M5_SYN_FLUSHED);
    devx_recover(&pair);
    works();

    /* No receive WQE: once more, then given up; and in time the second time. */
    begin(&wqe, M5_OP_SEND);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 8);
    start = devx_now_ns();
    first = devx_post(&pair, &pair.a, &wqe);
    devx_expect_error(&pair.a, M5_OP_SEND, first, M5_SYN_RNR_RETRY_EXCEEDED);
    CHECK(devx_now_ns() - start >= 640000, "given up after %llu ns, before the RNR timer",
          (unsigned long long)(devx_now_ns() - start));
    pair.options.rnr_retry = 7; /* for ever */
    devx_recover(&pair);
    works();
    first = devx_post(&pair, &pair.a, &wqe);
    devx_expect_none(&pair.a.send_cq, 20);
    struct devx_scatter whole = {pair.b.payload, pair.b.mr->lkey, 64};
    devx_post_recv(&pair, &pair.b, &whole, 1);
    devx_expect(&pair.a, M5_OP_SEND, first, 8);
    devx_poll(&pair.b.recv_cq);
    pair.options = devx_defaults();
    devx_recover(&pair);
}

/* ---- Malformed WQEs ---- */

/* As ends_with(), for a WQE whose second word is spoiled after its index and QPN are written. */
static void spoiled(const char *what, struct wqe *wqe, uint32_t segments)
{
    printf("%s\n", what);
    uint32_t opcode = wqe->bytes[3], index = devx_write_wqe(&pair, &pair.a, wqe);
    uint64_t slot = index & ((1u << pair.options.sq_depth_log2) - 1);
    pair.a.sq[slot * 64 + 7] = (uint8_t)segments;
    devx_ring(&pair, &pair.a, wqe);
    devx_expect_error(&pair.a, opcode, index, M5_SYN_LOCAL_QP_OP);
    CHECK(devx_query(&pair.a, m5_qpc_state) == M5_QPC_ERR, "the requester is not in error");
    devx_recover(&pair);
    works();
}

static void malformed(void)
{
    struct wqe wqe;

    plain_write(&wqe, M5_CTRL_CQ_UPDATE);
    spoiled("length 0", &wqe, 0);
    spoiled("one block published, two announced", &wqe, 5);
    spoiled("one block published, sixteen announced", &wqe, 63);
    spoiled("a control segment alone", &wqe, 1);

    begin(&wqe, M5_OP_ATOMIC_FA);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
    wqe_operands64(&wqe, 1, 0);
    spoiled("an atomic without operands", &wqe, 2);

    wqe_begin(&wqe, M5_OP_ATOMIC_MASKED_FA, 0x0a, M5_CTRL_CQ_UPDATE, 0);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
    wqe_operands64(&wqe, 1, 0);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 8);
    ends_with("a masked atomic of 16 bytes", &wqe, M5_SYN_LOCAL_QP_OP, PEER_LIVES);

    begin(&wqe, M5_OP_WRITE);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
    wqe_inline(&wqe, pair.a.payload, 28);
    wqe.bytes[32 + 3] = 29; /* one more than the WQE holds */
    ends_with("inline beyond the WQE", &wqe, M5_SYN_LOCAL_QP_OP, PEER_LIVES);
    memset(wqe.bytes + 32, 0xff, 4);
    wqe.used = 64;
    ends_with("2 GiB of inline", &wqe, M5_SYN_LOCAL_QP_OP, PEER_LIVES);

    begin(&wqe, M5_OP_READ);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
    wqe_inline(&wqe, pair.a.payload, 8);
    ends_with("a read into inline memory", &wqe, M5_SYN_LOCAL_QP_OP, PEER_LIVES);

    for (uint32_t opcode = 0; opcode < 256; opcode++) {
        if (opcode == M5_OP_NOP || (opcode >= M5_OP_WRITE && opcode <= M5_OP_SEND_IMM) ||
            (opcode >= M5_OP_READ && opcode <= M5_OP_ATOMIC_FA) ||
            opcode == M5_OP_ATOMIC_MASKED_CS || opcode == M5_OP_ATOMIC_MASKED_FA)
            continue;
        begin(&wqe, opcode);
        wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
        uint32_t index = devx_post(&pair, &pair.a, &wqe);
        devx_expect_error(&pair.a, opcode, index, M5_SYN_LOCAL_QP_OP);
        devx_recover(&pair);
    }
    works();
}

int main(void)
{
    struct devx_options options = devx_defaults();
    devx_start(&pair, &options);
    works();
    local_errors();
    remote_errors();
    refused_by_qp();
    retries();
    malformed();
    devx_destroy(&pair);
    return 0;
}
