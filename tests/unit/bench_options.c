/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: each option of `doorbell bench` takes what it should and refuses the rest with a sentence
 * that names it, and options mean the same in every order.
 */
#include "bench/options.h"
#include "tests/check.h"

#include <string.h>

static char error[BENCH_ERROR_BYTES];

static void accept(struct bench_options *options, enum bench_option option, const char *text)
{
    CHECK(bench_options_set(options, option, text, error), "--%s=%s: %s",
          bench_option_rows[option].name, text ? text : "", error);
    CHECK(bench_given(options, option), "--%s is not given", bench_option_rows[option].name);
}

static void refuse(enum bench_option option, const char *text)
{
    const char *name = bench_option_rows[option].name;
    struct bench_options options;

    bench_options_init(&options);
    CHECK(!bench_options_set(&options, option, text, error), "--%s=%s was taken", name, text);
    CHECK(strstr(error, name) && strstr(error, text), "'%s' does not name --%s=%s", error, name,
          text);
    CHECK(!bench_given(&options, option), "--%s=%s is refused and given", name, text);
}

static void check_table(void)
{
    for (unsigned i = 0; i < BENCH_OPT_COUNT; i++) {
        const struct bench_option_row *row = &bench_option_rows[i];

        CHECK(row->name && row->help, "option %u has no row", i);
        CHECK(!row->argument == (row->kind == BENCH_KIND_FLAG), "--%s", row->name);
        for (unsigned k = 0; k < i; k++) {
            CHECK(strcmp(row->name, bench_option_rows[k].name) != 0, "--%s twice", row->name);
            CHECK(!row->letter || row->letter != bench_option_rows[k].letter, "-%c twice",
                  row->letter);
        }
    }
}

static void check_values(void)
{
    struct bench_options o;

    bench_options_init(&o);
    CHECK(o.check && o.seed == 1 && o.warmup_iters == 1000 && o.given == 0, "defaults");
    accept(&o, BENCH_OPT_ITERS, "500");
    accept(&o, BENCH_OPT_SIZE, "64K");
    accept(&o, BENCH_OPT_MAX_BYTES, "2M");
    accept(&o, BENCH_OPT_MIN_BYTES, "1g");
    accept(&o, BENCH_OPT_TIMEOUT, "0.25");
    accept(&o, BENCH_OPT_SCOPE, "block");
    accept(&o, BENCH_OPT_CHECK, "off");
    accept(&o, BENCH_OPT_HISTOGRAM, NULL);
    accept(&o, BENCH_OPT_DEVICE, "mlx5_soft0");
    accept(&o, BENCH_OPT_INLINE, "0");
    accept(&o, BENCH_OPT_GPU, "3");
    accept(&o, BENCH_OPT_INJECT, "flip=7");
    accept(&o, BENCH_OPT_SEED, "18446744073709551615");
    accept(&o, BENCH_OPT_VENDORS, NULL);
    CHECK(!o.vendors, "vendors without a path");
    accept(&o, BENCH_OPT_VENDORS, "/opt/nccl:/opt/nvshmem");
    CHECK(strcmp(o.vendors, "/opt/nccl:/opt/nvshmem") == 0, "vendors");
    CHECK(o.iters == 500 && o.size == 65536 && o.max_bytes == 2097152 && o.min_bytes == 1073741824,
          "numbers and sizes");
    CHECK(o.timeout_ns == 250000000, "0.25 s is %llu ns", (unsigned long long)o.timeout_ns);
    CHECK(o.scope == BENCH_SCOPE_BLOCK && !o.check && o.histogram, "choices and flags");
    CHECK(strcmp(o.device, "mlx5_soft0") == 0 && o.inline_bytes == 0, "texts");
    CHECK(o.gpu == BENCH_GPU_CUDA && o.gpu_index == 3 && strcmp(o.gpu_text, "3") == 0, "gpu");
    accept(&o, BENCH_OPT_GPU, "cuda:1");
    CHECK(o.gpu == BENCH_GPU_CUDA && o.gpu_index == 1, "a GPU by the name that messages give it");
    accept(&o, BENCH_OPT_GPU, "cpu");
    CHECK(o.gpu == BENCH_GPU_CPU && o.gpu_index == 0, "the last --gpu is another GPU");
    CHECK(o.flip_offset == 7 && o.seed == UINT64_MAX, "inject and seed");
}

static void check_refusals(void)
{
    refuse(BENCH_OPT_GPU, "cuda:");
    refuse(BENCH_OPT_GPU, "cuda:256");
    refuse(BENCH_OPT_ITERS, "0");
    refuse(BENCH_OPT_ITERS, "");
    refuse(BENCH_OPT_ITERS, "-1");
    refuse(BENCH_OPT_ITERS, "+1");
    refuse(BENCH_OPT_ITERS, " 1");
    refuse(BENCH_OPT_ITERS, "1x");
    refuse(BENCH_OPT_ITERS, "1K");
    refuse(BENCH_OPT_ITERS, "99999999999999999999");
    refuse(BENCH_OPT_SIZE, "0");
    refuse(BENCH_OPT_SIZE, "1T");
    refuse(BENCH_OPT_SIZE, "1KK");
    refuse(BENCH_OPT_SIZE, "4G");
    refuse(BENCH_OPT_SIZE, "17179869185G");
    refuse(BENCH_OPT_DURATION, "0");
    refuse(BENCH_OPT_DURATION, ".");
    refuse(BENCH_OPT_DURATION, "1e3");
    refuse(BENCH_OPT_DURATION, "nan");
    refuse(BENCH_OPT_DURATION, "1.2.3");
    refuse(BENCH_OPT_SCOPE, "grid");
    refuse(BENCH_OPT_SCOPE, "thread|warp");
    refuse(BENCH_OPT_CHECK, "yes");
    refuse(BENCH_OPT_GPU, "tpu");
    refuse(BENCH_OPT_GPU, "-1");
    refuse(BENCH_OPT_INJECT, "flip");
    refuse(BENCH_OPT_INJECT, "flip=");
    refuse(BENCH_OPT_INJECT, "drop=1");
    refuse(BENCH_OPT_DEPTH, "0");
}

struct pair {
    enum bench_option option;
    const char *text;
};

/* Sets the options first to last and last to first, which must not matter. */
static bool agree(const struct pair *pair, size_t n)
{
    char backward_error[BENCH_ERROR_BYTES] = "";
    struct bench_options forward;
    struct bench_options backward;

    bench_options_init(&forward);
    bench_options_init(&backward);
    for (size_t i = 0; i < n; i++) {
        accept(&forward, pair[i].option, pair[i].text);
        accept(&backward, pair[n - 1 - i].option, pair[n - 1 - i].text);
    }

    error[0] = '\0';
    bool agreed = bench_options_agree(&forward, error);
    CHECK(bench_options_agree(&backward, backward_error) == agreed &&
              strcmp(error, backward_error) == 0 && forward.given == backward.given,
          "in one order '%s', in the other '%s'", error, backward_error);
    return agreed;
}

#define AGREE(...)                                                                                 \
    agree((struct pair[]){__VA_ARGS__}, sizeof((struct pair[]){__VA_ARGS__}) / sizeof(struct pair))

static void check_agreement(void)
{
    CHECK(AGREE({BENCH_OPT_ITERS, "10"}, {BENCH_OPT_UNSORTED, NULL}, {BENCH_OPT_SIZE, "8"}), "%s",
          error);
    CHECK(!AGREE({BENCH_OPT_ITERS, "10"}, {BENCH_OPT_DURATION, "1"}), "-n with -D");
    CHECK(!AGREE({BENCH_OPT_UNSORTED, NULL}, {BENCH_OPT_DURATION, "1"}), "-U with -D");
    CHECK(!AGREE({BENCH_OPT_SIZE, "8"}, {BENCH_OPT_ALL, NULL}), "-s with -a");
    CHECK(!AGREE({BENCH_OPT_SIZE, "8"}, {BENCH_OPT_MAX_BYTES, "64"}), "-s with a sweep");
    CHECK(!AGREE({BENCH_OPT_MIN_BYTES, "128"}, {BENCH_OPT_MAX_BYTES, "64"}), "min above max");
    CHECK(!AGREE({BENCH_OPT_MTU, "1000"}, {BENCH_OPT_SL, "1"}), "--mtu=1000");
    CHECK(!AGREE({BENCH_OPT_DEPTH, "48"}, {BENCH_OPT_SL, "1"}), "--tx-depth=48");
    CHECK(!AGREE({BENCH_OPT_INJECT, "flip=0"}, {BENCH_OPT_CHECK, "off"}),
          "--inject without --check");
    CHECK(!AGREE({BENCH_OPT_ITERS, "60000000"}, {BENCH_OPT_REPETITIONS, "100"}),
          "too many samples");
}

static void check_sweep(const struct bench_options *options, const uint64_t *expected, size_t n)
{
    struct bench_sizes sizes = bench_sizes_of(options, 8);
    uint64_t bytes;

    for (size_t i = 0; i < n; i++) {
        CHECK(bench_sizes_next(&sizes, &bytes) && bytes == expected[i], "size %zu is %llu", i,
              (unsigned long long)bytes);
    }
    CHECK(!bench_sizes_next(&sizes, &bytes), "a size too many: %llu", (unsigned long long)bytes);
}

static void check_sizes(void)
{
    struct bench_options o;

    bench_options_init(&o);
    check_sweep(&o, (uint64_t[]){8}, 1);
    accept(&o, BENCH_OPT_MIN_BYTES, "3");
    accept(&o, BENCH_OPT_MAX_BYTES, "100");
    accept(&o, BENCH_OPT_STEP_FACTOR, "4");
    check_sweep(&o, (uint64_t[]){3, 12, 48}, 3);
    bench_options_init(&o);
    accept(&o, BENCH_OPT_SIZE, "1K");
    check_sweep(&o, (uint64_t[]){1024}, 1);
}

int main(void)
{
    check_table();
    check_values();
    check_refusals();
    check_agreement();
    check_sizes();
    return 0;
}
