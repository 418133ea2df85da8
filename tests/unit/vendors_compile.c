/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: our sources over the vendors' headers compile into fat binaries that hold every kernel of
 * the table, and headers whose structures are of another size are told by their size. Needs nvcc;
 * the first part also the headers of the version that our source is made for, in the folders that
 * DOORBELL_VENDOR_INCLUDE lists, or where vendors_run() looks.
 */
#include "bench/vendors/library.h"
#include "tests/check.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char nvcc[VENDORS_PATH_BYTES];
static char why[VENDORS_WHY_BYTES];

static bool holds(const struct vendors_image *image, const char *symbol)
{
    return memmem(image->bytes, image->size, symbol, strlen(symbol)) != NULL;
}

/* False when its headers are not here. */
static bool check_library(const struct vendors_library *library, const char *path)
{
    char folder[VENDORS_PATH_BYTES], version[96];
    struct vendors_image image;

    if (!vendors_find_headers(library, nvcc, path, folder, why)) {
        printf("%s: %s\n", library->name, why);
        return false;
    }
    vendors_version(library, folder, version, sizeof(version));
    if (!strstr(version, library->made_for)) {
        printf("%s: %s is not %s\n", library->name, version, library->made_for);
        return false;
    }
    CHECK(vendors_compile(library, nvcc, "sm_90", folder, &image, why) == 0, "%s over %s: %s",
          library->name, version, why);
    CHECK(holds(&image, library->setup.name), "%s is missing", library->setup.name);
    for (size_t i = 0; i < VENDORS_ARMS_MAX && library->arm[i].system; i++)
        CHECK(holds(&image, library->arm[i].kernel.name), "%s is missing",
              library->arm[i].kernel.name);
    printf("%s over %s in %s: %zu bytes\n", library->name, version, folder, image.size);
    free(image.bytes);
    return true;
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[2 * VENDORS_PATH_BYTES];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s", path);
}

/* A library whose queue pair has grown. */
static void check_other_size(void)
{
    static const char text[] = "struct doca_gpu_dev_verbs_qp { char byte[288]; };\n"
                               "struct doca_gpu_dev_verbs_cq { char byte[56]; };\n"
                               "#define DOCA_GPUNETIO_VERBS_MKEY_SWAPPED 1\n";
    const struct vendors_library *doca = &vendors_library[0];
    char folder[VENDORS_PATH_BYTES], found[VENDORS_PATH_BYTES], version[96];
    struct vendors_image image;

    CHECK(vendors_folder_make(folder) == 0, "no folder");
    write_file(folder, doca->marker, text);
    write_file(folder, "nccl.h",
               "#define NCCL_MAJOR 3\n# define NCCL_MINOR 1\n#define NCCL_PATCH 4\n");
    CHECK(vendors_find_headers(doca, nvcc, folder, found, why), "%s", why);
    vendors_version(doca, found, version, sizeof(version));
    CHECK(strcmp(version, "NCCL 3.1.4") == 0, "%s", version);
    CHECK(vendors_compile(doca, nvcc, "sm_90", found, &image, why) < 0 && !image.bytes, "compiled");
    CHECK(strstr(why, "doca_gpu_dev_verbs_qp is not of 280 bytes"), "%s", why);
    printf("other size: %s\n", why);
    vendors_folder_remove(folder);
    CHECK(access(folder, F_OK) != 0, "%s is left", folder);
}

int main(void)
{
    bool any = false;

    if (!vendors_find_nvcc(nvcc, why))
        SKIP(why);
    check_other_size();
    for (size_t i = 0; i < VENDORS_LIBRARIES; i++)
        any |= check_library(&vendors_library[i], getenv("DOORBELL_VENDOR_INCLUDE"));
    if (!any)
        SKIP("no library's headers");
    return 0;
}
