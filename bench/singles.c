/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single puts on lanes; see singles.h.
 */
#include "singles.h"

#include <stdlib.h>
#include <string.h>

/* What the kernels write. */
struct results {
    struct bench_interval issue[SINGLES_CHUNK];
    uint64_t complete[SINGLES_CHUNK];
    uint64_t atomics;
    struct bench_span span;
    int32_t status;
    struct db_ring_progress asked; /* read by them: there is room */
};

/* Words of an 8-byte put's turn. */
#define SLOTS 64u

enum bench_status singles_open(struct bench *b, struct transport *t, size_t max_bytes,
                               struct singles *singles)
{
    size_t bytes = max_bytes < SLOTS * sizeof(uint64_t) ? SLOTS * sizeof(uint64_t) : max_bytes;

    *singles = (struct singles){.transport = t, .max_bytes = bytes};
    singles->copy = malloc(2 * bytes);
    if (!singles->copy || bench_samples_init(&singles->issue, bench_capacity(b)) ||
        bench_samples_init(&singles->complete, bench_capacity(b)))
        return bench_fail(b, "no memory for the samples");
    enum bench_status status = transport_alloc(b, t, 2 * bytes, &singles->memory);
    if (status == BENCH_PASS)
        status = transport_block_alloc(b, t, sizeof(struct results), &singles->results);
    return status;
}

void singles_close(struct singles *singles)
{
    if (!singles->transport)
        return;
    transport_block_free(singles->transport, &singles->results);
    transport_free(singles->transport, &singles->memory);
    bench_samples_free(&singles->issue);
    bench_samples_free(&singles->complete);
    free(singles->copy);
    *singles = (struct singles){0};
}

static enum bench_status copy(struct bench *b, struct singles *singles, bool to_gpu)
{
    struct db_gpu *gpu = singles->transport->gpu;
    void *there = singles->memory.buffer.device;
    size_t bytes = 2 * singles->max_bytes;

    if (gpu->backend->copy(gpu, to_gpu ? there : singles->copy, to_gpu ? singles->copy : there,
                           bytes))
        return bench_fail(b, "%s", db_gpu_error_text());
    return BENCH_PASS;
}

/* The kernel's arguments for a chunk, and its launch. */
static enum bench_status launch(struct bench *b, struct singles *singles, const struct lanes *lanes,
                                uint32_t steps, uint32_t bytes, uint32_t warmup, uint32_t count)
{
    struct results *on_gpu = singles->results.buffer.device;
    struct bench_enqueue_args enqueue = {
        .qp = lanes->qp[0],
        .steps = steps,
        .asked = singles->asks_gpu ? &on_gpu->asked : NULL,
        .raddr = lanes->remote.iova + singles->max_bytes,
        .laddr = lanes->local.iova,
        .rkey = lanes->remote.rkey,
        .lkey = lanes->local.lkey,
        .slots = SLOTS,
        .warmup = warmup,
        .count = count,
        .issue = on_gpu->issue,
        .complete = on_gpu->complete,
        .atomics = &on_gpu->atomics,
        .status = &on_gpu->status,
        .span = &on_gpu->span,
    };
    struct bench_single_args single = {
        .qp = enqueue.qp,
        .raddr = enqueue.raddr,
        .laddr = enqueue.laddr,
        .rkey = enqueue.rkey,
        .lkey = enqueue.lkey,
        .bytes = bytes,
        .warmup = warmup,
        .count = count,
        .issue = enqueue.issue,
        .complete = enqueue.complete,
        .status = enqueue.status,
        .span = enqueue.span,
    };

    if (steps == SINGLES_ANY)
        return transport_run(b, singles->transport, &bench_single, 1, 1, &single);
    bool more = singles->asks_gpu || steps == (DB_RING_SHARED | DB_RING_PAYLOAD);
    return transport_run(b, singles->transport, more ? &bench_enqueue_more : &bench_enqueue, 1, 1,
                         &enqueue);
}

/* What was put last is at the target: `bytes` of it, or the words of a turn that was gone through.
 */
static enum bench_status check(struct bench *b, struct singles *singles, size_t bytes)
{
    enum bench_status status = copy(b, singles, false);

    if (status == BENCH_PASS)
        status = bench_check_payload(b, &singles->valid, singles->copy + singles->max_bytes, bytes,
                                     singles->round);
    return status;
}

static enum bench_status run_chunk(struct bench *b, struct singles *singles,
                                   const struct lanes *lanes, uint32_t steps, size_t bytes,
                                   uint32_t warmup, uint32_t count)
{
    struct results *results = singles->results.host;
    uint32_t puts = warmup + count;
    size_t written = steps == SINGLES_ANY ? bytes : (puts < SLOTS ? puts : SLOTS) * 8u;

    singles->round++;
    memset(singles->copy, 0, 2 * singles->max_bytes);
    bench_payload_fill(singles->copy, written, b->options->seed, singles->round);
    results->status = DB_OK;
    results->asked = (struct db_ring_progress){.posted = UINT64_MAX / 2};
    enum bench_status status = copy(b, singles, true);
    if (status == BENCH_PASS)
        status = transport_block_store(b, singles->transport, &singles->results);
    if (status == BENCH_PASS)
        status = launch(b, singles, lanes, steps, (uint32_t)bytes, warmup, count);
    if (status == BENCH_PASS)
        status = transport_block_fetch(b, singles->transport, &singles->results);
    if (status == BENCH_PASS)
        status = lanes_check(b, lanes, results->status);
    if (status != BENCH_PASS)
        return status;
    singles->pushes += puts;
    singles->atomics = results->atomics;
    double ns_per_tick = transport_ns_per_tick(b, singles->transport, &results->span);
    for (uint32_t i = 0; i < count; i++) {
        bench_samples_add(&singles->issue,
                          (double)bench_interval_ticks(results->issue[i]) * ns_per_tick);
        bench_samples_add(&singles->complete, (double)results->complete[i] * ns_per_tick);
    }
    return check(b, singles, written);
}

enum bench_status singles_measure(struct bench *b, struct singles *singles,
                                  const struct lanes *lanes, uint32_t steps, size_t bytes)
{
    enum bench_status status = BENCH_PASS;
    struct bench_pace pace;
    uint64_t n;

    bench_samples_clear(&singles->issue);
    bench_samples_clear(&singles->complete);
    singles->valid = BENCH_UNCHECKED;
    singles->pushes = singles->atomics = 0;
    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        uint32_t warmup = (uint32_t)b->options->warmup_iters;
        bench_pace_start(&pace, b, lanes_system(lanes));
        while (status == BENCH_PASS && (n = bench_pace_next(&pace, SINGLES_CHUNK)) > 0) {
            status = run_chunk(b, singles, lanes, steps, bytes, warmup, (uint32_t)n);
            warmup = 16; /* a new launch finds cold caches again */
        }
    }
    return status;
}

enum bench_status singles_report(struct bench *b, struct singles *singles,
                                 struct bench_record *record, const char *const *issue_references,
                                 const char *const *complete_references)
{
    record->unit = "us";
    record->valid = singles->valid;
    record->metric = "issue";
    memcpy(record->references, issue_references, sizeof(record->references));
    enum bench_status status = bench_report(b, record, &singles->issue);
    record->metric = "put_completion";
    memcpy(record->references, complete_references, sizeof(record->references));
    return bench_worse(status, bench_report(b, record, &singles->complete));
}

enum bench_status singles_row(struct bench *b, struct singles *singles,
                              const struct singles_row *row)
{
    const struct lanes_attr attr = {
        .proxied = row != NULL,
        .count = 1,
        .producers = row && row->steps & DB_RING_ATOMIC ? 2 : 1,
    };
    static const char *const none[BENCH_REFERENCES_MAX];
    struct lanes lanes;

    singles->asks_gpu = row && row->asks_gpu;
    enum bench_status status = lanes_open(b, singles->transport, &attr, &singles->memory, &lanes);
    if (status == BENCH_PASS)
        status = singles_measure(b, singles, &lanes, row ? row->steps : SINGLES_ANY, 8);
    if (status == BENCH_PASS) {
        struct bench_record record = {.system = lanes_system(&lanes), .msg_bytes = 8};
        record.config[0] = (struct bench_config){"protocol", row ? row->name : "db_put", 0};
        bool released = !row || row->steps & (DB_RING_RELEASE | DB_RING_PAYLOAD);
        record.config[1] = (struct bench_config){
            "payload", released ? "pointer, released" : "pointer, visible before", 0};
        size_t used = lanes_config(&lanes, record.config, 2);
        if (row && singles->pushes > 0)
            record.config[used] =
                (struct bench_config){"atomics_per_push", NULL, singles->atomics / singles->pushes};
        status = singles_report(b, singles, &record, row ? row->issue : none,
                                row ? row->complete : none);
    }
    lanes_close(&lanes);
    return status;
}
