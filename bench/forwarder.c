/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CPU thread that rings doorbells for kernels; see forwarder.h.
 */
#include "forwarder.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define QUEUES_MAX 256u

/* Rounds without news before it lets others have the core, where there may be no other. */
#define IDLE_ROUNDS 1000u

struct forwarder {
    pthread_t thread;
    pthread_mutex_t mutex; /* of the queues; held for a round */
    struct db_queue *queues[QUEUES_MAX];
    unsigned count;
    bool stop; /* atomic */
};

/* How many doorbells it forwarded. */
static unsigned forward_all(struct forwarder *forwarder)
{
    unsigned rung = 0;

    pthread_mutex_lock(&forwarder->mutex);
    for (unsigned i = 0; i < forwarder->count; i++)
        rung += db_queue_forward(forwarder->queues[i]) == 1;
    pthread_mutex_unlock(&forwarder->mutex);
    return rung;
}

static void *run(void *argument)
{
    struct forwarder *forwarder = argument;

    for (unsigned idle = 0; !__atomic_load_n(&forwarder->stop, __ATOMIC_RELAXED);) {
        idle = forward_all(forwarder) ? 0 : idle + 1;
        if (idle % IDLE_ROUNDS == IDLE_ROUNDS - 1)
            sched_yield();
    }
    return NULL;
}

struct forwarder *forwarder_start(void)
{
    struct forwarder *forwarder = calloc(1, sizeof(*forwarder));

    if (!forwarder)
        return NULL;
    pthread_mutex_init(&forwarder->mutex, NULL);
    if (pthread_create(&forwarder->thread, NULL, run, forwarder)) {
        free(forwarder);
        return NULL;
    }
    return forwarder;
}

void forwarder_stop(struct forwarder *forwarder)
{
    if (!forwarder)
        return;
    __atomic_store_n(&forwarder->stop, true, __ATOMIC_RELAXED);
    pthread_join(forwarder->thread, NULL);
    pthread_mutex_destroy(&forwarder->mutex);
    free(forwarder);
}

int forwarder_add(struct forwarder *forwarder, struct db_queue *queue)
{
    int error = -ENOSPC;

    pthread_mutex_lock(&forwarder->mutex);
    if (forwarder->count < QUEUES_MAX) {
        forwarder->queues[forwarder->count++] = queue;
        error = 0;
    }
    pthread_mutex_unlock(&forwarder->mutex);
    return error;
}

void forwarder_remove(struct forwarder *forwarder, struct db_queue *queue)
{
    pthread_mutex_lock(&forwarder->mutex);
    for (unsigned i = 0; i < forwarder->count; i++)
        if (forwarder->queues[i] == queue)
            forwarder->queues[i--] = forwarder->queues[--forwarder->count];
    pthread_mutex_unlock(&forwarder->mutex);
}
