/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DEVX: PRM commands (core/prm.h) behind uverbs ioctls. As the kernel does, a command goes through
 * the ioctl for its kind only, and one that names an object names that of its handle.
 */
#include "devx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/mlx5_user_ioctl_cmds.h>

#include "attrs.h"
#include "calls.h"

#define CREATE_MKEY 0x200 /* known by its name alone: what mlx5dv_create_mkey() asks for */

/* One command at work, and the umems that it asked for. */
struct execution {
    const struct soft_call *call;
    struct soft_umem *umems[SOFT_QUEUE_UMEMS];
    unsigned count;
};

static const struct prm_umem *find_umem(void *context, uint32_t id)
{
    struct execution *at = context;
    struct soft_umem *umem = soft_object_find(at->call->context, SOFT_UMEM, id);

    if (umem == NULL || at->count == SOFT_QUEUE_UMEMS)
        return NULL;
    at->umems[at->count++] = umem;
    return &umem->memory;
}

static uint32_t word_of(const void *command, unsigned index)
{
    uint8_t bytes[4];

    memcpy(bytes, (const uint8_t *)command + 4 * (size_t)index, sizeof(bytes));
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static int execute(struct execution *at, const void *in, size_t in_bytes, void *out,
                   size_t out_bytes, struct prm_result *result)
{
    struct prm_client client = {
        .nic = nic_hold(soft_device()),
        .context = at,
        .umem = find_umem,
        .owner_uid = 1,
    };
    int error = prm_execute(&client, in, in_bytes, out, out_bytes, result);

    nic_release(soft_device());
    if (error == -EREMOTEIO)
        soft_debug("PRM command %#x: status %#x, syndrome %#x: %s", word_of(in, 0) >> 16,
                   word_of(out, 0) >> 24, word_of(out, 1), prm_syndrome_text(word_of(out, 1)));
    return error;
}

/* Finds the command and the room for its answer. -EINVAL or -EOPNOTSUPP when the ioctl may not
 * carry it. `methods` is a set of 1 << enum prm_method. */
static int read_command(const struct soft_call *call, uint16_t in_id, uint16_t out_id,
                        unsigned methods, const void **in, size_t *in_bytes, void **out,
                        size_t *out_bytes)
{
    enum prm_method method;

    *in = soft_in_bytes(call, in_id, in_bytes);
    *out = soft_out_bytes(call, out_id, out_bytes);
    if (!call->context->devx)
        return soft_refuse(EINVAL, "DEVX: the context was opened without it");
    if (*in == NULL || *out == NULL || *in_bytes < 16 || *out_bytes < 16)
        return soft_refuse(EINVAL, "DEVX: a command and its answer have 16 bytes at least");
    method = prm_method_of(*in, *in_bytes);
    if (method == PRM_UNKNOWN && word_of(*in, 0) >> 16 == CREATE_MKEY)
        return soft_refuse(EOPNOTSUPP, "DEVX: CREATE_MKEY (mlx5dv_create_mkey) is not served");
    if (!(methods & 1u << method))
        return soft_refuse(method == PRM_UNKNOWN ? EOPNOTSUPP : EINVAL,
                           method == PRM_UNKNOWN ? "DEVX: PRM command %#x is not served"
                                                 : "DEVX: PRM command %#x needs another ioctl",
                           word_of(*in, 0) >> 16);
    return 0;
}

int soft_devx_general(struct soft_call *call)
{
    struct execution at = {.call = call};
    struct prm_result result;
    size_t in_bytes, out_bytes;
    const void *in;
    void *out;
    int error = read_command(call, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT,
                             1u << PRM_GENERAL, &in, &in_bytes, &out, &out_bytes);

    return error != 0 ? error : execute(&at, in, in_bytes, out, out_bytes, &result);
}

int soft_devx_query_eqn(struct soft_call *call)
{
    const uint32_t eqn = 0;

    if (soft_in_number(call, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, 0) != 0)
        return soft_refuse(EINVAL, "QUERY_EQN: there is completion vector 0 only");
    return soft_out(call, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, &eqn, sizeof(eqn));
}

/* DESTROY_QP and DESTROY_CQ: opcode in word 0, number in word 2. */
static int execute_destroy(const struct soft_call *call, enum prm_object object, uint32_t number)
{
    const uint32_t opcode = object == PRM_QP ? 0x501 : 0x401;
    struct execution at = {.call = call};
    uint8_t in[16] = {(uint8_t)(opcode >> 8), (uint8_t)opcode};
    uint8_t out[16];
    struct prm_result result;

    in[9] = (uint8_t)(number >> 16);
    in[10] = (uint8_t)(number >> 8);
    in[11] = (uint8_t)number;
    return execute(&at, in, sizeof(in), out, sizeof(out), &result) == 0 ? 0 : -EBUSY;
}

int soft_devx_create(struct soft_call *call)
{
    struct execution at = {.call = call};
    struct soft_devx_queue *queue;
    struct prm_result result = {PRM_NO_OBJECT, 0};
    size_t in_bytes, out_bytes;
    const void *in;
    void *out;
    int error = read_command(call, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN,
                             MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, 1u << PRM_CREATE, &in, &in_bytes,
                             &out, &out_bytes);

    if (error != 0)
        return error;
    queue = calloc(1, sizeof(*queue));
    if (queue == NULL)
        return -ENOMEM;
    error = execute(&at, in, in_bytes, out, out_bytes, &result);
    if (error != 0)
        goto no_queue;
    queue->object.number = result.number;
    error = soft_object_add(call->context, &queue->object,
                            result.object == PRM_QP ? SOFT_DEVX_QP : SOFT_DEVX_CQ);
    if (error != 0)
        goto no_handle;
    error = soft_out_number(call, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, queue->object.handle);
    if (error != 0)
        goto no_answer;
    for (unsigned i = 0; i < at.count; i++) {
        queue->umems[i] = at.umems[i];
        queue->umems[i]->users++;
    }
    return 0;

no_answer:
    soft_object_remove(call->context, queue->object.handle);
no_handle:
    execute_destroy(call, result.object, result.number);
no_queue:
    free(queue);
    return error;
}

int soft_devx_destroy(struct soft_context *context, struct soft_object *object)
{
    struct soft_devx_queue *queue = (struct soft_devx_queue *)object;
    const struct soft_call call = {.context = context};
    int error =
        execute_destroy(&call, object->kind == SOFT_DEVX_QP ? PRM_QP : PRM_CQ, object->number);

    if (error != 0)
        return error;
    for (unsigned i = 0; i < SOFT_QUEUE_UMEMS && queue->umems[i] != NULL; i++)
        queue->umems[i]->users--;
    free(queue);
    return 0;
}

/* A handle that DEVX may modify or query: its own queues, and those of the verbs interface. */
static const struct soft_object *find_queue(const struct soft_call *call, uint16_t id)
{
    static const enum soft_kind kinds[] = {SOFT_DEVX_QP, SOFT_DEVX_CQ, SOFT_QP, SOFT_CQ};
    const struct soft_object *found = NULL;

    for (size_t i = 0; found == NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        found = soft_in_object(call, id, kinds[i]);
    return found;
}

int soft_devx_destroy_call(struct soft_call *call)
{
    const uint16_t id = MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE;
    struct soft_object *queue = soft_in_object(call, id, SOFT_DEVX_QP);

    if (queue == NULL)
        queue = soft_in_object(call, id, SOFT_DEVX_CQ);
    return queue == NULL ? -EINVAL : soft_object_destroy(call->context, queue);
}

/* Opcodes from 0x400 up to 0x4ff are a CQ's, those from 0x500 a QP's; word 2 holds the number. */
static int check_subject(const struct soft_object *queue, const void *in)
{
    const bool queue_is_cq = queue->kind == SOFT_CQ || queue->kind == SOFT_DEVX_CQ;
    const bool command_is_cq = word_of(in, 0) >> 24 == 0x4;

    if (queue_is_cq != command_is_cq || (word_of(in, 2) & 0xffffff) != queue->number)
        return soft_refuse(EINVAL, "DEVX: PRM command %#x is for another object than its handle's",
                           word_of(in, 0) >> 16);
    return 0;
}

static int execute_on(struct soft_call *call, uint16_t handle_id, uint16_t in_id, uint16_t out_id,
                      enum prm_method method)
{
    const struct soft_object *queue = find_queue(call, handle_id);
    struct execution at = {.call = call};
    struct prm_result result;
    size_t in_bytes, out_bytes;
    const void *in;
    void *out;
    int error;

    if (queue == NULL)
        return soft_refuse(EINVAL, "DEVX: no such object");
    error = read_command(call, in_id, out_id, 1u << method, &in, &in_bytes, &out, &out_bytes);
    if (error == 0)
        error = check_subject(queue, in);
    return error != 0 ? error : execute(&at, in, in_bytes, out, out_bytes, &result);
}

int soft_devx_modify(struct soft_call *call)
{
    return execute_on(call, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE,
                      MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT,
                      PRM_MODIFY);
}

int soft_devx_query(struct soft_call *call)
{
    return execute_on(call, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
                      MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, PRM_QUERY);
}
