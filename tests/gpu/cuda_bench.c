/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the experiments take all their steps on a CUDA GPU: kernels are loaded, queues mapped,
 * what lies in GPU memory is copied, and every payload is valid; a GPU that runs at another clock
 * than before makes them doubtful; and where the GPU rings no doorbell, the option that helps is
 * named. Over the fake driver (fake_driver.c), whose kernels CPU threads run. The argument is the
 * experiment.
 */
#include <unistd.h>

#include "bench/bench.h"
#include "bench/kernels/floor.h"
#include "bench/kernels/issue.h"
#include "bench/kernels/l2.h"
#include "bench/kernels/proxy.h"
#include "bench/kernels/put.h"
#include "bench/kernels/rate.h"
#include "bench/run.h"
#include "fake_control.h"
#include "src/kernels/clock.h"
#include "tests/said.h"

/* Results in one half: of l2, whose ways are timed behind a doorbell or not; and of issue, of which
 * each is by two clocks, and an owner's also over its floor. */
#define L2_WAYS   8u
#define FAR_POSTS (3 * 2 + 10 * 3u)

extern const size_t bench_kernel_image_count;

static struct db_gpu *runner;

/* Until an experiment's first kernel the clock seems twice as fast as it is. */
static bool fast_before;

/* The L2: whole; in two halves, of which an atomic takes longer in the far one; in halves that are
 * others at each look; in two that change places once a post was measured; in two that change in
 * the middle of a page. */
static enum l2_shape { WHOLE, HALVES, CHANCE, MOVING, FINE } l2_shape;
static unsigned looks;
static bool posted;
/* The two words of which the half was asked last, each alone. */
static const void *asked[2];
/* A mask of enum bench_l2_between: a flag is seen before its message. */
static uint32_t stale_between;

/* Lines of one half differ, too, by less than halves do. */
static void play_halves(const struct bench_l2_args *args)
{
    bool alone = args->line_count == 1;

    looks++;
    if (alone) {
        asked[0] = asked[1];
        asked[1] = args->lines;
    }
    for (uint32_t line = 0; line < args->line_count; line++) {
        uint64_t page = (uintptr_t)(args->lines + line * args->stride) >> 12;
        bool far = (page + (l2_shape == CHANCE ? looks : 0)) * 0x9e3779b97f4a7c15u >> 63;
        if (l2_shape == FINE)
            far ^= (uintptr_t)(args->lines + line * args->stride) >> 11 & 1;
        if (l2_shape == MOVING)
            far ^= posted;
        uint32_t ticks = 300 + (alone ? 7 : line % 8) * 8;
        if (l2_shape != WHOLE && far)
            ticks += 150;
        for (uint32_t i = 0; i < args->count; i++)
            args->ticks[line * args->count + i] = ticks + i % 16;
    }
}

/* They are the queue's record and its words. */
static void check_asked(const struct bench_issue_args *args)
{
    posted = true;
    CHECK(!asked[0] || (asked[0] == &args->qp->record->send && asked[1] == &args->qp->post.claimed),
          "the halves of other words were asked");
}

static void run_kernel(const struct fake_launch *launch)
{
    static const struct port_kernel *const kernels[] = {
        &db_clock,     &bench_put,     &bench_round_trip,   &bench_rate,   &bench_issue,
        &bench_floor,  &bench_enqueue, &bench_enqueue_more, &bench_loaded, &bench_flood,
        &bench_single, &bench_l2,      &bench_l2_messages};
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
        if (kernels[i] == &bench_l2)
            play_halves(launch->args);
        if (kernels[i] == &bench_issue)
            check_asked(launch->args);
        const struct bench_l2_messages_args *messages = launch->args;
        if (kernels[i] == &bench_l2_messages && stale_between >> messages->between & 1)
            *messages->stale = 3;
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
        {"rate", "iters=32"},         {"issue", "duration=0.004"},
        {"loaded", "iters=5 ctas=1"}, {"payload", "iters=20 maxbytes=4096 stepfactor=8"},
        {"l2", "iters=64"}, /* one on each line */
        {"idle", "iters=2"},          {"warmth", "iters=20 cold=0.01 warm=0.01"},
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

/* The file of what an experiment writes: one for each, since their tests run at one time. */
static char results[64];

/* How often a text is in it. */
static unsigned count_in_results(const char *text)
{
    static char document[1 << 20];
    FILE *file = fopen(results, "r");
    unsigned count = 0;

    CHECK(file, "no %s", results);
    document[fread(document, 1, sizeof(document) - 1, file)] = '\0';
    fclose(file);
    for (const char *at = document; (at = strstr(at, text)); at++)
        count++;
    return count;
}

/* An L2 of one shape: what was said is in `said`, the results are in their file. */
static void run_shaped(const char *name, const char *options, enum l2_shape shape)
{
    char all[119];

    snprintf(all, sizeof(all), "%s out_json_file=%s", options, results);
    l2_shape = shape;
    posted = false;
    asked[0] = asked[1] = NULL;
    said_begin();
    enum bench_status status = run_case(name, all);
    said_end();
    l2_shape = WHOLE;
    CHECK(status == BENCH_PASS || status == BENCH_DEGRADED, "shape %d: status %d", (int)shape,
          (int)status);
}

static void expect_whole(const char *name, const char *options, enum l2_shape shape)
{
    run_shaped(name, options, shape);
    /* Of records and of rings. */
    CHECK(count_in_results("half\": \"near\"") + count_in_results("half\": \"far\"") == 0,
          "halves of a whole, %d", (int)shape);
}

/* Where the L2 has no halves, or only seems to, nothing tells of them; where it has, both are
 * measured: all ways to reach it, and the posts of an owner. */
static void halves(const char *name, const char *options)
{
    bool posts = strcmp(name, "issue") == 0;

    snprintf(results, sizeof(results), "cuda_bench.%s.json", name);
    expect_whole(name, options, WHOLE);
    if (!posts)
        expect_whole(name, options, CHANCE);
    run_shaped(name, options, HALVES);
    unsigned near = count_in_results("\"half\": \"near\""),
             far = count_in_results("\"half\": \"far\"");
    CHECK(posts ? far == FAR_POSTS && near > far : far == L2_WAYS && near == far, "%u near, %u far",
          near, far);
    CHECK(!strstr(said, "other half"), "%s", said);
    if (posts) {
        near = count_in_results("\"ring_half\": \"near\"");
        far = count_in_results("\"ring_half\": \"far\"");
        CHECK(near == FAR_POSTS && far == FAR_POSTS, "rings: %u near, %u far", near, far);
        CHECK(count_in_results("\"ring_half\": \"both\"") > 0, "no deep ring");
        run_shaped(name, options, FINE);
        expect_words("fine", said, "no queue of 64 blocks|in the near half|in the far half");
        CHECK(count_in_results("\"ring_half\": \"both\"") > 0 &&
                  count_in_results("\"ring_half\": \"near\"") == 0 &&
                  count_in_results("\"ring_half\": \"far\"") == 0,
              "a half of rings that are in both");
        run_shaped(name, options, MOVING);
        expect_words("moving", said, "doubtful|an SM of the other half");
    }
    unlink(results);
}

/* What the library relies on is what fails it; a GPU that keeps all in order is told of. */
static void stale_messages(void)
{
    static const struct {
        uint32_t between;
        bool fails;
        const char *words;
    } rows[] = {
        {1u << BENCH_L2_NOTHING | 1u << BENCH_L2_A_LOAD, false, ""},
        {1u << BENCH_L2_ANSWER, true, "12 of 20 flags|the answer of an exchange|relies on"},
        {1u << BENCH_L2_A_FENCE, true, "12 of 20 flags|a release between|relies on"},
        {0, false, "no flag was seen before its message|prove nothing"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stale_between = rows[i].between;
        said_begin();
        enum bench_status status = run_case("l2", "iters=5");
        said_end();
        stale_between = 0;
        CHECK((status == BENCH_FAIL) == rows[i].fails, "row %zu: status %d", i, (int)status);
        expect_words("stale", said, rows[i].words);
    }
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

    if (strcmp(argv[1], "l2") == 0 || strcmp(argv[1], "issue") == 0)
        halves(argv[1], options_of(argv[1]));
    else
        expect_results(argv[1], options_of(argv[1]));
    expect_nothing(fake, argv[1]);
    if (strcmp(argv[1], "l2") == 0)
        stale_messages();
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
