/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: an experiment without a NIC passes only when every byte of the WQEs in its ring is what
 * was put: kernels that build one WQE of a run with another address, key, value, length or flag are
 * told by the check of issue and by that of the rates, and so is any falsified byte, which is
 * named. The WQEs that the check makes are the encoders', for payloads of one block and of several.
 * And what is called exchanged exchanges a record for each doorbell, and nothing else does.
 */
#include <doorbell/impl/port.h>

/* Of records, by all threads. */
static uint32_t exchanges;

static uint32_t counted_xchg32(uint32_t *word, uint32_t value)
{
    port_add32(&exchanges, 1);
    return port_xchg32(word, value);
}

#define port_xchg32 counted_xchg32
#include <doorbell/device.h>
#undef port_xchg32

/* The kernels build WQEs through these, which put one of them wrong. */
static struct {
    bool active;
    bool every; /* each WQE, not only this one: */
    uint64_t index;
    uint64_t raddr, laddr, value;
    uint32_t rkey, lkey, flags, bytes;
    uint32_t payload;
} mutant;

static bool is_wrong(uint64_t index)
{
    return mutant.active && (mutant.every || index == mutant.index);
}

static void mutated_write(const struct db_qp *qp, uint64_t index, uint32_t flags, uint64_t raddr,
                          uint32_t rkey, uint64_t laddr, uint32_t lkey, uint32_t bytes)
{
    bool wrong = is_wrong(index);
    db_build_write(qp, index, wrong ? flags ^ mutant.flags : flags,
                   wrong ? raddr ^ mutant.raddr : raddr, wrong ? rkey + mutant.rkey : rkey,
                   wrong ? laddr + mutant.laddr : laddr, wrong ? lkey + mutant.lkey : lkey,
                   wrong ? bytes + mutant.bytes : bytes);
}

static void mutated_value(const struct db_qp *qp, uint64_t index, uint32_t flags, uint64_t raddr,
                          uint32_t rkey, uint64_t value)
{
    bool wrong = is_wrong(index);
    db_build_write_value(qp, index, wrong ? flags ^ mutant.flags : flags,
                         wrong ? raddr ^ mutant.raddr : raddr, wrong ? rkey + mutant.rkey : rkey,
                         wrong ? value + mutant.value : value);
}

static void mutated_inline(const struct db_qp *qp, uint64_t index, uint32_t opcode, uint32_t flags,
                           uint64_t raddr, uint32_t rkey, const void *payload, uint32_t bytes,
                           uint32_t imm)
{
    bool wrong = is_wrong(index);
    db_build_write_inline(qp, index, opcode, wrong ? flags ^ mutant.flags : flags,
                          wrong ? raddr ^ mutant.raddr : raddr, wrong ? rkey + mutant.rkey : rkey,
                          (const uint8_t *)payload + (wrong ? mutant.payload : 0),
                          wrong ? bytes + mutant.bytes : bytes, imm);
}

#define db_build_write        mutated_write
#define db_build_write_value  mutated_value
#define db_build_write_inline mutated_inline
#include "bench/kernels/issue.c"
#define post_warp post_warp_at_full_rate /* both have one */
#include "bench/kernels/rate.c"
#undef db_build_write
#undef db_build_write_value
#undef db_build_write_inline

#include <string.h>

#include "bench/issues.h"
#include "bench/rates.h"
#include "bench/ring_check.h"
#include "tests/check.h"
#include "tests/said.h"

static struct bench_options options;
static struct bench_results results;
static struct bench b = {.options = &options, .results = &results};

/* ---- The WQEs of the check ---- */

static void encoders(void)
{
    uint8_t ring[16 * M5_BLOCK_BYTES] __attribute__((aligned(64)));
    uint8_t wqe[RING_WQE_BYTES_MAX], payload[DB_MAX_INLINE];
    struct db_qp qp = {.sq = ring, .depth = 16, .qpn = 0x123456};
    struct ring_put put = {.raddr = 0x1122334455667788,
                           .rkey = 0x99aabbcc,
                           .flags = DB_SIGNALED,
                           .bytes = 0x12345678,
                           .value = 0x8877665544332211,
                           .laddr = 0xddeeff0012345678,
                           .lkey = 0x9abcdef0};

    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i * 7 + 1);
    db_build_write(&qp, 0xabc0, put.flags, put.raddr, put.rkey, put.laddr, put.lkey, put.bytes);
    CHECK(ring_wqe(&put, qp.qpn, 0xabc0, wqe) == 48 && memcmp(wqe, ring, 48) == 0, "a pointer");

    put.inlined = true;
    put.bytes = 8;
    put.flags = DB_UNSIGNALED;
    db_build_write_value(&qp, 0x1abc0, put.flags, put.raddr, put.rkey, put.value);
    CHECK(ring_wqe(&put, qp.qpn, 0x1abc0, wqe) == 48 && memcmp(wqe, ring, 48) == 0, "a value");

    put.payload = payload;
    for (put.bytes = 0; put.bytes <= DB_MAX_INLINE; put.bytes++) {
        size_t bytes = (2 + db_inline_segments(put.bytes)) * (size_t)M5_SEGMENT_BYTES;
        db_build_write_inline(&qp, 0x20, M5_OP_WRITE, put.flags, put.raddr, put.rkey, payload,
                              put.bytes, 0);
        CHECK(ring_wqe(&put, qp.qpn, 0x20, wqe) == bytes && memcmp(wqe, ring, bytes) == 0,
              "%u bytes inline", put.bytes);
    }
}

/* ---- WQEs of several blocks ---- */

static uint8_t pattern[DB_MAX_INLINE];

static struct ring_put long_put(void *context, uint64_t number, const uint8_t *found)
{
    (void)found;
    return (struct ring_put){.raddr = 0x1000 * number,
                             .rkey = 7,
                             .flags = DB_SIGNALED,
                             .bytes = *(const uint32_t *)context,
                             .inlined = true,
                             .payload = pattern};
}

/* Three laps of a ring whose depth is no multiple of the WQEs: each byte counts, and nothing else.
 */
static void several_blocks(uint32_t bytes)
{
    const struct db_queue_attr attr = {.depth = 64, .collapsed = true, .timeout_ns = 1000000000};
    struct ring_posts posts = {.count = 192 / db_inline_blocks(bytes),
                               .blocks = db_inline_blocks(bytes),
                               .put = long_put,
                               .context = &bytes};
    size_t length = (2 + db_inline_segments(bytes)) * (size_t)M5_SEGMENT_BYTES;
    enum bench_valid valid = BENCH_UNCHECKED;
    struct db_queue *queue;

    CHECK(db_queue_create_detached(&attr, &queue) == 0, "%s", db_error_text());
    struct db_qp *qp = db_queue_device_view(queue);
    for (uint64_t i = 0; i < posts.count; i++) {
        uint64_t index;
        CHECK(db_claim(qp, posts.blocks, &index) == DB_OK && index == i * posts.blocks, "claim");
        db_build_write_inline(qp, index, M5_OP_WRITE, DB_SIGNALED, 0x1000 * i, 7, pattern, bytes,
                              0);
        db_publish_safe(qp, index, index + posts.blocks);
        CHECK(db_detached_complete(queue, 1) == 1, "%s", db_error_text());
    }
    CHECK(ring_check(&b, queue, &posts, &valid) == BENCH_PASS && valid == BENCH_VALID, "%u bytes",
          bytes);

    uint64_t first = posts.count - 64 / posts.blocks;
    for (uint64_t number = first; number < posts.count; number += posts.count - 1 - first) {
        for (size_t at = 0; at < (size_t)posts.blocks * M5_BLOCK_BYTES; at++) {
            uint64_t block = number * posts.blocks + at / M5_BLOCK_BYTES;
            uint8_t *byte = qp->sq + block % 64 * M5_BLOCK_BYTES + at % M5_BLOCK_BYTES;
            *byte ^= 1;
            said_begin();
            bool wrong = ring_check(&b, queue, &posts, &valid) == BENCH_FAIL;
            said_end();
            *byte ^= 1;
            CHECK(wrong == (at < length) && valid == (wrong ? BENCH_INVALID : BENCH_VALID),
                  "%u bytes: byte %zu of WQE %llu", bytes, at, (unsigned long long)number);
        }
    }
    db_queue_destroy(queue);
}

/* ---- The experiments ---- */

#define MUTANTS 8u

/* What every put has, then the kinds of payload, then all puts alike. The number MUTANTS: none. */
static void mutate(unsigned number, uint64_t index)
{
    memset(&mutant, 0, sizeof(mutant));
    mutant.active = number < MUTANTS;
    mutant.index = index;
    switch (number) {
    case 0:
        mutant.raddr = 4096;
        break;
    case 1:
        mutant.raddr = 31 * RATES_WORDS_BYTES; /* the first lane's words, as it would post */
        mutant.flags = DB_SIGNALED;
        break;
    case 2:
        mutant.rkey = 1;
        break;
    case 3:
        mutant.flags = DB_SIGNALED;
        break;
    case 4:
        mutant.value = 100;
        mutant.laddr = 1;
        mutant.payload = 1;
        break;
    case 5:
        mutant.value = BENCH_RATE_SLOTS; /* the same word of the thread's */
        mutant.lkey = 1;
        mutant.payload = 1;
        break;
    case 6:
        mutant.value = 1ull << 63;
        mutant.bytes = 1;
        break;
    default:
        mutant.every = true;
        mutant.raddr = 8 * RATES_WORDS_BYTES; /* the words of other threads */
    }
}

static void issue(void)
{
    static const struct issues_variant variants[] = {
        {BENCH_ISSUE_OWNER, DB_ORDER_GPU, DB_WITH_RECORD, true},
        {BENCH_ISSUE_OWNER, DB_ORDER_GPU, DB_WITHOUT_RECORD, false},
        {BENCH_ISSUE_OWNER, DB_ORDER_GPU, DB_RECORD_EXCHANGED, true},
        {BENCH_ISSUE_TRY, DB_ORDER_GPU, DB_WITH_RECORD, true},
        {BENCH_ISSUE_TRY, DB_ORDER_GPU, DB_WITHOUT_RECORD, false},
        {BENCH_ISSUE_TRY, DB_ORDER_GPU, DB_RECORD_EXCHANGED, true},
        {BENCH_ISSUE_PUT, DB_ORDER_GPU, DB_WITH_RECORD, true},
        {BENCH_ISSUE_PUT_SHARED, DB_ORDER_GPU, DB_WITH_RECORD, true},
        {BENCH_ISSUE_TICKET, DB_ORDER_GPU, DB_WITH_RECORD, true},
        {BENCH_ISSUE_HANDOFF, DB_ORDER_GPU, DB_WITH_RECORD, true},
        {BENCH_ISSUE_LOCK, DB_ORDER_GPU, DB_WITH_RECORD, true},
        {BENCH_ISSUE_WARP_OWNER, DB_ORDER_GPU, DB_WITH_RECORD, true},
        {BENCH_ISSUE_WARP, DB_ORDER_GPU, DB_WITH_RECORD, true},
        {BENCH_ISSUE_WARP, DB_ORDER_GPU, DB_RECORD_EXCHANGED, true},
    };
    struct issues issues;
    enum bench_valid valid;
    double ns_per_tick;
    char words[64];

    CHECK(issues_open(&b, &issues) == BENCH_PASS, "no queue");
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        uint32_t last = 10 * (variants[i].way < BENCH_ISSUE_WARP_OWNER ? 1 : PORT_WARP_THREADS) - 1;
        /* The calls of device.h build theirs by themselves. */
        bool is_call =
            variants[i].way == BENCH_ISSUE_PUT || variants[i].way == BENCH_ISSUE_PUT_SHARED;
        for (unsigned m = is_call ? MUTANTS : 0; m <= MUTANTS; m++) {
            mutate(m, 3);
            said_begin();
            exchanges = 0;
            enum bench_status status =
                issues_run(&b, &issues, &variants[i], 2, 8, &ns_per_tick, &valid);
            said_end();
            CHECK(exchanges == (variants[i].record == DB_RECORD_EXCHANGED ? 10 : 0),
                  "way %d: %u records of 10 were exchanged", (int)variants[i].way, exchanges);
            CHECK(status == (m == MUTANTS ? BENCH_PASS : BENCH_FAIL), "way %d, mutant %u: %d: %s",
                  (int)variants[i].way, m, (int)status, said);
            snprintf(words, sizeof(words), "the WQE at index %u: byte ", mutant.every ? last : 3);
            CHECK(m == MUTANTS || strstr(said, words), "way %d, mutant %u: %s",
                  (int)variants[i].way, m, said);
            CHECK(valid == (m == MUTANTS ? BENCH_VALID : BENCH_INVALID), "validity %d", (int)valid);
        }
    }

    options.given |= BENCH_USE(INJECT);
    for (options.flip_offset = 0; options.flip_offset <= 48; options.flip_offset++) {
        valid = BENCH_UNCHECKED;
        said_begin();
        enum bench_status status =
            issues_run(&b, &issues, &variants[0], 2, 8, &ns_per_tick, &valid);
        said_end();
        snprintf(words, sizeof(words), "the WQE at index 9: byte %llu of 48 ",
                 (unsigned long long)options.flip_offset);
        if (options.flip_offset < 48)
            CHECK(status == BENCH_FAIL && strstr(said, words), "%d: %s", (int)status, said);
        else
            CHECK(status == BENCH_USAGE && strstr(said, "has only 48 bytes") &&
                      valid == BENCH_UNCHECKED,
                  "%d, %d: %s", (int)status, (int)valid, said);
    }
    options.given &= ~BENCH_USE(INJECT);
    issues_close(&issues);
}

static void rates(void)
{
    static const struct rates_variant variants[] = {
        {BENCH_PRIVATE, 1, 1, 1, 1, 8, DB_WITH_RECORD, {NULL}},
        {BENCH_PRIVATE, 2, 2, 4, 16, 8, DB_WITH_RECORD, {NULL}},
        {BENCH_PRIVATE, 1, 1, 1, 4, 28, DB_WITH_RECORD, {NULL}},
        {BENCH_WARP_OWNER, 2, 32, 2, 32, 8, DB_WITH_RECORD, {NULL}},
        {BENCH_WARP, 1, 32, 1, 32, 8, DB_WITH_RECORD, {NULL}},
        {BENCH_WARP, 2, 64, 2, 32, 8, DB_WITH_RECORD, {NULL}},
        {BENCH_TICKET, 2, 8, 2, 1, 8, DB_WITH_RECORD, {NULL}},
        {BENCH_HANDOFF, 1, 8, 1, 1, 8, DB_WITH_RECORD, {NULL}},
        {BENCH_LOCK, 4, 8, 2, 1, 8, DB_WITH_RECORD, {NULL}},
        {BENCH_PRIVATE, 2, 2, 4, 16, 8, DB_RECORD_EXCHANGED, {NULL}},
        {BENCH_WARP, 2, 64, 2, 32, 8, DB_RECORD_EXCHANGED, {NULL}},
    };
    struct transport transport = {0};
    static struct rates rates;
    char words[64];

    /* Up to 80 puts of each thread, through rings of 64 blocks. */
    options.given |= BENCH_USE(ITERS) | BENCH_USE(DEPTH);
    options.iters = 80;
    options.depth = 64;
    options.repetitions = 1;
    CHECK(transport_open_gpu(&b, &transport) == BENCH_PASS, "no GPU");
    CHECK(rates_begin_detached(&b, &rates, &transport) == BENCH_PASS, "no queues");
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        const struct rates_variant *variant = &variants[i];
        uint64_t each = options.iters / variant->batch * variant->batch;
        uint64_t posted = each * variant->ctas * variant->threads / variant->queues;
        for (unsigned m = 0; m <= MUTANTS; m++) {
            mutate(m, m % 2 ? posted - 1 : posted - 50);
            said_begin();
            exchanges = 0;
            enum bench_status status = rates_measure(&b, &rates, variant);
            said_end();
            CHECK((exchanges > 0) == (variant->record == DB_RECORD_EXCHANGED),
                  "variant %zu: %u records were exchanged", i, exchanges);
            CHECK(status == (m == MUTANTS ? BENCH_PASS : BENCH_FAIL), "variant %zu, mutant %u: %s",
                  i, m, said);
            snprintf(words, sizeof(words), "the WQE at index %llu: byte ",
                     (unsigned long long)(mutant.every ? posted - 1 : mutant.index));
            CHECK(m == MUTANTS || strstr(said, words), "variant %zu, mutant %u: %s", i, m, said);
            const struct bench_record *record = &results.record[results.count - 1];
            CHECK(record->valid == (m == MUTANTS ? BENCH_VALID : BENCH_INVALID), "%zu: valid", i);
        }
        options.given |= BENCH_USE(INJECT);
        for (options.flip_offset = 1; options.flip_offset < 48; options.flip_offset += 5) {
            said_begin();
            enum bench_status status = rates_measure(&b, &rates, variant);
            said_end();
            snprintf(words, sizeof(words), "the WQE at index %llu: byte %llu of ",
                     (unsigned long long)posted - 1, (unsigned long long)options.flip_offset);
            CHECK(status == BENCH_FAIL && strstr(said, words), "variant %zu: %s", i, said);
        }
        options.given &= ~BENCH_USE(INJECT);
    }
    rates_end_detached(&rates);
    transport_close(&transport);
}

/* The options place the rates' queues as they do those of single posts. */
static void places(void)
{
    static const struct rates_variant variant = {BENCH_PRIVATE,  1,     1, 1, 1, 8,
                                                 DB_WITH_RECORD, {NULL}};
    struct transport transport = {0};
    static struct rates rates;
    char error[BENCH_ERROR_BYTES];

    for (int host = 0; host < 2; host++) {
        if (host)
            CHECK(bench_options_set(&options, BENCH_OPT_RING, "host", error), "%s", error);
        CHECK(transport_open_gpu(&b, &transport) == BENCH_PASS, "no GPU");
        CHECK(rates_begin_detached(&b, &rates, &transport) == BENCH_PASS, "no queues");
        CHECK(rates_measure(&b, &rates, &variant) == BENCH_PASS, "no rate");
        CHECK(rates.pair[0].order == (host ? DB_ORDER_SYSTEM : DB_ORDER_GPU), "order %d",
              (int)rates.pair[0].order);
        rates_end_detached(&rates);
        transport_close(&transport);
    }
}

int main(void)
{
    static const struct bench_case row = {.name = "rings", .paper = {"T3"}};
    char error[BENCH_ERROR_BYTES];

    b.row = &row;
    bench_options_init(&options);
    CHECK(bench_options_set(&options, BENCH_OPT_GPU, "cpu", error), "%s", error);
    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = (uint8_t)(i * 11 + 5);
    encoders();
    several_blocks(8);
    several_blocks(60);
    several_blocks(124);
    several_blocks(220);
    issue();
    rates();
    places();
    bench_results_free(&results);
    return 0;
}
