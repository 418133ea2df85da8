/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `doorbell` command: looks its first argument up in the table of commands and runs that row.
 * Results go to standard output, all else to standard error; docs/doorbell.1 has the exit statuses.
 */
#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "nearest.h"

/* argp answers --version with it, in every command. */
const char *argp_program_version = "doorbell " DOORBELL_VERSION;

static int cmd_help(int argc, char **argv);

static const struct command commands[] = {
    {"bench", cmd_bench, "run experiments, each beside the paper's figure for it"},
    {"explore", cmd_explore,
     "search every order in which the transport's stores can become visible"},
    {"info", cmd_info, "RDMA devices, their ports and GIDs, and which would be used and why"},
    {"softnic", cmd_softnic, "run a program with the software ConnectX as its RDMA device"},
    {"help", cmd_help, "this text, or the help of a command"},
};

static const size_t n_commands = sizeof(commands) / sizeof(commands[0]);

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < n_commands; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static void print_help(FILE *stream)
{
    fprintf(stream, "Usage: doorbell COMMAND [OPTION...]\n"
                    "GPU-initiated RDMA: measure it, build on it, test it without a NIC.\n\n");
    for (size_t i = 0; i < n_commands; i++)
        fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(stream, "\n  --help     this text; after a command, its options\n"
                    "  --version  the version\n\n"
                    "Exit status: 0 pass, 1 fail, 2 usage, 3 degraded, 77 skipped.\n");
}

static int refuse_command(const char *name)
{
    struct nearest best = NEAREST_NONE;
    bool option = name[0] == '-';

    for (size_t i = 0; i < n_commands && !option; i++)
        nearest_offer(&best, name, strlen(name), commands[i].name);
    if (option) {
        nearest_offer(&best, name, strlen(name), "--help");
        nearest_offer(&best, name, strlen(name), "--version");
    }
    char words[NEAREST_WORDS_BYTES];
    fprintf(stderr, "doorbell: unknown %s '%s'%s\n", option ? "option" : "command", name,
            nearest_words(&best, strlen(name), "", words));
    fprintf(stderr, "'doorbell --help' lists the commands.\n");
    return STATUS_USAGE;
}

static int run_command(const struct command *command, int argc, char **argv)
{
    char name[64];

    snprintf(name, sizeof(name), "doorbell %s", command->name);
    argv[0] = name;
    return command->run(argc, argv);
}

static int cmd_help(int argc, char **argv)
{
    static char ask_help[] = "--help";
    const char *topic = argc > 1 ? argv[1] : "help";

    if (strcmp(topic, "help") == 0 || strcmp(topic, "--help") == 0) {
        print_help(stdout);
        return STATUS_PASS;
    }
    if (strcmp(topic, "--version") == 0) {
        puts(argp_program_version);
        return STATUS_PASS;
    }

    const struct command *command = find_command(topic);
    char *command_argv[] = {NULL, ask_help, NULL};
    return command ? run_command(command, 2, command_argv) : refuse_command(topic);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return STATUS_PASS;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts(argp_program_version);
        return STATUS_PASS;
    }

    const struct command *command = find_command(argv[1]);
    return command ? run_command(command, argc - 1, argv + 1) : refuse_command(argv[1]);
}
