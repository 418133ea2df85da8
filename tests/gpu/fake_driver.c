/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CUDA driver that a test controls; see fake_driver.h. The functions are those of
 * src/cuda_driver.h, with the parameters that the driver's ABI gives them. FAKE_DRIVER_OLD leaves
 * one out, as an old driver would.
 */
#include "fake_driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/cuda_driver.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT struct fake_driver fake_driver = {.blocks_per_sm = 2, .device_count = 2, .page_bytes = 4096};

#define MULTIPROCESSORS 4

/* The objects of the driver, of which only the addresses matter. */
struct CUctx_st {
    int device;
};
struct CUfunc_st {
    char name[64];
    bool loaded;
};
struct CUmod_st {
    const void *image;
    struct CUfunc_st functions[FAKE_MODULE_FUNCTIONS];
};
struct CUstream_st {
    int unused;
};
struct CUevent_st {
    unsigned polls;
};

/* GPU memory, behind which comes what was asked for. */
struct allocation {
    struct allocation *next;
    size_t bytes;
    uint8_t memory[];
};

static struct allocation *allocations;

static struct CUctx_st contexts[8];
static struct CUfunc_st functions[32];
static unsigned function_count;

static int result_of(const char *call)
{
    if (!fake_driver.fail_call || strcmp(call, fake_driver.fail_call) != 0)
        return CUDA_OK;
    int result = fake_driver.fail_result;
    if (!fake_driver.fail_always)
        fake_driver.fail_call = NULL;
    return result;
}

#define MAY_FAIL(call)                                                                             \
    do {                                                                                           \
        int fails = result_of(call);                                                               \
        if (fails)                                                                                 \
            return fails;                                                                          \
    } while (0)

/* CUDA_ERROR_INVALID_CONTEXT: every call below needs a current one. */
#define NEEDS_CONTEXT(call)                                                                        \
    do {                                                                                           \
        MAY_FAIL(call);                                                                            \
        if (fake_driver.pushed == 0)                                                               \
            return 201;                                                                            \
    } while (0)

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    return number("FAKE_DRIVER_INIT", CUDA_OK);
}

EXPORT int cuDriverGetVersion(int *version)
{
    *version = number("FAKE_DRIVER_VERSION", 13000);
    return CUDA_OK;
}

EXPORT int cuGetErrorName(int result, const char **text)
{
    static char name[32];
    snprintf(name, sizeof(name), "CUDA_ERROR_FAKE_%d", result);
    *text = name;
    return CUDA_OK;
}

EXPORT int cuGetErrorString(int result, const char **text)
{
    (void)result;
    *text = "as the test wanted";
    return CUDA_OK;
}

/* ---- Devices and contexts ---- */

EXPORT int cuDeviceGetCount(int *count)
{
    MAY_FAIL("cuDeviceGetCount");
    *count = number("FAKE_DRIVER_COUNT", fake_driver.device_count);
    return CUDA_OK;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    MAY_FAIL("cuDeviceGet");
    *device = 100 + ordinal; /* a handle is not an ordinal */
    return CUDA_OK;
}

EXPORT int cuDeviceGetName(char *name, int bytes, int device)
{
    snprintf(name, (size_t)bytes, "Fake GPU %d", device - 100);
    return CUDA_OK;
}

EXPORT int cuDeviceGetPCIBusId(char *id, int bytes, int device)
{
    snprintf(id, (size_t)bytes, "0000:%02x:00.0", device - 100);
    return CUDA_OK;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)1 << 36;
    return CUDA_OK;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    switch (attribute) {
    case CUDA_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
    case CUDA_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = 2048;
        break;
    case CUDA_MULTIPROCESSORS:
        *value = MULTIPROCESSORS;
        break;
    case CUDA_CLOCK_KHZ:
        *value = 1980000;
        break;
    case CUDA_CAPABILITY_MAJOR:
        *value = 9;
        break;
    case CUDA_CAPABILITY_MINOR:
        *value = 0;
        break;
    case CUDA_DMA_BUF:
        *value = number("FAKE_DRIVER_DMA_BUF", 1);
        break;
    default:
        *value = 1;
    }
    return CUDA_OK;
}

EXPORT int cuDevicePrimaryCtxRetain(struct CUctx_st **context, int device)
{
    MAY_FAIL("cuDevicePrimaryCtxRetain");
    *context = &contexts[device - 100];
    fake_driver.contexts++;
    return CUDA_OK;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    fake_driver.contexts--;
    return CUDA_OK;
}

EXPORT int cuCtxPushCurrent_v2(struct CUctx_st *context)
{
    (void)context;
    MAY_FAIL("cuCtxPushCurrent_v2");
    fake_driver.pushed++;
    return CUDA_OK;
}

EXPORT int cuCtxPopCurrent_v2(struct CUctx_st **context)
{
    *context = NULL;
    fake_driver.pushed--;
    return CUDA_OK;
}

/* ---- Modules and functions ---- */

EXPORT int cuModuleLoadData(struct CUmod_st **module, const void *image)
{
    NEEDS_CONTEXT("cuModuleLoadData");
    int fails = number("FAKE_DRIVER_LOAD", CUDA_OK);
    if (fails)
        return fails;
    *module = calloc(1, sizeof(**module));
    (*module)->image = image;
    fake_driver.modules++;
    return CUDA_OK;
}

EXPORT int cuModuleUnload(struct CUmod_st *module)
{
    free(module);
    fake_driver.modules--;
    return CUDA_OK;
}

/* Every module has every kernel but those whose names begin with "no_". */
EXPORT int cuModuleGetFunction(struct CUfunc_st **function, struct CUmod_st *module,
                               const char *name)
{
    (void)module;
    NEEDS_CONTEXT("cuModuleGetFunction");
    if (strncmp(name, "no_", 3) == 0)
        return CUDA_NOT_FOUND;
    for (unsigned i = 0; i < function_count; i++) {
        if (strcmp(functions[i].name, name) == 0) {
            *function = &functions[i];
            return CUDA_OK;
        }
    }
    *function = &functions[function_count++];
    snprintf((*function)->name, sizeof((*function)->name), "%s", name);
    return CUDA_OK;
}

EXPORT int cuModuleGetFunctionCount(unsigned *count, struct CUmod_st *module)
{
    (void)module;
    NEEDS_CONTEXT("cuModuleGetFunctionCount");
    *count = FAKE_MODULE_FUNCTIONS;
    return CUDA_OK;
}

EXPORT int cuModuleEnumerateFunctions(struct CUfunc_st **listed, unsigned count,
                                      struct CUmod_st *module)
{
    NEEDS_CONTEXT("cuModuleEnumerateFunctions");
    if (count > FAKE_MODULE_FUNCTIONS)
        return 1;
    for (unsigned i = 0; i < count; i++)
        listed[i] = &module->functions[i];
    return CUDA_OK;
}

EXPORT int cuFuncLoad(struct CUfunc_st *function)
{
    NEEDS_CONTEXT("cuFuncLoad");
    fake_driver.functions_loaded += !function->loaded;
    function->loaded = true;
    return CUDA_OK;
}

EXPORT int cuFuncSetAttribute(struct CUfunc_st *function, int attribute, int value)
{
    (void)function;
    (void)value;
    NEEDS_CONTEXT("cuFuncSetAttribute");
    return attribute == CUDA_FUNCTION_SHARED ? CUDA_OK : 1;
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct CUfunc_st *function,
                                                       int threads, size_t shared_bytes)
{
    (void)function;
    (void)threads;
    (void)shared_bytes;
    NEEDS_CONTEXT("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    *blocks = fake_driver.blocks_per_sm;
    return CUDA_OK;
}

EXPORT int cuLaunchKernel(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y,
                          unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, struct CUstream_st *stream, void **parameters,
                          void **extra)
{
    NEEDS_CONTEXT("cuLaunchKernel");
    if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || !stream || extra)
        return 1;
    struct fake_launch *last = &fake_driver.last;
    snprintf(last->name, sizeof(last->name), "%s", function->name);
    last->ctas = grid_x;
    last->threads = block_x;
    last->shared_bytes = shared_bytes;
    last->args = parameters[0];
    if (fake_driver.run)
        fake_driver.run(last);
    last->args = NULL; /* the caller's copy is gone */
    return CUDA_OK;
}

/* ---- Streams and events ---- */

EXPORT int cuStreamCreate(struct CUstream_st **stream, unsigned flags)
{
    NEEDS_CONTEXT("cuStreamCreate");
    if (flags != CUDA_STREAM_ALONE)
        return 1;
    *stream = malloc(sizeof(**stream));
    fake_driver.streams++;
    return CUDA_OK;
}

EXPORT int cuStreamDestroy_v2(struct CUstream_st *stream)
{
    free(stream);
    fake_driver.streams--;
    return CUDA_OK;
}

EXPORT int cuStreamSynchronize(struct CUstream_st *stream)
{
    (void)stream;
    NEEDS_CONTEXT("cuStreamSynchronize");
    return CUDA_OK;
}

EXPORT int cuEventCreate(struct CUevent_st **event, unsigned flags)
{
    NEEDS_CONTEXT("cuEventCreate");
    if (flags != CUDA_EVENT_NO_TIMING)
        return 1;
    *event = calloc(1, sizeof(**event));
    fake_driver.events++;
    return CUDA_OK;
}

EXPORT int cuEventDestroy_v2(struct CUevent_st *event)
{
    free(event);
    fake_driver.events--;
    return CUDA_OK;
}

EXPORT int cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
    (void)event;
    (void)stream;
    NEEDS_CONTEXT("cuEventRecord");
    return CUDA_OK;
}

EXPORT int cuEventQuery(struct CUevent_st *event)
{
    NEEDS_CONTEXT("cuEventQuery");
    if (fake_driver.polls_running == UINT32_MAX || event->polls < fake_driver.polls_running) {
        event->polls++;
        return CUDA_NOT_READY;
    }
    return fake_driver.fault;
}

/* ---- Memory ---- */

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    NEEDS_CONTEXT("cuMemAlloc_v2");
    struct allocation *made = malloc(sizeof(*made) + bytes);
    if (!made)
        return CUDA_OUT_OF_MEMORY;
    memset(made->memory, 0xa5, bytes);
    made->bytes = bytes;
    made->next = allocations;
    allocations = made;
    *address = (uintptr_t)made->memory;
    fake_driver.gpu_memory++;
    return CUDA_OK;
}

EXPORT int cuMemFree_v2(uint64_t address)
{
    for (struct allocation **link = &allocations; *link; link = &(*link)->next) {
        struct allocation *made = *link;
        if ((uintptr_t)made->memory == address) {
            *link = made->next;
            free(made);
            fake_driver.gpu_memory--;
            return CUDA_OK;
        }
    }
    return 1;
}

/* Whole pages of the host, within one allocation. */
EXPORT int cuMemGetHandleForAddressRange(void *handle, uint64_t address, size_t bytes, int type,
                                         unsigned long long flags)
{
    const struct fake_dma_buf range = {address, bytes};
    const struct allocation *made = allocations;

    NEEDS_CONTEXT("cuMemGetHandleForAddressRange");
    if (!number("FAKE_DRIVER_DMA_BUF", 1))
        return 801;
    while (made && !((uintptr_t)made->memory <= address &&
                     address + bytes <= (uintptr_t)made->memory + made->bytes))
        made = made->next;
    if (!made || bytes == 0 || (address | bytes) % fake_driver.page_bytes != 0 ||
        type != CUDA_RANGE_DMA_BUF || flags != 0)
        return 1;
    int fd = memfd_create("fake dma-buf", MFD_CLOEXEC);
    if (fd < 0 || write(fd, &range, sizeof(range)) != (ssize_t)sizeof(range))
        return CUDA_OUT_OF_MEMORY;
    *(int *)handle = fd;
    return CUDA_OK;
}

EXPORT int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes,
                           struct CUstream_st *stream)
{
    (void)stream;
    NEEDS_CONTEXT("cuMemsetD8Async");
    memset((void *)(uintptr_t)address, value, bytes);
    return CUDA_OK;
}

EXPORT int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, struct CUstream_st *stream)
{
    (void)stream;
    NEEDS_CONTEXT("cuMemcpyAsync");
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return CUDA_OK;
}

EXPORT int cuMemHostAlloc(void **host, size_t bytes, unsigned flags)
{
    NEEDS_CONTEXT("cuMemHostAlloc");
    if (flags != (CUDA_HOST_PORTABLE | CUDA_HOST_DEVICEMAP))
        return 1;
    *host = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!*host)
        return CUDA_OUT_OF_MEMORY;
    fake_driver.host_memory++;
    return CUDA_OK;
}

EXPORT int cuMemFreeHost(void *host)
{
    free(host);
    fake_driver.host_memory--;
    return CUDA_OK;
}

#ifndef FAKE_DRIVER_OLD
EXPORT int cuMemHostRegister_v2(void *host, size_t bytes, unsigned flags)
{
    static void *refused; /* as I/O memory, by the call before this: a doorbell's page */
    bool is_doorbell = host == refused;

    NEEDS_CONTEXT("cuMemHostRegister_v2");
    refused = flags & CUDA_HOST_IOMEMORY && fake_driver.refuse_io ? host : NULL;
    if (((uintptr_t)host | bytes) % 4096 != 0 || !(flags & CUDA_HOST_DEVICEMAP))
        return 1;
    if (fake_driver.refuse_pages)
        return 800;
    if (refused || (fake_driver.refuse_doorbells && is_doorbell))
        return 1;
    fake_driver.io_registrations += (flags & CUDA_HOST_IOMEMORY) != 0;
    fake_driver.registrations++;
    return CUDA_OK;
}
#endif

EXPORT int cuMemHostUnregister(void *host)
{
    (void)host;
    fake_driver.registrations--;
    return CUDA_OK;
}

EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *address, void *host, unsigned flags)
{
    (void)flags;
    NEEDS_CONTEXT("cuMemHostGetDevicePointer_v2");
    *address = (uintptr_t)host + fake_driver.map_offset;
    return CUDA_OK;
}
