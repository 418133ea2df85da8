/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The edit distance behind nearest.h: optimal string alignment, by the usual table of which three
 * rows are alive.
 */
#include "nearest.h"

#include <stdio.h>
#include <string.h>

/* Names of commands and options are shorter; of a longer text only this much is compared. */
#define NEAREST_MAX 63

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    unsigned rows[3][NEAREST_MAX + 1];

    for (size_t j = 0; j <= b_bytes; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_bytes; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i + 2) % 3];
        const unsigned *above_that = rows[(i + 1) % 3];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_bytes; j++) {
            unsigned replaced = above[j - 1] + (a[i - 1] != b[j - 1]);

            row[j] = smaller(replaced, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], above_that[j - 2] + 1);
        }
    }
    return rows[a_bytes % 3][b_bytes];
}

void nearest_offer(struct nearest *best, const char *typed, size_t bytes, const char *candidate)
{
    size_t candidate_bytes = strnlen(candidate, NEAREST_MAX);
    size_t typed_bytes = bytes < NEAREST_MAX ? bytes : NEAREST_MAX;
    unsigned d = distance(typed, typed_bytes, candidate, candidate_bytes);

    if (d < best->distance)
        *best = (struct nearest){candidate, d};
}

const char *nearest_words(const struct nearest *best, size_t bytes, const char *dashes,
                          char words[NEAREST_WORDS_BYTES])
{
    size_t wrong = bytes < 6 ? 1 : bytes / 3; /* a swap, or a third of the letters */

    words[0] = '\0';
    if (best->name && best->distance <= wrong)
        snprintf(words, NEAREST_WORDS_BYTES, "; the nearest is '%s%s'", dashes, best->name);
    return words;
}
