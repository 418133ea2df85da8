/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The states of a queue pair, from reset to ready to send; doorbell.h. PRM, "RST2INIT_QP",
 * "INIT2RTR_QP", "RTR2RTS_QP", "2RST_QP".
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "device.h"
#include "error.h"
#include "prm.h"
#include "queue.h"

/* Retransmission: 8 tries of 4.096 us << 16 = 268 ms each, so a silent peer is given up after about
 * 2 s. A peer without a receive is asked again for ever; the queue's own deadline ends that wait.
 */
#define ACK_TIMEOUT 16
#define RETRY_COUNT 7
#define RNR_RETRY   7
#define MIN_RNR_NAK 12 /* 640 us between two tries; IB specification, table 45 */

#define HOP_LIMIT 64

/* log2 of the reads and atomics in flight, where the device allows so many. */
#define LOG_READS 4

static uint32_t fresh_psn(void)
{
    uint32_t random = 0;

    /* Without entropy at boot it stays 0, which is as valid a start as any. */
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
        random = 0;
    return random & 0xffffffu;
}

int db_queue_init(struct db_queue *queue)
{
    struct db_device *device = queue->device;
    struct db_prm prm;
    uint8_t *qpc = prm.in + m5_rst2init_qp_in_qpc;
    uint8_t *path = qpc + m5_qpc_primary_address_path;

    db_prm_begin(&prm, RST2INIT_QP, rst2init_qp_in, rst2init_qp_out);
    db_prm_set(prm.in, m5_rst2init_qp_in_qpn, queue->qp->qpn);
    db_prm_set(path, m5_ads_vhca_port_num, device->path.port);
    db_prm_set(qpc, m5_qpc_pm_state, M5_QPC_PM_MIGRATED);
    db_prm_set(qpc, m5_qpc_rre, 1);
    db_prm_set(qpc, m5_qpc_rwe, 1);
    db_prm_set(qpc, m5_qpc_rae, device->caps.atomics);
    db_prm_set(qpc, m5_qpc_atomic_mode,
               device->caps.atomics ? M5_QPC_ATOMIC_UP_TO_8 : M5_QPC_ATOMIC_NONE);
    queue->psn = fresh_psn();
    queue->peer_qpn = 0;
    return db_prm_modify(device, &prm, queue->pair);
}

/* The path to the peer: InfiniBand by LID, RoCE by GID and MAC address. */
static int fill_path(struct db_queue *queue, const struct db_endpoint *endpoint, uint8_t *path)
{
    struct db_device *device = queue->device;
    uint8_t mac[6];

    db_prm_set(path, m5_ads_vhca_port_num, device->path.port);
    if (device->path.infiniband) {
        db_prm_set(path, m5_ads_rlid, endpoint->lid);
        return 0;
    }
    int error = db_device_resolve(device, endpoint->gid, mac);
    if (error)
        return error;
    db_prm_set(path, m5_ads_grh, 1);
    db_prm_set(path, m5_ads_src_addr_index, device->path.gid_index);
    db_prm_set(path, m5_ads_hop_limit, HOP_LIMIT);
    db_prm_set(path, m5_ads_udp_sport, device->caps.udp_sport);
    memcpy(db_prm_at(path, m5_ads_rgid_rip), endpoint->gid, sizeof(endpoint->gid));
    memcpy(db_prm_at(path, m5_ads_rmac_47_32), mac, sizeof(mac));
    return 0;
}

static uint32_t at_most(uint32_t value, uint32_t limit)
{
    return value < limit ? value : limit;
}

static int ready_to_receive(struct db_queue *queue, const struct db_endpoint *endpoint)
{
    struct db_device *device = queue->device;
    uint32_t mtu_bytes = at_most(endpoint->mtu_bytes, device->path.mtu_bytes);
    struct db_prm prm;
    uint8_t *qpc = prm.in + m5_rst2init_qp_in_qpc;

    if (mtu_bytes < 256)
        return db_fail(-EINVAL, "the peer's MTU of %u bytes cannot be; 256 to 4096 can",
                       endpoint->mtu_bytes);
    db_prm_begin(&prm, INIT2RTR_QP, rst2init_qp_in, rst2init_qp_out);
    db_prm_set(prm.in, m5_rst2init_qp_in_qpn, queue->qp->qpn);
    /* 256 bytes are 1, each doubling is one more. */
    db_prm_set(qpc, m5_qpc_mtu, 31 - (uint32_t)__builtin_clz(mtu_bytes) - 7);
    db_prm_set(qpc, m5_qpc_log_msg_max, device->caps.log_max_msg);
    db_prm_set(qpc, m5_qpc_remote_qpn, endpoint->qpn);
    db_prm_set(qpc, m5_qpc_next_rcv_psn, endpoint->psn);
    db_prm_set(qpc, m5_qpc_min_rnr_nak, MIN_RNR_NAK);
    db_prm_set(qpc, m5_qpc_log_rra_max, at_most(device->caps.log_reads_in, LOG_READS));
    int error = fill_path(queue, endpoint, qpc + m5_qpc_primary_address_path);
    return error ? error : db_prm_modify(device, &prm, queue->pair);
}

static int ready_to_send(struct db_queue *queue)
{
    struct db_device *device = queue->device;
    struct db_prm prm;
    uint8_t *qpc = prm.in + m5_rst2init_qp_in_qpc;

    db_prm_begin(&prm, RTR2RTS_QP, rst2init_qp_in, rst2init_qp_out);
    db_prm_set(prm.in, m5_rst2init_qp_in_qpn, queue->qp->qpn);
    db_prm_set(qpc + m5_qpc_primary_address_path, m5_ads_ack_timeout, ACK_TIMEOUT);
    db_prm_set(qpc, m5_qpc_retry_count, RETRY_COUNT);
    db_prm_set(qpc, m5_qpc_rnr_retry, RNR_RETRY);
    db_prm_set(qpc, m5_qpc_log_sra_max, at_most(device->caps.log_reads_out, LOG_READS));
    db_prm_set(qpc, m5_qpc_next_send_psn, queue->psn);
    return db_prm_modify(device, &prm, queue->pair);
}

/* ---- What callers use ---- */

int db_queue_endpoint(const struct db_queue *queue, struct db_endpoint *endpoint)
{
    const struct db_device *device = queue->device;

    if (!device)
        return db_fail(-EINVAL, "a detached queue cannot be connected; it has no device");
    if (queue->proxied)
        return db_queue_proxied_endpoint(queue, endpoint);
    *endpoint = (struct db_endpoint){
        .qpn = queue->qp->qpn,
        .psn = queue->psn,
        .lid = device->path.lid,
        .mtu_bytes = device->path.mtu_bytes,
    };
    memcpy(endpoint->gid, device->path.gid, sizeof(endpoint->gid));
    return 0;
}

int db_queue_connect_remote(struct db_queue *queue, const struct db_endpoint *endpoint)
{
    if (!queue->device)
        return db_fail(-EINVAL, "a detached queue cannot be connected; it has no device");
    if (queue->proxied)
        return db_queue_proxied_connect(queue, endpoint);
    if (queue->peer_qpn)
        return db_fail(-EINVAL, "QP %#x is connected to QP %#x; db_queue_reset() comes first",
                       queue->qp->qpn, queue->peer_qpn);
    int error = ready_to_receive(queue, endpoint);
    if (error)
        return error;
    queue->peer_qpn = endpoint->qpn;
    error = ready_to_send(queue);
    if (error)
        db_queue_reset(queue);
    return error;
}

int db_queue_connect(struct db_queue *a, struct db_queue *b)
{
    struct db_endpoint at_a = {0}, at_b = {0};

    int error = db_queue_endpoint(a, &at_a);
    if (!error)
        error = db_queue_endpoint(b, &at_b);
    if (error)
        return error;
    error = db_queue_connect_remote(a, &at_b);
    if (error || a == b)
        return error;
    error = db_queue_connect_remote(b, &at_a);
    if (error && !a->proxied)
        db_queue_reset(a);
    return error;
}

int db_queue_reset(struct db_queue *queue)
{
    struct db_prm prm;

    if (queue->proxied)
        return db_fail(-EOPNOTSUPP,
                       "a proxied queue shares its worker's queue pair, which stays as "
                       "it is; destroy the proxy and create another");
    if (queue->device) {
        db_prm_begin(&prm, 2RST_QP, query_qp_in, rst2init_qp_out);
        db_prm_set(prm.in, m5_query_qp_in_qpn, queue->qp->qpn);
        int error = db_prm_modify(queue->device, &prm, queue->pair);
        if (error)
            return error;
    }
    int error = db_queue_memory_clear(queue);
    return error || !queue->device ? error : db_queue_init(queue);
}
