/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: lists of 1 to max_sge entries, gathering and scattering, with uneven, unaligned and empty
 * pieces and from several memory regions, are one contiguous message; inline data of every length
 * up to the granted maximum is taken from the request itself, from one entry or from many.
 */
#include "rc_pair.h"

#include <string.h>

enum { SPREAD = 4096, MAX_SGE = 64, FILLER = 0x5a };

static uint32_t device_max_sge(void)
{
    struct ibv_context *context = rc_open();
    struct ibv_device_attr attr;
    int err = ibv_query_device(context, &attr);

    CHECK(err == 0, "ibv_query_device: %s", strerror(err));
    CHECK(attr.max_sge >= 1 && attr.max_sge <= MAX_SGE, "max_sge %d", attr.max_sge);
    CHECK(attr.max_sge_rd >= 1, "max_sge_rd %d", attr.max_sge_rd);
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
    return (uint32_t)attr.max_sge;
}

/* Length of piece `i` of `n` in variant `v`: small, empty, page-crossing and long ones. */
static size_t piece(unsigned int i, unsigned int v)
{
    static const size_t lengths[] = {1, 7, 64, 0, 129, 3, 2000, 16, 0, 33, 255, 1, 511};

    return lengths[(i * 5 + v * 3) % 13];
}

/* Cuts an end's memory into `n` pieces, one in each SPREAD bytes at uneven places, every third one
 * addressed through the second region; fills them with the pattern or with the filler. */
static size_t cut(struct rc_end *end, const struct ibv_mr *other, struct ibv_sge *list,
                  unsigned int n, unsigned int v, const uint64_t *seed)
{
    size_t total = 0;

    for (unsigned int i = 0; i < n; i++) {
        size_t offset = i * SPREAD + 32 + i * 37 % 97;

        list[i] = rc_sge(end, offset, piece(i, v));
        if (i % 3 == 2) {
            list[i].addr = (uintptr_t)other->addr + offset;
            list[i].lkey = other->lkey;
        }
        memset((uint8_t *)list[i].addr - 16, FILLER, list[i].length + 32);
        if (seed)
            rc_fill((uint8_t *)list[i].addr, list[i].length, *seed, total);
        total += list[i].length;
    }
    return total;
}

/* The first `bytes` of the pieces hold the pattern, what follows and what lies between the filler.
 */
static void verify_list(const struct ibv_sge *list, unsigned int n, size_t bytes, uint64_t seed)
{
    size_t place = 0;

    for (unsigned int i = 0; i < n; i++) {
        const uint8_t *at = (const uint8_t *)list[i].addr;
        size_t got = bytes - place < list[i].length ? bytes - place : list[i].length;

        rc_verify(at, got, seed, place, "a scattered piece");
        rc_verify_constant(at - 16, 16, FILLER, "before a scattered piece");
        rc_verify_constant(at + got, list[i].length - got + 16, FILLER, "after a scattered piece");
        place += got;
    }
    CHECK(place == bytes, "the pieces hold %zu bytes of %zu", place, bytes);
}

static void one_list(struct rc_pair *pair, struct ibv_mr *other[2], enum ibv_wr_opcode opcode,
                     unsigned int n, unsigned int v)
{
    struct rc_end *a = &pair->a, *b = &pair->b;
    size_t flat = pair->options.buffer_bytes / 2;
    struct ibv_sge local[MAX_SGE], remote[MAX_SGE];
    struct ibv_send_wr wr = {
        .wr_id = v,
        .sg_list = local,
        .num_sge = (int)n,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = {.remote_addr = (uintptr_t)b->buffer + flat, .rkey = b->mr->rkey},
    };
    uint64_t seed = n * 100 + v;
    size_t bytes = cut(a, other[0], local, n, v, opcode == IBV_WR_RDMA_READ ? NULL : &seed);

    if (opcode == IBV_WR_RDMA_READ) {
        rc_fill(b->buffer + flat, bytes, seed, 0);
        rc_post_chain(a, &wr);
        rc_expect(a->send_cq, a, v, IBV_WC_RDMA_READ);
        verify_list(local, n, bytes, seed);
    } else if (opcode == IBV_WR_RDMA_WRITE) {
        memset(b->buffer + flat, FILLER, bytes + 64);
        rc_post_chain(a, &wr);
        rc_expect(a->send_cq, a, v, IBV_WC_RDMA_WRITE);
        rc_verify(b->buffer + flat, bytes, seed, 0, "a gathered write");
        rc_verify_constant(b->buffer + flat + bytes, 64, FILLER, "after a gathered write");
    } else {
        struct ibv_recv_wr recv = {.wr_id = 9, .sg_list = remote};
        struct ibv_recv_wr *bad;
        struct ibv_wc wc;

        /* Pieces of other lengths than the sender's, as many as it takes; then all there may be. */
        recv.num_sge = (int)n;
        while (cut(b, other[1], remote, (unsigned int)recv.num_sge, v + 1, NULL) < bytes &&
               recv.num_sge < (int)pair->options.recv_sge)
            recv.num_sge++;
        if (cut(b, other[1], remote, (unsigned int)recv.num_sge, v + 1, NULL) < bytes)
            cut(b, other[1], remote, (unsigned int)recv.num_sge, v, NULL);
        CHECK(ibv_post_recv(b->qp, &recv, &bad) == 0, "ibv_post_recv of %d entries", recv.num_sge);
        rc_post_chain(a, &wr);
        rc_expect(a->send_cq, a, v, IBV_WC_SEND);
        wc = rc_expect(b->recv_cq, b, 9, IBV_WC_RECV);
        CHECK(wc.byte_len == bytes, "%u bytes received, %zu sent", wc.byte_len, bytes);
        verify_list(remote, (unsigned int)recv.num_sge, bytes, seed);
    }
}

static void lists(uint32_t max_sge)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;
    struct ibv_mr *other[2];

    options.send_sge = options.recv_sge = max_sge;
    options.buffer_bytes = 2ul * MAX_SGE * SPREAD;
    rc_start(&pair, &options);
    CHECK(pair.a.cap.max_send_sge >= max_sge && pair.a.cap.max_recv_sge >= max_sge,
          "%u and %u entries granted, %u asked for", pair.a.cap.max_send_sge,
          pair.a.cap.max_recv_sge, max_sge);
    for (int i = 0; i < 2; i++)
        other[i] = rc_memory(pair.pd, options.buffer_bytes, IBV_ACCESS_LOCAL_WRITE);
    for (unsigned int n = 1; n <= max_sge; n++) {
        for (unsigned int v = 0; v < 13; v++) {
            one_list(&pair, other, IBV_WR_RDMA_WRITE, n, v);
            one_list(&pair, other, IBV_WR_RDMA_READ, n, v);
            one_list(&pair, other, IBV_WR_SEND, n, v);
        }
    }
    for (int i = 0; i < 2; i++)
        rc_memory_free(other[i]);
    rc_destroy(&pair);
}

/* Asks for inline room until the library refuses; returns the most that was granted. */
static uint32_t most_inline(void)
{
    struct rc_options options = rc_defaults();
    uint32_t granted = 0;
    struct rc_pair pair;

    rc_create(&pair, NULL, &options);
    for (uint32_t asked = 0; asked <= 4096; asked += 16) {
        struct ibv_qp_init_attr attr = {
            .send_cq = pair.a.send_cq,
            .recv_cq = pair.a.recv_cq,
            .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
            .qp_type = IBV_QPT_RC,
        };
        struct ibv_qp *qp;

        attr.cap.max_inline_data = asked;
        qp = ibv_create_qp(pair.pd, &attr);
        if (!qp)
            break;
        CHECK(attr.cap.max_inline_data >= asked, "%u inline bytes granted, %u asked for",
              attr.cap.max_inline_data, asked);
        granted = attr.cap.max_inline_data;
        CHECK(ibv_destroy_qp(qp) == 0, "ibv_destroy_qp failed");
    }
    rc_destroy(&pair);
    return granted;
}

/* Posts `bytes` inline in `n` entries with a key that does not exist, then overwrites the source:
 * the data and the key must both be the request's own business. */
static void one_inline(struct rc_pair *pair, enum ibv_wr_opcode opcode, size_t bytes,
                       unsigned int n)
{
    struct rc_end *a = &pair->a, *b = &pair->b;
    bool receives = opcode != IBV_WR_RDMA_WRITE;
    bool writes = opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    struct ibv_sge list[MAX_SGE];
    struct ibv_send_wr wr = {
        .wr_id = bytes,
        .sg_list = list,
        .num_sge = (int)n,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
        .imm_data = rc_immediate(bytes),
        .wr.rdma = {.remote_addr = (uintptr_t)b->buffer + 16, .rkey = b->mr->rkey},
    };

    rc_fill(a->buffer, bytes, bytes, 0);
    memset(b->buffer, FILLER, bytes + 32);
    for (unsigned int i = 0; i < n; i++) {
        size_t from = bytes * i / n, to = bytes * (i + 1) / n;

        list[i] = rc_sge(a, from, to - from);
        list[i].lkey = 0xdead00;
    }
    if (receives)
        rc_post_recv(b, 5, writes ? 0 : 16, writes ? 0 : bytes);
    rc_post_chain(a, &wr);
    memset(a->buffer, 0, bytes);
    rc_expect(a->send_cq, a, bytes, writes ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
    if (receives) {
        struct ibv_wc wc =
            rc_expect(b->recv_cq, b, 5, writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);

        CHECK(wc.byte_len == bytes, "%u bytes received, %zu sent", wc.byte_len, bytes);
        if (opcode != IBV_WR_SEND)
            CHECK(wc.imm_data == rc_immediate(bytes), "immediate 0x%x", wc.imm_data);
    }
    rc_verify(b->buffer + 16, bytes, bytes, 0, "inline data");
    rc_verify_constant(b->buffer, 16, FILLER, "before inline data");
    rc_verify_constant(b->buffer + 16 + bytes, 16, FILLER, "after inline data");
}

static void inline_data(uint32_t max_sge)
{
    static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND,
                                                 IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_IMM};
    struct rc_options options = rc_defaults();
    uint32_t most = most_inline();
    struct rc_pair pair;

    CHECK(most >= 512, "no more than %u inline bytes are granted", most);
    options.inline_bytes = most;
    options.send_sge = max_sge;
    options.send_depth = 8;
    rc_start(&pair, &options);
    for (uint32_t bytes = 0; bytes <= most; bytes++) {
        one_inline(&pair, opcodes[bytes % 4], bytes, 1);
        one_inline(&pair, opcodes[(bytes + 1) % 4], bytes, 1 + bytes % max_sge);
    }
    for (unsigned int i = 0; i < 4; i++)
        one_inline(&pair, opcodes[i], most, max_sge);
    rc_destroy(&pair);
}

int main(void)
{
    uint32_t max_sge = device_max_sge();

    lists(max_sge);
    inline_data(max_sge);
    return 0;
}
