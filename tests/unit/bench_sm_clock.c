/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: an experiment whose kernels ran at another SM clock than the GPU was opened at is doubtful
 * and says so, by how much more or less it may be; launches that are too short for the timer are
 * judged together; the experiment about the clock is exempt, and CPU threads that play a GPU are.
 */
#include "bench/run.h"
#include "bench/transport.h"
#include "tests/said.h"

#include <string.h>

static char why[SM_CLOCK_WHY_BYTES];

static void judged(void)
{
    struct sm_clock clock = {0};

    sm_clock_start(&clock, 2000);
    CHECK(sm_clock_agrees(&clock, why), "no reading: %s", why);
    sm_clock_add(&clock, 2038000, 1e6);
    sm_clock_add(&clock, 1962000, 1e6);
    CHECK(sm_clock_agrees(&clock, why) && clock.readings == 2, "1.9 %%: %s", why);
    sm_clock_add(&clock, 2042000, 1e6);
    CHECK(!sm_clock_agrees(&clock, why) && clock.off == 1, "2.1 %% more");
    sm_clock_add(&clock, 4 * 345000, 4e6);
    sm_clock_add(&clock, 1958000, 1e6);
    CHECK(!sm_clock_agrees(&clock, why) && clock.off == 3, "2.1 %% less");
    CHECK(strstr(why, "ran at 345 MHz, and at 2000 MHz before (3 of 5 readings"), "%s", why);
    sm_clock_start(&clock, 2000);
    CHECK(!sm_clock_agrees(&clock, why), "forgotten when the GPU was opened again");
}

/* Steps of 1 us on launches of 50 us: each is off, and no reading of twenty is. */
static void short_launches(void)
{
    struct sm_clock clock = {0};

    sm_clock_start(&clock, 2000);
    for (int i = 0; i < 19; i++)
        sm_clock_add(&clock, 100000, i % 2 ? 51000 : 49000);
    CHECK(clock.readings == 0, "judged too early");
    for (int i = 19; i < 100; i++)
        sm_clock_add(&clock, 100000, i % 2 ? 51000 : 49000);
    CHECK(clock.readings == 5 && sm_clock_agrees(&clock, why), "%s", why);
    for (int i = 0; i < 20; i++)
        sm_clock_add(&clock, 75000, 50000);
    CHECK(!sm_clock_agrees(&clock, why), "short launches at three quarters of the clock");

    struct sm_clock nothing = {0};
    sm_clock_add(&nothing, 1, 1e9);
    CHECK(sm_clock_agrees(&nothing, why), "no clock to compare with: %s", why);
}

/* ---- In the harness ---- */

static uint32_t stated_mhz(struct db_gpu *gpu)
{
    (void)gpu;
    return 1980;
}

static const struct db_gpu_backend backend = {.kind = "cuda", .stated_mhz = stated_mhz};
static uint64_t span_ticks;

/* A kernel's span of 2 ms, and one that is too short to tell. */
static enum bench_status run(struct bench *b)
{
    struct db_gpu gpu = {&backend};
    const struct transport t = {.gpu = &gpu, .ns_per_tick = 0.5};
    const struct bench_record record = {.system = "null", .metric = "m", .unit = "us"};
    struct bench_span span = {.first_ns = 100, .last_ns = 2000100, .last_ticks = span_ticks};
    const struct bench_span brief = {.last_ns = 19999, .last_ticks = 1};

    sm_clock_start(&b->sm_clock, 2000);
    b->where.gpu_sm_before_mhz = 2000;
    double ns_per_tick = transport_ns_per_tick(b, &t, &span);
    CHECK(ns_per_tick > 1.999e6 / (double)span_ticks && ns_per_tick < 2.001e6 / (double)span_ticks,
          "%g ns a tick", ns_per_tick);
    CHECK(transport_ns_per_tick(b, &t, &brief) == 0.5, "a span that is too short");
    CHECK(b->sm_clock.readings == 1, "%llu readings", (unsigned long long)b->sm_clock.readings);
    enum bench_status status = bench_report_value(b, &record, 1);
    const struct bench_where *where = &b->results->record[b->results->count - 1].where;
    CHECK(where->gpu_sm_before_mhz == 2000 && where->gpu_sm_stated_mhz == 1980, "clocks");
    return status;
}

static void in_the_harness(uint64_t ticks, bool any_clock, enum bench_status expected)
{
    const struct bench_case row = {
        .name = "test", .paper = {"T3"}, .summary = "t", .any_clock = any_clock, .run = run};
    const struct bench_case *const rows[] = {&row};
    struct bench_options options;
    struct bench_plan plan = {rows, 1, &options, "test", "0"};

    bench_options_init(&options);
    span_ticks = ticks;
    said_begin();
    enum bench_status status = bench_run(&plan);
    said_end();
    CHECK(status == expected, "%llu ticks: status %d: %s", (unsigned long long)ticks, (int)status,
          said);
    CHECK(!strstr(said, "doubtful: the SM's clock ran at") == (expected == BENCH_PASS), "%s", said);
}

/* Their clock runs on while they have no CPU. */
static void played_by_threads(void)
{
    static const struct bench_case row = {.name = "test"};
    const struct bench_span span = {.last_ns = 2000000, .last_ticks = 1000};
    struct bench_options options;
    struct transport t = {0};

    bench_options_init(&options);
    options.gpu = BENCH_GPU_CPU;
    struct bench b = {.row = &row, .options = &options};
    CHECK(transport_open_gpu(&b, &t) == BENCH_PASS, "no GPU");
    CHECK(b.where.gpu_sm_before_mhz > 0, "no clock is told");
    transport_ns_per_tick(&b, &t, &span);
    CHECK(transport_read_clock(&b, &t) == BENCH_PASS, "no clock is needed");
    CHECK(sm_clock_agrees(&b.sm_clock, why), "%s", why);
    transport_close(&t);
}

int main(void)
{
    judged();
    short_launches();
    in_the_harness(4000000, false, BENCH_PASS);
    in_the_harness(3000000, false, BENCH_DEGRADED);
    in_the_harness(5000000, false, BENCH_DEGRADED);
    in_the_harness(3000000, true, BENCH_PASS);
    played_by_threads();
    return 0;
}
