/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results as JSON. The keys are those of "A result" in docs/design.md; the names of the statistics
 * are those that perftest writes. What is unknown or took no part is null.
 */
#include "report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

/* Digits of a number: more than any of our timers has. */
#define PRECISION 9

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *real_above(double value, double limit)
{
    return value > limit ? real(value) : json_null();
}

static json_t *text(const char *value)
{
    return value && value[0] ? json_string(value) : json_null();
}

static json_t *count(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

static json_t *machine_object(const struct bench_machine *machine)
{
    json_t *object = json_object();

    json_object_set_new(object, "cpu", text(machine->cpu_model));
    json_object_set_new(object, "architecture", text(machine->architecture));
    json_object_set_new(object, "sockets", count(machine->sockets));
    json_object_set_new(object, "cpus_online", count(machine->cpus_online));
    json_object_set_new(object, "cpus_allowed", count(machine->cpus_allowed));
    json_object_set_new(object, "governor", text(machine->governor));
    json_object_set_new(object, "kernel", text(machine->kernel));
    json_object_set_new(object, "timer", text(bench_clock.name));
    json_object_set_new(object, "timer_ns_per_tick", real(bench_clock.ns_per_tick));
    return object;
}

static json_t *where_object(const struct bench_where *where, const struct bench_machine *machine)
{
    json_t *nic = json_null();
    json_t *gpu = json_null();

    if (where->nic[0])
        nic = json_pack("{s:s, s:b}", "name", where->nic, "software", (int)where->nic_software);
    if (where->gpu_kind[0])
        gpu = json_pack("{s:s, s:o, s:o, s:o, s:o}", "kind", where->gpu_kind, "name",
                        text(where->gpu_name), "sm_mhz", real_above(where->gpu_sm_mhz, 0),
                        "sm_mhz_before", real_above(where->gpu_sm_before_mhz, 0), "sm_mhz_stated",
                        real_above(where->gpu_sm_stated_mhz, 0));

    json_t *cpu = json_pack("{s:o, s:o, s:o}", "name", text(machine->cpu_model), "mhz",
                            real_above(where->cpu.mhz, 0), "load_average",
                            real_above(where->cpu.load_average, -0.5));
    return json_pack("{s:o, s:o, s:o}", "nic", nic, "gpu", gpu, "cpu", cpu);
}

static json_t *config_object(const struct bench_record *record)
{
    json_t *object = json_object();

    for (size_t i = 0; i < BENCH_CONFIG_MAX && record->config[i].key; i++) {
        const struct bench_config *config = &record->config[i];
        json_object_set_new(object, config->key,
                            config->text ? json_string(config->text) : count(config->number));
    }
    return object;
}

static json_t *reference_array(const struct bench_record *record)
{
    json_t *array = json_array();

    for (size_t i = 0; i < BENCH_REFERENCES_MAX && record->references[i]; i++)
        json_array_append_new(array, json_string(record->references[i]));
    return array;
}

/* [from, to, samples] of each bucket that has any. */
static json_t *histogram_array(const struct bench_record *record)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < BENCH_HISTOGRAM_BUCKETS; i++) {
        double low;
        double high;
        uint64_t samples = record->histogram->count[i];

        if (samples == 0)
            continue;
        bench_histogram_range(i, &low, &high);
        json_array_append_new(array, json_pack("[o, o, o]", real(low * record->factor),
                                               real(high * record->factor), count(samples)));
    }
    return array;
}

static json_t *samples_array(const struct bench_record *record)
{
    json_t *array = json_array();

    for (uint64_t i = 0; i < record->stats.n; i++)
        json_array_append_new(array, real(record->samples[i] * record->factor));
    return array;
}

static void set_statistics(json_t *object, const struct bench_record *record)
{
    const struct bench_stats *stats = &record->stats;
    const struct {
        const char *key;
        double value;
    } values[] = {
        {"t_min", stats->min},         {"t_typical", stats->typical},
        {"t_avg", stats->avg},         {"t_max", stats->max},
        {"t_stdev", stats->stdev},     {"percentile_90", stats->p90},
        {"percentile_99", stats->p99}, {"percentile_99.9", stats->p999},
    };

    json_object_set_new(object, "n_iterations", count(record->iterations));
    json_object_set_new(object, "n_samples", count(stats->n));
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        json_object_set_new(object, values[i].key,
                            record->why_none ? json_null() : real(values[i].value));
    json_object_set_new(object, "outliers", count(stats->outliers));
    if (record->why_none)
        json_object_set_new(object, "why_none", json_string(record->why_none));
}

static json_t *record_object(const struct bench_record *record, const struct bench_machine *machine)
{
    json_t *object = json_object();

    json_object_set_new(object, "experiment", text(record->experiment));
    json_object_set_new(object, "paper_id", text(record->paper_id));
    json_object_set_new(object, "system", text(record->system));
    json_object_set_new(object, "config", config_object(record));
    json_object_set_new(object, "metric", text(record->metric));
    json_object_set_new(object, "unit", text(record->unit));
    json_object_set_new(object, "MsgSize", count(record->msg_bytes));
    set_statistics(object, record);
    json_object_set_new(object, "valid",
                        record->valid == BENCH_UNCHECKED
                            ? json_null()
                            : json_boolean(record->valid == BENCH_VALID));
    json_object_set_new(object, "where", where_object(&record->where, machine));
    json_object_set_new(object, "reference", reference_array(record));
    if (record->posted)
        json_object_set_new(
            object, "wqe",
            json_pack("{s:o, s:o}", "posted", text(record->posted), "ours", text(record->ours)));
    if (record->histogram)
        json_object_set_new(object, "histogram", histogram_array(record));
    if (record->samples)
        json_object_set_new(object, "samples", samples_array(record));
    return object;
}

int bench_report_json(const struct bench_document *document, FILE *out)
{
    json_t *results = json_array();

    for (size_t i = 0; i < document->results->count; i++)
        json_array_append_new(results,
                              record_object(&document->results->record[i], document->machine));

    json_t *root = json_pack("{s:s, s:s, s:o, s:o}", "doorbell", document->version, "command",
                             document->command, "machine", machine_object(document->machine),
                             "results", results);
    if (!root)
        return -ENOMEM;

    int failed = json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(PRECISION));
    json_decref(root);
    if (failed || fputc('\n', out) == EOF || fflush(out) != 0)
        return -EIO;
    return 0;
}
