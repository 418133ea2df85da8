/* SPDX-License-Identifier: BSD-3-Clause */
/* The adapter's descriptors (files.h): a table by descriptor number, read without a lock to learn
 * that a descriptor is somebody else's. */
#include "files.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "process.h"
#include "verbs.h"

#define DESCRIPTORS                                                                                \
    65536 /* numbers are given out from 0, so this is how many a program can have open */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct soft_file *_Atomic table[DESCRIPTORS];
static int highest = -1; /* no number above it was ever in the table */
static pid_t owner;

/* What a stranger gets for every descriptor of ours. */
static struct soft_file foreign = {.kind = SOFT_FILE_COMMAND, .dead = true};

void soft_files_begin(void)
{
    if (owner == 0)
        owner = getpid();
}

bool soft_files_stranger(void)
{
    return getpid() != owner;
}

static struct soft_file *peek(int fd)
{
    if (fd < 0 || fd >= DESCRIPTORS)
        return NULL;
    return atomic_load_explicit(&table[fd], memory_order_acquire);
}

static void enter(int fd, struct soft_file *file)
{
    atomic_store_explicit(&table[fd], file, memory_order_release);
    if (fd > highest)
        highest = fd;
}

static int add(int fd, struct soft_file wanted)
{
    struct soft_file *file;

    if (fd >= DESCRIPTORS)
        return soft_refuse(EMFILE, "descriptor %d is beyond the %d that the adapter follows", fd,
                           DESCRIPTORS);
    file = malloc(sizeof(*file));
    if (file == NULL)
        return -ENOMEM;
    *file = wanted;
    pthread_mutex_lock(&lock);
    enter(fd, file);
    pthread_mutex_unlock(&lock);
    return 0;
}

int soft_file_add_context(int fd, struct soft_context *context)
{
    return add(fd,
               (struct soft_file){.kind = SOFT_FILE_COMMAND, .references = 1, .context = context});
}

int soft_file_add_events(int fd, struct soft_events *events)
{
    return add(fd, (struct soft_file){.kind = SOFT_FILE_EVENTS, .references = 1, .events = events});
}

struct soft_file *soft_file_get(int fd)
{
    struct soft_file *file;

    if (peek(fd) == NULL)
        return NULL;
    if (soft_files_stranger())
        return &foreign;
    pthread_mutex_lock(&lock);
    file = peek(fd);
    if (file != NULL)
        file->references++;
    pthread_mutex_unlock(&lock);
    return file;
}

void soft_file_put(struct soft_file *file)
{
    bool last;

    if (file == &foreign)
        return;
    pthread_mutex_lock(&lock);
    last = --file->references == 0;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    if (file->kind == SOFT_FILE_EVENTS)
        soft_events_put(file->events);
    else if (file->dead)
        soft_context_forget(file->context);
    else
        soft_context_close(file->context);
    free(file);
}

struct soft_events *soft_file_events(int fd)
{
    struct soft_events *events = NULL;
    const struct soft_file *file;

    pthread_mutex_lock(&lock);
    file = peek(fd);
    if (file != NULL && !file->dead && file->kind == SOFT_FILE_EVENTS) {
        events = file->events;
        soft_events_get(events);
    }
    pthread_mutex_unlock(&lock);
    return events;
}

int soft_file_copy(int copy, struct soft_file *file)
{
    if (file == &foreign)
        return 0;
    if (copy >= DESCRIPTORS)
        return soft_refuse(EMFILE, "descriptor %d is beyond the %d that the adapter follows", copy,
                           DESCRIPTORS);
    pthread_mutex_lock(&lock);
    file->references++;
    enter(copy, file);
    pthread_mutex_unlock(&lock);
    return 0;
}

struct soft_file *soft_file_forget(int fd)
{
    struct soft_file *file;

    if (peek(fd) == NULL || soft_files_stranger())
        return NULL;
    pthread_mutex_lock(&lock);
    file = peek(fd);
    if (file != NULL)
        enter(fd, NULL);
    pthread_mutex_unlock(&lock);
    return file;
}

void soft_file_forget_range(unsigned first, unsigned last)
{
    int end;

    if (soft_files_stranger())
        return;
    pthread_mutex_lock(&lock);
    end = highest;
    pthread_mutex_unlock(&lock);
    for (int fd = first > (unsigned)INT_MAX ? INT_MAX : (int)first;
         fd <= end && (unsigned)fd <= last; fd++) {
        struct soft_file *file = soft_file_forget(fd);
        if (file != NULL)
            soft_file_put(file);
    }
}

void soft_files_lock(void)
{
    pthread_mutex_lock(&lock);
}

void soft_files_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void soft_files_abandon(void)
{
    owner = getpid();
    for (int fd = 0; fd <= highest; fd++) {
        struct soft_file *file = peek(fd);
        if (file != NULL)
            file->dead = true;
    }
}
