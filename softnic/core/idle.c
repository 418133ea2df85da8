/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's sleep; see idle.h. Follows userfaultfd(2), write-protect mode on shared memory.
 */
#include "idle.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

struct nic_uar_map {
    uint64_t start;
    uint64_t bytes;
    uint64_t offset; /* in the memfd */
};

static int open_fault_fd(void)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fd < 0)
        return -1;
    struct uffdio_api api = {
        .api = UFFD_API,
        .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
    };
    if (ioctl(fd, UFFDIO_API, &api)) {
        close(fd);
        return -1;
    }
    return fd;
}

int nic_idle_open(struct nic_idle *idle, int uar_fd, void *own_map)
{
    *idle = (struct nic_idle){.uar_fd = uar_fd, .own_map = own_map};
    idle->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (idle->wake_fd < 0)
        return -errno;
    idle->fault_fd = open_fault_fd();
    return 0;
}

void nic_idle_close(struct nic_idle *idle)
{
    free(idle->maps);
    if (idle->fault_fd >= 0)
        close(idle->fault_fd);
    close(idle->wake_fd);
}

static bool add_map(struct nic_idle *idle, const struct nic_uar_map *map)
{
    if (idle->map_count == idle->map_room) {
        uint32_t room = idle->map_room ? 2 * idle->map_room : 16;
        struct nic_uar_map *maps = realloc(idle->maps, room * sizeof(*maps));
        if (!maps)
            return false;
        idle->maps = maps;
        idle->map_room = room;
    }
    idle->maps[idle->map_count++] = *map;
    return true;
}

/* Is this line of /proc/self/maps a mapping of the UAR pages other than the engine's? */
static bool parse_map(const struct nic_idle *idle, const struct stat *uar, const char *line,
                      struct nic_uar_map *map)
{
    uint64_t start, end, offset, inode;
    unsigned major_id, minor_id;
    char flags[5];
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &start, &end, flags,
               &offset, &major_id, &minor_id, &inode) != 7)
        return false;
    *map = (struct nic_uar_map){start, end - start, offset};
    return inode == uar->st_ino && makedev(major_id, minor_id) == uar->st_dev &&
           start != (uintptr_t)idle->own_map;
}

/* Finds this process's mappings of the memfd; proc(5), /proc/pid/maps. Read in pieces, whose last
 * line is finished by the next; without stdio, which allocates. */
static bool find_maps(struct nic_idle *idle)
{
    char text[4096];
    size_t kept = 0;
    ssize_t got = -1;
    bool complete = true;
    struct stat uar;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (fstat(idle->uar_fd, &uar))
        goto done;

    idle->map_count = 0;
    while (complete && (got = read(fd, text + kept, sizeof(text) - 1 - kept)) > 0) {
        char *line = text, *end;
        text[kept + (size_t)got] = '\0';
        for (; complete && (end = strchr(line, '\n')); line = end + 1) {
            struct nic_uar_map map;
            *end = '\0';
            if (parse_map(idle, &uar, line, &map))
                complete = add_map(idle, &map);
        }
        kept = strlen(line);
        if (kept >= sizeof(text) - 1)
            kept = 0; /* a path that long is not the memfd's */
        memmove(text, line, kept);
    }
done:
    close(fd);
    return complete && got == 0;
}

static bool page_is_mapped(const struct nic_idle *idle, uint32_t page)
{
    uint64_t offset = (uint64_t)page * M5_UAR_BYTES;
    for (uint32_t i = 0; i < idle->map_count; i++)
        if (offset >= idle->maps[i].offset && offset < idle->maps[i].offset + idle->maps[i].bytes)
            return true;
    return false;
}

static bool protect_map(const struct nic_idle *idle, const struct nic_uar_map *map, uint64_t mode)
{
    struct uffdio_writeprotect protect = {
        .range = {.start = map->start, .len = map->bytes},
        .mode = mode,
    };
    int failed;
    do
        failed = ioctl(idle->fault_fd, UFFDIO_WRITEPROTECT, &protect);
    while (failed && errno == EAGAIN);
    return !failed;
}

/* A GPU's store to a mapped page faults nowhere, and a protected page cannot be mapped into a GPU:
 * where a GPU driver is loaded, only looking helps. */
static bool gpu_driver_loaded(struct nic_idle *idle)
{
    void *driver = idle->gpu ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver) {
        idle->gpu = true;
        dlclose(driver);
    }
    return idle->gpu;
}

bool nic_idle_protect(struct nic_idle *idle, const struct nic *nic)
{
    if (idle->fault_fd < 0 || gpu_driver_loaded(idle) || !find_maps(idle))
        return false;
    for (uint32_t page = 0; page < nic->uar_used; page++)
        if (nic->uar_handed[page] && !page_is_mapped(idle, page))
            return false;
    for (uint32_t i = 0; i < idle->map_count; i++) {
        const struct nic_uar_map *map = &idle->maps[i];
        struct uffdio_register range = {
            .range = {.start = map->start, .len = map->bytes},
            .mode = UFFDIO_REGISTER_MODE_WP,
        };
        if (ioctl(idle->fault_fd, UFFDIO_REGISTER, &range) ||
            !protect_map(idle, map, UFFDIO_WRITEPROTECT_MODE_WP)) {
            idle->map_count = i;
            nic_idle_unprotect(idle);
            return false;
        }
    }
    return true;
}

void nic_idle_unprotect(struct nic_idle *idle)
{
    for (uint32_t i = 0; i < idle->map_count; i++) {
        const struct nic_uar_map *map = &idle->maps[i];
        if (protect_map(idle, map, 0))
            continue;
        /* The mapping is gone by now. Who waits in a store to it has to fault on it. */
        struct uffdio_range range = {.start = map->start, .len = map->bytes};
        ioctl(idle->fault_fd, UFFDIO_WAKE, &range);
    }
    idle->map_count = 0;
}

bool nic_idle_sleep(struct nic_idle *idle, uint64_t ns)
{
    struct pollfd fds[2] = {
        {.fd = idle->wake_fd, .events = POLLIN},
        {.fd = idle->fault_fd, .events = POLLIN},
    };
    struct timespec limit = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    bool woken = ppoll(fds, idle->fault_fd < 0 ? 1 : 2, ns ? &limit : NULL, NULL) != 0;
    uint64_t count;
    if (fds[0].revents & POLLIN && read(idle->wake_fd, &count, sizeof(count)) < 0)
        woken = true; /* the count was taken by an earlier read; the wake-up was real */
    return woken;
}

void nic_idle_wake(struct nic_idle *idle)
{
    uint64_t one = 1;
    if (write(idle->wake_fd, &one, sizeof(one)) < 0)
        return; /* EAGAIN: the counter is full, so the engine is being woken already */
}
