/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting rates, measured; see rates.h. Whether what was put is there: rates_check.c.
 */
#include "rates.h"

#include <stdlib.h>
#include <string.h>

/* Deep enough for two batches of 32 WQEs of 4 blocks in flight and for 256 threads at once. */
#define DEPTH 1024

/* Where the puts of detached queues go, and by which key: nobody follows them. */
#define DETACHED_RADDR 0x7f0000000000u
#define DETACHED_RKEY  0x1234u

/* The first short run, whose rate gives the length of the others. */
#define FIRST_PUTS 16384u

enum bench_status rates_setup(struct bench *b)
{
    struct rates *rates = calloc(1, sizeof(*rates));
    if (!rates)
        return bench_fail(b, "no memory");
    b->state = rates;
    enum bench_status status = transport_open(b, &rates->transport);
    if (status != BENCH_PASS)
        return status;
    rates->attr = transport_queue_attr(b, &rates->transport, DEPTH);
    return transport_block_alloc(b, &rates->transport, sizeof(struct rates_tables), &rates->tables);
}

static void end(struct rates *rates)
{
    for (uint32_t i = 0; i < rates->pairs; i++)
        transport_disconnect(&rates->transport, &rates->pair[i]);
    transport_free(&rates->transport, &rates->targets);
    transport_block_free(&rates->transport, &rates->tables);
}

void rates_teardown(struct bench *b)
{
    struct rates *rates = b->state;
    if (!rates)
        return;
    end(rates);
    transport_close(&rates->transport);
    free(rates);
}

enum bench_status rates_begin_detached(struct bench *b, struct rates *rates,
                                       const struct transport *open)
{
    *rates = (struct rates){.transport = *open, .detached = true};
    rates->targets.keys = (struct db_keys){.iova = DETACHED_RADDR, .rkey = DETACHED_RKEY};
    rates->attr = transport_detached_attr(b, &rates->transport, DEPTH);
    return transport_block_alloc(b, &rates->transport, sizeof(struct rates_tables), &rates->tables);
}

void rates_end_detached(struct rates *rates)
{
    end(rates);
}

/* Queues and targets for one variant; the last variant's that suit are kept. */
static enum bench_status prepare(struct bench *b, struct rates *rates,
                                 const struct rates_variant *variant)
{
    struct transport *t = &rates->transport;
    uint64_t threads = (uint64_t)variant->ctas * variant->threads;
    size_t bytes = (size_t)(variant->queues * threads * RATES_WORDS_BYTES);

    while (rates->pairs < variant->queues) {
        struct transport_pair *pair = &rates->pair[rates->pairs++];
        enum bench_status status = rates->detached ? transport_detach(b, t, &rates->attr, pair)
                                                   : transport_connect(b, t, &rates->attr, pair);
        if (status != BENCH_PASS)
            return status;
    }
    if (rates->detached || bytes <= rates->targets.buffer.bytes)
        return BENCH_PASS;
    transport_free(t, &rates->targets);
    return transport_alloc(b, t, bytes, &rates->targets);
}

/* Everything that the kernel's arguments point to. A detached queue begins empty. */
static enum bench_status fill_tables(struct bench *b, struct rates *rates,
                                     const struct rates_variant *variant)
{
    struct rates_tables *tables = rates->tables.host;
    uint64_t threads = (uint64_t)variant->ctas * variant->threads;

    tables->running = (uint32_t)threads;
    for (uint32_t q = 0; q < variant->queues; q++) {
        tables->qps[q] = rates->pair[q].qp[0];
        tables->raddr[q] = rates->targets.keys.iova + q * threads * RATES_WORDS_BYTES;
        tables->rkey[q] = rates->targets.keys.rkey;
        if (rates->detached && db_queue_reset(rates->pair[q].queue[0]))
            return bench_fail(b, "%s", db_error_text());
    }
    return transport_block_store(b, &rates->transport, &rates->tables);
}

/* Those that post, and behind them those that play the device of detached queues. */
static uint32_t all_ctas(const struct rates *rates, const struct rates_variant *variant)
{
    uint32_t players = (variant->queues + variant->threads - 1) / variant->threads;
    return variant->ctas + (rates->detached ? players : 0);
}

/* Launches the kernel; the rate in puts a nanosecond, from the first start to the last end. */
static enum bench_status launch(struct bench *b, struct rates *rates,
                                const struct rates_variant *variant, uint64_t puts, double *rate)
{
    struct rates_tables *tables = rates->tables.host, *on_gpu = rates->tables.buffer.device;
    uint32_t threads = variant->ctas * variant->threads;
    struct bench_rate_args args = {
        .qps = on_gpu->qps,
        .raddr = on_gpu->raddr,
        .rkey = on_gpu->rkey,
        .queues = variant->queues,
        .blocks = variant->ctas,
        .running = &on_gpu->running,
        .timeout_ns = 2 * b->options->timeout_ns,
        .sharing = variant->sharing,
        .order = rates->pair[0].order,
        .record = variant->record,
        .batch = variant->batch,
        .bytes = variant->bytes,
        .payload = (uintptr_t)on_gpu->payload,
        .puts = puts,
        .start_ns = on_gpu->start_ns,
        .end_ns = on_gpu->end_ns,
        .status = on_gpu->status,
    };
    enum bench_status status = fill_tables(b, rates, variant);
    if (status == BENCH_PASS)
        status = transport_run(b, &rates->transport, &bench_rate, all_ctas(rates, variant),
                               variant->threads, &args);
    if (status == BENCH_PASS)
        status = transport_block_fetch(b, &rates->transport, &rates->tables);
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < threads && status == BENCH_PASS; i++) {
        uint32_t q = variant->sharing == BENCH_PRIVATE ? i : i / variant->threads;
        status = transport_check(b, &rates->pair[q % variant->queues], tables->status[i]);
        first = tables->start_ns[i] < first ? tables->start_ns[i] : first;
        last = tables->end_ns[i] > last ? tables->end_ns[i] : last;
    }
    *rate = last > first ? (double)puts * threads / (double)(last - first) : 0;
    return status;
}

/* ---- One variant ---- */

static const char *sharing_name(const struct rates_variant *variant)
{
    switch (variant->sharing) {
    case BENCH_PRIVATE:
        return variant->queues == 1 ? "one thread" : "private";
    case BENCH_LOCK:
        return "lock per WQE";
    case BENCH_HANDOFF:
        return "slot hand-off";
    case BENCH_TICKET:
        return "ticket";
    case BENCH_WARP:
        return "warps of a block";
    default:
        return "one warp";
    }
}

static enum bench_status report(struct bench *b, const struct rates *rates,
                                const struct rates_variant *variant, uint64_t puts,
                                enum bench_valid valid, const struct bench_samples *samples)
{
    uint32_t threads = variant->ctas * variant->threads;
    struct bench_record record = {
        .system = "mini-gda",
        .config = {{"payload", "inline", 0},
                   {"sharing", sharing_name(variant), 0},
                   {"threads", NULL, threads},
                   {"ctas", NULL, variant->ctas},
                   {"queues", NULL, variant->queues},
                   {"batch", NULL, variant->batch},
                   {"record", transport_record_name(variant->record), 0},
                   {"doorbell", rates->transport.forwarder ? "forwarded" : "direct", 0}},
        .metric = "rate",
        .unit = "M msg/s",
        .msg_bytes = variant->bytes,
        .iterations = puts * threads * b->options->repetitions,
        .valid = valid,
    };
    size_t used = transport_queue_places(&rates->attr, record.config, 8);
    if (!rates->detached)
        used = transport_payload_place(&rates->targets, record.config, used);
    else
        record.config[used++] = (struct bench_config){"device", "none: the GPU reclaims slots", 0};
    uint32_t os_threads = transport_os_threads(&rates->transport, all_ctas(rates, variant));
    if (os_threads) {
        record.config[used++] = (struct bench_config){"os_threads", NULL, os_threads};
        record.config[used++] = (struct bench_config){"cpus", NULL, bench_cpus_allowed()};
    }
    memcpy(record.references, variant->reference, sizeof(record.references));
    return bench_report(b, &record, samples);
}

/* A multiple of every batch that the kernel posts. */
static uint64_t whole_batches(const struct rates_variant *variant, double puts)
{
    uint64_t batches = (uint64_t)(puts / variant->batch);
    return (batches ? batches : 1) * variant->batch;
}

static enum bench_status repeat(struct bench *b, struct rates *rates,
                                const struct rates_variant *variant, uint64_t puts,
                                enum bench_valid *valid, struct bench_samples *samples)
{
    enum bench_status status = BENCH_PASS;
    double rate = 0;

    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        status = rates_clear(b, rates);
        if (status == BENCH_PASS)
            status = launch(b, rates, variant, puts, &rate);
        if (status == BENCH_PASS)
            status = rates_check(b, rates, variant, puts, valid);
        bench_samples_add(samples, rate * 1e3);
    }
    return status;
}

enum bench_status rates_measure(struct bench *b, struct rates *rates,
                                const struct rates_variant *variant)
{
    struct bench_samples samples = {0};
    uint32_t threads = variant->ctas * variant->threads;
    uint64_t puts = whole_batches(variant, (double)FIRST_PUTS / threads);
    enum bench_valid valid = BENCH_UNCHECKED;
    double rate = 0;

    enum bench_status status = prepare(b, rates, variant);
    if (status != BENCH_PASS)
        return status;
    if (bench_samples_init(&samples, b->options->repetitions))
        return bench_fail(b, "no memory for the samples");
    bench_payload_fill(((struct rates_tables *)rates->tables.host)->payload, variant->bytes,
                       b->options->seed, 0);
    status = launch(b, rates, variant, puts, &rate);
    if (bench_given(b->options, BENCH_OPT_ITERS))
        puts = whole_batches(variant, (double)b->options->iters);
    else
        puts = whole_batches(variant, rate * bench_run_ns(b) / threads);
    if (status == BENCH_PASS)
        status = repeat(b, rates, variant, puts, &valid, &samples);
    if (status == BENCH_PASS)
        status = transport_read_clock(b, &rates->transport);
    if (status == BENCH_PASS || valid == BENCH_INVALID)
        status = bench_worse(status, report(b, rates, variant, puts, valid, &samples));
    bench_samples_free(&samples);
    return status;
}
