/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far posting follows the SM clock (Figure 5, Table 6): the fit T = C/f + B over the clocks
 * that a GPU takes by itself, as it wakes from pauses of different lengths. Nothing sets a clock
 * here; where only one is seen, there is no fit, and the experiment says so.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../cases.h"
#include "../clock_fit.h"
#include "../issues.h"
#include "../puts.h"

/* Pauses before the launches of one pass, in milliseconds: a GPU lowers its clock after some
 * hundreds of them, and raises it within a few launches. */
static const unsigned pauses_ms[] = {0, 0, 20, 0, 200, 0, 0, 1000, 0, 0, 0, 2000, 0, 0, 0, 0};

#define PAUSES     (sizeof(pauses_ms) / sizeof(pauses_ms[0]))
#define POSTS      400u /* of a launch: a millisecond or two, in which a clock seldom changes */
#define LEVELS_MAX 32u
#define SAME_LEVEL 0.02 /* clocks this close are one level */
#define WORTH_FIT  1.10 /* of the highest clock to the lowest; below, B is all error */

struct level {
    double mhz; /* the mean of its launches */
    uint64_t launches;
    struct bench_samples posts;
};

struct state {
    struct issues issues;
    struct level level[LEVELS_MAX];
    uint32_t levels;
};

static enum bench_status setup(struct bench *b)
{
    struct state *state = calloc(1, sizeof(*state));
    if (!state)
        return bench_fail(b, "no memory");
    b->state = state;
    return issues_open(b, &state->issues);
}

static void teardown(struct bench *b)
{
    struct state *state = b->state;
    if (!state)
        return;
    issues_close(&state->issues);
    for (uint32_t i = 0; i < state->levels; i++)
        bench_samples_free(&state->level[i].posts);
    free(state);
}

/* The level of a clock, a new one if need be; NULL: there are too many, or there is no memory. */
static struct level *level_of(struct state *state, double mhz)
{
    for (uint32_t i = 0; i < state->levels; i++)
        if (fabs(state->level[i].mhz / mhz - 1) < SAME_LEVEL)
            return &state->level[i];
    if (state->levels == LEVELS_MAX)
        return NULL;
    struct level *level = &state->level[state->levels];
    if (bench_samples_init(&level->posts, 0))
        return NULL;
    state->levels++;
    return level;
}

/* Whether the clock stood still during a launch: only then do its posts belong to one level. That a
 * span ends as it began is seen from the next one, so it is asked twice. */
static enum bench_status launch(struct bench *b, const struct issues_variant *variant,
                                enum bench_valid *valid)
{
    struct state *state = b->state;
    const struct issues_results *results = state->issues.results.host;
    double before, now;

    enum bench_status status =
        issues_run(b, &state->issues, variant, 16, POSTS / 4, &before, valid);
    if (status == BENCH_PASS)
        status = issues_run(b, &state->issues, variant, 16, POSTS, &now, valid);
    if (status != BENCH_PASS || fabs(before / now - 1) > SAME_LEVEL)
        return status;
    struct level *level = level_of(state, 1e3 / now);
    if (!level)
        return BENCH_PASS;
    level->launches++;
    level->mhz += (1e3 / now - level->mhz) / (double)level->launches;
    for (uint32_t i = 0; i < POSTS; i++)
        bench_samples_add(&level->posts, (double)bench_interval_ticks(results->ticks[i]) * now);
    return BENCH_PASS;
}

static int by_clock(const void *a, const void *b)
{
    double left = ((const struct level *)a)->mhz, right = ((const struct level *)b)->mhz;
    return left < right ? -1 : left > right;
}

static enum bench_status report_level(struct bench *b, const struct level *level,
                                      enum bench_valid valid)
{
    const struct state *state = b->state;
    struct bench_record record = {
        .system = "mini-gda",
        .config = {{"sharing", "owner", 0},
                   {"payload", "inline", 0},
                   {"ordering", puts_order_name(state->issues.pair.order), 0},
                   {"record", "with", 0},
                   {"device", "none", 0},
                   {"sm_mhz", NULL, (uint64_t)(level->mhz + 0.5)},
                   {"launches", NULL, level->launches}},
        .metric = "issue",
        .unit = "us",
        .msg_bytes = 8,
        .valid = valid,
    };
    transport_queue_places(&state->issues.attr, record.config, 7);
    b->where.gpu_sm_mhz = level->mhz;
    return bench_report(b, &record, &level->posts);
}

/* The fit through the levels' medians. */
static enum bench_status fit_levels(struct bench *b)
{
    const struct state *state = b->state;
    struct clock_point points[LEVELS_MAX];
    struct clock_fit fit;

    for (uint32_t i = 0; i < state->levels; i++) {
        struct bench_stats posts;
        if (bench_samples_stats(&state->level[i].posts, &posts))
            return bench_fail(b, "no memory for the fit");
        points[i] = (struct clock_point){state->level[i].mhz, posts.typical};
    }
    if (!clock_fit(points, state->levels, &fit))
        return bench_fail(b, "no line fits the levels of one clock");
    return clock_fit_report(b, &fit, state->levels);
}

static enum bench_status run(struct bench *b)
{
    struct state *state = b->state;
    struct issues_variant variant = {BENCH_ISSUE_OWNER, state->issues.pair.order, DB_WITH_RECORD,
                                     true};
    enum bench_status status = BENCH_PASS;
    enum bench_valid valid = BENCH_UNCHECKED;

    for (uint64_t r = 0; r < b->options->repetitions; r++) {
        for (size_t i = 0; i < PAUSES && status == BENCH_PASS; i++) {
            bench_sleep_ns(pauses_ms[i] * UINT64_C(1000000));
            status = launch(b, &variant, &valid);
        }
    }
    qsort(state->level, state->levels, sizeof(state->level[0]), by_clock);
    for (uint32_t i = 0; i < state->levels && status == BENCH_PASS; i++)
        status = report_level(b, &state->level[i], valid);
    if (status != BENCH_PASS)
        return status;
    if (state->levels == 0)
        return bench_degrade(b, "the SM clock never stood still for the length of a launch");
    double low = state->level[0].mhz, high = state->level[state->levels - 1].mhz;
    if (high >= low * WORTH_FIT)
        return fit_levels(b);
    /* Nothing failed: the level's own result stands. */
    bench_skip(b,
               "the fit T = C/f + B: the clock was %.0f to %.0f MHz in this run, which is one "
               "clock, and no experiment sets it",
               low, high);
    return BENCH_PASS;
}

const struct bench_case bench_case_clock = {
    .name = "clock",
    .paper = {"F5", "T6"},
    .summary = "how far posting follows the SM clock: T = C/f + B over the clocks it takes itself",
    .uses = ISSUES_USES,
    .repetitions = 2,
    .any_clock = true,
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
