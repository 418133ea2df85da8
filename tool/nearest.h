/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nearest of a set of names to a mistyped one, for messages about unknown commands and options.
 * Included by main.c and options.c.
 */
#ifndef TOOL_NEAREST_H
#define TOOL_NEAREST_H

#include <limits.h>
#include <stddef.h>

struct nearest {
    const char *name; /* the best candidate so far, NULL before the first */
    unsigned distance;
};

#define NEAREST_NONE ((struct nearest){NULL, UINT_MAX})

/* Keeps `candidate` when it is nearer to the first `bytes` bytes of `typed` than all before it. The
 * distance counts insertions, deletions, replacements and swaps of neighbours. */
void nearest_offer(struct nearest *best, const char *typed, size_t bytes, const char *candidate);

#define NEAREST_WORDS_BYTES 96

/* "; the nearest is 'NAME'", with `dashes` before the name; nothing when the best candidate is too
 * far from the typed `bytes` bytes to have been meant. Returns `words`. */
const char *nearest_words(const struct nearest *best, size_t bytes, const char *dashes,
                          char words[NEAREST_WORDS_BYTES]);

#endif
