/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device and the commands of the PRM tests; see prm_device.h.
 */
#include "prm_device.h"

#include <errno.h>
#include <string.h>

#include <core/engine.h>

void put(uint8_t *structure, enum m5_prm_field field, uint64_t value)
{
    for (uint32_t i = 0; i < M5_PRM_WIDTH(field); i++) {
        uint32_t bit = M5_PRM_BIT(field) + i;
        uint8_t mask = (uint8_t)(0x80 >> bit % 8);
        structure[bit / 8] &= (uint8_t)~mask;
        if (value >> (M5_PRM_WIDTH(field) - 1 - i) & 1)
            structure[bit / 8] |= mask;
    }
}

uint64_t get(const uint8_t *structure, enum m5_prm_field field)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < M5_PRM_WIDTH(field); i++) {
        uint32_t bit = M5_PRM_BIT(field) + i;
        value = value << 1 | (structure[bit / 8] >> (7 - bit % 8) & 1);
    }
    return value;
}

/* ---- The device ---- */

_Alignas(4096) uint8_t ring_memory[RING_BYTES];
_Alignas(64) uint8_t record_memory[RECORD_BYTES];

struct nic *nic;
uint32_t pdn, uar_id;

static struct nic_host *host;
static struct prm_client client;

static const struct prm_umem *find_umem(void *context, uint32_t id)
{
    static const struct prm_umem ring = {ring_memory, RING_BYTES};
    static const struct prm_umem record = {record_memory, RECORD_BYTES};
    static const struct prm_umem odd = {ring_memory, ODD_BYTES};

    CHECK(context == record_memory);
    switch (id) {
    case RING_UMEM:
        return &ring;
    case RECORD_UMEM:
        return &record;
    case ODD_UMEM:
        return &odd;
    default:
        return NULL;
    }
}

void device_open(void)
{
    struct nic_config config = {.poll = NIC_POLL_ADAPTIVE};
    struct nic_callbacks callbacks = {0};
    uint32_t page;

    CHECK(nic_start(&config, &callbacks, &host) == 0);
    nic = nic_hold(host);
    client = (struct prm_client){.nic = nic, .context = record_memory, .umem = find_umem};
    CHECK(nic_pd_alloc(nic, &pdn) == 0);
    CHECK(nic_uar_alloc(nic, &page) == 0);
    uar_id = NIC_FIRST_UAR + page;
}

void device_close(void)
{
    CHECK(nic_pd_free(nic, pdn) == 0);
    CHECK(nic_uar_free(nic, uar_id - NIC_FIRST_UAR) == 0);
    nic_release(host);
    nic_stop(host);
}

/* ---- Commands ---- */

void begin(struct command *command, enum m5_prm_opcode opcode, size_t in_bytes, size_t out_bytes)
{
    memset(command, 0, sizeof(*command));
    memset(command->out, 0xa5, sizeof(command->out));
    command->in_bytes = in_bytes;
    command->out_bytes = out_bytes;
    put(command->in, m5_mbox_in_opcode, opcode);
}

void build_create_cq(struct command *command)
{
    uint8_t *cqc = command->in + m5_create_cq_in_cq_context;

    begin(command, M5_CMD_CREATE_CQ, m5_create_cq_in_bytes, m5_create_cq_out_bytes);
    put(command->in, m5_create_cq_in_cq_umem_id, RING_UMEM);
    put(command->in, m5_create_cq_in_cq_umem_offset, 4096);
    put(command->in, m5_create_cq_in_cq_umem_valid, 1);
    put(cqc, m5_cqc_dbr_umem_valid, 1);
    put(cqc, m5_cqc_dbr_umem_id, RECORD_UMEM);
    put(cqc, m5_cqc_dbr_addr, 64);
    put(cqc, m5_cqc_log_cq_size, 4);
    put(cqc, m5_cqc_uar_page, uar_id);
}

void build_create_qp(struct command *command, uint32_t send_cqn, uint32_t recv_cqn)
{
    uint8_t *qpc = command->in + m5_create_qp_in_qpc;

    begin(command, M5_CMD_CREATE_QP, m5_create_qp_in_bytes, m5_create_qp_out_bytes);
    put(command->in, m5_create_qp_in_wq_umem_id, RING_UMEM);
    put(command->in, m5_create_qp_in_wq_umem_offset, 8192);
    put(qpc, m5_qpc_st, M5_QPC_ST_RC);
    put(qpc, m5_qpc_pd, pdn);
    put(qpc, m5_qpc_uar_page, uar_id);
    put(qpc, m5_qpc_log_rq_size, 3);
    put(qpc, m5_qpc_log_rq_stride, 2);
    put(qpc, m5_qpc_log_sq_size, 5);
    put(qpc, m5_qpc_cqn_snd, send_cqn);
    put(qpc, m5_qpc_cqn_rcv, recv_cqn);
    put(qpc, m5_qpc_user_index, 0xabcdef);
    put(qpc, m5_qpc_dbr_umem_id, RECORD_UMEM);
    put(qpc, m5_qpc_dbr_addr, 128);
}

void build_on_cq(struct command *command, enum m5_prm_opcode opcode, uint32_t cqn)
{
    begin(command, opcode,
          opcode == M5_CMD_MODIFY_CQ ? m5_modify_cq_in_bytes : m5_query_cq_in_bytes,
          opcode == M5_CMD_QUERY_CQ ? m5_query_cq_out_bytes : m5_mbox_out_bytes);
    put(command->in, m5_query_cq_in_cqn, cqn);
}

void build_on_qp(struct command *command, enum m5_prm_opcode opcode, uint32_t qpn)
{
    bool no_context = opcode == M5_CMD_2ERR_QP || opcode == M5_CMD_2RST_QP ||
                      opcode == M5_CMD_QUERY_QP || opcode == M5_CMD_DESTROY_QP;

    begin(command, opcode, no_context ? m5_query_qp_in_bytes : m5_rst2init_qp_in_bytes,
          opcode == M5_CMD_QUERY_QP ? m5_query_qp_out_bytes : m5_mbox_out_bytes);
    put(command->in, m5_rst2init_qp_in_qpn, qpn);
    if (opcode == M5_CMD_INIT2RTR_QP)
        put(command->in + m5_rst2init_qp_in_qpc, m5_qpc_mtu, 3);
}

int execute(struct command *command)
{
    int rc = prm_execute(&client, command->in, command->in_bytes, command->out, command->out_bytes,
                         &command->result);
    if (rc == 0) {
        CHECK(get(command->out, m5_mbox_out_status) == M5_STAT_OK);
        CHECK(get(command->out, m5_mbox_out_syndrome) == 0);
    }
    return rc;
}

uint32_t create_cq(void)
{
    struct command command;

    build_create_cq(&command);
    CHECK(execute(&command) == 0);
    CHECK(command.result.object == PRM_CQ);
    CHECK(command.result.number == get(command.out, m5_create_cq_out_cqn));
    return command.result.number;
}

void destroy_cq(uint32_t cqn)
{
    struct command command;

    build_on_cq(&command, M5_CMD_DESTROY_CQ, cqn);
    CHECK(execute(&command) == 0);
    CHECK(command.result.object == PRM_CQ && command.result.number == cqn);
    CHECK(!nic_cq_find(nic, cqn));
}

/* ---- Refusals ---- */

/* All that a refused command must leave alone. */
struct snapshot {
    struct nic_qp qps[256];
    struct nic_cq cqs[64];
    uint32_t first_on_uar[NIC_UAR_PAGES], first_cq_on_uar[NIC_UAR_PAGES];
    uint8_t rings[RING_BYTES], records[RECORD_BYTES];
};

static void take_snapshot(struct snapshot *snapshot)
{
    memcpy(snapshot->qps, nic->qps, sizeof(snapshot->qps));
    memcpy(snapshot->cqs, nic->cqs, sizeof(snapshot->cqs));
    memcpy(snapshot->first_on_uar, nic->first_on_uar, sizeof(snapshot->first_on_uar));
    memcpy(snapshot->first_cq_on_uar, nic->first_cq_on_uar, sizeof(snapshot->first_cq_on_uar));
    memcpy(snapshot->rings, ring_memory, sizeof(snapshot->rings));
    memcpy(snapshot->records, record_memory, sizeof(snapshot->records));
}

void refused(struct command *command, enum prm_syndrome syndrome, enum m5_prm_status status)
{
    static struct snapshot before, after;

    take_snapshot(&before);
    int rc = execute(command);
    take_snapshot(&after);
    if (rc != -EREMOTEIO || get(command->out, m5_mbox_out_syndrome) != syndrome) {
        fprintf(stderr, "command 0x%x: %d, \"%s\", wanted \"%s\"\n",
                (unsigned)get(command->in, m5_mbox_in_opcode), rc,
                prm_syndrome_text((uint32_t)get(command->out, m5_mbox_out_syndrome)),
                prm_syndrome_text(syndrome));
        abort();
    }
    CHECK(get(command->out, m5_mbox_out_status) == status);
    CHECK(command->result.object == PRM_NO_OBJECT && command->result.number == 0);
    for (size_t i = m5_mbox_out_bytes / 2; i < command->out_bytes; i++)
        CHECK(command->out[i] == 0);
    CHECK(memcmp(&before, &after, sizeof(before)) == 0);
}

void refused_short(const struct command *good)
{
    struct command command;

    for (size_t bytes = 0; bytes < good->in_bytes; bytes++) {
        command = *good;
        command.in_bytes = bytes;
        if (bytes < m5_mbox_in_bytes)
            CHECK(execute(&command) == -EINVAL);
        else
            refused(&command, PRM_SYN_INPUT_LENGTH, M5_STAT_BAD_INPUT_LEN);
    }
    for (size_t bytes = 0; bytes < good->out_bytes; bytes += bytes < 64 ? 1 : 97) {
        command = *good;
        command.out_bytes = bytes;
        if (bytes < m5_mbox_out_bytes)
            CHECK(execute(&command) == -EINVAL);
        else
            refused(&command, PRM_SYN_OUTPUT_LENGTH, M5_STAT_BAD_OUTPUT_LEN);
    }
}

void refused_each(const struct command *good, const struct spoiler *spoilers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct command command = *good;
        put(command.in + spoilers[i].part, spoilers[i].field, spoilers[i].value);
        refused(&command, spoilers[i].syndrome, spoilers[i].status);
    }
}
