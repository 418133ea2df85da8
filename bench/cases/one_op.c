/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One 8-byte operation (Table 3): what the issuing thread pays, how long until the completion, and
 * a round trip with a responder; by mini-gda and through mini-proxy. Beside it, in the same run:
 * libmlx5's own posting and polling on the same device, and the floor of this machine, a cache line
 * sent to another core and back.
 */
#include "../cases.h"
#include "../peers/line.h"
#include "../peers/verbs.h"
#include "../probes.h"
#include "../puts.h"
#include "../singles.h"

#define BYTES 8

static enum bench_status setup(struct bench *b)
{
    return puts_setup(b, BYTES);
}

/* ---- The round trip ---- */

/* Words that the two blocks poll, on lines of their own, in the memory of the payloads. */
#define WORD_STRIDE 128

static enum bench_status round_trip_chunk(struct bench *b, enum db_order order, uint64_t first,
                                          uint32_t warmup, uint32_t count)
{
    struct puts *puts = b->state;
    uint8_t *device = puts->payloads.buffer.device;
    struct puts_results *results = puts->results.host, *on_gpu = puts->results.buffer.device;
    struct db_keys keys = puts->payloads.keys;
    struct bench_round_trip_args args = {
        .order = order,
        .first = first,
        .warmup = warmup,
        .count = count,
        .timeout_ns = b->options->timeout_ns / 64,
        .ticks = on_gpu->issue,
        .status = on_gpu->status,
        .span = &on_gpu->span,
    };
    for (int i = 0; i < 2; i++) {
        args.qp[i] = puts->pair.qp[i];
        args.word[i] = (uint64_t *)(void *)(device + i * WORD_STRIDE);
        args.raddr[i] = keys.iova + (uint64_t)(1 - i) * WORD_STRIDE;
        args.rkey[i] = keys.rkey;
    }
    enum bench_status result = transport_run(b, &puts->transport, &bench_round_trip, 2, 1, &args);
    if (result == BENCH_PASS)
        result = transport_block_fetch(b, &puts->transport, &puts->results);
    for (int i = 0; i < 2 && result == BENCH_PASS; i++)
        result = transport_check(b, &puts->pair, results->status[i]);
    if (result != BENCH_PASS)
        return result;
    double ns_per_tick = transport_ns_per_tick(b, &puts->transport, &results->span);
    for (uint32_t i = 0; i < count; i++)
        bench_samples_add(&puts->complete,
                          (double)bench_interval_ticks(results->issue[i]) * ns_per_tick);
    /* The count is the payload: each value came back, or the kernel would have timed out. */
    uint64_t words[2 * WORD_STRIDE / sizeof(uint64_t)];
    if (puts->transport.gpu->backend->copy(puts->transport.gpu, words, device, sizeof(words)))
        return bench_fail(b, "%s", db_gpu_error_text());
    for (size_t i = 0; i < 2; i++)
        if (words[i * WORD_STRIDE / sizeof(uint64_t)] != first + warmup + count)
            return bench_fail(b, "round trip: the last count did not arrive at block %zu", i);
    return BENCH_PASS;
}

static enum bench_status round_trip(struct bench *b, enum db_order order)
{
    struct puts *puts = b->state;
    enum bench_status status = BENCH_PASS;
    struct bench_pace pace;
    uint64_t n, first = 0;

    bench_samples_clear(&puts->complete);
    static const uint8_t zeroes[2 * WORD_STRIDE];
    struct db_gpu *gpu = puts->transport.gpu;
    if (gpu->backend->copy(gpu, puts->payloads.buffer.device, zeroes, sizeof(zeroes)))
        return bench_fail(b, "%s", db_gpu_error_text());
    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        uint32_t warmup = (uint32_t)b->options->warmup_iters;
        bench_pace_start(&pace, b, "round trips");
        while (status == BENCH_PASS && (n = bench_pace_next(&pace, PUTS_CHUNK)) > 0) {
            status = round_trip_chunk(b, order, first, warmup, (uint32_t)n);
            first += warmup + n;
            warmup = 16;
        }
    }
    if (status == BENCH_FAIL && order < puts->pair.order)
        return puts_lost(b, order);
    if (status != BENCH_PASS)
        return status;
    struct bench_record record = {
        .system = "mini-gda",
        .metric = "round_trip",
        .unit = "us",
        .msg_bytes = BYTES,
        .valid = BENCH_VALID,
    };
    puts_config(puts, true, order, DB_WITH_RECORD, 2, record.config);
    if (order == DB_ORDER_GPU) {
        record.references[0] = "R043";
        record.references[1] = "R046";
    }
    return bench_report(b, &record, &puts->complete);
}

/* The ring is in host memory, so system scope is the safe order; gpu scope is measured as the
 * paper's default. */
static const struct puts_variant variants[] = {
    {true, DB_ORDER_SYSTEM, DB_WITH_RECORD, BYTES, {NULL}, {NULL}},
    {true, DB_ORDER_GPU, DB_WITH_RECORD, BYTES, {"R041", "R044"}, {"R042", "R045"}},
    {false, DB_ORDER_GPU, DB_WITH_RECORD, BYTES, {"R047", "R049"}, {"R048", "R050"}},
    {true, DB_ORDER_NONE_UNSAFE, DB_WITH_RECORD, BYTES, {"R051", "R053"}, {"R052", "R054"}},
};

/* ---- Through a proxy ---- */

static const struct singles_row protocols[] = {
    {"baseline", DB_RING_BASELINE, false, {"R087", "R090"}, {"R088", "R091"}},
    {"tuned", DB_RING_TUNED, false, {"R093", "R096"}, {"R094", "R097"}},
    {"tuned, payload released", DB_RING_PAYLOAD, false, {NULL}, {NULL}},
};

static enum bench_status proxied_puts(struct bench *b, struct transport *t)
{
    struct singles singles;
    enum bench_status status = singles_open(b, t, BYTES, &singles);

    for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]) && status == BENCH_PASS; i++)
        status = singles_row(b, &singles, &protocols[i]);
    singles_close(&singles);
    return status;
}

/* Each end with a worker of its own, where the machine has the cores. */
static enum bench_status proxied_round_trips(struct bench *b, struct transport *t)
{
    const struct probe probed[] = {
        {.protocol = DB_PROTOCOL_BASELINE, .reference = {"R089", "R092"}},
        {.protocol = DB_PROTOCOL_BEST, .reference = {"R095", "R098", "R105", "R107"}},
    };
    struct probes probes;
    enum bench_status status = probes_open(b, t, &probes);

    for (size_t i = 0; i < sizeof(probed) / sizeof(probed[0]) && status == BENCH_PASS; i++) {
        struct probe s = probed[i];
        s.proxied = true;
        s.threads = 1;
        s.rings = 2;
        s.workers = lanes_workers(t, 2);
        s.batch = 1;
        status = probes_run(b, &probes, &s);
    }
    probes_close(&probes);
    return status;
}

static enum bench_status run(struct bench *b)
{
    struct puts *puts = b->state;
    enum bench_status status =
        puts_measure_all(b, variants, sizeof(variants) / sizeof(variants[0]));

    if (status != BENCH_FAIL)
        status = bench_worse(status, round_trip(b, DB_ORDER_SYSTEM));
    if (status != BENCH_FAIL)
        status = bench_worse(status, round_trip(b, DB_ORDER_GPU));
    if (status != BENCH_FAIL)
        status = bench_worse(status, proxied_puts(b, &puts->transport));
    if (status != BENCH_FAIL)
        status = bench_worse(status, proxied_round_trips(b, &puts->transport));
    if (status != BENCH_FAIL)
        status = bench_worse(status, verbs_latency(b, &puts->transport.info, BYTES));
    if (status != BENCH_FAIL)
        status = bench_worse(status, line_round_trip(b));
    return status;
}

const struct bench_case bench_case_one_op = {
    .name = "one-op",
    .paper = {"T3"},
    .summary = "one 8 B put at a time: issue, put + completion, round trip; beside libmlx5",
    .uses = PUTS_USES | LANES_USES,
    LANES_LEAST_DEPTH,
    .setup = setup,
    .run = run,
    .teardown = puts_teardown,
};
