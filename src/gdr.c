/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GDRCopy, found at run time; see gdr.h. The functions are those of gdrapi.h, GDRCopy 2.
 */
#include "gdr.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "error.h"

#define GPU_PAGE_BYTES 65536u

struct gdr_handle {
    unsigned long h;
};

struct library {
    void *(*open)(void);
    int (*close)(void *gdr);
    int (*pin_buffer)(void *gdr, unsigned long address, size_t bytes, uint64_t token,
                      uint32_t space, struct gdr_handle *handle);
    int (*unpin_buffer)(void *gdr, struct gdr_handle handle);
    int (*map)(void *gdr, struct gdr_handle handle, void **address, size_t bytes);
    int (*unmap)(void *gdr, struct gdr_handle handle, void *address, size_t bytes);
};

struct db_gdr_mapping {
    struct library library;
    void *gdr;
    struct gdr_handle handle;
    void *page;
};

const char *db_gdr_library = "libgdrapi.so.2";

/* Stored through a pointer to void *: POSIX promises that dlsym()'s results are functions too. */
static void find(void *from, const char *name, void *function)
{
    *(void **)function = dlsym(from, name);
}

/* The library stays loaded: it is one for the process. */
static int load(struct library *library)
{
    void *from = dlopen(db_gdr_library, RTLD_NOW | RTLD_LOCAL);

    if (!from) {
        db_fail(-ENOSYS,
                "progress in GPU memory needs GDRCopy, and %s is not there (%s); use "
                "DB_MEMORY_HOST",
                db_gdr_library, dlerror());
        return -ENOSYS;
    }
    find(from, "gdr_open", &library->open);
    find(from, "gdr_close", &library->close);
    find(from, "gdr_pin_buffer", &library->pin_buffer);
    find(from, "gdr_unpin_buffer", &library->unpin_buffer);
    find(from, "gdr_map", &library->map);
    find(from, "gdr_unmap", &library->unmap);
    if (library->open && library->close && library->pin_buffer && library->unpin_buffer &&
        library->map && library->unmap)
        return 0;
    db_fail(-ENOSYS,
            "%s lacks a function of GDRCopy 2; install that version, or use "
            "DB_MEMORY_HOST",
            db_gdr_library ? db_gdr_library : "this program");
    return -ENOSYS;
}

static int map_page(struct db_gdr_mapping *made, uint64_t gpu)
{
    const struct library *library = &made->library;

    made->gdr = library->open();
    if (!made->gdr)
        return db_fail(-ENODEV, "GDRCopy cannot be used: its kernel module gdrdrv is not loaded, "
                                "or /dev/gdrdrv is not readable; use DB_MEMORY_HOST");
    if (library->pin_buffer(made->gdr, (unsigned long)gpu, GPU_PAGE_BYTES, 0, 0, &made->handle)) {
        library->close(made->gdr);
        return db_fail(-EINVAL,
                       "GDRCopy does not take the 64 KiB at %#llx, which must be memory of "
                       "cuMemAlloc()",
                       (unsigned long long)gpu);
    }
    if (library->map(made->gdr, made->handle, &made->page, GPU_PAGE_BYTES)) {
        library->unpin_buffer(made->gdr, made->handle);
        library->close(made->gdr);
        return db_fail(-EINVAL, "GDRCopy cannot map the 64 KiB at %#llx", (unsigned long long)gpu);
    }
    return 0;
}

int db_gdr_map(uint64_t gpu, size_t bytes, struct db_gdr_mapping **mapping, void **cpu)
{
    uint64_t offset = gpu % GPU_PAGE_BYTES;

    *mapping = NULL;
    if (offset + bytes > GPU_PAGE_BYTES)
        return db_fail(-EINVAL,
                       "progress at %#llx crosses a page of 64 KiB; it must lie within one",
                       (unsigned long long)gpu);
    struct db_gdr_mapping *made = calloc(1, sizeof(*made));
    if (!made)
        return db_fail(-ENOMEM, "no memory for a mapping of GPU memory");
    int error = load(&made->library);
    if (!error)
        error = map_page(made, gpu - offset);
    if (error) {
        free(made);
        return error;
    }
    *cpu = (uint8_t *)made->page + offset;
    *mapping = made;
    return 0;
}

void db_gdr_unmap(struct db_gdr_mapping *mapping)
{
    if (!mapping)
        return;
    mapping->library.unmap(mapping->gdr, mapping->handle, mapping->page, GPU_PAGE_BYTES);
    mapping->library.unpin_buffer(mapping->gdr, mapping->handle);
    mapping->library.close(mapping->gdr);
    free(mapping);
}
