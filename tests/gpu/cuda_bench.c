/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the experiments take all their steps on a CUDA GPU: kernels are loaded, queues mapped,
 * what lies in GPU memory is copied, and every payload is valid; a GPU that runs at another clock
 * than before makes them doubtful; and where the GPU rings no doorbell, the option that helps is
 * named. Over the fake driver (fake_driver.c), whose kernels CPU
 * threads run. The argument is the experiment.
 */
#include <unistd.h>

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

static enum bench_status run_case(const char *name, void (*change)(struct bench_options *options))
{
    const struct bench_case *chosen[1] = {NULL};
    struct bench_options options;
    struct bench_plan plan = {chosen, 1, &options, "test", "test"};
    char error[BENCH_ERROR_BYTES];

    for (size_t i = 0; bench_cases[i]; i++)
        if (strcmp(bench_cases[i]->name, name) == 0)
            chosen[0] = bench_cases[i];
    CHECK(chosen[0], "there is no experiment %s", name);
    bench_options_init(&options);
    options.warmup_iters = 10;
    CHECK(bench_options_set(&options, BENCH_OPT_GPU, "cuda", error), "%s", error);
    CHECK(bench_options_set(&options, BENCH_OPT_REPETITIONS, "1", error), "%s", error);
    if (change)
        change(&options);
    return bench_run(&plan);
}

static void few(struct bench_options *options)
{
    char error[BENCH_ERROR_BYTES];

    CHECK(bench_options_set(options, BENCH_OPT_ITERS, "320", error), "%s", error);
}

/* Puts of each thread, of which there are thousands. */
static void very_few(struct bench_options *options)
{
    char error[BENCH_ERROR_BYTES];

    CHECK(bench_options_set(options, BENCH_OPT_ITERS, "32", error), "%s", error);
}

/* Long enough for a reading of the clock. */
static void many(struct bench_options *options)
{
    char error[BENCH_ERROR_BYTES];

    CHECK(bench_options_set(options, BENCH_OPT_ITERS, "8000", error), "%s", error);
}

static void forwarded(struct bench_options *options)
{
    char error[BENCH_ERROR_BYTES];

    few(options);
    CHECK(bench_options_set(options, BENCH_OPT_DOORBELL, "cpu", error), "%s", error);
}

static void in_gpu(struct bench_options *options)
{
    char error[BENCH_ERROR_BYTES];

    few(options);
    CHECK(bench_options_set(options, BENCH_OPT_PAYLOAD, "gpu", error), "%s", error);
}

static void without_gpu_option(struct bench_options *options)
{
    few(options);
    options->gpu = BENCH_GPU_AUTO;
    options->gpu_text = NULL;
}

/* Without --gpu it is used, and when it is lost then, CPU threads do not go on in its place. */
static void automatic(struct fake_driver *fake, const char *name)
{
    fake->last.name[0] = '\0';
    enum bench_status status = run_case(name, without_gpu_option);
    CHECK(status == BENCH_PASS || status == BENCH_DEGRADED, "automatic: status %d", status);
    CHECK(fake->last.name[0], "no kernel was launched on it");
    fake->fail_call = "cuModuleLoadData";
    fake->fail_result = 719;
    fake->fail_always = true;
    CHECK(run_case(name, without_gpu_option) == BENCH_FAIL, "automatic: the GPU is lost");
    fake->fail_call = NULL;
    fake->fail_always = false;
    expect_nothing(fake, "automatic");
}

/* The GPU reaches no doorbell register. */
static void no_doorbell(struct fake_driver *fake)
{
    static char text[4096];
    FILE *file = tmpfile();
    int stream = dup(STDERR_FILENO);

    CHECK(file && dup2(fileno(file), STDERR_FILENO) >= 0, "no file for standard error");
    fake->refuse_doorbells = true;
    enum bench_status status = run_case("one-op", few);
    fake->refuse_doorbells = false;
    dup2(stream, STDERR_FILENO);
    close(stream);
    rewind(file);
    CHECK(fread(text, 1, sizeof(text) - 1, file) > 0, "nothing was said");
    fclose(file);
    CHECK(status == BENCH_FAIL, "no doorbell: status %d", status);
    expect_words("no doorbell", text,
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
        CHECK(run_case(argv[1], few) == BENCH_FAIL, "a build without kernels");
        SKIP("this build has no GPU kernels");
    }
    CHECK(db_gpu_cpu_backend.open(&config, &runner) == 0, "%s", db_gpu_error_text());
    fake->run = run_kernel;
    fake->refuse_io = true;
    fake->blocks_per_sm = 64;

    /* What other programs do to the times of this machine is no concern of this test. */
    enum bench_status status = run_case(argv[1], strcmp(argv[1], "rate") == 0 ? very_few : few);
    CHECK(status == BENCH_PASS || status == BENCH_DEGRADED, "status %d", status);
    expect_nothing(fake, argv[1]);
    if (strcmp(argv[1], "ordering") == 0)
        automatic(fake, argv[1]);
    if (strcmp(argv[1], "ordering") == 0 || strcmp(argv[1], "rate") == 0) {
        fast_before = true;
        said_begin();
        status = run_case(argv[1], strcmp(argv[1], "rate") == 0 ? very_few : many);
        said_end();
        CHECK(status == BENCH_DEGRADED && strstr(said, "doubtful: the SM's clock ran at"),
              "another clock: status %d: %s", status, said);
    }
    if (strcmp(argv[1], "one-op") == 0) {
        status = run_case(argv[1], forwarded);
        CHECK(status == BENCH_PASS || status == BENCH_DEGRADED, "forwarded: status %d", status);
        CHECK(run_case(argv[1], in_gpu) == BENCH_FAIL, "payloads in GPU memory");
        no_doorbell(fake);
        expect_nothing(fake, argv[1]);
    }
    runner->backend->close(runner);
    return 0;
}
