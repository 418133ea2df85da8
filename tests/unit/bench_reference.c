/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: the paper's figures inside the program are data/reference.csv, byte for byte, and every
 * row of it is read.
 */
#include "bench/record.h"
#include "bench/reference.h"
#include "bench/reference_data.h"
#include "tests/check.h"

#include <string.h>

static const char *csv_path(void)
{
    static char path[4096];
    const char *source = getenv("DOORBELL_SOURCE");

    snprintf(path, sizeof(path), "%s/data/reference.csv", source ? source : ".");
    return path;
}

/* Also holds the file to what the reader expects: ten fields a line, no quotes, no empty line. */
static size_t check_bytes(void)
{
    FILE *file = fopen(csv_path(), "r");
    const char *embedded = bench_reference_csv;
    char line[4096];
    size_t lines = 0;

    CHECK(file, "cannot read %s", csv_path());
    while (fgets(line, sizeof(line), file)) {
        size_t bytes = strlen(line);
        size_t commas = 0;

        lines++;
        for (size_t i = 0; i < bytes; i++)
            commas += line[i] == ',';
        CHECK(commas == 9 && !strpbrk(line, "\"\r") && line[bytes - 1] == '\n', "line %zu: %s",
              lines, line);
        CHECK(embedded + bytes <= bench_reference_csv_end && memcmp(embedded, line, bytes) == 0,
              "line %zu is another in the program", lines);
        embedded += bytes;
    }
    CHECK(embedded == bench_reference_csv_end, "the program holds more than the file");
    fclose(file);
    return lines;
}

int main(void)
{
    size_t lines = check_bytes();
    size_t count;
    const struct bench_reference *row = bench_reference_rows(&count);

    CHECK(count == lines - 1 && count > 400, "%zu rows of %zu lines", count, lines);
    for (size_t i = 0; i < count; i++) {
        CHECK(row[i].id[0] == 'R' && row[i].metric[0] && row[i].unit[0] && row[i].value[0],
              "row %zu is incomplete", i);
        CHECK(bench_reference_find(row[i].id) == &row[i], "%s twice", row[i].id);
    }

    row = bench_reference_find("R041");
    CHECK(row && strcmp(row->experiment, "T3") == 0 && strcmp(row->platform, "P-IB") == 0 &&
              strcmp(row->value, "0.70") == 0 && row->number == 0.7,
          "R041");
    CHECK(!bench_reference_find("R000") && !bench_reference_find(""), "a row that is not there");
    CHECK(bench_unit_factor("ns", row->unit) == 1e-3 && bench_unit_factor("B", row->unit) == 0,
          "units");
    return 0;
}
