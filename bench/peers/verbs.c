/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libmlx5 as a peer to compare with; see verbs.h.
 */
#include "verbs.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH        256u
#define BATCH_MAX    64u
#define BUFFER_BYTES 8192u
#define TARGET       4096u /* where in the buffer the writes go */

struct peer {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp[2];
    struct ibv_mr *mr;
    uint8_t *buffer;
};

static struct ibv_context *open_context(const char *name)
{
    int count = 0;
    struct ibv_context *context = NULL;
    struct ibv_device **list = ibv_get_device_list(&count);

    for (int i = 0; list && i < count && !context; i++)
        if (strcmp(ibv_get_device_name(list[i]), name) == 0)
            context = ibv_open_device(list[i]);
    if (list)
        ibv_free_device_list(list);
    return context;
}

/* Moves one end to RTS, connected to the other. Returns 0 or an errno value. */
static int connect_end(struct ibv_qp *qp, const struct ibv_qp *other,
                       const struct db_device_info *device)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT,
        .port_num = (uint8_t)device->port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
    };
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = other->qp_num,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.dlid = (uint16_t)device->lid,
                    .port_num = (uint8_t)device->port,
                    .is_global = !device->infiniband,
                    .grh = {.sgid_index = (uint8_t)device->gid_index, .hop_limit = 64}},
    };
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 1,
    };
    memcpy(rtr.ah_attr.grh.dgid.raw, device->gid, sizeof(device->gid));
    int error = ibv_modify_qp(qp, &init,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (!error)
        error = ibv_modify_qp(qp, &rtr,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (!error)
        error = ibv_modify_qp(qp, &rts,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return error;
}

static void close_peer(struct peer *peer)
{
    for (int i = 0; i < 2; i++)
        if (peer->qp[i])
            ibv_destroy_qp(peer->qp[i]);
    if (peer->cq)
        ibv_destroy_cq(peer->cq);
    if (peer->mr)
        ibv_dereg_mr(peer->mr);
    if (peer->pd)
        ibv_dealloc_pd(peer->pd);
    if (peer->context)
        ibv_close_device(peer->context);
    free(peer->buffer);
}

/* Leaves what it made to close_peer(), also when it fails. */
static enum bench_status open_peer(struct bench *b, const struct db_device_info *device,
                                   struct peer *peer)
{
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = DEPTH,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 64},
        .qp_type = IBV_QPT_RC,
    };

    *peer = (struct peer){0};
    peer->buffer = aligned_alloc(4096, BUFFER_BYTES);
    peer->context = open_context(device->name);
    if (peer->context)
        peer->pd = ibv_alloc_pd(peer->context);
    if (!peer->buffer || !peer->pd) {
        bench_fail(b, "libmlx5 cannot open %s: %s", device->name, strerror(errno));
        return BENCH_FAIL;
    }
    memset(peer->buffer, 0, BUFFER_BYTES);
    peer->mr = ibv_reg_mr(peer->pd, peer->buffer, BUFFER_BYTES,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    peer->cq = ibv_create_cq(peer->context, DEPTH, NULL, NULL, 0);
    if (!peer->mr || !peer->cq) {
        bench_fail(b, "libmlx5 on %s: no memory region or CQ: %s", device->name, strerror(errno));
        return BENCH_FAIL;
    }
    attr.send_cq = attr.recv_cq = peer->cq;
    for (int i = 0; i < 2; i++) {
        peer->qp[i] = ibv_create_qp(peer->pd, &attr);
        if (!peer->qp[i]) {
            bench_fail(b, "libmlx5 on %s: no QP: %s", device->name, strerror(errno));
            return BENCH_FAIL;
        }
    }
    int error = connect_end(peer->qp[0], peer->qp[1], device);
    if (!error)
        error = connect_end(peer->qp[1], peer->qp[0], device);
    return error ? bench_fail(b, "libmlx5 on %s: cannot connect: %s", device->name, strerror(error))
                 : BENCH_PASS;
}

/* `count` writes of `bytes` in a chain, the last one signalled. */
static void make_chain(const struct peer *peer, struct ibv_send_wr *chain, struct ibv_sge *sge,
                       uint32_t bytes, uint32_t count, unsigned flags)
{
    *sge = (struct ibv_sge){(uintptr_t)peer->buffer, bytes, peer->mr->lkey};
    for (uint32_t i = 0; i < count; i++)
        chain[i] = (struct ibv_send_wr){
            .next = i + 1 < count ? &chain[i + 1] : NULL,
            .sg_list = sge,
            .num_sge = 1,
            .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = flags | (i + 1 < count ? 0u : (unsigned)IBV_SEND_SIGNALED),
            .wr.rdma = {(uintptr_t)peer->buffer + TARGET, peer->mr->rkey},
        };
}

/* Takes one completion. Returns 0, or -EIO, or -ETIMEDOUT after `timeout_ns`. */
static int take_completion(struct ibv_cq *cq, uint64_t timeout_ns)
{
    struct ibv_wc wc;
    uint64_t deadline = 0;
    for (uint32_t polls = 1;; polls++) {
        int found = ibv_poll_cq(cq, 1, &wc);
        if (found)
            return found < 0 || wc.status != IBV_WC_SUCCESS ? -EIO : 0;
        if (polls % 1024)
            continue;
        if (deadline == 0)
            deadline = bench_monotonic_ns() + timeout_ns;
        else if (bench_monotonic_ns() > deadline)
            return -ETIMEDOUT;
    }
}

/* One write after the other. */
static int time_writes(const struct bench *b, struct peer *peer, struct ibv_send_wr *wr,
                       uint64_t count, struct bench_samples *issue, struct bench_samples *complete)
{
    struct ibv_send_wr *bad;
    int error = 0;
    for (uint64_t i = 0; i < count && !error; i++) {
        uint64_t start = bench_ticks();
        error = -ibv_post_send(peer->qp[0], wr, &bad);
        uint64_t issued = bench_ticks();
        if (!error)
            error = take_completion(peer->cq, b->options->timeout_ns);
        uint64_t completed = bench_ticks();
        if (issue) {
            bench_samples_add(issue, bench_ticks_ns(issued - start));
            bench_samples_add(complete, bench_ticks_ns(completed - start));
        }
    }
    return error;
}

static enum bench_status latency(struct bench *b, struct peer *peer, uint32_t bytes, bool inlined,
                                 struct bench_samples *issue, struct bench_samples *complete)
{
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    struct bench_pace pace;
    enum bench_valid valid = BENCH_UNCHECKED;
    enum bench_status status = BENCH_PASS;
    uint64_t n;

    make_chain(peer, &wr, &sge, bytes, 1, inlined ? (unsigned)IBV_SEND_INLINE : 0);
    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        bench_payload_fill(peer->buffer, bytes, b->options->seed, r);
        memset(peer->buffer + TARGET, 0, bytes);
        int error = time_writes(b, peer, &wr, b->options->warmup_iters, NULL, NULL);
        bench_pace_start(&pace, b, "libmlx5");
        while (!error && (n = bench_pace_next(&pace, 2000)) > 0)
            error = time_writes(b, peer, &wr, n, issue, complete);
        if (error)
            return bench_fail(b, "libmlx5: a write failed: %s", strerror(-error));
        status = bench_check_payload(b, &valid, peer->buffer + TARGET, bytes, r);
    }
    struct bench_record record = {
        .system = "libmlx5",
        .config = {{"payload", inlined ? "inline" : "pointer", 0},
                   {"ring", "host memory", 0},
                   {"threads", NULL, 1},
                   {"queues", NULL, 1}},
        .metric = "issue",
        .unit = "us",
        .msg_bytes = bytes,
        .valid = valid,
    };
    status = bench_worse(status, bench_report(b, &record, issue));
    record.metric = "put_completion";
    return bench_worse(status, bench_report(b, &record, complete));
}

enum bench_status verbs_latency(struct bench *b, const struct db_device_info *device,
                                uint32_t bytes)
{
    struct bench_samples issue = {0}, complete = {0};
    struct peer peer;
    enum bench_status status = open_peer(b, device, &peer);

    if (status == BENCH_PASS && (bench_samples_init(&issue, bench_capacity(b)) ||
                                 bench_samples_init(&complete, bench_capacity(b))))
        status = bench_fail(b, "no memory for the samples");
    for (int inlined = 1; inlined >= 0 && status == BENCH_PASS; inlined--) {
        bench_samples_clear(&issue);
        bench_samples_clear(&complete);
        status = latency(b, &peer, bytes, inlined, &issue, &complete);
    }
    bench_samples_free(&issue);
    bench_samples_free(&complete);
    close_peer(&peer);
    return status;
}

/* Posts `posts` chains, with as many in flight as the ring holds. */
static int run_chains(const struct bench *b, struct peer *peer, struct ibv_send_wr *chain,
                      uint32_t batch, uint64_t posts)
{
    const uint64_t window = DEPTH / batch - 1;
    struct ibv_send_wr *bad;
    uint64_t posted = 0, done = 0;
    while (done < posts) {
        if (posted < posts && posted - done < window) {
            int error = ibv_post_send(peer->qp[0], chain, &bad);
            if (error)
                return -error;
            posted++;
            continue;
        }
        int error = take_completion(peer->cq, b->options->timeout_ns);
        if (error)
            return error;
        done++;
    }
    return 0;
}

#define RATE_PUTS 200000u /* of a run */

enum bench_status verbs_rate_measure(struct bench *b, const struct db_device_info *device,
                                     uint32_t bytes, uint32_t batch, struct bench_samples *rate,
                                     enum bench_valid *valid)
{
    struct ibv_send_wr chain[BATCH_MAX];
    struct ibv_sge sge;
    struct peer peer;

    if (batch == 0 || batch > BATCH_MAX)
        return bench_usage(b, "libmlx5: %u to a post; 1 to %u are possible", batch, BATCH_MAX);
    const uint64_t posts = RATE_PUTS / batch;
    enum bench_status status = open_peer(b, device, &peer);
    if (status == BENCH_PASS)
        make_chain(&peer, chain, &sge, bytes, batch, IBV_SEND_INLINE);
    for (uint64_t r = 0; r < VERBS_RATE_RUNS && status == BENCH_PASS; r++) {
        bench_payload_fill(peer.buffer, bytes, b->options->seed, r);
        uint64_t start = bench_ticks();
        int error = run_chains(b, &peer, chain, batch, posts);
        double ns = bench_ticks_ns(bench_ticks() - start);
        if (error)
            status = bench_fail(b, "libmlx5: a chain failed: %s", strerror(-error));
        else
            status = bench_check_payload(b, valid, peer.buffer + TARGET, bytes, r);
        bench_samples_add(rate, (double)(posts * batch) / ns * 1e3);
    }
    close_peer(&peer);
    return status;
}

enum bench_status verbs_rate_report(struct bench *b, uint32_t bytes, uint32_t batch,
                                    const struct bench_samples *rate, enum bench_valid valid)
{
    struct bench_record record = {
        .system = "libmlx5",
        .config = {{"payload", "inline", 0},
                   {"sharing", "one thread", 0},
                   {"threads", NULL, 1},
                   {"queues", NULL, 1},
                   {"batch", NULL, batch}},
        .metric = "rate",
        .unit = "M msg/s",
        .msg_bytes = bytes,
        .iterations = (uint64_t)RATE_PUTS / batch * batch * rate->count,
        .valid = valid,
    };
    return bench_report(b, &record, rate);
}

enum bench_status verbs_rate(struct bench *b, const struct db_device_info *device, uint32_t bytes,
                             uint32_t batch)
{
    enum bench_valid valid = BENCH_UNCHECKED;
    struct bench_samples rate = {0};

    if (bench_samples_init(&rate, VERBS_RATE_RUNS))
        return bench_fail(b, "no memory for the samples");
    enum bench_status status = verbs_rate_measure(b, device, bytes, batch, &rate, &valid);
    if (status == BENCH_PASS)
        status = verbs_rate_report(b, bytes, batch, &rate, valid);
    bench_samples_free(&rate);
    return status;
}
