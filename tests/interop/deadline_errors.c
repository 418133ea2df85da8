/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim (case C01): an error CQE reaches every one of 64 device threads that wait on the queue,
 * long before their deadline, with the queue pair, the index, the operation and the syndrome; the
 * WQEs behind the failed one are flushed with syndrome 0x05; and after a reset and a new connection
 * the queue works again. For a bad rkey and for a peer that is gone (retry exceeded, 0x15).
 */
#include "share_rig.h"

#include <string.h>

#define THREADS    64
#define DEPTH      128
#define TIMEOUT_NS 60000000000ull /* far behind a peer's 2 s */

struct error_args {
    enum share_way way;
    uint32_t good;    /* threads, by their order of posting, that find the right rkey */
    uint64_t *posted; /* the order */
    struct share_end *end;
    struct share_failure *failure;
    struct db_error *errors; /* [THREADS], what each thread was told */
    int32_t *statuses;       /* the same */
    uint64_t *indices;       /* the same: of its own put */
};

/* One at a time up to the claim, so that the first error is that of a known thread. */
PORT_KERNEL(meet_error, struct error_args, args)
{
    const struct share_end *end = args->end;
    struct db_qp *qp = end->qp;
    uint32_t id = share_thread();
    uint64_t index = 0;

    while (port_ld64(args->posted, PORT_ACQUIRE, PORT_GPU) != id)
        port_pause();
    uint32_t rkey = id < args->good ? end->rkey : end->rkey ^ 0x100;
    int status = share_claim(qp, args->way, 1, &index);
    if (!status) {
        db_build_write_value(qp, index, DB_SIGNALED, (uint64_t)(uintptr_t)end->target + 8ull * id,
                             rkey, id + 1);
        args->indices[id] = index;
        /* Only then the next one: a ticket would wait for it, a lock keeps it out. */
        if (args->way != SHARE_LOCKED)
            port_st64(args->posted, id + 1, PORT_RELEASE, PORT_GPU);
        status = share_publish(qp, args->way, 1, index, DB_ORDER_SYSTEM);
    }
    if (args->way == SHARE_LOCKED || status)
        port_st64(args->posted, id + 1, PORT_RELEASE, PORT_GPU);
    if (!status)
        status = db_wait_shared(qp, index);
    args->statuses[id] = status;
    if (status != DB_OK && db_qp_error(qp, &args->errors[id]) != status)
        share_fail(args->failure, "db_qp_error() differs from the wait", id, status);
}

struct outcome {
    struct db_error errors[THREADS];
    int32_t statuses[THREADS];
    uint64_t indices[THREADS];
};

static void post_and_wait(struct share_set *set, enum share_way way, uint32_t good,
                          struct outcome *outcome)
{
    struct share_failure failure = {0};
    uint64_t posted = 0, start = port_now_ns();
    const struct error_args args = {.way = way,
                                    .good = good,
                                    .posted = &posted,
                                    .end = set->ends,
                                    .failure = &failure,
                                    .errors = outcome->errors,
                                    .statuses = outcome->statuses,
                                    .indices = outcome->indices};

    memset(outcome, 0xff, sizeof(*outcome));
    share_launch(set, 4, &meet_error, (struct db_gpu_shape){.ctas = 4, .threads = THREADS / 4},
                 &args, &failure);
    CHECK(port_now_ns() - start < TIMEOUT_NS / 2, "the waits took until their deadline");
}

/* A queue in error refuses a put, or its wait tells. */
static void expect_refusal(struct share_set *set)
{
    const struct share_end *end = set->ends;
    uint64_t index, start = port_now_ns();

    int status =
        db_put_value_shared(end->qp, (uint64_t)(uintptr_t)end->target, end->rkey, 1, &index);
    if (!status)
        status = db_wait_shared(end->qp, index);
    CHECK(status == DB_ERROR_IO, "a put on a queue in error = %d", status);
    CHECK(port_now_ns() - start < TIMEOUT_NS / 2, "it took until its deadline");
}

static uint32_t cqe_syndrome(const uint8_t *cqe)
{
    const uint32_t *word = (const uint32_t *)(const void *)(cqe + 52);

    return port_bswap32(port_ld32(word, PORT_RELAXED, PORT_SYSTEM)) & 0xff;
}

/* All WQEs were posted when the first failed: each of the others has a CQE that says that it was
 * flushed. `first` is the count of the first one's CQE. */
static void expect_flushed(const struct db_qp *qp, uint64_t first)
{
    uint64_t deadline = port_now_ns() + TIMEOUT_NS / 2;

    for (uint64_t i = 1; i < THREADS; i++) {
        const uint8_t *cqe = qp->cq + ((first + i) & (qp->cq_depth - 1)) * sizeof(struct m5_cqe);
        struct db_cqe_tail tail;
        while ((tail = db_cqe_load(cqe, PORT_ACQUIRE)).op_own >> 4 == M5_CQE_INVALID)
            CHECK(port_now_ns() < deadline, "WQE %u has no CQE", (unsigned)i);
        CHECK(tail.op_own >> 4 == M5_CQE_REQUESTER_ERROR && tail.index == i &&
                  cqe_syndrome(cqe) == M5_SYN_FLUSHED,
              "WQE %u: op_own %#x, index %u, syndrome %#x", (unsigned)i, tail.op_own, tail.index,
              cqe_syndrome(cqe));
    }
}

static void expect_error(const struct share_set *set, const struct outcome *outcome, uint32_t first,
                         uint32_t syndrome)
{
    const struct db_qp *qp = set->ends->qp;

    for (uint32_t i = 0; i < THREADS; i++) {
        const struct db_error *error = &outcome->errors[i];
        /* In a collapsed CQ an error may overwrite the success before it, and a flushed WQE the
         * error. */
        if (i < first && outcome->statuses[i] == DB_OK)
            continue;
        CHECK(i >= first || qp->cq_collapsed, "thread %u before the failure got %d", i,
              outcome->statuses[i]);
        CHECK(outcome->statuses[i] == DB_ERROR_IO, "thread %u got %d", i, outcome->statuses[i]);
        CHECK(error->qpn == qp->qpn && error->opcode == M5_OP_WRITE,
              "thread %u: QP %#x, opcode %#x", i, error->qpn, error->opcode);
        if (qp->cq_collapsed && error->syndrome == M5_SYN_FLUSHED)
            continue;
        CHECK(error->index == (outcome->indices[first] & M5_INDEX_MASK),
              "thread %u: index %u instead of %llu", i, error->index,
              (unsigned long long)outcome->indices[first]);
        CHECK(error->syndrome == syndrome, "thread %u: syndrome %#x instead of %#x", i,
              error->syndrome, syndrome);
    }
}

/* Every way, one after the other over resets; that each starts with 32 puts that must work. */
static void bad_rkey(struct share_set *set)
{
    static struct outcome outcome;
    const uint32_t good = THREADS / 2;

    for (int way = SHARE_LOCKED; way <= SHARE_TICKET; way++) {
        share_set_reset(set);
        post_and_wait(set, (enum share_way)way, good, &outcome);
        expect_error(set, &outcome, good, M5_SYN_REMOTE_ACCESS);
        expect_refusal(set);
    }
    share_set_reset(set);
    post_and_wait(set, SHARE_TICKET, THREADS, &outcome);
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(outcome.statuses[i] == DB_OK, "put %u after the reset: %d", i, outcome.statuses[i]);
}

static void peer_gone(struct share_set *set, const struct db_queue_attr *attr)
{
    static struct outcome outcome;
    struct queue_end *peer = &set->b[0];

    share_set_reset(set);
    db_queue_destroy(peer->queue);
    peer->queue = NULL;
    uint64_t first_cqe = set->ends->qp->done.consumed;
    post_and_wait(set, SHARE_HANDOFF, THREADS, &outcome);
    expect_error(set, &outcome, 0, M5_SYN_TRANSPORT_RETRY_EXCEEDED);
    if (!attr->collapsed)
        expect_flushed(set->ends->qp, first_cqe);
    QUEUE_OK(db_queue_create(set->device, attr, &peer->queue));
    peer->qp = db_queue_device_view(peer->queue);
    share_set_reset(set);
    post_and_wait(set, SHARE_HANDOFF, THREADS, &outcome);
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(outcome.statuses[i] == DB_OK, "put %u with the new peer: %d", i, outcome.statuses[i]);
}

int main(void)
{
    share_strict(1000, 1);
    for (int collapsed = 0; collapsed < 2; collapsed++) {
        const struct db_queue_attr attr = {
            .depth = DEPTH, .collapsed = collapsed, .timeout_ns = TIMEOUT_NS};
        struct share_set set;
        share_set_create(&set, &attr, 1, THREADS);
        set.watchdog_ns = TIMEOUT_NS;
        bad_rkey(&set);
        peer_gone(&set, &attr);
        share_set_destroy(&set);
    }
    queue_expect_no_diagnostics();
    return 0;
}
