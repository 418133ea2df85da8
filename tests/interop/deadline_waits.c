/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: each wait of a device thread ends at the queue's deadline when nobody does what it waits
 * for. Waits for a completion, for room by an owner or under the lock, and for the lock leave the
 * queue usable; a wait for room with blocks already claimed, or for a turn, leaves it broken, which
 * every later call says, until a reset. On detached queues, by one thread and by 64.
 */
#include "share_rig.h"

#define DEPTH      16
#define TIMEOUT_NS 20000000ull
#define LATE_NS    15000000000ull /* what a loaded machine and a sanitizer may add */

static struct db_queue *create(bool collapsed, bool without_record)
{
    const struct db_queue_attr attr = {.depth = DEPTH,
                                       .collapsed = collapsed,
                                       .without_record = without_record,
                                       .timeout_ns = TIMEOUT_NS};
    struct db_queue *queue;

    QUEUE_OK(db_queue_create_detached(&attr, &queue));
    return queue;
}

/* A call that must wait until its deadline and end with `want`. */
#define ENDS_IN_TIME(call, want)                                                                   \
    do {                                                                                           \
        uint64_t start = port_now_ns();                                                            \
        int status = (call);                                                                       \
        uint64_t took = port_now_ns() - start;                                                     \
        CHECK(status == (want), "%s = %d", #call, status);                                         \
        CHECK(took >= TIMEOUT_NS && took < TIMEOUT_NS + LATE_NS, "%s took %llu us", #call,         \
              (unsigned long long)took / 1000);                                                    \
    } while (0)

/* The same for one that must not wait. */
#define ENDS_AT_ONCE(call, want)                                                                   \
    do {                                                                                           \
        int status = (call);                                                                       \
        CHECK(status == (want), "%s = %d", #call, status);                                         \
    } while (0)

static void complete_all(struct db_queue *queue, int wqes)
{
    CHECK(db_detached_complete(queue, UINT32_MAX) == wqes, "not %d WQEs were there", wqes);
}

static void fill(struct db_qp *qp, bool shared)
{
    uint64_t index;

    for (uint32_t i = 0; i < DEPTH; i++)
        CHECK((shared ? db_put_value_shared(qp, 0, 1, i, &index)
                      : db_put_value(qp, 0, 1, i, &index)) == DB_OK,
              "put %u", i);
}

/* ---- Waits that leave the queue usable ---- */

static void completion(struct db_queue *queue)
{
    struct db_qp *qp = db_queue_device_view(queue);
    uint64_t index;

    QUEUE_OK(db_queue_reset(queue));
    CHECK(db_put_value(qp, 0, 1, 1, &index) == DB_OK, "put");
    ENDS_IN_TIME(db_wait(qp, index), DB_ERROR_TIMEOUT);
    ENDS_IN_TIME(db_wait_shared(qp, index), DB_ERROR_TIMEOUT);
    ENDS_IN_TIME(db_flush(qp), DB_ERROR_TIMEOUT);
    ENDS_IN_TIME(db_flush_shared(qp), DB_ERROR_TIMEOUT);
    QUEUE_OK(db_queue_check(queue));
    complete_all(queue, 1);
    ENDS_AT_ONCE(db_wait(qp, index), DB_OK);
    ENDS_AT_ONCE(db_flush_shared(qp), DB_OK);
}

static void room_of_an_owner(struct db_queue *queue)
{
    struct db_qp *qp = db_queue_device_view(queue);
    uint64_t index;

    QUEUE_OK(db_queue_reset(queue));
    fill(qp, false);
    ENDS_IN_TIME(db_claim(qp, 1, &index), DB_ERROR_TIMEOUT);
    ENDS_IN_TIME(db_put_value(qp, 0, 1, 1, &index), DB_ERROR_TIMEOUT);
    QUEUE_OK(db_queue_check(queue));
    complete_all(queue, DEPTH);
    ENDS_AT_ONCE(db_put_value(qp, 0, 1, 1, &index), DB_OK);
    CHECK(index == DEPTH, "a claim that failed took blocks: index %llu", (unsigned long long)index);
    complete_all(queue, 1);
    ENDS_AT_ONCE(db_wait(qp, index), DB_OK);
}

static void lock_and_room_under_it(struct db_queue *queue)
{
    struct db_qp *qp = db_queue_device_view(queue);
    uint64_t index, other;
    enum db_record record = (enum db_record)qp->with_record;

    QUEUE_OK(db_queue_reset(queue));
    ENDS_AT_ONCE(db_claim_locked(qp, 1, &index), DB_OK);
    ENDS_IN_TIME(db_claim_locked(qp, 1, &other), DB_ERROR_TIMEOUT);
    QUEUE_OK(db_queue_check(queue));
    db_build_nop(qp, index, DB_SIGNALED);
    db_publish_locked(qp, qp, index, index + 1, DB_ORDER_SYSTEM, record);
    complete_all(queue, 1);
    ENDS_AT_ONCE(db_wait_shared(qp, index), DB_OK);

    for (uint32_t i = 0; i < DEPTH; i++) {
        ENDS_AT_ONCE(db_claim_locked(qp, 1, &index), DB_OK);
        db_build_nop(qp, index, DB_SIGNALED);
        db_publish_locked(qp, qp, index, index + 1, DB_ORDER_SYSTEM, record);
    }
    ENDS_IN_TIME(db_claim_locked(qp, 1, &other), DB_ERROR_TIMEOUT);
    complete_all(queue, DEPTH);
    ENDS_AT_ONCE(db_claim_locked(qp, DEPTH + 1, &index), DB_ERROR_INVALID);
    ENDS_AT_ONCE(db_claim_locked(qp, DEPTH, &index), DB_OK);
    for (uint32_t i = 0; i < DEPTH; i++)
        db_build_nop(qp, index + i, DB_SIGNALED);
    db_publish_locked(qp, qp, index + DEPTH - 1, index + DEPTH, DB_ORDER_SYSTEM, record);
    complete_all(queue, DEPTH);
    ENDS_AT_ONCE(db_flush_shared(qp), DB_OK);
}

/* ---- Waits that break it ---- */

static void expect_broken(struct db_queue *queue)
{
    struct db_qp *qp = db_queue_device_view(queue);
    struct db_error error;
    uint64_t index, first;

    ENDS_AT_ONCE(db_qp_error(qp, &error), DB_ERROR_BROKEN);
    ENDS_AT_ONCE(db_claim_shared(qp, 1, &index), DB_ERROR_BROKEN);
    ENDS_AT_ONCE(db_put_shared(qp, 0, 1, 0, 1, 8, &index), DB_ERROR_BROKEN);
    ENDS_AT_ONCE(db_put_value_shared(qp, 0, 1, 1, &index), DB_ERROR_BROKEN);
    ENDS_AT_ONCE(db_put_warp(qp, 1, 0, 1, 0, 1, 8, &index), DB_ERROR_BROKEN);
    ENDS_AT_ONCE(db_claim_warp(qp, 1, &first, &index), DB_ERROR_BROKEN);
    ENDS_AT_ONCE(db_claim_locked(qp, 1, &index), DB_ERROR_BROKEN);
    ENDS_AT_ONCE(db_publish_shared(qp, qp, DEPTH + 7, 1), DB_ERROR_BROKEN);
    ENDS_AT_ONCE(db_wait_shared(qp, 1u << 20), DB_ERROR_BROKEN);
    CHECK(db_queue_check(queue) != 0, "db_queue_check() finds nothing");

    QUEUE_OK(db_queue_reset(queue));
    QUEUE_OK(db_queue_check(queue));
    ENDS_AT_ONCE(db_put_value_shared(qp, 0, 1, 1, &index), DB_OK);
    complete_all(queue, 1);
    ENDS_AT_ONCE(db_wait_shared(qp, index), DB_OK);
}

static void room_for_claimed_blocks(struct db_queue *queue)
{
    struct db_qp *qp = db_queue_device_view(queue);
    uint64_t index;

    QUEUE_OK(db_queue_reset(queue));
    fill(qp, true);
    ENDS_IN_TIME(db_put_value_shared(qp, 0, 1, 1, &index), DB_ERROR_BROKEN);
    expect_broken(queue);

    /* The same, and then there would be room again. */
    fill(qp, true);
    ENDS_IN_TIME(db_claim_shared(qp, 1, &index), DB_ERROR_BROKEN);
    complete_all(queue, DEPTH);
    expect_broken(queue);
}

static void turn(struct db_queue *queue)
{
    struct db_qp *qp = db_queue_device_view(queue);
    uint64_t stalled, index;

    QUEUE_OK(db_queue_reset(queue));
    ENDS_AT_ONCE(db_claim_shared(qp, 1, &stalled), DB_OK);
    ENDS_AT_ONCE(db_claim_shared(qp, 1, &index), DB_OK);
    db_build_nop(qp, index, DB_SIGNALED);
    ENDS_IN_TIME(db_publish_shared(qp, qp, index, 1), DB_ERROR_BROKEN);
    expect_broken(queue);

    /* Hand-off does not wait for its turn; the wait for the completion ends, and the predecessor
     * may still come. */
    QUEUE_OK(db_queue_reset(queue));
    enum db_record record = (enum db_record)qp->with_record;
    ENDS_AT_ONCE(db_claim_shared(qp, 1, &stalled), DB_OK);
    ENDS_AT_ONCE(db_claim_shared(qp, 1, &index), DB_OK);
    db_build_nop(qp, index, DB_SIGNALED);
    db_publish_handoff(qp, qp, index, 1, DB_ORDER_SYSTEM, record);
    complete_all(queue, 0);
    ENDS_IN_TIME(db_wait_shared(qp, index), DB_ERROR_TIMEOUT);
    QUEUE_OK(db_queue_check(queue));
    db_build_nop(qp, stalled, DB_SIGNALED);
    db_publish_handoff(qp, qp, stalled, 1, DB_ORDER_SYSTEM, record);
    complete_all(queue, 2);
    ENDS_AT_ONCE(db_wait_shared(qp, index), DB_OK);
}

/* ---- By 64 threads at once ---- */

#define THREADS 64

enum wait_kind {
    WAIT_COMPLETION,
    WAIT_LOCK,
    WAIT_ROOM,
    WAIT_TURN,
    WAIT_KINDS,
};

struct waits_args {
    struct db_qp *qp;
    enum wait_kind kind;
    struct share_failure *failure;
};

PORT_KERNEL(waits, struct waits_args, args)
{
    struct db_qp *qp = args->qp;
    uint64_t index = 0, start = port_now_ns();
    int want = args->kind <= WAIT_LOCK ? DB_ERROR_TIMEOUT : DB_ERROR_BROKEN;
    int status = DB_OK;

    if (args->kind == WAIT_COMPLETION)
        status = db_wait_shared(qp, 0);
    else if (args->kind == WAIT_LOCK)
        status = db_claim_locked(qp, 1, &index);
    else
        status = db_put_value_shared(qp, 0, 1, 1, &index);
    uint64_t took = port_now_ns() - start;
    if (status != want)
        share_fail(args->failure, "status", args->kind, status);
    if ((want == DB_ERROR_TIMEOUT && took < TIMEOUT_NS) || took > TIMEOUT_NS + LATE_NS)
        share_fail(args->failure, "nanoseconds", args->kind, (int64_t)took);
}

static void many(struct db_queue *queue, enum wait_kind kind)
{
    struct share_failure failure = {0};
    struct share_end end = {.qp = db_queue_device_view(queue)};
    const struct share_set set = {.ends = &end, .queues = 1, .watchdog_ns = 2 * LATE_NS};
    const struct waits_args args = {.qp = end.qp, .kind = kind, .failure = &failure};
    uint64_t index;

    QUEUE_OK(db_queue_reset(queue));
    if (kind == WAIT_LOCK)
        ENDS_AT_ONCE(db_claim_locked(end.qp, 1, &index), DB_OK);
    else if (kind == WAIT_ROOM)
        fill(end.qp, true);
    else if (kind == WAIT_TURN)
        ENDS_AT_ONCE(db_claim_shared(end.qp, 1, &index), DB_OK);
    share_launch(&set, 4, &waits, (struct db_gpu_shape){.ctas = 4, .threads = THREADS / 4}, &args,
                 &failure);
    if (kind >= WAIT_ROOM)
        expect_broken(queue);
    else
        QUEUE_OK(db_queue_check(queue));
}

int main(void)
{
    for (int variant = 0; variant < 4; variant++) {
        struct db_queue *queue = create(variant & 1, variant & 2);
        completion(queue);
        room_of_an_owner(queue);
        lock_and_room_under_it(queue);
        room_for_claimed_blocks(queue);
        turn(queue);
        for (int kind = 0; kind < WAIT_KINDS; kind++)
            many(queue, (enum wait_kind)kind);
        db_queue_destroy(queue);
    }
    return 0;
}
