/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting rates, measured and checked; see rates.h.
 */
#include "rates.h"

#include <stdlib.h>
#include <string.h>

/* Deep enough for two batches of 32 WQEs of 4 blocks in flight and for 256 threads at once. */
#define DEPTH 1024

/* A run is as long as this, from the rate of a first short one. */
#define RUN_NS      100000000.0
#define FIRST_PUTS  16384u
#define WORDS_BYTES (BENCH_RATE_SLOTS * sizeof(uint64_t)) /* of one thread on one queue */

/* What the kernel's arguments point to, in one buffer. */
struct tables {
    struct db_qp *qps[RATES_QUEUES_MAX];
    uint64_t raddr[RATES_QUEUES_MAX];
    uint32_t rkey[RATES_QUEUES_MAX];
    uint64_t start_ns[RATES_THREADS_MAX];
    uint64_t end_ns[RATES_THREADS_MAX];
    int32_t status[RATES_THREADS_MAX];
    uint8_t payload[DB_MAX_INLINE];
};

enum bench_status rates_setup(struct bench *b)
{
    struct rates *rates = calloc(1, sizeof(*rates));
    if (!rates)
        return bench_fail(b, "no memory");
    b->state = rates;
    enum bench_status status = transport_open(b, &rates->transport);
    if (status != BENCH_PASS)
        return status;
    struct db_gpu *gpu = rates->transport.gpu;
    if (gpu->backend->alloc(gpu, DB_GPU_MEMORY_HOST, sizeof(struct tables), &rates->tables))
        return bench_fail(b, "%s", db_gpu_error_text());
    return BENCH_PASS;
}

/* Queues and targets for one variant; the last variant's queues that suit are kept. */
static enum bench_status prepare(struct bench *b, const struct rates_variant *variant)
{
    struct rates *rates = b->state;
    struct transport *t = &rates->transport;
    struct db_queue_attr attr = transport_queue_attr(b, DEPTH);
    uint64_t threads = (uint64_t)variant->ctas * variant->threads;
    size_t bytes = (size_t)variant->queues * threads * WORDS_BYTES;

    while (rates->pairs < variant->queues) {
        struct transport_pair *pair = &rates->pair[rates->pairs++];
        enum bench_status status = transport_connect(b, t, &attr, pair);
        if (status != BENCH_PASS)
            return status;
    }
    if (bytes <= rates->targets.buffer.bytes)
        return BENCH_PASS;
    transport_free(t, &rates->targets);
    return transport_alloc(b, t, bytes, &rates->targets);
}

void rates_teardown(struct bench *b)
{
    struct rates *rates = b->state;
    if (!rates)
        return;
    for (uint32_t i = 0; i < rates->pairs; i++)
        transport_disconnect(&rates->pair[i]);
    transport_free(&rates->transport, &rates->targets);
    if (rates->tables.host)
        rates->transport.gpu->backend->free(rates->transport.gpu, &rates->tables);
    transport_close(&rates->transport);
    free(rates);
}

/* Launches the kernel; the rate in puts a nanosecond, from the first start to the last end. */
static enum bench_status launch(struct bench *b, const struct rates_variant *variant, uint64_t puts,
                                double *rate)
{
    struct rates *rates = b->state;
    struct tables *tables = rates->tables.host, *device = rates->tables.device;
    uint32_t threads = variant->ctas * variant->threads;
    struct bench_rate_args args = {
        .qps = device->qps,
        .raddr = device->raddr,
        .rkey = device->rkey,
        .queues = variant->queues,
        .sharing = variant->sharing,
        .order = rates->pair[0].qp[0]->order,
        .batch = variant->batch,
        .bytes = variant->bytes,
        .payload = (uintptr_t)device->payload,
        .puts = puts,
        .start_ns = device->start_ns,
        .end_ns = device->end_ns,
        .status = device->status,
    };
    for (uint32_t q = 0; q < variant->queues; q++) {
        tables->qps[q] = rates->pair[q].qp[0];
        tables->raddr[q] = rates->targets.keys.iova + (uint64_t)q * threads * WORDS_BYTES;
        tables->rkey[q] = rates->targets.keys.rkey;
    }
    enum bench_status status =
        transport_run(b, &rates->transport, &bench_rate, variant->ctas, variant->threads, &args);
    uint64_t start = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < threads && status == BENCH_PASS; i++) {
        uint32_t q = variant->sharing == BENCH_PRIVATE ? i : i / variant->threads;
        status = transport_check(b, &rates->pair[q % variant->queues], tables->status[i]);
        start = tables->start_ns[i] < start ? tables->start_ns[i] : start;
        end = tables->end_ns[i] > end ? tables->end_ns[i] : end;
    }
    *rate = end > start ? (double)puts * threads / (double)(end - start) : 0;
    return status;
}

/* ---- Whether every word holds what was put there last ---- */

static uint32_t queues_of(const struct rates_variant *variant, uint32_t thread)
{
    uint32_t threads = variant->ctas * variant->threads;
    return (variant->queues - thread + threads - 1) / threads;
}

/* The values of a thread's words on its n-th queue. */
static void expect_words(const struct rates_variant *variant, uint32_t thread, uint32_t n,
                         uint64_t puts, uint64_t *words)
{
    uint32_t queues = variant->sharing == BENCH_PRIVATE ? queues_of(variant, thread) : 1;
    uint32_t batch = variant->sharing == BENCH_PRIVATE ? variant->batch : 1;
    memset(words, 0, WORDS_BYTES);
    for (uint64_t i = 0; i < puts; i++)
        if (i / batch % queues == n)
            words[i % BENCH_RATE_SLOTS] = i + 1;
}

static enum bench_status check_thread(struct bench *b, const struct rates_variant *variant,
                                      uint32_t thread, uint32_t n, uint64_t puts)
{
    struct rates *rates = b->state;
    uint32_t threads = variant->ctas * variant->threads;
    uint32_t q = variant->sharing == BENCH_PRIVATE ? thread + n * threads
                                                   : thread / variant->threads % variant->queues;
    const uint64_t *words = (const uint64_t *)rates->targets.buffer.host +
                            ((uint64_t)q * threads + thread) * BENCH_RATE_SLOTS;
    uint64_t expected[BENCH_RATE_SLOTS];

    expect_words(variant, thread, n, puts, expected);
    for (uint32_t i = 0; i < BENCH_RATE_SLOTS; i++)
        if (words[i] != expected[i])
            return bench_fail(
                b, "queue %u, thread %u: word %u at offset %zu is %llu, %llu was put", q, thread, i,
                (size_t)((const uint8_t *)&words[i] - (const uint8_t *)rates->targets.buffer.host),
                (unsigned long long)words[i], (unsigned long long)expected[i]);
    return BENCH_PASS;
}

/* Payloads that are no words are one pattern for all. */
static enum bench_status check(struct bench *b, const struct rates_variant *variant, uint64_t puts,
                               enum bench_valid *valid)
{
    struct rates *rates = b->state;
    uint32_t threads = variant->ctas * variant->threads;
    enum bench_status status = BENCH_PASS;

    if (!b->options->check)
        return BENCH_PASS;
    if (bench_given(b->options, BENCH_OPT_INJECT))
        *((uint8_t *)rates->targets.buffer.host +
          b->options->flip_offset % rates->targets.buffer.bytes) ^= 1;
    for (uint32_t thread = 0; thread < threads && status == BENCH_PASS; thread++) {
        uint32_t queues = variant->sharing == BENCH_PRIVATE ? queues_of(variant, thread) : 1;
        for (uint32_t n = 0; n < queues && status == BENCH_PASS; n++) {
            if (variant->bytes == sizeof(uint64_t)) {
                status = check_thread(b, variant, thread, n, puts);
                continue;
            }
            uint8_t *at = (uint8_t *)rates->targets.buffer.host +
                          ((uint64_t)(thread + n * threads) * threads + thread) * WORDS_BYTES;
            status = bench_check_payload(b, valid, at, variant->bytes, 0);
        }
    }
    *valid = status == BENCH_PASS ? BENCH_VALID : BENCH_INVALID;
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
    default:
        return "warp";
    }
}

static enum bench_status report(struct bench *b, const struct rates_variant *variant, uint64_t puts,
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
                   {"batch", NULL, variant->batch}},
        .metric = "rate",
        .unit = "M msg/s",
        .msg_bytes = variant->bytes,
        .iterations = puts * threads * b->options->repetitions,
        .valid = valid,
    };
    memcpy(record.references, variant->reference, sizeof(record.references));
    return bench_report(b, &record, samples);
}

/* A multiple of every batch that the kernel posts. */
static uint64_t whole_batches(const struct rates_variant *variant, double puts)
{
    uint64_t batches = (uint64_t)(puts / variant->batch);
    return (batches ? batches : 1) * variant->batch;
}

enum bench_status rates_measure(struct bench *b, const struct rates_variant *variant)
{
    struct rates *rates = b->state;
    struct bench_samples samples = {0};
    uint32_t threads = variant->ctas * variant->threads;
    uint64_t puts = whole_batches(variant, (double)FIRST_PUTS / threads);
    enum bench_valid valid = BENCH_UNCHECKED;
    double rate = 0;

    enum bench_status status = prepare(b, variant);
    if (status != BENCH_PASS)
        return status;
    if (bench_samples_init(&samples, b->options->repetitions))
        return bench_fail(b, "no memory for the samples");
    bench_payload_fill(((struct tables *)rates->tables.host)->payload, variant->bytes,
                       b->options->seed, 0);
    status = launch(b, variant, puts, &rate);
    if (bench_given(b->options, BENCH_OPT_ITERS))
        puts = whole_batches(variant, (double)b->options->iters);
    else
        puts = whole_batches(variant, rate * RUN_NS / threads);
    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        memset(rates->targets.buffer.host, 0, rates->targets.buffer.bytes);
        status = launch(b, variant, puts, &rate);
        if (status == BENCH_PASS)
            status = check(b, variant, puts, &valid);
        bench_samples_add(&samples, rate * 1e3);
    }
    if (status == BENCH_PASS || valid == BENCH_INVALID)
        status = bench_worse(status, report(b, variant, puts, valid, &samples));
    bench_samples_free(&samples);
    return status;
}
