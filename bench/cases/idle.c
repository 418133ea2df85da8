/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a proxy costs while nothing is to do, and how soon it is back: for each idle policy the CPU
 * time that a worker takes of an idle time, put + completion of the first put behind it, left alone
 * and woken by the host, and the rate under load.
 */
#include <stdlib.h>

#include "../cases.h"
#include "../floods.h"
#include "../singles.h"

#define ROUNDS   20u       /* first puts, at most: each is a sample */
#define IDLE_NS  50000000u /* before each first put */
#define SHARE_NS 500000000u
#define RINGS    8u

struct state {
    struct transport transport;
    struct singles singles;
    struct floods floods;
    struct bench_samples samples;
};

static enum bench_status setup(struct bench *b)
{
    struct state *state = calloc(1, sizeof(*state));
    if (!state)
        return bench_fail(b, "no memory");
    b->state = state;
    if (bench_samples_init(&state->samples, ROUNDS + b->options->repetitions))
        return bench_fail(b, "no memory for the samples");
    enum bench_status status = transport_open(b, &state->transport);
    if (status == BENCH_PASS)
        status = singles_open(b, &state->transport, 8, &state->singles);
    return status == BENCH_PASS
               ? floods_open(b, &state->transport, RINGS * FLOOD_SLOTS * 8, &state->floods)
               : status;
}

static void teardown(struct bench *b)
{
    struct state *state = b->state;
    if (!state)
        return;
    floods_close(&state->floods);
    singles_close(&state->singles);
    transport_close(&state->transport);
    bench_samples_free(&state->samples);
    free(state);
}

static enum bench_status report(struct bench *b, const struct lanes *lanes, const char *metric,
                                const char *unit, enum bench_valid valid)
{
    struct state *state = b->state;
    struct bench_record record = {
        .system = "mini-proxy", .metric = metric, .unit = unit, .valid = valid};

    lanes_config(lanes, record.config, 0);
    return bench_report(b, &record, &state->samples);
}

/* The share of a core, in percent, that the worker takes while nothing is to do. */
static enum bench_status share(struct bench *b, const struct lanes *lanes)
{
    struct state *state = b->state;
    struct db_worker_info before, after;

    if (db_proxy_query(lanes->proxy, 1, &before))
        return bench_fail(b, "%s", db_error_text());
    uint64_t began = bench_monotonic_ns();
    bench_sleep_ns(SHARE_NS);
    uint64_t ns = bench_monotonic_ns() - began;
    if (db_proxy_query(lanes->proxy, 1, &after))
        return bench_fail(b, "%s", db_error_text());
    bench_samples_clear(&state->samples);
    bench_samples_add(&state->samples, 100.0 * (double)(after.cpu_ns - before.cpu_ns) / (double)ns);
    return report(b, lanes, "idle_cpu_share", "%", BENCH_UNCHECKED);
}

static uint32_t rounds(const struct bench *b)
{
    return b->options->iters < ROUNDS ? (uint32_t)b->options->iters : ROUNDS;
}

/* The first put after an idle time, as the kernel's thread sees it. */
static enum bench_status first_put(struct bench *b, const struct lanes *lanes, bool wake)
{
    struct state *state = b->state;
    struct bench_options once = *b->options;
    const struct bench_options *all = b->options;
    enum bench_status status = BENCH_PASS;

    once.warmup_iters = 0;
    once.iters = 1;
    once.duration_ns = 0;
    once.repetitions = 1;
    bench_samples_clear(&state->samples);
    for (uint32_t i = 0; i < rounds(b) && status == BENCH_PASS; i++) {
        bench_sleep_ns(IDLE_NS);
        if (wake)
            db_proxy_wake(lanes->proxy);
        b->options = &once;
        status = singles_measure(b, &state->singles, lanes, SINGLES_ANY, 8);
        b->options = all;
        if (status == BENCH_PASS)
            bench_samples_add(&state->samples, state->singles.complete.value[0]);
    }
    return status == BENCH_PASS ? report(b, lanes, wake ? "first_put_woken" : "first_put", "us",
                                         state->singles.valid)
                                : status;
}

static enum bench_status rate(struct bench *b, enum db_proxy_idle idle)
{
    struct state *state = b->state;
    const struct lanes_attr attr = {.proxied = true, .count = RINGS, .proxy = {.idle = idle}};
    const struct flood flood = {.bytes = 8, .by_value = true};
    enum bench_valid valid = BENCH_UNCHECKED;
    struct lanes lanes;
    uint64_t puts;

    enum bench_status status =
        lanes_open(b, &state->transport, &attr, &state->floods.memory, &lanes);
    if (status == BENCH_PASS)
        status = floods_measure(b, &state->floods, &lanes, &flood, &state->samples, &puts, &valid);
    if (status == BENCH_PASS)
        status = report(b, &lanes, "rate", "M msg/s", valid);
    lanes_close(&lanes);
    return status;
}

static enum bench_status measure(struct bench *b, enum db_proxy_idle idle)
{
    struct state *state = b->state;
    const struct lanes_attr attr = {.proxied = true, .count = 1, .proxy = {.idle = idle}};
    struct lanes lanes;

    enum bench_status status =
        lanes_open(b, &state->transport, &attr, &state->singles.memory, &lanes);
    if (status == BENCH_PASS)
        status = share(b, &lanes);
    for (int wake = 0; wake < 2 && status == BENCH_PASS; wake++)
        status = first_put(b, &lanes, wake);
    lanes_close(&lanes);
    return status == BENCH_PASS ? rate(b, idle) : status;
}

static enum bench_status run(struct bench *b)
{
    enum bench_status status = BENCH_PASS;

    for (int idle = DB_IDLE_SPIN; idle <= DB_IDLE_SLEEP && status != BENCH_FAIL; idle++)
        if (!bench_given(b->options, BENCH_OPT_IDLE) || b->options->idle == (uint64_t)idle)
            status = bench_worse(status, measure(b, (enum db_proxy_idle)idle));
    return status;
}

const struct bench_case bench_case_idle = {
    .name = "idle",
    .summary = "a proxy that is left idle: CPU share, latency of the first put, rate",
    .uses = LANES_USES | BENCH_USES_PAYLOAD,
    .repetitions = 3,
    LANES_LEAST_DEPTH,
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
