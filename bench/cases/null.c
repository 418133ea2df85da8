/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The null experiment: what the harness itself costs and how it checks, with nothing in between.
 * Two readings of the timer around nothing; around the call of an empty function; the whole loop
 * for one sample; and a copy of one message by the CPU, whose payload is checked like that of any
 * transport.
 */
#include "../cases.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK 1000U

struct null_state {
    struct bench_samples samples;
    struct bench_samples loop; /* one for each chunk: nanoseconds for each iteration */
    void *source;
    void *target;
};

static void nothing(void)
{
}

/* Volatile, so that the call stays a call. */
static void (*volatile empty_operation)(void) = nothing;

static enum bench_status setup(struct bench *b)
{
    struct null_state *state = calloc(1, sizeof(*state));

    b->state = state;
    if (!state || bench_samples_init(&state->samples, bench_capacity(b)) ||
        bench_samples_init(&state->loop, bench_capacity(b)))
        return bench_fail(b, "no memory for the samples");
    return BENCH_PASS;
}

static void teardown(struct bench *b)
{
    struct null_state *state = b->state;

    if (!state)
        return;
    bench_samples_free(&state->samples);
    bench_samples_free(&state->loop);
    free(state);
}

static void time_nothing(struct bench_samples *samples, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t start = bench_ticks();
        uint64_t end = bench_ticks();

        bench_samples_add(samples, bench_ticks_ns(end - start));
    }
}

static void time_empty(struct bench_samples *samples, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t start = bench_ticks();
        empty_operation();
        uint64_t end = bench_ticks();

        bench_samples_add(samples, bench_ticks_ns(end - start));
    }
}

/* Measures one of the two loops above. */
static enum bench_status measure(struct bench *b, const char *metric,
                                 void (*loop)(struct bench_samples *, uint64_t), bool whole_loop)
{
    struct null_state *state = b->state;
    struct bench_record record = {.system = "null", .metric = metric, .unit = "ns"};
    struct bench_pace pace;
    uint64_t n;

    bench_samples_clear(&state->samples);
    bench_samples_clear(&state->loop);
    for (uint64_t r = 0; r < b->options->repetitions; r++) {
        for (uint64_t i = 0; i < b->options->warmup_iters; i++)
            empty_operation();
        bench_pace_start(&pace, b, metric);
        while ((n = bench_pace_next(&pace, CHUNK)) > 0) {
            uint64_t start = bench_ticks();
            loop(&state->samples, n);
            bench_samples_add(&state->loop, bench_ticks_ns(bench_ticks() - start) / (double)n);
        }
    }

    enum bench_status status = bench_report(b, &record, &state->samples);
    if (status != BENCH_PASS || !whole_loop)
        return status;
    record.metric = "harness_loop";
    record.iterations = b->options->duration_ns ? 0 : bench_capacity(b);
    return bench_report(b, &record, &state->loop);
}

static void time_copies(struct null_state *state, size_t bytes, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t start = bench_ticks();
        memcpy(state->target, state->source, bytes);
        uint64_t end = bench_ticks();

        bench_samples_add(&state->samples, bench_ticks_ns(end - start));
    }
}

/* One size: in each repetition another message, so that what an earlier one left is not taken for
 * it. */
static enum bench_status copy(struct bench *b, size_t bytes)
{
    struct null_state *state = b->state;
    struct bench_record record = {
        .system = "null", .metric = "copy", .unit = "ns", .msg_bytes = bytes};
    enum bench_status status = BENCH_PASS;
    struct bench_pace pace;
    uint64_t n;

    bench_samples_clear(&state->samples);
    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        bench_payload_fill(state->source, bytes, b->options->seed, r);
        memset(state->target, 0, bytes);
        bench_pace_start(&pace, b, "copy");
        while ((n = bench_pace_next(&pace, CHUNK)) > 0)
            time_copies(state, bytes, n);
        status = bench_check_payload(b, &record.valid, state->target, bytes, r);
    }
    return bench_worse(status, bench_report(b, &record, &state->samples));
}

static enum bench_status copies(struct bench *b)
{
    struct null_state *state = b->state;
    struct bench_sizes sizes = bench_sizes_of(b->options, 8);
    enum bench_status status = BENCH_PASS;
    uint64_t bytes;

    while (status == BENCH_PASS && bench_sizes_next(&sizes, &bytes)) {
        state->source = malloc((size_t)bytes);
        state->target = malloc((size_t)bytes);
        if (state->source && state->target)
            status = copy(b, (size_t)bytes);
        else
            status =
                bench_fail(b, "no memory for messages of %llu bytes", (unsigned long long)bytes);
        free(state->source);
        free(state->target);
    }
    return status;
}

static enum bench_status run(struct bench *b)
{
    enum bench_status status = measure(b, "timer", time_nothing, false);

    if (status == BENCH_PASS)
        status = measure(b, "empty_operation", time_empty, true);
    if (status == BENCH_PASS)
        status = copies(b);
    return status;
}

const struct bench_case bench_case_null = {
    .name = "null",
    .summary = "what the harness itself costs: its timer, an empty operation, a copy by the CPU",
    .uses = BENCH_USES_SIZES | BENCH_USES_PAYLOAD,
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
