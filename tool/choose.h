/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which device, port and GID to use when the user names none, or only some of them, and the
 * sentence that says why. Works on the snapshot of devices.h and touches no device. Included by
 * `doorbell info`.
 */
#ifndef TOOL_CHOOSE_H
#define TOOL_CHOOSE_H

#include "devices.h"

#define DB_ANY_GID (-1)

/* What the user asked for; a zero or DB_ANY_GID leaves the choice open. */
struct db_choice_wish {
    const char *device;
    uint32_t port;
    int gid_index;
};

struct db_choice {
    const struct db_device *device; /* NULL: nothing can be used */
    const struct db_port *port;
    const struct db_gid *gid; /* NULL: an InfiniBand port without GIDs, which LIDs address */
    bool degraded;            /* usable, but for a reason that a person should look at */
    char reason[256];         /* one sentence: why this one, or why none */
};

/*
 * Chooses among usable paths (served by libmlx5, port active). Hardware comes before the software
 * device; on Ethernet RoCE v2 before v1, and in each an IPv4-mapped GID before a global IPv6 one,
 * then loopback and link-local ones, which no router forwards; among equals the first listed.
 * The result points into the list. Returns 0, or -ENODEV with the reason filled in.
 */
int db_choose(const struct db_device_list *list, const struct db_choice_wish *wish,
              struct db_choice *choice);

#endif
