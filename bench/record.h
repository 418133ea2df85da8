/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One result: what was measured, how, where, what came out, and the paper's figures for the same.
 * The fields are those of "A result" in docs/design.md. Included by bench.h and report_table.h.
 */
#ifndef BENCH_RECORD_H
#define BENCH_RECORD_H

#include "machine.h"
#include "samples.h"

#include <stdbool.h>

#define BENCH_CONFIG_MAX     16
#define BENCH_REFERENCES_MAX 8

/* One property of what was measured: a word, or a number when `text` is NULL. */
struct bench_config {
    const char *key;
    const char *text;
    uint64_t number;
};

enum bench_valid {
    BENCH_UNCHECKED, /* no payload, or --check=off */
    BENCH_VALID,
    BENCH_INVALID,
};

/* What took part in the measurement. */
struct bench_where {
    char nic[64]; /* empty when no NIC took part */
    bool nic_software;
    char gpu_kind[8]; /* "cuda", or "cpu" when CPU threads played the GPU's; empty without either */
    char gpu_name[128];
    double gpu_sm_mhz;        /* measured in the kernel; 0 when unknown */
    double gpu_sm_before_mhz; /* measured when the GPU was opened */
    double gpu_sm_stated_mhz; /* as the driver tells it; 0 when it does not */
    struct bench_cpu_state cpu;
};

/* A case fills the first part; all texts must live until the program ends. */
struct bench_record {
    const char *paper_id;                         /* NULL: the first of the case's row */
    const char *system;                           /* mini-gda, libmlx5, null, ... */
    struct bench_config config[BENCH_CONFIG_MAX]; /* up to the first without a key */
    const char *metric;                           /* issue, put_completion, rate, ... */
    const char *unit;                             /* of the result; one that bench_unit() knows */
    uint64_t msg_bytes;
    uint64_t iterations; /* operations behind the samples; 0: one for each sample */
    enum bench_valid valid;
    const char *posted; /* a WQE as it lay in memory, in hexadecimal; NULL: none to show */
    const char *ours;   /* the one that it was compared with, "??" for bytes that may differ */
    const char
        *references[BENCH_REFERENCES_MAX]; /* ids of data/reference.csv, up to the first NULL */

    /* Filled by bench_report(). */
    const char *experiment;
    const char *why_none;     /* there is no value, and why; else NULL */
    struct bench_stats stats; /* in `unit` */
    struct bench_where where;
    double factor;                     /* from a sample to `unit` */
    double *samples;                   /* stats.n of them with --report-unsorted, else NULL */
    struct bench_histogram *histogram; /* with --report-histogram, else NULL */
};

/* All results of a run, in the order they came. */
struct bench_results {
    struct bench_record *record;
    size_t count;
};

/* Takes over a filled record. Returns 0 or -ENOMEM, and then the record is still the caller's. */
int bench_results_add(struct bench_results *results, const struct bench_record *record);
void bench_results_free(struct bench_results *results);

/* A unit: values of one dimension convert into each other by their factors. */
struct bench_unit {
    const char *name;
    char dimension; /* 't'ime, 'b'ytes, 'r'ate, 'g'oodput; else comparable only with itself */
    double factor;  /* to the dimension's base: nanoseconds, bytes, messages or bytes per second */
};

/* NULL when the name is not known. */
const struct bench_unit *bench_unit(const char *name);

/* The factor that converts a value from one unit to another, or 0 when they do not convert. */
double bench_unit_factor(const char *from, const char *to);

#endif
