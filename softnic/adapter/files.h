/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which descriptors of the process are the adapter's: command descriptors (an open uverbs device)
 * and event descriptors. Duplicates share one soft_file; it ends with its last descriptor.
 *
 * A process that shares or copies this memory without pthread_atfork() handlers having run (a
 * vfork() child before its exec, a raw clone()) is a stranger here: it may close descriptors, which
 * changes nothing in the table, and every other call finds them dead.
 *
 * Included by libc_fd.c and by what makes descriptors. Looking up a descriptor that is not the
 * adapter's costs one load.
 */
#ifndef SOFTNIC_ADAPTER_FILES_H
#define SOFTNIC_ADAPTER_FILES_H

#include <stdbool.h>

#include "events.h"

struct soft_context;

enum soft_file_kind {
    SOFT_FILE_COMMAND,
    SOFT_FILE_EVENTS,
};

struct soft_file {
    enum soft_file_kind kind;
    unsigned references; /* descriptors, and calls at work; under the table's lock */
    bool dead;           /* opened by the parent of this process */
    union {
        struct soft_context *context;
        struct soft_events *events;
    };
};

/* Makes `fd` a descriptor of the context or the events, which it owns from now on. -EMFILE when the
 * number is beyond the table, -ENOMEM. */
int soft_file_add_context(int fd, struct soft_context *context);
int soft_file_add_events(int fd, struct soft_events *events);

/* The file behind a descriptor, kept alive until soft_file_put(); NULL when it is not ours. */
struct soft_file *soft_file_get(int fd);
void soft_file_put(struct soft_file *file);

/* The event queue behind a descriptor, with a reference; NULL when it is none. */
struct soft_events *soft_file_events(int fd);

/* `copy` has become a duplicate of `fd`'s file. -EMFILE as above. */
int soft_file_copy(int copy, struct soft_file *file);

/* `fd` is about to be closed. The caller puts what it returns once it is; NULL: not ours. */
struct soft_file *soft_file_forget(int fd);

/* Calls forget() for each of our descriptors from `first` to `last`. */
void soft_file_forget_range(unsigned first, unsigned last);

/* Makes the calling process the table's owner, unless it has one. */
void soft_files_begin(void);

/* True in a process other than the table's owner. */
bool soft_files_stranger(void);

/* For fork: the child owns its table, in which every file is dead. */
void soft_files_lock(void);
void soft_files_unlock(void);
void soft_files_abandon(void);

#endif
