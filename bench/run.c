/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One run of the harness: options are completed and checked, each case is set up, run and torn
 * down, its results are printed, and at the end the timer is checked against CLOCK_MONOTONIC.
 */
#include "run.h"

#include "progress.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_ITERS 10000

/* A timer that is off by more than this over the whole run makes its times doubtful. Two readings
 * of both clocks are good to about 100 ns, so a shorter run than 10 ms cannot be judged. */
#define TIMER_FAULT_PPM    1000.0
#define TIMER_CHECK_MIN_NS 10000000U

static struct bench_options complete(const struct bench_options *given,
                                     const struct bench_case *row)
{
    struct bench_options options = *given;

    if (!options.iters)
        options.iters = row->iters ? row->iters : DEFAULT_ITERS;
    if (!options.repetitions)
        options.repetitions = row->repetitions ? row->repetitions : 1;
    return options;
}

static bool depth_suits(const struct bench_options *options, const struct bench_case *row)
{
    if (!bench_given(options, BENCH_OPT_DEPTH) || options->depth >= row->least_depth)
        return true;
    fprintf(stderr, "doorbell bench: --tx-depth=%llu: %s needs %llu or more: %s\n",
            (unsigned long long)options->depth, row->name, (unsigned long long)row->least_depth,
            row->depth_why);
    return false;
}

static bool options_agree(const struct bench_plan *plan)
{
    char error[BENCH_ERROR_BYTES];

    for (size_t i = 0; i < plan->n_cases; i++) {
        struct bench_options options = complete(plan->options, plan->cases[i]);
        if (!bench_options_agree(&options, error)) {
            fprintf(stderr, "doorbell bench: %s\n", error);
            return false;
        }
        if (!depth_suits(&options, plan->cases[i]))
            return false;
    }
    return true;
}

static void warn_unused(const struct bench_plan *plan, const struct bench_case *row)
{
    uint64_t unused = plan->options->given & ~(row->uses | BENCH_USES_HARNESS);

    for (unsigned i = 0; i < BENCH_OPT_COUNT; i++) {
        if (unused >> i & 1)
            fprintf(stderr, "doorbell bench: warning: %s does not use --%s\n", row->name,
                    bench_option_rows[i].name);
    }
}

/* More runnable threads than CPUs for a minute: tails, at least, tell of the others. */
static void warn_busy(const struct bench_machine *machine)
{
    struct bench_cpu_state state;

    bench_cpu_state_read(&state);
    if (machine->cpus_online && state.load_average > machine->cpus_online)
        fprintf(
            stderr,
            "doorbell bench: warning: the load average is %.1f on %u CPUs: other programs are in "
            "these numbers\n",
            state.load_average, machine->cpus_online);
}

/* BENCH_DEGRADED when the GPU did not keep the clock that it had when it was opened. */
static enum bench_status check_sm_clock(const struct bench *b)
{
    char why[SM_CLOCK_WHY_BYTES];

    if (b->row->any_clock || sm_clock_agrees(&b->sm_clock, why))
        return BENCH_PASS;
    return bench_degrade(b, "%s", why);
}

static enum bench_status run_case(const struct bench_plan *plan, const struct bench_case *row,
                                  struct bench_results *results)
{
    struct bench_options options = complete(plan->options, row);
    struct bench b = {.row = row, .options = &options, .results = results};
    size_t first = results->count;

    warn_unused(plan, row);
    enum bench_status status = row->setup ? row->setup(&b) : BENCH_PASS;
    if (status == BENCH_PASS)
        status = row->run(&b);
    else if (status == BENCH_DEGRADED)
        status = bench_worse(status, row->run(&b));
    if (status == BENCH_PASS || status == BENCH_DEGRADED)
        status = bench_worse(status, check_sm_clock(&b));
    if (row->teardown)
        row->teardown(&b);
    bench_progress_clear();

    if (results->count > first && !options.json) {
        bench_report_text(row, results->record + first, results->count - first, stdout);
        fflush(stdout);
    }
    return status;
}

/* BENCH_DEGRADED when the timer and CLOCK_MONOTONIC disagree on how long the run was. */
static enum bench_status check_timer(struct bench_clock_pair start)
{
    struct bench_clock_pair end = bench_clock_read_pair();
    double monotonic_ns = (double)(end.monotonic_ns - start.monotonic_ns);

    if (!bench_clock.counter || monotonic_ns < TIMER_CHECK_MIN_NS)
        return BENCH_PASS;

    double off_ppm = (bench_ticks_ns(end.ticks - start.ticks) / monotonic_ns - 1) * 1e6;
    if (off_ppm < TIMER_FAULT_PPM && off_ppm > -TIMER_FAULT_PPM)
        return BENCH_PASS;
    fprintf(stderr,
            "doorbell bench: doubtful: the timer (%s) was off by %.0f ppm against CLOCK_MONOTONIC "
            "during this run\n",
            bench_clock.name, off_ppm);
    return BENCH_DEGRADED;
}

/* Writes the document to standard output and to the file, as asked for. */
static bool write_documents(const struct bench_plan *plan, const struct bench_document *document,
                            FILE *file)
{
    bool good = true;
    int error;

    if (plan->options->json && (error = bench_report_json(document, stdout)) != 0) {
        fprintf(stderr, "doorbell bench: --out_json: %s\n", strerror(-error));
        good = false;
    }
    if (file && (error = bench_report_json(document, file)) != 0) {
        fprintf(stderr, "doorbell bench: --out_json_file=%s: %s\n", plan->options->json_file,
                strerror(-error));
        good = false;
    }
    return good;
}

enum bench_status bench_run(const struct bench_plan *plan)
{
    const char *path = plan->options->json_file;
    struct bench_results results = {0};
    struct bench_machine machine;
    FILE *file = NULL;
    enum bench_status status = BENCH_SKIPPED;

    if (!options_agree(plan))
        return BENCH_USAGE;
    /* Opened first: a path that cannot be written is told before the measurement, not after it. */
    if (path && !(file = fopen(path, "we"))) {
        fprintf(stderr, "doorbell bench: --out_json_file=%s: %s\n", path, strerror(errno));
        return BENCH_FAIL;
    }

    bench_machine_read(&machine);
    bench_clock_start();
    if (bench_clock.why_not)
        fprintf(stderr, "doorbell bench: warning: timed with CLOCK_MONOTONIC: %s\n",
                bench_clock.why_not);
    warn_busy(&machine);

    struct bench_clock_pair start = bench_clock_read_pair();
    for (size_t i = 0; i < plan->n_cases; i++) {
        if (i > 0 && !plan->options->json)
            putchar('\n');
        status = bench_worse(status, run_case(plan, plan->cases[i], &results));
    }
    if (status != BENCH_SKIPPED)
        status = bench_worse(status, check_timer(start));

    struct bench_document document = {plan->version, plan->command, &machine, &results};
    if (!write_documents(plan, &document, file))
        status = BENCH_FAIL;
    if (file && fclose(file) != 0)
        status = BENCH_FAIL;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "doorbell bench: standard output could not be written\n");
        status = BENCH_FAIL;
    }
    bench_results_free(&results);
    return status;
}
