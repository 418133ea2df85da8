/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of a command, by glibc's argp, with two promises added: every usage error ends with
 * status 2, and an unknown long option is answered with the nearest one. Included by every cmd_*.c.
 */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

#include <argp.h>

/*
 * As argp_parse(): calls argp->parser for each option and argument, with `input` in state->input.
 * argv[0] is the command's name in messages. `flags` are argp's; with ARGP_IN_ORDER options end at
 * the first argument. Does not return for --help, --usage and --version (status 0) and for a usage
 * error (status 2). Returns what the parser failed with, or 0.
 */
int options_parse(const struct argp *argp, int argc, char **argv, unsigned flags, void *input);

/* The decimal number from `least` to `most` that `text` holds; otherwise reports a usage error that
 * names `option` and does not return. */
unsigned long options_number(const struct argp_state *state, const char *option, const char *text,
                             unsigned long least, unsigned long most);

/* Reports a usage error, and does not return, unless `text` is one of `values` (the last is NULL).
 */
void options_one_of(const struct argp_state *state, const char *option, const char *text,
                    const char *const *values);

#endif
