/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: send and receive rings of every depth from 1 to 32768 go round and round without losing,
 * repeating or mixing up a request: full and empty, in chains of 2 to 64, completions asked for
 * rarely, requests of different sizes across the end of the ring, and more requests than the 16-bit
 * index counts twice.
 */
#include "rc_pair.h"

#include <errno.h>
#include <string.h>

enum { LONG_RUN = 140000 }; /* more than 2 * 65536 */

static uint64_t read_slot(const struct rc_end *end, size_t slot)
{
    uint64_t value;

    memcpy(&value, end->buffer + slot * 8, 8);
    return value;
}

/* Posts writes `first` to `first` + n - 1, inline, each with its number as value into the slot of
 * its number, in chains of up to `chain`; every `stride`th and the last ask for completion. */
static void post_writes(struct rc_pair *pair, uint64_t first, size_t n, size_t chain, size_t stride,
                        size_t slots)
{
    struct ibv_send_wr wr[64];
    struct ibv_sge sge[64];
    uint64_t value[64];

    for (size_t done = 0; done < n;) {
        size_t k = n - done < chain ? n - done : chain;

        for (size_t i = 0; i < k; i++) {
            value[i] = first + done + i;
            sge[i] = (struct ibv_sge){.addr = (uintptr_t)&value[i], .length = 8};
            wr[i] = (struct ibv_send_wr){
                .wr_id = value[i],
                .next = i + 1 < k ? &wr[i + 1] : NULL,
                .sg_list = &sge[i],
                .num_sge = 1,
                .opcode = IBV_WR_RDMA_WRITE,
                .send_flags = IBV_SEND_INLINE,
                .wr.rdma = {.remote_addr = (uintptr_t)pair->b.buffer + value[i] % slots * 8,
                            .rkey = pair->b.mr->rkey},
            };
            if (value[i] % stride == 0 || done + i + 1 == n)
                wr[i].send_flags |= IBV_SEND_SIGNALED;
        }
        rc_post_chain(&pair->a, wr);
        done += k;
    }
}

static void expect_writes(struct rc_pair *pair, uint64_t first, size_t n, size_t stride)
{
    for (uint64_t id = first; id < first + n; id++)
        if (id % stride == 0 || id + 1 == first + n)
            rc_expect(pair->a.send_cq, &pair->a, id, IBV_WC_RDMA_WRITE);
}

/* The library refuses one request more than the ring has room for. */
static void check_full(struct rc_pair *pair)
{
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_WRITE,
        .wr.rdma = {.remote_addr = (uintptr_t)pair->b.buffer, .rkey = pair->b.mr->rkey},
    };
    struct ibv_send_wr *bad = NULL;
    int err = ibv_post_send(pair->a.qp, &wr, &bad);

    CHECK(err == ENOMEM && bad == &wr, "a request more than the ring holds: %d", err);
}

/* Fills a send ring of `depth` to the brim and drains it, until `total` requests have passed. */
static void send_depth(uint32_t depth, uint64_t total, size_t chain, size_t stride)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;
    size_t room, slots;
    uint64_t id = 1;

    options.send_ops = IBV_QP_EX_WITH_RDMA_WRITE; /* the smallest slots: 64 bytes each */
    options.send_depth = depth;
    options.inline_bytes = 8;
    options.buffer_bytes = 32768 * 8;
    rc_create(&pair, NULL, &options);
    rc_connect(&pair);
    room = pair.a.cap.max_send_wr;
    CHECK(room >= depth && room <= 32768, "%zu requests granted, %u asked for", room, depth);
    slots = room;
    while (id <= total) {
        post_writes(&pair, id, room, chain, stride, slots);
        /* Nothing was polled, so no slot is free, however far the device has got. */
        check_full(&pair);
        expect_writes(&pair, id, room, stride);
        for (uint64_t i = id; i < id + room; i++)
            CHECK(read_slot(&pair.b, i % slots) == i, "depth %u: slot %llu holds %llu, not %llu",
                  depth, (unsigned long long)(i % slots),
                  (unsigned long long)read_slot(&pair.b, i % slots), (unsigned long long)i);
        id += room;
    }
    rc_expect_none(pair.a.send_cq, 1);
    rc_destroy(&pair);
}

/* Keeps a ring of 64 busy without ever draining it: posts a chain whenever there is room for one.
 */
static void never_empty(size_t chain)
{
    struct rc_options options = rc_defaults();
    uint64_t posted = 0, completed = 0, total = LONG_RUN / 4;
    struct rc_pair pair;

    options.send_ops = IBV_QP_EX_WITH_RDMA_WRITE;
    options.inline_bytes = 8;
    rc_start(&pair, &options);
    while (completed < total) {
        if (posted < total && posted - completed + chain <= 64) {
            /* The chain's last request completes for all of it. */
            post_writes(&pair, posted + 1, chain, chain, UINT64_MAX, 4096);
            posted += chain;
        } else {
            completed += chain;
            rc_expect(pair.a.send_cq, &pair.a, completed, IBV_WC_RDMA_WRITE);
            CHECK(read_slot(&pair.b, completed % 4096) == completed, "slot of %llu holds %llu",
                  (unsigned long long)completed,
                  (unsigned long long)read_slot(&pair.b, completed % 4096));
        }
    }
    rc_destroy(&pair);
}

/* Requests of one to four or more 64-byte blocks, inline and by entry, at every place of the ring:
 * each one's bytes are its own. */
static void mixed_sizes(void)
{
    struct rc_options options = rc_defaults();
    uint32_t random = 1;
    struct rc_pair pair;
    struct ibv_sge sge[8];

    options.send_depth = 13;
    options.inline_bytes = 400;
    options.send_sge = 8;
    rc_start(&pair, &options);
    for (uint64_t id = 0; id < LONG_RUN / 10; id++) {
        bool is_inline = random >> 16 & 1;
        size_t bytes = is_inline ? (random >> 17) % 401 : (random >> 17) % 4000;
        int n = (int)(1 + (random >> 8) % 8);
        struct ibv_send_wr wr = {
            .wr_id = id,
            .sg_list = sge,
            .num_sge = n,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_SIGNALED | (is_inline ? IBV_SEND_INLINE : 0),
            .wr.rdma = {.remote_addr = (uintptr_t)pair.b.buffer, .rkey = pair.b.mr->rkey},
        };

        random = random * 1664525 + 1013904223;
        rc_fill(pair.a.buffer, bytes, id, 0);
        memset(pair.b.buffer, 0x77, bytes + 8);
        for (int i = 0; i < n; i++) {
            size_t from = bytes * (size_t)i / (size_t)n, to = bytes * (size_t)(i + 1) / (size_t)n;

            sge[i] = rc_sge(&pair.a, from, to - from);
        }
        rc_post_chain(&pair.a, &wr);
        rc_expect(pair.a.send_cq, &pair.a, id, IBV_WC_RDMA_WRITE);
        rc_verify(pair.b.buffer, bytes, id, 0, "a request of mixed size");
        rc_verify_constant(pair.b.buffer + bytes, 8, 0x77, "after a request of mixed size");
    }
    rc_destroy(&pair);
}

/* `n` receives in one chain; receive `id` takes its 8 bytes in slot id % slots, in two entries. */
static void post_receives(struct rc_pair *pair, uint64_t first, size_t n, size_t slots)
{
    struct ibv_recv_wr wr[64];
    struct ibv_sge sge[64][2];

    for (size_t done = 0; done < n;) {
        size_t k = n - done < 64 ? n - done : 64;
        struct ibv_recv_wr *bad = NULL;

        for (size_t i = 0; i < k; i++) {
            uint64_t id = first + done + i;
            size_t place = id % slots * 8;

            sge[i][0] = rc_sge(&pair->b, place, 1 + id % 7);
            sge[i][1] = rc_sge(&pair->b, place + 1 + id % 7, 7 - id % 7);
            wr[i] = (struct ibv_recv_wr){
                .wr_id = id,
                .next = i + 1 < k ? &wr[i + 1] : NULL,
                .sg_list = sge[i],
                .num_sge = 2,
            };
        }
        CHECK(ibv_post_recv(pair->b.qp, wr, &bad) == 0, "ibv_post_recv of %zu", k);
        done += k;
    }
}

static void post_sends(struct rc_pair *pair, uint64_t first, size_t n)
{
    struct ibv_send_wr wr[64];
    struct ibv_sge sge[64];
    uint64_t value[64];

    for (size_t i = 0; i < n; i++) {
        value[i] = first + i;
        sge[i] = (struct ibv_sge){.addr = (uintptr_t)&value[i], .length = 8};
        wr[i] = (struct ibv_send_wr){
            .wr_id = value[i],
            .next = i + 1 < n ? &wr[i + 1] : NULL,
            .sg_list = &sge[i],
            .num_sge = 1,
            .opcode = IBV_WR_SEND,
            .send_flags = IBV_SEND_INLINE | (i + 1 == n ? IBV_SEND_SIGNALED : 0),
        };
    }
    rc_post_chain(&pair->a, wr);
}

/* Fills a receive ring of `depth` to the brim and uses it up, until `total` messages have passed.
 */
static void recv_depth(uint32_t depth, uint64_t total)
{
    struct rc_options options = rc_defaults();
    struct ibv_recv_wr extra = {.wr_id = 0}, *bad = NULL;
    struct rc_pair pair;
    size_t room, slots;
    uint64_t id = 1;

    options.recv_depth = depth;
    options.recv_sge = 2 + depth % 2; /* slots of 32 and of 64 bytes */
    options.inline_bytes = 8;
    options.buffer_bytes = 65536 * 8;
    rc_start(&pair, &options);
    room = pair.b.cap.max_recv_wr;
    CHECK(room >= depth && room <= 65536, "%zu receives granted, %u asked for", room, depth);
    slots = room;
    if (room > depth) /* the CQ was made for `depth` */
        room = depth;
    while (id <= total) {
        post_receives(&pair, id, room, slots);
        if (room == slots)
            CHECK(ibv_post_recv(pair.b.qp, &extra, &bad) == ENOMEM,
                  "a receive more than the ring of %zu holds was taken", room);
        for (size_t done = 0; done < room;) {
            size_t k = room - done < 64 ? room - done : 1 + (id + done) % 64;

            post_sends(&pair, id + done, k);
            rc_expect(pair.a.send_cq, &pair.a, id + done + k - 1, IBV_WC_SEND);
            done += k;
        }
        for (uint64_t i = id; i < id + room; i++) {
            struct ibv_wc wc = rc_expect(pair.b.recv_cq, &pair.b, i, IBV_WC_RECV);

            CHECK(wc.byte_len == 8, "%u bytes received", wc.byte_len);
            CHECK(read_slot(&pair.b, i % slots) == i, "depth %u: message %llu holds %llu", depth,
                  (unsigned long long)i, (unsigned long long)read_slot(&pair.b, i % slots));
        }
        id += room;
    }
    rc_expect_none(pair.b.recv_cq, 1);
    rc_destroy(&pair);
}

int main(void)
{
    static const uint32_t depths[] = {1, 2, 3, 7, 64, 256, 1000, 4096, 32768};

    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        uint32_t depth = depths[i];
        uint64_t laps = 3ull * depth;

        send_depth(depth,
                   depth == 2 || depth == 64 ? LONG_RUN
                   : laps < 5000             ? 5000
                                             : laps,
                   depth < 64 ? 1 + depth / 2 : 64, 1 + depth / 3);
        recv_depth(depth, depth == 2 || depth == 64 ? LONG_RUN : laps < 5000 ? 5000 : laps);
    }
    for (size_t chain = 2; chain <= 64; chain = chain < 8 ? chain + 1 : chain * 2)
        never_empty(chain);
    send_depth(256, 20000, 17, 1);
    send_depth(32768, 140000, 33, 1000);
    mixed_sizes();
    return 0;
}
