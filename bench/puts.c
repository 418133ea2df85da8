/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single puts, timed and checked; see puts.h.
 */
#include "puts.h"

#include <stdlib.h>
#include <string.h>

/* Deep enough that the one outstanding put never waits for room. */
#define DEPTH 256

const char *puts_order_name(enum db_order order)
{
    static const char *const names[] = {
        [DB_ORDER_NONE_UNSAFE] = "none (unsafe)",
        [DB_ORDER_GPU] = "gpu scope",
        [DB_ORDER_SYSTEM] = "system scope",
    };
    return names[order];
}

enum bench_status puts_setup(struct bench *b, uint32_t max_bytes)
{
    struct puts *puts = calloc(1, sizeof(*puts));
    if (!puts)
        return bench_fail(b, "no memory");
    b->state = puts;
    puts->max_bytes = (max_bytes + 15) / 16 * 16;
    if (bench_samples_init(&puts->issue, bench_capacity(b)) ||
        bench_samples_init(&puts->complete, bench_capacity(b)))
        return bench_fail(b, "no memory for the samples");

    struct transport *t = &puts->transport;
    enum bench_status status = transport_open(b, t);
    if (status != BENCH_PASS)
        return status;
    puts->attr = transport_queue_attr(b, t, DEPTH);
    status = transport_connect(b, t, &puts->attr, &puts->pair);
    if (status == BENCH_PASS)
        status = transport_alloc(b, t, 2ull * PUTS_CHUNK * puts->max_bytes, &puts->payloads);
    if (status == BENCH_PASS)
        status = transport_block_alloc(b, t, sizeof(struct puts_results), &puts->results);
    if (status == BENCH_PASS)
        status = transport_block_alloc(b, t, (size_t)PUTS_CHUNK * puts->max_bytes, &puts->sources);
    puts->memory = puts->payloads.buffer.host;
    if (status == BENCH_PASS && !puts->memory)
        puts->memory = puts->copied = malloc(puts->payloads.buffer.bytes);
    if (status == BENCH_PASS && !puts->memory)
        status = bench_fail(b, "no memory for a copy of the payloads");
    return status;
}

void puts_teardown(struct bench *b)
{
    struct puts *puts = b->state;
    if (!puts)
        return;
    free(puts->copied);
    transport_block_free(&puts->transport, &puts->results);
    transport_block_free(&puts->transport, &puts->sources);
    transport_free(&puts->transport, &puts->payloads);
    transport_disconnect(&puts->transport, &puts->pair);
    transport_close(&puts->transport);
    bench_samples_free(&puts->issue);
    bench_samples_free(&puts->complete);
    free(puts);
}

/* Between the payloads and the copy that the host has of those in GPU memory. */
static enum bench_status copy_payloads(struct bench *b, struct puts *puts, bool to_gpu)
{
    struct db_gpu *gpu = puts->transport.gpu;
    const struct db_gpu_buffer *buffer = &puts->payloads.buffer;

    if (!puts->copied)
        return BENCH_PASS;
    if (gpu->backend->copy(gpu, to_gpu ? buffer->device : puts->copied,
                           to_gpu ? puts->copied : buffer->device, buffer->bytes))
        return bench_fail(b, "%s", db_gpu_error_text());
    return BENCH_PASS;
}

static uint8_t *target_of(struct puts *puts, uint32_t slot)
{
    return puts->memory + (uint64_t)(PUTS_CHUNK + slot) * puts->max_bytes;
}

/* New sources, and targets that hold none of them. */
static enum bench_status fill(struct bench *b, struct puts *puts, uint32_t bytes, uint32_t count)
{
    for (uint32_t slot = 0; slot < count; slot++) {
        uint8_t *source = puts->memory + (uint64_t)slot * puts->max_bytes;
        bench_payload_fill(source, bytes, b->options->seed, puts->round + slot);
        memset(target_of(puts, slot), 0, puts->max_bytes);
    }
    memcpy(puts->sources.host, puts->memory, (size_t)count * puts->max_bytes);
    enum bench_status status = transport_block_store(b, &puts->transport, &puts->sources);
    return status == BENCH_PASS ? copy_payloads(b, puts, true) : status;
}

/* Every payload of the chunk arrived, byte for byte. */
static enum bench_status check(struct bench *b, struct puts *puts, uint32_t bytes, uint32_t count,
                               enum bench_valid *valid)
{
    enum bench_status status = copy_payloads(b, puts, false);

    for (uint32_t slot = 0; slot < count && status == BENCH_PASS; slot++)
        status = bench_check_payload(b, valid, target_of(puts, slot), bytes, puts->round + slot);
    return status;
}

/* `warmup` puts nobody times, then `count` that are. */
static enum bench_status run_chunk(struct bench *b, const struct puts_variant *variant,
                                   uint32_t warmup, uint32_t count, enum bench_valid *valid)
{
    struct puts *puts = b->state;
    struct transport *t = &puts->transport;
    struct puts_results *results = puts->results.host, *on_gpu = puts->results.buffer.device;
    uint32_t slots = warmup + count < PUTS_CHUNK ? warmup + count : PUTS_CHUNK;
    struct bench_put_args args = {
        .qp = puts->pair.qp[0],
        .payloads = {.source = puts->sources.buffer.device,
                     .laddr = puts->payloads.keys.iova,
                     .raddr = puts->payloads.keys.iova + (uint64_t)PUTS_CHUNK * puts->max_bytes,
                     .lkey = puts->payloads.keys.lkey,
                     .rkey = puts->payloads.keys.rkey,
                     .bytes = variant->bytes,
                     .stride = puts->max_bytes,
                     .slots = slots},
        .inlined = variant->inlined,
        .order = variant->order,
        .record = variant->record,
        .warmup = warmup,
        .count = count,
        .issue = on_gpu->issue,
        .complete = on_gpu->complete,
        .status = on_gpu->status,
        .span = &on_gpu->span,
    };

    enum bench_status status = fill(b, puts, variant->bytes, slots);
    if (status == BENCH_PASS)
        status = transport_run(b, t, &bench_put, 1, 1, &args);
    if (status == BENCH_PASS)
        status = transport_block_fetch(b, t, &puts->results);
    if (status == BENCH_PASS)
        status = transport_check(b, &puts->pair, results->status[0]);
    if (status != BENCH_PASS)
        return status;
    double ns_per_tick = transport_ns_per_tick(b, t, &results->span);
    for (uint32_t i = 0; i < count; i++) {
        bench_samples_add(&puts->issue,
                          (double)bench_interval_ticks(results->issue[i]) * ns_per_tick);
        bench_samples_add(&puts->complete, (double)results->complete[i] * ns_per_tick);
    }
    status = check(b, puts, variant->bytes, slots, valid);
    puts->round += slots;
    return status;
}

void puts_config(const struct puts *puts, bool inlined, enum db_order order, enum db_record record,
                 uint32_t ends, struct bench_config *config)
{
    const struct bench_config words[] = {
        {"payload", inlined ? "inline" : "pointer", 0},
        {"ordering", puts_order_name(order), 0},
        {"record", transport_record_name(record), 0},
        {"doorbell", puts->transport.forwarder ? "forwarded" : "direct", 0},
        {"threads", NULL, ends},
        {"queues", NULL, ends},
    };

    memcpy(config, words, sizeof(words));
    size_t used = transport_queue_places(&puts->attr, config, sizeof(words) / sizeof(words[0]));
    transport_payload_place(&puts->payloads, config, used);
}

static enum bench_status report(struct bench *b, const struct puts_variant *variant,
                                const char *metric, enum bench_valid valid,
                                const char *const *references, const struct bench_samples *samples)
{
    const struct puts *puts = b->state;
    struct bench_record record = {
        .system = "mini-gda",
        .metric = metric,
        .unit = "us",
        .msg_bytes = variant->bytes,
        .valid = valid,
    };
    puts_config(puts, variant->inlined, variant->order, variant->record, 1, record.config);
    memcpy(record.references, references, sizeof(record.references));
    return bench_report(b, &record, samples);
}

enum bench_status puts_reconnect(struct bench *b)
{
    struct puts *puts = b->state;
    struct transport *t = &puts->transport;

    transport_disconnect(t, &puts->pair);
    return transport_connect(b, t, &puts->attr, &puts->pair);
}

enum bench_status puts_lost(struct bench *b, enum db_order order)
{
    const struct puts *puts = b->state;
    enum bench_status status =
        bench_degrade(b, "%s did not carry a put from a ring in %s, as it may not; no result",
                      puts_order_name(order), transport_place(puts->attr.ring));
    return bench_worse(status, puts_reconnect(b));
}

enum bench_status puts_measure(struct bench *b, const struct puts_variant *variant)
{
    struct puts *puts = b->state;
    enum bench_status status = BENCH_PASS;
    enum bench_valid valid = BENCH_UNCHECKED;
    struct bench_pace pace;
    uint64_t n;

    bench_samples_clear(&puts->issue);
    bench_samples_clear(&puts->complete);
    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        uint32_t warmup = (uint32_t)b->options->warmup_iters;
        bench_pace_start(&pace, b, variant->inlined ? "inline puts" : "puts");
        while (status == BENCH_PASS && (n = bench_pace_next(&pace, PUTS_CHUNK)) > 0) {
            status = run_chunk(b, variant, warmup, (uint32_t)n, &valid);
            warmup = 16; /* a new launch finds cold caches again */
        }
    }
    bool covered = variant->order >= puts->pair.order;
    if (status == BENCH_FAIL && !covered && !bench_given(b->options, BENCH_OPT_INJECT))
        return puts_lost(b, variant->order);
    if (status == BENCH_FAIL && valid != BENCH_INVALID)
        return status; /* nothing was measured to its end */
    status = bench_worse(
        status, report(b, variant, "issue", valid, variant->issue_reference, &puts->issue));
    return bench_worse(status, report(b, variant, "put_completion", valid,
                                      variant->complete_reference, &puts->complete));
}

enum bench_status puts_measure_all(struct bench *b, const struct puts_variant *variants,
                                   size_t count)
{
    enum bench_status status = BENCH_PASS;

    for (size_t i = 0; i < count && (status == BENCH_PASS || status == BENCH_DEGRADED); i++)
        status = bench_worse(status, puts_measure(b, &variants[i]));
    return status;
}
