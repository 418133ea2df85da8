/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What code under test says on standard error. Included by the programs that check its sentences.
 */
#ifndef DOORBELL_TESTS_SAID_H
#define DOORBELL_TESTS_SAID_H

#include "tests/check.h"

/* From said_begin() to said_end(). */
static char said[16384];

static struct {
    FILE *usual;
    char *text;
    size_t bytes;
} said_stream;

/* Standard error goes to `said` until said_end(); glibc's stderr can be assigned to. */
static inline void said_begin(void)
{
    fflush(stderr);
    said_stream.usual = stderr;
    FILE *stream = open_memstream(&said_stream.text, &said_stream.bytes);
    CHECK(stream, "open_memstream failed");
    stderr = stream;
}

static inline void said_end(void)
{
    fclose(stderr);
    stderr = said_stream.usual;
    snprintf(said, sizeof(said), "%s", said_stream.text);
    free(said_stream.text);
}

#endif
