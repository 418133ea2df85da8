/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the benchmark's puts with an exchanged record arrive, each payload valid, as do those with
 * a stored one, and the result says which it was. A ring in GPU memory takes a NIC, so here both
 * are put in GPU order into host memory, where CPU threads play the GPU and keep stores in order.
 */
#include "bench/puts.h"

#include <string.h>

#include "tests/check.h"

#define BYTES 8

int main(void)
{
    static const struct bench_case row = {.name = "exchanged", .paper = {"T4"}};
    static const enum db_record records[] = {DB_WITH_RECORD, DB_RECORD_EXCHANGED};
    struct bench_options options;
    struct bench_results results = {0};
    struct bench b = {.row = &row, .options = &options, .results = &results};
    char error[BENCH_ERROR_BYTES];

    bench_options_init(&options);
    CHECK(bench_options_set(&options, BENCH_OPT_GPU, "cpu", error), "%s", error);
    CHECK(bench_options_set(&options, BENCH_OPT_ITERS, "3000", error), "%s", error);
    options.repetitions = 1;
    CHECK(puts_setup(&b, BYTES) == BENCH_PASS, "no queues");
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        for (int inlined = 0; inlined < 2; inlined++) {
            const struct puts_variant variant = {
                .inlined = inlined, .order = DB_ORDER_GPU, .record = records[i], .bytes = BYTES};
            CHECK(puts_measure(&b, &variant) == BENCH_PASS, "record %d", (int)records[i]);
        }
    }
    CHECK(results.count == 8, "%zu results", results.count);
    for (size_t i = 0; i < results.count; i++) {
        const struct bench_config *how = &results.record[i].config[2];
        CHECK(strcmp(how->key, "record") == 0 &&
                  strcmp(how->text, i < 4 ? "with" : "exchanged") == 0,
              "result %zu: %s %s", i, how->key, how->text);
        CHECK(results.record[i].valid == BENCH_VALID, "result %zu is not valid", i);
    }
    puts_teardown(&b);
    bench_results_free(&results);
    return 0;
}
