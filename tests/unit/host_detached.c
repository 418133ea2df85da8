/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a detached queue takes the issue path as a device's does: it fills up, a claim on a full
 * ring ends at its deadline and leaves the queue usable, completions give blocks back, with a
 * record, without, and with one that is exchanged, with a completion ring and a collapsed CQ, for
 * more than two laps of the 16-bit index. Each call of device.h exchanges the record where the
 * queue says so, and nowhere else; what comes behind the exchange is made of its answer.
 */
#include <doorbell/device.h>
#include <doorbell/doorbell.h>
#include <errno.h>
#include <string.h>

#include "../check.h"

static struct db_queue *create(uint32_t depth, bool collapsed, enum db_record record)
{
    const struct db_queue_attr attr = {.depth = depth,
                                       .collapsed = collapsed,
                                       .without_record = record == DB_WITHOUT_RECORD,
                                       .timeout_ns = 2000000};
    struct db_queue *queue;

    CHECK(db_queue_create_detached(&attr, &queue) == 0, "%s", db_error_text());
    /* The CPU plays the device, so the record is in host memory, where the library exchanges none.
     */
    if (record == DB_RECORD_EXCHANGED) {
        db_queue_device_view(queue)->order = DB_ORDER_GPU;
        db_queue_device_view(queue)->with_record = record;
    }
    return queue;
}

/* A full ring, then one that has room again. */
static void full_ring(struct db_queue *queue, uint32_t depth)
{
    struct db_qp *qp = db_queue_device_view(queue);
    uint64_t index, last = 0;

    for (uint32_t i = 0; i < depth; i++)
        CHECK(db_put(qp, 0, 1, 0, 1, 8, &last) == DB_OK && last == i, "put %u", i);
    for (int i = 0; i < 2; i++)
        CHECK(db_put(qp, 0, 1, 0, 1, 8, &index) == DB_ERROR_TIMEOUT, "a full ring took a put");
    CHECK(db_wait(qp, last) == DB_ERROR_TIMEOUT, "a put completed by itself");
    CHECK(db_detached_complete(queue, 1) == 1, "%s", db_error_text());
    CHECK(db_wait(qp, 0) == DB_OK, "the first put is not complete");
    CHECK(db_put(qp, 0, 1, 0, 1, 8, &last) == DB_OK && last == depth, "no room after a completion");
    CHECK(db_detached_complete(queue, UINT32_MAX) == (int)depth, "not all completed");
    CHECK(db_wait(qp, last) == DB_OK && db_flush(qp) == DB_OK, "not all is complete");
    CHECK(db_detached_complete(queue, 1) == 0, "a WQE too many");
}

/* WQEs of 1 to 3 blocks, every 8th signalled, until the index has wrapped twice. */
static void many_laps(struct db_queue *queue)
{
    struct db_qp *qp = db_queue_device_view(queue);
    uint8_t payload[128] = {0};
    uint64_t index = 0;
    uint32_t posted = 0, taken = 0;

    for (uint32_t i = 0; index < 2 * 65536 + 1000; i++) {
        uint32_t bytes = i * 5 % 129, blocks = db_inline_blocks(bytes);
        uint32_t flags = i % 8 == 7 ? DB_SIGNALED : DB_UNSIGNALED;
        CHECK(db_claim(qp, blocks, &index) == DB_OK, "claim %u", i);
        db_build_write_inline(qp, index, M5_OP_WRITE, flags, 0, 1, payload, bytes, 0);
        db_publish_safe(qp, index, index + blocks);
        posted++;
        if (flags) {
            taken += (uint32_t)db_detached_complete(queue, UINT32_MAX);
            CHECK(taken == posted, "%u of %u WQEs", taken, posted);
            CHECK(db_wait(qp, index) == DB_OK, "WQE %u is not complete", i);
        }
    }
}

static void reset(struct db_queue *queue)
{
    struct db_qp *qp = db_queue_device_view(queue);
    uint64_t index;

    CHECK(db_put(qp, 0, 1, 0, 1, 8, &index) == DB_OK && index > 0, "put");
    db_qp_fail(qp, DB_QP_BROKEN);
    CHECK(db_queue_check(queue) == -ENOTRECOVERABLE && strstr(db_error_text(), "db_queue_reset()"),
          "%s", db_error_text());
    CHECK(db_queue_reset(queue) == 0 && db_queue_check(queue) == 0, "%s", db_error_text());
    CHECK(db_put(qp, 0, 1, 0, 1, 8, &index) == DB_OK && index == 0, "index %llu after a reset",
          (unsigned long long)index);
    CHECK(db_wait(qp, 0) == DB_ERROR_TIMEOUT, "completed by something from before the reset");
    CHECK(db_detached_complete(queue, 9) == 1 && db_wait(qp, 0) == DB_OK, "not completed");
}

static void no_wqe(struct db_queue *queue)
{
    struct db_qp *qp = db_queue_device_view(queue);
    uint64_t index;

    CHECK(db_queue_reset(queue) == 0, "%s", db_error_text());
    CHECK(db_claim(qp, 1, &index) == DB_OK, "claim");
    db_publish_safe(qp, index, index + 1);
    CHECK(db_detached_complete(queue, 1) == -EIO && strstr(db_error_text(), "index 0"), "%s",
          db_error_text());
}

/* Of a record whose first two bytes are not 0, as no queue's is, the exchange's answer shows in
 * what is made of it: the doorbell, and what a ticket's holder publishes. */
static void answer_shows(struct db_queue *queue, enum db_record record)
{
    struct db_qp *qp = db_queue_device_view(queue);
    const uint64_t *doorbell = qp->doorbell;
    const uint64_t published = db_published_pack(0, 1);
    uint64_t index, answer = record == DB_RECORD_EXCHANGED;

    for (int shared = 0; shared < 2; shared++) {
        CHECK(db_queue_reset(queue) == 0, "%s", db_error_text());
        qp->record->send.raw = 0x10001;
        CHECK((shared ? db_put_shared : db_put)(qp, 0, 1, 0, 1, 8, &index) == DB_OK, "put");
        CHECK((*doorbell & 1) == answer, "record %d, shared %d: doorbell %llx", (int)record, shared,
              (unsigned long long)*doorbell);
        CHECK(qp->post.published == (shared ? published | answer : published),
              "record %d, shared %d: published %llx", (int)record, shared,
              (unsigned long long)qp->post.published);
    }
    CHECK(db_queue_reset(queue) == 0, "%s", db_error_text());
}

int main(void)
{
    static const uint32_t depths[] = {4, 64, 1024};

    for (int kind = 0; kind < 6; kind++) {
        for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
            struct db_queue *queue = create(depths[i], kind & 1, (enum db_record)(kind / 2));
            full_ring(queue, depths[i]);
            if (depths[i] >= 64)
                many_laps(queue);
            reset(queue);
            no_wqe(queue);
            answer_shows(queue, (enum db_record)(kind / 2));
            db_queue_destroy(queue);
        }
    }
    return 0;
}
