/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a search that was stopped is never taken for one that saw everything; a counterexample is
 * a shortest one, the same each time, and its trace names the operations that break the program;
 * the hang of a program that can end in other schedules is found; and states that are taken for one
 * change no verdict.
 */
#include "../../explore/table.h"

#include <stdlib.h>
#include <string.h>

#include "../check.h"

static const struct ex_row *find_row(const char *name, const char *ordering)
{
    for (size_t i = 0; i < ex_row_count; i++) {
        if (strcmp(ex_rows[i].name, name) == 0 && strcmp(ex_rows[i].ordering, ordering) == 0)
            return &ex_rows[i];
    }
    CHECK(false, "no row %s, %s", name, ordering);
    return NULL;
}

static struct ex_result search(const struct ex_row *row, unsigned cell, uint64_t max_states,
                               char **trace)
{
    struct ex_config config;
    struct ex_result result;
    size_t bytes;
    FILE *to = open_memstream(trace, &bytes);

    CHECK(to, "no memory");
    CHECK(ex_row_config(row, cell, EX_MACHINE, &config), "not a case");
    config.max_states = max_states;
    int rc = ex_search(row->program, &config, &result, to, NULL);
    fclose(to);
    CHECK(rc == 0, "rc %d", rc);
    return result;
}

static void stopped_is_not_exhausted(void)
{
    const struct ex_row *row = find_row("2 threads, lock", "gpu, both");
    char *trace;
    struct ex_result result = search(row, 0, 1000, &trace);

    CHECK(result.verdict == EX_STOPPED, "verdict %d", result.verdict);
    CHECK(trace[0] == '\0', "a trace of nothing: %s", trace);
    free(trace);
    result = search(row, 0, 1000000, &trace);
    CHECK(result.verdict == EX_SAFE, "verdict %d", result.verdict);
    CHECK(result.states > 1000, "%llu states", (unsigned long long)result.states);
    free(trace);
}

/* One release, before the doorbell: the device reads the second record at the first doorbell. */
static void trace_tells_the_story(void)
{
    static const char *const story[] = {
        "stores record = 1", "rings doorbell 1", "stores 16 bytes at ring[1]",
        "stores record = 2", "device",           "doorbell 1 of thread 0 arrives",
        "reads record 2",    "fetches WQE 1",
    };
    const struct ex_row *row = find_row("one owner", "gpu, before the doorbell");
    char *trace, *again;
    struct ex_result result = search(row, 1, 100000, &trace);
    const char *at = trace;

    CHECK(result.verdict == EX_COUNTEREXAMPLE, "verdict %d", result.verdict);
    for (size_t i = 0; i < sizeof(story) / sizeof(story[0]); i++) {
        const char *found = strstr(at, story[i]);
        CHECK(found, "no '%s' behind line %s", story[i], at);
        at = found;
    }
    CHECK(strstr(trace, result.fault), "the trace does not end with the fault: %s", trace);
    search(row, 1, 100000, &again);
    CHECK(strcmp(trace, again) == 0, "two traces differ:\n%s\n%s", trace, again);
    free(trace);
    free(again);
}

/* No release before the doorbell: the device may read an old record, and then nothing ever comes.
 */
static void hang_is_found(void)
{
    const struct ex_row *row = find_row("one owner", "gpu, before the record");
    char *trace;
    struct ex_result result = search(row, 2, 100000, &trace);

    CHECK(result.verdict == EX_COUNTEREXAMPLE, "verdict %d", result.verdict);
    CHECK(strstr(result.fault, "never completed"), "%s", result.fault);
    CHECK(strstr(trace, "though a newer one is stored"), "%s", trace);
    CHECK(strstr(trace, "thread 0 waits"), "%s", trace);
    free(trace);
}

/* Safe and unsafe rows, by both rules, with the states that are the same to everybody taken for one
 * and kept apart. */
static void reduction_changes_no_verdict(void)
{
    static const char *const rows[][2] = {
        {"2 threads, lock", "gpu, both"},
        {"2 threads, ticket", "gpu, both"},
        {"3 threads, ticket, unwaited", "gpu, both"},
        {"  each rings for itself", "system, both"},
        {"one owner, relaxed poll", "system, both"},
        {"one owner", "gpu, before the record"},
        {"forwarded doorbell", "gpu, both"},
        {"put and signal", "system, both"},
        {"proxied queue, 2 threads, adds", ""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct ex_row *row = find_row(rows[i][0], rows[i][1]);
        for (unsigned cell = 0; cell < 2 * EX_CELLS; cell++) {
            enum ex_rules rules = cell < EX_CELLS ? EX_MACHINE : EX_LETTER;
            struct ex_config config;
            struct ex_result one, apart;
            if (!ex_row_config(row, cell % EX_CELLS, rules, &config))
                continue;
            config.max_states = 1000000;
            CHECK(ex_search(row->program, &config, &one, NULL, NULL) == 0, "no memory");
            config.unreduced = true;
            CHECK(ex_search(row->program, &config, &apart, NULL, NULL) == 0, "no memory");
            CHECK(one.verdict == apart.verdict, "%s, cell %u: %d, kept apart %d", row->name, cell,
                  one.verdict, apart.verdict);
            CHECK(one.verdict != EX_SAFE || one.states <= apart.states, "%s, cell %u: more states",
                  row->name, cell);
        }
    }
}

int main(void)
{
    stopped_is_not_exhausted();
    trace_tells_the_story();
    hang_is_found();
    reduction_changes_no_verdict();
    return 0;
}
