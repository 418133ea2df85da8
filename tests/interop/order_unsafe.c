/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: with memory as weak as a GPU's (port_weak.h), the safe orderings are never caught by
 * strict mode, in any way of sharing; and each unsafe one is: no order at all, a scope that does
 * not reach the ring, either release of a publication left out, a hand-off that releases nothing
 * before its mark, a warp whose only release before the record comes before the barrier. So the
 * test that the safe ones pass can fail.
 *
 * The device fetches as early as it may, as soon as the record has moved, or late, as the row says.
 * The seed is printed; it is the first argument.
 */
#define PORT_WEAK

#include "share_rig.h"

#include <softnic.h>

#include "order_weak.h"

#define DEPTH      64
#define THREADS    32
#define POSTS      (20000 / SHARE_SLOWER) /* that each safe ordering survives */
#define MAX_POSTS  50000                  /* of an unsafe one, in each round */
#define MAX_ROUNDS 20                     /* a WQE torn in another way ends a round as an error */

/* A store to a ring or a record, one in 32, waits longer than strict mode waits for a record that a
 * doorbell announced. Releases let it out at once. */
#define HELD_ONE_IN 32
#define HELD_NS     (3ull * NIC_SUSPICION_NS / 2)

/* ---- Publications with a mistake ---- */

enum mistake {
    RIGHT,
    NO_RELEASE_BEFORE_RECORD,
    NO_RELEASE_BEFORE_DOORBELL,
    NO_RELEASE_BEFORE_MARK,
    RELEASE_BEFORE_BARRIER,
};

PORT_FN void wrong_ring(struct db_qp *qp, uint64_t end, enum mistake mistake)
{
    if (mistake == NO_RELEASE_BEFORE_DOORBELL)
        db_release(DB_ORDER_SYSTEM);
    port_st32(&qp->record->send.raw, port_bswap32((uint32_t)end & M5_INDEX_MASK), PORT_RELAXED,
              PORT_SYSTEM);
    if (mistake != NO_RELEASE_BEFORE_DOORBELL)
        db_release(DB_ORDER_SYSTEM);
    port_doorbell(qp->doorbell, db_ctrl_word(qp->qpn, end, 0, 0));
}

PORT_FN void wrong_publish(struct db_qp *qp, uint64_t index, enum mistake mistake)
{
    wrong_ring(qp, index + 1, mistake);
    port_st64(&qp->post.published, db_published_pack(index, index + 1), PORT_RELAXED, PORT_GPU);
}

/* db_publish_handoff() without its first line. */
PORT_FN void wrong_handoff(struct db_qp *qp, uint64_t index)
{
    port_st32(&qp->slot_ready[index & (qp->depth - 1)], db_mark(qp, index, 1), PORT_RELAXED,
              PORT_GPU);
    if (port_add64_ordered(&qp->post.lock, 1) != 0)
        return;
    for (uint64_t came = 1;;) {
        db_publish_marked(qp, qp, DB_ORDER_SYSTEM, DB_WITH_RECORD);
        uint64_t now = port_cas64_ordered(&qp->post.lock, came, 0);
        if (now == came)
            return;
        came = now;
    }
}

PORT_FN int wrong_warp(struct db_qp *qp, const struct share_op *op, uint64_t *index)
{
    uint32_t mask = share_mask(SHARE_WARP, qp->depth);
    uint64_t first, end;
    int status = db_claim_warp(qp, mask, &first, index);
    if (status)
        return status;
    share_build(qp, *index, op);
    if (port_lane() == port_first_lane(mask))
        db_release(DB_ORDER_SYSTEM);
    port_syncwarp(mask);
    end = first + port_count_lanes(mask);
    if (port_lane() == port_first_lane(mask)) {
        while (db_published(qp, PORT_ACQUIRE).end != first && !db_qp_status(qp))
            port_pause();
        wrong_ring(qp, end, RELEASE_BEFORE_BARRIER);
        port_st64(&qp->post.published, db_published_pack(end - 1, end), PORT_RELEASE, PORT_GPU);
    }
    port_syncwarp(mask);
    return DB_OK;
}

/* ---- The kernel ---- */

struct order_args {
    enum share_way way;
    enum db_order order;
    enum mistake mistake;
    bool safe;
    uint32_t burst;  /* posts of a thread between two waits */
    uint32_t bursts; /* of each thread */
    struct share_end *end;
    struct share_failure *failure;
    uint64_t *posts;
};

PORT_FN int order_post(const struct order_args *args, const struct share_op *op, uint64_t *index)
{
    struct db_qp *qp = args->end->qp;
    if (args->mistake == RIGHT)
        return share_post(qp, args->way, op, args->order, index);
    if (args->mistake == RELEASE_BEFORE_BARRIER)
        return wrong_warp(qp, op, index);
    int status = share_claim(qp, args->way, 1, index);
    if (status)
        return status;
    share_build(qp, *index, op);
    if (args->mistake == NO_RELEASE_BEFORE_MARK)
        wrong_handoff(qp, *index);
    else
        wrong_publish(qp, *index, args->mistake);
    return DB_OK;
}

/* One status for all lanes of a warp, the first that failed: a lane whose WQE completed before the
 * queue failed must not post on alone. */
PORT_FN int order_agree(uint32_t mask, int status)
{
    int first = DB_OK;
    for (uint32_t left = mask; left; left &= left - 1) {
        int other =
            (int)(int64_t)port_broadcast64(mask, (uint64_t)(int64_t)status, port_first_lane(left));
        first = first ? first : other;
    }
    return first;
}

/* Fetch-and-add fills a block to its last segment. */
PORT_FN int order_run(const struct order_args *args)
{
    const struct share_end *end = args->end;
    uint32_t id = share_thread();
    struct share_op op = {
        .opcode = M5_OP_ATOMIC_FA,
        .raddr = (uint64_t)(uintptr_t)(end->target + (size_t)id * SHARE_LINE),
        .rkey = end->rkey,
        .laddr = (uint64_t)(uintptr_t)(end->got + (size_t)id * SHARE_LINE),
        .lkey = end->lkey,
        .addend = 1,
    };
    uint64_t index = 0;

    for (uint64_t burst = 0; burst < args->bursts; burst++) {
        int status = DB_OK;
        for (uint32_t i = 0; i < args->burst && !status; i++) {
            status = order_post(args, &op, &index);
            port_add64(args->posts, 1);
        }
        if (!status)
            status = share_wait(end->qp, args->way, index);
        if (args->way == SHARE_WARP)
            status = order_agree(share_mask(SHARE_WARP, end->qp->depth), status);
        if (status)
            return status;
    }
    return DB_OK;
}

PORT_KERNEL(orders, struct order_args, args)
{
    int status = order_run(args);
    if (status && args->safe)
        share_fail(args->failure, "post", 0, status);
    order_weak_leave();
}

/* ---- Rows ---- */

struct row {
    const char *name;
    enum share_way way;
    enum db_order order;
    enum mistake mistake;
    enum port_scope memory; /* the scope that reaches ring and record: PORT_SYSTEM is host memory */
    bool late;              /* fetches come late; else as early as may be */
    uint32_t burst;         /* posts of a thread between two waits */
    uint32_t posts;         /* of all threads */
    int caught_as;          /* enum nic_diag; NIC_DIAG_COUNT: not at all */
    enum db_record record;
};

#define SAFE   16, POSTS, NIC_DIAG_COUNT
#define UNSAFE 16, MAX_POSTS, NIC_DIAG_POISON_FETCHED
/* One at a time: the next release, also that of the next CQE consumed, lets the record out. */
#define STALE 1, MAX_POSTS, NIC_DIAG_RECORD_STALE

static const struct row rows[] = {
    {"system scope, private, late", SHARE_PRIVATE, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, true, SAFE,
     DB_WITH_RECORD},
    {"system scope, private", SHARE_PRIVATE, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false, SAFE,
     DB_WITH_RECORD},
    {"system scope, locked", SHARE_LOCKED, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false, SAFE,
     DB_WITH_RECORD},
    {"system scope, hand-off", SHARE_HANDOFF, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false, SAFE,
     DB_WITH_RECORD},
    {"system scope, ticket", SHARE_TICKET, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false, SAFE,
     DB_WITH_RECORD},
    {"system scope, warp", SHARE_WARP, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false, SAFE,
     DB_WITH_RECORD},
    {"system scope, parts of a warp", SHARE_WARP_PART, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false,
     SAFE, DB_WITH_RECORD},
    {"system scope, block", SHARE_BLOCK, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false, SAFE,
     DB_WITH_RECORD},
    {"GPU scope and memory, private", SHARE_PRIVATE, DB_ORDER_GPU, RIGHT, PORT_GPU, false, SAFE,
     DB_WITH_RECORD},
    {"GPU scope and memory, hand-off", SHARE_HANDOFF, DB_ORDER_GPU, RIGHT, PORT_GPU, false, SAFE,
     DB_WITH_RECORD},
    {"GPU scope and memory, ticket", SHARE_TICKET, DB_ORDER_GPU, RIGHT, PORT_GPU, false, SAFE,
     DB_WITH_RECORD},
    {"GPU scope and memory, warp", SHARE_WARP, DB_ORDER_GPU, RIGHT, PORT_GPU, false, SAFE,
     DB_WITH_RECORD},

    {"exchanged record, private", SHARE_PRIVATE, DB_ORDER_GPU, RIGHT, PORT_GPU, false, SAFE,
     DB_RECORD_EXCHANGED},
    {"exchanged record, private, late", SHARE_PRIVATE, DB_ORDER_GPU, RIGHT, PORT_GPU, true, SAFE,
     DB_RECORD_EXCHANGED},
    {"exchanged record, locked", SHARE_LOCKED, DB_ORDER_GPU, RIGHT, PORT_GPU, false, SAFE,
     DB_RECORD_EXCHANGED},
    {"exchanged record, hand-off", SHARE_HANDOFF, DB_ORDER_GPU, RIGHT, PORT_GPU, false, SAFE,
     DB_RECORD_EXCHANGED},
    {"exchanged record, ticket", SHARE_TICKET, DB_ORDER_GPU, RIGHT, PORT_GPU, false, SAFE,
     DB_RECORD_EXCHANGED},
    {"exchanged record, warp", SHARE_WARP, DB_ORDER_GPU, RIGHT, PORT_GPU, false, SAFE,
     DB_RECORD_EXCHANGED},

    {"no record, private", SHARE_PRIVATE, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false, SAFE,
     DB_WITHOUT_RECORD},
    {"no record, private, late", SHARE_PRIVATE, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, true, SAFE,
     DB_WITHOUT_RECORD},
    {"no record, locked", SHARE_LOCKED, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false, SAFE,
     DB_WITHOUT_RECORD},
    {"no record, hand-off", SHARE_HANDOFF, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false, SAFE,
     DB_WITHOUT_RECORD},
    {"no record, ticket", SHARE_TICKET, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false, SAFE,
     DB_WITHOUT_RECORD},
    {"no record, warp", SHARE_WARP, DB_ORDER_SYSTEM, RIGHT, PORT_SYSTEM, false, SAFE,
     DB_WITHOUT_RECORD},
    {"no record, GPU scope and memory, ticket", SHARE_TICKET, DB_ORDER_GPU, RIGHT, PORT_GPU, false,
     SAFE, DB_WITHOUT_RECORD},

    {"no order", SHARE_PRIVATE, DB_ORDER_NONE_UNSAFE, RIGHT, PORT_SYSTEM, false, UNSAFE,
     DB_WITH_RECORD},
    {"no order, GPU memory", SHARE_PRIVATE, DB_ORDER_NONE_UNSAFE, RIGHT, PORT_GPU, false, UNSAFE,
     DB_WITH_RECORD},
    {"no order, exchanged record", SHARE_PRIVATE, DB_ORDER_NONE_UNSAFE, RIGHT, PORT_GPU, false,
     UNSAFE, DB_RECORD_EXCHANGED},
    {"no order, no record", SHARE_PRIVATE, DB_ORDER_NONE_UNSAFE, RIGHT, PORT_SYSTEM, false, UNSAFE,
     DB_WITHOUT_RECORD},
    {"GPU scope over a host ring, no record", SHARE_PRIVATE, DB_ORDER_GPU, RIGHT, PORT_SYSTEM,
     false, UNSAFE, DB_WITHOUT_RECORD},
    {"GPU scope over a host ring", SHARE_PRIVATE, DB_ORDER_GPU, RIGHT, PORT_SYSTEM, false, UNSAFE,
     DB_WITH_RECORD},
    {"no release before the record", SHARE_PRIVATE, DB_ORDER_SYSTEM, NO_RELEASE_BEFORE_RECORD,
     PORT_SYSTEM, false, UNSAFE, DB_WITH_RECORD},
    {"no release before the doorbell", SHARE_PRIVATE, DB_ORDER_SYSTEM, NO_RELEASE_BEFORE_DOORBELL,
     PORT_SYSTEM, true, STALE, DB_WITH_RECORD},
    {"hand-off without a release before the mark", SHARE_HANDOFF, DB_ORDER_SYSTEM,
     NO_RELEASE_BEFORE_MARK, PORT_SYSTEM, false, UNSAFE, DB_WITH_RECORD},
    {"a warp's release before the barrier", SHARE_WARP, DB_ORDER_SYSTEM, RELEASE_BEFORE_BARRIER,
     PORT_SYSTEM, false, UNSAFE, DB_WITH_RECORD},
};

/* NOPs through each slot, so that the device has poisoned all. */
static void poison_all(struct db_qp *qp, enum db_record record)
{
    uint64_t index;

    CHECK(db_claim(qp, DEPTH, &index) == DB_OK, "claim");
    for (uint32_t i = 0; i < DEPTH; i++)
        db_build_nop(qp, index + i, i == DEPTH - 1 ? DB_SIGNALED : DB_UNSIGNALED);
    db_publish(qp, index + DEPTH - 1, index + DEPTH, DB_ORDER_SYSTEM, record);
    CHECK(db_flush(qp) == DB_OK, "the first %d are not complete", DEPTH);
    order_weak_leave();
}

static uint64_t count_of(const struct nic_counters *counters, const struct nic_counters *before,
                         int kind)
{
    return counters->diag[kind] - before->diag[kind];
}

static void run(const struct row *row, uint64_t seed)
{
    const struct nic_strict strict = {.enabled = 1,
                                      .poison = 1,
                                      .early = !row->late,
                                      .fetch_delay_ns = row->late ? 2000 : 0,
                                      .random = seed};
    /* A record that nobody announces again leaves the put undone: its wait must end. */
    const struct db_queue_attr attr = {
        .depth = DEPTH,
        .without_record = row->record == DB_WITHOUT_RECORD,
        .timeout_ns = row->caught_as == NIC_DIAG_RECORD_STALE ? 2 * HELD_NS : 0};
    bool one = row->way == SHARE_PRIVATE;
    const struct db_gpu_shape shape = {.ctas = one ? 1 : 4,
                                       .threads = one ? 1 : THREADS / 4,
                                       .shared_bytes = sizeof(struct share_block)};
    struct share_failure failure = {0};
    struct nic_counters before, after;
    uint64_t posts = 0, start = port_now_ns();
    struct share_set set;

    softnic_set_strict(&strict);
    share_set_create(&set, &attr, 1, THREADS);
    set.watchdog_ns = 10 * SHARE_WATCHDOG_NS; /* a queue in error, whose lanes wait */
    struct db_qp *qp = set.ends->qp;
    order_weak_begin(seed);
    order_weak_range(qp->sq, (size_t)DEPTH * M5_BLOCK_BYTES, row->memory, HELD_ONE_IN, HELD_NS);
    order_weak_range(qp->record, sizeof(*qp->record), row->memory, HELD_ONE_IN, HELD_NS);
    softnic_read_counters(&before);
    const struct order_args args = {.way = row->way,
                                    .order = row->order,
                                    .mistake = row->mistake,
                                    .safe = row->caught_as == NIC_DIAG_COUNT,
                                    .burst = row->burst,
                                    .bursts = row->posts / row->burst / (one ? 1 : THREADS),
                                    .end = set.ends,
                                    .failure = &failure,
                                    .posts = &posts};
    for (uint32_t round = 0;; round++) {
        poison_all(qp, attr.without_record ? DB_WITHOUT_RECORD : DB_WITH_RECORD);
        qp->with_record = row->record;
        share_launch(&set, 4, &orders, shape, &args, &failure);
        softnic_read_counters(&after);
        if (row->caught_as == NIC_DIAG_COUNT || count_of(&after, &before, row->caught_as) ||
            round == MAX_ROUNDS)
            break;
        share_set_reset(&set);
    }
    share_set_destroy(&set);

    for (int kind = 0; kind < NIC_DIAG_COUNT; kind++)
        CHECK(row->caught_as != NIC_DIAG_COUNT || count_of(&after, &before, kind) == 0,
              "%s: strict mode caught a safe ordering: %s", row->name,
              nic_diag_name((enum nic_diag)kind));
    CHECK(row->caught_as == NIC_DIAG_COUNT || count_of(&after, &before, row->caught_as) > 0,
          "%s: not caught as %s in %llu posts", row->name,
          nic_diag_name((enum nic_diag)row->caught_as), (unsigned long long)posts);
    printf("%-44s %s %8llu posts, %.2f s\n", row->name,
           row->caught_as == NIC_DIAG_COUNT ? "holds: " : "caught:", (unsigned long long)posts,
           (double)(port_now_ns() - start) / 1e9);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : port_now_ns() | 1;

#ifdef PORT_TSAN
    SKIP("a model of late stores has nothing to tell to ThreadSanitizer");
#endif
    printf("seed %llu\n", (unsigned long long)seed);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        run(&rows[i], seed);
    return 0;
}
