/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding the CUDA driver and NVML at run time; see cuda_driver.h.
 */
#include "cuda_driver.h"

#include <dlfcn.h>
#include <doorbell/gpu.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct symbol {
    const char *name;
    size_t offset; /* of its pointer in struct cuda_driver */
    bool needed;
};

#define NEEDED_SYMBOL(field, symbol, parameters)                                                   \
    {symbol, offsetof(struct cuda_driver, field), true},
#define LATER_SYMBOL(field, symbol, parameters)                                                    \
    {symbol, offsetof(struct cuda_driver, field), false},

static const struct symbol symbols[] = {CUDA_DRIVER_CALLS(NEEDED_SYMBOL)
                                            CUDA_DRIVER_LATER_CALLS(LATER_SYMBOL)};

static struct cuda_driver loaded;
static int load_error;
static char load_text[384];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The address of a function, by way of memory: C does not convert an object pointer to it. */
static bool find(void *library, const char *name, void *pointer)
{
    void *address = dlsym(library, name);
    memcpy(pointer, &address, sizeof(address));
    return address != NULL;
}

static int find_all(void *library)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        char *field = (char *)&loaded + symbols[i].offset;
        if (!find(library, symbols[i].name, field) && symbols[i].needed)
            return db_gpu_fail(-ENOSYS,
                               "the NVIDIA driver is too old: its libcuda.so.1 has no %s; install "
                               "a current one, or " DB_GPU_USE_CPU,
                               symbols[i].name);
    }
    return 0;
}

static int start(void)
{
    int result = loaded.init(0);

    loaded.driver_version(&loaded.version);
    if (result == CUDA_OK)
        return 0;
    if (result == CUDA_NO_DEVICE)
        return db_gpu_fail(-ENODEV,
                           "the NVIDIA driver finds no GPU (%s); see `nvidia-smi` and "
                           "CUDA_VISIBLE_DEVICES, or " DB_GPU_USE_CPU,
                           cuda_result_text(&loaded, result));
    /* A stub has no words for its results. */
    if (result == CUDA_STUB_LIBRARY)
        return db_gpu_fail(
            -EIO, "the libcuda.so.1 here is the CUDA toolkit's stub (CUDA_ERROR_STUB_LIBRARY), "
                  "which is no driver; take its folder out of LD_LIBRARY_PATH, or " DB_GPU_USE_CPU);
    if (result == CUDA_DRIVER_MISMATCH)
        return db_gpu_fail(-EIO,
                           "the NVIDIA kernel module and libcuda.so.1 are of different "
                           "versions (%s); reboot, reload the module, or " DB_GPU_USE_CPU,
                           cuda_result_text(&loaded, result));
    return db_gpu_fail(-EIO,
                       "the NVIDIA driver does not start: %s; see `nvidia-smi`, or " DB_GPU_USE_CPU,
                       cuda_result_text(&loaded, result));
}

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!library)
        load_error = db_gpu_fail(
            -ENODEV, "there is no NVIDIA driver here: %s; install it, or " DB_GPU_USE_CPU,
            dlerror());
    else
        load_error = find_all(library);
    if (!load_error)
        load_error = start();
    if (load_error)
        snprintf(load_text, sizeof(load_text), "%s", db_gpu_error_text());
}

int cuda_driver_load(const struct cuda_driver **driver)
{
    pthread_once(&once, load);
    *driver = &loaded;
    return load_error ? db_gpu_fail(load_error, "%s", load_text) : 0;
}

const char *cuda_result_text(const struct cuda_driver *driver, int result)
{
    static _Thread_local char text[160];
    const char *name = NULL, *meaning = NULL;

    if (driver->error_name(result, &name) != CUDA_OK || !name)
        name = "unknown CUDA error";
    if (driver->error_string(result, &meaning) != CUDA_OK || !meaning)
        meaning = "no description";
    snprintf(text, sizeof(text), "%s %d: %s", name, result, meaning);
    return text;
}

/* ---- NVML ---- */

struct nvml_device;

#define NVML_CLOCK_SM 1

static struct {
    int (*init)(void);
    int (*by_bus_id)(const char *bus_id, struct nvml_device **device);
    int (*clock)(struct nvml_device *device, int type, unsigned *mhz);
    bool usable;
} nvml;
static pthread_once_t nvml_once = PTHREAD_ONCE_INIT;

static void load_nvml(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    nvml.usable = library && find(library, "nvmlInit_v2", &nvml.init) &&
                  find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.by_bus_id) &&
                  find(library, "nvmlDeviceGetClockInfo", &nvml.clock) && nvml.init() == 0;
}

uint32_t cuda_stated_sm_mhz(const char *bus_id)
{
    struct nvml_device *device;
    unsigned mhz;

    pthread_once(&nvml_once, load_nvml);
    if (!nvml.usable || nvml.by_bus_id(bus_id, &device) != 0 ||
        nvml.clock(device, NVML_CLOCK_SM, &mhz) != 0)
        return 0;
    return mhz;
}
