/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: every RC operation that ibv_post_send offers moves exactly its bytes and completes with
 * exactly its fields, for sizes from nothing to 8 MiB. Inline data and scatter/gather lists have
 * their own programs (inline_data.c, scatter_gather.c). Fields as in ibv_poll_cq(3).
 */
#include "rc_pair.h"

#include <string.h>

#define KIB 1024ull
#define MIB (1024 * KIB)

enum {
    GUARD = 64,       /* bytes before and after each target that must stay as they were */
    SHIFT = 4096 + 8, /* where payloads start; not page aligned */
    FILLER = 0xc3,
};

static const size_t sizes[] = {
    0,    1,    2,    3,    4,    7,    8,    9,     15,    16,    17,      31,       32,
    33,   48,   63,   64,   65,   100,  127,  128,   255,   256,   257,     1000,     1023,
    1024, 1025, 2048, 4095, 4096, 4097, 8192, 65535, 65536, 65537, MIB - 1, MIB + 13, 8 * MIB,
};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Prepares `source` and the filler around `target`. */
static void prepare(struct rc_end *source, struct rc_end *target, size_t bytes, uint64_t seed)
{
    rc_fill(source->buffer + SHIFT, bytes, seed, 0);
    memset(target->buffer + SHIFT - GUARD, FILLER, bytes + 2 * GUARD);
}

static void verify(const struct rc_end *source, const struct rc_end *target, size_t bytes,
                   uint64_t seed, const char *what)
{
    const uint8_t *start = target->buffer + SHIFT;

    rc_verify(start, bytes, seed, 0, what);
    rc_verify_constant(start - GUARD, GUARD, FILLER, "before the target");
    rc_verify_constant(start + bytes, GUARD, FILLER, "after the target");
    rc_verify(source->buffer + SHIFT, bytes, seed, 0, "the source");
}

/* What a receive completion says about a message of `bytes` that request `sent_id` sent. */
static void check_receive(struct rc_pair *pair, uint64_t wr_id, enum ibv_wc_opcode opcode,
                          size_t bytes, bool immediate, uint64_t sent_id)
{
    struct ibv_wc wc = rc_expect(pair->b.recv_cq, &pair->b, wr_id, opcode);

    CHECK(wc.byte_len == bytes, "%u bytes received, %zu sent", wc.byte_len, bytes);
    CHECK(!(wc.wc_flags & IBV_WC_WITH_INV), "flags 0x%x", wc.wc_flags);
    CHECK(!!(wc.wc_flags & IBV_WC_WITH_IMM) == immediate, "flags 0x%x", wc.wc_flags);
    if (immediate)
        CHECK(wc.imm_data == rc_immediate(sent_id), "immediate 0x%x, 0x%x expected", wc.imm_data,
              rc_immediate(sent_id));
    CHECK(wc.src_qp == 0 || wc.src_qp == pair->a.qp->qp_num,
          "source QP 0x%x is neither the peer 0x%x nor unset", wc.src_qp, pair->a.qp->qp_num);
}

static void writes(struct rc_pair *pair)
{
    for (size_t i = 0; i < N_SIZES; i++) {
        prepare(&pair->a, &pair->b, sizes[i], i);
        rc_post(&pair->a, &pair->b, IBV_WR_RDMA_WRITE, i, SHIFT, SHIFT, sizes[i],
                IBV_SEND_SIGNALED);
        rc_expect(pair->a.send_cq, &pair->a, i, IBV_WC_RDMA_WRITE);
        verify(&pair->a, &pair->b, sizes[i], i, "write");
    }
    rc_expect_none(pair->b.recv_cq, 1);
}

static void writes_with_immediate(struct rc_pair *pair)
{
    for (size_t i = 0; i < N_SIZES; i++) {
        prepare(&pair->a, &pair->b, sizes[i], 100 + i);
        /* The receive request's memory takes no part in a write with immediate. */
        rc_post_recv(&pair->b, 1000 + i, 0, 0);
        rc_post(&pair->a, &pair->b, IBV_WR_RDMA_WRITE_WITH_IMM, i, SHIFT, SHIFT, sizes[i],
                IBV_SEND_SIGNALED);
        rc_expect(pair->a.send_cq, &pair->a, i, IBV_WC_RDMA_WRITE);
        check_receive(pair, 1000 + i, IBV_WC_RECV_RDMA_WITH_IMM, sizes[i], true, i);
        verify(&pair->a, &pair->b, sizes[i], 100 + i, "write with immediate");
    }
}

static void reads(struct rc_pair *pair)
{
    for (size_t i = 0; i < N_SIZES; i++) {
        struct ibv_wc wc;

        prepare(&pair->b, &pair->a, sizes[i], 200 + i);
        rc_post(&pair->a, &pair->b, IBV_WR_RDMA_READ, i, SHIFT, SHIFT, sizes[i], IBV_SEND_SIGNALED);
        wc = rc_expect(pair->a.send_cq, &pair->a, i, IBV_WC_RDMA_READ);
        CHECK(wc.byte_len == sizes[i], "%u bytes read, %zu asked for", wc.byte_len, sizes[i]);
        verify(&pair->b, &pair->a, sizes[i], 200 + i, "read");
    }
}

static void sends(struct rc_pair *pair, bool immediate)
{
    for (size_t i = 0; i < N_SIZES; i++) {
        uint64_t seed = (immediate ? 400u : 300u) + i;

        prepare(&pair->a, &pair->b, sizes[i], seed);
        /* Every other receive is larger than its message: the rest must stay untouched. */
        rc_post_recv(&pair->b, 2000 + i, SHIFT, sizes[i] + (i % 2 ? GUARD : 0));
        rc_post(&pair->a, &pair->b, immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, i, SHIFT, 0,
                sizes[i], IBV_SEND_SIGNALED | (i % 3 ? IBV_SEND_SOLICITED : 0));
        rc_expect(pair->a.send_cq, &pair->a, i, IBV_WC_SEND);
        check_receive(pair, 2000 + i, IBV_WC_RECV, sizes[i], immediate, i);
        verify(&pair->a, &pair->b, sizes[i], seed, immediate ? "send with immediate" : "send");
    }
}

/* A request without any gather entry is a message of no bytes. */
static void no_entries(struct rc_pair *pair)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};
    static const enum ibv_wc_opcode results[] = {IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ, IBV_WC_SEND};

    rc_post_recv(&pair->b, 77, SHIFT, 8);
    for (unsigned int i = 0; i < 3; i++) {
        struct ibv_send_wr wr = {
            .wr_id = i,
            .opcode = opcodes[i],
            .send_flags = IBV_SEND_SIGNALED,
            .wr.rdma = {.remote_addr = (uintptr_t)pair->b.buffer, .rkey = pair->b.mr->rkey},
        };
        rc_post_chain(&pair->a, &wr);
        rc_expect(pair->a.send_cq, &pair->a, i, results[i]);
    }
    check_receive(pair, 77, IBV_WC_RECV, 0, false, 0);
}

static void atomic(struct rc_pair *pair, enum ibv_wr_opcode opcode, size_t place, uint64_t before,
                   uint64_t compare_add, uint64_t swap, uint64_t after)
{
    uint8_t *target = pair->b.buffer + place;
    uint8_t *result = pair->a.buffer + SHIFT;
    uint64_t seen;
    struct ibv_wc wc;

    memset(target - GUARD, FILLER, 2 * GUARD + 8);
    memset(result - GUARD, FILLER, 2 * GUARD + 8);
    memcpy(target, &before, 8);
    rc_post_atomic(&pair->a, &pair->b, opcode, before, SHIFT, place, compare_add, swap);
    wc = rc_expect(pair->a.send_cq, &pair->a, before,
                   opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
    CHECK(wc.byte_len == 8, "%u bytes", wc.byte_len);
    memcpy(&seen, target, 8);
    CHECK(seen == after, "0x%llx in memory, 0x%llx expected", (unsigned long long)seen,
          (unsigned long long)after);
    memcpy(&seen, result, 8);
    CHECK(seen == before, "0x%llx returned, 0x%llx expected", (unsigned long long)seen,
          (unsigned long long)before);
    rc_verify_constant(target - GUARD, GUARD, FILLER, "before the atomic's target");
    rc_verify_constant(target + 8, GUARD, FILLER, "after the atomic's target");
    rc_verify_constant(result - GUARD, GUARD, FILLER, "before the atomic's result");
    rc_verify_constant(result + 8, GUARD, FILLER, "after the atomic's result");
}

static void atomics(struct rc_pair *pair)
{
    static const uint64_t values[] = {0, 1, 0x0123456789abcdef, 0xff, 0xffffffff, UINT64_MAX};

    for (size_t i = 0; i < 6; i++) {
        for (size_t j = 0; j < 6; j++) {
            uint64_t v = values[i], w = values[j];
            size_t place = SHIFT + 8 * (i + 8 * j);

            atomic(pair, IBV_WR_ATOMIC_FETCH_AND_ADD, place, v, w, 0, v + w);
            atomic(pair, IBV_WR_ATOMIC_CMP_AND_SWP, place, v, v, w, w);
            atomic(pair, IBV_WR_ATOMIC_CMP_AND_SWP, place, v, v ^ 1, w, v);
            atomic(pair, IBV_WR_ATOMIC_CMP_AND_SWP, place, v, v ^ 1ull << 63, w, v);
        }
    }
}

/* A fenced request starts only when the reads and atomics before it are done: it sends what they
 * brought. */
static void fences(struct rc_pair *pair)
{
    enum { BYTES = 32768, FROM = SHIFT, VIA = SHIFT + 65536, TO = SHIFT + 2 * 65536 };

    for (uint64_t round = 0; round < 200; round++) {
        uint64_t old = round * 0x0101010101010101;

        rc_fill(pair->b.buffer + FROM, BYTES, 500 + round, 0);
        memset(pair->a.buffer + VIA, 0, BYTES);
        memcpy(pair->b.buffer + FROM + BYTES, &old, 8);
        rc_post(&pair->a, &pair->b, IBV_WR_RDMA_READ, 1, VIA, FROM, BYTES, 0);
        rc_post(&pair->a, &pair->b, IBV_WR_RDMA_WRITE, 2, VIA, TO, BYTES, IBV_SEND_FENCE);
        rc_post_atomic(&pair->a, &pair->b, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, VIA + BYTES,
                       FROM + BYTES, 1, 0);
        rc_post_recv(&pair->b, 5, TO + BYTES, 8);
        rc_post(&pair->a, &pair->b, IBV_WR_SEND, 4, VIA + BYTES, 0, 8,
                IBV_SEND_FENCE | IBV_SEND_SIGNALED);
        rc_expect(pair->a.send_cq, &pair->a, 3, IBV_WC_FETCH_ADD);
        rc_expect(pair->a.send_cq, &pair->a, 4, IBV_WC_SEND);
        check_receive(pair, 5, IBV_WC_RECV, 8, false, 0);
        rc_verify(pair->b.buffer + TO, BYTES, 500 + round, 0, "fenced write of what was read");
        CHECK(memcmp(pair->b.buffer + TO + BYTES, &old, 8) == 0,
              "the fenced send did not carry the atomic's result, round %llu",
              (unsigned long long)round);
    }
}

/* Without IBV_SEND_SIGNALED no completion comes; the next signalled one releases both. */
static void unsignalled(struct rc_pair *pair)
{
    for (uint64_t round = 0; round < 300; round++) {
        rc_post(&pair->a, &pair->b, IBV_WR_RDMA_WRITE, 1, SHIFT, SHIFT, 8, 0);
        rc_post(&pair->a, &pair->b, IBV_WR_RDMA_READ, 2, SHIFT, SHIFT, 8, 0);
        rc_post(&pair->a, &pair->b, IBV_WR_RDMA_WRITE, round, SHIFT, SHIFT, 8, IBV_SEND_SIGNALED);
        rc_expect(pair->a.send_cq, &pair->a, round, IBV_WC_RDMA_WRITE);
    }
    rc_expect_none(pair->a.send_cq, 5);
}

/* The device offers no memory windows and no fast registration, so there is no key that a peer may
 * invalidate: the request must end in an error that says so, never as a plain send. */
static void send_with_invalidate(struct rc_pair *pair)
{
    struct ibv_sge sge = rc_sge(&pair->a, SHIFT, 8);
    struct ibv_send_wr wr = {
        .wr_id = 9,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND_WITH_INV,
        .send_flags = IBV_SEND_SIGNALED,
        .invalidate_rkey = pair->b.mr->rkey,
    };
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    rc_post_recv(&pair->b, 8, SHIFT, 8);
    if (ibv_post_send(pair->a.qp, &wr, &bad))
        return;
    wc = rc_poll(pair->a.send_cq);
    CHECK(wc.wr_id == 9 &&
              (wc.status == IBV_WC_LOC_QP_OP_ERR || wc.status == IBV_WC_REM_INV_REQ_ERR ||
               wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_OP_ERR),
          "send with invalidate: %s", ibv_wc_status_str(wc.status));
}

int main(void)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    options.buffer_bytes = 8 * MIB + 8 * SHIFT;
    rc_start(&pair, &options);
    writes(&pair);
    writes_with_immediate(&pair);
    reads(&pair);
    sends(&pair, false);
    sends(&pair, true);
    no_entries(&pair);
    atomics(&pair);
    fences(&pair);
    unsignalled(&pair);
    rc_expect_none(pair.a.recv_cq, 1);
    rc_expect_none(pair.b.send_cq, 1);
    send_with_invalidate(&pair);
    rc_destroy(&pair);
    return 0;
}
