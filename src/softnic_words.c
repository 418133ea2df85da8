/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the software device says about itself, for messages. It is no part of the library: a program
 * that carries it, or that it is preloaded into, has the functions of its softnic.h.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "device.h"

/* A function of softnic.h that takes nothing, or NULL; called through the type that it has. */
#define SOFTNIC(type, name) ((type(*)(void))dlsym(RTLD_DEFAULT, name))

const char *db_softnic_remedy(char text[DB_SOFTNIC_TEXT_BYTES])
{
    bool (*in_use)(void) = SOFTNIC(bool, "softnic_in_use");
    const char *(*reason)(void) = SOFTNIC(const char *, "softnic_reason");

    if (in_use && reason && !in_use())
        snprintf(text, DB_SOFTNIC_TEXT_BYTES,
                 "the software one is not used: %s; SOFTNIC=on brings it", reason());
    else
        snprintf(text, DB_SOFTNIC_TEXT_BYTES,
                 "`doorbell softnic -- PROGRAM`, or SOFTNIC=on where it is linked in, brings the "
                 "software one");
    return text;
}

const char *db_softnic_obstacle(int open_error, char text[DB_SOFTNIC_TEXT_BYTES])
{
    const char *(*wrong)(void) = SOFTNIC(const char *, "softnic_wrong_setting");

    if (wrong && wrong())
        snprintf(text, DB_SOFTNIC_TEXT_BYTES, "%s", wrong());
    else
        snprintf(text, DB_SOFTNIC_TEXT_BYTES, "%s; SOFTNIC_DEBUG=1 says why",
                 strerror(-open_error));
    return text;
}
