/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `doorbell explore`: the transport's own code, searched through every order in which its stores
 * can become visible (explore/). Results are the same text each time and go to standard output;
 * what depends on the machine, the time, goes to standard error.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../explore/litmus.h"
#include "../explore/table.h"
#include "../explore/teeth.h"
#include "command.h"
#include "options.h"

enum {
    OPTION_LARGE = 0x100,
    OPTION_ROW,
    OPTION_TRACE,
    OPTION_JOBS,
    OPTION_MAX_STATES,
};

/* About 120 bytes are kept of each state. */
#define DEFAULT_MAX_STATES       4000000
#define DEFAULT_LARGE_MAX_STATES 60000000

static const struct argp_option option_table[] = {
    {"row", OPTION_ROW, "N", 0, "this row of the table alone", 0},
    {"trace", OPTION_TRACE, NULL, 0, "print the counterexamples, step by step", 0},
    {"large", OPTION_LARGE, NULL, 0, "the large rows as well: many minutes, gigabytes of memory",
     0},
    {"jobs", OPTION_JOBS, "N", 0, "threads to use (default: one for each core)", 0},
    {"max-states", OPTION_MAX_STATES, "N", 0,
     "stop each search at this many states (default 4 million, with --large 60 million)", 0},
    {0},
};

static const char *const subjects[] = {"table", "litmus", "teeth", NULL};

struct explore_options {
    const char *subject;
    struct ex_table_options table;
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct explore_options *options = state->input;

    switch (key) {
    case OPTION_ROW:
        options->table.row = (int)options_number(state, "--row", text, 0, ex_row_count - 1);
        return 0;
    case OPTION_TRACE:
        options->table.trace = true;
        return 0;
    case OPTION_LARGE:
        options->table.large = true;
        return 0;
    case OPTION_JOBS:
        options->table.jobs = (unsigned)options_number(state, "--jobs", text, 1, 16);
        return 0;
    case OPTION_MAX_STATES:
        options->table.max_states = options_number(state, "--max-states", text, 1, UINT32_MAX / 4);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0)
            argp_error(state, "one of table, litmus and teeth is expected, but there is '%s' too",
                       text);
        options_one_of(state, "WHAT", text, subjects);
        options->subject = text;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "[table|litmus|teeth]",
    .doc =
        "Runs the transport's own code through every schedule and every order in which its stores "
        "can become visible, within bounds.\n\n"
        "  table   verdicts for each program and ordering (the default)\n"
        "  litmus  small programs with known answers, which test the model\n"
        "  teeth   weakens each ordering operation in turn: a counterexample must be found\v"
        "Status 0: all verdicts are as expected; 1: one is not, or a search was stopped. "
        "docs/memory_order.md explains the results.",
};

static int report_table(const struct ex_table_options *options)
{
    struct ex_totals totals;
    int rc = ex_table_run(options, stdout, &totals);

    if (rc) {
        fprintf(stderr, "doorbell explore: %s\n", strerror(-rc));
        return STATUS_FAIL;
    }
    printf("\n%u searches, %u not as expected, %u stopped at %" PRIu64 " states; %" PRIu64
           " states in all\n",
           totals.cells, totals.unexpected, totals.stopped, options->max_states, totals.states);
    fprintf(stderr, "doorbell explore: %.1f s of one core, %.2f million states a second\n",
            totals.seconds, 1e-6 * (double)totals.states / totals.seconds);
    return totals.unexpected ? STATUS_FAIL : STATUS_PASS;
}

static int report_count(int unexpected, const char *what)
{
    if (unexpected < 0) {
        fprintf(stderr, "doorbell explore: %s\n", strerror(-unexpected));
        return STATUS_FAIL;
    }
    if (unexpected > 0)
        fprintf(stderr, "doorbell explore: %d %s\n", unexpected, what);
    return unexpected ? STATUS_FAIL : STATUS_PASS;
}

int cmd_explore(int argc, char **argv)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct explore_options options = {.subject = "table", .table = {.row = -1}};

    options.table.jobs = cores < 1 ? 1 : cores > 16 ? 16 : (unsigned)cores;
    options_parse(&argp, argc, argv, 0, &options);
    if (options.table.max_states == 0)
        options.table.max_states =
            options.table.large ? DEFAULT_LARGE_MAX_STATES : DEFAULT_MAX_STATES;
    if (strcmp(options.subject, "litmus") == 0)
        return report_count(ex_litmus_run(stdout), "verdicts are not the expected ones");
    if (strcmp(options.subject, "teeth") == 0)
        return report_count(ex_teeth_run(options.table.jobs, stdout),
                            "mutants are neither caught nor explained");
    return report_table(&options.table);
}
