/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA driver as the "cuda" backend calls it: the entry points of libcuda.so.1 that it uses,
 * found at run time, so that the same program runs where there is no driver. Types, constants and
 * versioned names are those of the driver's ABI (CUDA Driver API reference). Included by the
 * gpu_cuda*.c files.
 */
#ifndef DOORBELL_SRC_CUDA_DRIVER_H
#define DOORBELL_SRC_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

/* Opaque objects of the driver. A device is its ordinal. */
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;

/* The results that are told apart; CUresult. */
enum cuda_result {
    CUDA_OK = 0,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_STUB_LIBRARY = 34,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_IMAGE = 200,
    CUDA_NO_BINARY_FOR_GPU = 209,
    CUDA_UNSUPPORTED_PTX = 222,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ALREADY_REGISTERED = 712,
    CUDA_DRIVER_MISMATCH = 803,
    CUDA_UNKNOWN = 999,
};

/* CUdevice_attribute. */
enum cuda_attribute {
    CUDA_MAX_THREADS_PER_BLOCK = 1,
    CUDA_CLOCK_KHZ = 13,
    CUDA_MULTIPROCESSORS = 16,
    CUDA_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CUDA_CAN_MAP_HOST_MEMORY = 19,
    CUDA_CAPABILITY_MAJOR = 75,
    CUDA_CAPABILITY_MINOR = 76,
    CUDA_HOST_NATIVE_ATOMICS = 86,
    CUDA_HOST_REGISTER_SUPPORTED = 99,
    CUDA_GPU_DIRECT_RDMA = 116,
    CUDA_DMA_BUF = 124,
};

#define CUDA_HOST_PORTABLE   0x1u /* CU_MEMHOSTALLOC_ and CU_MEMHOSTREGISTER_ agree on these two */
#define CUDA_HOST_DEVICEMAP  0x2u
#define CUDA_HOST_IOMEMORY   0x4u /* CU_MEMHOSTREGISTER_IOMEMORY */
#define CUDA_STREAM_ALONE    0x1u /* CU_STREAM_NON_BLOCKING */
#define CUDA_EVENT_NO_TIMING 0x2u /* CU_EVENT_DISABLE_TIMING */
#define CUDA_FUNCTION_SHARED 8    /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
#define CUDA_RANGE_DMA_BUF   1    /* CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD */

/* X(field, symbol, parameters): every call that any driver for CUDA 11 or later has. */
#define CUDA_DRIVER_CALLS(X)                                                                       \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(driver_version, "cuDriverGetVersion", (int *version))                                        \
    X(error_name, "cuGetErrorName", (int result, const char **text))                               \
    X(error_string, "cuGetErrorString", (int result, const char **text))                           \
    X(device_count, "cuDeviceGetCount", (int *count))                                              \
    X(device_get, "cuDeviceGet", (int *device, int ordinal))                                       \
    X(device_name, "cuDeviceGetName", (char *name, int bytes, int device))                         \
    X(device_bus_id, "cuDeviceGetPCIBusId", (char *id, int bytes, int device))                     \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, int device))                          \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))           \
    X(context_retain, "cuDevicePrimaryCtxRetain", (struct CUctx_st * *context, int device))        \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                               \
    X(context_push, "cuCtxPushCurrent_v2", (struct CUctx_st * context))                            \
    X(context_pop, "cuCtxPopCurrent_v2", (struct CUctx_st * *context))                             \
    X(module_load, "cuModuleLoadData", (struct CUmod_st * *module, const void *image))             \
    X(module_unload, "cuModuleUnload", (struct CUmod_st * module))                                 \
    X(module_function, "cuModuleGetFunction",                                                      \
      (struct CUfunc_st * *function, struct CUmod_st * module, const char *name))                  \
    X(function_set, "cuFuncSetAttribute", (struct CUfunc_st * function, int attribute, int value)) \
    X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                    \
      (int *blocks, struct CUfunc_st *function, int threads, size_t shared_bytes))                 \
    X(launch, "cuLaunchKernel",                                                                    \
      (struct CUfunc_st * function, unsigned grid_x, unsigned grid_y, unsigned grid_z,             \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       struct CUstream_st *stream, void **parameters, void **extra))                               \
    X(stream_create, "cuStreamCreate", (struct CUstream_st * *stream, unsigned flags))             \
    X(stream_destroy, "cuStreamDestroy_v2", (struct CUstream_st * stream))                         \
    X(stream_wait, "cuStreamSynchronize", (struct CUstream_st * stream))                           \
    X(event_create, "cuEventCreate", (struct CUevent_st * *event, unsigned flags))                 \
    X(event_destroy, "cuEventDestroy_v2", (struct CUevent_st * event))                             \
    X(event_record, "cuEventRecord", (struct CUevent_st * event, struct CUstream_st * stream))     \
    X(event_query, "cuEventQuery", (struct CUevent_st * event))                                    \
    X(memory_allocate, "cuMemAlloc_v2", (uint64_t * address, size_t bytes))                        \
    X(memory_free, "cuMemFree_v2", (uint64_t address))                                             \
    X(memory_set, "cuMemsetD8Async",                                                               \
      (uint64_t address, unsigned char value, size_t bytes, struct CUstream_st *stream))           \
    X(memory_copy, "cuMemcpyAsync",                                                                \
      (uint64_t to, uint64_t from, size_t bytes, struct CUstream_st * stream))                     \
    X(host_allocate, "cuMemHostAlloc", (void **host, size_t bytes, unsigned flags))                \
    X(host_free, "cuMemFreeHost", (void *host))                                                    \
    X(host_register, "cuMemHostRegister_v2", (void *host, size_t bytes, unsigned flags))           \
    X(host_unregister, "cuMemHostUnregister", (void *host))                                        \
    X(host_device_address, "cuMemHostGetDevicePointer_v2",                                         \
      (uint64_t * address, void *host, unsigned flags))

/* The same for calls of later drivers: NULL where the driver has none. */
#define CUDA_DRIVER_LATER_CALLS(X)                                                                 \
    X(range_handle, "cuMemGetHandleForAddressRange",                                               \
      (void *handle, uint64_t address, size_t bytes, int type, unsigned long long flags))          \
    X(module_function_count, "cuModuleGetFunctionCount",                                           \
      (unsigned *count, struct CUmod_st *module))                                                  \
    X(module_functions, "cuModuleEnumerateFunctions",                                              \
      (struct CUfunc_st * *functions, unsigned count, struct CUmod_st *module))                    \
    X(function_load, "cuFuncLoad", (struct CUfunc_st * function))

#define CUDA_DRIVER_FIELD(field, symbol, parameters) int(*field) parameters;

struct cuda_driver {
    CUDA_DRIVER_CALLS(CUDA_DRIVER_FIELD)
    CUDA_DRIVER_LATER_CALLS(CUDA_DRIVER_FIELD)
    int version; /* of CUDA that the driver supports: 1000 * major + 10 * minor */
};

/* Loads and starts the driver, once in a process. Returns 0, or -ENODEV (no driver, or it finds no
 * GPU), -ENOSYS (too old) or -EIO with a sentence in db_gpu_error_text(). */
int cuda_driver_load(const struct cuda_driver **driver);

/* "CUDA_ERROR_X (what it means)", in a buffer of the calling thread that the next call reuses. */
const char *cuda_result_text(const struct cuda_driver *driver, int result);

/* What NVML says that the SM clock of the GPU at this PCI address is now, in MHz; 0 when there is
 * no NVML (libnvidia-ml.so.1), or it does not tell. */
uint32_t cuda_stated_sm_mhz(const char *bus_id);

#endif
