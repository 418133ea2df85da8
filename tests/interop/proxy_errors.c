/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: whatever ends a proxied queue reaches the threads that wait on it, long before their
 * deadline, and says why: an error CQE, by both ways of posting; a descriptor that names memory out
 * of bounds, which fails its own ring and no other; the death of the worker's thread, also while it
 * stops; a stop, which first completes what was pushed.
 */
#include "proxy_ends.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "../../src/proxy.h"
#include "../../src/queue.h"

#define BUFFER_BYTES 65536
#define LONG_NS      120000000000ull /* the rings' deadline */
#define SOON_NS      20000000000ull

static const struct db_queue_attr long_queue = {.depth = 16, .timeout_ns = LONG_NS};

static void start(struct proxy_ends *ends, enum db_post post)
{
    const struct db_proxy_attr proxy = {.post = post};
    proxy_ends_start(ends, &proxy, &long_queue, BUFFER_BYTES);
}

/* The wait ends soon with `want`, and the host's sentence holds `words`. */
static void expect(struct db_queue *queue, uint64_t index, int want, int host, const char *words)
{
    struct db_qp *qp = db_queue_device_view(queue);
    uint64_t began = port_now_ns();
    int status = db_wait(qp, index);
    uint64_t ns = port_now_ns() - began;

    CHECK(status == want, "the wait = %d, wanted %d", status, want);
    CHECK(ns < SOON_NS, "the wait took %llu ns", (unsigned long long)ns);
    int error = db_queue_check(queue);
    CHECK(error == host && strstr(db_error_text(), words), "%d, wanted %d with \"%s\": %s", error,
          host, words, db_error_text());
}

/* A put beyond the peer's region, between good ones. */
static void error_cqe(enum db_post post)
{
    struct proxy_ends ends;
    struct db_keys wrong, more;
    struct db_error why = {0};
    uint64_t good, bad, behind;

    start(&ends, post);
    struct db_queue *other = proxy_ends_add(&ends, &long_queue);
    more = ends.peer.keys;
    more.bytes += 4096; /* the proxy believes it, the peer's NIC does not */
    QUEUE_OK(db_queue_keys(ends.queue, DB_SIDE_REMOTE, &more, &wrong));
    CHECK(wrong.rkey != ends.remote.rkey, "two windows in one place");

    QUEUE_OK(db_put(ends.qp, 0, ends.remote.rkey, 0, ends.local.lkey, 8, &good));
    QUEUE_OK(db_wait(ends.qp, good));
    QUEUE_OK(db_put(ends.qp, BUFFER_BYTES, wrong.rkey, 0, ends.local.lkey, 8, &bad));
    QUEUE_OK(db_put(ends.qp, 0, ends.remote.rkey, 0, ends.local.lkey, 8, &behind));
    expect(ends.queue, bad, DB_ERROR_IO, -EIO, "RDMA write at index 1");
    CHECK(strstr(db_error_text(), "syndrome 0x13"), "%s", db_error_text());
    expect(ends.queue, behind, DB_ERROR_IO, -EIO, "RDMA write at index 1");
    CHECK(db_wait(ends.qp, good) == DB_OK, "what was complete before is no more");
    CHECK(db_qp_error(ends.qp, &why) == DB_ERROR_IO && why.syndrome == M5_SYN_REMOTE_ACCESS &&
              why.index == 1 && why.opcode == M5_OP_WRITE,
          "syndrome %#x at %u, opcode %#x", why.syndrome, why.index, why.opcode);
    /* The worker's other queue shares the queue pair. */
    QUEUE_OK(db_put_value(db_queue_device_view(other), 0, ends.remote.rkey, 1, &good));
    expect(other, good, DB_ERROR_IO, -EIO, "failed");
    db_queue_destroy(other);
    struct db_queue_attr attr = long_queue;
    attr.proxy = ends.proxy;
    CHECK(db_queue_create(ends.device, &attr, &other) == -ENOTRECOVERABLE && !other,
          "a failed worker took another queue");
    CHECK(strstr(db_error_text(), "in error"), "%s", db_error_text());
    proxy_ends_destroy(&ends);
    printf("posting %d: an error CQE arrives\n", (int)post);
}

static void bad_descriptors(void)
{
    struct proxy_ends ends;
    uint64_t index;

    start(&ends, DB_POST_VERBS);
    static const struct {
        const char *words;
        uint64_t raddr, laddr;
        uint32_t rkey, lkey;
    } wrong[] = {
        {"local address", 0, BUFFER_BYTES - 7, 0, 0},
        {"remote address", BUFFER_BYTES, 0, 0, 0},
        {"local address", 0, 0, 0, 1},
        {"remote address", 0, 0, 31, 0},
        {"local address", 0, DB_RING_OFFSETS - 1, 0, 0},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct db_queue *bad = proxy_ends_add(&ends, &long_queue);
        QUEUE_OK(db_put(db_queue_device_view(bad), wrong[i].raddr, wrong[i].rkey, wrong[i].laddr,
                        wrong[i].lkey, 8, &index));
        expect(bad, index, DB_ERROR_IO, -EIO, wrong[i].words);
        db_queue_destroy(bad);
        /* The proxy goes on. */
        QUEUE_OK(db_put_value(ends.qp, 8 * i, ends.remote.rkey, i + 1, &index));
        QUEUE_OK(db_wait(ends.qp, index));
    }
    struct db_queue *bad = proxy_ends_add(&ends, &long_queue);
    struct db_ring *ring = db_queue_device_view(bad)->ring;
    /* An addend without its operation, and an operation without its addend. */
    struct db_descriptor d = db_descriptor_memory(DB_RING_FETCH_ADD, 0, 0, 0, 0, 0, 8);
    QUEUE_OK(db_ring_push(ring, &ring->own, d, DB_RING_TUNED, &index));
    expect(bad, index, DB_ERROR_IO, -EIO, "not a valid one");
    db_queue_destroy(bad);
    QUEUE_OK(db_queue_check(ends.queue));
    proxy_ends_destroy(&ends);
    printf("a bad descriptor fails its ring alone\n");
}

static struct db_worker *worker_of(struct db_queue *queue)
{
    return queue->proxied->worker;
}

static void worker_dies(enum db_proxy_idle idle)
{
    const struct db_proxy_attr proxy = {.idle = idle};
    struct proxy_ends ends;
    uint64_t index;

    proxy_ends_start(&ends, &proxy, &long_queue, BUFFER_BYTES);
    QUEUE_OK(db_put_value(ends.qp, 0, ends.remote.rkey, 7, &index));
    QUEUE_OK(db_wait(ends.qp, index));
    CHECK(pthread_cancel(worker_of(ends.queue)->thread) == 0, "no thread to kill");
    expect(ends.queue, index + 1, DB_ERROR_BROKEN, -ENOTRECOVERABLE, "was ended");
    QUEUE_OK(db_put_value(ends.qp, 0, ends.remote.rkey, 8, &index));
    expect(ends.queue, index, DB_ERROR_BROKEN, -ENOTRECOVERABLE, "was ended");
    struct db_worker_info info;
    QUEUE_OK(db_proxy_query(ends.proxy, 1, &info));
    CHECK(!info.running, "a dead worker runs");
    proxy_ends_destroy(&ends);
    printf("idle policy %d: the worker's death arrives\n", (int)idle);
}

/* A thread that waits when the worker dies. */
static void *wait_long(void *argument)
{
    struct proxy_ends *ends = argument;
    return (void *)(intptr_t)db_wait(ends->qp, 1000);
}

static void death_under_a_waiter(void)
{
    struct proxy_ends ends;
    pthread_t waiter;
    void *status;

    start(&ends, DB_POST_WQE);
    CHECK(!pthread_create(&waiter, NULL, wait_long, &ends), "no thread");
    pthread_cancel(worker_of(ends.queue)->thread);
    uint64_t began = port_now_ns();
    pthread_join(waiter, &status);
    CHECK((intptr_t)status == DB_ERROR_BROKEN, "the waiter got %ld", (long)(intptr_t)status);
    CHECK(port_now_ns() - began < SOON_NS, "and waited long");
    proxy_ends_destroy(&ends);
}

static void stop(void)
{
    struct proxy_ends ends;
    uint64_t index = 0;

    start(&ends, DB_POST_VERBS);
    for (uint64_t i = 0; i < 16; i++)
        QUEUE_OK(db_put_value(ends.qp, 8 * i, ends.remote.rkey, i + 1, &index));
    QUEUE_OK(db_proxy_stop(ends.proxy));
    for (uint64_t i = 0; i < 16; i++)
        CHECK(((uint64_t *)(void *)ends.peer.buffer)[i] == i + 1, "push %llu was not posted",
              (unsigned long long)i);
    CHECK(db_wait(ends.qp, index) == DB_OK, "what was complete before the stop is no more");
    QUEUE_OK(db_put_value(ends.qp, 0, ends.remote.rkey, 1, &index));
    expect(ends.queue, index, DB_ERROR_BROKEN, -ESHUTDOWN, "was stopped");
    QUEUE_OK(db_proxy_stop(ends.proxy));
    struct db_queue_attr attr = long_queue;
    struct db_queue *more;
    attr.proxy = ends.proxy;
    CHECK(db_queue_create(ends.device, &attr, &more) == -ENOTRECOVERABLE, "a stopped proxy served");
    proxy_ends_destroy(&ends);
    printf("a stop completes what was pushed\n");
}

static void *stop_it(void *argument)
{
    return (void *)(intptr_t)db_proxy_stop(((struct proxy_ends *)argument)->proxy);
}

/* The stop waits for a put with an immediate, for which the peer has no receive, when the worker
 * dies. */
static void death_under_a_stop(void)
{
    const struct db_proxy_attr proxy = {.timeout_ns = LONG_NS};
    struct proxy_ends ends;
    pthread_t stopper;
    uint64_t index = 0;
    void *stopped;

    proxy_ends_start(&ends, &proxy, &long_queue, BUFFER_BYTES);
    QUEUE_OK(db_put_imm(ends.qp, 0, ends.remote.rkey, 0, ends.local.lkey, 8, 1, &index));
    CHECK(!pthread_create(&stopper, NULL, stop_it, &ends), "no thread");
    while (
        !(__atomic_load_n(&worker_of(ends.queue)->attention, __ATOMIC_ACQUIRE) & DB_ATTENTION_STOP))
        port_pause();
    pthread_cancel(worker_of(ends.queue)->thread);
    expect(ends.queue, index, DB_ERROR_BROKEN, -ENOTRECOVERABLE, "was ended");
    pthread_join(stopper, &stopped);
    CHECK((intptr_t)stopped == -EIO, "the stop = %ld", (long)(intptr_t)stopped);
    proxy_ends_destroy(&ends);
    printf("a worker's death while it stops arrives\n");
}

/* Nobody takes what is pushed to a worker that has died: a stop says so, as its waiters are told.
 */
static void stop_of_the_dead(void)
{
    struct proxy_ends ends;
    uint64_t index;

    start(&ends, DB_POST_VERBS);
    pthread_cancel(worker_of(ends.queue)->thread);
    while (__atomic_load_n(&worker_of(ends.queue)->state, __ATOMIC_ACQUIRE) != DB_WORKER_LOST)
        port_pause();
    QUEUE_OK(db_put_value(ends.qp, 0, ends.remote.rkey, 1, &index));
    QUEUE_OK(db_put_imm(ends.qp, 0, ends.remote.rkey, 0, ends.local.lkey, 8, 1, &index));
    CHECK(db_proxy_stop(ends.proxy) == -EIO, "a stop left two puts behind, and says nothing");
    CHECK(strncmp(db_error_text(), "2 requests", 10) == 0, "%s", db_error_text());
    proxy_ends_destroy(&ends);
    printf("what a dead worker leaves behind is told by a stop\n");
}

int main(void)
{
    queue_strict(true);
    error_cqe(DB_POST_VERBS);
    error_cqe(DB_POST_WQE);
    bad_descriptors();
    for (int idle = DB_IDLE_SPIN; idle <= DB_IDLE_SLEEP; idle++)
        worker_dies((enum db_proxy_idle)idle);
    death_under_a_waiter();
    death_under_a_stop();
    stop_of_the_dead();
    stop();
    queue_expect_no_diagnostics_of_worker();
    return 0;
}
