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
    struct db_queue_attr attr = transport_queue_attr(b, DEPTH);
    status = transport_connect(b, t, &attr, &puts->pair);
    if (status != BENCH_PASS)
        return status;
    status = transport_alloc(b, t, 2ull * PUTS_CHUNK * puts->max_bytes, &puts->payloads);
    if (status != BENCH_PASS)
        return status;
    if (t->gpu->backend->alloc(t->gpu, DB_GPU_MEMORY_HOST, (2 * PUTS_CHUNK + 1) * sizeof(uint64_t),
                               &puts->results))
        return bench_fail(b, "%s", db_gpu_error_text());
    return BENCH_PASS;
}

void puts_teardown(struct bench *b)
{
    struct puts *puts = b->state;
    if (!puts)
        return;
    if (puts->results.host)
        puts->transport.gpu->backend->free(puts->transport.gpu, &puts->results);
    transport_free(&puts->transport, &puts->payloads);
    transport_disconnect(&puts->pair);
    transport_close(&puts->transport);
    bench_samples_free(&puts->issue);
    bench_samples_free(&puts->complete);
    free(puts);
}

static uint8_t *target_of(struct puts *puts, uint32_t slot)
{
    return (uint8_t *)puts->payloads.buffer.host + (uint64_t)(PUTS_CHUNK + slot) * puts->max_bytes;
}

/* New sources, and targets that hold none of them. */
static void fill(const struct bench *b, struct puts *puts, uint32_t bytes, uint32_t count)
{
    for (uint32_t slot = 0; slot < count; slot++) {
        uint8_t *source = (uint8_t *)puts->payloads.buffer.host + (uint64_t)slot * puts->max_bytes;
        bench_payload_fill(source, bytes, b->options->seed, puts->round + slot);
        memset(target_of(puts, slot), 0, puts->max_bytes);
    }
}

/* Every payload of the chunk arrived, byte for byte. */
static enum bench_status check(const struct bench *b, struct puts *puts, uint32_t bytes,
                               uint32_t count, enum bench_valid *valid)
{
    for (uint32_t slot = 0; slot < count; slot++) {
        enum bench_status status =
            bench_check_payload(b, valid, target_of(puts, slot), bytes, puts->round + slot);
        if (status != BENCH_PASS)
            return status;
    }
    return BENCH_PASS;
}

/* `warmup` puts nobody times, then `count` that are. */
static enum bench_status run_chunk(struct bench *b, const struct puts_variant *variant,
                                   uint32_t warmup, uint32_t count, enum bench_valid *valid)
{
    struct puts *puts = b->state;
    struct transport *t = &puts->transport;
    uint64_t *ticks = puts->results.host, *device_ticks = puts->results.device;
    int32_t *status = (int32_t *)(void *)(ticks + (size_t)2 * PUTS_CHUNK);
    uint32_t slots = warmup + count < PUTS_CHUNK ? warmup + count : PUTS_CHUNK;
    struct bench_put_args args = {
        .qp = puts->pair.qp[0],
        .payloads = {.laddr = puts->payloads.keys.iova,
                     .raddr = puts->payloads.keys.iova + (uint64_t)PUTS_CHUNK * puts->max_bytes,
                     .lkey = puts->payloads.keys.lkey,
                     .rkey = puts->payloads.keys.rkey,
                     .bytes = variant->bytes,
                     .stride = puts->max_bytes,
                     .slots = slots},
        .inlined = variant->inlined,
        .order = variant->order,
        .record = puts->pair.qp[0]->with_record,
        .warmup = warmup,
        .count = count,
        .issue = device_ticks,
        .complete = device_ticks + PUTS_CHUNK,
        .status = (int32_t *)(void *)(device_ticks + (size_t)2 * PUTS_CHUNK),
    };

    fill(b, puts, variant->bytes, slots);
    *status = DB_OK;
    enum bench_status result = transport_run(b, t, &bench_put, 1, 1, &args);
    if (result == BENCH_PASS)
        result = transport_check(b, &puts->pair, *status);
    if (result != BENCH_PASS)
        return result;
    for (uint32_t i = 0; i < count; i++) {
        bench_samples_add(&puts->issue, (double)ticks[i] * t->ns_per_tick);
        bench_samples_add(&puts->complete, (double)ticks[PUTS_CHUNK + i] * t->ns_per_tick);
    }
    result = check(b, puts, variant->bytes, slots, valid);
    puts->round += slots;
    return result;
}

static enum bench_status report(struct bench *b, const struct puts_variant *variant,
                                const char *metric, enum bench_valid valid,
                                const char *const *references, const struct bench_samples *samples)
{
    const struct puts *puts = b->state;
    struct bench_record record = {
        .system = "mini-gda",
        .config = {{"payload", variant->inlined ? "inline" : "pointer", 0},
                   {"ordering", puts_order_name(variant->order), 0},
                   {"record", puts->pair.qp[0]->with_record == DB_WITH_RECORD ? "with" : "without",
                    0},
                   {"ring", "host memory", 0},
                   {"threads", NULL, 1},
                   {"queues", NULL, 1}},
        .metric = metric,
        .unit = "us",
        .msg_bytes = variant->bytes,
        .valid = valid,
    };
    memcpy(record.references, references, sizeof(record.references));
    return bench_report(b, &record, samples);
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
    if (status == BENCH_FAIL && valid != BENCH_INVALID)
        return status; /* nothing was measured to its end */
    status = bench_worse(
        status, report(b, variant, "issue", valid, variant->issue_reference, &puts->issue));
    return bench_worse(status, report(b, variant, "put_completion", valid,
                                      variant->complete_reference, &puts->complete));
}
