/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From which payload on the posting rate stops to matter (the paper's Figures 8 and 11 and Table
 * 12): goodput of pipelined puts and put + completion of single ones, mini-gda's and mini-proxy's,
 * over a sweep of sizes. The best goodput of the run, of either system in any of these sizes, 16
 * KiB and 1 MiB, takes the place of the paper's reference bandwidth; it is a result of its own, and
 * so is each system's first size at 90 % of it.
 */
#include <stdlib.h>

#include "../cases.h"
#include "../floods.h"
#include "../singles.h"

#define LANES_WIDE  16u /* queues or rings for small payloads, as in the paper */
#define WINDOW      8u  /* puts of a lane that are outstanding */
#define SIZES_MAX   32u
#define SHARE       0.9 /* of the best goodput */
#define SYSTEMS     2u
#define WIDE_AT     65536u /* from this size on, one lane is enough */
#define SWEEP_FIRST 8u
#define SWEEP_LAST  65536u
#define TOKEN_BYTES 7168u /* of DeepSeek-V3, which Figure 8 marks */

/* The pipelined puts of one system in one size. */
struct cell {
    uint64_t bytes;
    uint32_t system;
    double goodput; /* bytes a nanosecond; 0: not measured */
    enum bench_valid valid;
    bool reported;
    size_t result; /* which one it is, then */
};

struct state {
    struct transport transport;
    struct floods floods;
    struct singles singles;
    struct bench_samples rate;
    struct cell cells[SYSTEMS][SIZES_MAX];
    struct cell best;
    uint64_t sizes[SIZES_MAX];
    size_t count;
};

static const char *const systems[SYSTEMS] = {"mini-gda", "mini-proxy"};

/* Where goodput is at its best: small enough for a CPU's cache, and large. */
static const uint64_t best_bytes[] = {16u << 10, 1u << 20};
#define BEST_SIZES (sizeof(best_bytes) / sizeof(best_bytes[0]))

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

    bool sweep = sizes.last == 0;
    if (sweep)
        sizes = (struct bench_sizes){SWEEP_FIRST, SWEEP_LAST, 2};
    while (state->count < SIZES_MAX && bench_sizes_next(&sizes, &bytes)) {
        if (sweep && bytes / 2 < TOKEN_BYTES && bytes > TOKEN_BYTES)
            state->sizes[state->count++] = TOKEN_BYTES;
        state->sizes[state->count++] = bytes;
    }
}

static enum bench_status setup(struct bench *b)
{
    struct state *state = calloc(1, sizeof(*state));
    if (!state)
        return bench_fail(b, "no memory");
    b->state = state;
    choose_sizes(b, state);
    uint64_t largest = best_bytes[BEST_SIZES - 1], spread = 0;
    for (size_t i = 0; i < state->count; i++) {
        uint64_t all = state->sizes[i] * (state->sizes[i] < WIDE_AT ? LANES_WIDE : 1);
        largest = state->sizes[i] > largest ? state->sizes[i] : largest;
        spread = all > spread ? all : spread;
    }
    spread = spread > largest ? spread : largest;
    if (bench_samples_init(&state->rate, b->options->repetitions))
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
    bench_samples_free(&state->rate);
    free(state);
}

static enum bench_status report(struct bench *b, const struct lanes *lanes, struct cell *cell,
                                uint64_t puts)
{
    struct state *state = b->state;
    struct bench_record record = {
        .system = lanes_system(lanes),
        .config = {{"payload", "pointer", 0}, {"share_of_best_percent", NULL, 0}},
        .metric = "goodput",
        .unit = "GB/s",
        .msg_bytes = cell->bytes,
        .iterations = puts,
        .valid = cell->valid,
        .references = {cell->bytes == TOKEN_BYTES ? "R193" : NULL},
    };

    lanes_config(lanes, record.config, 2);
    enum bench_status status = bench_report(b, &record, &state->rate);
    if (status == BENCH_PASS) {
        cell->reported = true;
        cell->result = b->results->count - 1;
    }
    return status;
}

/* Pipelined puts of the cell's system and size, which is a result where `reported`. */
static enum bench_status flood(struct bench *b, struct cell *cell, bool reported)
{
    struct state *state = b->state;
    struct lanes_attr attr = attr_of(b, cell->system, cell->bytes < WIDE_AT ? LANES_WIDE : 1);
    const struct flood flood = {.bytes = (uint32_t)cell->bytes, .window = WINDOW};
    struct bench_stats stats = {0};
    struct lanes lanes;
    uint64_t puts = 0;

    enum bench_status status =
        lanes_open(b, &state->transport, &attr, &state->floods.memory, &lanes);
    if (status == BENCH_PASS)
        status =
            floods_measure(b, &state->floods, &lanes, &flood, &state->rate, &puts, &cell->valid);
    for (uint64_t i = 0; i < state->rate.count; i++)
        state->rate.value[i] *= (double)cell->bytes / 1e3; /* M puts a second to GB a second */
    if (status == BENCH_PASS && bench_samples_stats(&state->rate, &stats))
        status = bench_fail(b, "no memory for the statistics");
    cell->goodput = stats.typical;
    if (cell->goodput > state->best.goodput)
        state->best = *cell;
    if (reported && (status == BENCH_PASS || cell->valid == BENCH_INVALID))
        status = bench_worse(status, report(b, &lanes, cell, puts));
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

static bool in_sweep(const struct state *state, uint64_t bytes)
{
    for (size_t i = 0; i < state->count; i++)
        if (state->sizes[i] == bytes)
            return true;
    return false;
}

/* The sizes that the sweep may be without, for the best goodput alone. */
static enum bench_status flood_more(struct bench *b, uint32_t system)
{
    enum bench_status status = BENCH_PASS;

    for (size_t i = 0; i < BEST_SIZES && status != BENCH_FAIL; i++) {
        struct cell cell = {.system = system, .bytes = best_bytes[i]};
        if (!in_sweep(b->state, cell.bytes))
            status = bench_worse(status, flood(b, &cell, false));
    }
    return status;
}

static enum bench_status report_best(struct bench *b)
{
    const struct state *state = b->state;
    const struct cell *best = &state->best;
    const struct bench_record record = {
        .system = systems[best->system],
        .config = {{"payload", "pointer", 0}},
        .metric = "best_goodput",
        .unit = "GB/s",
        .msg_bytes = best->bytes,
        .valid = best->valid,
        .references = {"R181"},
    };

    return bench_report_value(b, &record, best->goodput);
}

/* The first size at 90 % of the best goodput, if one is; and what share each result has. */
static enum bench_status report_first(struct bench *b, uint32_t system)
{
    const struct state *state = b->state;
    const struct cell *cells = state->cells[system];
    size_t first = state->count;
    bool four = attr_of(b, system, 1).proxy.workers == 4; /* as in the paper */
    const struct bench_record record = {
        .system = systems[system],
        .config = {{"share_of_best_percent", NULL, (uint64_t)(SHARE * 100)}},
        .metric = "first_size",
        .unit = "B",
        .references = {system == 0 ? "R183"
                       : four      ? "R185"
                                   : NULL},
    };

    for (size_t i = state->count; i-- > 0;) {
        double share = cells[i].goodput / state->best.goodput;
        if (share >= SHARE)
            first = i;
        if (cells[i].reported)
            bench_amend(b, cells[i].result, "share_of_best_percent", (uint64_t)(100 * share + 0.5));
    }
    return first < state->count ? bench_report_value(b, &record, (double)state->sizes[first])
                                : bench_report_none(b, &record, "not reached");
}

static enum bench_status run(struct bench *b)
{
    struct state *state = b->state;
    enum bench_status status = BENCH_PASS;

    for (uint32_t system = 0; system < SYSTEMS && status != BENCH_FAIL; system++)
        status = bench_worse(status, flood_more(b, system));
    for (uint32_t system = 0; system < SYSTEMS; system++)
        for (size_t i = 0; i < state->count && status != BENCH_FAIL; i++) {
            struct cell *cell = &state->cells[system][i];
            *cell = (struct cell){.system = system, .bytes = state->sizes[i]};
            status = bench_worse(status, flood(b, cell, true));
        }
    if (status != BENCH_FAIL)
        status = bench_worse(status, report_best(b));
    for (uint32_t system = 0; system < SYSTEMS && status != BENCH_FAIL; system++)
        status = bench_worse(status, report_first(b, system));
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
