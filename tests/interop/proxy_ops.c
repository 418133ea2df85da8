/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: every operation of device.h does on a proxied queue what it says, by both ways of posting
 * and by each protocol, in a ring of two descriptors as in a large one, and past the NIC's 16-bit
 * index. Strict mode poisons each executed block and has nothing to report.
 */
#include "proxy_ends.h"

#include <string.h>

#define BUFFER_BYTES (1u << 20)

/* At every offset's low bits: an offset is no address. */
static void puts_and_gets(const struct proxy_ends *e)
{
    static const uint32_t sizes[] = {1, 2, 7, 8, 63, 64, 65, 1000, 4096, 7168, 65537, 500000};
    uint64_t index;

    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t bytes = sizes[i], from = 13 * i, to = 4099 - i;
        queue_fill(e->buffer + from, bytes, i);
        memset(e->peer.buffer + to, 0xee, bytes + 1);
        QUEUE_OK(db_put(e->qp, e->remote.iova + to, e->remote.rkey, e->local.iova + from,
                        e->local.lkey, bytes, &index));
        queue_wait(e->queue, index);
        queue_verify(e->peer.buffer + to, bytes, i, "put");

        queue_fill(e->peer.buffer + to, bytes, 100 + i);
        memset(e->buffer + from, 0xee, bytes + 1);
        QUEUE_OK(db_get(e->qp, e->remote.iova + to, e->remote.rkey, e->local.iova + from,
                        e->local.lkey, bytes, &index));
        queue_wait(e->queue, index);
        queue_verify(e->buffer + from, bytes, 100 + i, "get");
    }
}

static void values_and_atomics(const struct proxy_ends *e)
{
    uint64_t *result = (uint64_t *)(void *)e->buffer, *word = (uint64_t *)(void *)e->peer.buffer;
    uint64_t index, expected = 0;

    for (uint64_t i = 1; i < 20; i++) {
        uint64_t value = i * 0x0123456789abcdefull;
        QUEUE_OK(i % 2 ? db_put_value(e->qp, e->remote.iova, e->remote.rkey, value, &index)
                       : db_put_inline(e->qp, e->remote.iova, e->remote.rkey, &value, 8, &index));
        queue_wait(e->queue, index);
        CHECK(*word == value, "the value %#llx arrived as %#llx", (unsigned long long)value,
              (unsigned long long)*word);
    }
    *word = 0;
    for (uint64_t i = 1; i < 20; i++) {
        uint64_t addend = i << 56 | i << 30 | i;
        QUEUE_OK(db_fetch_add(e->qp, e->remote.iova, e->remote.rkey, e->local.iova, e->local.lkey,
                              addend, &index));
        queue_wait(e->queue, index);
        CHECK(*result == expected, "fetch-add %llu found %#llx", (unsigned long long)i,
              (unsigned long long)*result);
        expected += addend;
        CHECK(*word == expected, "fetch-add %llu left %#llx", (unsigned long long)i,
              (unsigned long long)*word);
    }
}

static void puts_with_immediate(const struct proxy_ends *e)
{
    uint64_t index;

    QUEUE_OK(db_queue_post_receives(e->peer.queue, 16));
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t bytes = 1 + i * 13;
        queue_fill(e->buffer, bytes, i);
        memset(e->peer.buffer, 0xee, bytes + 1);
        QUEUE_OK(db_put_imm(e->qp, e->remote.iova, e->remote.rkey, e->local.iova, e->local.lkey,
                            bytes, 0xabcd0000u + i, &index));
        struct db_receive receive = queue_end_receive(&e->peer);
        CHECK(receive.imm == 0xabcd0000u + i, "immediate %u is %#x", i, receive.imm);
        CHECK(receive.bytes == bytes, "%u bytes", receive.bytes);
        queue_verify(e->peer.buffer, bytes, i, "put with immediate");
        queue_wait(e->queue, index);
        QUEUE_OK(db_queue_post_receives(e->peer.queue, 1));
    }
}

/* Values into 512 words in turn: each word ends with the last one that was put there. */
static void many(const struct proxy_ends *e, uint64_t count)
{
    uint64_t *words = (uint64_t *)(void *)e->peer.buffer;
    uint64_t index = 0;

    memset(words, 0, 512 * sizeof(*words));
    for (uint64_t i = 0; i < count; i++)
        QUEUE_OK(db_put_value(e->qp, e->remote.iova + i % 512 * 8, e->remote.rkey, i, &index));
    QUEUE_OK(db_flush(e->qp));
    queue_wait(e->queue, index);
    for (uint64_t w = 0; w < 512; w++) {
        uint64_t expected = count <= w ? 0 : (count - 1 - w) / 512 * 512 + w;
        CHECK(words[w] == expected, "word %llu holds %llu instead of %llu", (unsigned long long)w,
              (unsigned long long)words[w], (unsigned long long)expected);
    }
}

/* What no descriptor can name is refused before it reaches the ring. */
static void refusals(const struct proxy_ends *e)
{
    uint64_t index, far = DB_RING_OFFSETS;
    struct db_keys r = e->remote, l = e->local;

    CHECK(db_put(e->qp, far, r.rkey, 0, l.lkey, 8, &index) == DB_ERROR_INVALID, "remote offset");
    CHECK(db_put(e->qp, 0, r.rkey, far, l.lkey, 8, &index) == DB_ERROR_INVALID, "local offset");
    CHECK(db_put(e->qp, 0, 32, 0, l.lkey, 8, &index) == DB_ERROR_INVALID, "window");
    CHECK(db_get(e->qp, 0, r.rkey, 0, 32, 8, &index) == DB_ERROR_INVALID, "region");
    CHECK(db_put(e->qp, 0, r.rkey, 0, l.lkey, 0, &index) == DB_ERROR_INVALID, "no bytes");
    CHECK(db_put_inline(e->qp, 0, r.rkey, &index, 7, &index) == DB_ERROR_INVALID, "7 bytes inline");
    CHECK(db_put_value(e->qp, far, r.rkey, 1, &index) == DB_ERROR_INVALID, "a value's offset");
}

static void run(enum db_post post, enum db_protocol protocol, uint32_t depth)
{
    const struct db_proxy_attr proxy = {.post = post, .batch = depth % 3 ? 16 : 5, .depth = 64};
    const struct db_queue_attr attr = {.depth = depth, .protocol = protocol};
    struct proxy_ends ends;
    struct db_queue_info info;

    proxy_ends_start(&ends, &proxy, &attr, BUFFER_BYTES);
    queue_strict(true);
    puts_and_gets(&ends);
    values_and_atomics(&ends);
    puts_with_immediate(&ends);
    refusals(&ends);
    many(&ends, depth == 64 && protocol == DB_PROTOCOL_TUNED ? 70000 : 1000);
    QUEUE_OK(db_queue_check(ends.queue));
    QUEUE_OK(db_queue_query(ends.queue, &info));
    CHECK(info.state == DB_QUEUE_READY && info.peer_qpn == ends.peer.qp->qpn, "state %d, peer %#x",
          (int)info.state, info.peer_qpn);
    proxy_ends_destroy(&ends);
    queue_expect_no_diagnostics_of_worker();
    printf("posting %d, protocol %d, depth %u: all operations\n", (int)post, (int)protocol, depth);
}

int main(void)
{
    for (int post = DB_POST_VERBS; post <= DB_POST_WQE; post++) {
        run((enum db_post)post, DB_PROTOCOL_TUNED, 2);
        run((enum db_post)post, DB_PROTOCOL_TUNED, 64);
        run((enum db_post)post, DB_PROTOCOL_BASELINE, 64);
        run((enum db_post)post, DB_PROTOCOL_BEST, 1024);
    }
    return 0;
}
