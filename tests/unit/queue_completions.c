/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a wait takes CQEs up to the one that it is for and leaves those behind it; and an owner
 * that takes a queue finds as much room as there is, also where a WQE of several blocks, the last
 * one published, gave all its blocks back at once. One that tries publishes as long as the block
 * behind is free, then nothing at all, and the same WQE when it is. Each call of device.h leaves in
 * the queue what it claimed and published, waits for room where there is none, and refuses what
 * never fits.
 */
#include <doorbell/device.h>

#include "../check.h"

#define DEPTH      4u
#define TIMEOUT_NS 20000000ull

#ifdef PORT_TSAN
__attribute__((weak)) uint32_t port_cpu_fence_word; /* the software device defines it otherwise */
#endif

static _Alignas(64) uint8_t sq[DEPTH * M5_BLOCK_BYTES], cq[DEPTH * sizeof(struct m5_cqe)];
static struct m5_qp_record record;
static struct m5_cq_record cq_record;
static uint64_t doorbell;
static struct db_qp qp;
static uint32_t cqes;

static void start(void)
{
    for (uint32_t i = 0; i < sizeof(cq); i++)
        cq[i] = 0xff; /* op_own of M5_CQE_INVALID */
    cqes = 0;
    qp = (struct db_qp){.sq = sq,
                        .record = &record,
                        .doorbell = &doorbell,
                        .cq = cq,
                        .cq_record = &cq_record,
                        .timeout_ns = TIMEOUT_NS,
                        .qpn = 7,
                        .depth = DEPTH,
                        .cq_depth = DEPTH,
                        .order = DB_ORDER_SYSTEM,
                        .with_record = DB_WITH_RECORD};
}

/* The device completes the WQE that starts at `index`. */
static void complete(uint32_t index)
{
    uint8_t *cqe = cq + (cqes & (DEPTH - 1)) * sizeof(struct m5_cqe);
    uint32_t op_own = (uint32_t)M5_CQE_REQUESTER << 4 | (cqes & DEPTH ? M5_CQE_OWNER : 0);
    uint64_t tail = (uint64_t)port_bswap32(index << 16 | op_own) << 32 |
                    port_bswap32((uint32_t)M5_OP_WRITE << 24 | qp.qpn);

    port_st64((uint64_t *)(void *)(cqe + 56), tail, PORT_RELEASE, PORT_SYSTEM);
    cqes++;
}

static void wait_takes_its_own(void)
{
    uint64_t index;

    start();
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(db_put_value(&qp, 64, 1, i, &index) == DB_OK && index == i, "put %u", i);
        complete(i);
    }
    CHECK(db_wait(&qp, 0) == DB_OK, "the first wait");
    CHECK(qp.done.consumed == 1 && qp.done.completed == 1, "%llu CQEs taken, %llu blocks complete",
          (unsigned long long)qp.done.consumed, (unsigned long long)qp.done.completed);
    CHECK(db_wait_shared(&qp, 1) == DB_OK && qp.done.consumed == 2, "a shared wait takes its own");
    CHECK(db_flush(&qp) == DB_OK && qp.done.consumed == 3, "a flush takes all");
}

/* A WQE that fills the ring. */
static void post_all(uint64_t want)
{
    uint64_t index;

    CHECK(db_claim(&qp, DEPTH, &index) == DB_OK && index == want, "claim at %llu",
          (unsigned long long)index);
    db_publish(&qp, index, index + DEPTH, DB_ORDER_SYSTEM, DB_WITH_RECORD);
}

static void owner_finds_what_is_free(void)
{
    struct db_owner owner;
    uint64_t index;

    start();
    post_all(0);
    complete(0);
    post_all(DEPTH);
    db_owner_take(&owner, &qp);
    CHECK(owner.room == 0, "%u of no free blocks", owner.room);
    CHECK(!db_owner_claim(&owner, 1, &index) && owner.status == DB_ERROR_TIMEOUT,
          "a claim over a WQE that the device has");
    CHECK(!db_owner_claim(&owner, DEPTH + 1, &index) && owner.status == DB_ERROR_INVALID,
          "more blocks than there are");
    complete(DEPTH);
    CHECK(db_owner_claim(&owner, DEPTH, &index) && index == 2 * DEPTH && owner.room == 0,
          "all blocks are free again");
    db_owner_publish(&owner, index, index + DEPTH, DB_ORDER_SYSTEM, DB_WITH_RECORD);
    complete(2 * DEPTH);
    CHECK(db_owner_flush(&owner) == DB_OK && owner.room == DEPTH, "%u free", owner.room);
    db_owner_give(&owner);
    post_all(3 * DEPTH);
}

static bool try_value(struct db_owner *owner, uint64_t value, enum db_record how)
{
    db_build_write_value(&owner->here, owner->claimed, DB_SIGNALED, 64, 1, value);
    return db_owner_try_publish(owner, DB_ORDER_SYSTEM, how);
}

/* `how` is DB_WITH_RECORD, or exchanged; both write the record. */
static void owner_tries(enum db_record how)
{
    struct db_owner owner;

    start();
    db_owner_take(&owner, &qp);
    CHECK(db_owner_wait_room(&owner, 1), "room in an empty ring");
    for (uint32_t i = 0; i < DEPTH - 1; i++)
        CHECK(try_value(&owner, i, how) && owner.claimed == i + 1 && owner.published == i + 1 &&
                  owner.last == i && record.send.raw == port_bswap32(i + 1),
              "try %u", i);
    uint64_t rung = doorbell;
    for (int again = 0; again < 2; again++)
        CHECK(!try_value(&owner, 77, how) && owner.claimed == DEPTH - 1 &&
                  owner.published == DEPTH - 1 && owner.last == DEPTH - 2 && owner.room == 1 &&
                  record.send.raw == port_bswap32(DEPTH - 1) && doorbell == rung,
              "a try that leaves no block in hand");
    CHECK(!db_owner_wait_room(&owner, 2) && owner.status == DB_ERROR_TIMEOUT,
          "a wait for a device that completes nothing");
    complete(0);
    CHECK(db_owner_wait_room(&owner, 2) && db_owner_try_publish(&owner, DB_ORDER_SYSTEM, how) &&
              record.send.raw == port_bswap32(DEPTH) && doorbell != rung && owner.room == 1,
          "the same WQE, when there is room");
    CHECK(!db_owner_wait_room(&owner, DEPTH + 1) && owner.status == DB_ERROR_INVALID,
          "more blocks than there are");
    for (uint32_t i = 1; i < DEPTH; i++)
        complete(i);
    CHECK(db_owner_flush(&owner) == DB_OK && owner.room == DEPTH, "%u free", owner.room);
    db_owner_give(&owner);
    CHECK(qp.post.claimed == DEPTH && db_published(&qp, PORT_RELAXED).end == DEPTH,
          "what was given back");
}

/* ---- What a call leaves in the queue ---- */

static uint8_t payload[DB_MAX_INLINE];

static void expect_posted(const char *call, uint64_t claimed, uint64_t last)
{
    struct db_published published = db_published(&qp, PORT_RELAXED);

    CHECK(qp.post.claimed == claimed && published.end == claimed && published.last == last,
          "%s: claimed %llu, published %llu, last %llu", call, (unsigned long long)qp.post.claimed,
          (unsigned long long)published.end, (unsigned long long)published.last);
}

static void call_leaves_what_it_did(void)
{
    const uint32_t bytes = 64, blocks = db_inline_blocks(64);
    uint64_t index = 0, next = 0;

    start();
    for (int call = 0; call < 6; call++) {
        static const char *const names[] = {"put",       "put_value", "put_imm",
                                            "fetch_add", "get",       "put_inline"};
        int status = call == 0   ? db_put(&qp, 64, 1, 128, 2, 8, &index)
                     : call == 1 ? db_put_value(&qp, 64, 1, 5, &index)
                     : call == 2 ? db_put_imm(&qp, 64, 1, 128, 2, 8, 9, &index)
                     : call == 3 ? db_fetch_add(&qp, 64, 1, 128, 2, 1, &index)
                     : call == 4 ? db_get(&qp, 64, 1, 128, 2, 8, &index)
                                 : db_put_inline(&qp, 64, 1, payload, bytes, &index);
        CHECK(status == DB_OK && index == next, "%s: %d at %llu", names[call], status,
              (unsigned long long)index);
        next += call == 5 ? blocks : 1;
        expect_posted(names[call], next, index);
        complete((uint32_t)index);
        CHECK(db_wait(&qp, index) == DB_OK, "the wait for %s", names[call]);
    }
    CHECK(blocks == 2 && qp.done.completed == next, "%llu blocks complete",
          (unsigned long long)qp.done.completed);
}

static void call_waits_for_room(void)
{
    uint64_t index;

    start();
    CHECK(db_put_inline(&qp, 64, 1, payload, DB_MAX_INLINE, &index) == DB_ERROR_INVALID &&
              qp.post.claimed == 0,
          "more than the ring has");
    for (uint32_t i = 0; i < DEPTH; i++)
        CHECK(db_put_value(&qp, 64, 1, i, &index) == DB_OK, "put %u", i);
    complete(0);
    complete(1);
    CHECK(db_put_inline(&qp, 64, 1, payload, 64, &index) == DB_OK && index == DEPTH,
          "a put of two blocks where two are complete");
    expect_posted("put_inline", DEPTH + 2, DEPTH);
    CHECK(qp.done.completed == 2 && qp.done.consumed == 2, "%llu complete, %llu taken",
          (unsigned long long)qp.done.completed, (unsigned long long)qp.done.consumed);
    CHECK(db_put_value(&qp, 64, 1, 0, &index) == DB_ERROR_TIMEOUT, "a put into a full ring");
    expect_posted("put_value", DEPTH + 2, DEPTH);
}

int main(void)
{
    wait_takes_its_own();
    owner_finds_what_is_free();
    owner_tries(DB_WITH_RECORD);
    owner_tries(DB_RECORD_EXCHANGED);
    call_leaves_what_it_did();
    call_waits_for_room();
    return 0;
}
