/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the experiments take all their steps on a CUDA GPU: kernels are loaded, queues mapped,
 * what lies in GPU memory is copied, and every payload is valid; a GPU that runs at another clock
 * than before makes them doubtful; and where the GPU rings no doorbell, the option that helps is
 * named. Over the fake driver (fake_driver.c), whose kernels CPU threads run. The argument is the
 * experiment.
 */
#include "bench/bench.h"
#include "bench/kernels/floor.h"
#include "bench/kernels/issue.h"
#include "bench/kernels/proxy.h"
#include "bench/kernels/put.h"
#include "bench/kernels/rate.h"
#include "bench/run.h"
#include "fake_control.h"
#include "src/kernels/clock.h"
#include "tests/said.h"

extern const size_t bench_kernel_image_count;

static struct db_gpu *runner;

/* Until an experiment's first kernel the clock seems twice as fast as it is. */
static bool fast_before;

static void run_kernel(const struct fake_launch *launch)
{
    static const struct port_kernel *const kernels[] = {
        &db_clock,    &bench_put,     &bench_round_trip, &bench_rate,  &bench_issue,
        &bench_floor, &bench_enqueue, &bench_loaded,     &bench_flood, &bench_single};
    struct db_gpu_shape shape = {launch->ctas, launch->threads, launch->shared_bytes};
    struct db_gpu_grid *grid;

    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        if (strcmp(kernels[i]->name, launch->name) != 0)
            continue;
        CHECK(runner->backend->launch(runner, kernels[i], shape, launch->args, &grid) == 0, "%s",
              db_gpu_error_text());
        CHECK(runner->backend->wait(grid, port_now_ns() + 100000000000u) == 0, "%s",
              db_gpu_error_text());
        fast_before &= kernels[i] == &db_clock;
        if (fast_before) {
            uint64_t *read = ((const struct db_clock_args *)launch->args)->read;
            read[3] += read[3] - read[1];
        }
        return;
    }
    CHECK(false, "nobody knows kernel %s", launch->name);
}

/* Sets what "name=value name=value" says; the text, which is cut up, outlives the options. */
static void set_options(struct bench_options *options, char *text)
{
    char error[BENCH_ERROR_BYTES], *word;

    while ((word = strsep(&text, " "))) {
        char *value = strchr(word, '=');
        int option = 0;
        CHECK(value, "no value: %s", word);
        *value++ = '\0';
        while (option < BENCH_OPT_COUNT && strcmp(bench_option_rows[option].name, word) != 0)
            option++;
        CHECK(option < BENCH_OPT_COUNT, "there is no option --%s", word);
        CHECK(bench_options_set(options, (enum bench_option)option, value, error), "%s", error);
    }
}

static enum bench_status run_with(const char *name, const char *text)
{
    const struct bench_case *chosen[1] = {NULL};
    struct bench_options options;
    struct bench_plan plan = {chosen, 1, &options, "test", "test"};
    char all[128];

    for (size_t i = 0; bench_cases[i]; i++)
        if (strcmp(bench_cases[i]->name, name) == 0)
            chosen[0] = bench_cases[i];
    CHECK(chosen[0], "there is no experiment %s", name);
    bench_options_init(&options);
    options.warmup_iters = 10;
    snprintf(all, sizeof(all), "repetitions=1 %s", text);
    set_options(&options, all);
    return bench_run(&plan);
}

static enum bench_status run_case(const char *name, const char *options)
{
    char all[128];

    snprintf(all, sizeof(all), "gpu=cuda %s", options);
    return run_with(name, all);
}

/* Few, for a test: iterations are of each thread where an experiment has thousands of threads. */
static const char *options_of(const char *name)
{
    static const char *const few[][2] = {
        {"rate", "iters=32"},
        {"loaded", "iters=5 ctas=1"},
        {"payload", "iters=20 maxbytes=4096 stepfactor=8"},
        {"warmth", "iters=20 cold=0.01 warm=0.01"},
    };

    for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++)
        if (strcmp(few[i][0], name) == 0)
            return few[i][1];
    return "iters=320";
}

/* What other programs do to the times of this machine is no concern of this test. */
static void expect_results(const char *name, const char *options)
{
    enum bench_status status = run_case(name, options);
    CHECK(status == BENCH_PASS || status == BENCH_DEGRADED, "%s: status %d", options, (int)status);
}

static void expect_doubt(const char *name, const char *options)
{
    fast_before = true;
    said_begin();
    enum bench_status status = run_case(name, options);
    said_end();
    CHECK(status == BENCH_DEGRADED && strstr(said, "doubtful: the SM's clock ran at"),
          "another clock: status %d: %s", (int)status, said);
}

/* Without --gpu it is used, and when it is lost then, CPU threads do not go on in its place. */
static void automatic(struct fake_driver *fake, const char *name)
{
    fake->last.name[0] = '\0';
    enum bench_status status = run_with(name, "iters=320");
    CHECK(status == BENCH_PASS || status == BENCH_DEGRADED, "automatic: status %d", (int)status);
    CHECK(fake->last.name[0], "no kernel was launched on it");
    fake->fail_call = "cuModuleLoadData";
    fake->fail_result = 719;
    fake->fail_always = true;
    CHECK(run_with(name, "iters=320") == BENCH_FAIL, "automatic: the GPU is lost");
    fake->fail_call = NULL;
    fake->fail_always = false;
    expect_nothing(fake, "automatic");
}

/* The GPU reaches no doorbell register. */
static void no_doorbell(struct fake_driver *fake)
{
    fake->refuse_doorbells = true;
    said_begin();
    enum bench_status status = run_case("one-op", "iters=320");
    said_end();
    fake->refuse_doorbells = false;
    CHECK(status == BENCH_FAIL, "no doorbell: status %d", (int)status);
    expect_words("no doorbell", said,
                 "cannot ring a doorbell|forward it (--doorbell=cpu), or load");
    expect_nothing(fake, "no doorbell");
}

int main(int argc, char **argv)
{
    struct db_gpu_config config = {.index = 0};
    struct fake_driver *fake = fake_control();

    if (argc != 2)
        return 2;
    if (bench_kernel_image_count == 0) {
        CHECK(run_case(argv[1], options_of(argv[1])) == BENCH_FAIL, "a build without kernels");
        SKIP("this build has no GPU kernels");
    }
    CHECK(db_gpu_cpu_backend.open(&config, &runner) == 0, "%s", db_gpu_error_text());
    fake->run = run_kernel;
    fake->refuse_io = true;
    fake->blocks_per_sm = 64;

    expect_results(argv[1], options_of(argv[1]));
    expect_nothing(fake, argv[1]);
    if (strcmp(argv[1], "ordering") == 0) {
        automatic(fake, argv[1]);
        expect_doubt(argv[1], "iters=8000"); /* enough for a reading of the clock */
    }
    if (strcmp(argv[1], "rate") == 0)
        expect_doubt(argv[1], options_of(argv[1]));
    if (strcmp(argv[1], "one-op") == 0) {
        expect_results(argv[1], "iters=320 doorbell=cpu");
        CHECK(run_case(argv[1], "iters=320 payload-memory=gpu") == BENCH_FAIL,
              "payloads in GPU memory");
        no_doorbell(fake);
        expect_nothing(fake, argv[1]);
    }
    runner->backend->close(runner);
    return 0;
}
