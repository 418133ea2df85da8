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

/* ---- The list ---- */

static const struct db_device_options any_path = DB_DEVICE_OPTIONS;

static const char remedy[] =
    "`doorbell softnic -- PROGRAM`, or SOFTNIC=on where it is linked in, brings the software one";

/* The caller frees with ibv_free_device_list(). */
static int read_list(struct ibv_device ***list, int *count)
{
    *list = ibv_get_device_list(count);
    if (*list)
        return 0;
    int error = db_errno();
    return db_fail(error, "the kernel lists no RDMA devices: %s; %s", strerror(-error), remedy);
}

int db_device_list(struct db_device_entry *entries, size_t capacity, size_t *count)
{
    struct ibv_device **list;
    int found;
    int error = read_list(&list, &found);

    *count = 0;
    if (error)
        return error;
    for (int i = 0; i < found; i++) {
        struct db_path path;
        if (*count < capacity) {
            struct db_device_entry *entry = &entries[*count];
            entry->usable = db_path_examine(list[i], &any_path, &path) == 0;
            entry->software = path.software;
            memcpy(entry->name, path.name, sizeof(entry->name));
            memcpy(entry->reason, path.reason, sizeof(entry->reason));
        }
        ++*count;
    }
    ibv_free_device_list(list);
    return 0;
}

/* ---- Choosing ---- */

struct choice {
    struct ibv_device *verbs; /* NULL: none fits */
    struct db_path path;
    int usable;
    int error; /* of the last that does not fit */
    char obstacles[3 * DB_REASON_BYTES];
};

static void append(char *text, size_t bytes, const char *more)
{
    size_t used = strlen(text);

    snprintf(text + used, bytes - used, "%s%s", used ? "; " : "", more);
}

static void consider(struct choice *choice, struct ibv_device *verbs,
                     const struct db_device_options *options)
{
    struct db_path path;
    int error = db_path_examine(verbs, options, &path);

    if (error) {
        choice->error = error;
        append(choice->obstacles, sizeof(choice->obstacles), path.reason);
        return;
    }
    choice->usable++;
    if (!choice->verbs || path.rank > choice->path.rank) {
        choice->verbs = verbs;
        choice->path = path;
    }
}

/* Examines the devices that the user lets us choose from. */
static int choose(struct ibv_device **list, int count, const char *name,
                  const struct db_device_options *options, struct choice *choice)
{
    char names[256] = "";
    bool known = false;

    *choice = (struct choice){.error = -ENODEV};
    for (int i = 0; i < count; i++) {
        append(names, sizeof(names), ibv_get_device_name(list[i]));
        if (name && strcmp(name, ibv_get_device_name(list[i])) != 0)
            continue;
        known = true;
        consider(choice, list[i], options);
    }
    if (choice->verbs)
        return 0;
    if (count == 0)
        return db_fail(-ENODEV, "there is no RDMA device; %s", remedy);
    if (!known)
        return db_fail(-ENODEV, "there is no device '%s'; there are: %s", name, names);
    return db_fail(choice->error, "%s", choice->obstacles);
}

static void explain(const struct choice *choice, const char *name, struct db_device *device)
{
    char why[64];

    if (name)
        snprintf(why, sizeof(why), "asked for");
    else if (choice->usable > 1)
        snprintf(why, sizeof(why), "the best of %d devices", choice->usable);
    else
        snprintf(why, sizeof(why), "the only device that can be used");
    snprintf(device->choice, sizeof(device->choice), "%s: %s%s", choice->path.reason, why,
             choice->path.software ? ", in software" : "");
}

/* ---- Opening ---- */

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

static int open_context(struct db_device *device, struct ibv_device *verbs)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    struct ibv_device_attr description;

    device->context = mlx5dv_open_device(verbs, &attr);
    if (!device->context) {
        int error = db_errno();
        return db_fail(error,
                       "%s cannot be opened for DEVX: %s; a ConnectX-5 or newer with UCTX_EN=1 in "
                       "its firmware (mlxconfig) is needed",
                       device->path.name, strerror(-error));
    }
    if (ibv_query_device(device->context, &description) == 0)
        memcpy(device->firmware, description.fw_ver, sizeof(device->firmware));
    device->numa_node = read_numa_node(verbs);
    return 0;
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
    free(device);
}

static int open_choice(const struct choice *choice, const char *name, struct db_device **opened)
{
    struct db_device *device = calloc(1, sizeof(*device));

    if (!device)
        return db_fail(-ENOMEM, "no memory for the device %s", choice->path.name);
    device->references = 1;
    device->path = choice->path;
    explain(choice, name, device);
    int error = open_context(device, choice->verbs);
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
    struct ibv_device **list;
    struct choice choice;
    int count;

    *device = NULL;
    int error = read_list(&list, &count);
    if (error)
        return error;
    error = choose(list, count, name, options ? options : &any_path, &choice);
    if (!error)
        error = open_choice(&choice, name, device);
    ibv_free_device_list(list);
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
