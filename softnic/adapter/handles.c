/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts and their objects by handle (verbs.h). */
#include <errno.h>
#include <stdlib.h>

#include "queues.h"

struct soft_context *soft_context_open(void)
{
    return calloc(1, sizeof(struct soft_context));
}

int soft_object_add(struct soft_context *context, struct soft_object *object, enum soft_kind kind)
{
    uint32_t slot = context->search_from;

    while (slot < context->capacity && context->objects[slot] != NULL)
        slot++;
    if (slot == context->capacity) {
        uint32_t capacity = context->capacity == 0 ? 16 : 2 * context->capacity;
        struct soft_object **objects =
            realloc(context->objects, capacity * sizeof(context->objects[0]));
        if (objects == NULL)
            return -ENOMEM;
        for (uint32_t i = context->capacity; i < capacity; i++)
            objects[i] = NULL;
        context->objects = objects;
        context->capacity = capacity;
    }
    object->kind = kind;
    object->handle = slot + 1;
    context->search_from = slot + 1;
    context->objects[slot] = object;
    return 0;
}

void soft_object_remove(struct soft_context *context, uint32_t handle)
{
    context->objects[handle - 1] = NULL;
    if (handle - 1 < context->search_from)
        context->search_from = handle - 1;
}

void *soft_object_find(const struct soft_context *context, enum soft_kind kind, uint64_t handle)
{
    struct soft_object *object;

    if (handle == 0 || handle > context->capacity)
        return NULL;
    object = context->objects[handle - 1];
    return object != NULL && object->kind == kind ? object : NULL;
}

int soft_object_destroy(struct soft_context *context, struct soft_object *object)
{
    static int (*const destroy[SOFT_KINDS])(struct soft_context *, struct soft_object *) = {
        [SOFT_QP] = soft_qp_destroy,   [SOFT_DEVX_QP] = soft_devx_destroy,
        [SOFT_CQ] = soft_cq_destroy,   [SOFT_DEVX_CQ] = soft_devx_destroy,
        [SOFT_MR] = soft_mr_destroy,   [SOFT_UMEM] = soft_umem_destroy,
        [SOFT_UAR] = soft_uar_destroy, [SOFT_PD] = soft_pd_destroy,
    };
    uint32_t handle = object->handle;
    int error = destroy[object->kind](context, object);

    if (error == 0)
        soft_object_remove(context, handle);
    return error;
}

void soft_context_close(struct soft_context *context)
{
    pthread_mutex_lock(&soft_lock);
    for (int kind = 0; soft_device() != NULL && kind < SOFT_KINDS; kind++) {
        for (uint32_t i = 0; i < context->capacity; i++) {
            struct soft_object *object = context->objects[i];
            if (object == NULL || object->kind != (enum soft_kind)kind)
                continue;
            if (soft_object_destroy(context, object) != 0)
                soft_debug("object %u of kind %d is still in use as its context closes",
                           object->handle, kind);
        }
    }
    if (context->async != NULL)
        soft_events_put(context->async);
    free(context->objects);
    free(context);
    soft_device_drop();
    pthread_mutex_unlock(&soft_lock);
}

void soft_context_forget(struct soft_context *context)
{
    for (uint32_t i = 0; i < context->capacity; i++) {
        struct soft_object *object = context->objects[i];
        if (object != NULL && object->kind == SOFT_CQ) {
            soft_source_forget(&((struct soft_cq *)object)->completions);
            soft_source_forget(&((struct soft_cq *)object)->async);
        } else if (object != NULL && object->kind == SOFT_QP) {
            soft_source_forget(&((struct soft_qp *)object)->async);
        }
        free(object);
    }
    if (context->async != NULL)
        soft_events_put(context->async);
    free(context->objects);
    free(context);
}
