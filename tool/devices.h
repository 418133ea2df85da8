/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine's RDMA devices as libibverbs lists them: a snapshot in plain structures, with no open
 * device behind it. Included by choose.h and by the files of `doorbell info`.
 */
#ifndef TOOL_DEVICES_H
#define TOOL_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum db_gid_type {
    DB_GID_IB,
    DB_GID_ROCE_V1,
    DB_GID_ROCE_V2,
};

struct db_gid {
    uint32_t index; /* in the port's GID table */
    enum db_gid_type type;
    uint8_t address[16]; /* an IPv6 address, or an IPv4 one mapped into it */
};

enum db_link {
    DB_LINK_UNKNOWN,
    DB_LINK_INFINIBAND,
    DB_LINK_ETHERNET,
};

struct db_port {
    uint32_t number; /* from 1 */
    bool active;
    const char *state; /* as libibverbs names it; a static string */
    enum db_link link;
    uint32_t mtu_bytes;
    struct db_gid *gids; /* the entries in use, by rising index */
    size_t n_gids;
};

struct db_device {
    char name[64];
    char firmware[64];
    char driver[64]; /* the kernel driver, or libibverbs's provider where sysfs names none */
    int numa_node;   /* -1 = unknown, or the machine has but one */
    bool software;   /* the software ConnectX */
    bool mlx5;       /* libmlx5 serves it */
    int open_error;  /* 0, or why it could not be opened and queried: a negative errno value */
    struct db_port *ports;
    size_t n_ports;
};

struct db_device_list {
    struct db_device *devices;
    size_t n_devices;
};

/*
 * Opens every device that libibverbs lists, reads it and closes it; a device that cannot be opened
 * is listed with its open_error. The caller frees the list with db_device_list_free(). Errors:
 * -ENOMEM, and -ENOSYS when the kernel has no RDMA support.
 */
int db_device_list_read(struct db_device_list *list);

void db_device_list_free(struct db_device_list *list);

/* The words for people and for JSON: "RoCE v2", "Ethernet". Static strings. */
const char *db_gid_type_name(enum db_gid_type type);
const char *db_link_name(enum db_link link);

/* The address in IPv6's text form; `text` holds at least INET6_ADDRSTRLEN bytes. Returns `text`. */
const char *db_gid_address(const struct db_gid *gid, char *text);

#endif
