/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the adapter keeps for the whole process: the settings from the environment, whether the
 * software device is in use, the running device, and what a fork does to it.
 *
 * Included by every file of softnic/adapter. The environment variables are those of
 * docs/softnic.md.
 */
#ifndef SOFTNIC_ADAPTER_PROCESS_H
#define SOFTNIC_ADAPTER_PROCESS_H

#include <pthread.h>

#include "softnic.h"

/* Marks what libsoftnic.so exports, and what a program that links the library must export itself.
 */
#define SOFT_EXPORT __attribute__((visibility("default")))

/* Every control call holds it. Never taken by the engine's callbacks, so a thread may hold it while
 * it waits for the engine in nic_hold(). */
extern pthread_mutex_t soft_lock;

struct soft_settings {
    enum softnic_mode mode;
    struct nic_config config;
    uint64_t seed;      /* of strict mode; config.strict.random starts with it */
    const char *report; /* file, "-" for standard error, or NULL */
    const char *sysfs;  /* SYSFS_PATH: where libibverbs looks instead of /sys, or NULL */
    bool strict_asked;  /* by SOFTNIC_STRICT; who uses softnic.h reads diagnostics there */
    bool debug;
    char wrong[200]; /* a sentence about a setting that cannot be used, or empty */
};

/* Reads the environment on the first call: when the program first looks for RDMA devices, or asks
 * softnic.h for something. The mode and strict settings change later only through
 * softnic.h, under soft_lock. */
struct soft_settings *soft_settings(void);

/* True when libibverbs is to see the software device. The first call decides for the process. */
bool soft_in_use(void);

/* Takes back the decision and chooses a mode; -EBUSY once soft_paths_used() was called. */
int soft_choose(enum softnic_mode mode);

/* One sentence that says why the device is in use, or why not. */
const char *soft_reason(void);

/* To be called when a program looks for RDMA devices: from then on the decision stands. */
void soft_paths_used(void);

/* The device starts with its first user and stops with its last. Under soft_lock. */
int soft_device_take(void);
void soft_device_drop(void);

/* The running device, or NULL. Under soft_lock. */
struct nic_host *soft_device(void);

/* Counters and diagnostics over all runs of the device in this process. Under soft_lock. */
void soft_read_counters(struct nic_counters *counters);
size_t soft_read_diagnostics(struct nic_diag_entry *entries, size_t capacity);

/* True once the device has run in this process (not in the parent that it was forked from). */
bool soft_device_has_run(void);

/* Says one line on standard error when SOFTNIC_DEBUG asks for it. */
void soft_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says why a call is refused, as soft_debug(), and returns -error. */
int soft_refuse(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes SOFTNIC_REPORT, or without it says what SOFTNIC_STRICT found, if either was asked for and
 * the device has run (report.c). Under soft_lock. */
void soft_report_write(void);

#endif
