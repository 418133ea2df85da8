/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a proxy's two ways of posting, ibv_post_send() and WQEs that the worker builds, give the
 * NIC the same bytes (so the same packets) and leave the same bytes in memory: for each operation,
 * flag and size, alone and in chains of every length up to 16. The WQEs are read from the rings of
 * the two queue pairs; their control words differ by the QPN alone.
 *
 * What a flag is on the wire is stated here.
 *
 * Masked, because the format leaves them free: the padding behind an inline value, and the compare
 * operand of a fetch-and-add.
 */
#include "proxy_ends.h"

#include <infiniband/mlx5dv.h>
#include <string.h>

#include "../../src/proxy.h"
#include "../../src/queue.h"

#define BUFFER_BYTES 65536
#define WAYS         2

struct hands {
    struct proxy_ends ends;
    struct mlx5dv_qp dv;
    uint64_t posted; /* requests */
};

static struct hands hands[WAYS];
static uint32_t compared;

static void open_hands(enum db_post post)
{
    const struct db_proxy_attr proxy = {.post = post, .depth = 64};
    const struct db_queue_attr attr = {.depth = 64};
    struct hands *h = &hands[post];

    proxy_ends_start(&h->ends, &proxy, &attr, BUFFER_BYTES);
    struct mlx5dv_obj object = {
        .qp = {.in = h->ends.queue->proxied->worker->pair.qp, .out = &h->dv}};
    CHECK(!mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), "the queue pair's ring");
    QUEUE_OK(db_queue_post_receives(h->ends.peer.queue, 64));
}

/* Request `i` of a chain. */
static void push(struct hands *h, enum db_ring_op op, uint32_t flags, uint32_t bytes, uint32_t i,
                 uint64_t *index)
{
    struct db_ring *ring = h->ends.qp->ring;
    uint32_t window = h->ends.remote.rkey, region = h->ends.local.lkey;
    struct db_descriptor operand =
        db_descriptor_value(DB_RING_OPERAND, 0, 0, 0x0102030405060708 + i);
    struct db_descriptor d =
        db_descriptor_memory(op, flags, window, 128 * i, region, 4096 + 64 * i, bytes);
    int status;

    if (op == DB_RING_VALUE)
        status = db_ring_push(ring, &ring->own,
                              db_descriptor_value(op, window, 128 * i, 0x1122334455667788 + i),
                              DB_RING_TUNED, index);
    else if (op == DB_RING_PUT_IMM || op == DB_RING_FETCH_ADD)
        status =
            db_ring_push_pair(ring, &ring->own, operand, d, DB_RING_TUNED | DB_RING_PAYLOAD, index);
    else
        status = db_ring_push(ring, &ring->own, d, DB_RING_TUNED | DB_RING_PAYLOAD, index);
    CHECK(status == DB_OK, "push = %d", status);
}

/* A chain by one of the ways: the worker stands still while it is pushed, so that it goes out with
 * one doorbell. */
static void post_chain(struct hands *h, enum db_ring_op op, uint32_t flags, uint32_t bytes,
                       uint32_t length)
{
    struct db_worker *worker = h->ends.queue->proxied->worker;
    uint64_t index = 0, posts = __atomic_load_n(&worker->posts, __ATOMIC_RELAXED);

    for (size_t i = 0; i < BUFFER_BYTES; i++) {
        h->ends.buffer[i] = (uint8_t)(i * 7 + bytes);
        h->ends.peer.buffer[i] = (uint8_t)(i * 11 + length);
    }
    db_worker_hold(worker);
    for (uint32_t i = 0; i < length; i++)
        push(h, op, flags, bytes, i, &index);
    db_worker_let_go(worker);
    QUEUE_OK(db_wait(h->ends.qp, index));
    CHECK(__atomic_load_n(&worker->posts, __ATOMIC_RELAXED) == posts + 1,
          "a chain of %u went out in parts", length);
    h->posted += length;
    if (op == DB_RING_PUT_IMM)
        for (uint32_t i = 0; i < length; i++) {
            CHECK(queue_end_receive(&h->ends.peer).imm == 0x05060708 + i, "immediate %u", i);
            QUEUE_OK(db_queue_post_receives(h->ends.peer.queue, 1));
        }
}

/* Request `number`, without what may differ. */
static void read_wqe(const struct hands *h, uint64_t number, enum db_ring_op op, uint8_t *wqe)
{
    const uint8_t *at = (const uint8_t *)h->dv.sq.buf + number % h->dv.sq.wqe_cnt * 64;
    uint64_t laddr = (uintptr_t)h->ends.buffer, raddr = (uintptr_t)h->ends.peer.buffer;
    uint32_t local_at = op == DB_RING_FETCH_ADD ? 48 : 32, segments = at[7] & 0x3f;
    uint64_t address;

    memset(wqe, 0, 64);
    memcpy(wqe, at, (size_t)segments * 16);
    memset(wqe + 4, 0, 3); /* QPN */
    /* Keys and buffers are each hand's own: offsets are compared, and that the keys are right. */
    memcpy(&address, wqe + 16, 8);
    address = htobe64(be64toh(address) - raddr);
    memcpy(wqe + 16, &address, 8);
    memset(wqe + 24, 0, 4);
    if (op == DB_RING_VALUE) {
        memset(wqe + 44, 0, 4); /* padding */
        return;
    }
    memset(wqe + local_at + 4, 0, 4);
    memcpy(&address, wqe + local_at + 8, 8);
    address = htobe64(be64toh(address) - laddr);
    memcpy(wqe + local_at + 8, &address, 8);
    if (op == DB_RING_FETCH_ADD)
        memset(wqe + 40, 0, 8); /* compare operand */
}

/* Both ways could forget the same: the control segment's flags (mlx5dv.h), and that the last
 * request of a chain alone is signalled. */
static void check_flags(const uint8_t *wqe, uint32_t flags, bool last)
{
    uint32_t want = (flags & DB_RING_FENCE ? (uint32_t)MLX5_WQE_CTRL_FENCE : 0) |
                    (flags & DB_RING_SOLICITED ? (uint32_t)MLX5_WQE_CTRL_SOLICITED : 0) |
                    (last ? (uint32_t)MLX5_WQE_CTRL_CQ_UPDATE : 0);
    CHECK(wqe[11] == want, "flags %u of a %s request: %#x instead of %#x", flags,
          last ? "last" : "chained", wqe[11], want);
}

static void compare(enum db_ring_op op, uint32_t flags, uint32_t bytes, uint32_t length)
{
    uint8_t wqe[WAYS][64];

    for (int way = 0; way < WAYS; way++)
        post_chain(&hands[way], op, flags, bytes, length);
    CHECK(hands[0].posted == hands[1].posted, "the counts differ");
    for (uint64_t i = hands[0].posted - length; i < hands[0].posted; i++) {
        for (int way = 0; way < WAYS; way++)
            read_wqe(&hands[way], i, op, wqe[way]);
        for (int at = 0; at < 64; at++)
            CHECK(wqe[0][at] == wqe[1][at],
                  "op %d, flags %u, %u bytes, chain of %u: byte %d is %#x by ibv_post_send() and "
                  "%#x by ours",
                  (int)op, flags, bytes, length, at, wqe[0][at], wqe[1][at]);
        check_flags(wqe[0], flags, i + 1 == hands[0].posted);
        compared++;
    }
    CHECK(hands[0].dv.dbrec[1] == hands[1].dv.dbrec[1], "the records differ");
    CHECK(memcmp(hands[0].ends.buffer, hands[1].ends.buffer, BUFFER_BYTES) == 0,
          "op %d, %u bytes: the local memories differ", (int)op, bytes);
    CHECK(memcmp(hands[0].ends.peer.buffer, hands[1].ends.peer.buffer, BUFFER_BYTES) == 0,
          "op %d, %u bytes: the remote memories differ", (int)op, bytes);
}

int main(void)
{
    static const uint32_t sizes[] = {1, 8, 64, 4096, 40000};

    open_hands(DB_POST_VERBS);
    open_hands(DB_POST_WQE);
    queue_strict(false); /* what was executed is compared */
    for (uint32_t length = 1; length <= DB_MAX_BATCH; length++) {
        for (uint32_t flags = 0; flags <= DB_RING_FENCE; flags++) {
            for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                compare(DB_RING_PUT, flags, sizes[i], length);
                compare(DB_RING_GET, flags, sizes[i], length);
            }
            compare(DB_RING_FETCH_ADD, flags, 8, length);
        }
        compare(DB_RING_VALUE, 0, 8, length);
        compare(DB_RING_PUT_IMM, 0, 24, length);
        compare(DB_RING_PUT_IMM, DB_RING_SOLICITED, 4096, length);
        compare(DB_RING_PUT_IMM, DB_RING_SOLICITED | DB_RING_FENCE, 8, length);
    }
    for (int way = 0; way < WAYS; way++)
        proxy_ends_destroy(&hands[way].ends);
    queue_expect_no_diagnostics_of_worker();
    printf("%u WQEs, byte for byte\n", compared);
    return 0;
}
