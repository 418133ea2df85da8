/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues (events.h). Each queue is a list of sources with unread events, and an eventfd that
 * holds one token while the list is not empty: poll() works on it, and a blocking read waits in the
 * kernel with the caller's own O_NONBLOCK and signal rules. Whoever takes the token takes one event
 * and puts the token back if there are more.
 */
#include "events.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include <rdma/ib_user_verbs.h>

#include "real.h"

struct soft_events {
    enum soft_events_kind kind;
    atomic_uint references;
    int token_fd; /* our duplicate of the program's descriptor */
    pthread_mutex_t lock;
    bool token; /* in the eventfd, or in the hands of a reader that has not locked yet */
    struct soft_source *first;
    struct soft_source *last;
};

int soft_events_create(enum soft_events_kind kind, struct soft_events **events, int *fd)
{
    struct soft_events *made = calloc(1, sizeof(*made));
    int error = -ENOMEM;

    if (made == NULL)
        return -ENOMEM;
    made->kind = kind;
    atomic_init(&made->references, 1);
    pthread_mutex_init(&made->lock, NULL);
    made->token_fd = eventfd(0, EFD_CLOEXEC);
    if (made->token_fd < 0) {
        error = -errno;
        goto no_eventfd;
    }
    *fd = REAL(fcntl)(made->token_fd, F_DUPFD_CLOEXEC, 0);
    if (*fd < 0) {
        error = -errno;
        goto no_duplicate;
    }
    *events = made;
    return 0;

no_duplicate:
    REAL(close)(made->token_fd);
no_eventfd:
    pthread_mutex_destroy(&made->lock);
    free(made);
    return error;
}

void soft_events_get(struct soft_events *events)
{
    atomic_fetch_add(&events->references, 1);
}

void soft_events_put(struct soft_events *events)
{
    if (atomic_fetch_sub(&events->references, 1) != 1)
        return;
    REAL(close)(events->token_fd);
    pthread_mutex_destroy(&events->lock);
    free(events);
}

enum soft_events_kind soft_events_kind(const struct soft_events *events)
{
    return events->kind;
}

static void link_last(struct soft_events *events, struct soft_source *source)
{
    source->next = NULL;
    source->previous = events->last;
    if (events->last != NULL)
        events->last->next = source;
    else
        events->first = source;
    events->last = source;
}

static void unlink_source(struct soft_events *events, struct soft_source *source)
{
    if (source->previous != NULL)
        source->previous->next = source->next;
    else
        events->first = source->next;
    if (source->next != NULL)
        source->next->previous = source->previous;
    else
        events->last = source->previous;
}

static void give_token(struct soft_events *events)
{
    const uint64_t one = 1;

    /* The counter is 0 or 1, so this neither blocks nor fails. */
    if (REAL(write)(events->token_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
        events->token = true;
}

/* Takes the first source's first event; sources take turns. */
static bool take_event(struct soft_events *events, uint64_t *element, uint32_t *type)
{
    struct soft_source *source = events->first;

    if (source == NULL)
        return false;
    *type = 0;
    while (source->waiting[*type] == 0)
        ++*type;
    *element = source->element;
    source->waiting[*type]--;
    source->total--;
    source->reported++;
    unlink_source(events, source);
    if (source->total > 0)
        link_last(events, source);
    return true;
}

static size_t event_bytes(const struct soft_events *events)
{
    return events->kind == SOFT_ASYNC ? sizeof(struct ib_uverbs_async_event_desc)
                                      : sizeof(struct ib_uverbs_comp_event_desc);
}

ssize_t soft_events_read(struct soft_events *events, int fd, void *buffer, size_t bytes)
{
    union {
        struct ib_uverbs_comp_event_desc completion;
        struct ib_uverbs_async_event_desc async;
    } event = {0};
    size_t size = event_bytes(events);
    uint64_t element, token;
    uint32_t type;
    bool taken;

    if (bytes < size) {
        errno = EINVAL;
        return -1;
    }
    do {
        if (REAL(read)(fd, &token, sizeof(token)) < 0)
            return -1;
        pthread_mutex_lock(&events->lock);
        events->token = false;
        taken = take_event(events, &element, &type);
        if (events->first != NULL)
            give_token(events);
        pthread_mutex_unlock(&events->lock);
    } while (!taken);

    if (events->kind == SOFT_ASYNC) {
        event.async.element = element;
        event.async.event_type = type;
    } else {
        event.completion.cq_handle = element;
    }
    memcpy(buffer, &event, size);
    return (ssize_t)size;
}

void soft_source_open(struct soft_source *source, struct soft_events *events, uint64_t element)
{
    *source = (struct soft_source){.events = events, .element = element};
    if (events != NULL)
        soft_events_get(events);
}

void soft_source_raise(struct soft_source *source, uint32_t type)
{
    struct soft_events *events = source->events;

    if (events == NULL || type >= SOFT_EVENT_TYPES)
        return;
    pthread_mutex_lock(&events->lock);
    source->waiting[type]++;
    if (source->total++ == 0)
        link_last(events, source);
    if (!events->token)
        give_token(events);
    pthread_mutex_unlock(&events->lock);
}

uint32_t soft_source_close(struct soft_source *source)
{
    struct soft_events *events = source->events;
    uint32_t reported;

    if (events == NULL)
        return 0;
    pthread_mutex_lock(&events->lock);
    if (source->total > 0)
        unlink_source(events, source);
    reported = source->reported;
    if (events->first == NULL && events->token) {
        /* Without the token poll() tells the truth again. A reader that has it already finds the
         * list empty and waits on. */
        uint64_t token;
        struct iovec to = {.iov_base = &token, .iov_len = sizeof(token)};
        if (preadv2(events->token_fd, &to, 1, -1, RWF_NOWAIT) == (ssize_t)sizeof(token))
            events->token = false;
    }
    pthread_mutex_unlock(&events->lock);
    *source = (struct soft_source){0};
    soft_events_put(events);
    return reported;
}

void soft_source_forget(struct soft_source *source)
{
    if (source->events != NULL)
        soft_events_put(source->events);
}
