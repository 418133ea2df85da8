/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a device numbers its queue pairs and memory keys from where it is told to, in turn through
 * the whole table; what is sent to a QPN that it never gave out ends as sent to a peer that does
 * not answer, and strict mode says that there is no such queue pair. A peer that is there, but not
 * ready, or that was destroyed, gets the error alone.
 */
#include "engine_rig.h"

#include <core/objects.h>

static struct rig rig;

static void put(struct rig_queue *queue)
{
    struct wqe wqe;

    rig_build(queue, &wqe, 0, 64);
    rig_post(queue, &wqe);
}

/* `queue` sends to QPN `remote`, with three retries of 4.096 us << timeout. */
static void connect_to(struct rig_queue *queue, uint32_t remote, uint32_t timeout)
{
    struct nic *nic = nic_hold(rig.host);
    struct nic_qp_modify modify = {
        .mask = NIC_QP_REMOTE_QPN | NIC_QP_RETRY_COUNT | NIC_QP_ACK_TIMEOUT,
        .remote_qpn = remote,
        .retry_count = 3,
        .ack_timeout = timeout,
    };

    for (modify.state = NIC_QP_INIT; modify.state <= NIC_QP_RTS; modify.state++)
        CHECK(nic_qp_modify(nic, queue->qpn, &modify) == 0, "to state %u", modify.state);
    nic_release(rig.host);
}

static void peers(uint32_t page)
{
    const uint32_t foreign[] = {0, 2, 0x1234, NIC_MAX_QPS - 1, NIC_MAX_QPS, 0xffffff};
    struct rig_queue queue, other;

    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        rig_create(&rig, &queue, page, 0, 6);
        connect_to(&queue, foreign[i], 10);
        put(&queue);
        rig_expect_error(&queue, 0, M5_SYN_TRANSPORT_RETRY_EXCEEDED);
        rig_expect_diag_of(&queue, NIC_DIAG_NO_SUCH_PEER, 0, foreign[i]);
        rig_destroy(&queue);
    }

    /* It waits for ever: said at once, and once. */
    rig_create(&rig, &queue, page, 0, 6);
    connect_to(&queue, 0x1234, 0);
    put(&queue);
    rig_expect_diag(&queue, NIC_DIAG_NO_SUCH_PEER, 0);
    rig_expect_none(&queue.send_cq, 5);
    rig_expect_clean(&rig);
    rig_destroy(&queue);

    /* A peer that was there is no stranger. */
    rig_create(&rig, &other, page, 1, 6);
    rig_create(&rig, &queue, page, 0, 6);
    connect_to(&queue, other.qpn, 10);
    rig_destroy(&other);
    put(&queue);
    rig_expect_error(&queue, 0, M5_SYN_TRANSPORT_RETRY_EXCEEDED);
    rig_expect_clean(&rig);
    rig_destroy(&queue);

    /* Peers that are there, but not connected yet, or with another. */
    rig_create(&rig, &queue, page, 0, 6);
    rig_create(&rig, &other, page, 1, 6);
    connect_to(&queue, other.qpn, 10);
    put(&queue);
    rig_expect_error(&queue, 0, M5_SYN_TRANSPORT_RETRY_EXCEEDED);
    rig_destroy(&queue);
    rig_create(&rig, &queue, page, 0, 6);
    connect_to(&other, 0x1234, 10);
    connect_to(&queue, other.qpn, 10);
    put(&queue);
    rig_expect_error(&queue, 0, M5_SYN_TRANSPORT_RETRY_EXCEEDED);
    rig_expect_clean(&rig);
    rig_destroy(&queue);
    rig_destroy(&other);
}

/* What a device with these numbers gives out first, and that it goes on behind the tables' ends. */
static void numbers(uint64_t chosen, uint32_t qpn, uint32_t slot)
{
    struct nic_config config = {.numbers = chosen};
    struct rig_queue queue;
    uint32_t page;

    rig_start(&rig, &config);
    CHECK(rig.key >> 8 == slot, "the first key is 0x%x, wanted slot 0x%x", rig.key, slot);
    page = rig_uar(&rig);
    for (int i = 0; i < 3; i++) {
        rig_loop(&rig, &queue, page, 0, 6);
        CHECK(queue.qpn == qpn, "QPN 0x%x, wanted 0x%x", queue.qpn, qpn);
        put(&queue);
        rig_expect(&queue, 0);
        rig_destroy(&queue);
        qpn = qpn + 1 < NIC_MAX_QPS ? qpn + 1 : NIC_FIRST_QPN;
    }
    for (int i = 0; i < 3; i++) {
        struct nic_mkey_attr attr = {.pdn = rig.pdn, .bytes = 64, .host = rig.payload};
        uint32_t key;

        slot = slot + 1 < NIC_MAX_MKEYS ? slot + 1 : NIC_FIRST_MKEY;
        CHECK(nic_mkey_create(nic_hold(rig.host), &attr, &key) == 0, "nic_mkey_create failed");
        nic_release(rig.host);
        CHECK(key >> 8 == slot, "key 0x%x, wanted slot 0x%x", key, slot);
    }
    rig_stop(&rig);
}

int main(void)
{
    const uint64_t qpns = NIC_MAX_QPS - NIC_FIRST_QPN, slots = NIC_MAX_MKEYS - NIC_FIRST_MKEY;
    const struct nic_config config = {.strict = {.enabled = 1, .random = 1}};

    numbers(0, NIC_FIRST_QPN, NIC_FIRST_MKEY);
    numbers((qpns - 1) << 32 | (slots - 1), NIC_MAX_QPS - 1, NIC_MAX_MKEYS - 1);
    numbers((qpns + 5) << 32 | (slots + 7), NIC_FIRST_QPN + 5, NIC_FIRST_MKEY + 7);
    rig_start(&rig, &config);
    peers(rig_uar(&rig));
    rig_stop(&rig);
    return 0;
}
