/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in front of the C library where a program installs handlers for SIGSEGV and SIGBUS: the
 * device's handler stays first (core/fault.h), and the program's own comes behind it.
 */
#include <errno.h>
#include <string.h>

#include "core/fault.h"
#include "process.h"
#include "real.h"

SOFT_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (!nic_catches_faults(number))
        return REAL(sigaction)(number, action, old);
    nic_other_faults(number, action, old);
    return 0;
}

/* BSD semantics, as glibc's. */
SOFT_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    if (!nic_catches_faults(number))
        return REAL(signal)(number, handler);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    sigemptyset(&action.sa_mask);
    nic_other_faults(number, &action, &old);
    return old.sa_handler;
}
