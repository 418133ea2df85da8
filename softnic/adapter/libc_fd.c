/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in front of the C library where descriptors are concerned: opening the software device,
 * its ioctls, reads of its events, and whatever closes or duplicates a descriptor. A call about any
 * other descriptor goes straight through.
 *
 * In a process forked from the one that opened it, a descriptor of the device can be closed and
 * nothing else: ioctl and read fail with EIO.
 */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "files.h"
#include "identity.h"
#include "process.h"
#include "real.h"
#include "verbs.h"

static int fail(int error)
{
    errno = error;
    return -1;
}

static int fail_dead(const char *call)
{
    return fail(-soft_refuse(
        EIO, "%s: this descriptor was opened before a fork; open the device anew here", call));
}

/* ---- Opening ---- */

/* A command descriptor is a duplicate of the memory that holds the device's UAR pages, so that a
 * program's mmap() of it finds them. */
int soft_open_device(int flags)
{
    struct soft_context *context;
    int fd, error;

    soft_files_begin();
    if (soft_files_stranger())
        return fail(-soft_refuse(EIO, "the device cannot be opened in a vfork() or clone() child"));
    pthread_mutex_lock(&soft_lock);
    error = soft_device_take();
    if (error != 0)
        goto no_device;
    fd = REAL(fcntl)(nic_uar_fd(soft_device()), flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
    error = -errno;
    if (fd < 0)
        goto no_descriptor;
    context = soft_context_open();
    error = -ENOMEM;
    if (context == NULL)
        goto no_context;
    error = soft_file_add_context(fd, context);
    if (error != 0)
        goto no_file;
    pthread_mutex_unlock(&soft_lock);
    return fd;

no_file:
    free(context);
no_context:
    REAL(close)(fd);
no_descriptor:
    soft_device_drop();
no_device:
    pthread_mutex_unlock(&soft_lock);
    return fail(-error);
}

/* Without the RDMA netlink, which knows the kernel's devices alone, libibverbs looks in sysfs. */
SOFT_EXPORT int socket(int domain, int type, int protocol)
{
    if (domain == AF_NETLINK && protocol == NETLINK_RDMA && soft_in_use())
        return fail(EPROTONOSUPPORT);
    return REAL(socket)(domain, type, protocol);
}

/* ---- Using ---- */

SOFT_EXPORT int ioctl(int fd, unsigned long request, ...)
{
    struct soft_file *file = soft_file_get(fd);
    va_list arguments;
    void *argument;
    int result;

    va_start(arguments, request);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    if (file == NULL)
        return REAL(ioctl)(fd, request, argument);
    if (file->dead) {
        result = fail_dead("ioctl");
    } else if (file->kind == SOFT_FILE_EVENTS) {
        result = REAL(ioctl)(fd, request, argument);
    } else if (request != RDMA_VERBS_IOCTL) {
        result = fail(ENOTTY);
    } else {
        int error = soft_ioctl(file->context, argument);
        result = error == 0 ? 0 : fail(-error);
    }
    soft_file_put(file);
    return result;
}

SOFT_EXPORT ssize_t read(int fd, void *buffer, size_t bytes)
{
    struct soft_file *file = soft_file_get(fd);
    ssize_t result;

    if (file == NULL)
        return REAL(read)(fd, buffer, bytes);
    if (file->dead)
        result = fail_dead("read");
    else if (file->kind == SOFT_FILE_EVENTS)
        result = soft_events_read(file->events, fd, buffer, bytes);
    else
        result = fail(EINVAL);
    soft_file_put(file);
    return result;
}

/* What fortified programs call instead of read(). */
ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room);

SOFT_EXPORT ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room)
{
    if (bytes > room)
        abort();
    return read(fd, buffer, bytes);
}

/* The memory behind a command descriptor would swallow a write. */
SOFT_EXPORT ssize_t write(int fd, const void *buffer, size_t bytes)
{
    struct soft_file *file = soft_file_get(fd);

    if (file == NULL)
        return REAL(write)(fd, buffer, bytes);
    soft_file_put(file);
    return fail(-soft_refuse(EINVAL, "the write() interface of uverbs is not served; libibverbs 44 "
                                     "and later use ioctl"));
}

/* True when the descriptor is to look like a character device. */
static bool is_command(int fd)
{
    struct soft_file *file = soft_file_get(fd);
    bool command;

    if (file == NULL)
        return false;
    command = file->kind == SOFT_FILE_COMMAND;
    soft_file_put(file);
    return command;
}

SOFT_EXPORT int fstat(int fd, struct stat *status)
{
    int result = REAL(fstat)(fd, status);

    if (result == 0 && is_command(fd)) {
        status->st_mode = S_IFCHR | 0666;
        status->st_rdev = makedev(SOFT_DEV_MAJOR, SOFT_DEV_MINOR);
    }
    return result;
}

SOFT_EXPORT int fstat64(int fd, struct stat64 *status)
{
    int result = REAL(fstat64)(fd, status);

    if (result == 0 && is_command(fd)) {
        status->st_mode = S_IFCHR | 0666;
        status->st_rdev = makedev(SOFT_DEV_MAJOR, SOFT_DEV_MINOR);
    }
    return result;
}

/* ---- Closing and duplicating ---- */

SOFT_EXPORT int close(int fd)
{
    struct soft_file *file = soft_file_forget(fd);
    int result = REAL(close)(fd);
    int error = errno;

    if (file != NULL)
        soft_file_put(file);
    errno = error;
    return result;
}

SOFT_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    if (!(flags & (int)CLOSE_RANGE_CLOEXEC))
        soft_file_forget_range(first, last);
    return REAL(close_range)(first, last, flags);
}

SOFT_EXPORT void closefrom(int first)
{
    soft_file_forget_range(first < 0 ? 0 : (unsigned)first, ~0u);
    REAL(closefrom)(first);
}

/* `copy` is what duplicating `fd` returned; `old` is what `copy` stood for before, or NULL. */
static int duplicated(int fd, int copy, struct soft_file *old)
{
    int error = errno;
    struct soft_file *file = copy < 0 || copy == fd ? NULL : soft_file_get(fd);

    if (file != NULL) {
        if (soft_file_copy(copy, file) != 0) {
            REAL(close)(copy);
            copy = -1;
            error = EMFILE;
        }
        soft_file_put(file);
    }
    if (old != NULL)
        soft_file_put(old);
    errno = error;
    return copy;
}

SOFT_EXPORT int dup(int fd)
{
    return duplicated(fd, REAL(dup)(fd), NULL);
}

/* The descriptor that dup2() and dup3() close on the way, unless they fail before. */
static struct soft_file *replaced(int fd, int copy)
{
    return copy != fd && REAL(fcntl)(fd, F_GETFD) >= 0 ? soft_file_forget(copy) : NULL;
}

SOFT_EXPORT int dup2(int fd, int copy)
{
    struct soft_file *old = replaced(fd, copy);

    return duplicated(fd, REAL(dup2)(fd, copy), old);
}

SOFT_EXPORT int dup3(int fd, int copy, int flags)
{
    struct soft_file *old = replaced(fd, copy);

    return duplicated(fd, REAL(dup3)(fd, copy, flags), old);
}

static bool duplicates(int command)
{
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

/* The third argument, where there is one, is a number or a pointer; both fit. */
SOFT_EXPORT int fcntl(int fd, int command, ...)
{
    va_list arguments;
    void *argument;
    int result;

    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    result = REAL(fcntl)(fd, command, argument);
    return duplicates(command) ? duplicated(fd, result, NULL) : result;
}

SOFT_EXPORT int fcntl64(int fd, int command, ...)
{
    va_list arguments;
    void *argument;
    int result;

    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    result = REAL(fcntl64)(fd, command, argument);
    return duplicates(command) ? duplicated(fd, result, NULL) : result;
}
