/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a request that the keys, the bounds, the access rights, the protection domain, the receive
 * buffer or the alignment forbid moves nothing that it must not, and ends with the status that the
 * InfiniBand specification gives it (volume 1, chapter 9.9 for requester and responder errors,
 * 10.10.3 for keys, 11.6.2 for the statuses); the queue pairs concerned are in the state ERR.
 */
#include "rc_pair.h"

#include <string.h>

#define NO_KEY 0xffffff00u

enum { AT = 4096, BYTES = 256, FILLER = 0x11 };

static const enum ibv_wr_opcode remote_opcodes[] = {
    IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
    IBV_WR_RDMA_WRITE_WITH_IMM};
enum { N_REMOTE = 5 };

/* One request whose every operand can be spoilt. */
struct request {
    enum ibv_wr_opcode opcode;
    struct ibv_sge sge;
    uint64_t raddr;
    uint32_t rkey;
};

static bool is_atomic(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static struct request good_request(const struct rc_pair *pair, enum ibv_wr_opcode opcode)
{
    return (struct request){
        .opcode = opcode,
        .sge = rc_sge(&pair->a, AT, is_atomic(opcode) ? 8 : BYTES),
        .raddr = (uintptr_t)pair->b.buffer + AT,
        .rkey = pair->b.mr->rkey,
    };
}

static void post(const struct rc_pair *pair, const struct request *request, uint64_t wr_id)
{
    struct ibv_sge sge = request->sge;
    struct ibv_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = request->opcode,
        .send_flags = IBV_SEND_SIGNALED,
    };

    if (is_atomic(request->opcode)) {
        wr.wr.atomic.remote_addr = request->raddr;
        wr.wr.atomic.rkey = request->rkey;
        wr.wr.atomic.compare_add = 0x1111111111111111; /* a swap would hit the filler */
        wr.wr.atomic.swap = 1;
    } else {
        wr.wr.rdma.remote_addr = request->raddr;
        wr.wr.rdma.rkey = request->rkey;
    }
    rc_post_chain(&pair->a, &wr);
}

static void start_with(struct rc_pair *pair, struct ibv_context *context,
                       const struct rc_options *options)
{
    struct rc_options defaults = rc_defaults();

    rc_create(pair, context, options ? options : &defaults);
    rc_connect(pair);
    memset(pair->a.buffer, FILLER, pair->options.buffer_bytes);
    memset(pair->b.buffer, FILLER, pair->options.buffer_bytes);
}

static void wait_state(const struct rc_end *end, enum ibv_qp_state state, const char *which)
{
    uint64_t deadline = rc_now_ns() + RC_DEADLINE_NS;

    while (rc_state(end) != state)
        CHECK(rc_now_ns() < deadline, "the %s is in state %d, %d expected", which,
              (int)rc_state(end), (int)state);
}

/* The request fails with `status`; memory on both sides is as before; the requester is in error,
 * the responder too when it is the one that refused. */
static void expect_refusal(struct rc_pair *pair, const struct request *request,
                           enum ibv_wc_status status)
{
    bool responder_refused = status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR ||
                             status == IBV_WC_REM_OP_ERR;

    post(pair, request, 33);
    rc_expect_error(pair->a.send_cq, &pair->a, 33, status);
    wait_state(&pair->a, IBV_QPS_ERR, "requester");
    wait_state(&pair->b, responder_refused ? IBV_QPS_ERR : IBV_QPS_RTS, "responder");
    /* An atomic is done before its requester finds that the result has nowhere to go. */
    if (responder_refused || !is_atomic(request->opcode))
        rc_verify_constant(pair->b.buffer, pair->options.buffer_bytes, FILLER, "remote memory");
    rc_verify_constant(pair->a.buffer, pair->options.buffer_bytes, FILLER, "local memory");
}

/* A fresh pair, one spoilt request, the expected end. `spoil` returns the status to expect. */
typedef enum ibv_wc_status spoil_fn(const struct rc_pair *pair, struct request *request);

static void each_opcode(struct ibv_context *context, spoil_fn *spoil, int n_opcodes)
{
    for (int i = 0; i < n_opcodes; i++) {
        struct rc_pair pair;
        struct request request;

        start_with(&pair, context, NULL);
        request = good_request(&pair, remote_opcodes[i]);
        expect_refusal(&pair, &request, spoil(&pair, &request));
        rc_destroy(&pair);
    }
}

static enum ibv_wc_status no_such_lkey(const struct rc_pair *pair, struct request *request)
{
    (void)pair;
    request->sge.lkey = NO_KEY;
    return IBV_WC_LOC_PROT_ERR;
}

static enum ibv_wc_status other_lkey_variant(const struct rc_pair *pair, struct request *request)
{
    (void)pair;
    request->sge.lkey ^= 1;
    return IBV_WC_LOC_PROT_ERR;
}

static enum ibv_wc_status no_such_rkey(const struct rc_pair *pair, struct request *request)
{
    (void)pair;
    request->rkey = NO_KEY;
    return IBV_WC_REM_ACCESS_ERR;
}

static enum ibv_wc_status other_rkey_variant(const struct rc_pair *pair, struct request *request)
{
    (void)pair;
    request->rkey ^= 0x80;
    return IBV_WC_REM_ACCESS_ERR;
}

static enum ibv_wc_status remote_start_too_low(const struct rc_pair *pair, struct request *request)
{
    request->raddr = (uintptr_t)pair->b.buffer - 8;
    return IBV_WC_REM_ACCESS_ERR;
}

static enum ibv_wc_status remote_end_too_high(const struct rc_pair *pair, struct request *request)
{
    request->raddr = (uintptr_t)pair->b.buffer + pair->b.mr->length - request->sge.length;
    /* An atomic must stay aligned to be judged by its bounds. */
    request->raddr += is_atomic(request->opcode) ? 8 : 1;
    return IBV_WC_REM_ACCESS_ERR;
}

static enum ibv_wc_status remote_end_wraps(const struct rc_pair *pair, struct request *request)
{
    (void)pair;
    request->raddr = UINT64_MAX - 7;
    return IBV_WC_REM_ACCESS_ERR;
}

static enum ibv_wc_status local_end_too_high(const struct rc_pair *pair, struct request *request)
{
    request->sge.addr = (uintptr_t)pair->a.buffer + pair->a.mr->length - request->sge.length + 1;
    return IBV_WC_LOC_PROT_ERR;
}

static enum ibv_wc_status local_start_too_low(const struct rc_pair *pair, struct request *request)
{
    request->sge.addr = (uintptr_t)pair->a.buffer - 1;
    return IBV_WC_LOC_PROT_ERR;
}

static enum ibv_wc_status local_end_wraps(const struct rc_pair *pair, struct request *request)
{
    (void)pair;
    request->sge.addr = UINT64_MAX - 3;
    return IBV_WC_LOC_PROT_ERR;
}

static void bad_keys(struct ibv_context *context)
{
    each_opcode(context, no_such_lkey, 4);
    each_opcode(context, other_lkey_variant, 4);
    each_opcode(context, no_such_rkey, 4);
    each_opcode(context, other_rkey_variant, 4);
}

static void bad_bounds(struct ibv_context *context)
{
    each_opcode(context, remote_start_too_low, 4);
    each_opcode(context, remote_end_too_high, 4);
    each_opcode(context, remote_end_wraps, 4);
    each_opcode(context, local_end_too_high, 4);
    each_opcode(context, local_start_too_low, 4);
    each_opcode(context, local_end_wraps, 4);
}

/* A write with immediate that is refused uses up no receive: it is flushed with the rest. */
static void bad_write_with_immediate(struct ibv_context *context)
{
    struct rc_pair pair;
    struct request request;

    start_with(&pair, context, NULL);
    rc_post_recv(&pair.b, 1, 0, 8);
    rc_post_recv(&pair.b, 2, 0, 8);
    request = good_request(&pair, IBV_WR_RDMA_WRITE_WITH_IMM);
    request.rkey = NO_KEY;
    expect_refusal(&pair, &request, IBV_WC_REM_ACCESS_ERR);
    rc_expect_error(pair.b.recv_cq, &pair.b, 1, IBV_WC_WR_FLUSH_ERR);
    rc_expect_error(pair.b.recv_cq, &pair.b, 2, IBV_WC_WR_FLUSH_ERR);
    rc_destroy(&pair);
}

/* A key is dead once its region is deregistered, also when the memory is registered anew. */
static void stale_keys(struct ibv_context *context)
{
    for (int remote = 0; remote < 2; remote++) {
        struct rc_pair pair;
        struct request request;
        struct ibv_mr *mr;
        uint32_t key;

        start_with(&pair, context, NULL);
        mr = ibv_reg_mr(pair.pd, remote ? pair.b.buffer : pair.a.buffer, 65536,
                        RC_REMOTE_ALL | IBV_ACCESS_LOCAL_WRITE);
        CHECK(mr, "ibv_reg_mr failed");
        key = mr->lkey;
        CHECK(mr->lkey == mr->rkey, "lkey 0x%x, rkey 0x%x", mr->lkey, mr->rkey);
        CHECK(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr failed");
        mr = ibv_reg_mr(pair.pd, remote ? pair.b.buffer : pair.a.buffer, 65536,
                        RC_REMOTE_ALL | IBV_ACCESS_LOCAL_WRITE);
        CHECK(mr && mr->lkey != key, "a key was given out again at once");
        request = good_request(&pair, IBV_WR_RDMA_WRITE);
        if (remote)
            request.rkey = key;
        else
            request.sge.lkey = key;
        expect_refusal(&pair, &request, remote ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
        CHECK(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr failed");
        rc_destroy(&pair);
    }
}

/* Each remote operation needs its right on the region; no other right stands in for it. */
static void rights_of_the_region(struct ibv_context *context)
{
    static const unsigned int needed[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
                                          IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC};

    for (int i = 0; i < 4; i++) {
        for (int missing = 0; missing < 2; missing++) {
            unsigned int rights = missing ? RC_REMOTE_ALL & ~needed[i] : needed[i];
            struct rc_pair pair;
            struct request request;
            struct ibv_mr *mr;

            start_with(&pair, context, NULL);
            mr = ibv_reg_mr(pair.pd, pair.b.buffer, 65536, rights | IBV_ACCESS_LOCAL_WRITE);
            CHECK(mr, "ibv_reg_mr failed");
            request = good_request(&pair, remote_opcodes[i]);
            request.rkey = mr->rkey;
            if (missing) {
                expect_refusal(&pair, &request, IBV_WC_REM_ACCESS_ERR);
            } else {
                struct ibv_wc wc;

                post(&pair, &request, 1);
                wc = rc_poll(pair.a.send_cq);
                CHECK(wc.status == IBV_WC_SUCCESS, "opcode %d with its right: %s",
                      (int)remote_opcodes[i], ibv_wc_status_str(wc.status));
            }
            CHECK(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr failed");
            rc_destroy(&pair);
        }
    }
}

/* Memory that a read, an atomic or a receive fills needs IBV_ACCESS_LOCAL_WRITE; a source does not.
 */
static void right_of_local_write(struct ibv_context *context)
{
    for (int i = 0; i < 4; i++) {
        struct rc_pair pair;
        struct request request;
        struct ibv_mr *mr;

        start_with(&pair, context, NULL);
        mr = ibv_reg_mr(pair.pd, pair.a.buffer, 65536, 0);
        CHECK(mr, "ibv_reg_mr failed");
        request = good_request(&pair, remote_opcodes[i]);
        request.sge.lkey = mr->lkey;
        if (remote_opcodes[i] == IBV_WR_RDMA_WRITE) {
            post(&pair, &request, 1);
            rc_expect(pair.a.send_cq, &pair.a, 1, IBV_WC_RDMA_WRITE);
        } else {
            post(&pair, &request, 33);
            rc_expect_error(pair.a.send_cq, &pair.a, 33, IBV_WC_LOC_PROT_ERR);
            rc_verify_constant(pair.a.buffer, 65536, FILLER, "memory without the right");
        }
        CHECK(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr failed");
        rc_destroy(&pair);
    }
}

/* What a queue pair does not allow is an invalid request, whatever the region allows. */
static void rights_of_the_queue_pair(struct ibv_context *context)
{
    static const unsigned int needed[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
                                          IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC};

    for (int i = 0; i < 4; i++) {
        struct rc_options options = rc_defaults();
        struct rc_pair pair;
        struct request request;

        options.qp_access = RC_REMOTE_ALL & ~needed[i];
        start_with(&pair, context, &options);
        /* A message needs no right. */
        rc_post_recv(&pair.b, 1, AT, 8);
        rc_post(&pair.a, &pair.b, IBV_WR_SEND, 1, AT, 0, 8, IBV_SEND_SIGNALED);
        rc_expect(pair.a.send_cq, &pair.a, 1, IBV_WC_SEND);
        rc_expect(pair.b.recv_cq, &pair.b, 1, IBV_WC_RECV);
        request = good_request(&pair, remote_opcodes[i]);
        expect_refusal(&pair, &request, IBV_WC_REM_INV_REQ_ERR);
        rc_destroy(&pair);
    }
}

/* Keys belong to a protection domain. */
static void other_protection_domain(struct ibv_context *context)
{
    for (int i = 0; i < 4; i++) {
        for (int remote = 0; remote < 2; remote++) {
            struct ibv_pd *pd = ibv_alloc_pd(context);
            struct rc_pair pair;
            struct request request;
            struct ibv_mr *mr;

            CHECK(pd, "ibv_alloc_pd failed");
            start_with(&pair, context, NULL);
            mr = ibv_reg_mr(pd, remote ? pair.b.buffer : pair.a.buffer, 65536,
                            RC_REMOTE_ALL | IBV_ACCESS_LOCAL_WRITE);
            CHECK(mr, "ibv_reg_mr failed");
            request = good_request(&pair, remote_opcodes[i]);
            if (remote)
                request.rkey = mr->rkey;
            else
                request.sge.lkey = mr->lkey;
            expect_refusal(&pair, &request, remote ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
            CHECK(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr failed");
            CHECK(ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd failed");
            rc_destroy(&pair);
        }
    }
}

/* A receive that cannot take its message: its own completion says why, the sender hears of it, and
 * the receives behind it are flushed. */
static void bad_receive(struct ibv_context *context, struct ibv_sge sge_change,
                        enum ibv_wc_status receiver, enum ibv_wc_status sender)
{
    struct rc_pair pair;
    struct ibv_sge sge;
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad = NULL;

    start_with(&pair, context, NULL);
    sge = rc_sge(&pair.b, AT, BYTES);
    sge.length += sge_change.length;
    sge.addr += sge_change.addr;
    sge.lkey += sge_change.lkey;
    CHECK(ibv_post_recv(pair.b.qp, &wr, &bad) == 0, "ibv_post_recv failed");
    rc_post_recv(&pair.b, 2, AT, BYTES);
    rc_post(&pair.a, &pair.b, IBV_WR_SEND, 33, AT, 0, BYTES, IBV_SEND_SIGNALED);
    rc_expect_error(pair.a.send_cq, &pair.a, 33, sender);
    rc_expect_error(pair.b.recv_cq, &pair.b, 1, receiver);
    rc_expect_error(pair.b.recv_cq, &pair.b, 2, IBV_WC_WR_FLUSH_ERR);
    wait_state(&pair.a, IBV_QPS_ERR, "sender");
    wait_state(&pair.b, IBV_QPS_ERR, "receiver");
    rc_verify_constant(pair.b.buffer + AT + BYTES, BYTES, FILLER, "after the receive buffer");
    rc_destroy(&pair);
}

static void bad_receives(struct ibv_context *context)
{
    /* One byte too small; a key that is none; a range that leaves the region. */
    bad_receive(context, (struct ibv_sge){.length = UINT32_MAX}, IBV_WC_LOC_LEN_ERR,
                IBV_WC_REM_INV_REQ_ERR);
    bad_receive(context, (struct ibv_sge){.lkey = 0x7f000000}, IBV_WC_LOC_PROT_ERR,
                IBV_WC_REM_OP_ERR);
    bad_receive(context, (struct ibv_sge){.addr = 65536 - AT - BYTES + 1}, IBV_WC_LOC_PROT_ERR,
                IBV_WC_REM_OP_ERR);
}

static void unaligned_atomics(struct ibv_context *context)
{
    for (uint64_t shift = 1; shift < 8; shift++) {
        struct rc_pair pair;
        struct request request;

        start_with(&pair, context, NULL);
        request = good_request(&pair,
                               shift % 2 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP);
        request.raddr += shift;
        expect_refusal(&pair, &request, IBV_WC_REM_INV_REQ_ERR);
        rc_destroy(&pair);
    }
}

/* A request for no bytes has its remote key and address neither needed nor checked. */
static void empty_requests(struct ibv_context *context)
{
    struct rc_pair pair;

    start_with(&pair, context, NULL);
    for (int i = 0; i < 2; i++) {
        struct request request = good_request(&pair, remote_opcodes[i]);

        request.sge.length = 0;
        request.rkey = NO_KEY;
        request.raddr = 0;
        post(&pair, &request, (uint64_t)i);
        rc_expect(pair.a.send_cq, &pair.a, (uint64_t)i, i ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
    }
    rc_destroy(&pair);
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(struct ibv_context *context);
    } tests[] = {
        {"bad keys", bad_keys},
        {"bad bounds", bad_bounds},
        {"bad write with immediate", bad_write_with_immediate},
        {"stale keys", stale_keys},
        {"rights of the region", rights_of_the_region},
        {"right of local write", right_of_local_write},
        {"rights of the queue pair", rights_of_the_queue_pair},
        {"other protection domain", other_protection_domain},
        {"bad receives", bad_receives},
        {"unaligned atomics", unaligned_atomics},
        {"empty requests", empty_requests},
    };
    struct ibv_context *context = rc_open();

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        printf("%s\n", tests[i].name);
        fflush(stdout);
        tests[i].run(context);
    }
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
    return 0;
}
