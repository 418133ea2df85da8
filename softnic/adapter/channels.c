/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and asynchronous event descriptors: descriptors that stand for event queues.
 */
#include <errno.h>

#include <rdma/ib_user_verbs.h>

#include "attrs.h"
#include "calls.h"
#include "files.h"
#include "real.h"

/* Makes an event queue whose only holder is the descriptor. */
static int make_channel(enum soft_events_kind kind, struct soft_events **events, int *fd)
{
    int error = soft_events_create(kind, events, fd);

    if (error != 0)
        return error;
    error = soft_file_add_events(*fd, *events);
    if (error != 0) {
        REAL(close)(*fd);
        soft_events_put(*events);
    }
    return error;
}

static void discard(int fd)
{
    struct soft_file *file = soft_file_forget(fd);

    REAL(close)(fd);
    if (file != NULL)
        soft_file_put(file);
}

int soft_alloc_async(struct soft_call *call)
{
    struct soft_events *events;
    int fd;
    int error = make_channel(SOFT_ASYNC, &events, &fd);

    if (error != 0)
        return error;
    error = soft_out_number(call, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, (uint64_t)fd);
    if (error != 0) {
        discard(fd);
        return error;
    }
    if (call->context->async == NULL) {
        soft_events_get(events);
        call->context->async = events;
    }
    return 0;
}

int soft_create_comp_channel(struct soft_call *call)
{
    struct ib_uverbs_create_comp_channel_resp answer;
    const struct ib_uverbs_attr *room = soft_attr(call, UVERBS_ATTR_CORE_OUT);
    struct soft_events *events;
    int fd;
    int error;

    if (room == NULL || room->len < sizeof(answer))
        return -ENOSPC; /* nobody would learn the descriptor */
    error = make_channel(SOFT_COMPLETIONS, &events, &fd);
    if (error != 0)
        return error;
    answer.fd = (uint32_t)fd;
    error = soft_out(call, UVERBS_ATTR_CORE_OUT, &answer, sizeof(answer));
    if (error != 0)
        discard(fd);
    return error;
}
