/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: completion events keep the contract of ibv_req_notify_cq(3) and ibv_get_cq_event(3): one
 * event for one arming, none unarmed, solicited ones apart, none lost when many CQs (which share
 * one register) are armed at once, and a CQ can be destroyed with events unread.
 */
#include "rc_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

enum { QUIET_MS = 60, MANY = 24 };

static bool readable(struct ibv_comp_channel *channel, int milliseconds)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

    return poll(&fd, 1, milliseconds) == 1;
}

static void arm(struct ibv_cq *cq, bool solicited_only)
{
    int err = ibv_req_notify_cq(cq, solicited_only);

    CHECK(err == 0, "ibv_req_notify_cq: %s", strerror(err));
}

/* The next event, acknowledged. */
static struct ibv_cq *take_event(struct ibv_comp_channel *channel)
{
    struct ibv_cq *cq = NULL;
    void *cq_context;

    CHECK(readable(channel, (int)(RC_DEADLINE_NS / 1000000)), "no completion event in time");
    CHECK(ibv_get_cq_event(channel, &cq, &cq_context) == 0, "ibv_get_cq_event: %s",
          strerror(errno));
    CHECK(cq_context == cq->cq_context, "the event's context is %p", cq_context);
    ibv_ack_cq_events(cq, 1);
    return cq;
}

static void expect_event(struct ibv_comp_channel *channel, const struct ibv_cq *expected)
{
    const struct ibv_cq *cq = take_event(channel);

    CHECK(cq == expected, "an event of CQ %p, %p expected", (const void *)cq,
          (const void *)expected);
}

static void expect_quiet(struct ibv_comp_channel *channel)
{
    CHECK(!readable(channel, QUIET_MS), "an event where none may come");
}

static void send_one(struct rc_pair *pair, uint64_t id, unsigned int flags)
{
    rc_post_recv(&pair->b, id, 0, 64);
    rc_post(&pair->a, &pair->b, IBV_WR_SEND, id, 64, 0, 8, IBV_SEND_SIGNALED | flags);
}

static void drain_one(struct rc_pair *pair, uint64_t id)
{
    rc_expect(pair->a.send_cq, &pair->a, id, IBV_WC_SEND);
    rc_expect(pair->b.recv_cq, &pair->b, id, IBV_WC_RECV);
}

/* One arming, one event, however many completions come; none without arming. */
static void one_for_one(struct rc_pair *pair)
{
    send_one(pair, 1, 0);
    drain_one(pair, 1);
    expect_quiet(pair->channel);
    for (uint64_t round = 0; round < 200; round++) {
        arm(pair->b.recv_cq, false);
        rc_expect_none(pair->b.recv_cq, 0);
        for (uint64_t i = 0; i < 3; i++)
            send_one(pair, i, 0);
        expect_event(pair->channel, pair->b.recv_cq);
        for (uint64_t i = 0; i < 3; i++)
            drain_one(pair, i);
        if (round < 3)
            expect_quiet(pair->channel);
    }
    expect_quiet(pair->channel);
    /* Both queues of a pair at once. */
    arm(pair->b.recv_cq, false);
    arm(pair->a.send_cq, false);
    send_one(pair, 5, 0);
    {
        struct ibv_cq *first = take_event(pair->channel);
        struct ibv_cq *second = take_event(pair->channel);

        CHECK(first != second, "two events of one CQ");
        CHECK(first == pair->b.recv_cq || first == pair->a.send_cq, "an event of a stranger");
        CHECK(second == pair->b.recv_cq || second == pair->a.send_cq, "an event of a stranger");
    }
    drain_one(pair, 5);
}

/* Armed for solicited events, only a solicited message or an error wakes. */
static void solicited_only(struct rc_pair *pair)
{
    arm(pair->b.recv_cq, true);
    send_one(pair, 1, 0);
    drain_one(pair, 1);
    expect_quiet(pair->channel);
    send_one(pair, 2, IBV_SEND_SOLICITED);
    expect_event(pair->channel, pair->b.recv_cq);
    drain_one(pair, 2);
    /* A write with immediate may be solicited too. */
    arm(pair->b.recv_cq, true);
    rc_post_recv(&pair->b, 3, 0, 0);
    rc_post(&pair->a, &pair->b, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0, 0, 8,
            IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
    expect_event(pair->channel, pair->b.recv_cq);
    rc_expect(pair->a.send_cq, &pair->a, 3, IBV_WC_RDMA_WRITE);
    rc_expect(pair->b.recv_cq, &pair->b, 3, IBV_WC_RECV_RDMA_WITH_IMM);
    /* Arming for every completion outdoes an earlier arming for solicited ones. */
    arm(pair->b.recv_cq, true);
    arm(pair->b.recv_cq, false);
    send_one(pair, 4, 0);
    expect_event(pair->channel, pair->b.recv_cq);
    drain_one(pair, 4);
    arm(pair->b.recv_cq, true);
    rc_post_recv(&pair->b, 5, 0, 64);
    rc_to_state(&pair->b, IBV_QPS_ERR);
    expect_event(pair->channel, pair->b.recv_cq);
    rc_expect_error(pair->b.recv_cq, &pair->b, 5, IBV_WC_WR_FLUSH_ERR);
}

static void nonblocking(struct rc_pair *pair)
{
    int flags = fcntl(pair->channel->fd, F_GETFL);
    struct ibv_cq *cq;
    void *cq_context;

    CHECK(flags >= 0 && fcntl(pair->channel->fd, F_SETFL, flags | O_NONBLOCK) == 0,
          "fcntl on the channel: %s", strerror(errno));
    errno = 0;
    CHECK(ibv_get_cq_event(pair->channel, &cq, &cq_context) != 0 && errno == EAGAIN,
          "an empty nonblocking channel: %s", strerror(errno));
    arm(pair->b.recv_cq, false);
    send_one(pair, 1, 0);
    expect_event(pair->channel, pair->b.recv_cq);
    drain_one(pair, 1);
    CHECK(ibv_get_cq_event(pair->channel, &cq, &cq_context) != 0 && errno == EAGAIN,
          "an emptied nonblocking channel: %s", strerror(errno));
    CHECK(fcntl(pair->channel->fd, F_SETFL, flags) == 0, "fcntl: %s", strerror(errno));
}

static void *wait_blocking(void *argument)
{
    struct rc_pair *pair = argument;
    struct ibv_cq *cq = NULL;
    void *cq_context;

    CHECK(ibv_get_cq_event(pair->channel, &cq, &cq_context) == 0, "ibv_get_cq_event: %s",
          strerror(errno));
    CHECK(cq == pair->b.recv_cq, "an event of another CQ");
    ibv_ack_cq_events(cq, 1);
    return NULL;
}

/* A thread that blocks in ibv_get_cq_event is woken. */
static void blocking(struct rc_pair *pair)
{
    for (uint64_t i = 0; i < 20; i++) {
        pthread_t thread;

        arm(pair->b.recv_cq, false);
        CHECK(pthread_create(&thread, NULL, wait_blocking, pair) == 0, "pthread_create");
        if (i % 2)
            rc_sleep_ms(10);
        send_one(pair, i, 0);
        pthread_join(thread, NULL);
        drain_one(pair, i);
    }
}

/* MANY pairs on one context: their CQs are armed one after the other through one register, and
 * every one of them must wake. */
static void many_at_once(void)
{
    static struct rc_pair pairs[MANY];
    struct ibv_context *context = rc_open();
    struct rc_options options = rc_defaults();

    options.channel = true;
    options.buffer_bytes = 4096;
    for (int i = 0; i < MANY; i++) {
        rc_create(&pairs[i], context, &options);
        rc_connect(&pairs[i]);
    }
    for (uint64_t round = 0; round < 100; round++) {
        for (int i = 0; i < MANY; i++) {
            arm(pairs[i].b.recv_cq, false);
            arm(pairs[i].a.send_cq, round % 2);
        }
        if (round == 0)
            for (int i = 0; i < MANY; i++)
                CHECK(!readable(pairs[i].channel, 0), "an event before any completion");
        for (int i = 0; i < MANY; i++)
            send_one(&pairs[(i * 7 + (int)round) % MANY], round, 0);
        for (int i = 0; i < MANY; i++) {
            struct ibv_cq *cq = take_event(pairs[i].channel);

            if (round % 2) /* a send completion is never solicited */
                CHECK(cq == pairs[i].b.recv_cq, "round %llu, pair %d: an event of the send CQ",
                      (unsigned long long)round, i);
            else
                CHECK(take_event(pairs[i].channel) != cq,
                      "round %llu, pair %d: two events of one CQ", (unsigned long long)round, i);
            drain_one(&pairs[i], round);
        }
    }
    for (int i = 0; i < MANY; i++)
        rc_destroy(&pairs[i]);
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
}

/* Events that nobody read go away with their CQ: destruction does not wait for them, and the
 * channel does not deliver them later. */
static void destroy_with_unread_events(struct ibv_context *context)
{
    struct rc_options options = rc_defaults();

    options.channel = true;
    for (uint64_t i = 0; i < 10; i++) {
        struct ibv_comp_channel *channel;
        struct rc_pair pair;
        struct ibv_cq *bystander;
        int err;

        rc_create(&pair, context, &options);
        rc_connect(&pair);
        channel = pair.channel;
        bystander = ibv_create_cq(context, 4, &pair, channel, 0);
        CHECK(bystander && bystander->cq_context == &pair, "ibv_create_cq: %s", strerror(errno));
        arm(pair.b.recv_cq, false);
        arm(pair.a.send_cq, false);
        send_one(&pair, i, 0);
        drain_one(&pair, i);
        CHECK(readable(channel, (int)(RC_DEADLINE_NS / 1000000)), "no completion event in time");
        pair.channel = NULL;
        rc_sleep_ms(5);
        CHECK(ibv_destroy_qp(pair.a.qp) == 0 && ibv_destroy_qp(pair.b.qp) == 0,
              "ibv_destroy_qp failed");
        CHECK(ibv_destroy_cq(pair.a.send_cq) == 0 && ibv_destroy_cq(pair.b.recv_cq) == 0,
              "ibv_destroy_cq with unread events failed");
        CHECK(!readable(channel, QUIET_MS), "an event of a destroyed CQ");
        CHECK(ibv_destroy_cq(pair.a.recv_cq) == 0 && ibv_destroy_cq(pair.b.send_cq) == 0,
              "ibv_destroy_cq failed");
        err = ibv_destroy_comp_channel(channel);
        CHECK(err == EBUSY, "a channel with a CQ was destroyed: %d", err);
        CHECK(ibv_destroy_cq(bystander) == 0, "ibv_destroy_cq failed");
        CHECK(ibv_destroy_comp_channel(channel) == 0, "ibv_destroy_comp_channel failed");
        rc_memory_free(pair.a.mr);
        rc_memory_free(pair.b.mr);
        CHECK(ibv_dealloc_pd(pair.pd) == 0, "ibv_dealloc_pd failed");
    }
}

static void *acknowledge_late(void *argument)
{
    rc_sleep_ms(100);
    ibv_ack_cq_events(argument, 3);
    return NULL;
}

/* Events that were read but not acknowledged hold ibv_destroy_cq back until they are. */
static void destroy_waits_for_acknowledgement(struct ibv_context *context)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;
    pthread_t thread;
    uint64_t begin;

    options.channel = true;
    rc_create(&pair, context, &options);
    rc_connect(&pair);
    for (uint64_t i = 0; i < 3; i++) {
        struct ibv_cq *cq;
        void *cq_context;

        arm(pair.b.recv_cq, false);
        send_one(&pair, i, 0);
        CHECK(readable(pair.channel, (int)(RC_DEADLINE_NS / 1000000)), "no event in time");
        CHECK(ibv_get_cq_event(pair.channel, &cq, &cq_context) == 0, "ibv_get_cq_event failed");
        drain_one(&pair, i);
    }
    CHECK(ibv_destroy_qp(pair.a.qp) == 0 && ibv_destroy_qp(pair.b.qp) == 0,
          "ibv_destroy_qp failed");
    begin = rc_now_ns();
    CHECK(pthread_create(&thread, NULL, acknowledge_late, pair.b.recv_cq) == 0, "pthread_create");
    CHECK(ibv_destroy_cq(pair.b.recv_cq) == 0, "ibv_destroy_cq failed");
    CHECK(rc_now_ns() - begin >= 90000000, "ibv_destroy_cq did not wait for the acknowledgement");
    pthread_join(thread, NULL);
    CHECK(ibv_destroy_cq(pair.a.recv_cq) == 0 && ibv_destroy_cq(pair.b.send_cq) == 0 &&
              ibv_destroy_cq(pair.a.send_cq) == 0,
          "ibv_destroy_cq failed");
    CHECK(ibv_destroy_comp_channel(pair.channel) == 0, "ibv_destroy_comp_channel failed");
    rc_memory_free(pair.a.mr);
    rc_memory_free(pair.b.mr);
    CHECK(ibv_dealloc_pd(pair.pd) == 0, "ibv_dealloc_pd failed");
}

int main(void)
{
    struct ibv_context *context = rc_open();
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    options.channel = true;
    rc_create(&pair, context, &options);
    rc_connect(&pair);
    one_for_one(&pair);
    nonblocking(&pair);
    blocking(&pair);
    solicited_only(&pair);
    rc_destroy(&pair);
    many_at_once();
    destroy_with_unread_events(context);
    destroy_waits_for_acknowledgement(context);
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
    return 0;
}
