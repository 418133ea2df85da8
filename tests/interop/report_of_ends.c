/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a process that returns from main or calls exit() writes SOFTNIC_REPORT; one that a signal
 * or _exit() ends writes none. "%p" in the name is the process.
 */
#include "rc_pair.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void by_exit(void)
{
    exit(0);
}

static void by_underscore_exit(void)
{
    _exit(0);
}

static void by_signal(void)
{
    raise(SIGTERM);
}

static void by_kill(void)
{
    raise(SIGKILL);
}

/* Whether a process that uses the device and ends in this way leaves a report. */
static bool reports(const char *folder, void (*end)(void))
{
    char name[128], variable[160];
    int status;

    pid_t child = fork();
    CHECK(child >= 0, "fork: %s", strerror(errno));
    if (child == 0) {
        snprintf(variable, sizeof(variable), "SOFTNIC_REPORT=%s/%%p.json", folder);
        putenv(variable);
        ibv_close_device(rc_open());
        end();
    }
    CHECK(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
    snprintf(name, sizeof(name), "%s/%d.json", folder, (int)child);
    if (unlink(name) == 0)
        return true;
    CHECK(errno == ENOENT, "%s: %s", name, strerror(errno));
    return false;
}

int main(void)
{
    char folder[] = "/tmp/softnic-report-XXXXXX";

    CHECK(mkdtemp(folder), "mkdtemp: %s", strerror(errno));
    CHECK(reports(folder, by_exit), "no report after exit()");
    CHECK(!reports(folder, by_underscore_exit), "a report after _exit()");
    CHECK(!reports(folder, by_signal), "a report after SIGTERM");
    CHECK(!reports(folder, by_kill), "a report after SIGKILL");
    CHECK(rmdir(folder) == 0, "%s holds something else: %s", folder, strerror(errno));
    return 0;
}
