/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `doorbell info --json`: one document with the devices, the choice and the environment.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_info.h"

/* jansson's constructors take what they are given and pass NULL on, so that one check at the end
 * sees every failed allocation. */

static json_t *gid_json(const struct db_nic_gid *gid)
{
    char address[DB_GID_TEXT_BYTES];

    return json_pack("{s:i, s:s, s:s}", "index", (int)gid->index, "type",
                     db_gid_type_name(gid->type), "address", db_gid_text(gid->address, address));
}

static json_t *port_json(const struct db_nic_port *port)
{
    json_t *gids = json_array();

    for (size_t i = 0; i < port->n_gids; i++)
        json_array_append_new(gids, gid_json(&port->gids[i]));
    return json_pack("{s:i, s:b, s:s, s:s, s:i, s:o}", "port", (int)port->number, "active",
                     port->active, "state", port->state, "link_layer", db_link_name(port->link),
                     "mtu_bytes", (int)port->mtu_bytes, "gids", gids);
}

static json_t *nic_json(const struct db_nic *nic)
{
    json_t *ports = json_array();

    for (size_t i = 0; i < nic->n_ports; i++)
        json_array_append_new(ports, port_json(&nic->ports[i]));
    return json_pack("{s:s, s:b, s:s, s:s, s:o, s:s*, s:o}", "name", nic->name, "software",
                     nic->software, "driver", nic->driver, "firmware", nic->firmware, "numa_node",
                     nic->numa_node < 0 ? json_null() : json_integer(nic->numa_node), "error",
                     nic->open_error ? strerror(-nic->open_error) : NULL, "ports", ports);
}

static json_t *queues_json(const struct info *info)
{
    const struct db_device_info *offers = &info->offers;

    if (info->refusal[0])
        return json_pack("{s:s}", "error", info->refusal);
    return json_pack("{s:i, s:i, s:i, s:i, s:b}", "max_depth", (int)offers->max_depth,
                     "max_collapsed", (int)offers->max_collapsed, "max_cq_depth",
                     (int)offers->max_cq_depth, "max_recv_depth", (int)offers->max_recv_depth,
                     "without_record", offers->without_record);
}

static json_t *choice_json(const struct info *info)
{
    const struct db_choice *choice = &info->choice;

    if (!choice->nic)
        return json_pack("{s:n, s:s}", "device", "reason", choice->reason);
    return json_pack("{s:s, s:i, s:o, s:b, s:s, s:o}", "device", choice->nic->name, "port",
                     (int)choice->port->number, "gid_index",
                     choice->gid ? json_integer((json_int_t)choice->gid->index) : json_null(),
                     "degraded", choice->degraded, "reason", choice->reason, "queues",
                     queues_json(info));
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

static json_t *gpu_json(const struct info_gpu *gpu, const char *software)
{
    const struct db_gpu_properties *p = &gpu->properties;
    const char *why, *way = info_gpu_memory(gpu, software, &why);

    if (gpu->error[0])
        return json_pack("{s:s}", "error", gpu->error);
    return json_pack("{s:s, s:s, s:i, s:i, s:I, s:i, s:i, s:I, s:s, s:s, s:b, s:s, s:s}", "name",
                     p->name, "bus_id", p->bus_id, "capability", (int)p->capability,
                     "multiprocessors", (int)p->multiprocessors, "memory_bytes",
                     (json_int_t)p->memory_bytes, "driver_version", (int)p->driver_version,
                     "sm_mhz", (int)gpu->stated_mhz, "max_clock_hz", (json_int_t)p->max_clock_hz,
                     "kernels", gpu->kernels, "maps_host_memory", gpu->mapping, "host_atomics",
                     p->host_atomics, "memory_registered_by", way, "why", why);
}

static json_t *gpus_json(const struct info *info)
{
    const struct db_nic *nic = info->choice.nic;
    json_t *gpus = json_array();

    for (uint32_t i = 0; i < info->gpus.count; i++)
        json_array_append_new(
            gpus, gpu_json(&info->gpus.gpu[i], nic && nic->software ? nic->name : NULL));
    return gpus;
}

int info_print_json(const struct info *info)
{
    json_t *devices = json_array();

    for (size_t i = 0; i < info->inventory.n_nics; i++)
        json_array_append_new(devices, nic_json(&info->inventory.nics[i]));

    json_t *document = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:s*, s:o}", "doorbell", DOORBELL_VERSION, "command", "info",
        "devices", devices, "choice", choice_json(info), "gpus", gpus_json(info), "gpus_missing",
        info->gpus.count ? NULL : info->gpus.why_none, "environment", environment_json());
    if (!document)
        return -ENOMEM;

    int rc = json_dumpf(document, stdout, JSON_INDENT(2));
    json_decref(document);
    if (rc == 0 && (putchar('\n') == EOF || fflush(stdout)))
        rc = -1;
    return rc ? -EIO : 0;
}
