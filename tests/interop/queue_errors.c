/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: an error CQE becomes a status, with the queue pair, the index, the operation and the
 * syndrome of the first failure; a wait that runs into its deadline leaves the queue usable; and a
 * queue in error works again after a reset and a new connection. With a completion ring and a
 * collapsed CQ.
 */
#include "queue_ends.h"

#include <errno.h>
#include <string.h>

#define BUFFER_BYTES 65536
#define DEPTH        16

static struct db_queue_attr attr_of(bool collapsed, uint64_t timeout_ns)
{
    return (struct db_queue_attr){
        .depth = DEPTH, .recv_depth = 4, .collapsed = collapsed, .timeout_ns = timeout_ns};
}

/* A put whose bytes and completion are checked: the queue works. */
static void expect_working(const struct queue_ends *ends, uint64_t value)
{
    uint64_t index;

    QUEUE_OK(db_put_value(ends->a.qp, ends->b.keys.iova, ends->b.keys.rkey, value, &index));
    int status = db_wait(ends->a.qp, index);
    CHECK(status == DB_OK, "db_wait() = %d: %s", status,
          db_queue_check(ends->a.queue) ? db_error_text() : "no error");
    CHECK(memcmp(ends->b.buffer, &value, sizeof(value)) == 0, "the value did not arrive");
}

static void expect_error(const struct queue_end *end, uint64_t index, uint32_t opcode,
                         uint32_t syndrome, const char *words)
{
    struct db_error error;
    char qpn[16];

    int status = db_wait(end->qp, index);
    CHECK(status == DB_ERROR_IO, "db_wait() = %d instead of an error", status);
    CHECK(db_flush(end->qp) == DB_ERROR_IO, "db_flush() sees no error");
    CHECK(db_qp_error(end->qp, &error) == DB_ERROR_IO, "db_qp_error() sees no error");
    CHECK(error.qpn == end->qp->qpn, "QPN %#x", error.qpn);
    CHECK(error.index == (index & M5_INDEX_MASK), "index %u instead of %llu", error.index,
          (unsigned long long)index);
    CHECK(error.opcode == opcode, "opcode %#x", error.opcode);
    CHECK(error.syndrome == syndrome, "syndrome %#x", error.syndrome);
    CHECK(db_queue_check(end->queue) == -EIO, "db_queue_check() sees no error");
    snprintf(qpn, sizeof(qpn), "QP %#x", end->qp->qpn);
    CHECK(strstr(db_error_text(), qpn) && strstr(db_error_text(), words), "the sentence is: %s",
          db_error_text());
}

static void expect_state(const struct queue_end *end, enum db_queue_state state)
{
    struct db_queue_info info;

    QUEUE_OK(db_queue_query(end->queue, &info));
    CHECK(info.state == state, "state %d instead of %d", (int)info.state, (int)state);
}

static void reconnect(const struct queue_ends *ends)
{
    QUEUE_OK(db_queue_reset(ends->a.queue));
    QUEUE_OK(db_queue_reset(ends->b.queue));
    expect_state(&ends->a, DB_QUEUE_INIT);
    QUEUE_OK(db_queue_connect(ends->a.queue, ends->b.queue));
    expect_state(&ends->a, DB_QUEUE_READY);
}

static void error_cqes(bool collapsed)
{
    const struct db_queue_attr attr = attr_of(collapsed, 0);
    struct queue_ends ends;
    uint64_t index, later;

    queue_ends_start(&ends, &attr, BUFFER_BYTES);
    const struct queue_end *a = &ends.a, *b = &ends.b;

    /* With successes before it and, where they have CQEs of their own, WQEs behind it that are
     * flushed: a collapsed CQ keeps the last CQE alone. */
    for (uint64_t i = 0; i < 3 * DEPTH; i++)
        expect_working(&ends, i);
    QUEUE_OK(db_put_value(a->qp, b->keys.iova, b->keys.rkey ^ 0x100, 1, &index));
    for (int i = 0; i < 5 && !collapsed; i++)
        db_put_value(a->qp, b->keys.iova, b->keys.rkey, 2, &later);
    expect_error(a, index, M5_OP_WRITE, M5_SYN_REMOTE_ACCESS, "rkey");
    expect_state(a, DB_QUEUE_ERROR);
    /* However often it is posted to, the queue says so within its deadline. */
    int status = DB_OK;
    for (int i = 0; i < 3 * DEPTH && !status; i++)
        status = db_put_value(a->qp, b->keys.iova, b->keys.rkey, 3, &later);
    CHECK(status == DB_ERROR_IO, "a queue in error took %d posts", 3 * DEPTH);
    reconnect(&ends);
    expect_working(&ends, 4);

    QUEUE_OK(
        db_put(a->qp, b->keys.iova, b->keys.rkey, a->keys.iova, a->keys.lkey ^ 0x100, 8, &index));
    expect_error(a, index, M5_OP_WRITE, M5_SYN_LOCAL_PROTECTION, "lkey");
    reconnect(&ends);

    QUEUE_OK(db_get(a->qp, b->keys.iova + BUFFER_BYTES - 4, b->keys.rkey, a->keys.iova,
                    a->keys.lkey, 8, &index));
    expect_error(a, index, M5_OP_READ, M5_SYN_REMOTE_ACCESS, "RDMA read");
    reconnect(&ends);

    QUEUE_OK(
        db_fetch_add(a->qp, b->keys.iova + 4, b->keys.rkey, a->keys.iova, a->keys.lkey, 1, &index));
    expect_error(a, index, M5_OP_ATOMIC_FA, M5_SYN_REMOTE_INVALID_REQUEST, "fetch-and-add");
    reconnect(&ends);
    for (uint64_t i = 0; i < 3 * DEPTH; i++)
        expect_working(&ends, i);
    queue_ends_destroy(&ends);
}

/* The peer has no receive: the put waits there, the call ends at its deadline, and the put arrives
 * after all when the peer posts one. */
static void peer_without_receive(bool collapsed)
{
    const struct db_queue_attr attr = attr_of(collapsed, 30000000);
    struct queue_ends ends;
    uint64_t index;

    queue_ends_start(&ends, &attr, BUFFER_BYTES);
    const struct queue_end *a = &ends.a, *b = &ends.b;
    QUEUE_OK(
        db_put_imm(a->qp, b->keys.iova, b->keys.rkey, a->keys.iova, a->keys.lkey, 8, 7, &index));
    uint64_t start = port_now_ns();
    CHECK(db_wait(a->qp, index) == DB_ERROR_TIMEOUT, "a put without a receive was completed");
    CHECK(port_now_ns() - start < 20000000000ull, "the deadline of 30 ms was not kept");
    QUEUE_OK(db_queue_check(a->queue));
    QUEUE_OK(db_queue_post_receives(b->queue, 1));
    CHECK(queue_end_receive(b).imm == 7, "another immediate");
    int status;
    while ((status = db_wait(a->qp, index)) == DB_ERROR_TIMEOUT)
        ;
    CHECK(status == DB_OK, "db_wait() = %d", status);
    expect_working(&ends, 8);
    queue_ends_destroy(&ends);
}

/* The peer is not connected yet: the ring fills up, a claim ends at its deadline without a trace,
 * and all is carried out when the peer connects. */
static void peer_not_connected(bool collapsed)
{
    const struct db_queue_attr attr = attr_of(collapsed, 20000000);
    struct db_endpoint at_a, at_b;
    struct queue_ends ends;
    uint64_t index;

    queue_ends_create(&ends, &attr, BUFFER_BYTES);
    const struct queue_end *a = &ends.a, *b = &ends.b;
    QUEUE_OK(db_queue_endpoint(a->queue, &at_a));
    QUEUE_OK(db_queue_endpoint(b->queue, &at_b));
    QUEUE_OK(db_queue_connect_remote(a->queue, &at_b));
    for (uint64_t i = 0; i < DEPTH; i++)
        QUEUE_OK(db_put_value(a->qp, b->keys.iova + 8 * i, b->keys.rkey, 100 + i, &index));
    for (int i = 0; i < 2; i++) {
        uint64_t lost;
        CHECK(db_put_value(a->qp, b->keys.iova, b->keys.rkey, 1, &lost) == DB_ERROR_TIMEOUT,
              "a put found room in a full ring");
    }
    QUEUE_OK(db_queue_connect_remote(b->queue, &at_a));
    int status;
    while ((status = db_wait(a->qp, index)) == DB_ERROR_TIMEOUT)
        ;
    CHECK(status == DB_OK, "db_wait() = %d", status);
    for (uint64_t i = 0; i < DEPTH; i++) {
        uint64_t value;
        memcpy(&value, b->buffer + 8 * i, sizeof(value));
        CHECK(value == 100 + i, "value %llu is %llu", (unsigned long long)i,
              (unsigned long long)value);
    }
    expect_working(&ends, 9);
    queue_ends_destroy(&ends);
}

/* A peer that is gone for good: after the device's retries, an error; not a wait without end. */
static void peer_gone(bool collapsed)
{
    const struct db_queue_attr attr = attr_of(collapsed, 0);
    struct queue_ends ends;
    uint64_t index;

    queue_ends_start(&ends, &attr, BUFFER_BYTES);
    expect_working(&ends, 1);
    db_queue_destroy(ends.b.queue);
    ends.b.queue = NULL;
    QUEUE_OK(db_put_value(ends.a.qp, ends.b.keys.iova, ends.b.keys.rkey, 2, &index));
    expect_error(&ends.a, index, M5_OP_WRITE, M5_SYN_TRANSPORT_RETRY_EXCEEDED, "does not answer");
    queue_ends_destroy(&ends);
}

/* Posted receives of a queue that comes to grief are told, and gone after a reset. */
static void receives_are_flushed(void)
{
    const struct db_queue_attr attr = attr_of(false, 0);
    struct db_receive receive;
    struct queue_ends ends;
    uint64_t index;
    int arrived;

    queue_ends_start(&ends, &attr, BUFFER_BYTES);
    QUEUE_OK(db_queue_post_receives(ends.a.queue, 4));
    CHECK(db_queue_post_receives(ends.a.queue, 1) == -EINVAL, "a fifth receive of 4 was taken");
    QUEUE_OK(db_put_value(ends.a.qp, ends.b.keys.iova, ends.b.keys.rkey ^ 0x100, 1, &index));
    CHECK(db_wait(ends.a.qp, index) == DB_ERROR_IO, "no error");
    while ((arrived = db_queue_poll_receive(ends.a.queue, &receive)) == 0)
        ;
    CHECK(arrived == -EIO && strstr(db_error_text(), "syndrome 0x5"), "%d: %s", arrived,
          db_error_text());
    reconnect(&ends);
    CHECK(db_queue_poll_receive(ends.a.queue, &receive) == 0, "an arrival after a reset");
    QUEUE_OK(db_queue_post_receives(ends.a.queue, 4));
    for (uint32_t i = 0; i < 4; i++) {
        QUEUE_OK(db_put_imm(ends.b.qp, ends.a.keys.iova, ends.a.keys.rkey, ends.b.keys.iova,
                            ends.b.keys.lkey, 8, i, &index));
        CHECK(queue_end_receive(&ends.a).imm == i, "another immediate");
    }
    QUEUE_OK(db_flush(ends.b.qp));
    queue_ends_destroy(&ends);
}

int main(void)
{
    queue_strict(true);
    for (int collapsed = 0; collapsed < 2; collapsed++) {
        error_cqes(collapsed);
        peer_without_receive(collapsed);
        peer_not_connected(collapsed);
        peer_gone(collapsed);
    }
    receives_are_flushed();
    queue_expect_no_diagnostics();
    return 0;
}
