/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: inline payload of every size that a WQE of 16 blocks holds arrives, from every place of
 * the send ring, also where the WQE wraps around the ring's end; lists of gather and inline
 * segments are joined in their order; receive lists are filled in theirs.
 */
#include "devx_pair.h"

static struct devx_pair pair;

/* What fits: 63 segments, less control, remote address and the inline word. */
#define MAX_INLINE (63 * 16 - 16 - 16 - 4)

static void every_size(void)
{
    uint8_t data[MAX_INLINE];
    struct wqe wqe;

    for (uint32_t bytes = 0; bytes <= MAX_INLINE; bytes++) {
        uint8_t *to = pair.b.payload + bytes % 64;
        for (uint32_t i = 0; i < bytes; i++)
            data[i] = (uint8_t)(bytes * 7 + i * 3 + 1);
        memset(to, 0, bytes + 8);
        wqe_begin(&wqe, M5_OP_WRITE, 0, M5_CTRL_CQ_UPDATE, 0);
        wqe_raddr(&wqe, (uintptr_t)to, pair.b.mr->rkey);
        wqe_inline(&wqe, data, bytes);
        devx_expect(&pair.a, M5_OP_WRITE, devx_post(&pair, &pair.a, &wqe), bytes);
        CHECK(memcmp(to, data, bytes) == 0, "%u inline bytes arrived changed", bytes);
        CHECK(to[bytes] == 0, "%u inline bytes: more was written", bytes);
    }
}

/* Each length in blocks at each place of the ring, so that every split at its end occurs. */
static void every_place(void)
{
    uint32_t depth = 1u << pair.options.sq_depth_log2;
    uint8_t data[MAX_INLINE];
    struct wqe wqe;

    for (uint32_t blocks = 1; blocks <= 16; blocks++) {
        uint32_t segments = blocks == 16 ? 63 : blocks * 4;
        uint32_t bytes = segments * 16 - 36;
        for (uint32_t place = 0; place < depth; place++) {
            while (pair.a.posted % depth != place) {
                wqe_begin(&wqe, M5_OP_NOP, 0, M5_CTRL_CQ_UPDATE, 0);
                devx_expect(&pair.a, M5_OP_NOP, devx_post(&pair, &pair.a, &wqe), 0);
            }
            for (uint32_t i = 0; i < bytes; i++)
                data[i] = (uint8_t)(place * 31 + blocks + i * 5);
            memset(pair.b.payload, 0, bytes);
            wqe_begin(&wqe, M5_OP_WRITE, 0, M5_CTRL_CQ_UPDATE, 0);
            wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
            wqe_inline(&wqe, data, bytes);
            CHECK(wqe_blocks(&wqe) == blocks, "%u blocks, wanted %u", wqe_blocks(&wqe), blocks);
            devx_expect(&pair.a, M5_OP_WRITE, devx_post(&pair, &pair.a, &wqe), bytes);
            CHECK(memcmp(pair.b.payload, data, bytes) == 0, "%u blocks at slot %u: changed", blocks,
                  place);
        }
    }
}

/* Gather entries of odd sizes with inline segments between them. */
static void gather(void)
{
    uint8_t *from = pair.a.payload, wanted[4096];
    struct wqe wqe;

    for (uint32_t count = 1; count <= 28; count++) {
        uint32_t bytes = 0;
        wqe_begin(&wqe, M5_OP_WRITE, 0, M5_CTRL_CQ_UPDATE, 0);
        wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t part = i % 3 == 1 ? 1 + i % 19 : 1 + i * 11 % 97;
            uint8_t *at = from + 200 * i;
            for (uint32_t j = 0; j < part; j++)
                wanted[bytes + j] = at[j] = (uint8_t)(count + i * 17 + j);
            if (i % 3 == 1)
                wqe_inline(&wqe, at, part);
            else
                wqe_data(&wqe, at, pair.a.mr->lkey, part);
            bytes += part;
        }
        memset(pair.b.payload, 0, bytes + 1);
        devx_expect(&pair.a, M5_OP_WRITE, devx_post(&pair, &pair.a, &wqe), bytes);
        CHECK(memcmp(pair.b.payload, wanted, bytes) == 0, "%u segments were not joined", count);
        CHECK(pair.b.payload[bytes] == 0, "%u segments: more was written", count);
    }
}

/* A message into lists of 1 to 4 entries; only the last need not be filled. Reads scatter too. */
static void scatter(void)
{
    struct wqe wqe;

    for (uint32_t i = 0; i < 200; i++) {
        uint32_t count = 1 + i % 4, room = 0, bytes;
        struct devx_scatter list[4];
        for (uint32_t j = 0; j < count; j++) {
            list[j] = (struct devx_scatter){pair.b.payload + 1000 * j + i % 7, pair.b.mr->lkey,
                                            1 + (i * 13 + j * 29) % 300};
            room += list[j].bytes;
        }
        bytes = room - i % (list[count - 1].bytes + 1);
        for (uint32_t j = 0; j < bytes; j++)
            pair.a.payload[j] = (uint8_t)(i + j * 7 + 1);
        memset(pair.b.payload, 0, 4096);
        devx_post_recv(&pair, &pair.b, list, count);
        wqe_begin(&wqe, M5_OP_SEND, 0, M5_CTRL_CQ_UPDATE, 0);
        wqe_data(&wqe, pair.a.payload, pair.a.mr->lkey, bytes);
        devx_expect(&pair.a, M5_OP_SEND, devx_post(&pair, &pair.a, &wqe), bytes);
        struct cqe cqe = devx_poll(&pair.b.recv_cq);
        CHECK(cqe.opcode == M5_CQE_RESPONDER_SEND && cqe.byte_count == bytes,
              "CQE opcode 0x%x, %u bytes, wanted %u", cqe.opcode, cqe.byte_count, bytes);
        const uint8_t *sent = pair.a.payload;
        for (uint32_t j = 0, left = bytes; j < count && left; j++) {
            uint32_t part = list[j].bytes < left ? list[j].bytes : left;
            CHECK(memcmp(list[j].address, sent, part) == 0, "entry %u of %u differs", j, count);
            CHECK(((uint8_t *)list[j].address)[part] == 0, "entry %u of %u: overfilled", j, count);
            sent += part;
            left -= part;
        }
    }
    wqe_begin(&wqe, M5_OP_READ, 0, M5_CTRL_CQ_UPDATE, 0);
    wqe_raddr(&wqe, (uintptr_t)pair.b.payload, pair.b.mr->rkey);
    for (uint32_t i = 0; i < 29; i++)
        wqe_data(&wqe, pair.a.payload + 100 * (28 - i), pair.a.mr->lkey, 10 + i);
    for (uint32_t i = 0; i < 4096; i++)
        pair.b.payload[i] = (uint8_t)(i * 11 >> 2);
    devx_expect(&pair.a, M5_OP_READ, devx_post(&pair, &pair.a, &wqe), 29 * 10 + 28 * 29 / 2);
    for (uint32_t i = 0, at = 0; i < 29; at += 10 + i, i++)
        CHECK(memcmp(pair.a.payload + 100 * (28 - i), pair.b.payload + at, 10 + i) == 0,
              "entry %u of the read differs", i);
}

int main(void)
{
    struct devx_options options = devx_defaults();
    options.sq_depth_log2 = 5;
    devx_start(&pair, &options);
    every_size();
    every_place();
    gather();
    scatter();
    devx_destroy(&pair);
    return 0;
}
