/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads data/reference.csv. The file is plain: ten fields a line, a header line, no quotes (a comma
 * inside a field would have to be one) and no empty line; tests/unit/bench_reference.c holds it to
 * that.
 */
#include "reference.h"

#include "reference_data.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct bench_reference *rows; /* their fields point into the text */
static char *text;
static size_t n_rows;

/* Cuts the next field off *cursor, at a comma or the end of the line. */
static const char *cut(char **cursor)
{
    char *field = *cursor;
    size_t bytes = strcspn(field, ",");

    *cursor = field + bytes + (field[bytes] == ',');
    field[bytes] = '\0';
    return field;
}

static struct bench_reference read_row(char *line)
{
    struct bench_reference row = {0};

    row.id = cut(&line);
    row.experiment = cut(&line);
    row.platform = cut(&line);
    row.system = cut(&line);
    row.config = cut(&line);
    row.metric = cut(&line);
    row.unit = cut(&line);
    row.value = cut(&line);
    row.stat = cut(&line);
    row.source = cut(&line);
    row.number = strtod(row.value, NULL);
    return row;
}

static void load(void)
{
    size_t bytes = (size_t)(bench_reference_csv_end - bench_reference_csv);
    size_t lines = 0;

    for (size_t i = 0; i < bytes; i++)
        lines += bench_reference_csv[i] == '\n';
    text = malloc(bytes + 1);
    rows = calloc(lines + 1, sizeof(*rows));
    if (!text || !rows) {
        free(rows);
        free(text);
        rows = NULL;
        return;
    }
    memcpy(text, bench_reference_csv, bytes);
    text[bytes] = '\0';

    n_rows = 0;
    char *rest = NULL;
    char *line = strtok_r(text, "\n", &rest);
    while (line && (line = strtok_r(NULL, "\n", &rest)))
        rows[n_rows++] = read_row(line);
}

const struct bench_reference *bench_reference_rows(size_t *count)
{
    if (!rows)
        load();
    *count = n_rows;
    return rows;
}

const struct bench_reference *bench_reference_find(const char *id)
{
    size_t count;
    const struct bench_reference *row = bench_reference_rows(&count);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(row[i].id, id) == 0)
            return &row[i];
    }
    return NULL;
}

size_t bench_reference_print(const char *id, FILE *out)
{
    size_t count;
    size_t printed = 0;
    const struct bench_reference *row = bench_reference_rows(&count);

    for (size_t i = 0; i < count; i++, row++) {
        if (id && strcasecmp(id, row->id) != 0 && strcasecmp(id, row->experiment) != 0)
            continue;
        fprintf(out, "%-5s %-4s %-8s %-24s %-34s %8s %-18s %s%s%s\n", row->id, row->experiment,
                row->platform, row->system, row->metric, row->value, row->unit, row->config,
                row->config[0] && row->stat[0] ? "; " : "", row->stat);
        printed++;
    }
    return printed;
}
