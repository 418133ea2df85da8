/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a thread that polls a collapsed CQ and is held up between its loads, however many WQEs the
 * others complete meanwhile, neither sees a completion that was not nor makes others see one. The
 * others' work is done between the two loads of one poll, on a detached queue.
 */
#define PORT_WEAK

#include "queue_ends.h"

#include "order_weak.h"

#define DEPTH 64

static struct db_queue *queue;
static struct db_qp *qp;
static uint32_t stall_at; /* the load of the poll after which the others work; 0: none */
static uint32_t to_post;  /* by the others */

/* Posts and completes `count` NOPs, with at most a ring of them at once. */
static void work(uint32_t count)
{
    uint64_t index = 0;

    while (count > 0) {
        uint32_t n = count < DEPTH ? count : DEPTH;
        CHECK(db_claim_shared(qp, n, &index) == DB_OK, "claim");
        for (uint32_t i = 0; i < n; i++)
            db_build_nop(qp, index + i, DB_SIGNALED);
        CHECK(db_publish_ticket(qp, qp, index, index + n - 1, index + n, DB_ORDER_SYSTEM,
                                DB_WITH_RECORD) == DB_OK,
              "publish");
        order_weak_leave();
        CHECK(db_detached_complete(queue, n) == (int)n, "%s", db_error_text());
        CHECK(db_wait_shared(qp, index + n - 1) == DB_OK, "wait");
        count -= n;
    }
}

static void loaded(const void *word)
{
    (void)word;
    if (stall_at == 0 || --stall_at != 0)
        return;
    work(to_post);
}

/* One poll that is held up after its load number `load`, while `count` blocks complete. */
static void late(uint32_t before, uint32_t load, uint32_t count)
{
    QUEUE_OK(db_queue_reset(queue));
    work(before);
    stall_at = load;
    to_post = count;
    uint64_t seen = db_cq_poll(qp, DB_ALL_BLOCKS, true, PORT_ACQUIRE);
    CHECK(stall_at == 0, "a poll makes fewer than %u loads", load);
    order_weak_leave();

    uint64_t done = before + count;
    uint64_t told = port_ld64(&qp->done.completed, PORT_RELAXED, PORT_GPU);
    CHECK(seen <= done && told <= done,
          "%u complete, %u more after load %u: the poll saw %llu and told %llu", before, count,
          load, (unsigned long long)seen, (unsigned long long)told);
    CHECK(db_cq_poll(qp, DB_ALL_BLOCKS, true, PORT_ACQUIRE) == done,
          "the next poll does not see %llu", (unsigned long long)done);
}

int main(void)
{
    static const uint32_t before[] = {0, 1, 40000};
    static const uint32_t counts[] = {1,     64,    32767, 32768, 32769,
                                      40000, 65535, 65536, 65537, 98305};
    const struct db_queue_attr attr = {.depth = DEPTH, .collapsed = true};

    QUEUE_OK(db_queue_create_detached(&attr, &queue));
    qp = db_queue_device_view(queue);
    order_weak_begin(1);
    order_weak_loaded = loaded;
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
        for (size_t j = 0; j < sizeof(counts) / sizeof(counts[0]); j++)
            for (uint32_t load = 1; load <= 2; load++)
                late(before[i], load, counts[j]);
    db_queue_destroy(queue);
    return 0;
}
