/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the harness runs a case as bench.h promises: teardown follows setup whatever happened, the
 * statuses of several cases add up to the right one, defaults of a row apply, a repetition lasts as
 * many iterations or as long as asked, and a record that names what does not exist is refused.
 */
#include "bench/run.h"
#include "tests/check.h"

#include <string.h>

static unsigned setups;
static unsigned runs;
static unsigned teardowns;

static enum bench_status setup(struct bench *b)
{
    (void)b;
    setups++;
    return BENCH_PASS;
}

static enum bench_status setup_fails(struct bench *b)
{
    setups++;
    return bench_fail(b, "made to fail");
}

static enum bench_status setup_skips(struct bench *b)
{
    setups++;
    return bench_skip(b, "made to skip");
}

static void teardown(struct bench *b)
{
    (void)b;
    teardowns++;
}

/* Reports one sample for each iteration of each repetition, with the given record. */
static enum bench_status report(struct bench *b, const struct bench_record *record)
{
    struct bench_samples samples;
    struct bench_pace pace;
    uint64_t n;

    runs++;
    CHECK(bench_samples_init(&samples, bench_capacity(b)) == 0, "no memory");
    for (uint64_t r = 0; r < b->options->repetitions; r++) {
        bench_pace_start(&pace, b, "test");
        while ((n = bench_pace_next(&pace, 7)) > 0) {
            CHECK(n <= 7, "a chunk of %llu", (unsigned long long)n);
            for (uint64_t i = 0; i < n; i++)
                bench_samples_add(&samples, 1500);
        }
    }
    enum bench_status status = bench_report(b, record, &samples);
    if (status == BENCH_PASS) {
        const struct bench_record *full = &b->results->record[b->results->count - 1];
        CHECK(full->iterations == full->stats.n, "iterations");
        CHECK(b->options->duration_ns ||
                  full->stats.n == b->options->iters * b->options->repetitions,
              "%llu samples", (unsigned long long)full->stats.n);
    }
    bench_samples_free(&samples);
    return status;
}

static enum bench_status run_good(struct bench *b)
{
    enum bench_status status =
        report(b, &(struct bench_record){
                      .system = "null", .metric = "m", .unit = "us", .references = {"R041"}});

    const struct bench_record *full = &b->results->record[b->results->count - 1];
    CHECK(full->stats.typical > 1.49 && full->stats.typical < 1.51, "1500 ns are %g us",
          full->stats.typical);
    CHECK(strcmp(full->paper_id, "T3") == 0 && strcmp(full->experiment, "good") == 0, "names");
    return status;
}

static enum bench_status run_degraded(struct bench *b)
{
    return bench_worse(run_good(b), bench_degrade(b, "made doubtful"));
}

static enum bench_status run_bad_unit(struct bench *b)
{
    return report(b, &(struct bench_record){.system = "null", .metric = "m", .unit = "furlong"});
}

static enum bench_status run_bad_reference(struct bench *b)
{
    return report(b, &(struct bench_record){
                         .system = "null", .metric = "m", .unit = "us", .references = {"R999"}});
}

#define CASE(its_name, its_setup, its_run)                                                         \
    {                                                                                              \
        .name = (its_name), .paper = {"T3"}, .summary = "of the test", .iters = 5,                 \
        .repetitions = 2, .setup = (its_setup), .run = (its_run), .teardown = teardown,            \
    }

static const struct bench_case good = CASE("good", setup, run_good);
static const struct bench_case degraded = CASE("good", setup, run_degraded);
static const struct bench_case skipping = CASE("skip", setup_skips, run_good);
static const struct bench_case failing = CASE("fail", setup_fails, run_good);
static const struct bench_case bad_unit = CASE("unit", setup, run_bad_unit);
static const struct bench_case bad_reference = CASE("reference", setup, run_bad_reference);

static void expect(enum bench_status expected, const struct bench_options *options,
                   const struct bench_case *a, const struct bench_case *b)
{
    const struct bench_case *cases[] = {a, b};
    struct bench_plan plan = {cases, b ? 2 : 1, options, "test", "0"};
    enum bench_status got = bench_run(&plan);

    CHECK(got == expected, "%s and %s: status %d, expected %d", a->name, b ? b->name : "none",
          (int)got, (int)expected);
    CHECK(setups == teardowns, "%u set up, %u torn down", setups, teardowns);
}

int main(void)
{
    struct bench_options options;

    bench_options_init(&options);
    expect(BENCH_PASS, &options, &good, NULL);
    CHECK(runs == 1, "%u runs", runs);
    expect(BENCH_SKIPPED, &options, &skipping, NULL);
    expect(BENCH_FAIL, &options, &failing, NULL);
    CHECK(runs == 1, "run after a setup that did not pass");
    expect(BENCH_SKIPPED, &options, &skipping, &skipping);
    expect(BENCH_PASS, &options, &skipping, &good);
    expect(BENCH_DEGRADED, &options, &degraded, &good);
    expect(BENCH_FAIL, &options, &degraded, &failing);
    expect(BENCH_FAIL, &options, &bad_unit, NULL);
    expect(BENCH_FAIL, &options, &bad_reference, &good);

    options.iters = 33;
    options.repetitions = 3;
    expect(BENCH_PASS, &options, &good, NULL);
    options.duration_ns = 20000000;
    uint64_t start_ns = bench_monotonic_ns();
    expect(BENCH_PASS, &options, &good, NULL);
    CHECK(bench_monotonic_ns() - start_ns >= 3 * options.duration_ns, "shorter than asked");

    options.unsorted = true;
    unsigned before = setups;
    expect(BENCH_USAGE, &options, &good, NULL);
    CHECK(setups == before, "ran although the options do not agree");
    return 0;
}
