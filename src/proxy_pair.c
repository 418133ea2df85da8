/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's queue pair and its completion queue, made through libibverbs, so that its requests can
 * be posted both ways (proxy_post.c, proxy_post_wqe.c). Timers and limits are those of connect.c.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "device.h"
#include "error.h"
#include "proxy.h"

#define ACK_TIMEOUT 16 /* 268 ms, 8 times */
#define RETRY_COUNT 7
#define RNR_RETRY   7  /* for ever: the ring's deadline ends that wait */
#define MIN_RNR_NAK 12 /* 640 us */
#define HOP_LIMIT   64
#define READS       16u

static int refused(const struct db_device *device, const char *what, int error)
{
    return db_fail(error, "%s gives a proxy's worker no %s: %s", device->path.name, what,
                   strerror(-error));
}

static int modify(const struct db_device *device, const struct db_pair *pair,
                  struct ibv_qp_attr *attr, int mask, const char *what)
{
    int error = ibv_modify_qp(pair->qp, attr, mask | IBV_QP_STATE);

    return error ? db_fail(-error, "QP %#x of a proxy on %s cannot go to %s: %s", pair->qp->qp_num,
                           device->path.name, what, strerror(error))
                 : 0;
}

static int to_init(const struct db_device *device, struct db_pair *pair)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = (uint8_t)device->path.port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           (device->caps.atomics ? (unsigned)IBV_ACCESS_REMOTE_ATOMIC : 0),
    };

    return modify(device, pair, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                  "INIT");
}

int db_pair_create(struct db_device *device, const struct db_post_way *way, uint32_t depth,
                   struct db_pair *pair)
{
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = depth,
                .max_send_sge = 1,
                .max_inline_data = sizeof(((struct db_request *)0)->operand)},
        .qp_type = IBV_QPT_RC,
    };

    pair->way = way;
    pair->depth = depth;
    /* One CQE for each request that an error flushes. */
    pair->cq = ibv_create_cq(device->context, (int)depth + 1, NULL, NULL, 0);
    if (!pair->cq)
        return refused(device, "completion queue", db_errno());
    attr.send_cq = attr.recv_cq = pair->cq;
    pair->qp = ibv_create_qp(device->pd, &attr);
    if (!pair->qp)
        return refused(device, "queue pair", db_errno());
    /* Without entropy at boot it stays 0, which is as valid a start as any. */
    if (getrandom(&pair->psn, sizeof(pair->psn), GRND_NONBLOCK) < 0)
        pair->psn = 0;
    pair->psn &= 0xffffffu;
    if (way == &db_post_verbs)
        db_pair_find_ring(pair);
    int error = to_init(device, pair);
    if (!error && way == &db_post_wqe)
        error = db_pair_open_direct(pair);
    return error;
}

void db_pair_destroy(struct db_pair *pair)
{
    if (pair->qp)
        ibv_destroy_qp(pair->qp);
    if (pair->cq)
        ibv_destroy_cq(pair->cq);
}

void db_pair_endpoint(const struct db_device *device, const struct db_pair *pair,
                      struct db_endpoint *endpoint)
{
    *endpoint = (struct db_endpoint){
        .qpn = pair->qp->qp_num,
        .psn = pair->psn,
        .lid = device->path.lid,
        .mtu_bytes = device->path.mtu_bytes,
    };
    memcpy(endpoint->gid, device->path.gid, sizeof(endpoint->gid));
}

static uint8_t at_most(uint32_t value, uint32_t limit)
{
    return (uint8_t)(value < limit ? value : limit);
}

static int to_rtr(struct db_device *device, struct db_pair *pair,
                  const struct db_endpoint *endpoint)
{
    uint32_t mtu_bytes =
        endpoint->mtu_bytes < device->path.mtu_bytes ? endpoint->mtu_bytes : device->path.mtu_bytes;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .dest_qp_num = endpoint->qpn,
        .rq_psn = endpoint->psn,
        .max_dest_rd_atomic = at_most(1u << device->caps.log_reads_in, READS),
        .min_rnr_timer = MIN_RNR_NAK,
        .ah_attr = {.dlid = (uint16_t)endpoint->lid,
                    .is_global = !device->path.infiniband,
                    .port_num = (uint8_t)device->path.port,
                    .grh = {.sgid_index = (uint8_t)device->path.gid_index, .hop_limit = HOP_LIMIT}},
    };

    if (mtu_bytes < 256)
        return db_fail(-EINVAL, "the peer's MTU of %u bytes cannot be; 256 to 4096 can",
                       endpoint->mtu_bytes);
    /* 256 bytes are 1, each doubling is one more. */
    attr.path_mtu = (enum ibv_mtu)(31 - __builtin_clz(mtu_bytes) - 7);
    memcpy(attr.ah_attr.grh.dgid.raw, endpoint->gid, sizeof(endpoint->gid));
    return modify(device, pair, &attr,
                  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                  "RTR");
}

static int to_rts(struct db_device *device, struct db_pair *pair)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = pair->psn,
        .timeout = ACK_TIMEOUT,
        .retry_cnt = RETRY_COUNT,
        .rnr_retry = RNR_RETRY,
        .max_rd_atomic = at_most(1u << device->caps.log_reads_out, READS),
    };

    return modify(device, pair, &attr,
                  IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_MAX_QP_RD_ATOMIC,
                  "RTS");
}

int db_pair_connect(struct db_device *device, struct db_pair *pair,
                    const struct db_endpoint *endpoint)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

    if (pair->peer.qpn)
        return db_fail(
            -EINVAL,
            "QP %#x of a proxy's worker is connected to QP %#x; all queues of one worker "
            "go to one peer",
            pair->qp->qp_num, pair->peer.qpn);
    int error = to_rtr(device, pair, endpoint);
    if (!error)
        error = to_rts(device, pair);
    if (error) {
        /* As it was; a failure of the way back would only hide the first. */
        if (ibv_modify_qp(pair->qp, &reset, IBV_QP_STATE) == 0)
            to_init(device, pair);
        return error;
    }
    pair->peer = *endpoint;
    return 0;
}
