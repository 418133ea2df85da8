/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a command of `doorbell` is: a row of the table in main.c, and one cmd_*.c file. Included by
 * those files. The exit statuses are part of the command's contract (docs/doorbell.1).
 */
#ifndef TOOL_COMMAND_H
#define TOOL_COMMAND_H

enum status {
    STATUS_PASS = 0,
    STATUS_FAIL = 1,
    STATUS_USAGE = 2,
    STATUS_DEGRADED = 3, /* it works, and something about it should be better */
    STATUS_SKIPPED = 77,
    STATUS_NOT_EXECUTABLE = 126, /* these two as a shell has them, for a command that we start */
    STATUS_NOT_FOUND = 127,
};

/* argv[0] is "doorbell NAME"; the rest is what followed the name on the command line. Returns the
 * exit status. */
struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* one line, without a full stop */
};

int cmd_bench(int argc, char **argv);
int cmd_explore(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_softnic(int argc, char **argv);

#endif
