/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the machine's RDMA devices through libibverbs and sysfs; inventory.h.
 */
#include <doorbell/inventory.h>

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "error.h"

/* The software ConnectX lists itself under this name and a number. */
#define SOFTWARE_NAME_PREFIX "mlx5_soft"

/* ---- Words ---- */

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

const char *db_gid_text(const uint8_t address[16], char *text)
{
    _Static_assert(DB_GID_TEXT_BYTES == INET6_ADDRSTRLEN, "what inet_ntop() asks for");
    return inet_ntop(AF_INET6, address, text, DB_GID_TEXT_BYTES);
}

/* ---- Ports ---- */

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

static int read_gids(struct ibv_context *context, size_t slots, struct db_nic_port *port)
{
    port->gids = calloc(slots ? slots : 1, sizeof(*port->gids));
    if (!port->gids)
        return -ENOMEM;
    for (uint32_t index = 0; index < slots; index++) {
        struct ibv_gid_entry entry;

        if (ibv_query_gid_ex(context, port->number, index, &entry, 0))
            continue; /* an empty entry */
        struct db_nic_gid *gid = &port->gids[port->n_gids++];
        gid->index = index;
        gid->type = gid_type(entry.gid_type);
        memcpy(gid->address, entry.gid.raw, sizeof(gid->address));
    }
    return 0;
}

/* A port that cannot be read is listed as such; the device's others may serve. */
static int read_port(struct ibv_context *context, uint32_t number, struct db_nic_port *port)
{
    struct ibv_port_attr attr;

    *port = (struct db_nic_port){.number = number, .state = "unreadable"};
    if (ibv_query_port(context, (uint8_t)number, &attr))
        return 0;
    port->active = attr.state == IBV_PORT_ACTIVE;
    port->state = ibv_port_state_str(attr.state);
    port->link = link_of(attr.link_layer);
    port->lid = port->link == DB_LINK_INFINIBAND ? attr.lid : 0;
    port->mtu_bytes = 128u << attr.active_mtu;
    return read_gids(context, attr.gid_tbl_len > 0 ? (size_t)attr.gid_tbl_len : 0, port);
}

/* ---- Devices ---- */

static int read_open_nic(struct ibv_context *context, struct db_nic *nic)
{
    struct ibv_device_attr attr;
    int error = ibv_query_device(context, &attr);

    if (error)
        return -error;
    snprintf(nic->firmware, sizeof(nic->firmware), "%s", attr.fw_ver);
    nic->ports = calloc(attr.phys_port_cnt ? attr.phys_port_cnt : 1, sizeof(*nic->ports));
    if (!nic->ports)
        return -ENOMEM;
    for (uint32_t number = 1; number <= attr.phys_port_cnt; number++) {
        error = read_port(context, number, &nic->ports[nic->n_ports++]);
        if (error)
            return error;
    }
    return 0;
}

static void read_driver(const struct ibv_device *verbs, struct db_nic *nic)
{
    char link[sizeof(verbs->ibdev_path) + 16];
    char target[256];

    snprintf(link, sizeof(link), "%s/device/driver", verbs->ibdev_path);
    ssize_t bytes = readlink(link, target, sizeof(target) - 1);
    const char *name = nic->mlx5 ? "mlx5" : "unknown";

    if (bytes > 0) {
        target[bytes] = '\0';
        const char *slash = strrchr(target, '/');
        name = slash ? slash + 1 : target;
    }
    snprintf(nic->driver, sizeof(nic->driver), "%.63s", name);
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

static void read_nic(struct ibv_device *verbs, bool open, struct db_nic *nic)
{
    snprintf(nic->name, sizeof(nic->name), "%s", ibv_get_device_name(verbs));
    nic->software = strncmp(nic->name, SOFTWARE_NAME_PREFIX, strlen(SOFTWARE_NAME_PREFIX)) == 0;
    nic->mlx5 = mlx5dv_is_supported(verbs);
    read_driver(verbs, nic);
    nic->numa_node = read_numa_node(verbs);
    if (!open)
        return;

    struct ibv_context *context = ibv_open_device(verbs);
    if (!context) {
        nic->open_error = db_errno();
        return;
    }
    nic->open_error = read_open_nic(context, nic);
    ibv_close_device(context);
}

int db_inventory_read_named(const char *name, struct db_inventory *inventory)
{
    int n_devices = 0;
    struct ibv_device **verbs = ibv_get_device_list(&n_devices);

    *inventory = (struct db_inventory){0};
    if (!verbs) {
        int error = db_errno();
        char remedy[DB_SOFTNIC_TEXT_BYTES];
        return db_fail(error, "the kernel lists no RDMA devices: %s; %s", strerror(-error),
                       db_softnic_remedy(remedy));
    }
    inventory->nics = calloc(n_devices > 0 ? (size_t)n_devices : 1, sizeof(*inventory->nics));
    if (!inventory->nics) {
        ibv_free_device_list(verbs);
        return db_fail(-ENOMEM, "no memory for a list of %d RDMA devices", n_devices);
    }
    for (int i = 0; i < n_devices; i++) {
        bool open = !name || strcmp(name, ibv_get_device_name(verbs[i])) == 0;
        read_nic(verbs[i], open, &inventory->nics[inventory->n_nics++]);
    }
    ibv_free_device_list(verbs);
    return 0;
}

int db_inventory_read(struct db_inventory *inventory)
{
    return db_inventory_read_named(NULL, inventory);
}

void db_inventory_free(struct db_inventory *inventory)
{
    for (size_t i = 0; i < inventory->n_nics; i++) {
        for (size_t j = 0; j < inventory->nics[i].n_ports; j++)
            free(inventory->nics[i].ports[j].gids);
        free(inventory->nics[i].ports);
    }
    free(inventory->nics);
    *inventory = (struct db_inventory){0};
}
