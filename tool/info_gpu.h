/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPUs of this machine as `doorbell info` shows them. Included by cmd_info.h.
 */
#ifndef TOOL_INFO_GPU_H
#define TOOL_INFO_GPU_H

#include <doorbell/gpu.h>

struct info_gpu {
    char error[512]; /* why it cannot be used; empty: it can, and the rest counts */
    struct db_gpu_properties properties;
    uint32_t stated_mhz; /* SM clock, 0: not told */
    char kernels[512];   /* whether this program's run on it, or why not */
    char mapping[512];   /* how pages of this process come into it, or why they do not */
};

struct info_gpus {
    char why_none[512];
    struct info_gpu *gpu;
    uint32_t count;
};

/* Opens each GPU for a moment. What cannot be found out is said in the struct; without memory there
 * is no GPU. */
void info_gpus_read(struct info_gpus *gpus);
void info_gpus_free(struct info_gpus *gpus);

/* How a NIC would reach this GPU's memory, and why so. `software` is the NIC that would be used,
 * when it is the software device, else NULL. */
const char *info_gpu_memory(const struct info_gpu *gpu, const char *software, const char **why);

#endif
