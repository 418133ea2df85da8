/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software device as a program that links it sees it: is it in use, what did it count, and its
 * strict mode at run time. Everything else goes through libibverbs and libmlx5.
 *
 * Linked statically into `doorbell` and into tests; also exported by libsoftnic.so. The device
 * starts when the first context opens it and stops when the last one is closed.
 *
 * A program that links the static library defines the C library's open(), ioctl() and so on in
 * itself. libibverbs and libmlx5 must find these definitions: link with -rdynamic, and call any
 * function below, so that the linker takes the library in.
 */
#ifndef SOFTNIC_SOFTNIC_H
#define SOFTNIC_SOFTNIC_H

#include "core/engine.h"

/* The name under which libibverbs lists it. */
#define SOFTNIC_DEVICE_NAME "mlx5_soft0"

enum softnic_mode {
    SOFTNIC_AUTO, /* used when the machine has no RDMA device */
    SOFTNIC_ON,   /* used, and real devices are hidden */
    SOFTNIC_OFF,
};

/* Chooses before the first ibv_get_device_list(); the environment variable SOFTNIC is the default.
 * -EBUSY once the program has looked for RDMA devices. */
int softnic_set_mode(enum softnic_mode mode);

/* True when libibverbs will see (or sees) the software device. */
bool softnic_in_use(void);

/* One sentence that says why it is in use, or why not. A static string. */
const char *softnic_reason(void);

/* One sentence that names an environment variable whose value cannot be used, and those that can;
 * the device does not open then. NULL: there is none. A static string. */
const char *softnic_wrong_setting(void);

/* Replaces strict mode's settings; takes effect between two turns. May be called at any time. A
 * random state of 0 goes on with the present one. */
void softnic_set_strict(const struct nic_strict *strict);

/* Counters since the process started, over all runs of the device. Zeros if it never ran. */
void softnic_read_counters(struct nic_counters *counters);

/* Copies up to `capacity` of the first diagnostics, oldest first; returns how many there are. */
size_t softnic_read_diagnostics(struct nic_diag_entry *entries, size_t capacity);

#endif
