/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs by DEVX; see devx_pair.h. Fields of commands are put bit by bit, so that the device's
 * accessors have an independent partner.
 */
#include "devx_pair.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

uint64_t devx_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* ---- PRM commands ---- */

static void put(uint8_t *structure, enum m5_prm_field field, uint64_t value)
{
    for (uint32_t i = 0; i < M5_PRM_WIDTH(field); i++) {
        uint32_t bit = M5_PRM_BIT(field) + i;
        uint8_t mask = (uint8_t)(0x80 >> bit % 8);
        structure[bit / 8] &= (uint8_t)~mask;
        if (value >> (M5_PRM_WIDTH(field) - 1 - i) & 1)
            structure[bit / 8] |= mask;
    }
}

static uint32_t get(const uint8_t *structure, enum m5_prm_field field)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < M5_PRM_WIDTH(field); i++) {
        uint32_t bit = M5_PRM_BIT(field) + i;
        value = value << 1 | ((uint32_t)structure[bit / 8] >> (7 - bit % 8) & 1u);
    }
    return value;
}

static void check_answer(const char *command, int failed, const uint8_t *out)
{
    CHECK(!failed, "%s: %s, status 0x%x, syndrome 0x%x", command, strerror(errno),
          get(out, m5_mbox_out_status), get(out, m5_mbox_out_syndrome));
}

struct devx_options devx_defaults(void)
{
    return (struct devx_options){
        .sq_depth_log2 = 6,
        .rq_depth_log2 = 4,
        .rq_stride_log2 = 6,
        .cq_depth_log2 = 7,
        .cqe_bytes = 64,
        .remote_read = true,
        .remote_write = true,
        .remote_atomic = true,
        .retry_count = 7,
        .rnr_retry = 7,
        .ack_timeout = 14,
        .min_rnr_timer = 1,
    };
}

/* ---- Completion queues ---- */

static void create_cq(const struct devx_pair *pair, const struct devx_end *end, struct devx_cq *cq,
                      bool is_send)
{
    const struct devx_options *options = &pair->options;
    uint8_t in[m5_create_cq_in_bytes] = {0}, out[m5_create_cq_out_bytes] = {0};
    uint8_t *cqc = in + m5_create_cq_in_cq_context;
    uint32_t eqn;

    CHECK(mlx5dv_devx_query_eqn(pair->context, 0, &eqn) == 0, "query_eqn: %s", strerror(errno));
    put(in, m5_mbox_in_opcode, M5_CMD_CREATE_CQ);
    put(in, m5_create_cq_in_cq_umem_id, end->umem->umem_id);
    put(in, m5_create_cq_in_cq_umem_offset, (uint64_t)(cq->ring - end->memory));
    put(in, m5_create_cq_in_cq_umem_valid, 1);
    put(cqc, m5_cqc_dbr_umem_valid, 1);
    put(cqc, m5_cqc_dbr_umem_id, end->umem->umem_id);
    put(cqc, m5_cqc_dbr_addr, (uint64_t)(cq->record - end->memory));
    put(cqc, m5_cqc_log_cq_size, cq->depth_log2);
    put(cqc, m5_cqc_cqe_sz, cq->cqe_bytes == 128 ? M5_CQC_CQE_128 : M5_CQC_CQE_64);
    put(cqc, m5_cqc_cc, is_send && options->collapsed);
    put(cqc, m5_cqc_oi, is_send && options->ignore_overrun);
    put(cqc, m5_cqc_uar_page, pair->uar->page_id);
    put(cqc, m5_cqc_c_eqn_or_apu_element, eqn);
    cq->object = mlx5dv_devx_obj_create(pair->context, in, sizeof(in), out, sizeof(out));
    check_answer("CREATE_CQ", !cq->object, out);
    cq->cqn = get(out, m5_create_cq_out_cqn);
}

/* As software does with a new ring: no slot looks written. */
static void empty_cq(struct devx_cq *cq)
{
    memset(cq->ring, 0xf0 | M5_CQE_OWNER, (size_t)cq->cqe_bytes << cq->depth_log2);
    cq->polled = 0;
}

const uint8_t *devx_slot(const struct devx_cq *cq, uint64_t count)
{
    uint64_t slot = count & ((1ull << cq->depth_log2) - 1);
    return cq->ring + (slot + 1) * cq->cqe_bytes - 64;
}

struct cqe devx_poll(struct devx_cq *cq)
{
    const uint8_t *at = devx_slot(cq, cq->polled);
    uint64_t start = 0;

    for (uint32_t tries = 0; !cqe_is_there(at, cq->depth_log2, cq->polled); tries++) {
        if (tries % 1024 != 1023)
            continue;
        if (start == 0)
            start = devx_now_ns();
        CHECK(devx_now_ns() - start < DEVX_PATIENCE_NS, "CQE %llu of CQ 0x%x never came",
              (unsigned long long)cq->polled, cq->cqn);
        sched_yield();
    }
    struct cqe cqe = cqe_read(at);
    cq->polled++;
    __atomic_store_n((uint32_t *)(void *)cq->record,
                     __builtin_bswap32((uint32_t)cq->polled & 0xffffff), __ATOMIC_RELEASE);
    return cqe;
}

void devx_expect_none(const struct devx_cq *cq, uint32_t milliseconds)
{
    uint64_t end = devx_now_ns() + milliseconds * 1000000ull;
    while (devx_now_ns() < end) {
        CHECK(!cqe_is_there(devx_slot(cq, cq->polled), cq->depth_log2, cq->polled),
              "CQE %llu of CQ 0x%x came unasked", (unsigned long long)cq->polled, cq->cqn);
        sched_yield();
    }
}

/* ---- Queue pairs ---- */

/* Lays the end's memory out: CQ rings, receive ring, send ring, records, payload. */
static void lay_out(const struct devx_pair *pair, struct devx_end *end)
{
    const struct devx_options *options = &pair->options;
    size_t cq_bytes = (size_t)options->cqe_bytes << options->cq_depth_log2;
    size_t rq_bytes = (size_t)1 << (options->rq_depth_log2 + options->rq_stride_log2);
    size_t sq_bytes = (size_t)64 << options->sq_depth_log2;
    struct devx_cq *cqs[2] = {&end->send_cq, &end->recv_cq};

    end->memory_bytes = (2 * cq_bytes + rq_bytes + sq_bytes + 4096 + 4095) / 4096 * 4096;
    uint8_t *at = mmap(NULL, end->memory_bytes + DEVX_PAYLOAD_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED, "mmap: %s", strerror(errno));
    end->memory = at;
    end->payload = at + end->memory_bytes;
    end->rq = at;
    end->sq = at + rq_bytes;
    at += rq_bytes + sq_bytes;
    for (int i = 0; i < 2; i++) {
        cqs[i]->ring = at;
        cqs[i]->depth_log2 = options->cq_depth_log2;
        cqs[i]->cqe_bytes = options->cqe_bytes;
        empty_cq(cqs[i]);
        at += cq_bytes;
    }
    end->record = at;
    end->send_cq.record = at + 64;
    end->recv_cq.record = at + 128;
}

static void create_end(const struct devx_pair *pair, struct devx_end *end, uint32_t user_index)
{
    const struct devx_options *options = &pair->options;
    uint8_t in[m5_create_qp_in_bytes] = {0}, out[m5_create_qp_out_bytes] = {0};
    uint8_t *qpc = in + m5_create_qp_in_qpc;

    lay_out(pair, end);
    end->user_index = user_index;
    end->umem =
        mlx5dv_devx_umem_reg(pair->context, end->memory, end->memory_bytes, IBV_ACCESS_LOCAL_WRITE);
    CHECK(end->umem, "umem_reg: %s", strerror(errno));
    end->mr = ibv_reg_mr(pair->pd, end->payload, DEVX_PAYLOAD_BYTES,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_ATOMIC);
    CHECK(end->mr, "ibv_reg_mr: %s", strerror(errno));
    create_cq(pair, end, &end->send_cq, true);
    create_cq(pair, end, &end->recv_cq, false);

    put(in, m5_mbox_in_opcode, M5_CMD_CREATE_QP);
    put(in, m5_create_qp_in_wq_umem_id, end->umem->umem_id);
    put(in, m5_create_qp_in_wq_umem_offset, (uint64_t)(end->rq - end->memory));
    put(in, m5_create_qp_in_wq_umem_valid, 1);
    put(qpc, m5_qpc_st, M5_QPC_ST_RC);
    put(qpc, m5_qpc_pm_state, M5_QPC_PM_MIGRATED);
    put(qpc, m5_qpc_pd, pair->pdn);
    put(qpc, m5_qpc_log_rq_size, options->rq_depth_log2);
    put(qpc, m5_qpc_log_rq_stride, options->rq_stride_log2 - 4);
    put(qpc, m5_qpc_log_sq_size, options->sq_depth_log2);
    put(qpc, m5_qpc_uar_page, pair->uar->page_id);
    put(qpc, m5_qpc_user_index, user_index);
    put(qpc, m5_qpc_cqn_snd, end->send_cq.cqn);
    put(qpc, m5_qpc_cqn_rcv, end->recv_cq.cqn);
    put(qpc, m5_qpc_dbr_addr, (uint64_t)(end->record - end->memory));
    put(qpc, m5_qpc_dbr_umem_id, end->umem->umem_id);
    put(qpc, m5_qpc_dbr_umem_valid, 1);
    end->object = mlx5dv_devx_obj_create(pair->context, in, sizeof(in), out, sizeof(out));
    check_answer("CREATE_QP", !end->object, out);
    end->qpn = get(out, m5_create_qp_out_qpn);
}

static void modify(struct devx_end *end, uint8_t *in, size_t in_bytes, enum m5_prm_opcode opcode)
{
    uint8_t out[m5_mbox_out_bytes] = {0};
    char name[32];

    put(in, m5_mbox_in_opcode, opcode);
    put(in, m5_rst2init_qp_in_qpn, end->qpn);
    int failed = mlx5dv_devx_obj_modify(end->object, in, in_bytes, out, sizeof(out));
    snprintf(name, sizeof(name), "PRM command 0x%x", opcode);
    check_answer(name, failed, out);
}

void devx_move(struct devx_end *end, enum m5_prm_opcode opcode)
{
    uint8_t in[m5_mbox_in_bytes] = {0};
    modify(end, in, sizeof(in), opcode);
}

void devx_connect(const struct devx_pair *pair, struct devx_end *end, uint32_t peer_qpn)
{
    static const enum m5_prm_opcode steps[] = {M5_CMD_RST2INIT_QP, M5_CMD_INIT2RTR_QP,
                                               M5_CMD_RTR2RTS_QP};
    const struct devx_options *options = &pair->options;
    uint8_t in[m5_rst2init_qp_in_bytes] = {0};
    uint8_t *qpc = in + m5_rst2init_qp_in_qpc;
    uint8_t *path = qpc + m5_qpc_primary_address_path;

    put(qpc, m5_qpc_pm_state, M5_QPC_PM_MIGRATED);
    put(qpc, m5_qpc_rre, options->remote_read);
    put(qpc, m5_qpc_rwe, options->remote_write);
    put(qpc, m5_qpc_rae, options->remote_atomic);
    put(qpc, m5_qpc_atomic_mode, options->remote_atomic ? M5_QPC_ATOMIC_UP_TO_8 : 0);
    put(qpc, m5_qpc_mtu, 3);
    put(qpc, m5_qpc_log_msg_max, 30);
    put(qpc, m5_qpc_remote_qpn, peer_qpn);
    put(qpc, m5_qpc_log_rra_max, 4);
    put(qpc, m5_qpc_log_sra_max, 4);
    put(qpc, m5_qpc_min_rnr_nak, options->min_rnr_timer);
    put(qpc, m5_qpc_retry_count, options->retry_count);
    put(qpc, m5_qpc_rnr_retry, options->rnr_retry);
    put(path, m5_ads_ack_timeout, options->ack_timeout);
    put(path, m5_ads_vhca_port_num, 1);
    put(path, m5_ads_src_addr_index, 3);
    for (int i = 0; i < 3; i++)
        modify(end, in, sizeof(in), steps[i]);
}

uint32_t devx_query(const struct devx_end *end, enum m5_prm_field field)
{
    uint8_t in[m5_query_qp_in_bytes] = {0}, out[m5_query_qp_out_bytes] = {0};

    put(in, m5_mbox_in_opcode, M5_CMD_QUERY_QP);
    put(in, m5_query_qp_in_qpn, end->qpn);
    int failed = mlx5dv_devx_obj_query(end->object, in, sizeof(in), out, sizeof(out));
    check_answer("QUERY_QP", failed, out);
    return get(out + m5_query_qp_out_qpc, field);
}

/* ---- The pair ---- */

static struct ibv_context *open_device(void)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;

    CHECK(list, "ibv_get_device_list: %s", strerror(errno));
    for (int i = 0; list[i] && !context; i++)
        if (strcmp(ibv_get_device_name(list[i]), "mlx5_soft0") == 0)
            context = mlx5dv_open_device(list[i], &attr);
    CHECK(context, "no device mlx5_soft0 that opens with DEVX: %s", strerror(errno));
    ibv_free_device_list(list);
    return context;
}

void devx_start(struct devx_pair *pair, const struct devx_options *options)
{
    *pair = (struct devx_pair){.options = *options, .context = open_device()};
    pair->pd = ibv_alloc_pd(pair->context);
    CHECK(pair->pd, "ibv_alloc_pd: %s", strerror(errno));
    struct mlx5dv_pd pd;
    struct mlx5dv_obj object = {.pd = {.in = pair->pd, .out = &pd}};
    CHECK(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD) == 0, "mlx5dv_init_obj: %s", strerror(errno));
    pair->pdn = pd.pdn;
    pair->uar = mlx5dv_devx_alloc_uar(pair->context, MLX5DV_UAR_ALLOC_TYPE_BF);
    CHECK(pair->uar, "devx_alloc_uar: %s", strerror(errno));
    create_end(pair, &pair->a, DEVX_USER_INDEX_A);
    create_end(pair, &pair->b, DEVX_USER_INDEX_B);
    devx_connect(pair, &pair->a, pair->b.qpn);
    devx_connect(pair, &pair->b, pair->a.qpn);
}

static void destroy_end(struct devx_end *end)
{
    CHECK(mlx5dv_devx_obj_destroy(end->object) == 0, "destroy QP: %s", strerror(errno));
    CHECK(mlx5dv_devx_obj_destroy(end->send_cq.object) == 0, "destroy CQ: %s", strerror(errno));
    CHECK(mlx5dv_devx_obj_destroy(end->recv_cq.object) == 0, "destroy CQ: %s", strerror(errno));
    CHECK(mlx5dv_devx_umem_dereg(end->umem) == 0, "umem_dereg: %s", strerror(errno));
    CHECK(ibv_dereg_mr(end->mr) == 0, "ibv_dereg_mr: %s", strerror(errno));
    munmap(end->memory, end->memory_bytes + DEVX_PAYLOAD_BYTES);
}

void devx_destroy(struct devx_pair *pair)
{
    destroy_end(&pair->a);
    destroy_end(&pair->b);
    mlx5dv_devx_free_uar(pair->uar);
    CHECK(ibv_dealloc_pd(pair->pd) == 0, "ibv_dealloc_pd: %s", strerror(errno));
    CHECK(ibv_close_device(pair->context) == 0, "ibv_close_device: %s", strerror(errno));
}

void devx_recover(struct devx_pair *pair)
{
    struct devx_end *ends[2] = {&pair->a, &pair->b};
    for (int i = 0; i < 2; i++) {
        devx_move(ends[i], M5_CMD_2RST_QP);
        memset(ends[i]->record, 0, 8);
        ends[i]->posted = 0;
        ends[i]->recvs = 0;
    }
    devx_connect(pair, &pair->a, pair->b.qpn);
    devx_connect(pair, &pair->b, pair->a.qpn);
}

/* ---- Posting ---- */

uint32_t devx_write_wqe(const struct devx_pair *pair, struct devx_end *end, struct wqe *wqe)
{
    uint32_t index = (uint32_t)end->posted & 0xffff;
    wqe_address(wqe, end->posted, end->qpn);
    wqe_copy(wqe, end->sq, pair->options.sq_depth_log2, end->posted);
    end->posted += wqe_blocks(wqe);
    return index;
}

void devx_ring(const struct devx_pair *pair, const struct devx_end *end, const struct wqe *last)
{
    __atomic_store_n((uint32_t *)(void *)(end->record + 4),
                     __builtin_bswap32((uint32_t)end->posted & 0xffff), __ATOMIC_RELEASE);
    __atomic_store_n((uint64_t *)pair->uar->reg_addr, wqe_doorbell(last), __ATOMIC_RELEASE);
}

uint32_t devx_post(const struct devx_pair *pair, struct devx_end *end, struct wqe *wqe)
{
    uint32_t index = devx_write_wqe(pair, end, wqe);
    devx_ring(pair, end, wqe);
    return index;
}

void devx_post_recv(const struct devx_pair *pair, struct devx_end *end,
                    const struct devx_scatter *list, uint32_t count)
{
    const struct devx_options *options = &pair->options;
    uint64_t slot = end->recvs & ((1ull << options->rq_depth_log2) - 1);
    uint8_t *at = end->rq + (slot << options->rq_stride_log2);
    uint32_t entries = (1u << options->rq_stride_log2) / 16;

    CHECK(count <= entries, "%u entries in a receive WQE of %u", count, entries);
    for (uint32_t i = 0; i < count; i++, at += 16) {
        bytes_put32(at, list[i].bytes);
        bytes_put32(at + 4, list[i].lkey);
        bytes_put64(at + 8, (uintptr_t)list[i].address);
    }
    if (count < entries) {
        memset(at, 0, 16);
        bytes_put32(at + 4, M5_LKEY_END);
    }
    end->recvs++;
    __atomic_store_n((uint32_t *)(void *)end->record,
                     __builtin_bswap32((uint32_t)end->recvs & 0xffff), __ATOMIC_RELEASE);
}

/* ---- What must come ---- */

struct cqe devx_expect(struct devx_end *end, uint32_t opcode, uint32_t index, uint32_t bytes)
{
    struct cqe cqe = devx_poll(&end->send_cq);
    CHECK(cqe.opcode == M5_CQE_REQUESTER, "CQE opcode 0x%x, syndrome 0x%x, for opcode 0x%x",
          cqe.opcode, cqe.syndrome, opcode);
    CHECK(cqe.wqe_counter == index, "counter 0x%x, wanted 0x%x", cqe.wqe_counter, index);
    CHECK(cqe.wqe_opcode == opcode, "WQE opcode 0x%x, wanted 0x%x", cqe.wqe_opcode, opcode);
    CHECK(cqe.qpn == end->qpn, "QPN 0x%x, wanted 0x%x", cqe.qpn, end->qpn);
    CHECK(cqe.user_index == end->user_index, "user index 0x%x, wanted 0x%x", cqe.user_index,
          end->user_index);
    CHECK(cqe.byte_count == bytes, "byte count %u, wanted %u", cqe.byte_count, bytes);
    CHECK(cqe.format == 0, "format %u: inline or compressed", cqe.format);
    return cqe;
}

static void check_error(const struct devx_end *end, const struct cqe *cqe, uint32_t opcode,
                        uint32_t index, uint32_t syndrome)
{
    CHECK(cqe->opcode == opcode, "CQE opcode 0x%x, wanted 0x%x", cqe->opcode, opcode);
    CHECK(cqe->syndrome == syndrome, "syndrome 0x%x, wanted 0x%x", cqe->syndrome, syndrome);
    CHECK(cqe->wqe_counter == index, "counter 0x%x, wanted 0x%x", cqe->wqe_counter, index);
    CHECK(cqe->qpn == end->qpn, "QPN 0x%x, wanted 0x%x", cqe->qpn, end->qpn);
    CHECK(cqe->user_index == end->user_index, "user index 0x%x, wanted 0x%x", cqe->user_index,
          end->user_index);
}

void devx_expect_error(struct devx_end *end, uint32_t opcode, uint32_t index, uint32_t syndrome)
{
    struct cqe cqe = devx_poll(&end->send_cq);
    check_error(end, &cqe, M5_CQE_REQUESTER_ERROR, index, syndrome);
    CHECK(cqe.wqe_opcode == opcode, "WQE opcode 0x%x, wanted 0x%x", cqe.wqe_opcode, opcode);
}

void devx_expect_recv_error(struct devx_end *end, uint32_t index, uint32_t syndrome)
{
    struct cqe cqe = devx_poll(&end->recv_cq);
    check_error(end, &cqe, M5_CQE_RESPONDER_ERROR, index, syndrome);
}
