/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `doorbell info` for people.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_info.h"

static void print_port(const struct db_nic_port *port)
{
    char address[DB_GID_TEXT_BYTES];

    printf("  port %u: %s, %s, MTU %u\n", port->number, port->state, db_link_name(port->link),
           port->mtu_bytes);
    for (size_t i = 0; i < port->n_gids; i++)
        printf("    GID %-3u %-8s %s\n", port->gids[i].index, db_gid_type_name(port->gids[i].type),
               db_gid_text(port->gids[i].address, address));
}

static void print_nic(const struct db_nic *nic)
{
    printf("%s: %s, driver %s, ", nic->name, nic->software ? "software device" : "hardware",
           nic->driver);
    if (nic->open_error) {
        printf("cannot be opened: %s\n", strerror(-nic->open_error));
        return;
    }
    printf("firmware %s, ", nic->firmware);
    if (nic->numa_node < 0)
        printf("no NUMA node\n");
    else
        printf("NUMA node %d\n", nic->numa_node);
    for (size_t i = 0; i < nic->n_ports; i++)
        print_port(&nic->ports[i]);
}

static void print_queues(const struct info *info)
{
    const struct db_device_info *offers = &info->offers;

    if (info->refusal[0])
        printf("  queues: none, because %s\n", info->refusal);
    else
        printf("  queues: send rings of up to %u blocks, collapsed of up to %u; %s a doorbell "
               "record\n",
               offers->max_depth, offers->max_collapsed,
               offers->without_record ? "with or without" : "always with");
}

static void print_choice(const struct info *info)
{
    const struct db_choice *choice = &info->choice;
    char address[DB_GID_TEXT_BYTES];

    if (!choice->nic) {
        printf("would use: nothing\n  why: %s\n", choice->reason);
        return;
    }
    printf("would use: %s, port %u", choice->nic->name, choice->port->number);
    if (choice->gid)
        printf(", GID %u (%s)", choice->gid->index, db_gid_text(choice->gid->address, address));
    printf("\n  why: %s\n", choice->reason);
    print_queues(info);
}

static void print_gpu(uint32_t index, const struct info_gpu *gpu, const char *software)
{
    const struct db_gpu_properties *p = &gpu->properties;
    const char *why;

    printf("GPU %u: ", index);
    if (gpu->error[0]) {
        printf("cannot be used: %s\n", gpu->error);
        return;
    }
    printf("%s, sm_%u, %u SMs, %.0f GiB, %s, driver for CUDA %u.%u, SM clock ", p->name,
           p->capability, p->multiprocessors, (double)p->memory_bytes / (1u << 30), p->bus_id,
           p->driver_version / 1000, p->driver_version % 1000 / 10);
    if (gpu->stated_mhz)
        printf("%u of ", gpu->stated_mhz);
    printf("at most %.0f MHz\n", (double)p->max_clock_hz / 1e6);
    printf("  kernels: %s\n", gpu->kernels);
    printf("  kernels reach host memory: %s\n", gpu->mapping);
    printf("  their atomics on it: atomic %s\n",
           p->host_atomics ? "for the CPU too" : "among kernels of this GPU alone");
    const char *way = info_gpu_memory(gpu, software, &why);
    printf("  GPU memory would be registered by: %s\n    why: %s\n", way, why);
}

static void print_gpus(const struct info *info)
{
    const struct db_nic *nic = info->choice.nic;
    const char *software = nic && nic->software ? nic->name : NULL;

    if (info->gpus.count == 0)
        printf("no GPU: %s\n", info->gpus.why_none);
    for (uint32_t i = 0; i < info->gpus.count; i++)
        print_gpu(i, &info->gpus.gpu[i], software);
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
    for (size_t i = 0; i < info->inventory.n_nics; i++)
        print_nic(&info->inventory.nics[i]);
    if (info->inventory.n_nics == 0)
        printf("no RDMA device\n");
    print_choice(info);
    print_gpus(info);
    print_environment();
    return fflush(stdout) ? -errno : 0;
}
