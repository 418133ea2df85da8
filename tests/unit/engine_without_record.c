/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a queue pair without a send record executes what its doorbell names and nothing else,
 * whatever stands in the record, through wraps, long batches, errors and resets; its register is
 * its own, beside queues with a record on the same page. A doorbell at the wrong register, one that
 * goes back and one that names more than the ring holds execute nothing and are named.
 */
#include <errno.h>

#include "engine_rig.h"

static struct rig rig;
static uint32_t page;

/* The record's send half says what would execute nothing, or everything, if it were read. */
static void open_queue(struct rig_queue *queue, uint32_t depth_log2, uint64_t index)
{
    rig_loop(&rig, queue, page, RIG_NO_RECORD, depth_log2);
    rig_start_at(queue, index);
    queue->record->send.raw = 0xdbdbdbdb;
}

static void put_writes(struct rig_queue *queue, uint32_t count)
{
    struct wqe wqe;

    for (uint32_t i = 0; i < count; i++) {
        rig_build(queue, &wqe, 0, 64);
        rig_put(queue, &wqe);
    }
}

static void batch(struct rig_queue *queue, uint32_t count)
{
    uint64_t first = queue->posted;

    put_writes(queue, count);
    rig_expect_none(&queue->send_cq, 1);
    rig_ring(queue, queue->posted);
    for (uint32_t i = 0; i < count; i++)
        rig_expect(queue, first + i);
}

static void executes(void)
{
    static const uint64_t starts[] = {0, 1, 0x7fff, 0xfff0, 0xfffe, 0x10000, 0x1fffd};

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        struct rig_queue queue;
        open_queue(&queue, 9, starts[i]);
        for (uint32_t count = 1; count < 6; count++)
            batch(&queue, count);
        batch(&queue, 512); /* the whole ring, in several turns of the engine */
        CHECK(queue.record->send.raw == 0xdbdbdbdb, "the device wrote the record");
        rig_destroy(&queue);
    }
    rig_expect_clean(&rig);
}

/* Two doorbells that name the same, of which neither is a mistake. */
static void rung_twice(void)
{
    struct rig_queue queue;

    open_queue(&queue, 6, 0xffc0);
    rig_ring(&queue, queue.posted); /* nothing new, before the first WQE */
    for (int i = 0; i < 80; i++) {
        batch(&queue, 1);
        rig_ring(&queue, queue.posted);
        rig_wait32((uint32_t *)(void *)queue.doorbell, 0, "the second doorbell taken");
    }
    rig_expect_clean(&rig);
    rig_destroy(&queue);
}

/* Doorbells of queues with a record beside it on the page leave its own alone, and the reverse. */
static void neighbours(void)
{
    struct rig_queue queue, beside[2];
    struct wqe wqe;

    open_queue(&queue, 6, 0);
    for (uint32_t i = 0; i < 2; i++)
        rig_loop(&rig, &beside[i], page, 0, 6); /* one register for both */
    for (int round = 0; round < 500; round++) {
        rig_build(&queue, &wqe, 0, 64);
        uint64_t index = rig_post(&queue, &wqe);
        for (uint32_t i = 0; i < 2; i++) {
            rig_build(&beside[i], &wqe, 0, 64);
            rig_post(&beside[i], &wqe);
        }
        rig_expect(&queue, index);
        for (uint32_t i = 0; i < 2; i++)
            rig_expect(&beside[i], index);
    }
    rig_expect_clean(&rig);
    for (uint32_t i = 0; i < 2; i++)
        rig_destroy(&beside[i]);
    rig_destroy(&queue);
}

/* One queue pair without a record to a page, until it is destroyed. */
static void one_a_page(void)
{
    struct rig_queue queue;
    uint32_t qpn;

    open_queue(&queue, 6, 0);
    struct nic *nic = nic_hold(rig.host);
    struct nic_qp_attr attr = {.pdn = rig.pdn,
                               .send_cqn = queue.send_cq.cqn,
                               .recv_cqn = queue.recv_cq.cqn,
                               .uar_page = page,
                               .record = queue.record + 1,
                               .without_record = true};
    CHECK(nic_qp_create(nic, &attr, &qpn) == -EBUSY, "two have one register");
    attr.without_record = false;
    CHECK(nic_qp_create(nic, &attr, &qpn) == 0, "one with a record has another");
    CHECK(nic_qp_destroy(nic, qpn) == 0, "nic_qp_destroy failed");
    nic_release(rig.host);
    batch(&queue, 1);
    nic = nic_hold(rig.host);
    rig_ring(&queue, queue.posted);
    CHECK(nic_qp_destroy(nic, queue.qpn) == 0, "nic_qp_destroy failed");
    CHECK(*queue.doorbell == 0, "a doorbell waits for the next queue pair");
    attr.without_record = true;
    CHECK(nic_qp_create(nic, &attr, &queue.qpn) == 0, "its place is free");
    nic_release(rig.host);
    rig_destroy(&queue);
    open_queue(&queue, 6, 0);
    batch(&queue, 1);
    rig_destroy(&queue);
}

static void flushed_and_reset(void)
{
    struct rig_queue queue;
    struct wqe wqe;

    open_queue(&queue, 6, 0xffff);
    batch(&queue, 3);
    rig_build(&queue, &wqe, 0, 64);
    bytes_put32(wqe.bytes + 24, 1); /* no such key */
    uint64_t bad = rig_put(&queue, &wqe);
    rig_build(&queue, &wqe, 0, 64);
    uint64_t behind = rig_post(&queue, &wqe);
    rig_expect_error(&queue, bad, M5_SYN_REMOTE_ACCESS);
    rig_expect_error(&queue, behind, M5_SYN_FLUSHED);
    rig_build(&queue, &wqe, 0, 64);
    rig_expect_error(&queue, rig_post(&queue, &wqe), M5_SYN_FLUSHED);

    struct nic_qp_modify reset = {.state = NIC_QP_RESET};
    CHECK(nic_qp_modify(nic_hold(rig.host), queue.qpn, &reset) == 0, "to RESET");
    nic_release(rig.host);
    queue.posted = 0;
    rig_connect(&queue, &queue);
    for (int i = 0; i < 100; i++)
        batch(&queue, 1 + (uint32_t)i % 3);
    rig_expect_clean(&rig);
    rig_destroy(&queue);
}

/* A doorbell that the engine takes only after a reset publishes nothing, though the old WQEs lie in
 * the ring and a neighbour's doorbells have the page looked at. */
static void late_doorbells(void)
{
    static const struct nic_qp_modify reset = {.state = NIC_QP_RESET};
    struct rig_queue queue, beside;
    struct wqe wqe;

    rig_loop(&rig, &beside, page, 0, 6);
    for (int round = 0; round < 2000; round++) {
        open_queue(&queue, 6, 0);
        batch(&queue, 3);
        for (int i = 0; i < 3; i++) {
            rig_build(&queue, &wqe, 0, 64);
            rig_put(&queue, &wqe);
        }
        struct nic *nic = nic_hold(rig.host);
        bool in_time = round % 2;
        if (in_time)
            rig_ring(&queue, queue.posted);
        CHECK(nic_qp_modify(nic, queue.qpn, &reset) == 0, "to RESET");
        if (!in_time)
            rig_ring(&queue, queue.posted);
        nic_release(rig.host);
        rig_wait32((uint32_t *)(void *)queue.doorbell, 0, "the doorbell taken");
        rig_connect(&queue, &queue);
        rig_build(&beside, &wqe, 0, 64);
        rig_expect(&beside, rig_post(&beside, &wqe));
        queue.posted = 0;
        uint64_t before = queue.send_cq.polled;
        rig_build(&queue, &wqe, 0, 64);
        rig_expect(&queue, rig_post(&queue, &wqe));
        CHECK(queue.send_cq.polled == before + 1, "more than one WQE");
        rig_destroy(&queue);
    }
    rig_expect_clean(&rig);
    rig_destroy(&beside);
}

/* A SEND, which waits for a receive, and `writes` behind it. Returns its index. */
static uint64_t put_waiting(struct rig_queue *queue, uint32_t writes)
{
    struct wqe wqe;

    wqe_begin(&wqe, M5_OP_SEND, 0, M5_CTRL_CQ_UPDATE, 0);
    wqe_data(&wqe, rig.payload, rig.key, 8);
    uint64_t index = rig_put(queue, &wqe);
    put_writes(queue, writes);
    return index;
}

/* The receive comes, all completes, and the queue is destroyed. */
static void release_waiting(struct rig_queue *queue, uint64_t first)
{
    rig_post_recv(queue, rig.payload + 128, 8);
    for (uint64_t i = first; i < queue->posted; i++)
        rig_expect(queue, i);
    rig_expect_clean(&rig);
    rig_destroy(queue);
}

/* The largest ring in one doorbell, whose first WQE waits for a receive: 32,768 blocks behind the
 * last one executed, the doorbell is no old one. */
static void largest_ring(void)
{
    struct rig_queue queue;

    open_queue(&queue, 15, 0);
    uint64_t first = put_waiting(&queue, (1u << 15) - 1);
    rig_ring(&queue, queue.posted);
    rig_expect_none(&queue.send_cq, 300);
    release_waiting(&queue, first);
}

/* ---- Mistakes ---- */

/* Rings at another register than the queue has. The diagnostic names what the doorbell named. */
static void wrong_register(bool without_record)
{
    struct rig_queue queue;
    struct wqe wqe;

    if (without_record)
        open_queue(&queue, 6, 0);
    else
        rig_loop(&rig, &queue, page, 0, 6);
    rig_build(&queue, &wqe, 0, 64);
    uint64_t index = rig_put(&queue, &wqe);
    if (!without_record)
        rig_record(&queue, queue.posted);
    uint64_t *own = queue.doorbell;
    queue.doorbell = (uint64_t *)(void *)(rig.uar + (size_t)page * M5_UAR_BYTES +
                                          (without_record ? 0x900 : 0x600));
    rig_ring(&queue, queue.posted);
    rig_expect_diag(&queue, NIC_DIAG_DOORBELL_PLACE, queue.posted);
    if (without_record) {
        rig_expect_none(&queue.send_cq, 2);
        queue.doorbell = own;
        rig_ring(&queue, queue.posted);
    }
    rig_expect(&queue, index); /* a record is looked at for any doorbell on the page */
    rig_destroy(&queue);
}

static void out_of_range(uint64_t begin, int64_t off)
{
    struct rig_queue queue;
    struct wqe wqe;

    open_queue(&queue, 6, begin);
    batch(&queue, 3);
    rig_build(&queue, &wqe, 0, 64);
    uint64_t index = rig_put(&queue, &wqe);
    uint64_t named = queue.posted + (uint64_t)off;
    rig_ring(&queue, named);
    rig_expect_diag_of(&queue, NIC_DIAG_DOORBELL_RANGE, named, (uint32_t)index & 0xffff);
    rig_expect_none(&queue.send_cq, 2);
    rig_ring(&queue, queue.posted);
    rig_expect(&queue, index);
    rig_destroy(&queue);
}

/* A doorbell that takes back what the last one published, while it is not executed: the first WQE
 * waits for a receive. */
static void taken_back(void)
{
    struct rig_queue queue;

    open_queue(&queue, 6, 0xfffd);
    uint64_t first = put_waiting(&queue, 5);
    rig_ring(&queue, queue.posted);
    rig_wait32((uint32_t *)(void *)queue.doorbell, 0, "the doorbell taken");
    rig_ring(&queue, queue.posted - 2);
    rig_expect_diag_of(&queue, NIC_DIAG_DOORBELL_RANGE, queue.posted - 2, (uint32_t)first & 0xffff);
    rig_ring(&queue, queue.posted);
    release_waiting(&queue, first);
}

int main(void)
{
    /* Never asleep: a store to a sleeping device's page waits for it, also while it is held. */
    struct nic_config config = {.poll = NIC_POLL_SPIN,
                                .strict = {.enabled = 1, .poison = 1, .random = 1}};
    rig_start(&rig, &config);
    page = rig_uar(&rig);
    executes();
    rung_twice();
    neighbours();
    one_a_page();
    flushed_and_reset();
    late_doorbells();
    largest_ring();
    taken_back();
    wrong_register(true);
    wrong_register(false);
    out_of_range(0xfffb, -2); /* what has been executed */
    out_of_range(0xfffe, -4);
    out_of_range(0xfffd, 64);
    out_of_range(0x10, 0x7000);
    rig_expect_clean(&rig);
    rig_stop(&rig);
    return 0;
}
