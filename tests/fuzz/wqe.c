/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the device's execution path with what programs put into memory: send and receive rings,
 * records, doorbell and arm registers, of three queue pairs on one UAR page, and the states that
 * they are moved through. The device runs in the fuzzer's own thread, one round at a time.
 *
 * Every buffer that the device knows ends at an unmapped page, starts behind bytes that are looked
 * at after each input, and what no key lets it write (rings, records, a read-only region, a region
 * of another protection domain, the rest of the page that a small key covers) must stay as it was.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <core/doorbell.h>
#include <core/objects.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum {
    QUEUES = 3, /* 0 and 1 are each other's peers, 2 is its own */
    SQ_LOG2 = 4,
    RQ_LOG2 = 2,
    STRIDE_LOG2 = 6,
    CQ_LOG2 = 3,
    SQ_BYTES = 64 << SQ_LOG2,
    RQ_BYTES = 1 << (RQ_LOG2 + STRIDE_LOG2),
    PAYLOAD_BYTES = 4096,
    SMALL_AT = 1000, /* the region of the small key */
    SMALL_BYTES = 333,
    SLACK = 0x5c,
};

/* ---- Memory between redzones ---- */

struct buffer {
    uint8_t *at;
    uint8_t *page; /* what lies before `at` is slack */
};

static struct buffer buffers[32];
static uint32_t buffer_count;

static uint8_t *get_buffer(size_t bytes)
{
    size_t pages = (bytes + 4095) / 4096 * 4096;
    uint8_t *all = mmap(NULL, pages + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    CHECK(mprotect(all + 4096, pages, PROT_READ | PROT_WRITE) == 0);
    memset(all + 4096, SLACK, pages);
    uint8_t *at = all + 4096 + pages - bytes;
    memset(at, 0, bytes);
    CHECK(buffer_count < 32);
    buffers[buffer_count++] = (struct buffer){at, all + 4096};
    return at;
}

static void check_constant(const uint8_t *at, size_t bytes, uint8_t value)
{
    CHECK(bytes == 0 || (at[0] == value && memcmp(at, at + 1, bytes - 1) == 0));
}

static void check_slack(void)
{
    for (uint32_t i = 0; i < buffer_count; i++)
        check_constant(buffers[i].page, (size_t)(buffers[i].at - buffers[i].page), SLACK);
}

/* ---- The device ---- */

static struct nic *nic; /* ends at an unmapped page, too */
static uint32_t pdn, other_pdn, page;
static uint32_t keys[5]; /* all rights, read only, other PD, small, zero-based */
static uint8_t *payload, *read_only, *foreign, *partly;

struct queue {
    uint32_t qpn, send_cqn, recv_cqn;
    uint8_t *sq, *rq;
    struct m5_qp_record *record;
    uint8_t *send_ring, *recv_ring;
    struct m5_cq_record *send_record, *recv_record;
    /* What the program wrote. */
    uint8_t sq_copy[SQ_BYTES], rq_copy[RQ_BYTES];
    struct m5_qp_record record_copy;
};

static struct queue queues[QUEUES];

static uint32_t make_key(uint32_t pd, uint32_t access, uint64_t start, uint8_t *at, size_t bytes)
{
    struct nic_mkey_attr attr = {pd, access, start, bytes, at};
    uint32_t key;
    CHECK(nic_mkey_create(nic, &attr, &key) == 0);
    return key;
}

static void *table(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const uint32_t all = NIC_LOCAL_WRITE | NIC_REMOTE_WRITE | NIC_REMOTE_READ | NIC_REMOTE_ATOMIC;

    (void)argc;
    (void)argv;
    nic = (void *)get_buffer((sizeof(*nic) + 63) / 64 * 64);
    nic->qps = table(NIC_MAX_QPS * sizeof(struct nic_qp));
    nic->cqs = table(NIC_MAX_CQS * sizeof(struct nic_cq));
    nic->mkeys = table(NIC_MAX_MKEYS * sizeof(struct nic_mkey));
    nic->uar = get_buffer(M5_UAR_BYTES);
    nic->next_mkey = NIC_FIRST_MKEY;
    CHECK(nic_pd_alloc(nic, &pdn) == 0 && nic_pd_alloc(nic, &other_pdn) == 0);
    CHECK(nic_uar_alloc(nic, &page) == 0);
    payload = get_buffer(PAYLOAD_BYTES);
    read_only = get_buffer(PAYLOAD_BYTES);
    foreign = get_buffer(PAYLOAD_BYTES);
    partly = get_buffer(PAYLOAD_BYTES);
    memset(read_only, 0x11, PAYLOAD_BYTES);
    memset(foreign, 0x22, PAYLOAD_BYTES);
    keys[0] = make_key(pdn, all, (uintptr_t)payload, payload, PAYLOAD_BYTES);
    keys[1] = make_key(pdn, NIC_REMOTE_READ, (uintptr_t)read_only, read_only, PAYLOAD_BYTES);
    keys[2] = make_key(other_pdn, all, (uintptr_t)foreign, foreign, PAYLOAD_BYTES);
    keys[3] = make_key(pdn, all, (uintptr_t)partly + SMALL_AT, partly + SMALL_AT, SMALL_BYTES);
    keys[4] = make_key(pdn, all, 0, payload, PAYLOAD_BYTES);
    for (int i = 0; i < QUEUES; i++) {
        struct queue *queue = &queues[i];
        queue->sq = get_buffer(SQ_BYTES);
        queue->rq = get_buffer(RQ_BYTES);
        queue->record = (void *)get_buffer(sizeof(struct m5_qp_record));
        queue->send_ring = get_buffer(128 << CQ_LOG2);
        queue->recv_ring = get_buffer(64 << CQ_LOG2);
        queue->send_record = (void *)get_buffer(sizeof(struct m5_cq_record));
        queue->recv_record = (void *)get_buffer(sizeof(struct m5_cq_record));
    }
    return 0;
}

/* ---- Queues, made anew for each input ---- */

static void connect(uint32_t i)
{
    struct nic_qp_modify modify = {
        .mask = NIC_QP_REMOTE_QPN | NIC_QP_ACCESS | NIC_QP_MIN_RNR_TIMER | NIC_QP_RNR_RETRY |
                NIC_QP_RETRY_COUNT | NIC_QP_ACK_TIMEOUT,
        .remote_qpn = queues[i == 2 ? 2 : 1 - i].qpn,
        .access = NIC_REMOTE_WRITE | NIC_REMOTE_READ | NIC_REMOTE_ATOMIC,
        .min_rnr_timer = 1,
        .rnr_retry = 1,
        .retry_count = 1,
        .ack_timeout = 1,
    };
    modify.state = NIC_QP_RESET;
    CHECK(nic_qp_modify(nic, queues[i].qpn, &modify) == 0);
    for (modify.state = NIC_QP_INIT; modify.state <= NIC_QP_RTS; modify.state++)
        CHECK(nic_qp_modify(nic, queues[i].qpn, &modify) == 0);
}

static uint32_t make_cq(uint8_t *ring, struct m5_cq_record *record, uint32_t cqe_bytes,
                        uint32_t flags)
{
    struct nic_cq_attr attr = {ring, record, CQ_LOG2, cqe_bytes, flags, page, NULL};
    uint32_t cqn;
    memset(record, 0, sizeof(*record));
    CHECK(nic_cq_create(nic, &attr, &cqn) == 0);
    return cqn;
}

static void make_queue(uint32_t i, bool without_record)
{
    struct queue *queue = &queues[i];
    queue->send_cqn = make_cq(queue->send_ring, queue->send_record, i == 1 ? 64 : 128,
                              i == 0 ? NIC_CQ_IGNORE_OVERRUN
                                     : (i == 2 ? NIC_CQ_COLLAPSED | NIC_CQ_IGNORE_OVERRUN : 0u));
    queue->recv_cqn = make_cq(queue->recv_ring, queue->recv_record, 64, 0);
    memset(queue->sq, 0, SQ_BYTES);
    memset(queue->sq_copy, 0, SQ_BYTES);
    memset(queue->rq, 0, RQ_BYTES);
    memset(queue->rq_copy, 0, RQ_BYTES);
    memset(queue->record, 0, sizeof(*queue->record));
    queue->record_copy = *queue->record;
    struct nic_qp_attr attr = {
        .pdn = pdn,
        .send_cqn = queue->send_cqn,
        .recv_cqn = i == 2 ? queue->send_cqn : queue->recv_cqn,
        .uar_page = page,
        .record = queue->record,
        .without_record = without_record,
        .sq = queue->sq,
        .sq_depth_log2 = SQ_LOG2,
        .rq = queue->rq,
        .rq_depth_log2 = RQ_LOG2,
        .rq_stride_log2 = STRIDE_LOG2,
    };
    CHECK(nic_qp_create(nic, &attr, &queue->qpn) == 0);
}

/* As the engine's loop does. */
static void take_events(void)
{
    while (nic->first_cq_event) {
        struct nic_cq *cq = &nic->cqs[nic->first_cq_event];
        CHECK(cq->cqn == nic->first_cq_event && cq->events != 0);
        nic->first_cq_event = cq->next_event;
        cq->events = 0;
    }
    while (nic->first_qp_event) {
        struct nic_qp *qp = &nic->qps[nic->first_qp_event];
        CHECK(qp->qpn == nic->first_qp_event && qp->events != 0);
        nic->first_qp_event = qp->next_event;
        qp->events = 0;
    }
}

static void destroy_queues(void)
{
    for (int i = 0; i < QUEUES; i++)
        CHECK(nic_qp_destroy(nic, queues[i].qpn) == 0);
    for (int i = 0; i < QUEUES; i++) {
        CHECK(nic_cq_destroy(nic, queues[i].send_cqn) == 0);
        CHECK(nic_cq_destroy(nic, queues[i].recv_cqn) == 0);
    }
    CHECK(nic->first_watched == 0 && nic->rest_watched == 0);
    CHECK(nic->first_cq_event == 0 && nic->first_qp_event == 0);
    CHECK(nic->first_on_uar[page] == 0 && nic->first_cq_on_uar[page] == 0);
    CHECK(nic->recordless[page] == 0);
}

/* ---- What must hold after each round ---- */

static void check_state(void)
{
    for (int i = 0; i < QUEUES; i++) {
        struct queue *queue = &queues[i];
        const struct nic_qp *qp = &nic->qps[queue->qpn];
        CHECK(qp->qpn == queue->qpn && qp->state <= NIC_QP_ERR && qp->state != NIC_QP_SQE);
        if (!nic->strict.poison)
            CHECK(memcmp(queue->sq, queue->sq_copy, SQ_BYTES) == 0);
        CHECK(memcmp(queue->rq, queue->rq_copy, RQ_BYTES) == 0);
        CHECK(memcmp(queue->record, &queue->record_copy, sizeof(queue->record_copy)) == 0);
    }
    CHECK(nic->touching == NIC_TOUCH_NOTHING);
    CHECK(nic->counters.error_cqes <= nic->counters.cqes);
    check_constant(read_only, PAYLOAD_BYTES, 0x11);
    check_constant(foreign, PAYLOAD_BYTES, 0x22);
    check_constant(partly, SMALL_AT, 0);
    check_constant(partly + SMALL_AT + SMALL_BYTES, PAYLOAD_BYTES - SMALL_AT - SMALL_BYTES, 0);
}

static void rounds(uint32_t count)
{
    while (count-- > 0) {
        nic_round(nic);
        take_events();
    }
    check_state();
}

/* ---- Steps, read from the input ---- */

struct input {
    const uint8_t *at;
    size_t left;
};

static uint64_t take(struct input *input, uint32_t bytes)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes && input->left > 0; i++, input->at++, input->left--)
        value |= (uint64_t)*input->at << (8 * i);
    return value;
}

/* An address that a key covers, or nearly; and the key. */
static void put_address(uint8_t *address, uint8_t *key, struct input *input)
{
    uint8_t *const bases[] = {payload, read_only, foreign, partly + SMALL_AT, NULL};
    uint32_t choice = (uint32_t)take(input, 1);
    uint32_t which = choice % 5;
    uint64_t to = (uintptr_t)bases[which] + take(input, 2) - (choice & 0x80 ? 64 : 0);
    struct be64 wire = port_be64(to);
    struct be32 wire_key = port_be32(keys[which] ^ (choice & 0x40 ? 1u : 0u));
    memcpy(address, &wire, sizeof(wire));
    memcpy(key, &wire_key, sizeof(wire_key));
}

/* A WQE at the next free block, good but for what the input edits. */
static void post(struct queue *queue, struct input *input)
{
    static const uint8_t opcodes[] = {M5_OP_NOP,
                                      M5_OP_WRITE,
                                      M5_OP_WRITE_IMM,
                                      M5_OP_SEND,
                                      M5_OP_SEND_IMM,
                                      M5_OP_READ,
                                      M5_OP_ATOMIC_CS,
                                      M5_OP_ATOMIC_FA,
                                      M5_OP_ATOMIC_MASKED_CS,
                                      M5_OP_ATOMIC_MASKED_FA};
    uint32_t index = port_host32(queue->record->send) & 0xffff;
    uint8_t opcode = opcodes[take(input, 1) % sizeof(opcodes)], wqe[1024] = {0};
    uint8_t opmod = opcode >= M5_OP_ATOMIC_MASKED_CS ? 8 + (uint8_t)(take(input, 1) & 1) : 0;
    uint32_t used = 16;

    if (opcode >= M5_OP_WRITE && opcode != M5_OP_SEND && opcode != M5_OP_SEND_IMM) {
        put_address(wqe + used, wqe + used + 8, input);
        used += 16;
    }
    if (opcode >= M5_OP_ATOMIC_CS)
        used += opcode == M5_OP_ATOMIC_MASKED_CS && opmod == 9 ? 32 : 16;
    for (uint32_t n = (uint32_t)take(input, 1) % 8; n > 0 && used < 860; n--) {
        uint32_t bytes = (uint32_t)take(input, 2);
        struct be32 count = port_be32(bytes & 0x4000 ? 8 : bytes & 0xfff);
        if (bytes & 0x8000) /* inline; now and then it claims more than there is */
            count = port_be32((bytes & 0x2000 ? bytes & 0xfff : bytes & 0x7f) | M5_INLINE_FLAG);
        memcpy(wqe + used, &count, sizeof(count));
        if (bytes & 0x8000) {
            used += (4 + (bytes & 0x7f) + 15) / 16 * 16;
        } else {
            put_address(wqe + used + 8, wqe + used + 4, input);
            used += 16;
        }
    }
    struct be32 first = port_be32((uint32_t)opmod << 24 | index << 8 | opcode);
    struct be32 second = port_be32(queue->qpn << 8 | used / 16);
    memcpy(wqe, &first, sizeof(first));
    memcpy(wqe + 4, &second, sizeof(second));
    wqe[11] = (uint8_t)take(input, 1);
    for (uint32_t n = (uint32_t)take(input, 1) % 4; n > 0; n--) {
        uint32_t place = (uint32_t)take(input, 2) % 1024;
        wqe[place] ^= (uint8_t)take(input, 1);
    }
    uint32_t blocks = (used + 63) / 64;
    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t slot = (index + i) % (1 << SQ_LOG2) * 64;
        memcpy(queue->sq + slot, wqe + 64 * i, 64);
        memcpy(queue->sq_copy + slot, wqe + 64 * i, 64);
    }
    queue->record->send = port_be32((index + blocks) & 0xffff);
    queue->record_copy = *queue->record;
    bool without_record = nic->qps[queue->qpn].without_record;
    if (without_record)
        first = port_be32((index + blocks) << 8);
    uint64_t doorbell = (uint64_t)second.raw << 32 | first.raw;
    memcpy(nic->uar + (without_record ? M5_UAR_SEND_NO_RECORD : M5_UAR_SEND), &doorbell,
           sizeof(doorbell));
}

static void post_recv(struct queue *queue, struct input *input)
{
    uint32_t index = port_host32(queue->record->receive) & 0xffff;
    uint8_t wqe[1 << STRIDE_LOG2] = {0};
    uint32_t entries = (uint32_t)take(input, 1) % 5;
    for (uint32_t i = 0; i < entries; i++) {
        struct be32 count = port_be32((uint32_t)take(input, 2) & 0xfff);
        memcpy(wqe + 16 * i, &count, sizeof(count));
        put_address(wqe + 16 * i + 8, wqe + 16 * i + 4, input);
    }
    if (entries < 4)
        wqe[16 * entries + 6] = 1; /* M5_LKEY_END */
    uint32_t slot = index % (1 << RQ_LOG2) << STRIDE_LOG2;
    memcpy(queue->rq + slot, wqe, sizeof(wqe));
    memcpy(queue->rq_copy + slot, wqe, sizeof(wqe));
    queue->record->receive = port_be32((index + 1) & 0xffff);
    queue->record_copy = *queue->record;
}

static void raw_bytes(uint8_t *to, uint8_t *copy, uint32_t size, struct input *input)
{
    uint32_t at = (uint32_t)take(input, 2), count = (uint32_t)take(input, 1);
    for (uint32_t i = 0; i < count && input->left > 0; i++)
        to[(at + i) % size] = copy[(at + i) % size] = (uint8_t)take(input, 1);
}

static void raw_record(struct queue *queue, struct input *input)
{
    uint64_t value = take(input, 8);
    memcpy(queue->record, &value, sizeof(value));
    queue->record_copy = *queue->record;
}

static void raw_register(struct input *input)
{
    static const uint32_t registers[] = {M5_UAR_CQ_ARM, 0x600, 0x800, 0x900, 0xa00, 0xb00};
    uint32_t which = (uint32_t)take(input, 1) % 6;
    uint64_t value = take(input, 8);
    memcpy(nic->uar + registers[which], &value, sizeof(value));
}

/* Consumes everything; or says something else. */
static void cq_record(struct queue *queue, struct input *input)
{
    struct be32 consumer = port_be32((uint32_t)nic->cqs[queue->send_cqn].produced & 0xffffff);
    uint64_t value = take(input, 8);
    if (value & 1) {
        memcpy(queue->send_record, &value, sizeof(value));
        return;
    }
    queue->send_record->consumer = consumer;
    consumer = port_be32((uint32_t)nic->cqs[queue->recv_cqn].produced & 0xffffff);
    queue->recv_record->consumer = consumer;
}

static void modify(uint32_t i, struct input *input)
{
    struct nic_qp_modify modify = {
        .mask = (uint32_t)take(input, 1),
        .state = (uint32_t)take(input, 1) % 8,
        .remote_qpn = NIC_FIRST_QPN + (uint32_t)take(input, 1) % 4,
        .access = (uint32_t)take(input, 1),
        .rnr_retry = (uint32_t)take(input, 1) % 9,
        .retry_count = 1,
        .min_rnr_timer = 1,
        .ack_timeout = 1,
    };
    if (modify.rnr_retry & 8) {
        connect(i);
        return;
    }
    nic_qp_modify(nic, queues[i].qpn, &modify);
}

static void step(struct input *input)
{
    uint32_t what = (uint32_t)take(input, 1), i = what / 16 % QUEUES;
    struct queue *queue = &queues[i];
    switch (what % 16) {
    case 0:
        raw_bytes(queue->sq, queue->sq_copy, SQ_BYTES, input);
        break;
    case 1:
        raw_bytes(queue->rq, queue->rq_copy, RQ_BYTES, input);
        break;
    case 2:
        raw_record(queue, input);
        break;
    case 3:
        raw_register(input);
        break;
    case 4:
        cq_record(queue, input);
        break;
    case 5:
        modify(i, input);
        break;
    case 6:
        post_recv(queue, input);
        break;
    case 7:
        rounds(1 + (uint32_t)take(input, 1) % 4);
        break;
    default:
        post(queue, input);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, bytes};
    uint32_t flags = (uint32_t)take(&input, 1);

    nic->next_qpn = NIC_FIRST_QPN;
    nic->next_cqn = NIC_FIRST_CQN;
    nic->diag_logged = 0;
    memset(&nic->counters, 0, sizeof(nic->counters));
    memset(nic->uar, 0, M5_UAR_BYTES);
    nic->strict = (struct nic_strict){
        .enabled = flags & 1,
        .doorbell_mode = flags & 2 ? NIC_DOORBELL_MERGE : NIC_DOORBELL_SCAN,
        .poison = flags >> 2 & 1,
        .early = flags >> 3 & 1,
        .random = 1,
    };
    for (uint32_t i = 0; i < QUEUES; i++)
        make_queue(i, i == 1 && flags >> 4 & 1);
    for (uint32_t i = 0; i < QUEUES; i++)
        connect(i);
    while (input.left > 0)
        step(&input);
    rounds(8);
    destroy_queues();
    check_slack();
    return 0;
}
