/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an experiment is, and what the harness does for it. Each file in cases/ includes this
 * header, defines one row, and is named in the table of cases.c; tool/cmd_bench.c runs the rows
 * that the user asks for. What a result holds is in docs/design.md, "A result".
 *
 * A measurement, as a case writes it (cases/null.c is the smallest whole one):
 *
 *     bench_samples_init(&samples, bench_capacity(b));
 *     for (uint64_t r = 0; r < b->options->repetitions; r++) {
 *         ... b->options->warmup_iters operations ...
 *         bench_pace_start(&pace, b, "issue");
 *         while ((n = bench_pace_next(&pace, chunk)) > 0)
 *             ... n operations, each followed by bench_samples_add() ...
 *     }
 *     status = bench_check_payload(b, &record.valid, received, bytes, index);
 *     return bench_worse(status, bench_report(b, &record, &samples));
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "clock.h"
#include "options.h"
#include "payload.h"
#include "record.h"
#include "samples.h"
#include "sm_clock.h"

/* The exit status of the command. */
enum bench_status {
    BENCH_PASS = 0,
    BENCH_FAIL = 1,     /* an error, or a payload that is not what was sent */
    BENCH_USAGE = 2,    /* the options ask for something that cannot be */
    BENCH_DEGRADED = 3, /* finished, but something makes the numbers doubtful */
    BENCH_SKIPPED = 77, /* cannot run on this machine */
};

struct bench;

#define BENCH_PAPER_MAX 8

/*
 * A row. setup() makes what the measurement needs, keeps it in b->state and fills in b->where;
 * run() measures and reports; teardown() releases, and is called whenever setup() was, whatever
 * setup() and run() returned. setup and teardown may be NULL. Their statuses come from the
 * functions below, which also tell the user.
 */
struct bench_case {
    const char *name;
    const char *paper[BENCH_PAPER_MAX]; /* "T3", ...; up to the first NULL */
    const char *summary;                /* one line, without a full stop */
    uint64_t uses;                      /* BENCH_USE() of each option that it reads */
    uint64_t iters;                     /* its defaults; 0: 10000 and 1 */
    uint64_t repetitions;
    uint64_t least_depth;  /* of a --tx-depth that is given; 0: any */
    const char *depth_why; /* why no less */
    bool any_clock;        /* it is about the SM's clock, which need not stay as it was */
    enum bench_status (*setup)(struct bench *b);
    enum bench_status (*run)(struct bench *b);
    void (*teardown)(struct bench *b);
};

/* The table of cases.c, which ends with NULL. */
extern const struct bench_case *const bench_cases[];

/* One case while it runs. It belongs to one thread. */
struct bench {
    const struct bench_case *row;
    const struct bench_options *options; /* with the row's defaults filled in */
    struct bench_where where;            /* setup() fills in the NIC and the GPU */
    struct sm_clock sm_clock;            /* of the GPU; the harness tells when it was off */
    void *state;                         /* the case's own */
    struct bench_results *results;       /* the harness's own */
};

/* ---- What to tell the user: each prints one sentence and returns its status ---- */

enum bench_status bench_fail(const struct bench *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum bench_status bench_usage(const struct bench *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum bench_status bench_degrade(const struct bench *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum bench_status bench_warn(const struct bench *b, const char *format, ...) /* a pass */
    __attribute__((format(printf, 2, 3)));
enum bench_status bench_skip(const struct bench *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The status that tells of both: a failure before a usage error before a degradation before a pass;
 * skipped only when both are. */
enum bench_status bench_worse(enum bench_status a, enum bench_status b);

/* ---- How long to measure ---- */

/* The capacity for bench_samples_init() when each iteration of each repetition gives one sample; 0,
 * a histogram, with --duration. For other numbers of samples give the number itself. */
uint64_t bench_capacity(const struct bench *b);

/* How long one run of a case is that measures a rate over whole runs, from the rate of a first
 * short one: --duration, or 0.1 s; in nanoseconds. */
double bench_run_ns(const struct bench *b);

struct bench_pace {
    const struct bench *b;
    const char *what;
    uint64_t left;     /* iterations, when the end is not a time */
    uint64_t start_ns; /* CLOCK_MONOTONIC */
};

/* Starts one repetition of what the progress line on a terminal will call `what`. */
void bench_pace_start(struct bench_pace *pace, const struct bench *b, const char *what);

/* How many iterations to do now: at most `chunk` (what the case can hold), 0 when the repetition is
 * over. Call it outside the timed part. */
uint64_t bench_pace_next(struct bench_pace *pace, uint64_t chunk);

/* ---- Whether the payload arrived ---- */

/*
 * Compares received memory with the pattern of message `index` (bench_payload_fill() with the seed
 * of the options) and sets *valid. Returns BENCH_PASS; BENCH_FAIL with the offset of the first
 * wrong byte told. Does nothing with --check=off. With --inject=flip=OFFSET it first falsifies that
 * byte, and the comparison has to fail: BENCH_USAGE when the payload is too short for that. The
 * memory must be readable and writable by the CPU; what lies in a GPU is copied out first.
 */
enum bench_status bench_check_payload(const struct bench *b, enum bench_valid *valid, void *memory,
                                      size_t bytes, uint64_t index);

/* ---- The result ---- */

/*
 * Completes the record from the samples (times in nanoseconds, converted to the record's unit; all
 * else in that unit already) and from the state of the machine, and keeps it for the table and the
 * JSON document. Returns BENCH_PASS; BENCH_FAIL without memory, without samples, or when the record
 * names an unknown unit or reference.
 */
enum bench_status bench_report(struct bench *b, const struct bench_record *record,
                               const struct bench_samples *samples);

/* The same of a result that is one value, and of one that is none: `why` says so in its place. */
enum bench_status bench_report_value(struct bench *b, const struct bench_record *record,
                                     double value);
enum bench_status bench_report_none(struct bench *b, const struct bench_record *record,
                                    const char *why);

/* Sets the number of property `key` of the result that was reported `index` results after the first
 * of the run: for what is known only when others are measured as well. */
void bench_amend(struct bench *b, size_t index, const char *key, uint64_t number);

#endif
