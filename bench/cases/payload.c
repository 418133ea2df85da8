/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From which payload on the posting rate stops to matter (the paper's Figures 8 and 11 and Table
 * 12): goodput of pipelined puts and put + completion of single ones, mini-gda's and mini-proxy's,
 * over a sweep of sizes. The line is what mini-gda moves with the largest size measured, or in 1
 * MiB puts; the first size at 90 % of it is a result of its own.
 */
#include <stdlib.h>

#include "../cases.h"
#include "../floods.h"
#include "../singles.h"

#define LINE_BYTES  (1u << 20)
#define NEAR_BYTES  (16u << 10)
#define LANES_WIDE  16u /* queues or rings for small payloads, as in the paper */
#define WINDOW      8u  /* puts of a lane that are outstanding */
#define SIZES_MAX   32u
#define LINE_SHARE  0.9
#define SYSTEMS     2u
#define WIDE_AT     65536u /* from this size on, one lane is enough */
#define SWEEP_FIRST 8u
#define SWEEP_LAST  65536u

struct state {
    struct transport transport;
    struct floods floods;
    struct singles singles;
    struct bench_samples rate;
    struct bench_samples first;
    double line;                        /* bytes a nanosecond */
    double goodput[SYSTEMS][SIZES_MAX]; /* the same */
    uint64_t sizes[SIZES_MAX];
    size_t count;
};

static const char *const systems[SYSTEMS] = {"mini-gda", "mini-proxy"};

static struct lanes_attr attr_of(struct bench *b, uint32_t system, uint32_t lanes)
{
    struct state *state = b->state;
    struct lanes_attr attr = {.proxied = system == 1, .count = lanes};

    attr.proxy.workers = lanes_workers(&state->transport, 4);
    if (bench_given(b->options, BENCH_OPT_WORKERS))
        attr.proxy.workers = (uint32_t)b->options->workers;
    return attr;
}

/* The sizes of the options, or the sweep of Figure 8. */
static void choose_sizes(struct bench *b, struct state *state)
{
    const struct bench_options *options = b->options;
    struct bench_sizes sizes = bench_sizes_of(options, 0);
    uint64_t bytes;

    if (sizes.last == 0)
        sizes = (struct bench_sizes){SWEEP_FIRST, SWEEP_LAST, 2};
    while (state->count < SIZES_MAX && bench_sizes_next(&sizes, &bytes))
        state->sizes[state->count++] = bytes;
}

static enum bench_status setup(struct bench *b)
{
    struct state *state = calloc(1, sizeof(*state));
    if (!state)
        return bench_fail(b, "no memory");
    b->state = state;
    choose_sizes(b, state);
    uint64_t largest = LINE_BYTES, spread = 0;
    for (size_t i = 0; i < state->count; i++) {
        uint64_t all = state->sizes[i] * (state->sizes[i] < WIDE_AT ? LANES_WIDE : 1);
        largest = state->sizes[i] > largest ? state->sizes[i] : largest;
        spread = all > spread ? all : spread;
    }
    spread = spread > largest ? spread : largest;
    if (bench_samples_init(&state->rate, b->options->repetitions) ||
        bench_samples_init(&state->first, 1))
        return bench_fail(b, "no memory for the samples");
    enum bench_status status = transport_open(b, &state->transport);
    if (status == BENCH_PASS)
        status = floods_open(b, &state->transport, spread * FLOOD_SLOTS, &state->floods);
    return status == BENCH_PASS ? singles_open(b, &state->transport, largest, &state->singles)
                                : status;
}

static void teardown(struct bench *b)
{
    struct state *state = b->state;
    if (!state)
        return;
    singles_close(&state->singles);
    floods_close(&state->floods);
    transport_close(&state->transport);
    bench_samples_free(&state->first);
    bench_samples_free(&state->rate);
    free(state);
}

/* Pipelined puts of one size; `*goodput` in bytes a nanosecond. */
static enum bench_status flood(struct bench *b, uint32_t system, uint64_t bytes, bool report,
                               double *goodput)
{
    struct state *state = b->state;
    struct lanes_attr attr = attr_of(b, system, bytes < WIDE_AT ? LANES_WIDE : 1);
    const struct flood flood = {.bytes = (uint32_t)bytes, .window = WINDOW};
    enum bench_valid valid = BENCH_UNCHECKED;
    struct bench_stats stats = {0};
    struct lanes lanes;
    uint64_t puts = 0;

    enum bench_status status =
        lanes_open(b, &state->transport, &attr, &state->floods.memory, &lanes);
    if (status == BENCH_PASS)
        status = floods_measure(b, &state->floods, &lanes, &flood, &state->rate, &puts, &valid);
    for (uint64_t i = 0; i < state->rate.count; i++)
        state->rate.value[i] *= (double)bytes / 1e3; /* M puts a second to GB a second */
    if (status == BENCH_PASS && bench_samples_stats(&state->rate, &stats))
        status = bench_fail(b, "no memory for the statistics");
    *goodput = stats.typical;
    if (report && (status == BENCH_PASS || valid == BENCH_INVALID)) {
        struct bench_record record = {.system = lanes_system(&lanes),
                                      .metric = "goodput",
                                      .unit = "GB/s",
                                      .msg_bytes = bytes,
                                      .iterations = puts,
                                      .valid = valid};
        record.config[0] = (struct bench_config){"payload", "pointer", 0};
        record.config[1] = (struct bench_config){
            "share_of_line_percent", NULL,
            state->line > 0 ? (uint64_t)(100 * *goodput / state->line + 0.5) : 0};
        lanes_config(&lanes, record.config, 2);
        status = bench_worse(status, bench_report(b, &record, &state->rate));
    }
    lanes_close(&lanes);
    return status;
}

static enum bench_status single(struct bench *b, uint32_t system, uint64_t bytes)
{
    struct state *state = b->state;
    struct lanes_attr attr = attr_of(b, system, 1);
    static const char *const none[BENCH_REFERENCES_MAX];
    struct lanes lanes;

    attr.proxy.workers = 1;
    enum bench_status status =
        lanes_open(b, &state->transport, &attr, &state->singles.memory, &lanes);
    if (status == BENCH_PASS)
        status = singles_measure(b, &state->singles, &lanes, SINGLES_ANY, (size_t)bytes);
    if (status == BENCH_PASS) {
        struct bench_record record = {
            .paper_id = "F11", .system = lanes_system(&lanes), .msg_bytes = bytes};
        record.config[0] = (struct bench_config){"payload", "pointer", 0};
        lanes_config(&lanes, record.config, 1);
        status = singles_report(b, &state->singles, &record, none, none);
    }
    lanes_close(&lanes);
    return status;
}

/* The first size at 90 % of the line, if one is. */
static enum bench_status report_first(struct bench *b, uint32_t system)
{
    struct state *state = b->state;
    size_t i = 0;

    while (i < state->count && state->goodput[system][i] < LINE_SHARE * state->line)
        i++;
    if (i == state->count)
        return BENCH_PASS;
    struct bench_record record = {
        .system = systems[system],
        .config = {{"share_of_line_percent", NULL, (uint64_t)(LINE_SHARE * 100)}},
        .metric = "first_size",
        .unit = "B",
        .references = {system == 1 ? "R185" : NULL},
    };
    bench_samples_clear(&state->first);
    bench_samples_add(&state->first, (double)state->sizes[i]);
    return bench_report(b, &record, &state->first);
}

static enum bench_status run(struct bench *b)
{
    struct state *state = b->state;
    double near = 0;
    enum bench_status status = flood(b, 0, LINE_BYTES, false, &state->line);
    if (status == BENCH_PASS)
        status = flood(b, 0, NEAR_BYTES, false, &near);
    if (near > state->line)
        state->line = near;

    for (uint32_t system = 0; system < SYSTEMS; system++) {
        for (size_t i = 0; i < state->count && status != BENCH_FAIL; i++)
            status = bench_worse(
                status, flood(b, system, state->sizes[i], true, &state->goodput[system][i]));
        if (status != BENCH_FAIL)
            status = bench_worse(status, report_first(b, system));
    }
    for (uint32_t system = 0; system < SYSTEMS; system++)
        for (size_t i = 0; i < state->count && status != BENCH_FAIL; i++)
            status = bench_worse(status, single(b, system, state->sizes[i]));
    return status;
}

const struct bench_case bench_case_payload = {
    .name = "payload",
    .paper = {"F8", "F11", "T12"},
    .summary = "goodput and put + completion over payload sizes, mini-proxy beside mini-gda",
    .uses = LANES_USES | BENCH_USES_SIZES | BENCH_USES_PAYLOAD | BENCH_USE(WORKERS),
    .iters = 1000,
    .repetitions = 3,
    LANES_LEAST_DEPTH,
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
