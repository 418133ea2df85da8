/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The libraries, as a table, and our sources over them as bytes of the program. The build defines
 * VENDORS_FOLDER as the folder of this file, and compiles it again when a source changes.
 */
#include "library.h"

#include "arm.h"

#define KERNEL(symbol)                                                                             \
    {                                                                                              \
        .name = symbol, .args_bytes = sizeof(struct arm_args)                                      \
    }

/* DOCA fills its control segment on the stack and leaves the signature, what follows it and the
 * reserved word behind the key undefined; an inline put the immediate as well, and it stores only
 * the payload behind the count. */
#define DOCA_POINTER_GAPS                                                                          \
    {                                                                                              \
        {8, 11},                                                                                   \
        {                                                                                          \
            28, 32                                                                                 \
        }                                                                                          \
    }
#define DOCA_INLINE_GAPS                                                                           \
    {                                                                                              \
        {8, 11}, {12, 16}, {28, 32},                                                               \
        {                                                                                          \
            44, 48                                                                                 \
        }                                                                                          \
    }

#define DOCA_PUT(how)                                                                              \
    {                                                                                              \
        "doca", "put", #how, VENDORS_WQE_POINTER, DOCA_POINTER_GAPS,                               \
            KERNEL("vendor_doca_put_" #how)                                                        \
    }
#define DOCA_P(how)                                                                                \
    {                                                                                              \
        "doca", "p", #how, VENDORS_WQE_INLINE, DOCA_INLINE_GAPS, KERNEL("vendor_doca_p_" #how)     \
    }

#define NCCL_VERSION                                                                               \
    .vendor = "NCCL", .made_for = "2.28.9", .package = "nccl", .home = "NCCL_HOME",                \
    .version_header = "nccl.h", .version_macro = {"NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH"}

const struct vendors_library vendors_library[VENDORS_LIBRARIES] = {
    {
        .name = "doca",
        NCCL_VERSION,
        .marker = "nccl_device/gin/gdaki/doca_gpunetio/doca_gpunetio_device.h",
        .source = "doca.cu",
        .setup = KERNEL("vendor_doca_setup"),
        .arm = {DOCA_PUT(exclusive), DOCA_PUT(cta), DOCA_PUT(gpu), DOCA_P(exclusive), DOCA_P(cta),
                DOCA_P(gpu)},
    },
    {
        .name = "gin",
        NCCL_VERSION,
        .marker = "nccl_device/gin/gin_device_api.h",
        .source = "gin.cu",
        .setup = KERNEL("vendor_gin_setup"),
        .arm = {{"gin-gdaki", "put", "gpu", VENDORS_WQE_POINTER, DOCA_POINTER_GAPS,
                 KERNEL("vendor_gin_gdaki_put")},
                {"gin-gdaki", "putValue", "gpu", VENDORS_WQE_INLINE, DOCA_INLINE_GAPS,
                 KERNEL("vendor_gin_gdaki_put_value")},
                {"gin-proxy",
                 "put",
                 "gpu",
                 VENDORS_DESCRIPTOR,
                 {{0, 0}},
                 KERNEL("vendor_gin_proxy_put")}},
    },
    {
        .name = "nvshmem",
        .vendor = "NVSHMEM",
        .made_for = "3.4.5",
        .package = "nvshmem",
        .home = "NVSHMEM_HOME",
        .marker = "non_abi/device/pt-to-pt/ibgda_device.cuh",
        .version_header = "non_abi/nvshmem_version.h",
        .version_macro = {"NVSHMEM_VENDOR_MAJOR_VERSION", "NVSHMEM_VENDOR_MINOR_VERSION",
                          "NVSHMEM_VENDOR_PATCH_VERSION"},
        .source = "nvshmem.cu",
        .extra_flag = "-DNVSHMEM_ENABLE_ALL_DEVICE_INLINING",
        .linked = true,
        .setup = KERNEL("vendor_nvshmem_setup"),
        .arm =
            {{"nvshmem",
              "put_nbi",
              "gpu",
              VENDORS_WQE_POINTER,
              {{0, 0}},
              KERNEL("vendor_nvshmem_put_nbi")},
             {"nvshmem", "p", "gpu", VENDORS_WQE_INLINE, {{44, 48}}, KERNEL("vendor_nvshmem_p")}},
    },
};

/* ---- Sources ---- */

#define EMBED(symbol, file)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global " #symbol "\n"                                                                \
            ".global " #symbol "_end\n" #symbol ":\n"                                              \
            ".incbin \"" VENDORS_FOLDER "/" file "\"\n" #symbol "_end:\n"                          \
            ".popsection\n");                                                                      \
    extern const char symbol[];                                                                    \
    extern const char symbol##_end[]

EMBED(vendors_source_arm, "arm.h");
EMBED(vendors_source_doca_queue, "doca_queue.h");
EMBED(vendors_source_doca, "doca.cu");
EMBED(vendors_source_gin, "gin.cu");
EMBED(vendors_source_nvshmem, "nvshmem.cu");

const struct vendors_source vendors_source[VENDORS_SOURCES] = {
    {"arm.h", vendors_source_arm, vendors_source_arm_end},
    {"doca_queue.h", vendors_source_doca_queue, vendors_source_doca_queue_end},
    {"doca.cu", vendors_source_doca, vendors_source_doca_end},
    {"gin.cu", vendors_source_gin, vendors_source_gin_end},
    {"nvshmem.cu", vendors_source_nvshmem, vendors_source_nvshmem_end},
};
