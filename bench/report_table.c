/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The columns of a table of results, its cells and its lines; see report_table.h. A result beside
 * several figures of the paper takes a line for each of them.
 */
#include "report_table.h"

#include "reference.h"

#include <string.h>

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

bool report_config_shared(const struct report_group *group, const struct bench_config *config)
{
    for (size_t i = 0; i < group->count; i++) {
        if (!same_config(config, find_config(&group->record[i], config->key)))
            return false;
    }
    return true;
}

void report_config_format(const struct bench_config *config, char *text)
{
    if (!config)
        snprintf(text, REPORT_CELL_BYTES, "-");
    else if (config->text)
        snprintf(text, REPORT_CELL_BYTES, "%s", config->text);
    else
        snprintf(text, REPORT_CELL_BYTES, "%llu", (unsigned long long)config->number);
}

/* ---- Cells ---- */

static const char *const payload_words[] = {
    [BENCH_UNCHECKED] = "-", [BENCH_VALID] = "valid", [BENCH_INVALID] = "WRONG"};

static void format_number(double value, char *text)
{
    if (value >= 1000 && value < 1e15)
        snprintf(text, REPORT_CELL_BYTES, "%.0f", value);
    else
        snprintf(text, REPORT_CELL_BYTES, "%#.4g", value);
}

/* Why there is no value stands in the place of the median. */
static void format_value(const struct bench_record *record, enum report_column_kind kind,
                         char *text)
{
    if (!record->why_none)
        format_number(kind == COLUMN_MEDIAN ? record->stats.typical : record->stats.p99, text);
    else
        snprintf(text, REPORT_CELL_BYTES, "%s", kind == COLUMN_MEDIAN ? record->why_none : "-");
}

/* Of the statistic that the figure is. */
static void format_ratio(const struct bench_record *record, const struct bench_reference *reference,
                         char *text)
{
    double factor = bench_unit_factor(record->unit, reference->unit);
    double ours = strcmp(reference->stat, "p99") == 0 ? record->stats.p99 : record->stats.typical;
    double ratio = reference->number > 0 ? ours * factor / reference->number : 0;

    if (ratio > 0)
        snprintf(text, REPORT_CELL_BYTES, ratio < 1000 ? "%.3gx" : "%.0fx", ratio);
    else
        snprintf(text, REPORT_CELL_BYTES, "-");
}

/* Says of a figure only what the reader would not expect: another system, another statistic. */
static void format_row(const struct bench_record *record, const struct bench_reference *reference,
                       char *text)
{
    bool other = strcmp(reference->system, record->system) != 0;
    bool median = strncmp(reference->stat, "p50", 3) == 0;

    snprintf(text, REPORT_CELL_BYTES, "%s%s%s%s%s%s%s", reference->id,
             reference->platform[0] ? " " : "", reference->platform,
             other && reference->system[0] ? " " : "", other ? reference->system : "",
             median || !reference->stat[0] ? "" : ", ", median ? "" : reference->stat);
}

/* The cells that depend on the line: each line of a record stands beside another figure. */
static void format_reference(const struct bench_record *record, enum report_column_kind kind,
                             size_t line, char *text)
{
    const char *id = line < BENCH_REFERENCES_MAX ? record->references[line] : NULL;
    const struct bench_reference *reference = id ? bench_reference_find(id) : NULL;

    text[0] = '\0';
    if (!reference)
        return;
    if (kind == COLUMN_PAPER)
        snprintf(text, REPORT_CELL_BYTES, "%s %s", reference->value, reference->unit);
    else if (kind == COLUMN_RATIO)
        format_ratio(record, reference, text);
    else
        format_row(record, reference, text);
}

static void format_cell(const struct bench_record *record, const struct report_column *column,
                        size_t line, char *text)
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
        report_config_format(find_config(record, column->title), text);
        break;
    case COLUMN_METRIC:
        snprintf(text, REPORT_CELL_BYTES, "%s", record->metric);
        break;
    case COLUMN_BYTES:
        snprintf(text, REPORT_CELL_BYTES, "%llu", (unsigned long long)record->msg_bytes);
        break;
    case COLUMN_SAMPLES:
        snprintf(text, REPORT_CELL_BYTES, "%llu", (unsigned long long)record->stats.n);
        break;
    case COLUMN_MEDIAN:
    case COLUMN_P99:
        format_value(record, column->kind, text);
        break;
    case COLUMN_UNIT:
        snprintf(text, REPORT_CELL_BYTES, "%s", record->unit);
        break;
    default:
        snprintf(text, REPORT_CELL_BYTES, "%s", payload_words[record->valid]);
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

static void add_column(struct report_columns *columns, const struct report_group *group,
                       enum report_column_kind kind, const char *title, bool right)
{
    struct report_column column = {kind, title, right, strlen(title)};
    char text[REPORT_CELL_BYTES];

    if (columns->count == REPORT_COLUMNS_MAX)
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

struct report_group report_table_at(const struct report_group *all, size_t first)
{
    struct report_group table = {.record = &all->record[first], .count = 1};

    while (first + table.count < all->count &&
           strcmp(table.record[table.count].system, table.record->system) == 0 &&
           same_keys(&table.record[table.count], table.record))
        table.count++;
    return table;
}

/* The columns that only this table has: the properties in which its results differ. */
static struct report_columns own_columns(const struct report_group *table)
{
    const struct bench_config *config = table->record->config;
    struct report_columns own = {.count = 0};

    for (size_t i = 0; i < BENCH_CONFIG_MAX && config[i].key; i++) {
        if (!report_config_shared(table, &config[i]))
            add_column(&own, table, COLUMN_CONFIG, config[i].key, !config[i].text);
    }
    return own;
}

static size_t width_of(const struct report_columns *columns)
{
    size_t width = 0;

    for (size_t i = 0; i < columns->count; i++)
        width += columns->column[i].width + 2;
    return width;
}

static struct report_common common_of(const struct report_group *all)
{
    struct report_common common = {.bytes = true, .samples = true};
    const struct bench_record *first = all->record;

    for (size_t i = 0; i < all->count; i++) {
        common.bytes &= first[i].msg_bytes == first->msg_bytes;
        common.samples &= first[i].stats.n == first->stats.n;
        common.wrong |= first[i].valid == BENCH_INVALID;
        common.checked |= first[i].valid == BENCH_VALID;
    }
    return common;
}

static bool has_references(const struct report_group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->record[i].references[0])
            return true;
    }
    return false;
}

/* The columns of all tables of a case. */
static struct report_columns figure_columns(const struct report_group *all,
                                            const struct report_common *common)
{
    struct report_columns columns = {.count = 0};

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
        add_column(&columns, all, COLUMN_RATIO, "ours/paper", true);
        add_column(&columns, all, COLUMN_ROW, "paper's row", false);
    }
    return columns;
}

struct report_layout report_layout_of(const struct report_group *all)
{
    struct report_layout layout = {.common = common_of(all)};
    struct report_group table;

    layout.figures = figure_columns(all, &layout.common);
    for (size_t i = 0; i < all->count; i += table.count) {
        table = report_table_at(all, i);
        struct report_columns own = own_columns(&table);
        if (width_of(&own) > layout.left)
            layout.left = width_of(&own);
    }
    return layout;
}

/* ---- Printing ---- */

/* Prints a line's cells, or the titles if `record` is NULL. `blanks` are owed before the next cell
 * that is not empty, so that no line ends in any; returns those owed behind the last. */
static size_t print_cells(const struct report_columns *columns, const struct bench_record *record,
                          size_t line, size_t blanks, FILE *out)
{
    char text[REPORT_CELL_BYTES];

    for (size_t i = 0; i < columns->count; i++) {
        const struct report_column *column = &columns->column[i];

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

/* The figures stand behind the widest table's own columns. */
void report_table_print(const struct report_group *table, const struct report_layout *layout,
                        FILE *out)
{
    struct report_columns shown = layout->figures;
    struct report_columns own = own_columns(table);
    size_t gap = layout->left - width_of(&own);

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
