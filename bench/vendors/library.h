/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of each library: its headers, how our source over them is compiled, and the ways to
 * put that are timed. Included by the other files here.
 */
#ifndef BENCH_VENDORS_LIBRARY_H
#define BENCH_VENDORS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <doorbell/gpu.h>

#define VENDORS_WHY_BYTES  512
#define VENDORS_PATH_BYTES 4096
#define VENDORS_ARMS_MAX   6

/* Bytes [from, to) of a WQE that a library does not write, or leaves as they happen to be. */
struct vendors_gap {
    uint8_t from;
    uint8_t to;
};

enum vendors_post {
    VENDORS_WQE_POINTER, /* an RDMA write from memory */
    VENDORS_WQE_INLINE,  /* an RDMA write of a value that it carries */
    VENDORS_DESCRIPTOR,  /* the 64-byte descriptor of NCCL's proxy, for a CPU thread */
};

/* One way to put. */
struct vendors_arm {
    const char *system; /* as results name it */
    const char *op;     /* the library's own name */
    const char *sharing;
    enum vendors_post post;
    struct vendors_gap gap[4]; /* up to the first empty one */
    struct port_kernel kernel;
};

struct vendors_library {
    const char *name;
    const char *vendor; /* whose version it is */
    const char *made_for;
    const char *package; /* its folder among Python's packages of NVIDIA */
    const char *home;    /* an environment variable that names where it is installed */
    const char *marker;  /* a header that only a usable installation has */
    const char *version_header;
    const char *version_macro[3];
    const char *source;
    const char *extra_flag; /* NULL: none */
    bool linked;            /* it declares constants that only a device link can find */
    struct port_kernel setup;
    struct vendors_arm arm[VENDORS_ARMS_MAX]; /* up to the first without a system */
};

#define VENDORS_LIBRARIES 3
extern const struct vendors_library vendors_library[VENDORS_LIBRARIES];

/* The files that a compilation needs, as bytes of the program. */
struct vendors_source {
    const char *name;
    const char *text;
    const char *end;
};
#define VENDORS_SOURCES 5
extern const struct vendors_source vendors_source[VENDORS_SOURCES];

/* ---- find.c ---- */

/* The absolute path of nvcc: $NVCC, of PATH, of a toolkit. False, with a sentence in why, when
 * there is none. */
bool vendors_find_nvcc(char *nvcc, char *why);

/* The absolute path of the folder with a library's headers; `path` as for vendors_run(). False,
 * with a sentence, when there is none. */
bool vendors_find_headers(const struct vendors_library *library, const char *nvcc, const char *path,
                          char *folder, char *why);

/* "NCCL 2.28.9", as the headers have it. */
void vendors_version(const struct vendors_library *library, const char *folder, char *text,
                     size_t bytes);

/* Whether that is the version that our source was written for. */
bool vendors_made_for(const struct vendors_library *library, const char *text);

/* ---- compile.c ---- */

struct vendors_image {
    void *bytes;
    size_t size;
};

/*
 * Compiles a library's kernels for `arch` ("sm_90") into a fat binary, which the caller frees.
 * Blocks, for VENDORS_COMPILE_NS at most. Returns 0 or a negative errno, with a sentence in
 * why[VENDORS_WHY_BYTES]: the compiler's first error where it has one.
 */
int vendors_compile(const struct vendors_library *library, const char *nvcc, const char *arch,
                    const char *folder, struct vendors_image *image, char *why);

#define VENDORS_COMPILE_NS UINT64_C(180000000000)

/* ---- process.c ---- */

/* Runs a program in `folder`, its output in the file `log` there. Returns its exit status, 128 and
 * the signal's number when one ended it, or a negative errno; -ETIMEDOUT: it was ended. */
int vendors_process(char *const argv[], const char *folder, const char *log, uint64_t timeout_ns);

/* Makes a folder for temporary files and writes its path to path[VENDORS_PATH_BYTES]. 0 or a
 * negative errno. */
int vendors_folder_make(char *path);
void vendors_folder_remove(const char *path);

/* ---- wqe.c ---- */

/* The put of every arm. */
#define VENDORS_LADDR UINT64_C(0x00007a1000123450)
#define VENDORS_RADDR UINT64_C(0x00007b2000543218)
#define VENDORS_VALUE UINT64_C(0x8877665544332211)
#define VENDORS_BYTES 8u

/* What one put left in memory. */
struct vendors_posted {
    uint8_t slot[64]; /* the first of the ring */
    uint32_t record;  /* send half, as it lies in memory */
    uint64_t doorbell;
};

/* What a slot holds before the put. */
#define VENDORS_POISON 0xa5

/* Whether the put is what our own code would have posted; false with a sentence in why. */
bool vendors_posted_agrees(const struct vendors_arm *arm, const struct vendors_posted *posted,
                           char *why);

/* Both in hexadecimal: the slot that was posted, and ours, with "??" for the bytes that are not
 * compared; of a descriptor, which is none of ours, there is no second one: "". */
struct vendors_dump {
    char posted[2 * 64 + 1];
    char ours[2 * 64 + 1];
};
void vendors_posted_dump(const struct vendors_arm *arm, const struct vendors_posted *posted,
                         struct vendors_dump *dump);

#endif
