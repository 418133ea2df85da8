/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C library's own functions, for code that stands in front of them: REAL(open)(path, flags) is
 * the open that a program would have called without the adapter.
 *
 * Included by every file of softnic/adapter that touches descriptors or paths; the definitions are
 * in real.c. A function is looked up at its first use, so this works before any constructor has
 * run; the constructor looks up the rest.
 */
#ifndef SOFTNIC_ADAPTER_REAL_H
#define SOFTNIC_ADAPTER_REAL_H

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The functions that the adapter calls or stands in front of. */
#define SOFT_REAL_FUNCTIONS(X)                                                                     \
    X(open)                                                                                        \
    X(open64)                                                                                      \
    X(openat)                                                                                      \
    X(openat64)                                                                                    \
    X(close)                                                                                       \
    X(close_range)                                                                                 \
    X(closefrom)                                                                                   \
    X(read)                                                                                        \
    X(write)                                                                                       \
    X(ioctl)                                                                                       \
    X(dup)                                                                                         \
    X(dup2)                                                                                        \
    X(dup3)                                                                                        \
    X(fcntl)                                                                                       \
    X(fcntl64)                                                                                     \
    X(socket)                                                                                      \
    X(stat)                                                                                        \
    X(stat64)                                                                                      \
    X(lstat)                                                                                       \
    X(lstat64)                                                                                     \
    X(fstat)                                                                                       \
    X(fstat64)                                                                                     \
    X(fstatat)                                                                                     \
    X(fstatat64)                                                                                   \
    X(statx)                                                                                       \
    X(access)                                                                                      \
    X(faccessat)                                                                                   \
    X(fopen)                                                                                       \
    X(fopen64)                                                                                     \
    X(opendir)                                                                                     \
    X(scandir)                                                                                     \
    X(readlink)                                                                                    \
    X(realpath)                                                                                    \
    X(sigaction)                                                                                   \
    X(signal)

#define SOFT_REAL_NUMBER(name) SOFT_REAL_##name,
enum soft_real { SOFT_REAL_FUNCTIONS(SOFT_REAL_NUMBER) SOFT_REAL_COUNT };
#undef SOFT_REAL_NUMBER

void (*soft_real(enum soft_real which))(void);

#define REAL(name) ((__typeof__(&name))soft_real(SOFT_REAL_##name))

#endif
