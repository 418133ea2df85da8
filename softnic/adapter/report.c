/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the device says when the process exits. SOFTNIC_REPORT: counters and diagnostics as JSON;
 * "%p" in the file's name stands for the process, so that a program that starts others keeps their
 * reports apart. Without a report, but with SOFTNIC_STRICT: the first diagnostics on standard
 * error.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "process.h"
#include "real.h"

static json_t *counters_as_json(const struct nic_counters *counters)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "send_wqes",
        (json_int_t)counters->send_wqes, "recv_wqes", (json_int_t)counters->recv_wqes, "cqes",
        (json_int_t)counters->cqes, "error_cqes", (json_int_t)counters->error_cqes, "payload_bytes",
        (json_int_t)counters->payload_bytes, "doorbells", (json_int_t)counters->doorbells,
        "cq_arms", (json_int_t)counters->cq_arms, "rnr_naks", (json_int_t)counters->rnr_naks,
        "memory_faults", (json_int_t)counters->memory_faults);
}

static json_t *strict_as_json(const struct soft_settings *settings)
{
    const struct nic_strict *strict = &settings->config.strict;

    return json_pack("{s:b, s:b, s:b, s:b, s:i, s:o}", "on", (int)strict->enabled, "merge",
                     strict->doorbell_mode == NIC_DOORBELL_MERGE, "poison", (int)strict->poison,
                     "early", (int)strict->early, "fetch_delay_ns", (int)strict->fetch_delay_ns,
                     "seed", json_sprintf("%llu", (unsigned long long)settings->seed));
}

/* How often each kind occurred, with what it means; kinds that did not occur are left out. */
static json_t *kinds_as_json(const struct nic_counters *counters)
{
    json_t *kinds = json_object();

    for (int kind = 0; kind < NIC_DIAG_COUNT; kind++)
        if (counters->diag[kind] != 0)
            json_object_set_new(kinds, nic_diag_name((enum nic_diag)kind),
                                json_pack("{s:I, s:s}", "count", (json_int_t)counters->diag[kind],
                                          "meaning", nic_diag_text((enum nic_diag)kind)));
    return kinds;
}

static json_t *log_as_json(void)
{
    static struct nic_diag_entry entries[NIC_DIAG_LOG];
    size_t count = soft_read_diagnostics(entries, NIC_DIAG_LOG);
    json_t *log = json_array();

    for (size_t i = 0; i < count && i < NIC_DIAG_LOG; i++)
        json_array_append_new(log, json_pack("{s:s, s:I, s:I, s:o}", "kind",
                                             nic_diag_name((enum nic_diag)entries[i].kind), "qpn",
                                             (json_int_t)entries[i].qpn, "index",
                                             (json_int_t)entries[i].index, "detail",
                                             json_sprintf("0x%08x", entries[i].detail)));
    return log;
}

/* The file's name with each "%p" replaced. */
static void name_file(const char *pattern, char name[PATH_MAX])
{
    size_t used = 0;

    while (*pattern != '\0' && used + 16 < PATH_MAX) {
        if (pattern[0] == '%' && pattern[1] == 'p') {
            used += (size_t)snprintf(name + used, 16, "%d", (int)getpid());
            pattern += 2;
        } else {
            name[used++] = *pattern++;
        }
    }
    name[used] = '\0';
}

static int write_json(const json_t *document, const char *pattern)
{
    char name[PATH_MAX];
    FILE *file;
    int written;

    if (strcmp(pattern, "-") == 0) {
        written = json_dumpf(document, stderr, JSON_INDENT(2));
        fputc('\n', stderr);
        return written;
    }
    name_file(pattern, name);
    file = REAL(fopen)(name, "we");
    if (file == NULL)
        return -1;
    written = json_dumpf(document, file, JSON_INDENT(2));
    fputc('\n', file);
    return fclose(file) == 0 ? written : -1;
}

/* How many diagnostics are told, one a line, where no report was asked for. */
#define TOLD 10

static void tell(const struct soft_settings *settings, const struct nic_counters *counters)
{
    struct nic_diag_entry entries[TOLD];
    size_t logged = soft_read_diagnostics(entries, TOLD);
    size_t told = logged < TOLD ? logged : TOLD;
    unsigned long long seed = settings->seed, all = 0;

    for (int kind = 0; kind < NIC_DIAG_COUNT; kind++)
        all += counters->diag[kind];
    if (all == 0)
        return;
    for (size_t i = 0; i < told; i++)
        fprintf(stderr, "softnic: strict: %s, QP 0x%x, index %u: %s\n",
                nic_diag_name((enum nic_diag)entries[i].kind), entries[i].qpn, entries[i].index,
                nic_diag_text((enum nic_diag)entries[i].kind));
    if (all > told)
        fprintf(stderr, "softnic: strict: and %llu more\n", all - told);
    if (settings->config.strict.fetch_delay_ns != 0)
        fprintf(stderr,
                "softnic: strict: fetches were delayed at random from seed %llu; --seed=%llu "
                "(SOFTNIC_SEED) draws the same delays\n",
                seed, seed);
    fprintf(stderr,
            "softnic: strict: --report=FILE (SOFTNIC_REPORT) counts all %llu and lists the first "
            "%d, as JSON\n",
            all, NIC_DIAG_LOG);
}

void soft_report_write(void)
{
    const struct soft_settings *settings = soft_settings();
    struct nic_counters counters;
    json_t *document;

    if ((settings->report == NULL && !settings->strict_asked) || !soft_device_has_run())
        return;
    soft_read_counters(&counters);
    if (settings->report == NULL) {
        tell(settings, &counters);
        return;
    }
    document = json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:o}", "softnic", "report", "device",
                         SOFTNIC_DEVICE_NAME, "pid", (int)getpid(), "strict",
                         strict_as_json(settings), "counters", counters_as_json(&counters),
                         "diagnostics", kinds_as_json(&counters), "log", log_as_json());
    if (document == NULL || write_json(document, settings->report) != 0)
        fprintf(stderr, "softnic: cannot write the report to SOFTNIC_REPORT=%s: %s\n",
                settings->report, strerror(errno));
    json_decref(document);
}
