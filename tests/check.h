/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every test program needs and nothing more: a check that prints its place and its values and
 * ends the program with status 1, and a skip that ends it with 77, which CTest counts as skipped.
 * Included by the programs in tests/.
 */
#ifndef DOORBELL_TESTS_CHECK_H
#define DOORBELL_TESTS_CHECK_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn __attribute__((format(printf, 4, 5))) static inline void
check_failed(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fprintf(stderr, "%s:%d: not true: %s: ", file, line, condition);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

/* Goes on when `condition` holds; else says where it failed, and why in the words that follow. */
#define CHECK(condition, ...)                                                                      \
    ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__))

/* Ends the program as skipped, with the reason. */
#define SKIP(reason)                                                                               \
    do {                                                                                           \
        printf("skipped: %s\n", (reason));                                                         \
        exit(77);                                                                                  \
    } while (0)

#endif
