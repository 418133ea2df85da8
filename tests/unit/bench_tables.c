/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: results as text say each thing once: what all share above the tables, what a table shares
 * in its head, what differs in columns; the figures stand in one place in all tables, one line for
 * each figure of the paper with the ratio of the same statistic, and a wrong payload has a column.
 */
#include "bench/report.h"

#include <stdlib.h>
#include <string.h>

#include "../check.h"

static struct bench_record record(const char *system, const char *metric, double p50)
{
    struct bench_record r = {
        .system = system,
        .metric = metric,
        .unit = "us",
        .msg_bytes = 8,
        .valid = BENCH_VALID,
        .experiment = "fabricated",
        .stats = {.n = 10, .typical = p50, .p99 = 2 * p50},
    };
    snprintf(r.where.gpu_kind, sizeof(r.where.gpu_kind), "cpu");
    snprintf(r.where.nic, sizeof(r.where.nic), "mlx5_soft0");
    r.where.nic_software = true;
    return r;
}

static void expect(const struct bench_record *records, size_t count, const char *expected)
{
    const struct bench_case row = {.name = "fabricated", .paper = {"T3"}, .summary = "of a test"};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    CHECK(out, "open_memstream failed");
    bench_report_text(&row, records, count, out);
    CHECK(fclose(out) == 0, "the text was not written");
    CHECK(strcmp(text, expected) == 0, "\n%s\nexpected was\n%s", text, expected);
    free(text);
}

#define WHERE                                                                                      \
    "fabricated (T3): of a test\n"                                                                 \
    "Software device mlx5_soft0; GPU threads played by CPU threads: these are not NIC or GPU "     \
    "figures.\n"

static void two_systems(void)
{
    struct bench_record r[] = {
        record("mini-gda", "issue", 0.35),
        record("mini-gda", "put_completion", 4),
        record("libmlx5", "issue", 2000),
    };

    r[0].config[0] = r[1].config[0] = (struct bench_config){.key = "ring", .text = "host memory"};
    r[0].config[1] = (struct bench_config){.key = "threads", .number = 1};
    r[1].config[1] = (struct bench_config){.key = "threads", .number = 32};
    r[0].references[0] = "R041";
    r[0].references[1] = "R044";
    r[0].references[2] = "R105";
    r[1].references[0] = "R360";
    expect(r, 3,
           WHERE
           "All rows: 8 bytes, 10 samples, payloads valid\n"
           "\n"
           "mini-gda: ring=host memory\n"
           "  threads  metric             p50     p99  unit    paper  ours/paper  paper's row\n"
           "        1  issue           0.3500  0.7000  us    0.70 us        0.5x  R041 P-IB\n"
           "                                                 0.77 us      0.455x  R044 P-GB200\n"
           "                                                  5.9 us     0.0593x  R105 P-IB "
           "mini-proxy, median rounded\n"
           "       32  put_completion   4.000   8.000  us     8.9 us      0.899x  R360 P-IB "
           "mini-proxy, p99\n"
           "\n"
           "libmlx5\n"
           "           metric             p50     p99  unit\n"
           "           issue             2000    4000  us\n");
}

/* A column for what is wrong, and a table each time that the system changes. */
static void wrong_payload(void)
{
    struct bench_record r[] = {
        record("a", "issue", 1),
        record("b", "issue", 1),
        record("a", "issue", 1),
    };

    r[1].valid = BENCH_INVALID;
    r[2].valid = BENCH_UNCHECKED;
    r[2].msg_bytes = 0;
    expect(r, 3,
           WHERE "All rows: 10 samples\n"
                 "\na\n"
                 "  metric  bytes    p50    p99  unit  payload\n"
                 "  issue       8  1.000  2.000  us    valid\n"
                 "\nb\n"
                 "  metric  bytes    p50    p99  unit  payload\n"
                 "  issue       8  1.000  2.000  us    WRONG\n"
                 "\na\n"
                 "  metric  bytes    p50    p99  unit  payload\n"
                 "  issue       0  1.000  2.000  us    -\n");
}

/* What came to no value has no statistics, and says why. */
static void no_value(void)
{
    struct bench_record r[] = {record("a", "first_size", 4096), record("b", "first_size", 0)};

    r[1].why_none = "not reached";
    r[1].stats = (struct bench_stats){.n = 0};
    r[1].references[0] = "R185";
    expect(r, 2,
           WHERE "All rows: 8 bytes, payloads valid\n"
                 "\na\n"
                 "  metric      samples          p50   p99  unit\n"
                 "  first_size       10         4096  8192  us\n"
                 "\nb\n"
                 "  metric      samples          p50   p99  unit  paper  ours/paper  paper's row\n"
                 "  first_size        0  not reached     -  us    2 KiB           -  R185 P-IB "
                 "mini-proxy, first sampled size\n");
}

/* A head that is too long for a line is broken between two properties. */
static void long_head(void)
{
    struct bench_record r[] = {record("a", "issue", 1), record("b", "issue", 1)};

    for (int i = 0; i < 8; i++)
        r[0].config[i] = (struct bench_config){.key = &"a_long_key_7"[i], .number = 1000000};
    expect(r, 2,
           WHERE "All rows: 8 bytes, 10 samples, payloads valid\n"
                 "\n"
                 "a: a_long_key_7=1000000, _long_key_7=1000000, long_key_7=1000000, "
                 "ong_key_7=1000000, ng_key_7=1000000,\n"
                 "    g_key_7=1000000, _key_7=1000000, key_7=1000000\n"
                 "  metric    p50    p99  unit\n"
                 "  issue   1.000  2.000  us\n"
                 "\nb\n"
                 "  metric    p50    p99  unit\n"
                 "  issue   1.000  2.000  us\n");
}

int main(void)
{
    two_systems();
    wrong_payload();
    no_value();
    long_head();
    return 0;
}
