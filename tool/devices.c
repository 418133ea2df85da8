/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the machine's RDMA devices through libibverbs and sysfs, for devices.h.
 */
#include "devices.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The software ConnectX lists itself under this name and a number. */
#define SOFTWARE_NAME_PREFIX "mlx5_soft"

const char *db_gid_type_name(enum db_gid_type type)
{
    static const char *const names[] = {
        [DB_GID_IB] = "IB", [DB_GID_ROCE_V1] = "RoCE v1", [DB_GID_ROCE_V2] = "RoCE v2"};

    return names[type];
}

const char *db_link_name(enum db_link link)
{
    static const char *const names[] = {[DB_LINK_UNKNOWN] = "unknown",
                                        [DB_LINK_INFINIBAND] = "InfiniBand",
                                        [DB_LINK_ETHERNET] = "Ethernet"};

    return names[link];
}

const char *db_gid_address(const struct db_gid *gid, char *text)
{
    return inet_ntop(AF_INET6, gid->address, text, INET6_ADDRSTRLEN);
}

static enum db_gid_type gid_type(uint32_t verbs_type)
{
    switch (verbs_type) {
    case IBV_GID_TYPE_ROCE_V1:
        return DB_GID_ROCE_V1;
    case IBV_GID_TYPE_ROCE_V2:
        return DB_GID_ROCE_V2;
    default:
        return DB_GID_IB;
    }
}

static enum db_link link_of(uint8_t link_layer)
{
    switch (link_layer) {
    case IBV_LINK_LAYER_INFINIBAND:
        return DB_LINK_INFINIBAND;
    case IBV_LINK_LAYER_ETHERNET:
        return DB_LINK_ETHERNET;
    default:
        return DB_LINK_UNKNOWN;
    }
}

static int read_port(struct ibv_context *context, uint32_t number, struct db_port *port)
{
    struct ibv_port_attr attr;
    int rc = ibv_query_port(context, (uint8_t)number, &attr);

    if (rc)
        return -rc;
    port->number = number;
    port->active = attr.state == IBV_PORT_ACTIVE;
    port->state = ibv_port_state_str(attr.state);
    port->link = link_of(attr.link_layer);
    port->mtu_bytes = 128u << attr.active_mtu;

    size_t slots = attr.gid_tbl_len > 0 ? (size_t)attr.gid_tbl_len : 0;
    port->gids = calloc(slots ? slots : 1, sizeof(*port->gids));
    if (!port->gids)
        return -ENOMEM;
    for (uint32_t index = 0; index < slots; index++) {
        struct ibv_gid_entry entry;

        if (ibv_query_gid_ex(context, number, index, &entry, 0))
            continue; /* an empty entry */
        struct db_gid *gid = &port->gids[port->n_gids++];
        gid->index = index;
        gid->type = gid_type(entry.gid_type);
        memcpy(gid->address, entry.gid.raw, sizeof(gid->address));
    }
    return 0;
}

static int read_open_device(struct ibv_context *context, struct db_device *device)
{
    struct ibv_device_attr attr;
    int rc = ibv_query_device(context, &attr);

    if (rc)
        return -rc;
    snprintf(device->firmware, sizeof(device->firmware), "%s", attr.fw_ver);
    device->ports = calloc(attr.phys_port_cnt ? attr.phys_port_cnt : 1, sizeof(*device->ports));
    if (!device->ports)
        return -ENOMEM;
    for (uint32_t number = 1; number <= attr.phys_port_cnt; number++) {
        rc = read_port(context, number, &device->ports[device->n_ports++]);
        if (rc)
            return rc;
    }
    return 0;
}

static void read_driver(const struct ibv_device *verbs, struct db_device *device)
{
    char link[sizeof(verbs->ibdev_path) + 16];
    char target[256];

    snprintf(link, sizeof(link), "%s/device/driver", verbs->ibdev_path);
    ssize_t bytes = readlink(link, target, sizeof(target) - 1);
    const char *name = device->mlx5 ? "mlx5" : "unknown";

    if (bytes > 0) {
        target[bytes] = '\0';
        const char *slash = strrchr(target, '/');
        name = slash ? slash + 1 : target;
    }
    snprintf(device->driver, sizeof(device->driver), "%.63s", name);
}

static int read_numa_node(const struct ibv_device *verbs)
{
    char path[sizeof(verbs->ibdev_path) + 24];
    char line[16];
    int node = -1;

    snprintf(path, sizeof(path), "%s/device/numa_node", verbs->ibdev_path);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    if (fgets(line, sizeof(line), file))
        node = (int)strtol(line, NULL, 10);
    fclose(file);
    return node;
}

static void read_device(struct ibv_device *verbs, struct db_device *device)
{
    snprintf(device->name, sizeof(device->name), "%s", ibv_get_device_name(verbs));
    device->software =
        strncmp(device->name, SOFTWARE_NAME_PREFIX, strlen(SOFTWARE_NAME_PREFIX)) == 0;
    device->mlx5 = mlx5dv_is_supported(verbs);
    read_driver(verbs, device);
    device->numa_node = read_numa_node(verbs);

    struct ibv_context *context = ibv_open_device(verbs);
    if (!context) {
        device->open_error = errno ? -errno : -EIO;
        return;
    }
    device->open_error = read_open_device(context, device);
    ibv_close_device(context);
}

int db_device_list_read(struct db_device_list *list)
{
    int n_devices = 0;
    struct ibv_device **verbs = ibv_get_device_list(&n_devices);

    *list = (struct db_device_list){0};
    if (!verbs)
        return errno ? -errno : -ENOSYS;

    list->devices = calloc(n_devices > 0 ? (size_t)n_devices : 1, sizeof(*list->devices));
    if (!list->devices) {
        ibv_free_device_list(verbs);
        return -ENOMEM;
    }
    for (int i = 0; i < n_devices; i++)
        read_device(verbs[i], &list->devices[list->n_devices++]);
    ibv_free_device_list(verbs);
    return 0;
}

void db_device_list_free(struct db_device_list *list)
{
    for (size_t i = 0; i < list->n_devices; i++) {
        for (size_t j = 0; j < list->devices[i].n_ports; j++)
            free(list->devices[i].ports[j].gids);
        free(list->devices[i].ports);
    }
    free(list->devices);
    *list = (struct db_device_list){0};
}
