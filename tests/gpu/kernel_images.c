/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: each fat binary inside this program has machine code for every architecture that we build
 * for and its nvcc knows, and PTX of the newest, which is all that later GPUs run from.
 *
 * A fat binary is a header and entries that follow each other, each a header and its payload. The
 * layout is observed in what nvcc 13.0 writes; one that does not add up fails.
 */
#include <doorbell/gpu.h>
#include <string.h>

#include "tests/check.h"

extern const struct db_gpu_image db_kernel_images[], bench_kernel_images[];
extern const size_t db_kernel_image_count, bench_kernel_image_count;
extern const uint32_t db_kernel_cuda_version;

#define FATBIN_MAGIC 0xba55ed50u

struct fatbin_header {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t bytes; /* of the entries */
};

enum entry_kind {
    ENTRY_PTX = 1,
    ENTRY_MACHINE_CODE = 2,
};

struct fatbin_entry {
    uint16_t kind; /* enum entry_kind */
    uint16_t version;
    uint32_t header_bytes;
    uint64_t bytes; /* of the payload */
    uint32_t unknown[3];
    uint32_t architecture; /* 90 of sm_90 */
};

static const struct {
    uint32_t architecture;
    uint32_t since; /* CUDA version */
} built[] = {{80, 11000}, {90, 11080}, {100, 12080}};

#define BUILT (sizeof(built) / sizeof(built[0]))

/* How many entries of a kind there are in an image, of all architectures or of one. */
static unsigned count(const struct db_gpu_image *image, enum entry_kind kind, uint32_t architecture)
{
    struct fatbin_header header;
    struct fatbin_entry entry;
    size_t left = (size_t)(image->end - image->start);
    const char *at = image->start;
    unsigned found = 0;

    CHECK(left > sizeof(header), "%zu bytes", left);
    memcpy(&header, at, sizeof(header));
    CHECK(header.magic == FATBIN_MAGIC && header.header_bytes + header.bytes == left,
          "magic %#x, %llu of %zu bytes", header.magic, (unsigned long long)header.bytes, left);
    at += header.header_bytes;
    for (left = header.bytes; left > 0; left -= entry.header_bytes + entry.bytes) {
        CHECK(left > sizeof(entry), "%zu bytes are left", left);
        memcpy(&entry, at, sizeof(entry));
        CHECK(entry.header_bytes >= sizeof(entry) && entry.bytes > 0 &&
                  entry.bytes <= left - entry.header_bytes,
              "an entry of %u and %llu bytes in %zu", entry.header_bytes,
              (unsigned long long)entry.bytes, left);
        found += entry.kind == kind && (!architecture || entry.architecture == architecture);
        at += entry.header_bytes + entry.bytes;
    }
    return found;
}

static void check(const char *of, const struct db_gpu_image *images, size_t n_images)
{
    CHECK(n_images > 0, "%s: no image", of);
    for (size_t n = 0; n < n_images; n++) {
        unsigned expected = 0;
        uint32_t newest = 0;
        for (size_t i = 0; i < BUILT; i++) {
            if (built[i].since > db_kernel_cuda_version)
                continue;
            newest = built[i].architecture;
            expected++;
            CHECK(count(&images[n], ENTRY_MACHINE_CODE, newest) == 1, "%s %zu: no code for sm_%u",
                  of, n, newest);
        }
        CHECK(count(&images[n], ENTRY_MACHINE_CODE, 0) == expected, "%s %zu: code for others", of,
              n);
        CHECK(count(&images[n], ENTRY_PTX, newest) == 1 && count(&images[n], ENTRY_PTX, 0) == 1,
              "%s %zu: %u PTX of sm_%u, %u in all", of, n, count(&images[n], ENTRY_PTX, newest),
              newest, count(&images[n], ENTRY_PTX, 0));
    }
    printf("%s: %zu images\n", of, n_images);
}

int main(void)
{
    if (db_kernel_image_count == 0)
        SKIP("this build has no GPU kernels");
    check("libdoorbell", db_kernel_images, db_kernel_image_count);
    check("bench", bench_kernel_images, bench_kernel_image_count);
    return 0;
}
