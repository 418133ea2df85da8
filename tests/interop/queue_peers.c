/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a queue of libdoorbell and a queue pair of libmlx5 talk to each other on the same device,
 * each as the one that asks and as the one that answers, and both at once. Strict mode has nothing
 * to report of either.
 */
#include "rc_pair.h"

#include <errno.h>
#include <string.h>

#include "queue_ends.h"

#define BUFFER_BYTES 65536
#define ROUNDS       200

struct peers {
    struct db_device *device;
    struct queue_end ours;
    struct rc_pair pair; /* its end `a` is libmlx5's peer of ours; `b` is idle */
};

static void start(struct peers *peers)
{
    const struct db_queue_attr attr = {.depth = 128, .recv_depth = 64};
    struct rc_options options = rc_defaults();
    struct db_endpoint endpoint;

    QUEUE_OK(db_device_open(NULL, NULL, &peers->device));
    queue_end_create(&peers->ours, peers->device, &attr, BUFFER_BYTES);
    options.buffer_bytes = BUFFER_BYTES;
    rc_create(&peers->pair, NULL, &options);

    struct rc_end *a = &peers->pair.a;
    QUEUE_OK(db_queue_endpoint(peers->ours.queue, &endpoint));
    const struct rc_end as_peer = {.send_psn = endpoint.psn};
    rc_to_init(&peers->pair, a);
    rc_to_rtr(&peers->pair, a, &as_peer, endpoint.qpn);
    rc_to_rts(&peers->pair, a);

    endpoint.qpn = a->qp->qp_num; /* the device, and so the rest, is the same */
    endpoint.psn = a->send_psn;
    endpoint.mtu_bytes = 1024;
    QUEUE_OK(db_queue_connect_remote(peers->ours.queue, &endpoint));
}

static void stop(struct peers *peers)
{
    rc_destroy(&peers->pair);
    queue_end_destroy(&peers->ours);
    db_device_close(peers->device);
}

/* Our queue writes, reads and adds; libmlx5's memory answers, and its receive queue takes the
 * immediate. */
static void ask(const struct peers *peers)
{
    const struct queue_end *ours = &peers->ours;
    const struct rc_end *a = &peers->pair.a;
    uint64_t raddr = (uintptr_t)a->buffer, index;
    uint64_t old;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t bytes = 1 + round * 311;
        rc_fill(ours->buffer, bytes, round, 0);
        QUEUE_OK(
            db_put(ours->qp, raddr, a->mr->rkey, ours->keys.iova, ours->keys.lkey, bytes, &index));
        queue_wait(ours->queue, index);
        rc_verify(a->buffer, bytes, round, 0, "our put to libmlx5");

        rc_fill(a->buffer, bytes, 1000 + round, 0);
        QUEUE_OK(
            db_get(ours->qp, raddr, a->mr->rkey, ours->keys.iova, ours->keys.lkey, bytes, &index));
        queue_wait(ours->queue, index);
        rc_verify(ours->buffer, bytes, 1000 + round, 0, "our get from libmlx5");

        rc_post_recv(a, round, 0, 0);
        QUEUE_OK(db_put_imm(ours->qp, raddr, a->mr->rkey, ours->keys.iova, ours->keys.lkey, bytes,
                            0xdb000000u + round, &index));
        struct ibv_wc wc = rc_expect(a->recv_cq, a, round, IBV_WC_RECV_RDMA_WITH_IMM);
        CHECK(be32toh(wc.imm_data) == 0xdb000000u + round && wc.byte_len == bytes,
              "immediate %#x of %u bytes", be32toh(wc.imm_data), wc.byte_len);
        queue_wait(ours->queue, index);
    }
    memset(a->buffer, 0, 8);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        QUEUE_OK(db_fetch_add(ours->qp, raddr, a->mr->rkey, ours->keys.iova, ours->keys.lkey, 3,
                              &index));
        queue_wait(ours->queue, index);
        memcpy(&old, ours->buffer, sizeof(old));
        CHECK(old == 3 * round, "fetch-and-add %llu found %llu", (unsigned long long)round,
              (unsigned long long)old);
    }
}

static void post(const struct peers *peers, enum ibv_wr_opcode opcode, uint32_t bytes,
                 uint32_t round)
{
    const struct queue_end *ours = &peers->ours;
    const struct rc_end *a = &peers->pair.a;
    struct ibv_sge sge = rc_sge(a, 0, bytes);
    struct ibv_send_wr wr = {
        .wr_id = round,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .imm_data = htobe32(0xee000000u + round),
    };
    struct ibv_send_wr *bad;

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = ours->keys.iova;
        wr.wr.atomic.rkey = ours->keys.rkey;
        wr.wr.atomic.compare_add = 5;
    } else {
        wr.wr.rdma.remote_addr = ours->keys.iova;
        wr.wr.rdma.rkey = ours->keys.rkey;
    }
    int error = ibv_post_send(a->qp, &wr, &bad);
    CHECK(error == 0, "ibv_post_send: %s", strerror(error));
}

/* libmlx5 writes, reads, adds and sends an immediate; our memory and our receive queue answer. */
static void answer(const struct peers *peers)
{
    const struct queue_end *ours = &peers->ours;
    const struct rc_end *a = &peers->pair.a;
    uint64_t old;

    QUEUE_OK(db_queue_post_receives(ours->queue, 64));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t bytes = 1 + round * 311;
        rc_fill(a->buffer, bytes, round, 0);
        post(peers, IBV_WR_RDMA_WRITE, bytes, round);
        rc_expect(a->send_cq, a, round, IBV_WC_RDMA_WRITE);
        rc_verify(ours->buffer, bytes, round, 0, "libmlx5's write to us");

        rc_fill(ours->buffer, bytes, 1000 + round, 0);
        post(peers, IBV_WR_RDMA_READ, bytes, round);
        rc_expect(a->send_cq, a, round, IBV_WC_RDMA_READ);
        rc_verify(a->buffer, bytes, 1000 + round, 0, "libmlx5's read from us");

        post(peers, IBV_WR_RDMA_WRITE_WITH_IMM, bytes, round);
        struct db_receive receive = queue_end_receive(ours);
        CHECK(receive.imm == 0xee000000u + round && receive.bytes == bytes &&
                  receive.qpn == ours->qp->qpn,
              "immediate %#x of %u bytes for QP %#x", receive.imm, receive.bytes, receive.qpn);
        rc_expect(a->send_cq, a, round, IBV_WC_RDMA_WRITE);
        QUEUE_OK(db_queue_post_receives(ours->queue, 1));
    }
    memset(ours->buffer, 0, 8);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        post(peers, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, round);
        rc_expect(a->send_cq, a, round, IBV_WC_FETCH_ADD);
        memcpy(&old, a->buffer, sizeof(old));
        CHECK(old == 5ull * round, "fetch-and-add %u found %llu", round, (unsigned long long)old);
    }
}

/* Both post before either waits; the halves of the buffers do not meet. */
static void both_ways(const struct peers *peers)
{
    const struct queue_end *ours = &peers->ours;
    const struct rc_end *a = &peers->pair.a;
    const uint32_t half = BUFFER_BYTES / 2;
    uint64_t index;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t bytes = 1 + round * 100;
        rc_fill(ours->buffer + half, bytes, round, 0);
        rc_fill(a->buffer, bytes, 500 + round, 0);
        QUEUE_OK(db_put(ours->qp, (uintptr_t)a->buffer + half, a->mr->rkey, ours->keys.iova + half,
                        ours->keys.lkey, bytes, &index));
        post(peers, IBV_WR_RDMA_WRITE, bytes, round);
        queue_wait(ours->queue, index);
        rc_expect(a->send_cq, a, round, IBV_WC_RDMA_WRITE);
        rc_verify(a->buffer + half, bytes, round, 0, "our put to libmlx5");
        rc_verify(ours->buffer, bytes, 500 + round, 0, "libmlx5's write to us");
    }
}

int main(void)
{
    static struct peers peers;

    start(&peers);
    queue_strict(true);
    ask(&peers);
    answer(&peers);
    both_ways(&peers);
    stop(&peers);
    queue_expect_no_diagnostics();
    return 0;
}
