/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From our source over a library's headers to a fat binary: nvcc, in a folder of its own that is
 * gone afterwards.
 */
#include "library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG    "log"
#define OBJECT "kernels.o"
#define IMAGE  "kernels.fatbin"

/* Far above what a fat binary of ours can be. */
#define IMAGE_BYTES_MAX ((size_t)64 << 20)

static FILE *open_in(const char *folder, const char *name, const char *mode)
{
    char path[2 * VENDORS_PATH_BYTES];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return fopen(path, mode);
}

static int write_sources(const char *folder)
{
    for (size_t i = 0; i < VENDORS_SOURCES; i++) {
        const struct vendors_source *source = &vendors_source[i];
        size_t bytes = (size_t)(source->end - source->text);
        FILE *file = open_in(folder, source->name, "w");
        if (!file)
            return -errno;
        size_t written = fwrite(source->text, 1, bytes, file);
        if (fclose(file) || written != bytes)
            return -EIO;
    }
    return 0;
}

/* Leaves the compiler's first error in `why`, or its first line. */
static void first_error(const char *folder, char *why)
{
    char line[VENDORS_WHY_BYTES];
    FILE *file = open_in(folder, LOG, "r");

    snprintf(why, VENDORS_WHY_BYTES, "it says nothing");
    for (bool first = true; file && fgets(line, sizeof(line), file); first = false) {
        bool error = strstr(line, "error") || strstr(line, "fatal");
        line[strcspn(line, "\n")] = '\0';
        if (first || error)
            memcpy(why, line, sizeof(line));
        if (error)
            break;
    }
    if (file)
        fclose(file);
}

/* Runs nvcc once; the list of flags ends with NULL. */
static int run_nvcc(char *const argv[], const char *folder, char *why)
{
    int status = vendors_process(argv, folder, LOG, VENDORS_COMPILE_NS);

    if (status == 0)
        return 0;
    if (status == -ETIMEDOUT)
        snprintf(why, VENDORS_WHY_BYTES, "%.200s did not end within %d s", argv[0],
                 (int)(VENDORS_COMPILE_NS / 1000000000));
    else if (status < 0)
        snprintf(why, VENDORS_WHY_BYTES, "%.200s does not start: %s", argv[0], strerror(-status));
    else
        first_error(folder, why);
    return status < 0 ? status : -ENOEXEC;
}

static int compile(const struct vendors_library *library, const char *nvcc, const char *arch,
                   const char *headers, const char *folder, char *why)
{
    char arch_flag[64], include_flag[VENDORS_PATH_BYTES + 4];
    char *arguments[24];
    int n = 0;

    snprintf(arch_flag, sizeof(arch_flag), "-arch=%s", arch);
    snprintf(include_flag, sizeof(include_flag), "-I%s", headers);
    arguments[n++] = (char *)nvcc;
    arguments[n++] = "-std=c++17";
    arguments[n++] = "-O3";
    arguments[n++] = "-DNDEBUG";
    arguments[n++] = "-w"; /* their warnings are theirs */
    arguments[n++] = arch_flag;
    arguments[n++] = include_flag;
    arguments[n++] = "-I.";
    if (library->extra_flag)
        arguments[n++] = (char *)library->extra_flag;
    if (library->linked)
        arguments[n++] = "-rdc=true";
    arguments[n++] = library->linked ? "-dc" : "-fatbin";
    arguments[n++] = (char *)library->source;
    arguments[n++] = "-o";
    arguments[n++] = library->linked ? OBJECT : IMAGE;
    arguments[n] = NULL;
    int error = run_nvcc(arguments, folder, why);
    if (error || !library->linked)
        return error;

    char *const link[] = {(char *)nvcc, "-w", arch_flag, "-dlink", "-fatbin",
                          OBJECT,       "-o", IMAGE,     NULL};
    return run_nvcc(link, folder, why);
}

static int read_image(const char *folder, struct vendors_image *image)
{
    FILE *file = open_in(folder, IMAGE, "r");
    if (!file)
        return -errno;
    int error = fseek(file, 0, SEEK_END) ? -errno : 0;
    long bytes = error ? -1 : ftell(file);
    if (bytes <= 0 || (size_t)bytes > IMAGE_BYTES_MAX) {
        error = -EIO;
        goto out;
    }
    rewind(file);
    image->size = (size_t)bytes;
    image->bytes = malloc(image->size);
    if (!image->bytes) {
        error = -ENOMEM;
        goto out;
    }
    if (fread(image->bytes, 1, image->size, file) != image->size) {
        free(image->bytes);
        *image = (struct vendors_image){0};
        error = -EIO;
    }
out:
    fclose(file);
    return error;
}

int vendors_compile(const struct vendors_library *library, const char *nvcc, const char *arch,
                    const char *folder, struct vendors_image *image, char *why)
{
    char work[VENDORS_PATH_BYTES];

    *image = (struct vendors_image){0};
    int error = vendors_folder_make(work);
    if (error) {
        snprintf(why, VENDORS_WHY_BYTES, "no folder for temporary files: %s", strerror(-error));
        return error;
    }
    error = write_sources(work);
    if (error) {
        snprintf(why, VENDORS_WHY_BYTES, "%.200s cannot be written: %s", work, strerror(-error));
        goto out;
    }
    error = compile(library, nvcc, arch, folder, work, why);
    if (error)
        goto out;
    error = read_image(work, image);
    if (error)
        snprintf(why, VENDORS_WHY_BYTES, "the fat binary cannot be read: %s", strerror(-error));
out:
    vendors_folder_remove(work);
    return error;
}
