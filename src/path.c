/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Examines a device's ports and GIDs and ranks them; see path.h.
 */
#include "path.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

/* The software ConnectX lists itself under this name and a number. */
#define SOFTWARE_NAME "mlx5_soft"

/* What the packets of a GID reach; a later one is preferred. */
enum reach {
    REACH_LINK, /* link-local: no router forwards it */
    REACH_HOST, /* loopback */
    REACH_IPV6,
    REACH_IPV4,
    REACH_COUNT,
};

#define RANK_ROCE_V2    REACH_COUNT
#define RANK_INFINIBAND (2 * REACH_COUNT)
#define RANK_HARDWARE   (2 * REACH_COUNT + 1)

static enum reach reach_of(const uint8_t *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t loopback[16] = {[15] = 1};

    if (memcmp(gid, mapped, sizeof(mapped)) == 0) {
        if (gid[12] == 127)
            return REACH_HOST;
        return gid[12] == 169 && gid[13] == 254 ? REACH_LINK : REACH_IPV4;
    }
    if (memcmp(gid, loopback, sizeof(loopback)) == 0)
        return REACH_HOST;
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80 ? REACH_LINK : REACH_IPV6;
}

__attribute__((format(printf, 3, 4))) static int unfit(struct db_path *path, int error,
                                                       const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(path->reason, sizeof(path->reason), format, arguments);
    va_end(arguments);
    return error;
}

/* Takes the entry when it is better than what `path` has. */
static void offer_gid(struct db_path *path, const struct ibv_gid_entry *entry, bool infiniband)
{
    bool v2 = entry->gid_type == IBV_GID_TYPE_ROCE_V2;
    int rank =
        infiniband ? RANK_INFINIBAND : (int)reach_of(entry->gid.raw) + (v2 ? RANK_ROCE_V2 : 0);
    char address[INET6_ADDRSTRLEN];

    if (rank + (path->software ? 0 : RANK_HARDWARE) <= path->rank)
        return;
    path->rank = rank + (path->software ? 0 : RANK_HARDWARE);
    path->gid_index = entry->gid_index;
    memcpy(path->gid, entry->gid.raw, sizeof(path->gid));
    inet_ntop(AF_INET6, path->gid, address, sizeof(address));
    snprintf(path->reason, sizeof(path->reason), "%s, port %u, GID %u (%s, %s)", path->name,
             entry->port_num, entry->gid_index, address,
             infiniband ? "InfiniBand"
             : v2       ? "RoCE v2"
                        : "RoCE v1, which no router forwards");
}

static int examine_port(struct ibv_context *context, uint32_t number,
                        const struct db_device_options *options, struct db_path *path)
{
    struct ibv_port_attr port;
    int before = path->rank;

    if (ibv_query_port(context, (uint8_t)number, &port))
        return unfit(path, -ENODEV, "port %u of %s cannot be queried", number, path->name);
    if (port.state != IBV_PORT_ACTIVE)
        return unfit(path, -ENODEV, "port %u of %s is %s; see its cable and its network device",
                     number, path->name, ibv_port_state_str(port.state));

    bool infiniband = port.link_layer == IBV_LINK_LAYER_INFINIBAND;
    for (int32_t index = 0; index < port.gid_tbl_len; index++) {
        struct ibv_gid_entry entry;
        bool wanted = options->gid_index == DB_ANY_GID || options->gid_index == index;
        if (wanted && ibv_query_gid_ex(context, number, (uint32_t)index, &entry, 0) == 0)
            offer_gid(path, &entry, infiniband);
    }
    if (path->rank == before)
        return before >= 0 ? 0
               : options->gid_index == DB_ANY_GID
                   ? unfit(path, -ENODEV,
                           "port %u of %s has no GID; give its network device an address", number,
                           path->name)
                   : unfit(path, -ENODEV,
                           "port %u of %s has no GID at index %d; `doorbell info` lists them",
                           number, path->name, options->gid_index);
    path->port = number;
    path->infiniband = infiniband;
    path->lid = infiniband ? port.lid : 0;
    path->mtu_bytes = 128u << port.active_mtu;
    return 0;
}

static int examine_ports(struct ibv_context *context, const struct db_device_options *options,
                         struct db_path *path)
{
    struct ibv_device_attr device;
    int error = ibv_query_device(context, &device);

    if (error)
        return unfit(path, -error, "%s cannot be queried: %s", path->name, strerror(error));
    if (options->port > device.phys_port_cnt)
        return unfit(path, -ENODEV, "%s has no port %u; it has %u", path->name, options->port,
                     device.phys_port_cnt);
    error = -ENODEV;
    for (uint32_t number = 1; number <= device.phys_port_cnt; number++)
        if ((!options->port || options->port == number) &&
            examine_port(context, number, options, path) == 0)
            error = 0;
    return error;
}

int db_path_examine(struct ibv_device *verbs, const struct db_device_options *options,
                    struct db_path *path)
{
    *path = (struct db_path){.rank = -1};
    snprintf(path->name, sizeof(path->name), "%s", ibv_get_device_name(verbs));
    path->software = strncmp(path->name, SOFTWARE_NAME, strlen(SOFTWARE_NAME)) == 0;
    if (!mlx5dv_is_supported(verbs))
        return unfit(path, -ENODEV, "%s is not served by libmlx5; a ConnectX is needed",
                     path->name);

    struct ibv_context *context = ibv_open_device(verbs);
    if (!context) {
        int error = db_errno();
        return unfit(path, error, "%s cannot be opened: %s; see the permissions of /dev/infiniband",
                     path->name, strerror(-error));
    }
    int error = examine_ports(context, options, path);
    ibv_close_device(context);
    return error;
}
