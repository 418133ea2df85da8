/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NVML beside the fake driver, which knows one of its GPUs: the one at FAKE_NVML_BUS_ID. The
 * functions are those that src/cuda_driver.c finds. Built as libnvidia-ml.so.1.
 */
#include "fake_driver.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define NOT_FOUND 6
#define CLOCK_SM  1

struct nvml_device {
    int unused;
};

static struct nvml_device known;

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device);
EXPORT int nvmlDeviceGetClockInfo(struct nvml_device *device, int type, unsigned *mhz);

EXPORT int nvmlInit_v2(void)
{
    return 0;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device)
{
    *device = &known;
    return strcmp(bus_id, FAKE_NVML_BUS_ID) == 0 ? 0 : NOT_FOUND;
}

EXPORT int nvmlDeviceGetClockInfo(struct nvml_device *device, int type, unsigned *mhz)
{
    *mhz = type == CLOCK_SM ? FAKE_NVML_SM_MHZ : 1;
    return device == &known ? 0 : NOT_FOUND;
}
