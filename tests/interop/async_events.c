/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: what goes wrong outside any completion is told by ibv_get_async_event(3): a responder that
 * refuses an access or an invalid request, a CQ that overruns, each naming its object; a CQ that
 * may overrun is silent; an object can be destroyed with events unread, but not unacknowledged.
 */
#include "rc_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

static bool readable(const struct ibv_context *context, int milliseconds)
{
    struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};

    return poll(&fd, 1, milliseconds) == 1;
}

static struct ibv_async_event next_event(struct ibv_context *context)
{
    struct ibv_async_event event;

    CHECK(readable(context, (int)(RC_DEADLINE_NS / 1000000)), "no asynchronous event in time");
    CHECK(ibv_get_async_event(context, &event) == 0, "ibv_get_async_event: %s", strerror(errno));
    return event;
}

static void expect_qp_event(struct rc_pair *pair, const struct rc_end *end,
                            enum ibv_event_type type)
{
    struct ibv_async_event event = next_event(pair->context);

    CHECK(event.event_type == type, "%s, %s expected", ibv_event_type_str(event.event_type),
          ibv_event_type_str(type));
    CHECK(event.element.qp == end->qp, "%s for another queue pair",
          ibv_event_type_str(event.event_type));
    ibv_ack_async_event(&event);
}

static void expect_quiet(const struct ibv_context *context)
{
    CHECK(!readable(context, 50), "an asynchronous event where none may come");
}

static void post_bad_read(struct rc_pair *pair)
{
    rc_post(&pair->a, &pair->b, IBV_WR_RDMA_READ, 1, 0, pair->options.buffer_bytes, 8,
            IBV_SEND_SIGNALED);
    rc_expect_error(pair->a.send_cq, &pair->a, 1, IBV_WC_REM_ACCESS_ERR);
}

static void access_refused(struct ibv_context *context)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    rc_create(&pair, context, &options);
    rc_connect(&pair);
    expect_quiet(context);
    for (int round = 0; round < 3; round++) {
        post_bad_read(&pair);
        expect_qp_event(&pair, &pair.b, IBV_EVENT_QP_ACCESS_ERR);
        expect_quiet(context);
        rc_to_state(&pair.a, IBV_QPS_RESET);
        rc_to_state(&pair.b, IBV_QPS_RESET);
        rc_connect(&pair);
    }
    /* Errors that completions tell, and the state ERR on demand, are no events. */
    rc_post(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 1, pair.options.buffer_bytes, 0, 8,
            IBV_SEND_SIGNALED);
    rc_expect_error(pair.a.send_cq, &pair.a, 1, IBV_WC_LOC_PROT_ERR);
    rc_to_state(&pair.b, IBV_QPS_ERR);
    expect_quiet(context);
    rc_destroy(&pair);
}

static void request_invalid(struct ibv_context *context)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    options.qp_access = IBV_ACCESS_REMOTE_READ;
    rc_create(&pair, context, &options);
    rc_connect(&pair);
    rc_post(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 1, 0, 0, 8, IBV_SEND_SIGNALED);
    rc_expect_error(pair.a.send_cq, &pair.a, 1, IBV_WC_REM_INV_REQ_ERR);
    expect_qp_event(&pair, &pair.b, IBV_EVENT_QP_REQ_ERR);
    rc_destroy(&pair);
}

/* More completions than the CQ holds: the CQ fails and says so, its queue pair fails with it, and
 * everybody else goes on. */
static void overrun(struct ibv_context *context)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair, other;
    uint64_t deadline = rc_now_ns() + RC_DEADLINE_NS;
    struct ibv_async_event event;

    rc_create(&other, context, &options);
    rc_connect(&other);
    options.cq_depth = 3;
    rc_create(&pair, context, &options);
    rc_connect(&pair);
    for (uint64_t i = 0; i < options.send_depth; i++)
        rc_post(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, i, 0, 0, 8, IBV_SEND_SIGNALED);
    do {
        event = next_event(context);
        if (event.event_type == IBV_EVENT_CQ_ERR)
            CHECK(event.element.cq == pair.a.send_cq, "the error of another CQ");
        else /* the queue pair may report its own end too */
            CHECK(event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == pair.a.qp, "%s",
                  ibv_event_type_str(event.event_type));
        ibv_ack_async_event(&event);
    } while (event.event_type != IBV_EVENT_CQ_ERR);
    while (rc_state(&pair.a) != IBV_QPS_ERR)
        CHECK(rc_now_ns() < deadline, "the queue pair of a failed CQ is in state %d",
              (int)rc_state(&pair.a));
    rc_post(&other.a, &other.b, IBV_WR_RDMA_READ, 7, 0, 0, 8, IBV_SEND_SIGNALED);
    rc_expect(other.a.send_cq, &other.a, 7, IBV_WC_RDMA_READ);
    rc_destroy(&pair);
    rc_destroy(&other);
    expect_quiet(context);
}

/* With IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN the program has taken the duty over: no event. */
static void overrun_ignored(struct ibv_context *context)
{
    struct rc_options options = rc_defaults();
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 3,
        .wc_flags = IBV_WC_STANDARD_FLAGS,
        .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
        .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
    };
    struct ibv_qp_init_attr init = {
        .cap = {.max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct rc_pair pair;

    rc_create(&pair, context, &options);
    CHECK(ibv_destroy_qp(pair.a.qp) == 0 && ibv_destroy_cq(pair.a.send_cq) == 0,
          "destroying failed");
    pair.a.send_cq_ex = ibv_create_cq_ex(context, &attr);
    CHECK(pair.a.send_cq_ex, "ibv_create_cq_ex with overrun ignored: %s", strerror(errno));
    pair.a.send_cq = ibv_cq_ex_to_cq(pair.a.send_cq_ex);
    init.send_cq = pair.a.send_cq;
    init.recv_cq = pair.a.recv_cq;
    pair.a.qp = ibv_create_qp(pair.pd, &init);
    CHECK(pair.a.qp, "ibv_create_qp: %s", strerror(errno));
    rc_connect(&pair);
    for (uint64_t i = 0; i < 64; i++)
        rc_post(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, i, 0, 0, 8, IBV_SEND_SIGNALED);
    expect_quiet(context);
    CHECK(rc_state(&pair.a) == IBV_QPS_RTS, "in state %d", (int)rc_state(&pair.a));
    rc_destroy(&pair);
}

static void *acknowledge_late(void *argument)
{
    rc_sleep_ms(100);
    ibv_ack_async_event(argument);
    return NULL;
}

static void destruction(struct ibv_context *context)
{
    struct rc_options options = rc_defaults();
    struct ibv_async_event event;
    struct rc_pair pair;
    pthread_t thread;
    uint64_t begin;

    /* An unread event goes away with its queue pair. */
    rc_create(&pair, context, &options);
    rc_connect(&pair);
    post_bad_read(&pair);
    CHECK(readable(context, (int)(RC_DEADLINE_NS / 1000000)), "no asynchronous event in time");
    rc_destroy(&pair);
    expect_quiet(context);

    /* One that was read holds the destruction back until it is acknowledged. */
    rc_create(&pair, context, &options);
    rc_connect(&pair);
    post_bad_read(&pair);
    event = next_event(context);
    begin = rc_now_ns();
    CHECK(pthread_create(&thread, NULL, acknowledge_late, &event) == 0, "pthread_create failed");
    rc_destroy(&pair);
    CHECK(rc_now_ns() - begin >= 90000000, "destruction did not wait for the acknowledgement");
    pthread_join(thread, NULL);
}

static void nonblocking(struct ibv_context *context)
{
    int flags = fcntl(context->async_fd, F_GETFL);
    struct ibv_async_event event;

    CHECK(flags >= 0 && fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) == 0, "fcntl: %s",
          strerror(errno));
    errno = 0;
    CHECK(ibv_get_async_event(context, &event) != 0 && errno == EAGAIN,
          "reading without an event: %s", strerror(errno));
    CHECK(fcntl(context->async_fd, F_SETFL, flags) == 0, "fcntl: %s", strerror(errno));
}

int main(void)
{
    struct ibv_context *context = rc_open();

    nonblocking(context);
    access_refused(context);
    request_invalid(context);
    overrun(context);
    overrun_ignored(context);
    destruction(context);
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
    return 0;
}
