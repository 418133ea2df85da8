/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `doorbell info`: the RDMA devices of this machine, and which device, port and GID would be used
 * and why.
 */
#include "cmd_info.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "options.h"

const struct info_variable info_variables[] = {
    {"SOFTNIC", "the software device"},
    {"NCCL_IB_HCA", "NCCL"},
    {"NCCL_IB_GID_INDEX", "NCCL"},
    {"NCCL_IB_TC", "NCCL"},
    {"NCCL_GIN_TYPE", "NCCL"},
    {"NVSHMEM_IB_GID_INDEX", "NVSHMEM"},
    {"NVSHMEM_HCA_LIST", "NVSHMEM"},
    {"NVSHMEM_HCA_PE_MAPPING", "NVSHMEM"},
    {"NVSHMEM_IB_ENABLE_IBGDA", "NVSHMEM"},
    {"NVSHMEM_IBGDA_NIC_HANDLER", "NVSHMEM"},
    {"NVSHMEM_IB_TRAFFIC_CLASS", "NVSHMEM"},
    {NULL, NULL},
};

struct info_options {
    const char *device;
    struct db_device_options path;
    int json;
};

enum {
    OPTION_JSON = 0x100,
    OPTION_SOFTNIC,
};

static const struct argp_option option_table[] = {
    {"ib-dev", 'd', "NAME", 0, "use this device", 0},
    {"ib-port", 'i', "N", 0, "use this port", 0},
    {"gid-index", 'x', "N", 0, "use this entry of the port's GID table", 0},
    {"json", OPTION_JSON, NULL, 0, "print one JSON document", 0},
    {"softnic", OPTION_SOFTNIC, "MODE", 0,
     "the software device: auto (when there is no real one), on (hiding real ones), off", 0},
    {0},
};

static const char *const softnic_modes[] = {"auto", "on", "off", NULL};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct info_options *options = state->input;

    switch (key) {
    case 'd':
        options->device = text;
        return 0;
    case 'i':
        options->path.port = (uint32_t)options_number(state, "--ib-port", text, 1, 255);
        return 0;
    case 'x':
        options->path.gid_index = (int32_t)options_number(state, "--gid-index", text, 0, INT_MAX);
        return 0;
    case OPTION_JSON:
        options->json = 1;
        return 0;
    case OPTION_SOFTNIC:
        options_one_of(state, "--softnic", text, softnic_modes);
        return setenv("SOFTNIC", text, 1) ? errno : 0;
    case ARGP_KEY_ARG:
        argp_error(state, "no argument is expected, but there is '%s'", text);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = option_table,
    .parser = parse_option,
    .doc = "Lists the RDMA devices as libibverbs does, the device, port and GID that would be "
           "used, and why, and the GPUs.\vStatus 0: something can be used; 1: nothing; 3: only "
           "something that other hosts may not reach.",
};

/* Opens the choice as a program would, and asks what queues it offers. */
static void try_choice(const struct info_options *options, struct info *info)
{
    struct db_device *device;

    if (db_device_open(options->device, &options->path, &device)) {
        snprintf(info->refusal, sizeof(info->refusal), "%s", db_error_text());
        return;
    }
    db_device_describe(device, &info->offers);
    db_device_close(device);
}

int cmd_info(int argc, char **argv)
{
    struct info_options options = {.path = DB_DEVICE_OPTIONS};
    struct info info = {0};

    options_parse(&argp, argc, argv, 0, &options);

    int rc = db_inventory_read(&info.inventory);
    if (rc && rc != -ENOSYS) {
        fprintf(stderr, "doorbell info: %s\n", db_error_text());
        return STATUS_FAIL;
    }
    rc = db_inventory_choose(&info.inventory, options.device, &options.path, &info.choice);
    if (!rc)
        try_choice(&options, &info);
    int status = rc || info.refusal[0]  ? STATUS_FAIL
                 : info.choice.degraded ? STATUS_DEGRADED
                                        : STATUS_PASS;

    info_gpus_read(&info.gpus);
    rc = options.json ? info_print_json(&info) : info_print_text(&info);
    if (rc) {
        fprintf(stderr, "doorbell info: cannot write to standard output: %s\n", strerror(-rc));
        status = STATUS_FAIL;
    }
    info_gpus_free(&info.gpus);
    db_inventory_free(&info.inventory);
    return status;
}
