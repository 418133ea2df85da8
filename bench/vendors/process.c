/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a program to its end or to a deadline, and makes and removes the folder that it works in.
 */
#include "library.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../clock.h"

/* Starts it as the leader of a group, so that its children end with it. */
static int start(char *const argv[], const char *folder, const char *log, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return -error;
    error = posix_spawnattr_init(&attributes);
    if (error)
        goto no_attributes;

    error = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log,
                                                 O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    if (!error)
        error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    if (!error)
        error = posix_spawnp(child, argv[0], &actions, &attributes, argv, environ);

    posix_spawnattr_destroy(&attributes);
no_attributes:
    posix_spawn_file_actions_destroy(&actions);
    return -error;
}

int vendors_process(char *const argv[], const char *folder, const char *log, uint64_t timeout_ns)
{
    const struct timespec nap = {.tv_nsec = 5000000};
    uint64_t deadline = bench_monotonic_ns() + timeout_ns;
    pid_t child = -1;
    int status;

    int error = start(argv, folder, log, &child);
    if (error)
        return error;
    for (;;) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (ended < 0 && errno != EINTR)
            return -errno;
        if (bench_monotonic_ns() > deadline) {
            kill(-child, SIGKILL);
            waitpid(child, &status, 0);
            return -ETIMEDOUT;
        }
        nanosleep(&nap, NULL);
    }
}

int vendors_folder_make(char *path)
{
    const char *parent = getenv("TMPDIR");
    int used = snprintf(path, VENDORS_PATH_BYTES, "%s/doorbell-vendors-XXXXXX",
                        parent && parent[0] == '/' ? parent : "/tmp");
    if (used >= VENDORS_PATH_BYTES)
        return -ENAMETOOLONG;
    return mkdtemp(path) ? 0 : -errno;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

void vendors_folder_remove(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
