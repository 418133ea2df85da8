/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices: the list, opening the best or a named one, and its life; doorbell.h.
 */
#include "device.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <doorbell/impl/qp.h>

#include "error.h"

/* ---- The choice in words ---- */

/* What the peer addresses: a GID, or the LID of an InfiniBand port that has none. */
static void write_address(const struct db_choice *choice, char *text, size_t bytes)
{
    char address[DB_GID_TEXT_BYTES];

    if (choice->gid)
        snprintf(text, bytes, "GID %u (%s)", choice->gid->index,
                 db_gid_text(choice->gid->address, address));
    else
        snprintf(text, bytes, "LID %u", choice->port->lid);
}

static void write_choice(const struct db_choice *choice, char text[DB_CHOICE_BYTES])
{
    char address[DB_GID_TEXT_BYTES + 24];

    write_address(choice, address, sizeof(address));
    snprintf(text, DB_CHOICE_BYTES, "%s, port %u, %s%s: %s", choice->nic->name,
             choice->port->number, address, choice->nic->software ? ", in software" : "",
             choice->reason);
}

/* ---- The list ---- */

static void describe_entry(struct db_nic *nic, struct db_device_entry *entry)
{
    const struct db_inventory alone = {.nics = nic, .n_nics = 1};
    struct db_choice choice;
    char sentence[DB_CHOICE_BYTES];

    *entry = (struct db_device_entry){.software = nic->software};
    memcpy(entry->name, nic->name, sizeof(entry->name));
    entry->usable = db_inventory_choose(&alone, NULL, NULL, &choice) == 0;
    if (entry->usable)
        write_choice(&choice, sentence);
    snprintf(entry->reason, sizeof(entry->reason), "%.*s", DB_REASON_BYTES - 1,
             entry->usable ? sentence : choice.reason);
}

int db_device_list(struct db_device_entry *entries, size_t capacity, size_t *count)
{
    struct db_inventory inventory;
    int error = db_inventory_read(&inventory);

    *count = inventory.n_nics;
    for (size_t i = 0; i < inventory.n_nics && i < capacity; i++)
        describe_entry(&inventory.nics[i], &entries[i]);
    db_inventory_free(&inventory);
    return error;
}

/* ---- Opening ---- */

/* Opens the device of that name for DEVX; NULL with errno set. */
static struct ibv_context *open_devx(const char *name)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    struct ibv_context *context = NULL;
    struct ibv_device **list = ibv_get_device_list(NULL);

    if (!list)
        return NULL;
    errno = ENODEV;
    for (size_t i = 0; list[i]; i++) {
        if (strcmp(ibv_get_device_name(list[i]), name) == 0) {
            context = mlx5dv_open_device(list[i], &attr);
            break;
        }
    }
    int error = errno;
    ibv_free_device_list(list);
    errno = error;
    return context;
}

static int open_context(struct db_device *device)
{
    device->context = open_devx(device->path.name);
    if (device->context)
        return 0;
    int error = db_errno();
    return db_fail(error,
                   "%s cannot be opened for DEVX: %s; a ConnectX-5 or newer with UCTX_EN=1 in its "
                   "firmware (mlxconfig) is needed",
                   device->path.name, strerror(-error));
}

static int open_domain(struct db_device *device)
{
    struct mlx5dv_pd pd;
    struct mlx5dv_obj object = {.pd = {.out = &pd}};

    device->pd = ibv_alloc_pd(device->context);
    if (!device->pd) {
        int error = db_errno();
        return db_fail(error, "%s gives no protection domain: %s", device->path.name,
                       strerror(-error));
    }
    object.pd.in = device->pd;
    if (mlx5dv_init_obj(&object, MLX5DV_OBJ_PD))
        return db_fail(-EOPNOTSUPP, "libmlx5 does not tell the PD number of %s; update rdma-core",
                       device->path.name);
    device->pdn = pd.pdn;
    if (mlx5dv_devx_query_eqn(device->context, 0, &device->eqn))
        return db_fail(-EOPNOTSUPP, "%s gives DEVX programs no event queue; see its firmware",
                       device->path.name);
    return 0;
}

static void close_device(struct db_device *device)
{
    if (device->pd)
        ibv_dealloc_pd(device->pd);
    if (device->context)
        ibv_close_device(device->context);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

static void take_choice(struct db_device *device, const struct db_choice *choice)
{
    const struct db_nic *nic = choice->nic;
    const struct db_nic_port *port = choice->port;

    device->path = (struct db_path){
        .software = nic->software,
        .infiniband = port->link == DB_LINK_INFINIBAND,
        .port = port->number,
        .lid = port->lid,
        .mtu_bytes = port->mtu_bytes,
    };
    memcpy(device->path.name, nic->name, sizeof(device->path.name));
    if (choice->gid) {
        device->path.gid_index = choice->gid->index;
        memcpy(device->path.gid, choice->gid->address, sizeof(device->path.gid));
    }
    memcpy(device->firmware, nic->firmware, sizeof(device->firmware));
    device->numa_node = nic->numa_node;
    write_choice(choice, device->choice);
}

static int open_choice(const struct db_choice *choice, struct db_device **opened)
{
    struct db_device *device = calloc(1, sizeof(*device));

    if (!device)
        return db_fail(-ENOMEM, "no memory for the device %s", choice->nic->name);
    device->references = 1;
    pthread_mutex_init(&device->lock, NULL);
    take_choice(device, choice);
    int error = open_context(device);
    if (!error)
        error = open_domain(device);
    if (!error)
        error = db_caps_read(device);
    if (error) {
        close_device(device);
        return error;
    }
    *opened = device;
    return 0;
}

int db_device_open(const char *name, const struct db_device_options *options,
                   struct db_device **device)
{
    struct db_inventory inventory;
    struct db_choice choice;

    *device = NULL;
    int error = db_inventory_read_named(name, &inventory);
    if (error)
        return error;
    error = db_inventory_choose(&inventory, name, options, &choice);
    if (error)
        db_fail(error, "%s", choice.reason);
    else
        error = open_choice(&choice, device);
    db_inventory_free(&inventory);
    return error;
}

/* ---- Life ---- */

void db_device_hold(struct db_device *device)
{
    __atomic_fetch_add(&device->references, 1, __ATOMIC_RELAXED);
}

void db_device_release(struct db_device *device)
{
    /* Release: what this user did to the device. Acquire: what the others did, before it goes. */
    if (__atomic_sub_fetch(&device->references, 1, __ATOMIC_ACQ_REL) == 0)
        close_device(device);
}

void db_device_close(struct db_device *device)
{
    if (device)
        db_device_release(device);
}

const char *db_device_choice(const struct db_device *device)
{
    return device->choice;
}

void db_device_describe(const struct db_device *device, struct db_device_info *info)
{
    const struct db_path *path = &device->path;
    const struct db_caps *caps = &device->caps;

    *info = (struct db_device_info){
        .software = path->software,
        .infiniband = path->infiniband,
        .without_record = caps->without_record,
        .numa_node = device->numa_node,
        .port = path->port,
        .gid_index = path->gid_index,
        .lid = path->lid,
        .mtu_bytes = path->mtu_bytes,
        .max_depth = caps->max_depth,
        .max_collapsed =
            caps->max_depth < DB_MAX_COLLAPSED_DEPTH ? caps->max_depth : DB_MAX_COLLAPSED_DEPTH,
        .max_cq_depth = caps->max_cq_depth,
        .max_recv_depth = caps->max_recv_depth,
    };
    memcpy(info->name, path->name, sizeof(info->name));
    memcpy(info->firmware, device->firmware, sizeof(info->firmware));
    memcpy(info->gid, path->gid, sizeof(info->gid));
}
