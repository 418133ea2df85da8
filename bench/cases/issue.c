/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What posting alone costs, without a NIC: detached queues with everything but the doorbell in GPU
 * memory, unless the options place it elsewhere. Single posts with a pause between, beside the
 * floors that they stand on; a flag's round trip to the CPU; and posting rates with slots reclaimed
 * by blocks that play the device. With --vendors beside the device code of the established
 * libraries, in the same setting.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../cases.h"
#include "../floors.h"
#include "../issues.h"
#include "../puts.h"
#include "../rates.h"
#include "../vendors/vendors.h"

/* How far the two clocks of a GPU may disagree on a post: in parts, and in nanoseconds: half a step
 * of the timer, which posts of one length may keep pace with, and what the second reading of the
 * timer waits for the registers of the last stores (struct bench_interval). */
#define DISAGREE       0.05
#define DISAGREE_NS    (16.0 + 20.0)
#define DISAGREE_LEAST 1000u /* samples */

/* Of which a page is in either half. */
#define VENDORS_PAGES_BYTES (64 * VENDORS_PAGE_BYTES)

struct state {
    struct issues issues;
    struct l2 l2;
    struct issues_halves halves;
    struct bench_samples ticks; /* by the SM's clock */
    struct bench_samples timer; /* by the timer of all SMs */
    double timer_extra_ns;      /* what reading the SM's clock adds between two of the timer */
    double floor_ns[3][3];      /* p50 of a post's stores, by enum db_order and db_record */
};

/* What `order` means: a scope itself, or what is safe where the ring lies. */
enum choice { SAFE, UNORDERED, GPU_SCOPE, SYSTEM_SCOPE };

struct row {
    const char *what;
    enum bench_issue_way way;
    enum choice order;
    enum db_record record;
    bool inlined;
    const char *reference[BENCH_REFERENCES_MAX];
};

static const struct row rows[] = {
    {"nothing", BENCH_ISSUE_NOTHING, UNORDERED, DB_WITH_RECORD, false, {NULL}},
    {"store and release", BENCH_ISSUE_STORE, GPU_SCOPE, DB_WITH_RECORD, false, {NULL}},
    {"store and release", BENCH_ISSUE_STORE, SYSTEM_SCOPE, DB_WITH_RECORD, false, {NULL}},
    {"a post's stores", BENCH_ISSUE_STORES, UNORDERED, DB_WITH_RECORD, false, {NULL}},
    {"a post's stores", BENCH_ISSUE_STORES, SAFE, DB_WITH_RECORD, false, {NULL}},
    {"a post's stores", BENCH_ISSUE_STORES, SAFE, DB_WITHOUT_RECORD, false, {NULL}},
    {"a post's stores", BENCH_ISSUE_STORES, SYSTEM_SCOPE, DB_WITH_RECORD, false, {NULL}},
    {"owner", BENCH_ISSUE_OWNER, UNORDERED, DB_WITH_RECORD, true, {"R051", "R053"}},
    {"owner", BENCH_ISSUE_OWNER, SAFE, DB_WITH_RECORD, true, {"R041", "R044"}},
    {"owner", BENCH_ISSUE_OWNER, SAFE, DB_WITH_RECORD, false, {"R047", "R049"}},
    {"owner", BENCH_ISSUE_OWNER, SAFE, DB_WITHOUT_RECORD, true, {NULL}},
    {"owner", BENCH_ISSUE_OWNER, SYSTEM_SCOPE, DB_WITH_RECORD, true, {"R114"}},
    {"owner, try", BENCH_ISSUE_TRY, UNORDERED, DB_WITH_RECORD, true, {"R051", "R053"}},
    {"owner, try", BENCH_ISSUE_TRY, SAFE, DB_WITH_RECORD, true, {"R041", "R044"}},
    {"owner, try", BENCH_ISSUE_TRY, SAFE, DB_WITH_RECORD, false, {"R047", "R049"}},
    {"owner, try", BENCH_ISSUE_TRY, SAFE, DB_WITHOUT_RECORD, true, {NULL}},
    {"owner, try", BENCH_ISSUE_TRY, SYSTEM_SCOPE, DB_WITH_RECORD, true, {"R114"}},
    {"db_put_value()", BENCH_ISSUE_PUT, SAFE, DB_WITH_RECORD, true, {NULL}},
    {"db_put_value_shared()", BENCH_ISSUE_PUT_SHARED, SAFE, DB_WITH_RECORD, true, {NULL}},
    {"ticket", BENCH_ISSUE_TICKET, SAFE, DB_WITH_RECORD, true, {NULL}},
    {"slot hand-off", BENCH_ISSUE_HANDOFF, SAFE, DB_WITH_RECORD, true, {NULL}},
    {"lock per WQE", BENCH_ISSUE_LOCK, SAFE, DB_WITH_RECORD, true, {NULL}},
    {"warp, owner", BENCH_ISSUE_WARP_OWNER, SAFE, DB_WITH_RECORD, true, {NULL}},
    {"warp", BENCH_ISSUE_WARP, SAFE, DB_WITH_RECORD, true, {NULL}},
};

static enum db_order order_of(const struct row *row, const struct issues *issues)
{
    switch (row->order) {
    case UNORDERED:
        return DB_ORDER_NONE_UNSAFE;
    case GPU_SCOPE:
        return DB_ORDER_GPU;
    case SYSTEM_SCOPE:
        return DB_ORDER_SYSTEM;
    default:
        return issues->pair.order;
    }
}

/* What has a record is there a second time with the record exchanged, which takes ring and record
 * in GPU memory. */
static bool exchanges(const struct issues *issues)
{
    return issues->pair.order == DB_ORDER_GPU;
}

/* What one thread that owns its queue posts in the queue's own order is measured with everything in
 * one half of the L2, and then in the other. */
static bool depends_on_half(const struct row *row)
{
    return (row->way == BENCH_ISSUE_STORES || bench_issue_is_owner(row->way)) && row->order == SAFE;
}

static enum bench_status setup(struct bench *b)
{
    struct state *state = calloc(1, sizeof(*state));
    if (!state)
        return bench_fail(b, "no memory");
    b->state = state;
    if (bench_samples_init(&state->ticks, bench_capacity(b)) ||
        bench_samples_init(&state->timer, bench_capacity(b)))
        return bench_fail(b, "no memory for the samples");
    enum bench_status status = issues_open(b, &state->issues);
    return status == BENCH_PASS ? l2_open(b, &state->issues.transport, &state->l2) : status;
}

static void teardown(struct bench *b)
{
    struct state *state = b->state;
    if (!state)
        return;
    l2_close(&state->l2);
    issues_close(&state->issues);
    bench_samples_free(&state->ticks);
    bench_samples_free(&state->timer);
    free(state);
}

/* ---- Single posts ---- */

static struct bench_record record_of(const struct state *state, const struct row *row,
                                     const char *clock, enum bench_valid valid)
{
    const struct issues *issues = &state->issues;
    bool floors = row->way < BENCH_ISSUE_OWNER;
    const struct issues_halves *halves = &state->halves;
    struct bench_record record = {
        .paper_id = "T3",
        .system = floors ? "floor" : "mini-gda",
        .config = {{"sharing", row->what, 0},
                   {"payload",
                    floors         ? "none"
                    : row->inlined ? "inline"
                                   : "pointer",
                    0},
                   {"ordering", puts_order_name(order_of(row, issues)), 0},
                   {"record", transport_record_name(row->record), 0},
                   {"doorbell", "host memory", 0},
                   {"device", "none", 0},
                   {"threads", NULL, bench_issue_is_warp(row->way) ? PORT_WARP_THREADS : 1},
                   {"queues", NULL, 1},
                   {"batch", NULL, bench_issue_is_warp(row->way) ? PORT_WARP_THREADS : 1},
                   {"timer", clock, 0},
                   {"depth", NULL, issues->attr.depth}},
        .metric = "issue",
        .unit = "us",
        .msg_bytes = 8,
        .valid = valid,
    };

    size_t used = transport_queue_places(&issues->attr, record.config, 11);
    if (halves->record != L2_WHOLE)
        record.config[used++] = (struct bench_config){"half", l2_half_name(halves->record), 0};
    if (halves->record != L2_WHOLE && issues->attr.ring == DB_MEMORY_GPU)
        record.config[used++] = (struct bench_config){
            "ring_half", halves->ring == L2_WHOLE ? "both" : l2_half_name(halves->ring), 0};
    return record;
}

/* An owner's post beside its own stores and releases, which were measured before it. */
static enum bench_status report_over_floor(struct bench *b, const struct row *row,
                                           struct bench_record record)
{
    struct state *state = b->state;
    double *floor_ns = &state->floor_ns[order_of(row, &state->issues)][row->record];
    struct bench_stats post;

    if (bench_samples_stats(&state->ticks, &post))
        return bench_fail(b, "no memory for the statistics");
    if (row->way == BENCH_ISSUE_STORES)
        *floor_ns = post.typical;
    if (!bench_issue_is_owner(row->way) || *floor_ns <= 0)
        return BENCH_PASS;
    record.metric = "over_floor";
    record.unit = "x";
    return bench_report_value(b, &record, post.typical / *floor_ns);
}

/* What a row's samples say, by either clock. */
static enum bench_status report(struct bench *b, const struct row *row, enum bench_valid valid)
{
    struct state *state = b->state;
    struct bench_record ticks = record_of(state, row, "SM clock", valid);
    struct bench_record timer = record_of(state, row, "GPU timer", valid);
    struct bench_record over = ticks;

    memcpy(ticks.references, row->reference, sizeof(ticks.references));
    enum bench_status status = bench_report(b, &ticks, &state->ticks);
    if (status == BENCH_PASS)
        status = bench_report(b, &timer, &state->timer);
    return status == BENCH_PASS ? report_over_floor(b, row, over) : status;
}

/* Both clocks saw each post; the timer's interval is around the other's. */
static enum bench_status compare_clocks(struct bench *b, const struct row *row)
{
    struct state *state = b->state;
    struct bench_stats ticks, timer;

    if (bench_samples_stats(&state->ticks, &ticks) || bench_samples_stats(&state->timer, &timer) ||
        ticks.n < DISAGREE_LEAST)
        return BENCH_PASS;
    double extra = timer.avg - ticks.avg;
    if (row->way == BENCH_ISSUE_NOTHING)
        state->timer_extra_ns = extra;
    double off = fabs(extra - state->timer_extra_ns);
    if (off <= DISAGREE_NS + DISAGREE * ticks.avg)
        return BENCH_PASS;
    return bench_degrade(b,
                         "%s: the GPU's timer and the SM's clock disagree: %.0f and %.0f ns a post "
                         "in the mean",
                         row->what, timer.avg - state->timer_extra_ns, ticks.avg);
}

static enum bench_status measure(struct bench *b, const struct row *row)
{
    struct state *state = b->state;
    struct issues *issues = &state->issues;
    const struct issues_results *results = issues->results.host;
    struct issues_variant variant = {row->way, order_of(row, issues), row->record, row->inlined};
    enum bench_status status = BENCH_PASS;
    enum bench_valid valid = BENCH_UNCHECKED;
    struct bench_pace pace;
    uint64_t n;

    bench_samples_clear(&state->ticks);
    bench_samples_clear(&state->timer);
    for (uint64_t r = 0; r < b->options->repetitions && status == BENCH_PASS; r++) {
        bench_pace_start(&pace, b, row->what);
        while (status == BENCH_PASS && (n = bench_pace_next(&pace, issues_chunk(&variant))) > 0) {
            double ns_per_tick;
            status = issues_run(b, issues, &variant, issues_warmup(b, &variant), (uint32_t)n,
                                &ns_per_tick, &valid);
            bool measured = status == BENCH_PASS || valid == BENCH_INVALID;
            for (uint64_t i = 0; i < n && measured; i++) {
                bench_samples_add(&state->ticks,
                                  (double)bench_interval_ticks(results->ticks[i]) * ns_per_tick);
                bench_samples_add(&state->timer, (double)results->ns[i]);
            }
        }
    }
    if (status != BENCH_PASS && valid != BENCH_INVALID)
        return status; /* nothing was measured to its end */
    status = bench_worse(status, report(b, row, valid));
    return status == BENCH_PASS ? compare_clocks(b, row) : status;
}

static bool goes_on(enum bench_status status)
{
    return status == BENCH_PASS || status == BENCH_DEGRADED;
}

/* A row, and again with its record exchanged. */
static enum bench_status measure_row(struct bench *b, const struct row *row)
{
    struct state *state = b->state;
    struct row again = *row;

    enum bench_status status = measure(b, row);
    bool is_call = row->way == BENCH_ISSUE_PUT || row->way == BENCH_ISSUE_PUT_SHARED;
    bool twice = row->order == SAFE && row->record == DB_WITH_RECORD && !is_call &&
                 exchanges(&state->issues);
    if (!goes_on(status) || !twice)
        return status;
    again.record = DB_RECORD_EXCHANGED;
    return bench_worse(status, measure(b, &again));
}

/* ---- Rates ---- */

static const struct rates_variant rate_rows[] = {
    {BENCH_PRIVATE, 1, 1, 1, 1, 8, DB_WITH_RECORD, {"R201"}},
    {BENCH_PRIVATE, 1, 1, 1, 16, 8, DB_WITH_RECORD, {"R204"}},
    {BENCH_WARP_OWNER, 1, 32, 1, 32, 8, DB_WITH_RECORD, {"R210"}},
    {BENCH_WARP, 1, 32, 1, 32, 8, DB_WITH_RECORD, {NULL}},
    {BENCH_WARP, 1, 256, 1, 32, 8, DB_WITH_RECORD, {"R212"}},
    {BENCH_PRIVATE, 64, 1, 64, 16, 8, DB_WITH_RECORD, {"R222"}},
    {BENCH_WARP_OWNER, 64, 32, 64, 32, 8, DB_WITH_RECORD, {NULL}},
    {BENCH_WARP, 64, 256, 64, 32, 8, DB_WITH_RECORD, {NULL}},
};

/* A variant that this GPU can hold, with the blocks that play the device beside it. */
static struct rates_variant fitted(const struct rates_variant *row, uint32_t max_threads)
{
    struct rates_variant variant = *row;

    while (variant.ctas > 1 && 2 * variant.ctas * variant.threads > max_threads) {
        variant.ctas /= 2;
        variant.queues /= 2;
        variant.reference[0] = NULL; /* which has them all */
    }
    return variant;
}

static enum bench_status run_rates(struct bench *b)
{
    struct state *state = b->state;
    struct transport *t = &state->issues.transport;
    struct rates *rates = malloc(sizeof(*rates));
    struct bench_options options = *b->options;
    const struct bench_options *whole = b->options;

    if (!rates)
        return bench_fail(b, "no memory");
    /* The options count posts of the latency; a rate runs for a time, a few times. */
    options.given &= ~BENCH_USE(ITERS);
    options.repetitions = 5;
    b->options = &options;
    enum bench_status status = rates_begin_detached(b, rates, t);
    for (size_t i = 0; i < sizeof(rate_rows) / sizeof(rate_rows[0]) && status == BENCH_PASS; i++) {
        struct rates_variant variant = fitted(&rate_rows[i], t->gpu_properties.max_threads);
        status = rates_measure(b, rates, &variant);
        variant.record = DB_RECORD_EXCHANGED;
        if (status == BENCH_PASS && exchanges(&state->issues))
            status = rates_measure(b, rates, &variant);
    }
    rates_end_detached(rates);
    b->options = whole;
    free(rates);
    return status;
}

/* With the queue in the half of the L2 that it is in now: every way to post, or those that depend
 * on it alone. */
static enum bench_status measure_all(struct bench *b, bool every_way)
{
    struct state *state = b->state;
    struct issues_halves after = state->halves;
    enum bench_status status = BENCH_PASS;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && goes_on(status); i++)
        if (every_way || depends_on_half(&rows[i]))
            status = bench_worse(status, measure_row(b, &rows[i]));
    if (goes_on(status))
        status = bench_worse(status, issues_find(b, &state->issues, &state->l2, &after));
    if (goes_on(status) && after.record != state->halves.record)
        status = bench_worse(
            status, bench_degrade(b, "the kernels moved to an SM of the other half of the L2"));
    return status;
}

/* The vendors' queues in the near half, as ours are. */
static enum bench_status run_vendors(struct bench *b)
{
    struct state *state = b->state;
    struct transport *t = &state->issues.transport;
    struct transport_block pages;
    uint8_t *page = NULL;

    enum bench_status status = transport_block_alloc(b, t, VENDORS_PAGES_BYTES, &pages);
    if (status == BENCH_PASS)
        status = transport_block_store(b, t, &pages);
    if (status == BENCH_PASS)
        status = l2_find_page(b, &state->l2, &pages, VENDORS_PAGE_BYTES, L2_NEAR, &page);
    if (status == BENCH_PASS)
        status =
            vendors_run(b, t->gpu, b->options->vendors, page, page ? l2_half_name(L2_NEAR) : NULL);
    transport_block_free(t, &pages);
    return status;
}

/* Everything in one half, the ring a page of it, where a queue is found that is so. */
static enum bench_status measure_in(struct bench *b, enum l2_half half)
{
    struct state *state = b->state;
    struct issues *issues = &state->issues;

    enum bench_status status =
        issues_move(b, issues, &state->l2, ISSUES_PAGE, half, &state->halves);
    if (!goes_on(status))
        return status;
    if (issues_are_in(issues, &state->halves, half))
        return bench_worse(status, measure_all(b, false));
    bench_warn(b,
               "no queue of %u blocks was found whose ring and record are in the %s half of the L2",
               ISSUES_PAGE, l2_half_name(half));
    return status;
}

static enum bench_status run(struct bench *b)
{
    struct state *state = b->state;

    enum bench_status status =
        issues_move(b, &state->issues, &state->l2, ISSUES_DEEP, L2_NEAR, &state->halves);
    bool in_halves = state->halves.record != L2_WHOLE;
    if (status == BENCH_PASS)
        status = measure_all(b, true);
    for (enum l2_half half = L2_NEAR; half <= L2_FAR && in_halves && goes_on(status); half++)
        status = bench_worse(status, measure_in(b, half));
    if (goes_on(status))
        status = bench_worse(status, floors_round_trip(b, &state->issues.transport));
    if (goes_on(status))
        status = bench_worse(status, run_rates(b));
    if (goes_on(status) && bench_given(b->options, BENCH_OPT_VENDORS))
        status = bench_worse(status, run_vendors(b));
    return status;
}

const struct bench_case bench_case_issue = {
    .name = "issue",
    .summary =
        "posting alone, in GPU memory, without a NIC: latency, floors, rates; vendors beside",
    .uses = ISSUES_USES | BENCH_USE(DEPTH) | BENCH_USE(SEED) | BENCH_USE(VENDORS),
    .least_depth = 32,
    .depth_why = "a warp posts 32 WQEs at once",
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
