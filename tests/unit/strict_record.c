/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim (case C03): a send index written into the receive half of the doorbell record, in the wrong
 * byte order, or both, fetches nothing and is named; so are a record too far ahead and a doorbell
 * without a record. A doorbell that comes before its record, or twice, is no mistake.
 */
#include "engine_rig.h"

static struct rig rig;
static uint32_t page;

static void store(struct be32 *half, uint32_t raw)
{
    __atomic_store_n(&half->raw, raw, __ATOMIC_RELEASE);
}

/* A queue whose first WQEs went well, so that its index is none of those that look like a mistake
 * by chance. */
static void open_queue(struct rig_queue *queue, uint64_t index)
{
    struct wqe wqe;
    rig_loop(&rig, queue, page, 0, 6);
    rig_start_at(queue, index);
    for (int i = 0; i < 3; i++) {
        rig_build(queue, &wqe, 0, 64);
        rig_expect(queue, rig_post(queue, &wqe));
    }
}

enum mistake {
    RECEIVE_HALF,
    HOST_ORDER,
    BOTH,
    TOO_FAR,
    NO_RECORD,
};

static enum nic_diag diag_of(enum mistake mistake)
{
    switch (mistake) {
    case RECEIVE_HALF:
    case BOTH:
        return NIC_DIAG_RECORD_HALF;
    case HOST_ORDER:
        return NIC_DIAG_RECORD_ORDER;
    case TOO_FAR:
        return NIC_DIAG_RECORD_RANGE;
    default:
        return NIC_DIAG_RECORD_STALE;
    }
}

static void make(const struct rig_queue *queue, enum mistake mistake)
{
    uint32_t next = (uint32_t)queue->posted & 0xffff;
    switch (mistake) {
    case RECEIVE_HALF:
        store(&queue->record->receive, __builtin_bswap32(next));
        break;
    case BOTH:
        store(&queue->record->receive, next);
        break;
    case HOST_ORDER:
        store(&queue->record->send, next);
        break;
    case TOO_FAR:
        rig_record(queue, next + (1u << queue->depth_log2));
        break;
    default:
        break;
    }
}

/* The word of the record that is wrong, as a device reads it. */
static uint32_t offending(const struct rig_queue *queue, enum mistake mistake)
{
    bool receive = mistake == RECEIVE_HALF || mistake == BOTH;
    return __builtin_bswap32(receive ? queue->record->receive.raw : queue->record->send.raw);
}

/* Makes the mistake with `blocks` blocks posted; whoever rings names the last WQE's first block, or
 * (as some libraries do) the next free one. Then the record is put right, and the WQEs execute. */
static void named(enum mistake mistake, uint64_t start, uint32_t count, bool rings_next)
{
    struct rig_queue queue;
    struct wqe wqe;
    uint64_t last = 0, first;

    open_queue(&queue, start);
    first = queue.posted;
    for (uint32_t i = 0; i < count; i++) {
        rig_build(&queue, &wqe, 0, 64);
        last = rig_put(&queue, &wqe);
    }
    make(&queue, mistake);
    uint64_t rung = rings_next ? queue.posted : last;
    rig_ring(&queue, rung);
    rig_expect_diag_of(&queue, diag_of(mistake), rung, offending(&queue, mistake));
    rig_expect_none(&queue.send_cq, 2);

    store(&queue.record->receive, 0);
    rig_record(&queue, queue.posted);
    rig_ring(&queue, rung);
    for (uint32_t i = 0; i < count; i++)
        rig_expect(&queue, first + i);
    rig_expect_clean(&rig);
    rig_destroy(&queue);
}

/* ---- What is no mistake ---- */

static void early_doorbell(void)
{
    struct rig_queue queue, neighbour;
    struct wqe wqe;

    open_queue(&queue, 0x1fff);
    rig_build(&queue, &wqe, 0, 64);
    uint64_t index = rig_put(&queue, &wqe);
    rig_ring(&queue, index);
    rig_expect_none(&queue.send_cq, 5);
    rig_record(&queue, queue.posted);
    rig_expect(&queue, index);
    rig_expect_clean(&rig);

    /* The same, but another queue's doorbell on the page makes the device look. */
    rig_loop(&rig, &neighbour, page, 1, 6);
    index = rig_put(&queue, &wqe);
    rig_ring(&queue, index);
    rig_expect_none(&queue.send_cq, 5);
    nic_hold(rig.host);
    rig_record(&queue, queue.posted);
    rig_build(&neighbour, &wqe, 0, 64);
    rig_post(&neighbour, &wqe);
    nic_release(rig.host);
    rig_expect(&queue, index);
    rig_expect(&neighbour, 0);
    rig_expect_clean(&rig);
    rig_destroy(&neighbour);
    rig_destroy(&queue);
}

static void doorbell_twice(void)
{
    struct rig_queue queue;
    struct wqe wqe;

    open_queue(&queue, 0xfff0);
    for (int i = 0; i < 64; i++) {
        rig_build(&queue, &wqe, 0, 64);
        uint64_t index = rig_post(&queue, &wqe);
        rig_expect(&queue, index);
        rig_ring(&queue, index);
        rig_wait32((uint32_t *)(void *)queue.doorbell, 0, "the second doorbell taken");
    }
    rig_expect_clean(&rig);
    rig_destroy(&queue);
}

int main(void)
{
    /* Never asleep: a store to a sleeping device's page waits for it, also while it is held. */
    struct nic_config config = {.poll = NIC_POLL_SPIN, .strict = {.enabled = 1, .random = 1}};
    static const uint64_t starts[] = {0, 5, 0x00fe, 0x0100, 0x1233, 0x7ffd, 0xfffb, 0xfffe};

    rig_start(&rig, &config);
    page = rig_uar(&rig);
    early_doorbell();
    doorbell_twice();
    for (enum mistake mistake = RECEIVE_HALF; mistake <= NO_RECORD; mistake++) {
        named(mistake, starts[mistake % 4], 1, false);
        named(mistake, starts[mistake % 4 + 4], 3, true);
    }
    rig_stop(&rig);
    return 0;
}
