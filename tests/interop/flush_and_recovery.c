/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: when a queue pair fails or is told to, every request that it still holds, signalled or
 * not, on both queues, completes as flushed, in the order of posting, and so does what is posted
 * later (IBTA volume 1, 10.3.1.6); by way of RESET, INIT, RTR and RTS it works again as if new.
 */
#include "rc_pair.h"

#include <string.h>

enum { N = 10 };

static void post_chain(struct rc_pair *pair, uint64_t first, unsigned int n, unsigned int bad,
                       uint32_t signalled)
{
    struct ibv_send_wr wr[N];
    struct ibv_sge sge[N];

    for (unsigned int i = 0; i < n; i++) {
        sge[i] = rc_sge(&pair->a, 8 * i, 8);
        if (i == bad)
            sge[i].lkey ^= 0x3300000;
        wr[i] = (struct ibv_send_wr){
            .wr_id = first + i,
            .next = i + 1 < n ? &wr[i + 1] : NULL,
            .sg_list = &sge[i],
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = signalled >> i & 1 ? IBV_SEND_SIGNALED : 0,
            .wr.rdma = {.remote_addr = (uintptr_t)pair->b.buffer + 8 * i, .rkey = pair->b.mr->rkey},
        };
    }
    rc_post_chain(&pair->a, wr);
}

static void expect_flushed(struct ibv_cq *cq, const struct rc_end *end, uint64_t first, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        rc_expect_error(cq, end, first + i, IBV_WC_WR_FLUSH_ERR);
}

static void post_receives(const struct rc_end *end, uint64_t first)
{
    for (uint64_t i = 0; i < N; i++)
        rc_post_recv(end, first + i, 0, 8);
}

/* Every operation once, to show that a pair is as good as new. */
static void check_works(struct rc_pair *pair)
{
    struct rc_end *ends[] = {&pair->a, &pair->b};

    for (int i = 0; i < 2; i++) {
        struct rc_end *from = ends[i], *to = ends[1 - i];

        rc_fill(from->buffer, 2000, 5, 0);
        memset(to->buffer, 0, 4000);
        rc_post_recv(to, 1, 2000, 2000);
        rc_post(from, to, IBV_WR_RDMA_WRITE, 2, 0, 0, 2000, IBV_SEND_SIGNALED);
        rc_post(from, to, IBV_WR_SEND, 3, 0, 0, 2000, IBV_SEND_SIGNALED);
        rc_post(from, to, IBV_WR_RDMA_READ, 4, 8000, 2000, 2000, IBV_SEND_SIGNALED);
        rc_expect(from->send_cq, from, 2, IBV_WC_RDMA_WRITE);
        rc_expect(from->send_cq, from, 3, IBV_WC_SEND);
        rc_expect(from->send_cq, from, 4, IBV_WC_RDMA_READ);
        rc_expect(to->recv_cq, to, 1, IBV_WC_RECV);
        rc_verify(to->buffer, 2000, 5, 0, "written");
        rc_verify(to->buffer + 2000, 2000, 5, 0, "sent");
        rc_verify(from->buffer + 8000, 2000, 5, 0, "read");
        rc_expect_none(from->send_cq, 0);
        rc_expect_none(to->recv_cq, 0);
    }
}

static void recover(struct rc_pair *pair)
{
    rc_to_state(&pair->a, IBV_QPS_RESET);
    rc_to_state(&pair->b, IBV_QPS_RESET);
    CHECK(rc_state(&pair->a) == IBV_QPS_RESET, "in state %d after RESET", (int)rc_state(&pair->a));
    rc_connect(pair);
    check_works(pair);
}

/* In a chain whose request `bad` fails: those before are done, `bad` completes with its error even
 * when unsignalled, those after are flushed, and the peer hears nothing. */
static void failure_in_a_chain(struct rc_pair *pair)
{
    static const uint32_t masks[] = {0, 0x3ff, 0x155, 0x2aa, 0x3, 0x200};

    for (size_t m = 0; m < 6; m++) {
        for (unsigned int bad = 0; bad < N; bad++) {
            uint64_t first = 100 * bad + m * 1000;

            rc_fill(pair->a.buffer, 8 * N, first, 0);
            memset(pair->b.buffer, 0, 8 * N);
            post_receives(&pair->a, 50);
            post_receives(&pair->b, 60);
            post_chain(pair, first, N, bad, masks[m]);
            for (unsigned int i = 0; i < bad; i++)
                if (masks[m] >> i & 1)
                    rc_expect(pair->a.send_cq, &pair->a, first + i, IBV_WC_RDMA_WRITE);
            rc_expect_error(pair->a.send_cq, &pair->a, first + bad, IBV_WC_LOC_PROT_ERR);
            expect_flushed(pair->a.send_cq, &pair->a, first + bad + 1, N - bad - 1);
            expect_flushed(pair->a.recv_cq, &pair->a, 50, N);
            rc_verify(pair->b.buffer, 8 * bad, first, 0, "written before the failure");
            rc_verify_constant(pair->b.buffer + 8 * bad, 8 * (N - bad), 0, "behind the failure");
            CHECK(rc_state(&pair->a) == IBV_QPS_ERR, "in state %d", (int)rc_state(&pair->a));
            CHECK(rc_state(&pair->b) == IBV_QPS_RTS, "peer in state %d", (int)rc_state(&pair->b));
            rc_expect_none(pair->b.recv_cq, 0);
            recover(pair);
        }
    }
}

/* What is posted to a failed pair comes back flushed, on and on. */
static void posting_in_error(struct rc_pair *pair)
{
    rc_to_state(&pair->b, IBV_QPS_ERR);
    rc_to_state(&pair->a, IBV_QPS_ERR);
    for (uint64_t round = 0; round < 100; round++) {
        post_receives(&pair->a, round);
        post_chain(pair, round, N, N, round % 2 ? 0x3ff : 0);
        expect_flushed(pair->a.send_cq, &pair->a, round, N);
        expect_flushed(pair->a.recv_cq, &pair->a, round, N);
    }
    rc_expect_none(pair->a.send_cq, 2);
    recover(pair);
}

/* Requests that wait for a receive, and receives that wait for a message, when the state ERR is set
 * from outside. */
static void told_to_fail(struct rc_pair *pair)
{
    for (uint64_t round = 0; round < 20; round++) {
        post_receives(&pair->a, 500);
        for (uint64_t i = 0; i < N; i++)
            rc_post(&pair->a, &pair->b, IBV_WR_SEND, 700 + i, 0, 0, 8,
                    i % 3 ? IBV_SEND_SIGNALED : 0);
        if (round % 2)
            rc_sleep_ms(2);
        rc_to_state(&pair->a, IBV_QPS_ERR);
        expect_flushed(pair->a.send_cq, &pair->a, 700, N);
        expect_flushed(pair->a.recv_cq, &pair->a, 500, N);
        rc_expect_none(pair->b.recv_cq, 0);
        recover(pair);
    }
}

/* RESET drops what is outstanding: nothing of it completes, then or later. */
static void reset_with_work_outstanding(struct rc_pair *pair)
{
    for (uint64_t round = 0; round < 20; round++) {
        post_receives(&pair->a, 500);
        for (uint64_t i = 0; i < N; i++)
            rc_post(&pair->a, &pair->b, IBV_WR_SEND, 900 + i, 0, 0, 8, IBV_SEND_SIGNALED);
        if (round % 2)
            rc_sleep_ms(2);
        recover(pair);
        rc_expect_none(pair->a.send_cq, 1);
        rc_expect_none(pair->a.recv_cq, 1);
    }
}

/* A responder that refuses a request flushes its own requests and receives. */
static void responder_fails(struct rc_pair *pair)
{
    for (uint64_t round = 0; round < 20; round++) {
        post_receives(&pair->b, 10);
        for (uint64_t i = 0; i < N; i++) /* wait: the requester has no receives */
            rc_post(&pair->b, &pair->a, IBV_WR_SEND, 20 + i, 0, 0, 8, IBV_SEND_SIGNALED);
        rc_post(&pair->a, &pair->b, IBV_WR_RDMA_READ, 1, 0, pair->options.buffer_bytes - 4, 8, 0);
        rc_expect_error(pair->a.send_cq, &pair->a, 1, IBV_WC_REM_ACCESS_ERR);
        expect_flushed(pair->b.recv_cq, &pair->b, 10, N);
        expect_flushed(pair->b.send_cq, &pair->b, 20, N);
        CHECK(rc_state(&pair->b) == IBV_QPS_ERR, "in state %d", (int)rc_state(&pair->b));
        recover(pair);
    }
}

int main(void)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    rc_start(&pair, &options);
    check_works(&pair);
    failure_in_a_chain(&pair);
    posting_in_error(&pair);
    told_to_fail(&pair);
    reset_with_work_outstanding(&pair);
    responder_fails(&pair);
    rc_destroy(&pair);
    return 0;
}
