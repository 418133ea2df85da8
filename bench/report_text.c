/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results as text. Properties that all results of a case share are stated once above the table;
 * those that differ are columns. A result that stands beside several figures of the paper takes a
 * line for each of them.
 */
#include "report.h"

#include "reference.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX (BENCH_CONFIG_MAX + 12)
#define CELL_BYTES  96

enum column_kind {
    COLUMN_SYSTEM,
    COLUMN_CONFIG,
    COLUMN_METRIC,
    COLUMN_BYTES,
    COLUMN_SAMPLES,
    COLUMN_MEDIAN,
    COLUMN_P99,
    COLUMN_UNIT,
    COLUMN_PAYLOAD,
    COLUMN_PAPER,
    COLUMN_RATIO,
    COLUMN_ROW,
};

struct column {
    enum column_kind kind;
    const char *title;
    bool right; /* numbers are aligned to the right */
    size_t width;
};

struct table {
    const struct bench_record *record;
    size_t count;
    struct column column[COLUMNS_MAX];
    size_t n_columns;
};

/* ---- Properties ---- */

static const struct bench_config *find_config(const struct bench_record *record, const char *key)
{
    for (size_t i = 0; i < BENCH_CONFIG_MAX && record->config[i].key; i++) {
        if (strcmp(record->config[i].key, key) == 0)
            return &record->config[i];
    }
    return NULL;
}

static bool same_config(const struct bench_config *a, const struct bench_config *b)
{
    if (!a || !b || !a->text != !b->text)
        return false;
    return a->text ? strcmp(a->text, b->text) == 0 : a->number == b->number;
}

/* Whether all records have the property, with one value. */
static bool shared_config(const struct table *table, const struct bench_config *config)
{
    for (size_t i = 0; i < table->count; i++) {
        if (!same_config(config, find_config(&table->record[i], config->key)))
            return false;
    }
    return true;
}

static void format_config(const struct bench_config *config, char *text)
{
    if (!config)
        snprintf(text, CELL_BYTES, "-");
    else if (config->text)
        snprintf(text, CELL_BYTES, "%s", config->text);
    else
        snprintf(text, CELL_BYTES, "%llu", (unsigned long long)config->number);
}

/* ---- Cells ---- */

static void format_number(double value, char *text)
{
    if (value >= 1000 && value < 1e15)
        snprintf(text, CELL_BYTES, "%.0f", value);
    else
        snprintf(text, CELL_BYTES, "%#.4g", value);
}

static void format_ratio(const struct bench_record *record, const struct bench_reference *reference,
                         char *text)
{
    double factor = bench_unit_factor(record->unit, reference->unit);

    if (factor > 0 && reference->number > 0)
        snprintf(text, CELL_BYTES, "%.3gx", record->stats.typical * factor / reference->number);
    else
        snprintf(text, CELL_BYTES, "-");
}

/* The cells that depend on the line: each line of a record stands beside another figure. */
static void format_reference(const struct bench_record *record, enum column_kind kind, size_t line,
                             char *text)
{
    const char *id = line < BENCH_REFERENCES_MAX ? record->references[line] : NULL;
    const struct bench_reference *reference = id ? bench_reference_find(id) : NULL;

    text[0] = '\0';
    if (!reference)
        return;
    if (kind == COLUMN_PAPER)
        snprintf(text, CELL_BYTES, "%s %s", reference->value, reference->unit);
    else if (kind == COLUMN_RATIO)
        format_ratio(record, reference, text);
    else
        snprintf(text, CELL_BYTES, "%s %s%s%s%s%s", reference->id, reference->platform,
                 reference->system[0] ? " " : "", reference->system, reference->stat[0] ? ", " : "",
                 reference->stat);
}

static void format_cell(const struct bench_record *record, const struct column *column, size_t line,
                        char *text)
{
    static const char *const payload[] = {
        [BENCH_UNCHECKED] = "-", [BENCH_VALID] = "valid", [BENCH_INVALID] = "WRONG"};

    text[0] = '\0';
    if (column->kind >= COLUMN_PAPER) {
        format_reference(record, column->kind, line, text);
        return;
    }
    if (line > 0)
        return;

    switch (column->kind) {
    case COLUMN_SYSTEM:
        snprintf(text, CELL_BYTES, "%s", record->system);
        break;
    case COLUMN_CONFIG:
        format_config(find_config(record, column->title), text);
        break;
    case COLUMN_METRIC:
        snprintf(text, CELL_BYTES, "%s", record->metric);
        break;
    case COLUMN_BYTES:
        snprintf(text, CELL_BYTES, "%llu", (unsigned long long)record->msg_bytes);
        break;
    case COLUMN_SAMPLES:
        snprintf(text, CELL_BYTES, "%llu", (unsigned long long)record->stats.n);
        break;
    case COLUMN_MEDIAN:
        format_number(record->stats.typical, text);
        break;
    case COLUMN_P99:
        format_number(record->stats.p99, text);
        break;
    case COLUMN_UNIT:
        snprintf(text, CELL_BYTES, "%s", record->unit);
        break;
    default:
        snprintf(text, CELL_BYTES, "%s", payload[record->valid]);
        break;
    }
}

static size_t lines_of(const struct bench_record *record)
{
    size_t lines = 0;

    while (lines < BENCH_REFERENCES_MAX && record->references[lines])
        lines++;
    return lines ? lines : 1;
}

/* ---- Layout ---- */

static void add_column(struct table *table, enum column_kind kind, const char *title, bool right)
{
    struct column column = {kind, title, right, strlen(title)};
    char text[CELL_BYTES];

    if (table->n_columns == COLUMNS_MAX)
        return;
    for (size_t i = 0; i < table->count; i++) {
        for (size_t line = 0; line < lines_of(&table->record[i]); line++) {
            format_cell(&table->record[i], &column, line, text);
            if (strlen(text) > column.width)
                column.width = strlen(text);
        }
    }
    table->column[table->n_columns++] = column;
}

static bool has_column(const struct table *table, const char *key)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        if (table->column[i].kind == COLUMN_CONFIG && strcmp(table->column[i].title, key) == 0)
            return true;
    }
    return false;
}

static void add_config_columns(struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct bench_config *config = table->record[i].config;
        for (size_t k = 0; k < BENCH_CONFIG_MAX && config[k].key; k++) {
            if (!shared_config(table, &config[k]) && !has_column(table, config[k].key))
                add_column(table, COLUMN_CONFIG, config[k].key, !config[k].text);
        }
    }
}

static void lay_out(struct table *table)
{
    bool messages = false;
    bool references = false;

    for (size_t i = 0; i < table->count; i++) {
        messages |= table->record[i].msg_bytes != 0;
        references |= table->record[i].references[0] != NULL;
    }
    add_column(table, COLUMN_SYSTEM, "system", false);
    add_config_columns(table);
    add_column(table, COLUMN_METRIC, "metric", false);
    if (messages)
        add_column(table, COLUMN_BYTES, "bytes", true);
    add_column(table, COLUMN_SAMPLES, "samples", true);
    add_column(table, COLUMN_MEDIAN, "p50", true);
    add_column(table, COLUMN_P99, "p99", true);
    add_column(table, COLUMN_UNIT, "unit", false);
    if (messages)
        add_column(table, COLUMN_PAYLOAD, "payload", false);
    if (references) {
        add_column(table, COLUMN_PAPER, "paper", true);
        add_column(table, COLUMN_RATIO, "p50/paper", true);
        add_column(table, COLUMN_ROW, "paper's row", false);
    }
}

/* ---- Printing ---- */

static void print_line(const struct table *table, const struct bench_record *record, size_t line,
                       FILE *out)
{
    char text[CELL_BYTES];
    size_t blanks =
        0; /* owed before the next cell that is not empty, so that no line ends in any */

    for (size_t i = 0; i < table->n_columns; i++) {
        const struct column *column = &table->column[i];

        if (record)
            format_cell(record, column, line, text);
        else
            snprintf(text, sizeof(text), "%s", column->title);

        size_t pad = column->width - strlen(text);
        if (text[0] == '\0') {
            blanks += pad + 2;
            continue;
        }
        fprintf(out, "%*s%s", (int)(blanks + (column->right ? pad : 0)), "", text);
        blanks = 2 + (column->right ? 0 : pad);
    }
    fputc('\n', out);
}

/* What took part, in words: a figure of a software device must not be taken for one of hardware. */
static void print_where(const struct bench_where *where, FILE *out)
{
    bool played = strcmp(where->gpu_kind, "cpu") == 0;
    bool real_gpu = where->gpu_kind[0] && !played;

    if (!where->nic[0] && !where->gpu_kind[0]) {
        fputs("No NIC and no GPU took part.\n", out);
        return;
    }
    fprintf(out, "%s%s; %s%s", where->nic_software ? "Software device " : "",
            where->nic[0] ? where->nic : "No NIC took part",
            played     ? "GPU threads played by CPU threads"
            : real_gpu ? "GPU "
                       : "no GPU took part",
            real_gpu ? where->gpu_name : "");
    if (where->nic_software && !real_gpu)
        fputs(": these are not NIC or GPU figures.\n", out);
    else if (where->nic_software)
        fputs(": these are not NIC figures.\n", out);
    else if (!real_gpu)
        fputs(": these are not GPU figures.\n", out);
    else
        fputs(".\n", out);
}

static void print_shared(const struct table *table, FILE *out)
{
    const struct bench_config *config = table->record[0].config;
    const char *lead = "All rows: ";
    char text[CELL_BYTES];

    if (table->count < 2)
        return;
    for (size_t i = 0; i < BENCH_CONFIG_MAX && config[i].key; i++) {
        if (!shared_config(table, &config[i]))
            continue;
        format_config(&config[i], text);
        fprintf(out, "%s%s=%s", lead, config[i].key, text);
        lead = ", ";
    }
    if (lead[0] == ',')
        fputc('\n', out);
}

static void print_details(const struct bench_record *record, FILE *out)
{
    char text[CELL_BYTES];

    if (!record->histogram && !record->samples)
        return;
    fprintf(out, "\n%s: %s %s", record->experiment, record->system, record->metric);
    for (size_t i = 0; i < BENCH_CONFIG_MAX && record->config[i].key; i++) {
        format_config(&record->config[i], text);
        fprintf(out, ", %s=%s", record->config[i].key, text);
    }
    fprintf(out, ": %llu samples, min %.4g, avg %.4g, max %.4g %s, %llu outliers\n",
            (unsigned long long)record->stats.n, record->stats.min, record->stats.avg,
            record->stats.max, record->unit, (unsigned long long)record->stats.outliers);
    if (record->histogram)
        bench_histogram_print(record->histogram, record->factor, record->unit, out);
    for (uint64_t i = 0; record->samples && i < record->stats.n; i++)
        fprintf(out, "%llu, %.6g\n", (unsigned long long)i, record->samples[i] * record->factor);
}

void bench_report_text(const struct bench_case *row, const struct bench_record *record,
                       size_t count, FILE *out)
{
    struct table table = {.record = record, .count = count};

    fprintf(out, "%s", row->name);
    for (size_t i = 0; i < BENCH_PAPER_MAX && row->paper[i]; i++)
        fprintf(out, "%s%s", i ? ", " : " (", row->paper[i]);
    fprintf(out, "%s: %s\n", row->paper[0] ? ")" : "", row->summary);

    print_where(&record->where, out);
    lay_out(&table);
    print_shared(&table, out);
    print_line(&table, NULL, 0, out);
    for (size_t i = 0; i < count; i++) {
        for (size_t line = 0; line < lines_of(&record[i]); line++)
            print_line(&table, &record[i], line, out);
    }
    for (size_t i = 0; i < count; i++)
        print_details(&record[i], out);
}
