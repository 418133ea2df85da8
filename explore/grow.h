/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arrays that grow while a search runs. Included by the explorer's .c files. Memory that is refused
 * ends the program with status 1: a search that went on would claim what it has not seen.
 */
#ifndef EXPLORE_GROW_H
#define EXPLORE_GROW_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* `array` made large enough for `count` items; NULL is an empty one. */
static inline void *ex_grow(void *array, size_t count, size_t item_bytes)
{
    void *grown = realloc(array, (count ? count : 1) * item_bytes);
    if (grown)
        return grown;
    fprintf(stderr, "explore: %zu bytes of memory were refused; lower the bound on states\n",
            count * item_bytes);
    exit(1);
}

#endif
