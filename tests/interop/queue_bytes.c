/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: for the same request, the builders of impl/wqe.h write the bytes that libmlx5 writes,
 * block for block, and publishing moves the doorbell record to the same value. libmlx5's are read
 * from the ring of a queue pair that executes them; ours are built in a detached queue of the same
 * depth with the same QPN.
 *
 * Strict mode, which watches what libmlx5 posts, has nothing to report; so those bytes keep the
 * rules.
 *
 * Masked, because the format leaves them free: the padding behind an inline payload, and the
 * compare operand of a fetch-and-add.
 */
#include "rc_pair.h"

#include <doorbell/device.h>
#include <doorbell/doorbell.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "queue_ends.h"

#define INLINE_BYTES 800
#define BUFFER_BYTES 65536

enum kind {
    PUT,
    PUT_UNSIGNALED,
    PUT_SOLICITED_IMM,
    PUT_IMM,
    PUT_INLINE,
    PUT_INLINE_IMM,
    GET,
    GET_FENCED,
    FETCH_ADD,
};

static const char *const names[] = {
    [PUT] = "write",
    [PUT_UNSIGNALED] = "unsignalled write",
    [PUT_SOLICITED_IMM] = "solicited write with immediate",
    [PUT_IMM] = "write with immediate",
    [PUT_INLINE] = "inline write",
    [PUT_INLINE_IMM] = "inline write with immediate",
    [GET] = "read",
    [GET_FENCED] = "fenced read",
    [FETCH_ADD] = "fetch-and-add",
};

struct request {
    enum kind kind;
    uint32_t bytes;
};

/* The same request in both hands. `posted` counts what libmlx5 was given. */
struct hands {
    struct rc_pair pair;
    struct mlx5dv_qp theirs;
    struct db_queue *queue;
    struct db_qp *ours;

    uint32_t compared;
};

static struct ibv_send_wr verbs_request(const struct hands *hands, struct request request,
                                        struct ibv_sge *sge)
{
    const struct rc_end *a = &hands->pair.a, *b = &hands->pair.b;
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};

    *sge = (struct ibv_sge){(uintptr_t)a->buffer + 64, request.bytes, a->mr->lkey};
    wr.wr.rdma.remote_addr = (uintptr_t)b->buffer + 128;
    wr.wr.rdma.rkey = b->mr->rkey;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.imm_data = htobe32(0x11223344);
    switch (request.kind) {
    case PUT_UNSIGNALED:
        wr.send_flags = 0;
        break;
    case PUT_SOLICITED_IMM:
        wr.send_flags |= IBV_SEND_SOLICITED;
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        break;
    case PUT_IMM:
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        break;
    case PUT_INLINE:
        wr.send_flags |= IBV_SEND_INLINE;
        break;
    case PUT_INLINE_IMM:
        wr.send_flags |= IBV_SEND_INLINE;
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        break;
    case GET:
        wr.opcode = IBV_WR_RDMA_READ;
        break;
    case GET_FENCED:
        wr.opcode = IBV_WR_RDMA_READ;
        wr.send_flags |= IBV_SEND_FENCE;
        break;
    case FETCH_ADD:
        wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.remote_addr = (uintptr_t)b->buffer + 128;
        wr.wr.atomic.rkey = b->mr->rkey;
        wr.wr.atomic.compare_add = 0x0102030405060708;
        break;
    default:
        break;
    }
    return wr;
}

/* Returns the blocks that were built. */
static uint32_t build(const struct hands *hands, struct request request, uint64_t index)
{
    const struct rc_end *a = &hands->pair.a, *b = &hands->pair.b;
    uint64_t laddr = (uintptr_t)a->buffer + 64, raddr = (uintptr_t)b->buffer + 128;
    uint32_t lkey = a->mr->lkey, rkey = b->mr->rkey, bytes = request.bytes;
    struct db_qp *qp = hands->ours;

    switch (request.kind) {
    case PUT:
        db_build_write(qp, index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes);
        return 1;
    case PUT_UNSIGNALED:
        db_build_write(qp, index, DB_UNSIGNALED, raddr, rkey, laddr, lkey, bytes);
        return 1;
    case PUT_SOLICITED_IMM:
        db_build_write_imm(qp, index, DB_SIGNALED | M5_CTRL_SOLICITED, raddr, rkey, laddr, lkey,
                           bytes, 0x11223344);
        return 1;
    case PUT_IMM:
        db_build_write_imm(qp, index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes, 0x11223344);
        return 1;
    case PUT_INLINE:
        db_build_write_inline(qp, index, M5_OP_WRITE, DB_SIGNALED, raddr, rkey, a->buffer + 64,
                              bytes, 0);
        return db_inline_blocks(bytes);
    case PUT_INLINE_IMM:
        db_build_write_inline(qp, index, M5_OP_WRITE_IMM, DB_SIGNALED, raddr, rkey, a->buffer + 64,
                              bytes, 0x11223344);
        return db_inline_blocks(bytes);
    case GET:
        db_build_read(qp, index, DB_SIGNALED, raddr, rkey, laddr, lkey, bytes);
        return 1;
    case GET_FENCED:
        db_build_read(qp, index, DB_SIGNALED | M5_CTRL_FENCE, raddr, rkey, laddr, lkey, bytes);
        return 1;
    default:
        db_build_fetch_add(qp, index, DB_SIGNALED, raddr, rkey, laddr, lkey, 0x0102030405060708);
        return 1;
    }
}

/* Is this byte of the WQE free? */
static bool is_free(struct request request, uint32_t at)
{
    if (request.kind == FETCH_ADD)
        return at >= 40 && at < 48;
    if (request.kind == PUT_INLINE || request.kind == PUT_INLINE_IMM)
        return at >= 36 + request.bytes;
    return false;
}

/* Bytes of WQEs wrap at the end of the ring, for both. */
static void compare(const struct hands *hands, struct request request, uint64_t index)
{
    const uint8_t *theirs = hands->theirs.sq.buf;
    const uint8_t *first = hands->ours->sq + (index & (hands->ours->depth - 1)) * M5_BLOCK_BYTES;
    uint32_t segments = first[7] & 0x3f;
    size_t ring_bytes = (size_t)hands->ours->depth * M5_BLOCK_BYTES;

    for (uint32_t at = 0; at < segments * M5_SEGMENT_BYTES; at++) {
        size_t place = (index * M5_BLOCK_BYTES + at) & (ring_bytes - 1);
        if (!is_free(request, at))
            CHECK(hands->ours->sq[place] == theirs[place],
                  "%s of %u bytes at index %llu: byte %u is %#x, libmlx5's is %#x",
                  names[request.kind], request.bytes, (unsigned long long)index, at,
                  hands->ours->sq[place], theirs[place]);
    }
}

static void complete(struct hands *hands)
{
    /* An unsignalled request has no completion; one behind it tells that it was carried out. */
    struct rc_end *a = &hands->pair.a;
    struct ibv_wc wc = rc_poll(a->send_cq);

    CHECK(wc.status == IBV_WC_SUCCESS, "libmlx5's request failed: %s",
          ibv_wc_status_str(wc.status));
}

static void both(struct hands *hands, struct request request)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = verbs_request(hands, request, &sge), *bad;
    uint64_t index = port_ld64(&hands->ours->post.claimed, PORT_RELAXED, PORT_GPU);
    uint64_t claimed;

    if (wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        rc_post_recv(&hands->pair.b, 0, 0, 0);
    int error = ibv_post_send(hands->pair.a.qp, &wr, &bad);
    CHECK(error == 0, "ibv_post_send of a %s of %u bytes: %s", names[request.kind], request.bytes,
          strerror(error));
    uint32_t blocks = build(hands, request, index);
    CHECK(db_claim(hands->ours, blocks, &claimed) == DB_OK && claimed == index, "no room");
    db_publish_safe(hands->ours, index, index + blocks);
    compare(hands, request, index);
    CHECK(hands->ours->record->send.raw == hands->theirs.dbrec[MLX5_SND_DBR],
          "after a %s the record holds %#x, libmlx5's %#x", names[request.kind],
          port_host32(hands->ours->record->send), be32toh(hands->theirs.dbrec[MLX5_SND_DBR]));
    CHECK(db_detached_complete(hands->queue, 1) == 1, "%s", db_error_text());
    if (request.kind != PUT_UNSIGNALED)
        complete(hands);
    if (wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        rc_poll(hands->pair.b.recv_cq);
    hands->compared++;
}

static void start(struct hands *hands)
{
    struct rc_options options = rc_defaults();
    struct mlx5dv_obj object = {.qp = {.out = &hands->theirs}};

    options.inline_bytes = INLINE_BYTES;
    options.buffer_bytes = BUFFER_BYTES;
    rc_start(&hands->pair, &options);
    CHECK(hands->pair.a.cap.max_inline_data >= INLINE_BYTES, "only %u bytes inline",
          hands->pair.a.cap.max_inline_data);
    object.qp.in = hands->pair.a.qp;
    CHECK(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP) == 0, "mlx5dv_init_obj");
    CHECK(hands->theirs.sq.stride == M5_BLOCK_BYTES, "a stride of %u", hands->theirs.sq.stride);

    const struct db_queue_attr attr = {.depth = hands->theirs.sq.wqe_cnt};
    CHECK(db_queue_create_detached(&attr, &hands->queue) == 0, "%s", db_error_text());
    hands->ours = db_queue_device_view(hands->queue);
    hands->ours->qpn = hands->pair.a.qp->qp_num;
    for (uint32_t i = 0; i < BUFFER_BYTES; i++)
        hands->pair.a.buffer[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
}

int main(void)
{
    static const enum kind pointers[] = {PUT, PUT_UNSIGNALED, PUT_SOLICITED_IMM, PUT_IMM,
                                         GET, GET_FENCED};
    static const uint32_t sizes[] = {1, 8, 64, 220, 4096, 7168, BUFFER_BYTES - 256};
    static struct hands hands;

    start(&hands);
    queue_strict(false); /* what was executed is compared */
    for (size_t k = 0; k < sizeof(pointers) / sizeof(pointers[0]); k++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
            both(&hands, (struct request){pointers[k], sizes[s]});
    for (uint32_t bytes = 1; bytes <= INLINE_BYTES; bytes++)
        both(&hands, (struct request){PUT_INLINE, bytes});
    for (uint32_t bytes = 1; bytes <= INLINE_BYTES; bytes += 9)
        both(&hands, (struct request){PUT_INLINE_IMM, bytes});
    /* Past the 16-bit index. */
    while (port_ld64(&hands.ours->post.claimed, PORT_RELAXED, PORT_GPU) < 66000)
        both(&hands, (struct request){PUT_INLINE, 200 + hands.compared % 600});
    for (int i = 0; i < 70; i++)
        both(&hands, (struct request){FETCH_ADD, 8});
    printf("%u requests compared\n", hands.compared);
    db_queue_destroy(hands.queue);
    rc_destroy(&hands.pair);
    queue_expect_no_diagnostics();
    return 0;
}
