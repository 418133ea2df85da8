/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a queue with much to do delays no other for long: the device executes a turn of it, then
 * looks at the doorbells again. All of the long queue is executed all the same, for the one
 * doorbell that it rang, in order, and strict mode finds nothing to say.
 */
#include <core/doorbell.h>

#include "engine_rig.h"

enum { DEPTH_LOG2 = 12, LONG = (1 << DEPTH_LOG2) - 1, ROUNDS = 50 };

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

int main(void)
{
    /* An engine that sleeps would wait for the device that is held here, to answer a doorbell. */
    struct nic_config config = {.poll = NIC_POLL_SPIN, .strict = {.enabled = true}};
    struct rig_queue lengthy, brief;
    struct rig rig;

    rig_start(&rig, &config);
    rig_loop(&rig, &lengthy, rig_uar(&rig), 0, DEPTH_LOG2);
    rig_loop(&rig, &brief, rig_uar(&rig), 0, 2);
    for (int i = 0; i < ROUNDS; i++)
        one_turn(&lengthy, &brief);
    rig_expect_clean(&rig);
    rig_destroy(&brief);
    rig_destroy(&lengthy);
    rig_stop(&rig);
    return 0;
}
