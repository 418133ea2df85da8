/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `doorbell info` for people.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_info.h"

static void print_port(const struct db_port *port)
{
    char address[INET6_ADDRSTRLEN];

    printf("  port %u: %s, %s, MTU %u\n", port->number, port->state, db_link_name(port->link),
           port->mtu_bytes);
    for (size_t i = 0; i < port->n_gids; i++)
        printf("    GID %-3u %-8s %s\n", port->gids[i].index, db_gid_type_name(port->gids[i].type),
               db_gid_address(&port->gids[i], address));
}

static void print_device(const struct db_device *device)
{
    printf("%s: %s, driver %s, ", device->name, device->software ? "software device" : "hardware",
           device->driver);
    if (device->open_error) {
        printf("cannot be opened: %s\n", strerror(-device->open_error));
        return;
    }
    printf("firmware %s, ", device->firmware);
    if (device->numa_node < 0)
        printf("no NUMA node\n");
    else
        printf("NUMA node %d\n", device->numa_node);
    for (size_t i = 0; i < device->n_ports; i++)
        print_port(&device->ports[i]);
}

static void print_choice(const struct db_choice *choice)
{
    char address[INET6_ADDRSTRLEN];

    if (!choice->device) {
        printf("would use: nothing\n  why: %s\n", choice->reason);
        return;
    }
    printf("would use: %s, port %u", choice->device->name, choice->port->number);
    if (choice->gid)
        printf(", GID %u (%s)", choice->gid->index, db_gid_address(choice->gid, address));
    printf("\n  why: %s\n", choice->reason);
}

static void print_environment(void)
{
    const char *title = "environment:\n";

    for (const struct info_variable *variable = info_variables; variable->name; variable++) {
        const char *value = getenv(variable->name);

        if (!value)
            continue;
        printf("%s  %s=%s (read by %s)\n", title, variable->name, value, variable->reader);
        title = "";
    }
}

int info_print_text(const struct info *info)
{
    for (size_t i = 0; i < info->list.n_devices; i++)
        print_device(&info->list.devices[i]);
    if (info->list.n_devices == 0)
        printf("no RDMA device\n");
    print_choice(&info->choice);
    print_environment();
    return fflush(stdout) ? -errno : 0;
}
