/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `doorbell bench`: reads the command line, chooses the experiments that it names, and hands them
 * to the harness. The rows of options are bench/options.c's, those of experiments bench/cases.c's.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../bench/reference.h"
#include "../bench/run.h"
#include "command.h"
#include "nearest.h"
#include "options.h"

/* argp knows an option by its letter, or by this plus its row's number when it has none. */
#define KEY_BASE 0x100

#define CASES_MAX 64

struct request {
    struct bench_options options;
    const char **name; /* experiments, as typed */
    size_t n_names;
};

/* ---- Options ---- */

/* The options that some experiment of this program uses; an option without effect is unknown. */
static uint64_t used_options(void)
{
    uint64_t used = BENCH_USES_HARNESS;

    for (size_t i = 0; bench_cases[i]; i++)
        used |= bench_cases[i]->uses;
    return used;
}

static int key_of(unsigned option)
{
    return bench_option_rows[option].letter ? bench_option_rows[option].letter
                                            : KEY_BASE + (int)option;
}

static void fill_argp_options(struct argp_option *argp_options)
{
    uint64_t used = used_options();

    for (unsigned i = 0; i < BENCH_OPT_COUNT; i++) {
        const struct bench_option_row *row = &bench_option_rows[i];
        if (used >> i & 1)
            *argp_options++ = (struct argp_option){
                .name = row->name,
                .key = key_of(i),
                .arg = row->argument,
                .flags = row->kind == BENCH_KIND_OPTIONAL_TEXT ? OPTION_ARG_OPTIONAL : 0,
                .doc = row->help,
                .group = i < BENCH_OPT_HARNESS_END ? 2 : 1};
    }
    *argp_options = (struct argp_option){0};
}

static error_t take(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;
    char error[BENCH_ERROR_BYTES];

    if (key == ARGP_KEY_ARG) {
        request->name[request->n_names++] = text;
        return 0;
    }
    for (unsigned i = 0; i < BENCH_OPT_COUNT; i++) {
        if (key != key_of(i))
            continue;
        if (!bench_options_set(&request->options, (enum bench_option)i, text, error))
            argp_error(state, "%s", error);
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- Names ---- */

/* The ids of a row, with commas between. */
static void join_ids(const struct bench_case *row, char *ids, size_t bytes)
{
    size_t used = 0;

    ids[0] = '\0';
    for (size_t k = 0; k < BENCH_PAPER_MAX && row->paper[k] && used < bytes; k++)
        used += (size_t)snprintf(ids + used, bytes - used, "%s%s", k ? "," : "", row->paper[k]);
}

static int longer(int width, const char *text)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

/* Each column as wide as its longest cell. */
static void list_cases(FILE *out)
{
    char ids[64];
    int names = 0, of_ids = 0;

    for (size_t i = 0; bench_cases[i]; i++) {
        join_ids(bench_cases[i], ids, sizeof(ids));
        names = longer(names, bench_cases[i]->name);
        of_ids = longer(of_ids, ids);
    }
    for (size_t i = 0; bench_cases[i]; i++) {
        join_ids(bench_cases[i], ids, sizeof(ids));
        fprintf(out, "  %-*s  %-*s  %s\n", names, bench_cases[i]->name, of_ids, ids,
                bench_cases[i]->summary);
    }
}

/* Whether `typed` is the row's name or one of its ids in the paper. */
static bool answers_to(const struct bench_case *row, const char *typed)
{
    bool answers = strcasecmp(row->name, typed) == 0;

    for (size_t i = 0; i < BENCH_PAPER_MAX && row->paper[i]; i++)
        answers |= strcasecmp(row->paper[i], typed) == 0;
    return answers;
}

static void offer_cases(struct nearest *best, const char *typed)
{
    for (size_t i = 0; bench_cases[i]; i++) {
        nearest_offer(best, typed, strlen(typed), bench_cases[i]->name);
        for (size_t k = 0; k < BENCH_PAPER_MAX && bench_cases[i]->paper[k]; k++)
            nearest_offer(best, typed, strlen(typed), bench_cases[i]->paper[k]);
    }
}

/* Adds the rows that a typed name means to those chosen so far, each once. False: it means none. */
static bool choose(const char *typed, const struct bench_case **chosen, size_t *n_chosen)
{
    bool found = false;

    for (size_t i = 0; bench_cases[i]; i++) {
        bool already = false;

        if (!answers_to(bench_cases[i], typed))
            continue;
        found = true;
        for (size_t k = 0; k < *n_chosen; k++)
            already |= chosen[k] == bench_cases[i];
        if (!already && *n_chosen < CASES_MAX)
            chosen[(*n_chosen)++] = bench_cases[i];
    }
    return found;
}

/* ---- The paper's rows ---- */

/* Prints what one name means: a row, an experiment of the paper, or one of ours by its ids. */
static size_t print_reference(const char *typed)
{
    size_t printed = bench_reference_print(typed, stdout);

    for (size_t i = 0; bench_cases[i] && !printed; i++) {
        if (!answers_to(bench_cases[i], typed))
            continue;
        for (size_t k = 0; k < BENCH_PAPER_MAX && bench_cases[i]->paper[k]; k++)
            printed += bench_reference_print(bench_cases[i]->paper[k], stdout);
    }
    return printed;
}

static int run_reference(const struct request *request)
{
    if (request->n_names == 0) {
        bench_reference_print(NULL, stdout);
        return STATUS_PASS;
    }
    for (size_t i = 0; i < request->n_names; i++) {
        const char *typed = request->name[i];
        char upper[16];
        size_t bytes;
        size_t count;

        if (print_reference(typed))
            continue;
        struct nearest best = NEAREST_NONE;
        const struct bench_reference *rows = bench_reference_rows(&count);

        for (bytes = 0; typed[bytes] && bytes < sizeof(upper); bytes++)
            upper[bytes] = (char)toupper((unsigned char)typed[bytes]);
        for (size_t k = 0; k < count; k++) {
            nearest_offer(&best, upper, bytes, rows[k].experiment);
            nearest_offer(&best, upper, bytes, rows[k].id);
        }
        char words[NEAREST_WORDS_BYTES];
        fprintf(stderr, "doorbell bench: the paper's figures have no '%s'%s\n", typed,
                nearest_words(&best, bytes, "", words));
        return STATUS_USAGE;
    }
    return STATUS_PASS;
}

/* ---- The run ---- */

/* The command line as a shell would take it again; NULL without memory. */
static char *command_line(int argc, char **argv)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=./,:+@%";
    char *line = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&line, &bytes);

    if (!stream)
        return NULL;
    fputs(argv[0], stream);
    for (int i = 1; i < argc; i++) {
        bool quote = argv[i][0] == '\0' || argv[i][strspn(argv[i], plain)] != '\0';

        fputs(quote ? " '" : " ", stream);
        for (const char *c = argv[i]; *c; c++)
            fputs(*c == '\'' ? "'\\''" : (char[]){*c, '\0'}, stream);
        fputs(quote ? "'" : "", stream);
    }
    return fclose(stream) == 0 ? line : NULL;
}

static int run_cases(const struct request *request, const char *command)
{
    const struct bench_case *chosen[CASES_MAX];
    size_t n_chosen = 0;

    for (size_t i = 0; i < request->n_names; i++) {
        if (choose(request->name[i], chosen, &n_chosen))
            continue;
        struct nearest best = NEAREST_NONE;
        offer_cases(&best, request->name[i]);
        char words[NEAREST_WORDS_BYTES];
        fprintf(stderr,
                "doorbell bench: unknown experiment '%s'%s\n"
                "'doorbell bench --list' lists them.\n",
                request->name[i], nearest_words(&best, strlen(request->name[i]), "", words));
        return STATUS_USAGE;
    }
    return (int)bench_run(&(struct bench_plan){
        .cases = chosen,
        .n_cases = n_chosen,
        .options = &request->options,
        .command = command,
        .version = DOORBELL_VERSION,
    });
}

static int run_request(const struct request *request, const char *command)
{
    if (request->options.list) {
        list_cases(stdout);
        return STATUS_PASS;
    }
    if (request->options.reference)
        return run_reference(request);
    if (request->n_names == 0) {
        fputs("Usage: doorbell bench [OPTION...] EXPERIMENT...\n"
              "An experiment is one of these names, or its id in the paper:\n",
              stderr);
        list_cases(stderr);
        fputs("'doorbell bench --help' lists the options.\n", stderr);
        return STATUS_USAGE;
    }
    return run_cases(request, command);
}

int cmd_bench(int argc, char **argv)
{
    struct argp_option argp_options[BENCH_OPT_COUNT + 1];
    struct argp argp = {
        .options = argp_options,
        .parser = take,
        .args_doc = "EXPERIMENT...",
        .doc =
            "Run experiments, by name or by their ids in the paper, and set the results beside the "
            "paper's.\v'doorbell bench --list' lists the experiments. Exit status: 0 pass, 1 an "
            "error or a wrong payload, 2 usage, 3 finished but doubtful, 77 skipped.",
    };
    struct request request = {.name = calloc((size_t)argc, sizeof(*request.name))};
    char *command = command_line(argc, argv);
    int status = STATUS_FAIL;

    if (!request.name || !command) {
        fputs("doorbell bench: no memory for the command line\n", stderr);
        goto out;
    }
    bench_options_init(&request.options);
    fill_argp_options(argp_options);
    if (options_parse(&argp, argc, argv, 0, &request) == 0)
        status = run_request(&request, command);
out:
    free(command);
    free(request.name);
    return status;
}
