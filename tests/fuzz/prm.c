/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes PRM commands, as a program may hand them over. The input is a list of commands: an
 * opcode's index, a count of edits, and the edits (offset, value) to a command that was right
 * before; index 0 takes the bytes as they are. After each command the answer must be one of those
 * that prm.h states, and what it created must lie inside the program's memory; at the end
 * everything can be destroyed and nothing is left.
 */
#include <errno.h>
#include <string.h>

#include "../unit/prm_device.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define MAX_OBJECTS 32

static const enum m5_prm_opcode opcodes[] = {
    0, /* raw */
    M5_CMD_CREATE_CQ,
    M5_CMD_CREATE_QP,
    M5_CMD_RST2INIT_QP,
    M5_CMD_INIT2INIT_QP,
    M5_CMD_INIT2RTR_QP,
    M5_CMD_RTR2RTS_QP,
    M5_CMD_RTS2RTS_QP,
    M5_CMD_SQD_RTS_QP,
    M5_CMD_2ERR_QP,
    M5_CMD_2RST_QP,
    M5_CMD_QUERY_QP,
    M5_CMD_DESTROY_QP,
    M5_CMD_MODIFY_CQ,
    M5_CMD_QUERY_CQ,
    M5_CMD_DESTROY_CQ,
    M5_CMD_QUERY_HCA_CAP,
    M5_CMD_QUERY_ROCE_ADDRESS,
    M5_CMD_QUERY_NIC_VPORT_CONTEXT,
};

static struct prm_result objects[MAX_OBJECTS];
static size_t object_count;

/* The newest object of that kind, or 0. */
static uint32_t newest(enum prm_object kind)
{
    for (size_t i = object_count; i-- > 0;)
        if (objects[i].object == kind)
            return objects[i].number;
    return 0;
}

static void build(struct command *command, enum m5_prm_opcode opcode)
{
    switch (opcode) {
    case M5_CMD_CREATE_CQ:
        build_create_cq(command);
        break;
    case M5_CMD_CREATE_QP:
        build_create_qp(command, newest(PRM_CQ), newest(PRM_CQ));
        break;
    case M5_CMD_MODIFY_CQ:
    case M5_CMD_QUERY_CQ:
    case M5_CMD_DESTROY_CQ:
        build_on_cq(command, opcode, newest(PRM_CQ));
        break;
    case M5_CMD_QUERY_HCA_CAP:
    case M5_CMD_QUERY_ROCE_ADDRESS:
    case M5_CMD_QUERY_NIC_VPORT_CONTEXT:
        begin(command, opcode, m5_mbox_in_bytes, sizeof(command->out));
        break;
    default:
        build_on_qp(command, opcode, newest(PRM_QP));
        break;
    }
}

static bool inside(const void *at, uint64_t bytes, const uint8_t *memory, size_t size)
{
    uintptr_t offset = (uintptr_t)at - (uintptr_t)memory;
    return offset <= size && bytes <= size - offset;
}

static void check_cq(const struct nic_cq *cq)
{
    CHECK(cq);
    CHECK(inside(cq->ring, (uint64_t)cq->cqe_bytes << cq->depth_log2, ring_memory, RING_BYTES) ||
          inside(cq->ring, (uint64_t)cq->cqe_bytes << cq->depth_log2, record_memory, RECORD_BYTES));
    CHECK(inside(cq->record, 8, record_memory, RECORD_BYTES) ||
          inside(cq->record, 8, ring_memory, RING_BYTES));
}

static void check_qp(const struct nic_qp *qp)
{
    CHECK(qp && nic_cq_find(nic, qp->send_cqn) && nic_cq_find(nic, qp->recv_cqn));
    CHECK(inside(qp->record, 8, record_memory, RECORD_BYTES) ||
          inside(qp->record, 8, ring_memory, RING_BYTES));
    uint64_t sq_bytes = qp->sq ? (uint64_t)M5_BLOCK_BYTES << qp->sq_depth_log2 : 0;
    uint64_t rq_bytes = qp->rq ? UINT64_C(1) << (qp->rq_depth_log2 + qp->rq_stride_log2) : 0;
    if (qp->sq)
        CHECK(inside(qp->sq, sq_bytes, ring_memory, RING_BYTES) ||
              inside(qp->sq, sq_bytes, record_memory, RECORD_BYTES));
    if (qp->rq)
        CHECK(inside(qp->rq, rq_bytes + sq_bytes, ring_memory, RING_BYTES) ||
              inside(qp->rq, rq_bytes + sq_bytes, record_memory, RECORD_BYTES));
}

/* Keeps the list of objects by what the commands answered. */
static void note(enum prm_method method, const struct prm_result *result)
{
    if (method == PRM_CREATE) {
        CHECK(object_count < MAX_OBJECTS);
        objects[object_count++] = *result;
        if (result->object == PRM_CQ)
            check_cq(nic_cq_find(nic, result->number));
        else
            check_qp(nic_qp_find(nic, result->number));
        return;
    }
    if (method != PRM_DESTROY) {
        CHECK(result->object == PRM_NO_OBJECT);
        return;
    }
    size_t i = 0;
    while (i < object_count &&
           (objects[i].object != result->object || objects[i].number != result->number))
        i++;
    CHECK(i < object_count);
    memmove(&objects[i], &objects[i + 1], (--object_count - i) * sizeof(objects[0]));
}

static void run(struct command *command)
{
    enum prm_method method = prm_method_of(command->in, command->in_bytes);
    if (method == PRM_CREATE && object_count == MAX_OBJECTS)
        return;
    int rc = execute(command);
    if (rc == 0) {
        CHECK(method != PRM_UNKNOWN);
        note(method, &command->result);
        return;
    }
    CHECK(command->result.object == PRM_NO_OBJECT);
    if (rc == -EINVAL) {
        CHECK(command->in_bytes < m5_mbox_in_bytes || command->out_bytes < m5_mbox_out_bytes);
        return;
    }
    uint64_t syndrome = get(command->out, m5_mbox_out_syndrome);
    CHECK(rc == -EREMOTEIO && get(command->out, m5_mbox_out_status) != M5_STAT_OK);
    CHECK(syndrome > PRM_SYN_BASE && syndrome < PRM_SYN_CORE); /* no check was left to the core */
}

static void destroy_all(void)
{
    for (size_t pass = 0; pass < 2; pass++) /* QPs first: they hold on to the CQs */
        for (size_t i = object_count; i-- > 0;) {
            struct command command;
            if ((objects[i].object == PRM_QP) != (pass == 0))
                continue;
            if (pass == 0)
                build_on_qp(&command, M5_CMD_DESTROY_QP, objects[i].number);
            else
                build_on_cq(&command, M5_CMD_DESTROY_CQ, objects[i].number);
            run(&command);
        }
    CHECK(object_count == 0);
    CHECK(nic->first_on_uar[uar_id - NIC_FIRST_UAR] == 0 && nic->pd_users[pdn] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!nic)
        device_open();
    for (size_t at = 0; at + 2 <= bytes;) {
        struct command command;
        uint8_t index = data[at] % COUNT(opcodes);
        size_t edits = data[at + 1];
        at += 2;
        if (index == 0) { /* `edits` bytes of raw input, and as many of output */
            begin(&command, 0, edits, edits);
            if (edits > bytes - at)
                edits = bytes - at;
            memcpy(command.in, data + at, edits);
            at += edits;
        } else {
            build(&command, opcodes[index]);
            for (edits %= 8; edits > 0 && at + 3 <= bytes; edits--, at += 3) {
                size_t offset = (size_t)(data[at] << 8 | data[at + 1]) % sizeof(command.in);
                command.in[offset] = data[at + 2];
            }
        }
        run(&command);
    }
    destroy_all();
    return 0;
}
