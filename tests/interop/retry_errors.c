/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a receiver that is not ready is tried again as often and as slowly as rnr_retry and
 * min_rnr_timer say, a peer that does not answer as retry_cnt and timeout say (IBTA volume 1, 9.7.5
 * and 9.9.2.1); then the requester fails with the status for it, and only the requester. Upper
 * bounds are wide, as a machine may be busy; the lower ones are the specification's.
 */
#include "rc_pair.h"

#include <string.h>

#define MS 1000000ull

enum {
    RNR_20_MS = 22,     /* code for 20.48 ms */
    TIMEOUT_67_MS = 14, /* 4.096 us * 2^14 */
    TIMEOUT_1_S = 18,
    SLACK_MS = 2000,
};

static void post_send(const struct rc_pair *pair, uint64_t wr_id)
{
    rc_post(&pair->a, &pair->b, IBV_WR_SEND, wr_id, 0, 0, 8, IBV_SEND_SIGNALED);
}

static void post_write(const struct rc_pair *pair, uint64_t wr_id)
{
    rc_post(&pair->a, &pair->b, IBV_WR_RDMA_WRITE, wr_id, 0, 0, 8, IBV_SEND_SIGNALED);
}

static void check_elapsed(uint64_t begin, uint64_t least_ns, uint64_t most_ns)
{
    uint64_t elapsed = rc_now_ns() - begin;

    CHECK(elapsed >= least_ns && elapsed <= most_ns + SLACK_MS * MS,
          "failed after %llu us; %llu to %llu us (and some seconds) expected",
          (unsigned long long)elapsed / 1000, (unsigned long long)least_ns / 1000,
          (unsigned long long)most_ns / 1000);
}

/* No receive is posted: fails after rnr_retry waits of the responder's timer; the responder stays
 * good, and serves the requester again once that has been reset. */
static void rnr_exceeded(struct ibv_context *context, uint8_t retries, enum ibv_wr_opcode opcode)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;
    uint64_t begin;

    options.rnr_retry = retries;
    options.min_rnr_timer = RNR_20_MS;
    rc_create(&pair, context, &options);
    rc_connect(&pair);
    begin = rc_now_ns();
    rc_post(&pair.a, &pair.b, opcode, 1, 0, 0, 8, IBV_SEND_SIGNALED);
    rc_post(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 2, 0, 0, 8, IBV_SEND_SIGNALED);
    rc_expect_error(pair.a.send_cq, &pair.a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    check_elapsed(begin, retries * 20 * MS, retries * 21 * MS);
    rc_expect_error(pair.a.send_cq, &pair.a, 2, IBV_WC_WR_FLUSH_ERR);
    CHECK(rc_state(&pair.a) == IBV_QPS_ERR, "the requester is in state %d", (int)rc_state(&pair.a));
    CHECK(rc_state(&pair.b) == IBV_QPS_RTS, "the responder is in state %d", (int)rc_state(&pair.b));
    /* Nothing was taken, so the responder still expects the first packet. */
    rc_to_state(&pair.a, IBV_QPS_RESET);
    rc_to_init(&pair, &pair.a);
    rc_to_rtr(&pair, &pair.a, &pair.b, pair.b.qp->qp_num);
    rc_to_rts(&pair, &pair.a);
    rc_post_recv(&pair.b, 3, 0, 8);
    post_send(&pair, 4);
    rc_expect(pair.a.send_cq, &pair.a, 4, IBV_WC_SEND);
    rc_expect(pair.b.recv_cq, &pair.b, 3, IBV_WC_RECV);
    rc_destroy(&pair);
}

/* A receive that comes late, but within the retries, is used; what follows keeps its order. */
static void rnr_answered_late(struct ibv_context *context, uint8_t retries, unsigned int late_ms)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    options.rnr_retry = retries;
    options.min_rnr_timer = retries == 7 ? 1 : RNR_20_MS;
    rc_create(&pair, context, &options);
    rc_connect(&pair);
    memset(pair.b.buffer, 0, 64);
    memset(pair.a.buffer, 0x42, 64);
    post_send(&pair, 1);
    rc_post(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 2, 0, 16, 8, IBV_SEND_SIGNALED);
    rc_expect_none(pair.a.send_cq, late_ms);
    rc_verify_constant(pair.b.buffer, 64, 0, "memory behind a waiting send");
    rc_post_recv(&pair.b, 3, 32, 8);
    rc_expect(pair.a.send_cq, &pair.a, 1, IBV_WC_SEND);
    rc_expect(pair.a.send_cq, &pair.a, 2, IBV_WC_RDMA_WRITE);
    rc_expect(pair.b.recv_cq, &pair.b, 3, IBV_WC_RECV);
    rc_verify_constant(pair.b.buffer + 32, 8, 0x42, "a late receive");
    rc_verify_constant(pair.b.buffer + 16, 8, 0x42, "the write behind it");
    rc_destroy(&pair);
}

/* A waiting queue pair holds up no other one. */
static void rnr_holds_up_nobody(struct ibv_context *context)
{
    struct rc_options options = rc_defaults();
    struct rc_pair stuck, busy;

    options.min_rnr_timer = 0; /* 655 ms */
    rc_create(&stuck, context, &options);
    rc_connect(&stuck);
    rc_create(&busy, context, &options);
    rc_connect(&busy);
    post_send(&stuck, 1);
    rc_sleep_ms(2);
    {
        uint64_t begin = rc_now_ns();

        for (uint64_t i = 0; i < 1000; i++) {
            post_write(&busy, i);
            rc_expect(busy.a.send_cq, &busy.a, i, IBV_WC_RDMA_WRITE);
        }
        if (!RC_SANITIZED)
            CHECK(rc_now_ns() - begin < 600 * MS, "1000 writes took %llu ms beside a stuck queue",
                  (unsigned long long)((rc_now_ns() - begin) / MS));
    }
    rc_post_recv(&stuck.b, 2, 0, 8);
    rc_expect(stuck.a.send_cq, &stuck.a, 1, IBV_WC_SEND);
    rc_destroy(&stuck);
    rc_destroy(&busy);
}

enum absence { NO_SUCH_QP, DESTROYED, RESET, INIT, ERROR };

/* Connects `a` to a peer that will not answer. */
static void connect_to_nobody(struct rc_pair *pair, enum absence absence)
{
    uint32_t qpn = pair->b.qp->qp_num;

    switch (absence) {
    case NO_SUCH_QP:
        qpn = 0xfffff1;
        break;
    case DESTROYED:
    case RESET:
        break;
    case INIT:
        rc_to_init(pair, &pair->b);
        break;
    case ERROR:
        rc_to_init(pair, &pair->b);
        rc_to_rtr(pair, &pair->b, &pair->a, pair->a.qp->qp_num);
        rc_to_rts(pair, &pair->b);
        rc_to_state(&pair->b, IBV_QPS_ERR);
        break;
    }
    rc_to_init(pair, &pair->a);
    rc_to_rtr(pair, &pair->a, &pair->b, qpn);
    rc_to_rts(pair, &pair->a);
    if (absence == DESTROYED) {
        struct ibv_qp_init_attr init = {
            .send_cq = pair->b.send_cq,
            .recv_cq = pair->b.recv_cq,
            .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
            .qp_type = IBV_QPT_RC,
        };
        /* Its successor is only there for rc_destroy; it is in RESET if it got the same number. */
        CHECK(ibv_destroy_qp(pair->b.qp) == 0, "ibv_destroy_qp failed");
        pair->b.qp = ibv_create_qp(pair->pd, &init);
        CHECK(pair->b.qp, "ibv_create_qp failed");
    }
}

/* Fails after retry_cnt + 1 timeouts; a timeout may last up to four times its nominal length. */
static void nobody_answers(struct ibv_context *context, enum absence absence, uint8_t timeout,
                           uint8_t retries)
{
    struct rc_options options = rc_defaults();
    uint64_t nominal = 4096ull << timeout;
    struct rc_pair pair;
    uint64_t begin;

    options.timeout = timeout;
    options.retry_count = retries;
    rc_create(&pair, context, &options);
    connect_to_nobody(&pair, absence);
    begin = rc_now_ns();
    post_write(&pair, 1);
    post_send(&pair, 2);
    rc_expect_error(pair.a.send_cq, &pair.a, 1, IBV_WC_RETRY_EXC_ERR);
    check_elapsed(begin, (retries + 1u) * nominal, 4 * (retries + 1u) * nominal);
    rc_expect_error(pair.a.send_cq, &pair.a, 2, IBV_WC_WR_FLUSH_ERR);
    CHECK(rc_state(&pair.a) == IBV_QPS_ERR, "the requester is in state %d", (int)rc_state(&pair.a));
    rc_destroy(&pair);
}

/* Timeout 0 means to wait for ever. */
static void no_timeout(struct ibv_context *context)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    options.timeout = 0;
    options.retry_count = 0;
    rc_create(&pair, context, &options);
    connect_to_nobody(&pair, INIT);
    post_write(&pair, 1);
    rc_expect_none(pair.a.send_cq, 500);
    CHECK(rc_state(&pair.a) == IBV_QPS_RTS, "the requester is in state %d", (int)rc_state(&pair.a));
    rc_destroy(&pair);
}

/* A peer that gets ready within the retries is served; RTR is ready enough to answer. */
static void peer_ready_late(struct ibv_context *context)
{
    struct rc_pair pair;
    struct rc_options options = rc_defaults();

    rc_create(&pair, context, &options);
    connect_to_nobody(&pair, INIT);
    memset(pair.a.buffer, 0x42, 8);
    post_write(&pair, 1);
    rc_expect_none(pair.a.send_cq, 30);
    rc_to_rtr(&pair, &pair.b, &pair.a, pair.a.qp->qp_num);
    rc_expect(pair.a.send_cq, &pair.a, 1, IBV_WC_RDMA_WRITE);
    rc_verify_constant(pair.b.buffer, 8, 0x42, "written to a peer in RTR");
    rc_to_rts(&pair, &pair.b);
    rc_post_recv(&pair.a, 2, 64, 8);
    rc_post(&pair.b, &pair.a, IBV_WR_SEND, 3, 0, 0, 8, IBV_SEND_SIGNALED);
    rc_expect(pair.b.send_cq, &pair.b, 3, IBV_WC_SEND);
    rc_expect(pair.a.recv_cq, &pair.a, 2, IBV_WC_RECV);
    rc_destroy(&pair);
}

int main(void)
{
    struct ibv_context *context = rc_open();

    rnr_exceeded(context, 0, IBV_WR_SEND);
    rnr_exceeded(context, 2, IBV_WR_SEND);
    rnr_exceeded(context, 1, IBV_WR_RDMA_WRITE_WITH_IMM);
    rnr_answered_late(context, 6, 50);
    rnr_answered_late(context, 7, 300);
    rnr_holds_up_nobody(context);
    nobody_answers(context, NO_SUCH_QP, TIMEOUT_67_MS, 0);
    nobody_answers(context, NO_SUCH_QP, TIMEOUT_67_MS, 2);
    nobody_answers(context, NO_SUCH_QP, TIMEOUT_1_S, 0);
    nobody_answers(context, DESTROYED, TIMEOUT_67_MS, 1);
    nobody_answers(context, RESET, TIMEOUT_67_MS, 1);
    nobody_answers(context, INIT, TIMEOUT_67_MS, 1);
    nobody_answers(context, ERROR, TIMEOUT_67_MS, 1);
    no_timeout(context);
    peer_ready_late(context);
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
    return 0;
}
