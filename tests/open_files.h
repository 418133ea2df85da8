/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many files this process has open, for the tests that nothing is left behind. Without those
 * the software device's thread opens for a moment at any time: it looks up its pages in
 * /proc/self/maps before it goes to sleep.
 */
#ifndef DOORBELL_TESTS_OPEN_FILES_H
#define DOORBELL_TESTS_OPEN_FILES_H

#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static inline bool is_lasting(int directory, const char *name)
{
    char target[64];
    ssize_t length = readlinkat(directory, name, target, sizeof(target));

    /* One that was closed since it was listed did not last. */
    if (length < 0)
        return false;
    return length < 5 || memcmp(target + length - 5, "/maps", 5) != 0;
}

static inline unsigned open_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    unsigned count = 0;

    CHECK(directory, "opendir of /proc/self/fd failed");
    while ((entry = readdir(directory)))
        count += is_lasting(dirfd(directory), entry->d_name);
    closedir(directory);
    return count;
}

#endif
