/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a range mapped in this process? What pinning the pages tells a kernel, /proc/self/maps tells
 * us: addresses and rights. Where /proc is not mounted, mincore() still knows the addresses.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "real.h"
#include "verbs.h"

/* Every page has an entry in the page tables' view; says nothing about rights. */
static bool mapped_by_mincore(uint64_t start, uint64_t bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned char resident[4096];
    uint64_t at = start & ~(page - 1);
    const uint64_t end = start + bytes;

    while (at < end) {
        uint64_t length = end - at;
        if (length > sizeof(resident) * page)
            length = sizeof(resident) * page;
        if (mincore((void *)(uintptr_t)at, length, resident) != 0)
            return false;
        at += length;
    }
    return true;
}

bool soft_mapped(uint64_t start, uint64_t bytes, bool writable)
{
    const uint64_t end = start + bytes;
    uint64_t covered = start;
    char line[512];
    FILE *maps;

    if (start == 0 || bytes == 0 || end < start)
        return false;
    maps = REAL(fopen)("/proc/self/maps", "re");
    if (maps == NULL)
        return mapped_by_mincore(start, bytes);
    while (covered < end && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long from, to;
        char read, write;
        /* The rest of a line longer than the buffer does not look like the start of one. */
        if (sscanf(line, "%lx-%lx %c%c", &from, &to, &read, &write) != 4 || to <= covered)
            continue;
        if (from > covered || read != 'r' || (writable && write != 'w'))
            break;
        covered = to;
    }
    fclose(maps);
    return covered >= end;
}
