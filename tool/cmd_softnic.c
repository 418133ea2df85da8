/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `doorbell softnic -- COMMAND`: preloads libsoftnic.so into COMMAND and hands it the device's
 * settings in the environment (docs/softnic.md), then becomes COMMAND.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "options.h"

#define LIBRARY "libsoftnic.so"

enum {
    OPTION_MODE = 0x100,
    OPTION_STRICT,
    OPTION_POLL,
    OPTION_SEED,
    OPTION_REPORT,
    OPTION_DEBUG,
};

static const struct argp_option option_table[] = {
    {"mode", OPTION_MODE, "MODE", 0,
     "auto: the software device where there is no real one; on (default): hide real ones; off", 0},
    {"poll", OPTION_POLL, "HOW", 0,
     "adaptive (default): sleep when there is no work; spin: one core, lowest latency", 0},
    {"strict", OPTION_STRICT, "LIST", OPTION_ARG_OPTIONAL,
     "report what hardware would punish; without --report the first ten findings, on standard "
     "error "
     "when COMMAND exits. LIST adds merge (doorbells overwrite each other), poison "
     "(executed slots are overwritten), early (records count without a doorbell), fetch=NS "
     "(fetches "
     "come up to NS nanoseconds late)",
     0},
    {"seed", OPTION_SEED, "N", 0, "seed of strict mode's random choices", 0},
    {"report", OPTION_REPORT, "FILE", OPTION_ARG_OPTIONAL,
     "write counters and diagnostics as JSON when COMMAND exits (to standard error without FILE). "
     "Each process that used the device writes, over what another wrote: %p in FILE stands for its "
     "process id. One that a signal, abort() or _exit() ends writes nothing",
     0},
    {"debug", OPTION_DEBUG, NULL, 0, "one line on standard error for each refused request", 0},
    {0},
};

static const char *const modes[] = {"auto", "on", "off", NULL};
static const char *const polls[] = {"adaptive", "spin", NULL};

struct softnic_options {
    char **command; /* COMMAND and its arguments, ends with NULL */
};

static void set_variable(const struct argp_state *state, const char *name, const char *value)
{
    if (setenv(name, value, 1))
        argp_failure(state, STATUS_FAIL, errno, "cannot set %s", name);
}

/* Refuses a LIST that the device would not understand, before COMMAND runs without a word. */
static void check_strict(const struct argp_state *state, const char *list)
{
    static const char *const words[] = {"on", "merge", "poison", "early", "fetch=NS", NULL};
    char word[32];

    for (const char *rest = list; *rest; rest += *rest == ',') {
        size_t bytes = strcspn(rest, ",");

        snprintf(word, sizeof(word), "%.*s", (int)bytes, rest);
        rest += bytes;
        if (strncmp(word, "fetch=", 6) == 0)
            options_number(state, "--strict=fetch", word + 6, 0, 1000000000);
        else
            options_one_of(state, "--strict", word, words);
    }
}

/* COMMAND may change directory before the report is written, so a relative name is resolved here.
 */
static void set_report(const struct argp_state *state, const char *file)
{
    char directory[PATH_MAX];
    char path[2 * PATH_MAX];

    if (strcmp(file, "-") == 0 || file[0] == '/') {
        set_variable(state, "SOFTNIC_REPORT", file);
        return;
    }
    if (!getcwd(directory, sizeof(directory)))
        argp_failure(state, STATUS_FAIL, errno, "--report=%s: the current directory", file);
    snprintf(path, sizeof(path), "%s/%s", directory, file);
    set_variable(state, "SOFTNIC_REPORT", path);
}

/* "--report FILE -- COMMAND" would run FILE: optional values follow '='. */
static void check_command(const struct argp_state *state)
{
    const char *before = state->argv[state->next - 1];
    const char *first = state->argv[state->next];
    bool optional = strcmp(before, "--report") == 0 || strcmp(before, "--strict") == 0;

    for (int i = state->next; optional && i < state->argc; i++) {
        if (strcmp(state->argv[i], "--") == 0)
            argp_error(state, "'%s' stands where COMMAND belongs; did you mean %s=%s?", first,
                       before, first);
    }
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct softnic_options *options = state->input;

    switch (key) {
    case OPTION_MODE:
        options_one_of(state, "--mode", text, modes);
        set_variable(state, "SOFTNIC", text);
        return 0;
    case OPTION_POLL:
        options_one_of(state, "--poll", text, polls);
        set_variable(state, "SOFTNIC_POLL", text);
        return 0;
    case OPTION_STRICT:
        check_strict(state, text ? text : "on");
        set_variable(state, "SOFTNIC_STRICT", text ? text : "on");
        return 0;
    case OPTION_SEED:
        options_number(state, "--seed", text, 1, ULONG_MAX);
        set_variable(state, "SOFTNIC_SEED", text);
        return 0;
    case OPTION_REPORT:
        set_report(state, text ? text : "-");
        return 0;
    case OPTION_DEBUG:
        set_variable(state, "SOFTNIC_DEBUG", "1");
        return 0;
    case ARGP_KEY_ARG:
        return ARGP_ERR_UNKNOWN; /* so that ARGP_KEY_ARGS gets all of them */
    case ARGP_KEY_ARGS:
        check_command(state);
        options->command = state->argv + state->next;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "COMMAND is missing, as in: doorbell softnic -- ibv_devinfo");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "-- COMMAND [ARGUMENT...]",
    .doc = "Runs COMMAND with the software ConnectX, mlx5_soft0, as its RDMA device. Each process "
           "has one "
           "of its own, so two processes cannot connect to each other. A variable "
           "SOFTNIC* that is set already holds where its option is absent.\vThe status is that of "
           "COMMAND; 127: there is no such COMMAND; 126: it cannot be run.",
};

/* Where the library may be, from the directory of this program: a build tree, then installed. */
static int find_library(char *path, size_t bytes)
{
    static const char *const places[] = {LIBRARY, DOORBELL_LIBDIR "/" LIBRARY};
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (length < 0) {
        fprintf(stderr, "doorbell softnic: cannot find %s: /proc/self/exe: %s\n", LIBRARY,
                strerror(errno));
        return -errno;
    }
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int needed = snprintf(path, bytes, "%s/%s", program, places[i]);

        if (needed > 0 && (size_t)needed < bytes && access(path, R_OK) == 0)
            return 0;
    }
    fprintf(stderr, "doorbell softnic: %s is neither in %s nor in %s/%s; install or build it\n",
            LIBRARY, program, program, DOORBELL_LIBDIR);
    return -ENOENT;
}

/* Puts the library in front of what is preloaded already, and wants the device unless told before.
 */
static int preload(const char *library)
{
    char list[3 * PATH_MAX];
    const char *others = getenv("LD_PRELOAD");

    if (strpbrk(library, " :")) {
        fprintf(stderr,
                "doorbell softnic: the loader cannot preload '%s': its name holds a space or "
                "a colon; move it\n",
                library);
        return -EINVAL;
    }
    int needed = snprintf(list, sizeof(list), "%s%s%s", library, others && *others ? ":" : "",
                          others ? others : "");
    if (needed < 0 || (size_t)needed >= sizeof(list)) {
        fprintf(stderr, "doorbell softnic: LD_PRELOAD is too long\n");
        return -E2BIG;
    }
    if (setenv("LD_PRELOAD", list, 1) || setenv("SOFTNIC", "on", 0)) {
        fprintf(stderr, "doorbell softnic: cannot set the environment: %s\n", strerror(errno));
        return -ENOMEM;
    }
    return 0;
}

int cmd_softnic(int argc, char **argv)
{
    struct softnic_options options = {0};
    char library[2 * PATH_MAX];

    options_parse(&argp, argc, argv, ARGP_IN_ORDER, &options);
    if (find_library(library, sizeof(library)) || preload(library))
        return STATUS_FAIL;

    execvp(options.command[0], options.command);
    int error = errno;
    fprintf(stderr, "doorbell softnic: cannot run '%s': %s\n", options.command[0],
            error == ENOENT ? "there is no such command" : strerror(error));
    return error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}
