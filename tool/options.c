/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The option reader of options.h. argp leaves unknown long options to getopt_long(), whose message
 * cannot be extended; so they are looked for before argp runs.
 */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "nearest.h"

/* What argp adds to every command. */
static const struct argp_option builtin_options[] = {
    {.name = "help", .key = '?'},
    {.name = "usage", .key = 1},
    {.name = "version", .key = 'V'},
    {0},
};

static bool is_last(const struct argp_option *option)
{
    return !option->name && !option->key && !option->doc && !option->group;
}

static bool takes_next_argument(const struct argp_option *option)
{
    return option->arg && !(option->flags & OPTION_ARG_OPTIONAL);
}

/* The option whose long name is, or begins with, the first `bytes` bytes of `text`; else NULL with
 * the nearest name in *best. */
static const struct argp_option *find_long(const struct argp_option *options, const char *text,
                                           size_t bytes, struct nearest *best)
{
    const struct argp_option *abbreviated = NULL;

    for (const struct argp_option *option = options; !is_last(option); option++) {
        if (!option->name)
            continue;
        if (strncmp(option->name, text, bytes) == 0) {
            if (option->name[bytes] == '\0')
                return option;
            abbreviated = option;
        }
        nearest_offer(best, text, bytes, option->name);
    }
    return abbreviated;
}

/* Whether a cluster of short options ("-vd") ends in one that takes the next argument. */
static bool cluster_takes_next(const struct argp_option *options, const char *cluster)
{
    for (const char *letter = cluster; *letter; letter++) {
        const struct argp_option *option = options;

        while (!is_last(option) && option->key != *letter)
            option++;
        if (!is_last(option) && option->arg)
            return letter[1] == '\0' && takes_next_argument(option);
    }
    return false;
}

/* Ends the program with status 2 when argv holds a long option that the command does not know.
 * Makes -h, which argp lacks, --help. */
static void check_options(const struct argp_option *options, int argc, char **argv, bool in_order)
{
    static char ask_help[] = "--help";

    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];

        if (strcmp(argument, "--") == 0)
            return;
        if (argument[0] != '-' || argument[1] == '\0') {
            if (in_order)
                return;
            continue;
        }
        if (strcmp(argument, "-h") == 0) {
            argv[i] = ask_help;
            continue;
        }
        if (argument[1] != '-') {
            i += cluster_takes_next(options, argument + 1);
            continue;
        }

        const char *name = argument + 2;
        size_t bytes = strcspn(name, "=");
        struct nearest best = NEAREST_NONE;
        const struct argp_option *option = find_long(options, name, bytes, &best);

        if (!option)
            option = find_long(builtin_options, name, bytes, &best);
        if (!option) {
            char words[NEAREST_WORDS_BYTES];
            fprintf(stderr, "%s: unknown option '--%.*s'%s\n", argv[0], (int)bytes, name,
                    nearest_words(&best, bytes, "--", words));
            fprintf(stderr, "'%s --help' lists them.\n", argv[0]);
            exit(STATUS_USAGE);
        }
        if (name[bytes] == '\0')
            i += takes_next_argument(option);
    }
}

int options_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input)
{
    argp_err_exit_status = STATUS_USAGE;
    check_options(argp->options, argc, argv, flags & ARGP_IN_ORDER);
    return argp_parse(argp, argc, argv, flags, NULL, input);
}

unsigned long options_number(const struct argp_state *state, const char *option, const char *text,
                             unsigned long least, unsigned long most)
{
    char *end;

    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    /* strtoul() would take blanks and a sign. */
    if (errno || !isdigit((unsigned char)text[0]) || *end || number < least || number > most)
        argp_error(state, "%s=%s: a number from %lu to %lu is needed", option, text, least, most);
    return number;
}

void options_one_of(const struct argp_state *state, const char *option, const char *text,
                    const char *const *values)
{
    char list[128] = "";
    struct nearest best = NEAREST_NONE;

    for (const char *const *value = values; *value; value++) {
        if (strcmp(text, *value) == 0)
            return;
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", *value);
        nearest_offer(&best, text, strlen(text), *value);
    }
    argp_error(state, "%s=%s: choose one of %s; the nearest is '%s'", option, text, list,
               best.name);
}
