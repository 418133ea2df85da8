/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in front of the C library where paths are concerned: /dev/infiniband/uverbs0 is the
 * software device, and /sys/class/infiniband and /sys/class/infiniband_verbs are the directory of
 * sysfs.c, while the software device is in use. libibverbs and programs with a discovery of their
 * own (UCX, NCCL) find it alike. Any other path goes straight through.
 */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "files.h"
#include "identity.h"
#include "process.h"
#include "real.h"
#include "sysfs.h"
#include "verbs.h"

int soft_open_device(int flags);

/* What follows `prefix` in `path`, or NULL. */
static const char *after(const char *path, const char *prefix)
{
    size_t length = strlen(prefix);

    return strncmp(path, prefix, length) == 0 ? path + length : NULL;
}

/* What follows "/sys", or the directory that libibverbs takes for it, in `path`. */
static const char *after_sysfs(const char *path)
{
    const char *rest = after(path, "/sys");
    const char *own = soft_settings()->sysfs;

    return rest == NULL && own != NULL ? after(path, own) : rest;
}

/* The path to use instead: `path` itself, or one in `buffer`. */
static const char *lead(const char *path, char buffer[PATH_MAX])
{
    const char *rest, *root, *end;

    /* The settings are read when a program first looks for RDMA devices, not before. */
    if (path == NULL || path[0] != '/' || strstr(path, "/class/infiniband") == NULL ||
        (rest = after_sysfs(path)) == NULL)
        return path;
    end = after(rest, "/class/infiniband_verbs");
    if (end == NULL)
        end = after(rest, "/class/infiniband");
    if (end == NULL || (end[0] != '/' && end[0] != '\0'))
        return path;
    soft_paths_used();
    if (!soft_in_use() || (root = soft_sysfs_path()) == NULL ||
        snprintf(buffer, PATH_MAX, "%s%s", root, rest) >= PATH_MAX)
        return path;
    return buffer;
}

static bool is_device(const char *path)
{
    return path != NULL && path[0] == '/' && strcmp(path, SOFT_UVERBS_PATH) == 0 && soft_in_use();
}

/* ---- Opening ---- */

static int mode_of(int flags, va_list arguments)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, int) : 0;
}

#define MODE(last, flags, mode)                                                                    \
    do {                                                                                           \
        va_list arguments;                                                                         \
        va_start(arguments, last);                                                                 \
        (mode) = mode_of(flags, arguments);                                                        \
        va_end(arguments);                                                                         \
    } while (0)

SOFT_EXPORT int open(const char *path, int flags, ...)
{
    char buffer[PATH_MAX];
    int mode;

    MODE(flags, flags, mode);
    return is_device(path) ? soft_open_device(flags) : REAL(open)(lead(path, buffer), flags, mode);
}

SOFT_EXPORT int open64(const char *path, int flags, ...)
{
    char buffer[PATH_MAX];
    int mode;

    MODE(flags, flags, mode);
    return is_device(path) ? soft_open_device(flags)
                           : REAL(open64)(lead(path, buffer), flags, mode);
}

SOFT_EXPORT int openat(int directory, const char *path, int flags, ...)
{
    char buffer[PATH_MAX];
    int mode;

    MODE(flags, flags, mode);
    return is_device(path) ? soft_open_device(flags)
                           : REAL(openat)(directory, lead(path, buffer), flags, mode);
}

SOFT_EXPORT int openat64(int directory, const char *path, int flags, ...)
{
    char buffer[PATH_MAX];
    int mode;

    MODE(flags, flags, mode);
    return is_device(path) ? soft_open_device(flags)
                           : REAL(openat64)(directory, lead(path, buffer), flags, mode);
}

/* What fortified programs call instead, when no mode is passed. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int directory, const char *path, int flags);
int __openat64_2(int directory, const char *path, int flags);

SOFT_EXPORT int __open_2(const char *path, int flags)
{
    return open(path, flags);
}

SOFT_EXPORT int __open64_2(const char *path, int flags)
{
    return open64(path, flags);
}

SOFT_EXPORT int __openat_2(int directory, const char *path, int flags)
{
    return openat(directory, path, flags);
}

SOFT_EXPORT int __openat64_2(int directory, const char *path, int flags)
{
    return openat64(directory, path, flags);
}

SOFT_EXPORT FILE *fopen(const char *path, const char *mode)
{
    char buffer[PATH_MAX];

    return REAL(fopen)(lead(path, buffer), mode);
}

SOFT_EXPORT FILE *fopen64(const char *path, const char *mode)
{
    char buffer[PATH_MAX];

    return REAL(fopen64)(lead(path, buffer), mode);
}

SOFT_EXPORT DIR *opendir(const char *path)
{
    char buffer[PATH_MAX];

    return REAL(opendir)(lead(path, buffer));
}

SOFT_EXPORT int scandir(const char *path, struct dirent ***names,
                        int (*filter)(const struct dirent *),
                        int (*compare)(const struct dirent **, const struct dirent **))
{
    char buffer[PATH_MAX];

    return REAL(scandir)(lead(path, buffer), names, filter, compare);
}

/* ---- Looking ---- */

SOFT_EXPORT ssize_t readlink(const char *path, char *to, size_t bytes)
{
    char buffer[PATH_MAX];

    return REAL(readlink)(lead(path, buffer), to, bytes);
}

SOFT_EXPORT char *realpath(const char *path, char *to)
{
    char buffer[PATH_MAX];

    return REAL(realpath)(lead(path, buffer), to);
}

SOFT_EXPORT int access(const char *path, int mode)
{
    char buffer[PATH_MAX];

    return is_device(path) ? 0 : REAL(access)(lead(path, buffer), mode);
}

SOFT_EXPORT int faccessat(int directory, const char *path, int mode, int flags)
{
    char buffer[PATH_MAX];

    return is_device(path) ? 0 : REAL(faccessat)(directory, lead(path, buffer), mode, flags);
}

/* Out of line: the C library's header promises the compiler that no path is NULL, a caller may not.
 */
static __attribute__((noinline)) bool is_empty(const char *path)
{
    return path == NULL || path[0] == '\0';
}

/* The device looks like the character device that its sysfs entry tells of. */
#define DESCRIBE_DEVICE(status)                                                                    \
    do {                                                                                           \
        memset(status, 0, sizeof(*(status)));                                                      \
        (status)->st_mode = S_IFCHR | 0666;                                                        \
        (status)->st_nlink = 1;                                                                    \
        (status)->st_rdev = makedev(SOFT_DEV_MAJOR, SOFT_DEV_MINOR);                               \
    } while (0)

#define STAT(name, type)                                                                           \
    SOFT_EXPORT int name(const char *path, struct type *status)                                    \
    {                                                                                              \
        char buffer[PATH_MAX];                                                                     \
                                                                                                   \
        if (!is_device(path))                                                                      \
            return REAL(name)(lead(path, buffer), status);                                         \
        DESCRIBE_DEVICE(status);                                                                   \
        return 0;                                                                                  \
    }

STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)

#define STAT_AT(name, type, at_descriptor)                                                         \
    SOFT_EXPORT int name(int directory, const char *path, struct type *status, int flags)          \
    {                                                                                              \
        char buffer[PATH_MAX];                                                                     \
                                                                                                   \
        if (flags & AT_EMPTY_PATH && is_empty(path))                                               \
            return at_descriptor(directory, status);                                               \
        if (!is_device(path))                                                                      \
            return REAL(name)(directory, lead(path, buffer), status, flags);                       \
        DESCRIBE_DEVICE(status);                                                                   \
        return 0;                                                                                  \
    }

STAT_AT(fstatat, stat, fstat)
STAT_AT(fstatat64, stat64, fstat64)

/* Programs built for a C library before 2.33 ask for these names; the version argument says that
 * the structure is the one above. */
#define OLD_STAT(name, type, now)                                                                  \
    int name(int version, const char *path, struct type *status);                                  \
    SOFT_EXPORT int name(int version, const char *path, struct type *status)                       \
    {                                                                                              \
        (void)version;                                                                             \
        return now(path, status);                                                                  \
    }

OLD_STAT(__xstat, stat, stat)
OLD_STAT(__xstat64, stat64, stat64)
OLD_STAT(__lxstat, stat, lstat)
OLD_STAT(__lxstat64, stat64, lstat64)

int __fxstat(int version, int fd, struct stat *status);
int __fxstat64(int version, int fd, struct stat64 *status);

SOFT_EXPORT int __fxstat(int version, int fd, struct stat *status)
{
    (void)version;
    return fstat(fd, status);
}

SOFT_EXPORT int __fxstat64(int version, int fd, struct stat64 *status)
{
    (void)version;
    return fstat64(fd, status);
}

#define OLD_STAT_AT(name, type, now)                                                               \
    int name(int version, int directory, const char *path, struct type *status, int flags);        \
    SOFT_EXPORT int name(int version, int directory, const char *path, struct type *status,        \
                         int flags)                                                                \
    {                                                                                              \
        (void)version;                                                                             \
        return now(directory, path, status, flags);                                                \
    }

OLD_STAT_AT(__fxstatat, stat, fstatat)
OLD_STAT_AT(__fxstatat64, stat64, fstatat64)

SOFT_EXPORT int statx(int directory, const char *path, int flags, unsigned mask,
                      struct statx *status)
{
    char buffer[PATH_MAX];

    if (!is_device(path))
        return REAL(statx)(directory, lead(path, buffer), flags, mask, status);
    memset(status, 0, sizeof(*status));
    status->stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK;
    status->stx_mode = S_IFCHR | 0666;
    status->stx_nlink = 1;
    status->stx_rdev_major = SOFT_DEV_MAJOR;
    status->stx_rdev_minor = SOFT_DEV_MINOR;
    return 0;
}
