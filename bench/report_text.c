/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results as text. What all results of a case share is stated once above the tables. Results of one
 * system that are described by the same properties form a table: what they share stands in its
 * head, what differs are its first columns, and the figures stand in the same place in all tables.
 * A result beside several figures of the paper takes a line for each of them.
 */
#include "report.h"

#include "reference.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX BENCH_CONFIG_MAX /* the columns of figures are fewer */
#define CELL_BYTES  96
#define LINE_CHARS  100 /* where a list of properties is broken */

enum column_kind {
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

struct columns {
    struct column column[COLUMNS_MAX];
    size_t count;
};

/* Results that stand together: those of a case, or those of one of its tables. */
struct group {
    const struct bench_record *record;
    size_t count;
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
static bool shared_config(const struct group *group, const struct bench_config *config)
{
    for (size_t i = 0; i < group->count; i++) {
        if (!same_config(config, find_config(&group->record[i], config->key)))
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

static const char *const payload_words[] = {
    [BENCH_UNCHECKED] = "-", [BENCH_VALID] = "valid", [BENCH_INVALID] = "WRONG"};

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
    double ratio = reference->number > 0 ? record->stats.typical * factor / reference->number : 0;

    if (ratio > 0)
        snprintf(text, CELL_BYTES, ratio < 1000 ? "%.3gx" : "%.0fx", ratio);
    else
        snprintf(text, CELL_BYTES, "-");
}

/* Says of a figure only what the reader would not expect: another system, another statistic. */
static void format_row(const struct bench_record *record, const struct bench_reference *reference,
                       char *text)
{
    bool other = strcmp(reference->system, record->system) != 0;
    bool median = strncmp(reference->stat, "p50", 3) == 0;

    snprintf(text, CELL_BYTES, "%s%s%s%s%s%s%s", reference->id, reference->platform[0] ? " " : "",
             reference->platform, other && reference->system[0] ? " " : "",
             other ? reference->system : "", median || !reference->stat[0] ? "" : ", ",
             median ? "" : reference->stat);
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
        format_row(record, reference, text);
}

static void format_cell(const struct bench_record *record, const struct column *column, size_t line,
                        char *text)
{
    text[0] = '\0';
    if (column->kind >= COLUMN_PAPER) {
        format_reference(record, column->kind, line, text);
        return;
    }
    if (line > 0)
        return;

    switch (column->kind) {
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
        snprintf(text, CELL_BYTES, "%s", payload_words[record->valid]);
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

static void add_column(struct columns *columns, const struct group *group, enum column_kind kind,
                       const char *title, bool right)
{
    struct column column = {kind, title, right, strlen(title)};
    char text[CELL_BYTES];

    if (columns->count == COLUMNS_MAX)
        return;
    for (size_t i = 0; i < group->count; i++) {
        for (size_t line = 0; line < lines_of(&group->record[i]); line++) {
            format_cell(&group->record[i], &column, line, text);
            if (strlen(text) > column.width)
                column.width = strlen(text);
        }
    }
    columns->column[columns->count++] = column;
}

static bool same_keys(const struct bench_record *a, const struct bench_record *b)
{
    for (size_t i = 0; i < BENCH_CONFIG_MAX && (a->config[i].key || b->config[i].key); i++) {
        if (!a->config[i].key || !b->config[i].key ||
            strcmp(a->config[i].key, b->config[i].key) != 0)
            return false;
    }
    return true;
}

/* The table that begins with all->record[first]. */
static struct group table_at(const struct group *all, size_t first)
{
    struct group table = {.record = &all->record[first], .count = 1};

    while (first + table.count < all->count &&
           strcmp(table.record[table.count].system, table.record->system) == 0 &&
           same_keys(&table.record[table.count], table.record))
        table.count++;
    return table;
}

/* The columns that only this table has: the properties in which its results differ. */
static struct columns own_columns(const struct group *table)
{
    const struct bench_config *config = table->record->config;
    struct columns own = {.count = 0};

    for (size_t i = 0; i < BENCH_CONFIG_MAX && config[i].key; i++) {
        if (!shared_config(table, &config[i]))
            add_column(&own, table, COLUMN_CONFIG, config[i].key, !config[i].text);
    }
    return own;
}

static size_t width_of(const struct columns *columns)
{
    size_t width = 0;

    for (size_t i = 0; i < columns->count; i++)
        width += columns->column[i].width + 2;
    return width;
}

/* What all results of a case have in common, and so is no column. */
struct common {
    bool bytes, samples;
    bool checked, wrong; /* whether any payload was; a result without a payload is neither */
};

static struct common common_of(const struct group *all)
{
    struct common common = {.bytes = true, .samples = true};
    const struct bench_record *first = all->record;

    for (size_t i = 0; i < all->count; i++) {
        common.bytes &= first[i].msg_bytes == first->msg_bytes;
        common.samples &= first[i].stats.n == first->stats.n;
        common.wrong |= first[i].valid == BENCH_INVALID;
        common.checked |= first[i].valid == BENCH_VALID;
    }
    return common;
}

static bool has_references(const struct group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->record[i].references[0])
            return true;
    }
    return false;
}

/* The columns of all tables of a case; those of the paper come last. */
static struct columns figure_columns(const struct group *all, const struct common *common)
{
    struct columns columns = {.count = 0};

    add_column(&columns, all, COLUMN_METRIC, "metric", false);
    if (!common->bytes)
        add_column(&columns, all, COLUMN_BYTES, "bytes", true);
    if (!common->samples)
        add_column(&columns, all, COLUMN_SAMPLES, "samples", true);
    add_column(&columns, all, COLUMN_MEDIAN, "p50", true);
    add_column(&columns, all, COLUMN_P99, "p99", true);
    add_column(&columns, all, COLUMN_UNIT, "unit", false);
    if (common->wrong)
        add_column(&columns, all, COLUMN_PAYLOAD, "payload", false);
    if (has_references(all)) {
        add_column(&columns, all, COLUMN_PAPER, "paper", true);
        add_column(&columns, all, COLUMN_RATIO, "p50/paper", true);
        add_column(&columns, all, COLUMN_ROW, "paper's row", false);
    }
    return columns;
}

/* ---- Printing ---- */

/* Prints a line's cells, or the titles if `record` is NULL. `blanks` are owed before the next cell
 * that is not empty, so that no line ends in any; returns those owed behind the last. */
static size_t print_cells(const struct columns *columns, const struct bench_record *record,
                          size_t line, size_t blanks, FILE *out)
{
    char text[CELL_BYTES];

    for (size_t i = 0; i < columns->count; i++) {
        const struct column *column = &columns->column[i];

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
    return blanks;
}

/* A list of properties, broken at LINE_CHARS. */
struct list {
    const char *lead; /* what goes before the first property */
    size_t chars;     /* in this line; 0 as long as the list is empty */
    FILE *out;
};

static void list_add(struct list *list, const char *text)
{
    size_t chars = strlen(text);

    if (list->chars == 0) {
        fprintf(list->out, "%s%s", list->lead, text);
        list->chars = strlen(list->lead) + chars;
    } else if (list->chars + 2 + chars > LINE_CHARS) {
        fprintf(list->out, ",\n    %s", text);
        list->chars = 4 + chars;
    } else {
        fprintf(list->out, ", %s", text);
        list->chars += 2 + chars;
    }
}

static void list_add_config(struct list *list, const struct bench_config *config)
{
    char value[CELL_BYTES], text[2 * CELL_BYTES];

    format_config(config, value);
    snprintf(text, sizeof(text), "%s=%s", config->key, value);
    list_add(list, text);
}

static void print_common(const struct group *all, const struct common *common, FILE *out)
{
    const struct bench_record *first = all->record;
    struct list list = {.lead = all->count > 1 ? "All rows: " : "", .out = out};
    char text[CELL_BYTES];

    if (common->bytes && first->msg_bytes) {
        snprintf(text, sizeof(text), "%llu bytes", (unsigned long long)first->msg_bytes);
        list_add(&list, text);
    }
    if (common->samples) {
        snprintf(text, sizeof(text), "%llu samples", (unsigned long long)first->stats.n);
        list_add(&list, text);
    }
    if (common->checked && !common->wrong)
        list_add(&list, "payloads valid");
    for (size_t i = 0; i < BENCH_CONFIG_MAX && first->config[i].key; i++) {
        if (shared_config(all, &first->config[i]))
            list_add_config(&list, &first->config[i]);
    }
    if (list.chars)
        fputc('\n', out);
}

static void print_head(const struct group *all, const struct group *table, FILE *out)
{
    const struct bench_config *config = table->record->config;
    struct list list = {.lead = ": ", .out = out};

    fprintf(out, "\n%s", table->record->system);
    for (size_t i = 0; i < BENCH_CONFIG_MAX && config[i].key; i++) {
        if (shared_config(table, &config[i]) && !shared_config(all, &config[i]))
            list_add_config(&list, &config[i]);
    }
    fputc('\n', out);
}

/* The figures stand behind the widest table's own columns. */
static void print_table(const struct group *table, const struct columns *figures, size_t left,
                        FILE *out)
{
    struct columns shown = *figures;
    struct columns own = own_columns(table);
    size_t gap = left - width_of(&own);

    while (shown.column[shown.count - 1].kind >= COLUMN_PAPER && !has_references(table))
        shown.count--;
    print_cells(&shown, NULL, 0, gap + print_cells(&own, NULL, 0, 2, out), out);
    fputc('\n', out);
    for (size_t i = 0; i < table->count; i++) {
        const struct bench_record *record = &table->record[i];
        for (size_t line = 0; line < lines_of(record); line++) {
            print_cells(&shown, record, line, gap + print_cells(&own, record, line, 2, out), out);
            fputc('\n', out);
        }
    }
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
    const struct group all = {.record = record, .count = count};
    struct common common = common_of(&all);
    struct columns figures = figure_columns(&all, &common);
    struct group table;
    size_t left = 0;

    fprintf(out, "%s", row->name);
    for (size_t i = 0; i < BENCH_PAPER_MAX && row->paper[i]; i++)
        fprintf(out, "%s%s", i ? ", " : " (", row->paper[i]);
    fprintf(out, "%s: %s\n", row->paper[0] ? ")" : "", row->summary);
    print_where(&record->where, out);
    print_common(&all, &common, out);

    for (size_t i = 0; i < count; i += table.count) {
        table = table_at(&all, i);
        struct columns own = own_columns(&table);
        if (width_of(&own) > left)
            left = width_of(&own);
    }
    for (size_t i = 0; i < count; i += table.count) {
        table = table_at(&all, i);
        print_head(&all, &table, out);
        print_table(&table, &figures, left, out);
    }
    for (size_t i = 0; i < count; i++)
        print_details(&record[i], out);
}
