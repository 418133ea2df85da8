/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: each send opcode of RC, built by hand and posted to a queue pair made by DEVX, does what
 * the PRM says to memory, and its CQE has every field right; with CQEs of 64 and of 128 bytes.
 */
#include "devx_pair.h"

static struct devx_pair pair;

/* ---- Writes, reads, sends ---- */

static void fill(uint8_t *at, size_t bytes, uint32_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)((i + seed) * 2654435761u >> 13);
}

static void check_same(const uint8_t *got, const uint8_t *wanted, size_t bytes, const char *what)
{
    for (size_t i = 0; i < bytes; i++)
        CHECK(got[i] == wanted[i], "%s of %zu bytes: byte %zu is 0x%02x, wanted 0x%02x", what,
              bytes, i, got[i], wanted[i]);
}

static void nop(void)
{
    struct wqe wqe;
    wqe_begin(&wqe, M5_OP_NOP, 0, M5_CTRL_CQ_UPDATE, 0);
    devx_expect(&pair.a, M5_OP_NOP, devx_post(&pair, &pair.a, &wqe), 0);
}

static void writes_and_reads(void)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 8, 9, 64, 255, 4096, 65537, DEVX_PAYLOAD_BYTES};
    uint8_t *from = pair.a.payload, *to = pair.b.payload;
    struct wqe wqe;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t bytes = sizes[i];
        fill(from, bytes, bytes);
        wqe_begin(&wqe, M5_OP_WRITE, 0, M5_CTRL_CQ_UPDATE, 0);
        wqe_raddr(&wqe, (uintptr_t)to, pair.b.mr->rkey);
        wqe_data(&wqe, from, pair.a.mr->lkey, bytes);
        devx_expect(&pair.a, M5_OP_WRITE, devx_post(&pair, &pair.a, &wqe), bytes);
        check_same(to, from, bytes, "write");

        fill(to, bytes, ~bytes);
        wqe_begin(&wqe, M5_OP_READ, 0, M5_CTRL_CQ_UPDATE, 0);
        wqe_raddr(&wqe, (uintptr_t)to, pair.b.mr->rkey);
        wqe_data(&wqe, from, pair.a.mr->lkey, bytes);
        devx_expect(&pair.a, M5_OP_READ, devx_post(&pair, &pair.a, &wqe), bytes);
        check_same(from, to, bytes, "read");
    }
    /* No payload: the segment list is empty, and the key need not be valid. */
    wqe_begin(&wqe, M5_OP_WRITE, 0, M5_CTRL_CQ_UPDATE, 0);
    wqe_raddr(&wqe, 0, 0);
    devx_expect(&pair.a, M5_OP_WRITE, devx_post(&pair, &pair.a, &wqe), 0);
}

/* The CQE of the receive WQE `index`. */
static void expect_receive(uint32_t opcode, uint32_t index, uint32_t bytes, uint32_t imm,
                           uint32_t solicited)
{
    struct cqe cqe = devx_poll(&pair.b.recv_cq);
    CHECK(cqe.opcode == opcode, "opcode 0x%x, wanted 0x%x", cqe.opcode, opcode);
    CHECK(cqe.wqe_counter == index, "counter %u, wanted %u", cqe.wqe_counter, index);
    CHECK(cqe.byte_count == bytes, "byte count %u, wanted %u", cqe.byte_count, bytes);
    CHECK(cqe.imm == imm, "immediate 0x%x, wanted 0x%x", cqe.imm, imm);
    CHECK(cqe.solicited == solicited, "solicited %u, wanted %u", cqe.solicited, solicited);
    CHECK(cqe.qpn == pair.b.qpn, "QPN 0x%x, wanted 0x%x", cqe.qpn, pair.b.qpn);
    CHECK(cqe.user_index == pair.b.user_index, "user index 0x%x, wanted 0x%x", cqe.user_index,
          pair.b.user_index);
    CHECK(cqe.format == 0, "format %u", cqe.format);
}

static void sends(void)
{
    static const uint32_t opcodes[] = {M5_OP_SEND, M5_OP_SEND_IMM, M5_OP_WRITE_IMM};
    static const uint32_t received[] = {M5_CQE_RESPONDER_SEND, M5_CQE_RESPONDER_SEND_IMM,
                                        M5_CQE_RESPONDER_WRITE_IMM};
    uint8_t *from = pair.a.payload, *to = pair.b.payload;
    struct wqe wqe;

    for (uint32_t i = 0; i < 60; i++) {
        uint32_t kind = i % 3, solicited = i & 1, bytes = i == 6 || i == 8 ? 0 : 1 + 37 * i;
        uint32_t imm = 0x01020304u + i, index = (uint32_t)pair.b.recvs & 0xffff;
        struct devx_scatter whole = {to, pair.b.mr->lkey, 8192};
        bool is_write = opcodes[kind] == M5_OP_WRITE_IMM;

        devx_post_recv(&pair, &pair.b, &whole, 1);
        fill(from, bytes, i);
        memset(to, 0, 8192);
        wqe_begin(&wqe, opcodes[kind], 0, M5_CTRL_CQ_UPDATE | (solicited ? M5_CTRL_SOLICITED : 0u),
                  imm);
        if (is_write)
            wqe_raddr(&wqe, (uintptr_t)to + 16, pair.b.mr->rkey);
        if (bytes)
            wqe_data(&wqe, from, pair.a.mr->lkey, bytes);
        devx_expect(&pair.a, opcodes[kind], devx_post(&pair, &pair.a, &wqe), bytes);
        expect_receive(received[kind], index, bytes, opcodes[kind] == M5_OP_SEND ? 0 : imm,
                       solicited);
        check_same(is_write ? to + 16 : to, from, bytes, "message");
        CHECK(to[(is_write ? 16 : 0) + bytes] == 0, "message of %u bytes: more was written", bytes);
    }
}

/* ---- Atomics: operands big-endian in the WQE, memory and the answer as the host has them ---- */

/* Posts what `wqe` holds, to the 8 bytes at `to`; the old value must come back. */
static void atomic(struct wqe *wqe, uint32_t bytes, uint64_t before, uint64_t after)
{
    uint8_t *answer = pair.a.payload + 256, *word = pair.b.payload + 512;
    uint64_t got = 0;
    uint32_t opcode = wqe->bytes[3];

    memset(answer, 0xee, 16);
    memset(word - 8, 0x77, 24);
    memcpy(word, &before, bytes);
    wqe_data(wqe, answer, pair.a.mr->lkey, bytes);
    devx_expect(&pair.a, opcode, devx_post(&pair, &pair.a, wqe), bytes);
    memcpy(&got, answer, bytes);
    CHECK(got == before, "opcode 0x%x, %u bytes: answered 0x%llx, memory held 0x%llx", opcode,
          bytes, (unsigned long long)got, (unsigned long long)before);
    CHECK(answer[bytes] == 0xee, "the answer is longer than %u bytes", bytes);
    got = 0;
    memcpy(&got, word, bytes);
    CHECK(got == after, "opcode 0x%x, %u bytes: memory holds 0x%llx, wanted 0x%llx", opcode, bytes,
          (unsigned long long)got, (unsigned long long)after);
    CHECK(word[-1] == 0x77 && word[bytes] == 0x77, "bytes beside the word were changed");
}

static void begin_atomic(struct wqe *wqe, uint32_t opcode, uint32_t opmod)
{
    wqe_begin(wqe, opcode, opmod, M5_CTRL_CQ_UPDATE, 0);
    wqe_raddr(wqe, (uintptr_t)pair.b.payload + 512, pair.b.mr->rkey);
}

static void fetch_add(uint64_t before, uint64_t addend)
{
    struct wqe wqe;
    begin_atomic(&wqe, M5_OP_ATOMIC_FA, 0);
    wqe_operands64(&wqe, addend, 0);
    atomic(&wqe, 8, before, before + addend);
}

static void compare_swap(uint64_t before, uint64_t compare, uint64_t swap)
{
    struct wqe wqe;
    begin_atomic(&wqe, M5_OP_ATOMIC_CS, 0);
    wqe_operands64(&wqe, swap, compare);
    atomic(&wqe, 8, before, before == compare ? swap : before);
}

static void masked_add(uint32_t bytes, uint64_t before, uint64_t addend, uint64_t boundary,
                       uint64_t after)
{
    struct wqe wqe;
    begin_atomic(&wqe, M5_OP_ATOMIC_MASKED_FA, bytes == 4 ? M5_ATOMIC_4_BYTES : M5_ATOMIC_8_BYTES);
    if (bytes == 4)
        wqe_operands32(&wqe, (uint32_t)addend, (uint32_t)boundary, 0, 0);
    else
        wqe_operands64(&wqe, addend, boundary);
    atomic(&wqe, bytes, before, after);
}

static void masked_swap(uint32_t bytes, uint64_t before, uint64_t compare, uint64_t compare_mask,
                        uint64_t swap, uint64_t swap_mask)
{
    bool equal = (before & compare_mask) == (compare & compare_mask);
    uint64_t after = equal ? (before & ~swap_mask) | (swap & swap_mask) : before;
    struct wqe wqe;

    begin_atomic(&wqe, M5_OP_ATOMIC_MASKED_CS, bytes == 4 ? M5_ATOMIC_4_BYTES : M5_ATOMIC_8_BYTES);
    if (bytes == 4) {
        wqe_operands32(&wqe, (uint32_t)swap, (uint32_t)compare, (uint32_t)swap_mask,
                       (uint32_t)compare_mask);
    } else {
        wqe_operands64(&wqe, swap, compare);
        wqe_operands64(&wqe, swap_mask, compare_mask);
    }
    atomic(&wqe, bytes, before, after);
}

static void atomics(void)
{
    fetch_add(0x1122334455667788, 0x0101010101010101);
    fetch_add(UINT64_MAX, 2);
    compare_swap(0x1122334455667788, 0x1122334455667788, 0xa1a2a3a4a5a6a7a8);
    compare_swap(0x1122334455667788, 0x1122334455667789, 0xa1a2a3a4a5a6a7a8);

    masked_add(8, 0xffffffffffffffff, 1, 0, 0);
    masked_add(8, 0xff, 1, 0x80, 0);                      /* carry out of bit 7 is dropped */
    masked_add(8, 0xff, 1, 0x100, 0x100);                 /* bit 7 is no boundary */
    masked_add(8, 0x00ff00ff00ff00ff, 0x0001000100010001, /* four fields of 16 bits */
               0x8000800080008000, 0x0100010001000100);   /* nothing reaches a boundary */
    masked_add(8, 0xffffffffffffffff, 0x0001000100010001, /* each wraps in its own field */
               0x8000800080008000, 0);
    masked_add(8, 0xf0f0f0f0f0f0f0f0, 0x2020202020202020, /* eight bytes, each alone */
               0x8080808080808080, 0x1010101010101010);
    masked_add(8, 0xaaaaaaaaaaaaaaaa, 0x6666666666666666, /* every bit a field: xor */
               UINT64_MAX, 0xcccccccccccccccc);
    masked_add(8, 1ull << 63, 1ull << 63, 1ull << 63, 0);
    masked_add(4, 0xffffffff, 1, 0, 0);
    masked_add(4, 0x80008000, 0x80018001, 0x80008000, 0x00010001);
    masked_add(4, 0x0000ffff, 1, 0x8000, 0);
    masked_add(4, 0x0000ffff, 1, 0x80000000, 0x00010000);

    masked_swap(8, 0x1122334455667788, 0x1122334455667788, UINT64_MAX, 0, UINT64_MAX);
    masked_swap(8, 0x1122334455667788, 0, 0, 0xa1a2a3a4a5a6a7a8, 0xff00ff00ff00ff00);
    masked_swap(8, 0x1122334455667788, 0xffffffffffff7788, 0xffff, 0x5a5a, 0xff);
    masked_swap(8, 0x1122334455667788, 0xffffffffffff7789, 0xffff, 0x5a5a, 0xff);
    masked_swap(8, 0x1122334455667788, 0x11ffffffffffffff, 0xff00000000000000, 0x99ull << 56,
                0xf0ull << 56);
    masked_swap(4, 0x11223344, 0x11223344, 0xffffffff, 0xcafecafe, 0xffffffff);
    masked_swap(4, 0x11223344, 0x00000044, 0x000000ff, 0xcafecafe, 0x0000ffff);
    masked_swap(4, 0x11223344, 0x00000045, 0x000000ff, 0xcafecafe, 0x0000ffff);
}

/* ---- Unsignalled WQEs, and a batch behind one doorbell ---- */

static void unsignalled(void)
{
    struct wqe wqe;
    uint32_t index = 0;

    for (uint32_t i = 0; i < 16; i++) {
        bool last = i == 15;
        pair.a.payload[i] = (uint8_t)(0xa0 + i);
        wqe_begin(&wqe, M5_OP_WRITE, 0, last ? M5_CTRL_CQ_UPDATE : 0u, 0);
        wqe_raddr(&wqe, (uintptr_t)pair.b.payload + i, pair.b.mr->rkey);
        wqe_data(&wqe, pair.a.payload + i, pair.a.mr->lkey, 1);
        index = devx_write_wqe(&pair, &pair.a, &wqe);
    }
    devx_ring(&pair, &pair.a, &wqe);
    devx_expect(&pair.a, M5_OP_WRITE, index, 1);
    check_same(pair.b.payload, pair.a.payload, 16, "batch");
    devx_expect_none(&pair.a.send_cq, 5);
}

int main(void)
{
    static const uint32_t cqe_bytes[] = {64, 128};

    for (int i = 0; i < 2; i++) {
        struct devx_options options = devx_defaults();
        options.cqe_bytes = cqe_bytes[i];
        devx_start(&pair, &options);
        for (int lap = 0; lap < 8; lap++) { /* rings and CQs wrap at different places */
            nop();
            writes_and_reads();
            sends();
            atomics();
            unsignalled();
        }
        CHECK(devx_query(&pair.a, m5_qpc_state) == M5_QPC_RTS, "the QP is not in RTS any more");
        devx_destroy(&pair);
    }
    return 0;
}
