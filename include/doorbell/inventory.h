/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine's RDMA devices with their ports and GIDs, as a snapshot in plain structures, and the
 * choice of one of them: what db_device_open() does before it opens. Included by programs that show
 * the devices or choose by themselves; the conventions are doorbell.h's.
 */
#ifndef DOORBELL_INVENTORY_H
#define DOORBELL_INVENTORY_H

#include "doorbell.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The snapshot ---- */

enum db_gid_type {
    DB_GID_IB,
    DB_GID_ROCE_V1,
    DB_GID_ROCE_V2,
};

struct db_nic_gid {
    uint32_t index; /* in the port's GID table */
    enum db_gid_type type;
    uint8_t address[16]; /* an IPv6 address, or an IPv4 one mapped into it */
};

enum db_link {
    DB_LINK_UNKNOWN,
    DB_LINK_INFINIBAND,
    DB_LINK_ETHERNET,
};

struct db_nic_port {
    uint32_t number; /* from 1 */
    bool active;
    const char *state; /* as libibverbs names it, or "unreadable"; a static string */
    enum db_link link;
    uint32_t lid; /* InfiniBand; else 0 */
    uint32_t mtu_bytes;
    struct db_nic_gid *gids; /* the entries in use, by rising index */
    size_t n_gids;
};

struct db_nic {
    char name[DB_NAME_BYTES];
    char firmware[64];
    char driver[64]; /* the kernel driver, or libibverbs's provider where sysfs names none */
    int numa_node;   /* -1 = unknown, or the machine has but one */
    bool software;   /* the software ConnectX */
    bool mlx5;       /* libmlx5 serves it */
    int open_error;  /* 0, or why it could not be opened and queried: a negative errno value */
    struct db_nic_port *ports;
    size_t n_ports;
};

struct db_inventory {
    struct db_nic *nics; /* in the order of libibverbs */
    size_t n_nics;
};

/*
 * Opens every device that libibverbs lists, reads it and closes it; one that cannot be opened is
 * listed with its open_error. The caller frees the inventory with db_inventory_free(). -ENOSYS: the
 * kernel has no RDMA support. -ENOMEM.
 */
int db_inventory_read(struct db_inventory *inventory);

/* Leaves the inventory empty, as it is when db_inventory_read() has failed. */
void db_inventory_free(struct db_inventory *inventory);

/* The words for people and for JSON: "RoCE v2", "Ethernet". Static strings. */
const char *db_gid_type_name(enum db_gid_type type);
const char *db_link_name(enum db_link link);

#define DB_GID_TEXT_BYTES 46 /* INET6_ADDRSTRLEN */

/* Writes the address in IPv6's text form; `text` holds DB_GID_TEXT_BYTES. Returns `text`. */
const char *db_gid_text(const uint8_t address[16], char *text);

/* ---- The choice ---- */

struct db_choice {
    const struct db_nic *nic; /* NULL: nothing can be used */
    const struct db_nic_port *port;
    const struct db_nic_gid *gid; /* NULL: an InfiniBand port without GIDs, which LIDs address */
    bool degraded;                /* usable, but for a reason that a person should look at */
    char reason[512];             /* why this one; or why none, and the remedy */
};

/*
 * Chooses among the paths that can be used, which libmlx5 serves and whose port is active, in the
 * order that db_device_open() states; among equals the first listed. `name` and `options` are as
 * there: NULL leaves the choice open. The result points into the inventory. Touches no device.
 *
 * -ENODEV: none fits. Another value: the open_error of the device that came nearest. Either way the
 * sentence is choice->reason, and db_error_text() stays as it was.
 */
int db_inventory_choose(const struct db_inventory *inventory, const char *name,
                        const struct db_device_options *options, struct db_choice *choice);

#ifdef __cplusplus
}
#endif

#endif
