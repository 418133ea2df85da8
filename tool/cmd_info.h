/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `doorbell info` found, and the two ways to print it. Included by cmd_info.c, info_text.c and
 * info_json.c.
 */
#ifndef TOOL_CMD_INFO_H
#define TOOL_CMD_INFO_H

#include <doorbell/doorbell.h>
#include <doorbell/inventory.h>

#include "info_gpu.h"

/* An environment variable that steers which device, port or GID is used, or how. */
struct info_variable {
    const char *name;
    const char *reader; /* who obeys it */
};

extern const struct info_variable info_variables[]; /* ends with a NULL name */

struct info {
    struct db_inventory inventory;
    struct db_choice choice;
    struct db_device_info offers; /* of the choice */
    char refusal[512];            /* why it cannot be used; "": it can */
    struct info_gpus gpus;
};

/* Both print to standard output. Return 0, or -EIO when it cannot be written. */
int info_print_text(const struct info *info);
int info_print_json(const struct info *info);

#endif
