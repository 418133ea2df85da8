/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `doorbell info --json`: one document with the devices, the choice and the environment.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_info.h"

/* jansson's constructors take what they are given and pass NULL on, so that one check at the end
 * sees every failed allocation. */

static json_t *gid_json(const struct db_gid *gid)
{
    char address[INET6_ADDRSTRLEN];

    return json_pack("{s:i, s:s, s:s}", "index", (int)gid->index, "type",
                     db_gid_type_name(gid->type), "address", db_gid_address(gid, address));
}

static json_t *port_json(const struct db_port *port)
{
    json_t *gids = json_array();

    for (size_t i = 0; i < port->n_gids; i++)
        json_array_append_new(gids, gid_json(&port->gids[i]));
    return json_pack("{s:i, s:b, s:s, s:s, s:i, s:o}", "port", (int)port->number, "active",
                     port->active, "state", port->state, "link_layer", db_link_name(port->link),
                     "mtu_bytes", (int)port->mtu_bytes, "gids", gids);
}

static json_t *device_json(const struct db_device *device)
{
    json_t *ports = json_array();

    for (size_t i = 0; i < device->n_ports; i++)
        json_array_append_new(ports, port_json(&device->ports[i]));
    return json_pack("{s:s, s:b, s:s, s:s, s:o, s:s*, s:o}", "name", device->name, "software",
                     device->software, "driver", device->driver, "firmware", device->firmware,
                     "numa_node",
                     device->numa_node < 0 ? json_null() : json_integer(device->numa_node), "error",
                     device->open_error ? strerror(-device->open_error) : NULL, "ports", ports);
}

static json_t *choice_json(const struct db_choice *choice)
{
    if (!choice->device)
        return json_pack("{s:n, s:s}", "device", "reason", choice->reason);
    return json_pack("{s:s, s:i, s:o, s:b, s:s}", "device", choice->device->name, "port",
                     (int)choice->port->number, "gid_index",
                     choice->gid ? json_integer((json_int_t)choice->gid->index) : json_null(),
                     "degraded", choice->degraded, "reason", choice->reason);
}

static json_t *environment_json(void)
{
    json_t *environment = json_object();

    for (const struct info_variable *variable = info_variables; variable->name; variable++) {
        const char *value = getenv(variable->name);

        if (value)
            json_object_set_new(environment, variable->name, json_string(value));
    }
    return environment;
}

int info_print_json(const struct info *info)
{
    json_t *devices = json_array();

    for (size_t i = 0; i < info->list.n_devices; i++)
        json_array_append_new(devices, device_json(&info->list.devices[i]));

    json_t *document = json_pack("{s:s, s:s, s:o, s:o, s:o}", "doorbell", DOORBELL_VERSION,
                                 "command", "info", "devices", devices, "choice",
                                 choice_json(&info->choice), "environment", environment_json());
    if (!document)
        return -ENOMEM;

    int rc = json_dumpf(document, stdout, JSON_INDENT(2));
    json_decref(document);
    if (rc == 0 && (putchar('\n') == EOF || fflush(stdout)))
        rc = -1;
    return rc ? -EIO : 0;
}
