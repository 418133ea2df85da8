/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connected pair of rc_pair.h: set-up in the order that ibv_modify_qp(3) asks for on RoCE, and
 * posting and polling with checks and deadlines. Compiled into every program of tests/interop.
 */
#include "rc_pair.h"

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct rc_options rc_defaults(void)
{
    return (struct rc_options){
        .send_depth = 64,
        .recv_depth = 64,
        .send_sge = 1,
        .recv_sge = 1,
        .qp_access = RC_REMOTE_ALL,
        .mr_access = RC_REMOTE_ALL | IBV_ACCESS_LOCAL_WRITE,
        .buffer_bytes = 65536,
        .timeout = 14,
        .retry_count = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 1,
    };
}

struct ibv_context *rc_open(void)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_context *context = NULL;

    CHECK(list, "ibv_get_device_list: %s", strerror(errno));
    for (int i = 0; i < n && !context; i++) {
        if (strcmp(ibv_get_device_name(list[i]), "mlx5_soft0") == 0) {
            context = ibv_open_device(list[i]);
            CHECK(context, "ibv_open_device: %s", strerror(errno));
        }
    }
    CHECK(context, "mlx5_soft0 is not among the %d devices listed (SOFTNIC=on?)", n);
    ibv_free_device_list(list);
    return context;
}

/* `at`: where the memory should lie; 0: anywhere. */
static struct ibv_mr *memory_at(struct ibv_pd *pd, uintptr_t at, size_t bytes, unsigned int access)
{
    void *memory =
        mmap((void *)at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr;

    CHECK(memory != MAP_FAILED, "mmap of %zu bytes: %s", bytes, strerror(errno));
    CHECK(!at || memory == (void *)at, "mmap at 0x%zx gave %p", (size_t)at, memory);
    mr = ibv_reg_mr(pd, memory, bytes, access);
    CHECK(mr, "ibv_reg_mr of %zu bytes with access 0x%x: %s", bytes, access, strerror(errno));
    return mr;
}

struct ibv_mr *rc_memory(struct ibv_pd *pd, size_t bytes, unsigned int access)
{
    return memory_at(pd, 0, bytes, access);
}

void rc_memory_free(struct ibv_mr *mr)
{
    void *memory = mr->addr;
    size_t bytes = mr->length;

    CHECK(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr: %s", strerror(errno));
    munmap(memory, bytes);
}

static struct ibv_cq *create_cq(struct rc_pair *pair, uint32_t depth, struct ibv_cq_ex **extended)
{
    struct ibv_cq *cq;

    *extended = NULL;
    if (pair->options.extended_cq) {
        struct ibv_cq_init_attr_ex attr = {
            .cqe = depth,
            .channel = pair->channel,
            .wc_flags = IBV_WC_STANDARD_FLAGS,
        };
        *extended = ibv_create_cq_ex(pair->context, &attr);
        CHECK(*extended, "ibv_create_cq_ex of %u entries: %s", depth, strerror(errno));
        return ibv_cq_ex_to_cq(*extended);
    }
    cq = ibv_create_cq(pair->context, (int)depth, NULL, pair->channel, 0);
    CHECK(cq, "ibv_create_cq of %u entries: %s", depth, strerror(errno));
    return cq;
}

static void create_end(struct rc_pair *pair, struct rc_end *end, uintptr_t buffer_at)
{
    const struct rc_options *o = &pair->options;
    struct ibv_qp_init_attr_ex attr = {
        .cap = {.max_send_wr = o->send_depth,
                .max_recv_wr = o->recv_depth,
                .max_send_sge = o->send_sge,
                .max_recv_sge = o->recv_sge,
                .max_inline_data = o->inline_bytes},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = o->signal_all,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = pair->pd,
        .send_ops_flags = o->send_ops,
    };

    end->send_cq = create_cq(pair, o->cq_depth ? o->cq_depth : o->send_depth, &end->send_cq_ex);
    end->recv_cq = create_cq(pair, o->cq_depth ? o->cq_depth : o->recv_depth, &end->recv_cq_ex);
    end->mr = memory_at(pair->pd, buffer_at, o->buffer_bytes, o->mr_access);
    end->buffer = end->mr->addr;
    attr.send_cq = end->send_cq;
    attr.recv_cq = end->recv_cq;
    if (o->send_ops) {
        attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        end->qp = ibv_create_qp_ex(pair->context, &attr);
        end->cap = attr.cap;
    } else {
        struct ibv_qp_init_attr plain = {
            .send_cq = end->send_cq,
            .recv_cq = end->recv_cq,
            .cap = attr.cap,
            .qp_type = IBV_QPT_RC,
            .sq_sig_all = o->signal_all,
        };
        end->qp = ibv_create_qp(pair->pd, &plain);
        end->cap = plain.cap;
    }
    CHECK(end->qp, "creating a QP of %u + %u requests, %u + %u entries, %u inline bytes: %s",
          o->send_depth, o->recv_depth, o->send_sge, o->recv_sge, o->inline_bytes, strerror(errno));
}

void rc_create(struct rc_pair *pair, struct ibv_context *context, const struct rc_options *options)
{
    *pair = (struct rc_pair){.options = *options, .context = context};
    if (!context) {
        pair->context = rc_open();
        pair->owns_context = true;
    }
    pair->pd = ibv_alloc_pd(pair->context);
    CHECK(pair->pd, "ibv_alloc_pd: %s", strerror(errno));
    if (options->channel) {
        pair->channel = ibv_create_comp_channel(pair->context);
        CHECK(pair->channel, "ibv_create_comp_channel: %s", strerror(errno));
    }
    create_end(pair, &pair->a, options->buffers_at);
    create_end(pair, &pair->b,
               options->buffers_at ? options->buffers_at + options->buffer_bytes : 0);
    /* Both count over the end of 24 bits early in each test. */
    pair->a.send_psn = 0xfffffa;
    pair->b.send_psn = 0xfffff0;
}

void rc_to_init(const struct rc_pair *pair, struct rc_end *end)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = 0,
        .port_num = RC_PORT,
        .qp_access_flags = pair->options.qp_access,
    };
    int err = ibv_modify_qp(end->qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    CHECK(err == 0, "QP 0x%x to INIT: %s", end->qp->qp_num, strerror(err));
}

void rc_to_rtr(const struct rc_pair *pair, struct rc_end *end, const struct rc_end *peer,
               uint32_t peer_qpn)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer_qpn,
        .rq_psn = peer->send_psn,
        .max_dest_rd_atomic = 16,
        .min_rnr_timer = pair->options.min_rnr_timer,
        .ah_attr = {.grh = {.sgid_index = RC_GID_INDEX, .hop_limit = 64},
                    .is_global = 1,
                    .port_num = RC_PORT},
    };
    int err = ibv_query_gid(pair->context, RC_PORT, RC_GID_INDEX, &attr.ah_attr.grh.dgid);

    CHECK(err == 0, "ibv_query_gid of index %d: %d", RC_GID_INDEX, err);
    err = ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    CHECK(err == 0, "QP 0x%x to RTR: %s", end->qp->qp_num, strerror(err));
}

void rc_to_rts(const struct rc_pair *pair, struct rc_end *end)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = pair->options.timeout,
        .retry_cnt = pair->options.retry_count,
        .rnr_retry = pair->options.rnr_retry,
        .sq_psn = end->send_psn,
        .max_rd_atomic = 16,
    };
    int err = ibv_modify_qp(end->qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);

    CHECK(err == 0, "QP 0x%x to RTS: %s", end->qp->qp_num, strerror(err));
}

void rc_to_state(struct rc_end *end, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    int err = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);

    CHECK(err == 0, "QP 0x%x to state %d: %s", end->qp->qp_num, (int)state, strerror(err));
}

void rc_connect(struct rc_pair *pair)
{
    rc_to_init(pair, &pair->a);
    rc_to_init(pair, &pair->b);
    rc_to_rtr(pair, &pair->a, &pair->b, pair->b.qp->qp_num);
    rc_to_rtr(pair, &pair->b, &pair->a, pair->a.qp->qp_num);
    rc_to_rts(pair, &pair->a);
    rc_to_rts(pair, &pair->b);
}

void rc_start(struct rc_pair *pair, const struct rc_options *options)
{
    rc_create(pair, NULL, options);
    rc_connect(pair);
}

static void destroy_end(struct rc_end *end)
{
    int err = ibv_destroy_qp(end->qp);

    CHECK(err == 0, "ibv_destroy_qp: %s", strerror(err));
    err = ibv_destroy_cq(end->send_cq);
    CHECK(err == 0, "ibv_destroy_cq: %s", strerror(err));
    err = ibv_destroy_cq(end->recv_cq);
    CHECK(err == 0, "ibv_destroy_cq: %s", strerror(err));
    rc_memory_free(end->mr);
}

void rc_destroy(struct rc_pair *pair)
{
    int err;

    destroy_end(&pair->a);
    destroy_end(&pair->b);
    if (pair->channel) {
        err = ibv_destroy_comp_channel(pair->channel);
        CHECK(err == 0, "ibv_destroy_comp_channel: %s", strerror(err));
    }
    err = ibv_dealloc_pd(pair->pd);
    CHECK(err == 0, "ibv_dealloc_pd: %s", strerror(err));
    if (pair->owns_context) {
        err = ibv_close_device(pair->context);
        CHECK(err == 0, "ibv_close_device: %s", strerror(errno));
    }
}

enum ibv_qp_state rc_state(const struct rc_end *end)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    int err = ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init);

    CHECK(err == 0, "ibv_query_qp: %s", strerror(err));
    return attr.qp_state;
}

struct ibv_sge rc_sge(const struct rc_end *end, size_t offset, size_t bytes)
{
    return (struct ibv_sge){
        .addr = (uintptr_t)end->buffer + offset,
        .length = (uint32_t)bytes,
        .lkey = end->mr->lkey,
    };
}

uint32_t rc_immediate(uint64_t wr_id)
{
    return htobe32((uint32_t)wr_id * 2654435761u + 1);
}

void rc_post_chain(const struct rc_end *from, struct ibv_send_wr *first)
{
    struct ibv_send_wr *bad = NULL;
    int err = ibv_post_send(from->qp, first, &bad);

    CHECK(err == 0, "ibv_post_send, at request %llu: %s",
          bad ? (unsigned long long)bad->wr_id : 0ull, strerror(err));
}

void rc_post(const struct rc_end *from, const struct rc_end *to, enum ibv_wr_opcode opcode,
             uint64_t wr_id, size_t local, size_t remote, size_t bytes, unsigned int flags)
{
    struct ibv_sge sge = rc_sge(from, local, bytes);
    struct ibv_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = flags,
        .imm_data = rc_immediate(wr_id),
        .wr.rdma = {.remote_addr = (uintptr_t)to->buffer + remote, .rkey = to->mr->rkey},
    };

    rc_post_chain(from, &wr);
}

void rc_post_atomic(const struct rc_end *from, const struct rc_end *to, enum ibv_wr_opcode opcode,
                    uint64_t wr_id, size_t local, size_t remote, uint64_t compare_add,
                    uint64_t swap)
{
    struct ibv_sge sge = rc_sge(from, local, 8);
    struct ibv_send_wr wr = {
        .wr_id = wr_id,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.atomic = {.remote_addr = (uintptr_t)to->buffer + remote,
                      .compare_add = compare_add,
                      .swap = swap,
                      .rkey = to->mr->rkey},
    };

    rc_post_chain(from, &wr);
}

void rc_post_recv(const struct rc_end *end, uint64_t wr_id, size_t offset, size_t bytes)
{
    struct ibv_sge sge = rc_sge(end, offset, bytes);
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad = NULL;
    int err = ibv_post_recv(end->qp, &wr, &bad);

    CHECK(err == 0, "ibv_post_recv: %s", strerror(err));
}

struct ibv_wc rc_poll(struct ibv_cq *cq)
{
    uint64_t deadline = 0;
    struct ibv_wc wc = {0};

    for (unsigned int empty = 0;; empty++) {
        int n = ibv_poll_cq(cq, 1, &wc);

        CHECK(n >= 0, "ibv_poll_cq returned %d", n);
        if (n == 1)
            return wc;
        if (empty % 1024 == 1023) {
            if (!deadline)
                deadline = rc_now_ns() + RC_DEADLINE_NS;
            CHECK(rc_now_ns() < deadline, "no completion within %llu s",
                  RC_DEADLINE_NS / 1000000000ull);
            sched_yield();
        }
    }
}

struct ibv_wc rc_expect(struct ibv_cq *cq, const struct rc_end *end, uint64_t wr_id,
                        enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc = rc_poll(cq);

    CHECK(wc.status == IBV_WC_SUCCESS, "%s (vendor 0x%x) for request %llu, %llu expected",
          ibv_wc_status_str(wc.status), wc.vendor_err, (unsigned long long)wc.wr_id,
          (unsigned long long)wr_id);
    CHECK(wc.wr_id == wr_id, "request %llu completed, %llu expected", (unsigned long long)wc.wr_id,
          (unsigned long long)wr_id);
    CHECK(wc.opcode == opcode, "opcode %d, %d expected", (int)wc.opcode, (int)opcode);
    CHECK(wc.qp_num == end->qp->qp_num, "QP 0x%x, 0x%x expected", wc.qp_num, end->qp->qp_num);
    return wc;
}

void rc_expect_error(struct ibv_cq *cq, const struct rc_end *end, uint64_t wr_id,
                     enum ibv_wc_status status)
{
    struct ibv_wc wc = rc_poll(cq);

    CHECK(wc.status == status && wc.wr_id == wr_id,
          "request %llu: %s (vendor 0x%x), expected request %llu: %s", (unsigned long long)wc.wr_id,
          ibv_wc_status_str(wc.status), wc.vendor_err, (unsigned long long)wr_id,
          ibv_wc_status_str(status));
    CHECK(wc.qp_num == end->qp->qp_num, "QP 0x%x, 0x%x expected", wc.qp_num, end->qp->qp_num);
}

void rc_expect_none(struct ibv_cq *cq, unsigned int milliseconds)
{
    uint64_t deadline = rc_now_ns() + milliseconds * 1000000ull;
    struct ibv_wc wc = {0};

    do {
        int n = ibv_poll_cq(cq, 1, &wc);

        CHECK(n == 0, "%d completions where none may come: request %llu, %s", n,
              (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
        sched_yield();
    } while (rc_now_ns() < deadline);
}

/* The pattern's eight bytes at place 8 * `word`. */
static uint64_t pattern(uint64_t seed, uint64_t word)
{
    uint64_t x = (word + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1342543de82ef95u;

    return x ^ x >> 29;
}

static uint8_t pattern_byte(uint64_t seed, size_t place)
{
    return (uint8_t)(pattern(seed, place / 8) >> place % 8 * 8);
}

void rc_fill(uint8_t *bytes, size_t n, uint64_t seed, size_t start)
{
    size_t i = 0;

    for (; i < n && (start + i) % 8; i++)
        bytes[i] = pattern_byte(seed, start + i);
    for (; i + 8 <= n; i += 8)
        memcpy(bytes + i, &(uint64_t){pattern(seed, (start + i) / 8)}, 8);
    for (; i < n; i++)
        bytes[i] = pattern_byte(seed, start + i);
}

void rc_verify(const uint8_t *bytes, size_t n, uint64_t seed, size_t start, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        if ((start + i) % 8 == 0)
            while (i + 8 <= n &&
                   memcmp(bytes + i, &(uint64_t){pattern(seed, (start + i) / 8)}, 8) == 0)
                i += 8;
        CHECK(i == n || bytes[i] == pattern_byte(seed, start + i),
              "%s: byte %zu of %zu is 0x%02x, 0x%02x expected", what, i, n, bytes[i],
              pattern_byte(seed, start + i));
    }
}

void rc_verify_constant(const uint8_t *bytes, size_t n, uint8_t value, const char *what)
{
    for (size_t i = 0; i < n; i++)
        CHECK(bytes[i] == value, "%s: byte %zu of %zu is 0x%02x, 0x%02x expected", what, i, n,
              bytes[i], value);
}

uint64_t rc_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

void rc_sleep_ms(unsigned int milliseconds)
{
    struct timespec time = {.tv_sec = milliseconds / 1000,
                            .tv_nsec = (long)(milliseconds % 1000) * 1000000};

    nanosleep(&time, NULL);
}
