/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a WQE executed before its doorbell, a doorbell for a queue pair that is not there, and
 * doorbells that merge in a shared register (case C04) are each named; in the default mode merging
 * loses nothing, and with a register for each queue nothing merges.
 */
#include "engine_rig.h"

#define QUEUES 32

static struct rig rig;

static void start(const struct nic_strict *strict)
{
    /* Never asleep: a store to a sleeping device's page waits for it, also while it is held. */
    struct nic_config config = {.poll = NIC_POLL_SPIN, .strict = *strict};
    config.strict.enabled = 1;
    config.strict.random = 1;
    rig_start(&rig, &config);
}

/* ---- A record that moved, a doorbell that never came ---- */

static void never_rung(void)
{
    struct nic_strict strict = {.early = 1};
    struct rig_queue queue;
    struct wqe wqe;

    start(&strict);
    rig_loop(&rig, &queue, rig_uar(&rig), 0, 6);
    for (uint32_t lap = 0; lap < 3; lap++) {
        for (int i = 0; i < 200; i++) {
            rig_build(&queue, &wqe, 0, 64);
            rig_expect(&queue, rig_post(&queue, &wqe));
        }
        rig_expect_clean(&rig);
        uint64_t index = rig_put(&queue, &wqe);
        rig_record(&queue, queue.posted);
        rig_expect(&queue, index);
        rig_expect_diag(&queue, NIC_DIAG_UNRUNG, index);
        rig_ring(&queue, index); /* late, but then all is well again */
    }
    rig_destroy(&queue);
    rig_stop(&rig);
}

/* Without the early look, too: the doorbell names the first WQE while the record counts three. */
static void rung_short(void)
{
    struct nic_strict strict = {0};
    struct rig_queue queue;
    struct wqe wqe;
    uint64_t first;

    start(&strict);
    rig_loop(&rig, &queue, rig_uar(&rig), 0, 6);
    rig_build(&queue, &wqe, 0, 64);
    first = rig_put(&queue, &wqe);
    rig_put(&queue, &wqe);
    rig_put(&queue, &wqe);
    rig_record(&queue, queue.posted);
    rig_ring(&queue, first);
    for (uint64_t i = first; i < first + 3; i++)
        rig_expect(&queue, i);
    rig_expect_diag(&queue, NIC_DIAG_UNRUNG, first + 2);

    /* The rest of the doorbells come in time: no mistake. */
    first = rig_put(&queue, &wqe);
    rig_put(&queue, &wqe);
    rig_record(&queue, queue.posted);
    rig_ring(&queue, first);
    rig_expect(&queue, first);
    rig_expect(&queue, first + 1);
    rig_ring(&queue, first + 1);
    rig_expect_clean(&rig);
    rig_destroy(&queue);
    rig_stop(&rig);
}

/* A program that names the next free block, and whose WQE another queue's doorbell had executed:
 * the device has not seen it bring work, and still has nothing to say. */
static void rung_for_nothing(void)
{
    struct nic_strict strict = {0};
    struct rig_queue queue, other;
    struct wqe wqe;

    start(&strict);
    uint32_t page = rig_uar(&rig);
    rig_loop(&rig, &queue, page, 0, 2);
    rig_loop(&rig, &other, page, 1, 2);
    for (int i = 0; i < 10; i++) {
        rig_build(&queue, &wqe, 0, 64);
        uint64_t index = rig_put(&queue, &wqe);
        rig_record(&queue, queue.posted);
        rig_build(&other, &wqe, 0, 128);
        rig_expect(&other, rig_post(&other, &wqe));
        rig_expect(&queue, index);
        rig_ring(&queue, queue.posted);
        rig_expect_clean(&rig);
    }
    rig_destroy(&other);
    rig_destroy(&queue);
    rig_stop(&rig);
}

/* ---- A doorbell for nobody ---- */

static void expect_qpn_diag(uint32_t qpn)
{
    struct rig_queue named = {.rig = &rig, .qpn = qpn};
    rig_expect_diag(&named, NIC_DIAG_DOORBELL_QPN, 0x77);
}

static void wrong_qpn(void)
{
    struct nic_strict strict = {0};
    struct rig_queue queue, elsewhere, no_queue;
    struct wqe wqe;

    start(&strict);
    rig_loop(&rig, &queue, rig_uar(&rig), 0, 6);
    rig_loop(&rig, &elsewhere, rig_uar(&rig), 0, 6);
    no_queue = queue;
    static const uint32_t numbers[] = {0, 1, 0x3f, 0xffff, 0x10000, 0xffffff};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        no_queue.qpn = numbers[i];
        rig_ring(&no_queue, 0x77);
        expect_qpn_diag(numbers[i]);
    }
    /* Through another's page: named, and the page's own queue is not harmed. */
    no_queue.qpn = elsewhere.qpn;
    rig_ring(&no_queue, 0x77);
    expect_qpn_diag(elsewhere.qpn);
    rig_build(&queue, &wqe, 0, 64);
    rig_expect(&queue, rig_post(&queue, &wqe));
    rig_build(&elsewhere, &wqe, 0, 64);
    rig_expect(&elsewhere, rig_post(&elsewhere, &wqe));
    rig_expect_clean(&rig);
    rig_destroy(&queue);
    rig_destroy(&elsewhere);
    rig_stop(&rig);
}

/* ---- C04: 32 queues rung in one go ---- */

static struct rig_queue queues[QUEUES];

/* `share`: all on one register; else each on one of its own, four to a page. */
static void open_queues(const struct nic_strict *strict, bool share)
{
    uint32_t page = 0;
    start(strict);
    for (uint32_t i = 0; i < QUEUES; i++) {
        if (i == 0 || (!share && i % 4 == 0))
            page = rig_uar(&rig);
        rig_loop(&rig, &queues[i], page, share ? 0 : i % 4, 5);
    }
}

static void close_queues(void)
{
    for (uint32_t i = 0; i < QUEUES; i++)
        rig_destroy(&queues[i]);
    rig_stop(&rig);
}

/* One warp's step: all build, all move their records, all ring, while the device does not look. */
static void ring_all(void)
{
    struct wqe wqe;
    nic_hold(rig.host);
    for (uint32_t i = 0; i < QUEUES; i++) {
        rig_build(&queues[i], &wqe, 0, 64 + 8 * i);
        rig_put(&queues[i], &wqe);
    }
    for (uint32_t i = 0; i < QUEUES; i++)
        rig_record(&queues[i], queues[i].posted);
    for (uint32_t i = 0; i < QUEUES; i++)
        rig_ring(&queues[i], queues[i].posted - 1);
    nic_release(rig.host);
}

static void all_arrive(const struct nic_strict *strict, bool share)
{
    open_queues(strict, share);
    for (uint64_t lap = 1; lap <= 100; lap++) {
        memcpy(rig.payload, &lap, 8);
        ring_all();
        for (uint32_t i = 0; i < QUEUES; i++) {
            uint64_t got;
            rig_expect(&queues[i], lap - 1);
            memcpy(&got, rig.payload + 64 + 8 * i, 8);
            CHECK(got == lap, "queue %u holds signal %llu, wanted %llu", i, (unsigned long long)got,
                  (unsigned long long)lap);
        }
    }
    rig_expect_clean(&rig);
    close_queues();
}

/* The negative control: 31 of 32 doorbells are lost, and each is named. */
static void merging_loses(void)
{
    struct nic_strict strict = {.doorbell_mode = NIC_DOORBELL_MERGE};
    struct cqe cqe;

    open_queues(&strict, true);
    ring_all();
    rig_expect(&queues[QUEUES - 1], 0);
    uint64_t end = rig_now_ns() + RIG_PATIENCE_NS;
    while (rig_diags(&rig, NIC_DIAG_DOORBELL_LOST) < QUEUES - 1) {
        CHECK(rig_now_ns() < end, "%llu lost doorbells named",
              (unsigned long long)rig_diags(&rig, NIC_DIAG_DOORBELL_LOST));
        rig_sleep_ms(5);
    }
    for (uint32_t i = 0; i < QUEUES - 1; i++)
        CHECK(!rig_try(&queues[i].send_cq, &cqe), "queue %u was served without its doorbell", i);
    rig_sleep_ms(250);
    CHECK(rig_all_diags(&rig) == QUEUES - 1, "%llu diagnostics, wanted %d",
          (unsigned long long)rig_all_diags(&rig), QUEUES - 1);
    const struct nic *nic = nic_hold(rig.host);
    bool named[QUEUES] = {false};
    for (uint32_t i = 0; i < nic->diag_logged; i++)
        for (uint32_t j = 0; j < QUEUES; j++)
            if (nic->diag_log[i].qpn == queues[j].qpn && nic->diag_log[i].index == 0)
                named[j] = true;
    nic_release(rig.host);
    for (uint32_t i = 0; i < QUEUES - 1; i++)
        CHECK(named[i], "the lost doorbell of queue %u is not in the log", i);
    /* Rung again, one after the other as they should be, each arrives. */
    for (uint32_t i = 0; i < QUEUES - 1; i++) {
        rig_ring(&queues[i], 0);
        rig_expect(&queues[i], 0);
    }
    close_queues();
}

int main(void)
{
    struct nic_strict scan = {.doorbell_mode = NIC_DOORBELL_SCAN};
    struct nic_strict merge = {.doorbell_mode = NIC_DOORBELL_MERGE};

    never_rung();
    rung_short();
    rung_for_nothing();
    wrong_qpn();
    all_arrive(&scan, true);
    all_arrive(&scan, false);
    all_arrive(&merge, false);
    merging_loses();
    return 0;
}
