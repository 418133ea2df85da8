/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: queues with much to do, however many, delay no other for long: the device executes a turn
 * of some of them, then looks at the doorbells again. All of the long queue is executed all the
 * same, for the one doorbell that it rang, in order, and strict mode finds nothing to say.
 */
#include <core/doorbell.h>

#include "engine_rig.h"

enum { DEPTH_LOG2 = 12, LONG = (1 << DEPTH_LOG2) - 1, ROUNDS = 50, CROWD = 24 };

static void build(const struct rig *rig, struct wqe *wqe, size_t to, uint32_t bytes)
{
    wqe_begin(wqe, M5_OP_WRITE, 0, M5_CTRL_CQ_UPDATE, 0);
    wqe_raddr(wqe, (uintptr_t)rig->payload + to, rig->key);
    wqe_data(wqe, rig->payload, rig->key, bytes);
}

/* Fills the long queue and rings once, then posts one write on the short queue, while the engine
 * stands still; and looks at what the device did after one turn. */
static void one_turn(struct rig_queue *lengthy, struct rig_queue *brief)
{
    uint64_t next = lengthy->posted, end = next + LONG;
    struct nic *nic = nic_hold(lengthy->rig->host);
    struct wqe wqe;
    struct cqe cqe;

    build(lengthy->rig, &wqe, 8192, 4096);
    while (lengthy->posted < end)
        rig_put(lengthy, &wqe);
    rig_record(lengthy, end);
    rig_ring(lengthy, end - 1);
    build(brief->rig, &wqe, 4096, 8);
    uint64_t index = rig_post(brief, &wqe);

    CHECK(nic_round(nic), "a turn found nothing");
    rig_expect(brief, index);
    for (uint64_t first = next; rig_try(&lengthy->send_cq, &cqe); next++) {
        CHECK(cqe.wqe_counter == (next & 0xffff), "WQE %u came in the place of %llu",
              cqe.wqe_counter, (unsigned long long)next);
        CHECK(next - first < LONG / 10, "one turn executed a tenth of a long queue");
    }
    nic_release(lengthy->rig->host);
    for (; next < end; next++)
        rig_expect(lengthy, next);
}

static uint32_t count_cqes(struct rig_queue *queues)
{
    uint32_t count = 0;
    struct cqe cqe;

    for (uint32_t i = 0; i < CROWD; i++)
        while (rig_try(&queues[i].send_cq, &cqe))
            count++;
    return count;
}

/* All queues of a crowd are full. What one round executes must not grow with them. */
static void many_turns(struct rig *rig, struct rig_queue *crowd)
{
    struct wqe wqe;
    uint32_t left = CROWD * LONG;

    struct nic *nic = nic_hold(rig->host);
    build(rig, &wqe, 4096, 8);
    for (uint32_t i = 0; i < CROWD; i++) {
        while (crowd[i].posted < LONG)
            rig_put(&crowd[i], &wqe);
        rig_record(&crowd[i], LONG);
        rig_ring(&crowd[i], LONG - 1);
        CHECK(nic_round(nic), "a round found no doorbell");
    }
    left -= count_cqes(crowd);
    for (uint32_t rounds = 0; rounds < 2 * CROWD; rounds++) {
        CHECK(nic_round(nic), "a round found nothing, and %u WQEs are left", left);
        uint32_t count = count_cqes(crowd);
        CHECK(count > 0 && count <= LONG / 10, "one round executed %u WQEs of a crowd", count);
        left -= count;
    }
    nic_release(rig->host);
    for (uint64_t start = rig_now_ns(); left > 0; left -= count_cqes(crowd))
        CHECK(rig_now_ns() - start < RIG_PATIENCE_NS, "%u WQEs were left", left);
}

int main(void)
{
    static struct rig_queue crowd[CROWD];
    /* An engine that sleeps would wait for the device that is held here, to answer a doorbell. */
    struct nic_config config = {.poll = NIC_POLL_SPIN, .strict = {.enabled = true}};
    struct rig_queue lengthy, brief;
    struct rig rig;

    rig_start(&rig, &config);
    rig_loop(&rig, &lengthy, rig_uar(&rig), 0, DEPTH_LOG2);
    rig_loop(&rig, &brief, rig_uar(&rig), 0, 2);
    for (int i = 0; i < ROUNDS; i++)
        one_turn(&lengthy, &brief);
    for (uint32_t i = 0; i < CROWD; i++)
        rig_loop(&rig, &crowd[i], rig_uar(&rig), 0, DEPTH_LOG2);
    many_turns(&rig, crowd);
    rig_expect_clean(&rig);
    for (uint32_t i = 0; i < CROWD; i++)
        rig_destroy(&crowd[i]);
    rig_destroy(&brief);
    rig_destroy(&lengthy);
    rig_stop(&rig);
    return 0;
}
