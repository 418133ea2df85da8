/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What bench.h offers to a case while it runs: sentences for the user, the pace of a measurement,
 * the check of payloads, and the way from samples to a record.
 */
#include "bench.h"

#include "progress.h"
#include "reference.h"

#include <doorbell/gpu.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library offers other ways in words of its own; here they are options. */
static const struct {
    const char *words;
    const char *option;
} ways[] = {
    {DB_GPU_USE_CPU, "--gpu=cpu"},
    {DB_GPU_FORWARD, "--doorbell=cpu"},
    {"use DB_POST_VERBS", "--post=verbs"},
    {"use DB_MEMORY_HOST", "--progress-memory=host"},
};

/* Prints a sentence with the option behind each way that it offers. */
static void tell(const struct bench *b, const char *kind, const char *format, va_list arguments)
{
    char text[2048];
    const char *rest = text;

    vsnprintf(text, sizeof(text), format, arguments);
    bench_progress_clear();
    fprintf(stderr, "doorbell bench: %s: %s", b->row->name, kind);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        const char *found = strstr(rest, ways[i].words);
        if (!found)
            continue;
        const char *end = found + strlen(ways[i].words);
        fprintf(stderr, "%.*s (%s)", (int)(end - rest), rest, ways[i].option);
        rest = end;
    }
    fprintf(stderr, "%s\n", rest);
}

#define DEFINE_TELLER(function, status, kind)                                                      \
    enum bench_status function(const struct bench *b, const char *format, ...)                     \
    {                                                                                              \
        va_list arguments;                                                                         \
                                                                                                   \
        va_start(arguments, format);                                                               \
        tell(b, kind, format, arguments);                                                          \
        va_end(arguments);                                                                         \
        return status;                                                                             \
    }

DEFINE_TELLER(bench_fail, BENCH_FAIL, "failed: ")
DEFINE_TELLER(bench_usage, BENCH_USAGE, "")
DEFINE_TELLER(bench_degrade, BENCH_DEGRADED, "doubtful: ")
DEFINE_TELLER(bench_warn, BENCH_PASS, "warning: ")
DEFINE_TELLER(bench_skip, BENCH_SKIPPED, "skipped: ")

enum bench_status bench_worse(enum bench_status a, enum bench_status b)
{
    static const enum bench_status order[] = {BENCH_FAIL, BENCH_USAGE, BENCH_DEGRADED, BENCH_PASS};

    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        if (a == order[i] || b == order[i])
            return order[i];
    }
    return BENCH_SKIPPED;
}

/* ---- Pace ---- */

#define RUN_NS 100000000.0

uint64_t bench_capacity(const struct bench *b)
{
    return b->options->duration_ns ? 0 : b->options->iters * b->options->repetitions;
}

double bench_run_ns(const struct bench *b)
{
    return b->options->duration_ns ? (double)b->options->duration_ns : RUN_NS;
}

void bench_pace_start(struct bench_pace *pace, const struct bench *b, const char *what)
{
    *pace = (struct bench_pace){b, what, b->options->iters, bench_monotonic_ns()};
}

uint64_t bench_pace_next(struct bench_pace *pace, uint64_t chunk)
{
    const struct bench_options *options = pace->b->options;
    const char *name = pace->b->row->name;

    if (options->duration_ns) {
        uint64_t spent_ns = bench_monotonic_ns() - pace->start_ns;
        if (spent_ns >= options->duration_ns) {
            bench_progress_clear();
            return 0;
        }
        bench_progress_show(name, pace->what, (double)spent_ns / (double)options->duration_ns);
        return chunk;
    }

    uint64_t now = pace->left < chunk ? pace->left : chunk;
    if (now == 0)
        bench_progress_clear();
    else
        bench_progress_show(name, pace->what, 1 - (double)pace->left / (double)options->iters);
    pace->left -= now;
    return now;
}

/* ---- Payload ---- */

enum bench_status bench_check_payload(const struct bench *b, enum bench_valid *valid, void *memory,
                                      size_t bytes, uint64_t index)
{
    const struct bench_options *options = b->options;
    struct bench_mismatch bad;

    if (!options->check)
        return BENCH_PASS;
    if (bench_given(options, BENCH_OPT_INJECT)) {
        if (options->flip_offset >= bytes)
            return bench_usage(b, "--inject=flip=%llu: the payload has only %zu bytes",
                               (unsigned long long)options->flip_offset, bytes);
        ((uint8_t *)memory)[options->flip_offset] ^= 0xff;
    }
    if (bench_payload_matches(memory, bytes, options->seed, index, &bad)) {
        if (*valid == BENCH_UNCHECKED)
            *valid = BENCH_VALID;
        return BENCH_PASS;
    }
    *valid = BENCH_INVALID;
    return bench_fail(b,
                      "message %llu of %zu bytes: the first wrong byte is at offset %zu: 0x%02x "
                      "instead of 0x%02x (seed %llu)",
                      (unsigned long long)index, bytes, bad.offset, bad.got, bad.expected,
                      (unsigned long long)options->seed);
}

/* ---- Result ---- */

/* Copies the samples into a histogram of their own, or takes a copy of theirs. */
static struct bench_histogram *copy_histogram(const struct bench_samples *samples)
{
    struct bench_histogram *copy = calloc(1, sizeof(*copy));

    if (copy && samples->histogram)
        *copy = *samples->histogram;
    for (uint64_t i = 0; copy && i < samples->count; i++)
        bench_histogram_add(copy, samples->value[i]);
    return copy;
}

static double *copy_samples(const struct bench_samples *samples)
{
    size_t bytes = (size_t)samples->count * sizeof(*samples->value);
    double *copy = malloc(bytes);

    if (copy)
        memcpy(copy, samples->value, bytes);
    return copy;
}

/* Keeps what -H and -U print later. Returns 0 or -ENOMEM. */
static int keep_details(const struct bench_options *options, struct bench_record *record,
                        const struct bench_samples *samples)
{
    if (options->histogram) {
        record->histogram = copy_histogram(samples);
        if (!record->histogram)
            return -ENOMEM;
    }
    if (options->unsorted && samples->value) {
        record->samples = copy_samples(samples);
        if (!record->samples)
            return -ENOMEM;
    }
    return 0;
}

/* Sets the record's unit as the user wants to see it, and the factor from a sample to it. */
static bool settle_unit(const struct bench_options *options, struct bench_record *record)
{
    const struct bench_unit *unit = bench_unit(record->unit);

    if (!unit)
        return false;
    record->factor = unit->dimension == 't' ? 1 / unit->factor : 1;
    if (options->report_gbits && strcmp(record->unit, "GB/s") == 0) {
        record->unit = "Gb/s";
        record->factor = 8;
    }
    return true;
}

/* Completes and keeps a record that has its statistics; `samples` NULL: there are none. */
static enum bench_status keep(struct bench *b, struct bench_record *full,
                              const struct bench_samples *samples)
{
    if (!settle_unit(b->options, full))
        return bench_fail(b, "%s: unknown unit '%s'", full->metric, full->unit);
    for (size_t i = 0; i < BENCH_REFERENCES_MAX && full->references[i]; i++) {
        if (!bench_reference_find(full->references[i]))
            return bench_fail(b, "%s: reference.csv has no row '%s'", full->metric,
                              full->references[i]);
    }

    bench_stats_scale(&full->stats, full->factor);
    full->experiment = b->row->name;
    if (!full->paper_id)
        full->paper_id = b->row->paper[0];
    if (!full->iterations)
        full->iterations = full->stats.n;
    full->where = b->where;
    bench_cpu_state_read(&full->where.cpu);

    if ((samples && keep_details(b->options, full, samples)) ||
        bench_results_add(b->results, full)) {
        free(full->samples);
        free(full->histogram);
        return bench_fail(b, "%s: no memory for the result", full->metric);
    }
    return BENCH_PASS;
}

enum bench_status bench_report(struct bench *b, const struct bench_record *record,
                               const struct bench_samples *samples)
{
    struct bench_record full = *record;
    int error = bench_samples_stats(samples, &full.stats);

    if (error)
        return bench_fail(b, "%s: %s", full.metric,
                          error == -ENOMEM ? "no memory for the statistics" : "samples were lost");
    if (full.stats.n == 0)
        return bench_fail(b, "%s: no samples were taken", full.metric);
    return keep(b, &full, samples);
}

enum bench_status bench_report_none(struct bench *b, const struct bench_record *record,
                                    const char *why)
{
    struct bench_record full = *record;

    full.why_none = why;
    return keep(b, &full, NULL);
}

enum bench_status bench_report_value(struct bench *b, const struct bench_record *record,
                                     double value)
{
    struct bench_samples one;

    if (bench_samples_init(&one, 1))
        return bench_fail(b, "no memory for a result");
    bench_samples_add(&one, value);
    enum bench_status status = bench_report(b, record, &one);
    bench_samples_free(&one);
    return status;
}

void bench_amend(struct bench *b, size_t index, const char *key, uint64_t number)
{
    struct bench_config *config = b->results->record[index].config;

    for (size_t i = 0; i < BENCH_CONFIG_MAX && config[i].key; i++)
        if (strcmp(config[i].key, key) == 0)
            config[i].number = number;
}
