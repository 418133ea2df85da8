/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way out of this machine: a device, its port and its GID, and which of several is the best.
 * Included by device.h.
 */
#ifndef DOORBELL_SRC_PATH_H
#define DOORBELL_SRC_PATH_H

#include <doorbell/doorbell.h>

struct ibv_device;

struct db_path {
    char name[DB_NAME_BYTES];
    bool software;
    bool infiniband;
    uint32_t port;
    uint32_t gid_index;
    uint8_t gid[16];
    uint32_t lid;
    uint32_t mtu_bytes;
    int rank;                     /* higher is better */
    char reason[DB_REASON_BYTES]; /* which port and GID; or what is missing */
};

/* Finds the best path of one device that fits the options. -ENODEV, or -EACCES and the like when it
 * cannot be opened, with path->reason saying why. Leaves db_error_text() alone. */
int db_path_examine(struct ibv_device *verbs, const struct db_device_options *options,
                    struct db_path *path);

#endif
