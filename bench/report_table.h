/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of results as text: which results form one, and where its figures stand. Results of
 * one system that are described by the same properties form a table: what they share stands in its
 * head, what differs are its first columns, and the figures stand in the same place in all tables.
 * Included by report_table.c and report_text.c, which prints the heads.
 */
#ifndef BENCH_REPORT_TABLE_H
#define BENCH_REPORT_TABLE_H

#include "record.h"

#include <stdbool.h>
#include <stdio.h>

#define REPORT_CELL_BYTES  96
#define REPORT_COLUMNS_MAX BENCH_CONFIG_MAX /* the columns of figures are fewer */

/* Results that stand together: those of a case, or those of one of its tables. */
struct report_group {
    const struct bench_record *record;
    size_t count;
};

enum report_column_kind {
    COLUMN_CONFIG,
    COLUMN_METRIC,
    COLUMN_BYTES,
    COLUMN_SAMPLES,
    COLUMN_MEDIAN,
    COLUMN_P99,
    COLUMN_UNIT,
    COLUMN_PAYLOAD,
    COLUMN_PAPER, /* from here on: of the paper */
    COLUMN_RATIO,
    COLUMN_ROW,
};

struct report_column {
    enum report_column_kind kind;
    const char *title;
    bool right; /* numbers are aligned to the right */
    size_t width;
};

struct report_columns {
    struct report_column column[REPORT_COLUMNS_MAX];
    size_t count;
};

/* What all results of a case have in common, and so is no column. */
struct report_common {
    bool bytes, samples;
    bool checked, wrong; /* whether any payload was; a result without a payload is neither */
};

/* Where the figures of all tables of a case stand, and what is said above the tables instead. */
struct report_layout {
    struct report_common common;
    struct report_columns figures; /* those of the paper come last */
    size_t left;                   /* the width of the widest table's own columns */
};

/* Whether all results have the property, with one value. */
bool report_config_shared(const struct report_group *group, const struct bench_config *config);

/* Writes the property's value, "-" for NULL, to text[REPORT_CELL_BYTES]. */
void report_config_format(const struct bench_config *config, char *text);

/* The table that begins with all->record[first]. */
struct report_group report_table_at(const struct report_group *all, size_t first);

/* The layout of all tables of a case. */
struct report_layout report_layout_of(const struct report_group *all);

/* Prints the titles and the lines of a table: what stands below its head. */
void report_table_print(const struct report_group *table, const struct report_layout *layout,
                        FILE *out);

#endif
