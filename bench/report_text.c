/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results as text: what took part and what all results of a case share is stated once; then come
 * its tables (report_table.h), each below a head, and last the histograms and samples.
 */
#include "report.h"

#include "report_table.h"

#include <string.h>

#define LINE_CHARS 100 /* where a list of properties is broken */

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
    char value[REPORT_CELL_BYTES], text[2 * REPORT_CELL_BYTES];

    report_config_format(config, value);
    snprintf(text, sizeof(text), "%s=%s", config->key, value);
    list_add(list, text);
}

static void print_common(const struct report_group *all, const struct report_common *common,
                         FILE *out)
{
    const struct bench_record *first = all->record;
    struct list list = {.lead = all->count > 1 ? "All rows: " : "", .out = out};
    char text[REPORT_CELL_BYTES];

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
        if (report_config_shared(all, &first->config[i]))
            list_add_config(&list, &first->config[i]);
    }
    if (list.chars)
        fputc('\n', out);
}

static void print_head(const struct report_group *all, const struct report_group *table, FILE *out)
{
    const struct bench_config *config = table->record->config;
    struct list list = {.lead = ": ", .out = out};

    fprintf(out, "\n%s", table->record->system);
    for (size_t i = 0; i < BENCH_CONFIG_MAX && config[i].key; i++) {
        if (report_config_shared(table, &config[i]) && !report_config_shared(all, &config[i]))
            list_add_config(&list, &config[i]);
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

static void print_details(const struct bench_record *record, FILE *out)
{
    char text[REPORT_CELL_BYTES];

    if (!record->histogram && !record->samples)
        return;
    fprintf(out, "\n%s: %s %s", record->experiment, record->system, record->metric);
    for (size_t i = 0; i < BENCH_CONFIG_MAX && record->config[i].key; i++) {
        report_config_format(&record->config[i], text);
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
    const struct report_group all = {.record = record, .count = count};
    struct report_layout layout = report_layout_of(&all);
    struct report_group table;

    fprintf(out, "%s", row->name);
    for (size_t i = 0; i < BENCH_PAPER_MAX && row->paper[i]; i++)
        fprintf(out, "%s%s", i ? ", " : " (", row->paper[i]);
    fprintf(out, "%s: %s\n", row->paper[0] ? ")" : "", row->summary);
    print_where(&record->where, out);
    print_common(&all, &layout.common, out);

    for (size_t i = 0; i < count; i += table.count) {
        table = report_table_at(&all, i);
        print_head(&all, &table, out);
        report_table_print(&table, &layout, out);
    }
    for (size_t i = 0; i < count; i++)
        print_details(&record[i], out);
}
