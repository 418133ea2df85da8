/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: every operation of device.h does what it says, posted by one owner, through queues of
 * libdoorbell with a completion ring and with a collapsed CQ, with a doorbell record and without;
 * on and on past the 16-bit index; and whatever part of the ring a claim takes. Strict mode poisons
 * each executed block, delays each fetch where the variant says so, and has nothing to report.
 */
#include "queue_ends.h"

#include <softnic.h>
#include <string.h>

#define BUFFER_BYTES (1u << 20)
#define DEPTH        64

struct variant {
    const char *name;
    bool collapsed;
    bool without_record;
    uint32_t fetch_delay_ns;
};

static const struct variant variants[] = {
    {"ring", false, false, 0},
    {"collapsed", true, false, 0},
    {"ring, late fetches", false, false, 20000},
    {"collapsed, late fetches", true, false, 20000},
    {"no record", false, true, 0},
    {"no record, late fetches", true, true, 20000},
};

static const uint32_t sizes[] = {1, 2, 7, 8, 63, 64, 65, 1000, 4096, 7168, 65537, BUFFER_BYTES - 1};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void puts_and_gets(const struct queue_ends *ends)
{
    const struct queue_end *a = &ends->a, *b = &ends->b;
    uint64_t index;

    for (size_t i = 0; i < SIZES; i++) {
        uint32_t bytes = sizes[i];
        queue_fill(a->buffer, bytes, i);
        memset(b->buffer, 0xee, bytes + 1);
        QUEUE_OK(
            db_put(a->qp, b->keys.iova, b->keys.rkey, a->keys.iova, a->keys.lkey, bytes, &index));
        queue_wait(a->queue, index);
        queue_verify(b->buffer, bytes, i, "put");

        queue_fill(b->buffer, bytes, 100 + i);
        memset(a->buffer, 0xee, bytes + 1);
        QUEUE_OK(
            db_get(a->qp, b->keys.iova, b->keys.rkey, a->keys.iova, a->keys.lkey, bytes, &index));
        queue_wait(a->queue, index);
        queue_verify(a->buffer, bytes, 100 + i, "get");
    }
}

static void inline_puts(const struct queue_ends *ends)
{
    const struct queue_end *a = &ends->a, *b = &ends->b;
    uint8_t payload[DB_MAX_INLINE + 1];
    uint64_t index;

    for (uint32_t bytes = 0; bytes <= DB_MAX_INLINE; bytes++) {
        queue_fill(payload, bytes, bytes);
        memset(b->buffer, 0xee, bytes + 1);
        QUEUE_OK(db_put_inline(a->qp, b->keys.iova, b->keys.rkey, payload, bytes, &index));
        queue_wait(a->queue, index);
        queue_verify(b->buffer, bytes, bytes, "inline put");
    }
    CHECK(db_put_inline(a->qp, b->keys.iova, b->keys.rkey, payload, DB_MAX_INLINE + 1, &index) ==
              DB_ERROR_INVALID,
          "an inline put of %u bytes was taken", (unsigned)DB_MAX_INLINE + 1);
}

static void values_and_atomics(const struct queue_ends *ends)
{
    const struct queue_end *a = &ends->a, *b = &ends->b;
    uint64_t *result = (uint64_t *)(void *)a->buffer, *word = (uint64_t *)(void *)b->buffer;
    uint64_t index, expected = 0;

    for (uint64_t i = 1; i < 300; i++) {
        uint64_t value = i * 0x0123456789abcdefull;
        QUEUE_OK(db_put_value(a->qp, b->keys.iova, b->keys.rkey, value, &index));
        queue_wait(a->queue, index);
        CHECK(*word == value, "the value %#llx arrived as %#llx", (unsigned long long)value,
              (unsigned long long)*word);
    }
    *word = 0;
    for (uint64_t i = 1; i < 300; i++) {
        uint64_t addend = i << 30 | i;
        QUEUE_OK(db_fetch_add(a->qp, b->keys.iova, b->keys.rkey, a->keys.iova, a->keys.lkey, addend,
                              &index));
        queue_wait(a->queue, index);
        CHECK(*result == expected, "fetch-add %llu found %#llx", (unsigned long long)i,
              (unsigned long long)*result);
        expected += addend;
        CHECK(*word == expected, "fetch-add %llu left %#llx", (unsigned long long)i,
              (unsigned long long)*word);
    }
}

static void puts_with_immediate(const struct queue_ends *ends)
{
    const struct queue_end *a = &ends->a, *b = &ends->b;
    uint64_t index;

    QUEUE_OK(db_queue_post_receives(b->queue, 16));
    for (uint32_t i = 0; i < 500; i++) {
        uint32_t bytes = 1 + i * 13;
        queue_fill(a->buffer, bytes, i);
        memset(b->buffer, 0xee, bytes + 1);
        QUEUE_OK(db_put_imm(a->qp, b->keys.iova, b->keys.rkey, a->keys.iova, a->keys.lkey, bytes,
                            0xabcd0000u + i, &index));
        struct db_receive receive = queue_end_receive(b);
        CHECK(receive.imm == 0xabcd0000u + i, "immediate %u is %#x", i, receive.imm);
        CHECK(receive.bytes == bytes && receive.qpn == b->qp->qpn, "%u bytes for QP %#x",
              receive.bytes, receive.qpn);
        queue_verify(b->buffer, bytes, i, "put with immediate");
        queue_wait(a->queue, index);
        QUEUE_OK(db_queue_post_receives(b->queue, 1));
    }
}

/* More than two laps of the 16-bit index, in WQEs of one to three blocks, so that one of them lies
 * across the end of the ring and another across index 65,535. Every 16th is signalled. */
static void many_laps(const struct queue_ends *ends)
{
    const struct queue_end *a = &ends->a, *b = &ends->b;
    const uint32_t slots = 1024, slot_bytes = 128, laps_end = 140000;
    uint8_t payload[128];
    uint64_t index = 0;

    memset(b->buffer, 0, (size_t)slots * slot_bytes);
    for (uint32_t i = 0; i < laps_end; i++) {
        uint32_t bytes = 8 + i % 15 * 8;
        uint32_t blocks = db_inline_blocks(bytes);
        uint64_t raddr = b->keys.iova + (uint64_t)(i % slots) * slot_bytes;
        bool last = i % 16 == 15 || i == laps_end - 1;
        memset(payload, 0, sizeof(payload));
        memcpy(payload, &i, sizeof(i));
        int status = db_claim(a->qp, blocks, &index);
        CHECK(status == DB_OK, "claim %u = %d", i, status);
        db_build_write_inline(a->qp, index, M5_OP_WRITE, last ? DB_SIGNALED : DB_UNSIGNALED, raddr,
                              b->keys.rkey, payload, bytes, 0);
        if (last)
            db_publish_safe(a->qp, index, index + blocks);
    }
    queue_wait(a->queue, index);
    CHECK(index > 2 * 65536, "only %llu blocks", (unsigned long long)index);
    for (uint32_t slot = 0; slot < slots; slot++) {
        uint32_t got, expected = (laps_end - 1 - slot) / slots * slots + slot;
        memcpy(&got, b->buffer + (size_t)slot * slot_bytes, sizeof(got));
        CHECK(got == expected, "slot %u holds write %u instead of %u", slot, got, expected);
    }
}

/* Claims of all of the ring but one block, of all, and of one more than all. */
static void whole_rings(const struct queue_ends *ends)
{
    struct db_qp *qp = ends->a.qp;
    uint64_t first, before;

    for (uint32_t blocks = DEPTH - 1; blocks <= DEPTH; blocks++) {
        for (int lap = 0; lap < 200; lap++) {
            QUEUE_OK(db_claim(qp, blocks, &first));
            for (uint32_t i = 0; i < blocks; i++)
                db_build_nop(qp, first + i, i == blocks - 1 ? DB_SIGNALED : DB_UNSIGNALED);
            db_publish_safe(qp, first + blocks - 1, first + blocks);
        }
    }
    before = port_ld64(&qp->post.claimed, PORT_RELAXED, PORT_GPU);
    CHECK(db_claim(qp, DEPTH + 1, &first) == DB_ERROR_INVALID, "more than the ring was claimed");
    CHECK(port_ld64(&qp->post.claimed, PORT_RELAXED, PORT_GPU) == before, "and is lost");
    QUEUE_OK(db_flush(qp));
    queue_wait(ends->a.queue, before - 1);
}

static void run(const struct variant *variant)
{
    const struct nic_strict strict = {
        .enabled = 1, .poison = 1, .fetch_delay_ns = variant->fetch_delay_ns, .random = 1};
    struct db_queue_attr attr = {.depth = DEPTH,
                                 .recv_depth = 16,
                                 .collapsed = variant->collapsed,
                                 .without_record = variant->without_record};
    struct queue_ends ends;
    struct db_queue_info info;

    queue_ends_start(&ends, &attr, BUFFER_BYTES);
    softnic_set_strict(&strict);
    puts_and_gets(&ends);
    inline_puts(&ends);
    values_and_atomics(&ends);
    puts_with_immediate(&ends);
    whole_rings(&ends);
    many_laps(&ends);
    QUEUE_OK(db_queue_check(ends.a.queue));
    QUEUE_OK(db_queue_query(ends.a.queue, &info));
    CHECK(info.state == DB_QUEUE_READY && info.peer_qpn == ends.b.qp->qpn, "state %d, peer %#x",
          (int)info.state, info.peer_qpn);
    CHECK(info.executed ==
              (port_ld64(&ends.a.qp->post.claimed, PORT_RELAXED, PORT_GPU) & M5_INDEX_MASK),
          "the device counts %u blocks", info.executed);
    queue_ends_destroy(&ends);
    queue_expect_no_diagnostics();
    printf("%s: all operations\n", variant->name);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++)
        run(&variants[i]);
    return 0;
}
