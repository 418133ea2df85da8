/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One 8-byte operation (Table 3): what the issuing thread pays, how long until the completion, and
 * a round trip with a responder. Beside it, in the same run: libmlx5's own posting and polling on
 * the same device, and the floor of this machine, a cache line sent to another core and back.
 */
#include <string.h>

#include "../cases.h"
#include "../peers/line.h"
#include "../peers/verbs.h"
#include "../puts.h"

#define BYTES 8

static enum bench_status setup(struct bench *b)
{
    return puts_setup(b, BYTES);
}

/* ---- The round trip ---- */

/* Words that the two blocks poll, on lines of their own, in the memory of the payloads. */
#define WORD_STRIDE 128

static enum bench_status round_trip_chunk(struct bench *b, uint64_t first, uint32_t warmup,
                                          uint32_t count)
{
    struct puts *puts = b->state;
    uint8_t *host = puts->payloads.buffer.host, *device = puts->payloads.buffer.device;
    uint64_t *ticks = puts->results.host;
    int32_t *status = (int32_t *)(void *)(ticks + (size_t)2 * PUTS_CHUNK);
    struct db_keys keys = puts->payloads.keys;
    struct bench_round_trip_args args = {
        .first = first,
        .warmup = warmup,
        .count = count,
        .timeout_ns = b->options->timeout_ns / 64,
        .ticks = puts->results.device,
        .status = (int32_t *)(void *)((uint64_t *)puts->results.device + (size_t)2 * PUTS_CHUNK),
    };
    for (int i = 0; i < 2; i++) {
        args.qp[i] = puts->pair.qp[i];
        args.word[i] = (uint64_t *)(void *)(device + i * WORD_STRIDE);
        args.raddr[i] = keys.iova + (uint64_t)(1 - i) * WORD_STRIDE;
        args.rkey[i] = keys.rkey;
        status[i] = DB_OK;
    }
    enum bench_status result = transport_run(b, &puts->transport, &bench_round_trip, 2, 1, &args);
    for (int i = 0; i < 2 && result == BENCH_PASS; i++)
        result = transport_check(b, &puts->pair, status[i]);
    if (result != BENCH_PASS)
        return result;
    for (uint32_t i = 0; i < count; i++)
        bench_samples_add(&puts->complete, (double)ticks[i] * puts->transport.ns_per_tick);
    /* The count is the payload: each value came back, or the kernel would have timed out. */
    uint64_t last = first + warmup + count;
    for (int i = 0; i < 2; i++)
        if (*(uint64_t *)(void *)(host + i * WORD_STRIDE) != last)
            return bench_fail(b, "round trip: the last count did not arrive at block %d", i);
    return BENCH_PASS;
}

static enum bench_status round_trip(struct bench *b)
{
    struct puts *puts = b->state;
    enum bench_status status = BENCH_PASS;
    struct bench_pace pace;
    uint64_t n, first = 0;

    bench_samples_clear(&puts->complete);
    memset(puts->payloads.buffer.host, 0, (size_t)2 * WORD_STRIDE);
    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        uint32_t warmup = (uint32_t)b->options->warmup_iters;
        bench_pace_start(&pace, b, "round trips");
        while (status == BENCH_PASS && (n = bench_pace_next(&pace, PUTS_CHUNK)) > 0) {
            status = round_trip_chunk(b, first, warmup, (uint32_t)n);
            first += warmup + n;
            warmup = 16;
        }
    }
    if (status != BENCH_PASS)
        return status;
    struct bench_record record = {
        .system = "mini-gda",
        .config = {{"payload", "inline", 0},
                   {"ordering", puts_order_name((enum db_order)puts->pair.qp[0]->order), 0},
                   {"record", puts->pair.qp[0]->with_record == DB_WITH_RECORD ? "with" : "without",
                    0},
                   {"ring", "host memory", 0},
                   {"threads", NULL, 2},
                   {"queues", NULL, 2}},
        .metric = "round_trip",
        .unit = "us",
        .msg_bytes = BYTES,
        .valid = BENCH_VALID,
        .references = {"R043", "R046"},
    };
    return bench_report(b, &record, &puts->complete);
}

/* The ring is in host memory, so system scope is the safe order; gpu scope is measured as the
 * paper's default. */
static const struct puts_variant variants[] = {
    {true, DB_ORDER_SYSTEM, BYTES, {NULL}, {NULL}},
    {true, DB_ORDER_GPU, BYTES, {"R041", "R044"}, {"R042", "R045"}},
    {false, DB_ORDER_GPU, BYTES, {"R047", "R049"}, {"R048", "R050"}},
    {true, DB_ORDER_NONE_UNSAFE, BYTES, {"R051", "R053"}, {"R052", "R054"}},
};

static enum bench_status run(struct bench *b)
{
    struct puts *puts = b->state;
    enum bench_status status = BENCH_PASS;

    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]) && status == BENCH_PASS; i++)
        status = puts_measure(b, &variants[i]);
    if (status == BENCH_PASS)
        status = round_trip(b);
    if (status == BENCH_PASS)
        status = verbs_latency(b, &puts->transport.info, BYTES);
    if (status == BENCH_PASS)
        status = line_round_trip(b);
    return status;
}

const struct bench_case bench_case_one_op = {
    .name = "one-op",
    .paper = {"T3"},
    .summary = "one 8 B put at a time: issue, put + completion, round trip; beside libmlx5",
    .uses = PUTS_USES,
    .setup = setup,
    .run = run,
    .teardown = puts_teardown,
};
