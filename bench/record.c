/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of results and the units that their values come in.
 */
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct bench_unit units[] = {
    {"ns", 't', 1},     {"us", 't', 1e3},       {"ms", 't', 1e6},  {"s", 't', 1e9},
    {"B", 'b', 1},      {"KiB", 'b', 1024},     {"msg/s", 'r', 1}, {"M msg/s", 'r', 1e6},
    {"GB/s", 'g', 1e9}, {"Gb/s", 'g', 1e9 / 8}, {"x", 'x', 1},     {"%", '%', 1},
    {"ppm", 'p', 1},    {"count", 'n', 1},
};

const struct bench_unit *bench_unit(const char *name)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(units[i].name, name) == 0)
            return &units[i];
    }
    return NULL;
}

double bench_unit_factor(const char *from, const char *to)
{
    const struct bench_unit *a = bench_unit(from);
    const struct bench_unit *b = bench_unit(to);

    return a && b && a->dimension == b->dimension ? a->factor / b->factor : 0;
}

int bench_results_add(struct bench_results *results, const struct bench_record *record)
{
    struct bench_record *grown =
        realloc(results->record, (results->count + 1) * sizeof(*results->record));

    if (!grown)
        return -ENOMEM;
    results->record = grown;
    results->record[results->count++] = *record;
    return 0;
}

void bench_results_free(struct bench_results *results)
{
    for (size_t i = 0; i < results->count; i++) {
        free(results->record[i].samples);
        free(results->record[i].histogram);
    }
    free(results->record);
    memset(results, 0, sizeof(*results));
}
