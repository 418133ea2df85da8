/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs over the core's control calls; see engine_rig.h. */
#include "engine_rig.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <core/objects.h>

uint64_t rig_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

void rig_sleep_ms(uint32_t milliseconds)
{
    struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    nanosleep(&time, NULL);
}

void rig_wait32(const uint32_t *word, uint32_t value, const char *what)
{
    uint64_t start = rig_now_ns();
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
        CHECK(rig_now_ns() - start < RIG_PATIENCE_NS, "never: %s", what);
        sched_yield();
    }
}

static void *map(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED, "mmap: %s", strerror(errno));
    return at;
}

/* ---- The device ---- */

static void on_completion(void *owner)
{
    struct rig *rig = owner;
    __atomic_fetch_add(&rig->completion_events, 1, __ATOMIC_RELEASE);
}

static void on_async_event(void *owner, enum nic_event event)
{
    struct rig *rig = owner;
    __atomic_fetch_add(&rig->async_events[event], 1, __ATOMIC_RELEASE);
}

void rig_start(struct rig *rig, const struct nic_config *config)
{
    static const struct nic_callbacks callbacks = {on_completion, on_async_event};

    *rig = (struct rig){0};
    CHECK(nic_start(config, &callbacks, &rig->host) == 0, "nic_start failed");
    rig->payload = map(RIG_PAYLOAD_BYTES);
    struct nic *nic = nic_hold(rig->host);
    CHECK(nic_pd_alloc(nic, &rig->pdn) == 0, "nic_pd_alloc failed");
    struct nic_mkey_attr attr = {
        .pdn = rig->pdn,
        .access = NIC_LOCAL_WRITE | NIC_REMOTE_WRITE | NIC_REMOTE_READ | NIC_REMOTE_ATOMIC,
        .start = (uintptr_t)rig->payload,
        .bytes = RIG_PAYLOAD_BYTES,
        .host = rig->payload,
    };
    CHECK(nic_mkey_create(nic, &attr, &rig->key) == 0, "nic_mkey_create failed");
    nic_release(rig->host);
    rig->uar = mmap(NULL, NIC_UAR_PAGES * M5_UAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                    nic_uar_fd(rig->host), 0);
    CHECK(rig->uar != MAP_FAILED, "mmap of the UAR pages: %s", strerror(errno));
}

void rig_stop(struct rig *rig)
{
    nic_stop(rig->host);
    munmap(rig->payload, RIG_PAYLOAD_BYTES);
    munmap(rig->uar, NIC_UAR_PAGES * M5_UAR_BYTES);
}

uint32_t rig_uar(struct rig *rig)
{
    uint32_t page;
    CHECK(nic_uar_alloc(nic_hold(rig->host), &page) == 0, "nic_uar_alloc failed");
    nic_release(rig->host);
    return page;
}

/* ---- Queues ---- */

static void create_cq(struct rig *rig, struct nic *nic, struct rig_cq *cq, uint32_t page,
                      uint32_t depth_log2)
{
    *cq = (struct rig_cq){
        .depth_log2 = depth_log2, .ring = map(64ull << depth_log2), .record = map(4096)};
    memset(cq->ring, 0xf1, 64ull << depth_log2);
    struct nic_cq_attr attr = {
        .ring = cq->ring,
        .record = cq->record,
        .depth_log2 = depth_log2,
        .cqe_bytes = 64,
        .uar_page = page,
        .owner = rig,
    };
    CHECK(nic_cq_create(nic, &attr, &cq->cqn) == 0, "nic_cq_create failed");
}

void rig_create(struct rig *rig, struct rig_queue *queue, uint32_t page, uint32_t reg,
                uint32_t depth_log2)
{
    *queue = (struct rig_queue){
        .rig = rig,
        .page = page,
        .depth_log2 = depth_log2,
        .recv_depth_log2 = 6,
        .sq = map(64ull << depth_log2),
        .rq = map(4096),
        .record = map(4096),
        .without_record = reg == RIG_NO_RECORD,
    };
    size_t offset = queue->without_record ? 0x600 : 0x800 + (size_t)reg * 0x100;
    queue->doorbell = (uint64_t *)(void *)(rig->uar + (size_t)page * M5_UAR_BYTES + offset);
    struct nic *nic = nic_hold(rig->host);
    create_cq(rig, nic, &queue->send_cq, page, depth_log2);
    create_cq(rig, nic, &queue->recv_cq, page, queue->recv_depth_log2);
    struct nic_qp_attr attr = {
        .pdn = rig->pdn,
        .send_cqn = queue->send_cq.cqn,
        .recv_cqn = queue->recv_cq.cqn,
        .user_index = 0x123456,
        .uar_page = page,
        .record = queue->record,
        .without_record = queue->without_record,
        .sq = queue->sq,
        .sq_depth_log2 = depth_log2,
        .rq = queue->rq,
        .rq_depth_log2 = queue->recv_depth_log2,
        .rq_stride_log2 = 6,
        .owner = rig,
    };
    CHECK(nic_qp_create(nic, &attr, &queue->qpn) == 0, "nic_qp_create failed");
    nic_release(rig->host);
}

static void to_rts(struct nic *nic, uint32_t qpn, uint32_t remote_qpn, uint32_t retries,
                   uint32_t ack_timeout)
{
    struct nic_qp_modify modify = {
        .mask = NIC_QP_REMOTE_QPN | NIC_QP_ACCESS | NIC_QP_MIN_RNR_TIMER | NIC_QP_RNR_RETRY |
                NIC_QP_RETRY_COUNT | NIC_QP_ACK_TIMEOUT,
        .remote_qpn = remote_qpn,
        .access = NIC_REMOTE_WRITE | NIC_REMOTE_READ | NIC_REMOTE_ATOMIC,
        .min_rnr_timer = 1,
        .rnr_retry = retries,
        .retry_count = retries,
        .ack_timeout = ack_timeout,
    };
    for (modify.state = NIC_QP_INIT; modify.state <= NIC_QP_RTS; modify.state++)
        CHECK(nic_qp_modify(nic, qpn, &modify) == 0, "QP 0x%x to state %u", qpn, modify.state);
}

void rig_connect_with(struct rig_queue *a, struct rig_queue *b, uint32_t retries,
                      uint32_t ack_timeout)
{
    struct nic *nic = nic_hold(a->rig->host);
    to_rts(nic, a->qpn, b->qpn, retries, ack_timeout);
    if (a != b)
        to_rts(nic, b->qpn, a->qpn, retries, ack_timeout);
    nic_release(a->rig->host);
}

void rig_connect(struct rig_queue *a, struct rig_queue *b)
{
    rig_connect_with(a, b, 7, 14);
}

void rig_loop(struct rig *rig, struct rig_queue *queue, uint32_t page, uint32_t reg,
              uint32_t depth_log2)
{
    rig_create(rig, queue, page, reg, depth_log2);
    rig_connect(queue, queue);
}

static void unmap_cq(const struct rig_cq *cq)
{
    munmap(cq->ring, 64ull << cq->depth_log2);
    munmap(cq->record, 4096);
}

void rig_destroy(struct rig_queue *queue)
{
    struct nic *nic = nic_hold(queue->rig->host);
    CHECK(nic_qp_destroy(nic, queue->qpn) == 0, "nic_qp_destroy failed");
    CHECK(nic_cq_destroy(nic, queue->send_cq.cqn) == 0, "nic_cq_destroy failed");
    CHECK(nic_cq_destroy(nic, queue->recv_cq.cqn) == 0, "nic_cq_destroy failed");
    nic_release(queue->rig->host);
    munmap(queue->sq, 64ull << queue->depth_log2);
    munmap(queue->rq, 4096);
    munmap(queue->record, 4096);
    unmap_cq(&queue->send_cq);
    unmap_cq(&queue->recv_cq);
}

uint32_t rig_state(const struct rig_queue *queue)
{
    uint32_t state = nic_qp_find(nic_hold(queue->rig->host), queue->qpn)->state;
    nic_release(queue->rig->host);
    return state;
}

void rig_start_at(struct rig_queue *queue, uint64_t index)
{
    struct nic_qp *qp = nic_qp_find(nic_hold(queue->rig->host), queue->qpn);
    qp->sq_done = index;
    qp->last_wqe_index = (uint32_t)(index - 1) & 0xffff;
    qp->doorbell_index = queue->without_record ? (uint32_t)index & 0xffff : qp->last_wqe_index;
    queue->posted = index;
    rig_record(queue, index);
    nic_release(queue->rig->host);
}

/* ---- Posting ---- */

void rig_build(const struct rig_queue *queue, struct wqe *wqe, size_t from, size_t to)
{
    const struct rig *rig = queue->rig;
    wqe_begin(wqe, M5_OP_WRITE, 0, M5_CTRL_CQ_UPDATE, 0);
    wqe_raddr(wqe, (uintptr_t)rig->payload + to, rig->key);
    wqe_data(wqe, rig->payload + from, rig->key, 8);
}

uint64_t rig_put(struct rig_queue *queue, struct wqe *wqe)
{
    uint64_t index = queue->posted;
    wqe_address(wqe, index, queue->qpn);
    wqe_copy(wqe, queue->sq, queue->depth_log2, index);
    queue->posted += wqe_blocks(wqe);
    return index;
}

void rig_record(const struct rig_queue *queue, uint64_t index)
{
    __atomic_store_n(&queue->record->send.raw, __builtin_bswap32((uint32_t)index & 0xffff),
                     __ATOMIC_RELEASE);
}

void rig_ring(const struct rig_queue *queue, uint64_t index)
{
    struct wqe wqe = {.used = 16};
    wqe_address(&wqe, index, queue->qpn);
    __atomic_store_n(queue->doorbell, wqe_doorbell(&wqe), __ATOMIC_RELEASE);
}

uint64_t rig_post(struct rig_queue *queue, struct wqe *wqe)
{
    uint64_t index = rig_put(queue, wqe);
    if (!queue->without_record)
        rig_record(queue, queue->posted);
    rig_ring(queue, queue->without_record ? queue->posted : index);
    return index;
}

void rig_post_recv(struct rig_queue *queue, void *address, uint32_t bytes)
{
    uint8_t *at = queue->rq + 64 * (queue->recvs & ((1u << queue->recv_depth_log2) - 1));
    memset(at, 0, 64);
    bytes_put32(at, bytes);
    bytes_put32(at + 4, queue->rig->key);
    bytes_put64(at + 8, (uintptr_t)address);
    bytes_put32(at + 20, M5_LKEY_END);
    queue->recvs++;
    __atomic_store_n(&queue->record->receive.raw,
                     __builtin_bswap32((uint32_t)queue->recvs & 0xffff), __ATOMIC_RELEASE);
}

/* ---- Completions ---- */

bool rig_try(struct rig_cq *cq, struct cqe *cqe)
{
    const uint8_t *at = cq->ring + 64 * (cq->polled & ((1ull << cq->depth_log2) - 1));
    if (!cqe_is_there(at, cq->depth_log2, cq->polled))
        return false;
    *cqe = cqe_read(at);
    cq->polled++;
    __atomic_store_n(&cq->record->consumer.raw, __builtin_bswap32((uint32_t)cq->polled & 0xffffff),
                     __ATOMIC_RELEASE);
    return true;
}

struct cqe rig_poll(struct rig_cq *cq)
{
    struct cqe cqe;
    uint64_t start = 0;
    for (uint32_t tries = 1; !rig_try(cq, &cqe); tries++) {
        if (tries % 512)
            continue;
        if (start == 0)
            start = rig_now_ns();
        CHECK(rig_now_ns() - start < RIG_PATIENCE_NS, "CQE %llu of CQ 0x%x never came",
              (unsigned long long)cq->polled, cq->cqn);
        sched_yield();
    }
    return cqe;
}

void rig_expect(struct rig_queue *queue, uint64_t index)
{
    struct cqe cqe = rig_poll(&queue->send_cq);
    CHECK(cqe.opcode == M5_CQE_REQUESTER, "CQE opcode 0x%x, syndrome 0x%x", cqe.opcode,
          cqe.syndrome);
    CHECK(cqe.wqe_counter == (index & 0xffff), "counter 0x%x, wanted 0x%llx", cqe.wqe_counter,
          (unsigned long long)index & 0xffff);
}

void rig_expect_error(struct rig_queue *queue, uint64_t index, uint32_t syndrome)
{
    struct cqe cqe = rig_poll(&queue->send_cq);
    CHECK(cqe.opcode == M5_CQE_REQUESTER_ERROR, "CQE opcode 0x%x", cqe.opcode);
    CHECK(cqe.syndrome == syndrome, "syndrome 0x%x, wanted 0x%x", cqe.syndrome, syndrome);
    CHECK(cqe.wqe_counter == (index & 0xffff), "counter 0x%x, wanted 0x%llx", cqe.wqe_counter,
          (unsigned long long)index & 0xffff);
}

void rig_expect_none(struct rig_cq *cq, uint32_t milliseconds)
{
    struct cqe cqe;
    uint64_t end = rig_now_ns() + milliseconds * 1000000ull;
    while (rig_now_ns() < end) {
        CHECK(!rig_try(cq, &cqe), "CQE of WQE 0x%x, opcode 0x%x, came unasked", cqe.wqe_counter,
              cqe.opcode);
        sched_yield();
    }
}

/* ---- Diagnostics ---- */

uint64_t rig_diags(struct rig *rig, enum nic_diag kind)
{
    uint64_t count = nic_hold(rig->host)->counters.diag[kind];
    nic_release(rig->host);
    return count;
}

static uint64_t all_diags(const struct nic *nic)
{
    uint64_t total = 0;
    for (int kind = 0; kind < NIC_DIAG_COUNT; kind++)
        total += nic->counters.diag[kind];
    return total;
}

uint64_t rig_all_diags(struct rig *rig)
{
    uint64_t total = all_diags(nic_hold(rig->host));
    nic_release(rig->host);
    return total;
}

static struct nic_diag_entry take_diag(struct rig_queue *queue, enum nic_diag kind, uint64_t index)
{
    uint64_t start = rig_now_ns();
    while (rig_all_diags(queue->rig) == 0) {
        CHECK(rig_now_ns() - start < RIG_PATIENCE_NS, "no diagnostic; %s wanted",
              nic_diag_name(kind));
        rig_sleep_ms(2);
    }
    struct nic *nic = nic_hold(queue->rig->host);
    struct nic_diag_entry entry = nic->diag_log[0];
    CHECK(nic->diag_logged == 1 && all_diags(nic) == 1, "%u diagnostics, the first is %s",
          nic->diag_logged, nic_diag_name((enum nic_diag)entry.kind));
    CHECK(entry.kind == (uint32_t)kind, "%s, wanted %s", nic_diag_name((enum nic_diag)entry.kind),
          nic_diag_name(kind));
    CHECK(entry.qpn == queue->qpn, "names QP 0x%x, wanted 0x%x", entry.qpn, queue->qpn);
    CHECK(entry.index == (index & 0xffff), "names index 0x%x, wanted 0x%llx", entry.index,
          (unsigned long long)index & 0xffff);
    memset(nic->counters.diag, 0, sizeof(nic->counters.diag));
    nic->diag_logged = 0;
    nic_release(queue->rig->host);
    return entry;
}

void rig_expect_diag(struct rig_queue *queue, enum nic_diag kind, uint64_t index)
{
    take_diag(queue, kind, index);
}

void rig_expect_diag_of(struct rig_queue *queue, enum nic_diag kind, uint64_t index,
                        uint32_t detail)
{
    struct nic_diag_entry entry = take_diag(queue, kind, index);
    CHECK(entry.detail == detail, "%s of the word 0x%x, wanted 0x%x", nic_diag_name(kind),
          entry.detail, detail);
}

void rig_expect_clean(struct rig *rig)
{
    rig_sleep_ms(NIC_SUSPICION_NS / 1000000 * 3 / 2);
    struct nic *nic = nic_hold(rig->host);
    CHECK(all_diags(nic) == 0, "%s of QP 0x%x at index 0x%x, detail 0x%x, for correct use",
          nic_diag_name((enum nic_diag)nic->diag_log[0].kind), nic->diag_log[0].qpn,
          nic->diag_log[0].index, nic->diag_log[0].detail);
    nic_release(rig->host);
}
