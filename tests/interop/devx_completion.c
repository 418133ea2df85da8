/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: completion queues made by DEVX keep the PRM's rules: a collapsed one holds the newest CQE
 * in its first slot, one that ignores overruns goes on around, one that does not takes no more and
 * fails its queue pair; owner bits flip each lap. Memory keys may count from any address, 0
 * included.
 */
#include "devx_pair.h"

#include <errno.h>

static struct devx_pair pair;

static uint32_t post_nop(uint32_t flags)
{
    struct wqe wqe;
    wqe_begin(&wqe, M5_OP_NOP, 0, flags, 0);
    return devx_post(&pair, &pair.a, &wqe);
}

/* ---- Collapsed: what GPU-initiated libraries use ---- */

static struct cqe wait_collapsed(uint32_t index)
{
    uint64_t end = devx_now_ns() + DEVX_PATIENCE_NS;
    const uint8_t *at = devx_slot(&pair.a.send_cq, 0);
    struct cqe cqe;

    do {
        /* The device stores the last 8 bytes as one. */
        uint64_t tail =
            __atomic_load_n((const uint64_t *)(const void *)(at + 56), __ATOMIC_ACQUIRE);
        uint32_t last = __builtin_bswap32((uint32_t)(tail >> 32));
        cqe = cqe_read(at);
        if (last >> 4 != 0xf && last >> 16 == index && (last >> 4 & 0xf) != M5_CQE_INVALID)
            return cqe;
    } while (devx_now_ns() < end);
    CHECK(false, "WQE 0x%x never showed in the collapsed CQ; it shows 0x%x", index,
          cqe.wqe_counter);
    return cqe;
}

static void collapsed(uint32_t cqe_bytes)
{
    struct devx_options options = devx_defaults();
    options.collapsed = options.ignore_overrun = true;
    options.cqe_bytes = cqe_bytes;
    options.cq_depth_log2 = 0; /* one slot */
    devx_start(&pair, &options);
    for (uint32_t i = 0; i < 70000; i++) { /* the counter wraps */
        uint32_t index = post_nop(M5_CTRL_CQ_UPDATE);
        struct cqe cqe = wait_collapsed(index);
        CHECK(cqe.opcode == M5_CQE_REQUESTER, "CQE opcode 0x%x", cqe.opcode);
        CHECK(index == (i & 0xffff), "index 0x%x at WQE %u", index, i);
    }
    struct wqe wqe;
    wqe_begin(&wqe, M5_OP_WRITE, 0, 0, 0);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey ^ 1);
    wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, 8);
    struct cqe cqe = wait_collapsed(devx_post(&pair, &pair.a, &wqe));
    CHECK(cqe.opcode == M5_CQE_REQUESTER_ERROR && cqe.syndrome == M5_SYN_REMOTE_ACCESS,
          "CQE opcode 0x%x, syndrome 0x%x", cqe.opcode, cqe.syndrome);
    devx_destroy(&pair);
}

/* ---- More CQEs than slots ---- */

static uint32_t query_cq(const struct devx_cq *cq, enum m5_prm_field field)
{
    uint8_t in[m5_query_cq_in_bytes] = {M5_CMD_QUERY_CQ >> 8, M5_CMD_QUERY_CQ & 0xff};
    uint8_t out[m5_query_cq_out_bytes] = {0};
    bytes_put32(in + 8, cq->cqn);
    CHECK(mlx5dv_devx_obj_query(cq->object, in, sizeof(in), out, sizeof(out)) == 0, "QUERY_CQ: %s",
          strerror(errno));
    uint32_t word = bytes_get32(out + m5_query_cq_out_cq_context + M5_PRM_BIT(field) / 32 * 4);
    return word << M5_PRM_BIT(field) % 32 >> (32 - M5_PRM_WIDTH(field));
}

static void wait_until(bool (*done)(void), const char *what)
{
    uint64_t end = devx_now_ns() + DEVX_PATIENCE_NS;
    while (!done())
        CHECK(devx_now_ns() < end, "never: %s", what);
}

static bool all_executed(void)
{
    return devx_query(&pair.a, m5_qpc_hw_sq_wqebb_counter) == (pair.a.posted & 0xffff);
}

static bool requester_failed(void)
{
    return devx_query(&pair.a, m5_qpc_state) == M5_QPC_ERR;
}

/* 8 slots, 20 CQEs, no consumer: slot i holds the newest that falls there. */
static void overrun_ignored(void)
{
    struct devx_options options = devx_defaults();
    options.ignore_overrun = true;
    options.cq_depth_log2 = 3;
    devx_start(&pair, &options);
    for (int i = 0; i < 20; i++)
        post_nop(M5_CTRL_CQ_UPDATE);
    wait_until(all_executed, "20 WQEs executed");
    for (uint32_t slot = 0; slot < 8; slot++) {
        uint32_t newest = slot < 4 ? 16 + slot : 8 + slot;
        struct cqe cqe = cqe_read(devx_slot(&pair.a.send_cq, slot));
        CHECK(cqe.opcode == M5_CQE_REQUESTER && cqe.wqe_counter == newest,
              "slot %u: opcode 0x%x, counter %u, wanted %u", slot, cqe.opcode, cqe.wqe_counter,
              newest);
        CHECK(cqe.owner == (newest >> 3 & 1), "slot %u: owner %u in lap %u", slot, cqe.owner,
              newest >> 3);
    }
    CHECK(query_cq(&pair.a.send_cq, m5_cqc_status) == M5_CQC_STATUS_OK, "the CQ failed");
    devx_destroy(&pair);
}

/* 8 slots, full: the ninth CQE fails CQ and queue pair, and overwrites nothing. */
static void overrun(void)
{
    struct devx_options options = devx_defaults();
    options.cq_depth_log2 = 3;
    devx_start(&pair, &options);
    for (int i = 0; i < 24; i++)
        devx_expect(&pair.a, M5_OP_NOP, post_nop(M5_CTRL_CQ_UPDATE), 0);
    for (int i = 0; i < 8; i++)
        post_nop(M5_CTRL_CQ_UPDATE);
    wait_until(all_executed, "as many as there are slots executed");
    CHECK(devx_query(&pair.a, m5_qpc_state) == M5_QPC_RTS, "a full CQ is no error");
    CHECK(query_cq(&pair.a.send_cq, m5_cqc_status) == M5_CQC_STATUS_OK, "a full CQ is no error");
    post_nop(0); /* needs no CQE */
    wait_until(all_executed, "an unsignalled WQE with the CQ full");
    CHECK(devx_query(&pair.a, m5_qpc_state) == M5_QPC_RTS, "an unsignalled WQE needs no slot");
    post_nop(M5_CTRL_CQ_UPDATE);
    wait_until(requester_failed, "the queue pair in error");
    CHECK(query_cq(&pair.a.send_cq, m5_cqc_status) == M5_CQC_STATUS_OVERFLOW,
          "the CQ's status is 0x%x", query_cq(&pair.a.send_cq, m5_cqc_status));
    for (uint32_t i = 0; i < 8; i++) {
        struct cqe cqe = devx_poll(&pair.a.send_cq);
        CHECK(cqe.wqe_counter == 24 + i, "slot %u: counter %u", i, cqe.wqe_counter);
    }
    devx_expect_none(&pair.a.send_cq, 5);
    devx_destroy(&pair);
}

/* ---- Keys that do not count from the program's addresses ---- */

static void write_through(uint64_t raddr, struct ibv_mr *remote, const void *laddr,
                          struct ibv_mr *local, uint32_t syndrome)
{
    struct wqe wqe;
    memset(pair.b.payload, 0, 8192);
    for (int i = 0; i < 100; i++)
        pair.a.payload[i] = (uint8_t)(i + 1);
    wqe_begin(&wqe, M5_OP_WRITE, 0, M5_CTRL_CQ_UPDATE, 0);
    wqe_raddr(&wqe, raddr, remote->rkey);
    wqe_data(&wqe, laddr, local->lkey, 100);
    uint32_t index = devx_post(&pair, &pair.a, &wqe);
    if (syndrome) {
        devx_expect_error(&pair.a, M5_OP_WRITE, index, syndrome);
        devx_recover(&pair);
        return;
    }
    devx_expect(&pair.a, M5_OP_WRITE, index, 100);
    CHECK(memcmp(pair.b.payload + 4096, pair.a.payload, 100) == 0, "written elsewhere");
}

static void keys(void)
{
    static const uint64_t starts[] = {0, 4096, 0x7fffffff0000, UINT64_MAX - 8191};
    struct devx_options options = devx_defaults();
    unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

    devx_start(&pair, &options);
    for (int i = 0; i < 4; i++) {
        uint64_t start = starts[i];
        struct ibv_mr *to = ibv_reg_mr_iova(pair.pd, pair.b.payload + 4096, 4096, start, access);
        struct ibv_mr *from = ibv_reg_mr_iova(pair.pd, pair.a.payload, 4096, start, access);
        CHECK(to && from, "ibv_reg_mr_iova at 0x%llx: %s", (unsigned long long)start,
              strerror(errno));
        write_through(start, to, (void *)(uintptr_t)start, from, 0);
        write_through(start + 3997, to, (void *)(uintptr_t)start, from, M5_SYN_REMOTE_ACCESS);
        write_through((uintptr_t)pair.b.payload + 4096, to, (void *)(uintptr_t)start, from,
                      M5_SYN_REMOTE_ACCESS);
        write_through(start - 1, to, (void *)(uintptr_t)start, from, M5_SYN_REMOTE_ACCESS);
        write_through(start, to, (void *)(uintptr_t)(start + 3997), from, M5_SYN_LOCAL_PROTECTION);
        ibv_dereg_mr(to);
        ibv_dereg_mr(from);
    }
    struct ibv_mr *zero =
        ibv_reg_mr(pair.pd, pair.b.payload + 4096, 4096, access | IBV_ACCESS_ZERO_BASED);
    CHECK(zero, "ibv_reg_mr with IBV_ACCESS_ZERO_BASED: %s", strerror(errno));
    write_through(0, zero, pair.a.payload, pair.a.mr, 0);
    uint32_t old = zero->rkey;
    ibv_dereg_mr(zero);
    zero = ibv_reg_mr(pair.pd, pair.b.payload + 4096, 4096, access);
    CHECK(zero && zero->rkey != old, "a key is given out again at once");
    ibv_dereg_mr(zero);
    devx_destroy(&pair);
}

int main(void)
{
    collapsed(64);
    collapsed(128);
    overrun_ignored();
    overrun();
    keys();
    return 0;
}
