/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts as fast as they go; see floods.h.
 */
#include "floods.h"

#include <stdlib.h>
#include <string.h>

/* The first short run, whose rate gives the length of the others: so many puts, or bytes. */
#define FIRST_PUTS  4096u
#define FIRST_BYTES (64u << 20)

/* What the kernel's arguments point to. */
struct tables {
    struct db_qp *qps[LANES_MAX];
    uint64_t start_ns[LANES_MAX];
    uint64_t end_ns[LANES_MAX];
    int32_t status[LANES_MAX];
};

enum bench_status floods_open(struct bench *b, struct transport *t, size_t bytes,
                              struct floods *floods)
{
    *floods = (struct floods){.transport = t, .half = bytes, .copy = malloc(2 * bytes)};
    if (!floods->copy)
        return bench_fail(b, "no memory for %zu bytes of payloads", 2 * bytes);
    enum bench_status status = transport_alloc(b, t, 2 * bytes, &floods->memory);
    return status == BENCH_PASS
               ? transport_block_alloc(b, t, sizeof(struct tables), &floods->tables)
               : status;
}

void floods_close(struct floods *floods)
{
    if (!floods->transport)
        return;
    transport_block_free(floods->transport, &floods->tables);
    transport_free(floods->transport, &floods->memory);
    free(floods->copy);
    *floods = (struct floods){0};
}

static enum bench_status copy(struct bench *b, struct floods *floods, bool to_gpu)
{
    struct db_gpu *gpu = floods->transport->gpu;
    void *there = floods->memory.buffer.device;

    if (gpu->backend->copy(gpu, to_gpu ? there : floods->copy, to_gpu ? floods->copy : there,
                           2 * floods->half))
        return bench_fail(b, "%s", db_gpu_error_text());
    return BENCH_PASS;
}

/* The words that `puts` puts of each thread leave. */
static void expect_words(const struct lanes *lanes, uint64_t puts, uint64_t *words)
{
    for (uint32_t thread = 0; thread < lanes->count; thread++)
        for (uint64_t slot = 0; slot < FLOOD_SLOTS; slot++)
            words[thread * FLOOD_SLOTS + slot] =
                puts <= slot ? 0 : (puts - 1 - slot) / FLOOD_SLOTS * FLOOD_SLOTS + slot + 1;
}

static enum bench_status check_words(struct bench *b, struct floods *floods,
                                     const struct lanes *lanes, uint64_t puts,
                                     enum bench_valid *valid)
{
    uint64_t expected[LANES_MAX * FLOOD_SLOTS];
    uint8_t *got = floods->copy + floods->half;
    size_t bytes = lanes->count * FLOOD_SLOTS * sizeof(expected[0]);

    if (!b->options->check)
        return BENCH_PASS;
    if (bench_given(b->options, BENCH_OPT_INJECT))
        got[b->options->flip_offset % bytes] ^= 1;
    expect_words(lanes, puts, expected);
    *valid = BENCH_INVALID;
    for (size_t at = 0; at < bytes; at++)
        if (got[at] != ((const uint8_t *)expected)[at])
            return bench_fail(b, "%s: byte %zu is %#x, %#x was put there last", lanes_system(lanes),
                              at, got[at], ((const uint8_t *)expected)[at]);
    *valid = BENCH_VALID;
    return BENCH_PASS;
}

static enum bench_status check(struct bench *b, struct floods *floods, const struct lanes *lanes,
                               const struct flood *flood, uint64_t puts, enum bench_valid *valid)
{
    enum bench_status status = copy(b, floods, false);

    if (status != BENCH_PASS)
        return status;
    if (flood->by_value)
        return check_words(b, floods, lanes, puts, valid);
    size_t bytes = (size_t)lanes->count * FLOOD_SLOTS * flood->bytes;
    return bench_check_payload(b, valid, floods->copy + floods->half, bytes, floods->round);
}

/* One run; the rate in puts a nanosecond, from the first start to the last end. */
static enum bench_status launch(struct bench *b, struct floods *floods, const struct lanes *lanes,
                                const struct flood *flood, uint64_t puts, double *rate)
{
    struct tables *tables = floods->tables.host, *on_gpu = floods->tables.buffer.device;
    uint32_t ctas = flood->ctas ? flood->ctas : lanes->count;
    uint64_t start = UINT64_MAX, end = 0;
    struct bench_flood_args args = {
        .qps = on_gpu->qps,
        .raddr = lanes->remote.iova + floods->half,
        .laddr = lanes->local.iova,
        .rkey = lanes->remote.rkey,
        .lkey = lanes->local.lkey,
        .bytes = flood->bytes,
        .slots = FLOOD_SLOTS,
        .by_value = flood->by_value,
        .puts = puts,
        .window = flood->window ? flood->window : 1u << 30,
        .start_ns = on_gpu->start_ns,
        .end_ns = on_gpu->end_ns,
        .status = on_gpu->status,
    };

    memcpy(tables->qps, lanes->qp, sizeof(tables->qps));
    enum bench_status status = transport_block_store(b, floods->transport, &floods->tables);
    if (status == BENCH_PASS)
        status =
            transport_run(b, floods->transport, &bench_flood, ctas, lanes->count / ctas, &args);
    if (status == BENCH_PASS)
        status = transport_block_fetch(b, floods->transport, &floods->tables);
    for (uint32_t i = 0; i < lanes->count && status == BENCH_PASS; i++) {
        status = lanes_check(b, lanes, tables->status[i]);
        start = tables->start_ns[i] < start ? tables->start_ns[i] : start;
        end = tables->end_ns[i] > end ? tables->end_ns[i] : end;
    }
    *rate = end > start ? (double)puts * lanes->count / (double)(end - start) : 0;
    return status;
}

static uint64_t at_least_a_turn(double puts)
{
    return puts < FLOOD_SLOTS ? FLOOD_SLOTS : (uint64_t)puts;
}

enum bench_status floods_measure(struct bench *b, struct floods *floods, const struct lanes *lanes,
                                 const struct flood *flood, struct bench_samples *samples,
                                 uint64_t *puts, enum bench_valid *valid)
{
    double rate = 0;
    size_t bytes = (size_t)lanes->count * FLOOD_SLOTS * flood->bytes;
    uint32_t most = FIRST_BYTES / flood->bytes;
    uint64_t each = at_least_a_turn((double)(most < FIRST_PUTS ? most : FIRST_PUTS) / lanes->count);

    bench_samples_clear(samples);
    *valid = BENCH_UNCHECKED;
    *puts = 0;
    enum bench_status status = launch(b, floods, lanes, flood, each, &rate);
    each = at_least_a_turn(rate * bench_run_ns(b) / lanes->count);
    if (bench_given(b->options, BENCH_OPT_ITERS))
        each = at_least_a_turn((double)b->options->iters);
    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        floods->round++;
        memset(floods->copy, 0, 2 * floods->half);
        bench_payload_fill(floods->copy, bytes, b->options->seed, floods->round);
        status = copy(b, floods, true);
        if (status == BENCH_PASS)
            status = launch(b, floods, lanes, flood, each, &rate);
        if (status == BENCH_PASS)
            status = check(b, floods, lanes, flood, each, valid);
        bench_samples_add(samples, rate * 1e3);
        *puts += each * lanes->count;
    }
    return status == BENCH_PASS ? transport_read_clock(b, floods->transport) : status;
}
