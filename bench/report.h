/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two forms in which results leave the program: tables for a reader (report_text.c) and one
 * JSON document (report_json.c). Included by run.c.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench.h"

#include <stdio.h>

/* Prints what a case measured, `record[0]` to `record[count - 1]`: in words, as a table with the
 * paper's figures beside, and the histograms and samples that records carry. */
void bench_report_text(const struct bench_case *row, const struct bench_record *record,
                       size_t count, FILE *out);

struct bench_document {
    const char *version;
    const char *command;
    const struct bench_machine *machine;
    const struct bench_results *results;
};

/* Writes the document and a newline. Returns 0; -ENOMEM; -EIO when the stream took less. */
int bench_report_json(const struct bench_document *document, FILE *out);

#endif
