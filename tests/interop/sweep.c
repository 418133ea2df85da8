/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: what a killed process left in TMPDIR the next one removes, and it removes nothing else: no
 * directory of another name, and none of that name which holds something else.
 */
#include "rc_pair.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Uses the device in a process that ends so; 0 is exit(). */
static void use(int signal_number)
{
    pid_t child = fork();

    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (child == 0) {
        ibv_close_device(rc_open());
        if (signal_number)
            raise(signal_number);
        exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child, "waitpid: %s", strerror(errno));
}

static size_t entries(const char *folder, char *last)
{
    DIR *directory = opendir(folder);
    size_t count = 0;

    CHECK(directory, "%s: %s", folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        strcpy(last, entry->d_name);
        count++;
    }
    closedir(directory);
    return count;
}

/* A directory of somebody's, with a file in it. */
static void make(const char *folder, const char *name)
{
    char file[512];

    snprintf(file, sizeof(file), "%s/%s", folder, name);
    CHECK(mkdir(file, 0700) == 0, "%s: %s", file, strerror(errno));
    strcat(file, "/precious");
    int fd = open(file, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0, "%s: %s", file, strerror(errno));
    close(fd);
}

static void take_away(const char *folder, const char *name)
{
    char file[512];

    snprintf(file, sizeof(file), "%s/%s/precious", folder, name);
    CHECK(unlink(file) == 0, "%s is gone: %s", file, strerror(errno));
    *strrchr(file, '/') = '\0';
    CHECK(rmdir(file) == 0, "%s: %s", file, strerror(errno));
}

int main(void)
{
    char folder[] = "/tmp/sweep-XXXXXX";
    char left[256], same[256], other[256];

    CHECK(mkdtemp(folder), "mkdtemp: %s", strerror(errno));
    setenv("TMPDIR", folder, 1);
    use(0);
    CHECK(entries(folder, left) == 0, "%s is left behind", left);
    use(SIGKILL);
    CHECK(entries(folder, left) == 1, "a killed process leaves %zu", entries(folder, left));

    /* Of the name that the next may get, and near it. */
    strcpy(same, left);
    memcpy(same + strlen(same) - 6, "abcdef", 6);
    snprintf(other, sizeof(other), "%sg", same);
    make(folder, same);
    make(folder, other);
    make(folder, "softnic-report");
    use(0);
    take_away(folder, same);
    take_away(folder, other);
    take_away(folder, "softnic-report");
    CHECK(rmdir(folder) == 0, "what the killed process left is still there: %s", strerror(errno));
    return 0;
}
