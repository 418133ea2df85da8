/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: memory that a program registered and then unmapped costs it the queue pair or the CQ that
 * uses it, with the error that fits, and never the process: payload on either side, rings, records,
 * CQs. Whoever waits for the other side gets a completion, and other queues go on.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <core/objects.h>

#include "engine_rig.h"

static struct rig rig;
static struct rig_queue a, b, bystander;
static uint32_t expected_events[8];

/* ---- Set-up of one case ---- */

static void open_pair(const char *what, uint32_t retries)
{
    printf("%s\n", what);
    fflush(stdout);
    memset(rig.async_events, 0, sizeof(rig.async_events));
    memset(expected_events, 0, sizeof(expected_events));
    uint32_t page = rig_uar(&rig);
    rig_create(&rig, &a, page, 0, 4);
    rig_create(&rig, &b, page, 1, 4);
    rig_connect_with(&a, &b, retries, 8); /* 1 ms */
    rig_loop(&rig, &bystander, page, 2, 4);
}

static void wait_event(enum nic_event event, uint32_t count)
{
    char what[64];
    snprintf(what, sizeof(what), "async event %d, %u times", event, count);
    rig_wait32(&rig.async_events[event], count, what);
    expected_events[event] = count;
}

/* The engine serves others, and no event came that was not asked for. */
static void close_pair(void)
{
    struct wqe wqe;
    for (int i = 0; i < 40; i++) {
        rig_build(&bystander, &wqe, 0, 64);
        rig_expect(&bystander, rig_post(&bystander, &wqe));
    }
    for (int event = 0; event < 8; event++)
        CHECK(rig.async_events[event] == expected_events[event], "%u events %d, wanted %u",
              rig.async_events[event], event, expected_events[event]);
    uint32_t page = a.page;
    rig_destroy(&bystander);
    rig_destroy(&a);
    rig_destroy(&b);
    CHECK(nic_uar_free(nic_hold(rig.host), page) == 0, "nic_uar_free failed");
    nic_release(rig.host);
}

static void in_error(const struct rig_queue *queue, bool expected)
{
    uint64_t start = rig_now_ns();
    while (expected && rig_state(queue) != NIC_QP_ERR)
        CHECK(rig_now_ns() - start < RIG_PATIENCE_NS, "QP 0x%x never came to error", queue->qpn);
    CHECK((rig_state(queue) == NIC_QP_ERR) == expected, "QP 0x%x is in state %u", queue->qpn,
          rig_state(queue));
}

/* As unmapped, but so that nothing else can be mapped there meanwhile. */
static void take_away(void *page)
{
    void *at = mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(at == page, "mmap without rights failed");
}

/* A page of its own, registered, then taken away. */
struct lost {
    uint8_t *at;
    uint32_t key;
};

static struct lost lose_page(void)
{
    struct lost lost = {
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 0};
    struct nic_mkey_attr attr = {
        .pdn = rig.pdn,
        .access = NIC_LOCAL_WRITE | NIC_REMOTE_WRITE | NIC_REMOTE_READ | NIC_REMOTE_ATOMIC,
        .start = (uintptr_t)lost.at,
        .bytes = 4096,
        .host = lost.at,
    };
    CHECK(nic_mkey_create(nic_hold(rig.host), &attr, &lost.key) == 0, "nic_mkey_create failed");
    nic_release(rig.host);
    take_away(lost.at);
    return lost;
}

static void forget(struct lost lost)
{
    CHECK(nic_mkey_destroy(nic_hold(rig.host), lost.key) == 0, "nic_mkey_destroy failed");
    nic_release(rig.host);
    munmap(lost.at, 4096);
}

static void post_write(struct rig_queue *queue)
{
    struct wqe wqe;
    rig_build(queue, &wqe, 0, 64);
    rig_post(queue, &wqe);
}

static void begin(struct wqe *wqe, uint32_t opcode, const void *remote, uint32_t rkey)
{
    wqe_begin(wqe, opcode, 0, M5_CTRL_CQ_UPDATE, 0);
    if (opcode != M5_OP_SEND)
        wqe_raddr(wqe, (uintptr_t)remote, rkey);
    if (opcode == M5_OP_ATOMIC_FA || opcode == M5_OP_ATOMIC_CS)
        wqe_operands64(wqe, 1, 0);
}

/* Two WQEs in one doorbell: the first ends with `syndrome`, the second is flushed. */
static void ends_with(struct wqe *wqe, uint32_t syndrome)
{
    uint64_t index = rig_put(&a, wqe);
    struct wqe next;
    rig_build(&a, &next, 0, 64);
    uint64_t second = rig_put(&a, &next);
    rig_record(&a, a.posted);
    rig_ring(&a, second);
    rig_expect_error(&a, index, syndrome);
    rig_expect_error(&a, second, M5_SYN_FLUSHED);
    in_error(&a, true);
}

/* ---- Payload ---- */

static void local_payload(uint32_t opcode)
{
    struct wqe wqe;
    open_pair("the requester's payload", 7);
    struct lost lost = lose_page();
    rig_post_recv(&b, rig.payload, 64);
    begin(&wqe, opcode, rig.payload + 64, rig.key);
    wqe_data(&wqe, lost.at, lost.key, 8);
    ends_with(&wqe, M5_SYN_LOCAL_PROTECTION);
    in_error(&b, false);
    forget(lost);
    close_pair();
}

static void remote_payload(uint32_t opcode)
{
    struct wqe wqe;
    open_pair("the responder's payload", 7);
    struct lost lost = lose_page();
    begin(&wqe, opcode, lost.at, lost.key);
    wqe_data(&wqe, rig.payload, rig.key, 8);
    ends_with(&wqe, M5_SYN_REMOTE_ACCESS);
    wait_event(NIC_EVENT_QP_ACCESS_ERR, 1);
    in_error(&b, true);
    forget(lost);
    close_pair();
}

/* The second of two ranges is gone, on a page boundary. */
static void second_range(void)
{
    struct wqe wqe;
    open_pair("the second range of a gather list", 7);
    struct lost lost = lose_page();
    begin(&wqe, M5_OP_WRITE, rig.payload + 64, rig.key);
    wqe_data(&wqe, rig.payload, rig.key, 8);
    wqe_data(&wqe, lost.at + 4000, lost.key, 96);
    ends_with(&wqe, M5_SYN_LOCAL_PROTECTION);
    in_error(&b, false);
    forget(lost);
    close_pair();
}

static void receive_buffer(void)
{
    struct wqe wqe;
    open_pair("the receive buffer", 7);
    struct lost lost = lose_page();
    rig_post_recv(&b, lost.at, 64);
    bytes_put32(b.rq + 4, lost.key);
    begin(&wqe, M5_OP_SEND, NULL, 0);
    wqe_data(&wqe, rig.payload, rig.key, 8);
    ends_with(&wqe, M5_SYN_REMOTE_OPERATION);
    struct cqe cqe = rig_poll(&b.recv_cq);
    CHECK(cqe.opcode == M5_CQE_RESPONDER_ERROR && cqe.syndrome == M5_SYN_LOCAL_PROTECTION,
          "the receiver's CQE: opcode 0x%x, syndrome 0x%x", cqe.opcode, cqe.syndrome);
    in_error(&b, true);
    forget(lost);
    close_pair();
}

/* ---- Rings and records ---- */

static void send_ring(void)
{
    open_pair("the send ring", 7);
    take_away(a.sq);
    rig_record(&a, 1);
    rig_ring(&a, 0);
    wait_event(NIC_EVENT_QP_FATAL, 1);
    in_error(&a, true);
    in_error(&b, false);
    close_pair();
}

static void record(void)
{
    open_pair("the doorbell record", 7);
    take_away(a.record);
    rig_ring(&a, 0);
    wait_event(NIC_EVENT_QP_FATAL, 1);
    in_error(&a, true);
    close_pair();
}

/* A doorbell without a record makes the device look again later; by then the record is gone. */
static void suspected_record(void)
{
    open_pair("the doorbell record, while its doorbell is unaccounted for", 7);
    rig_ring(&a, 0);
    rig_wait32((uint32_t *)(void *)a.doorbell, 0, "the doorbell taken");
    nic_hold(rig.host);
    take_away(a.record);
    nic_release(rig.host);
    rig_sleep_ms(250);
    wait_event(NIC_EVENT_QP_FATAL, 1);
    close_pair();
}

/* The same for WQEs that were executed before their doorbell. */
static void suspected_unrung(void)
{
    struct rig_queue alone;
    struct wqe wqe;
    open_pair("the doorbell record, while a doorbell is missing", 7);
    rig_loop(&rig, &alone, rig_uar(&rig), 0, 4);
    rig_build(&alone, &wqe, 0, 64);
    rig_put(&alone, &wqe);
    rig_put(&alone, &wqe);
    rig_record(&alone, 2);
    rig_ring(&alone, 0);
    rig_expect(&alone, 0);
    rig_expect(&alone, 1);
    nic_hold(rig.host);
    take_away(alone.record);
    nic_release(rig.host);
    wait_event(NIC_EVENT_QP_FATAL, 1);
    rig_destroy(&alone);
    close_pair();
}

/* Another queue's doorbell is overwritten in their register by that of the queue without memory. */
static void merged(void)
{
    struct rig_queue other;
    struct wqe wqe;
    open_pair("the send ring, rung in the register of another queue", 7);
    rig_loop(&rig, &other, a.page, 0, 4);
    rig_build(&other, &wqe, 0, 64);
    nic_hold(rig.host);
    rig_post(&other, &wqe);
    take_away(a.sq);
    rig_record(&a, 1);
    rig_ring(&a, 0);
    nic_release(rig.host);
    rig_expect(&other, 0);
    wait_event(NIC_EVENT_QP_FATAL, 1);
    rig_destroy(&other);
    close_pair();
}

static void receive_ring(bool is_record)
{
    struct wqe wqe;
    open_pair(is_record ? "the receiver's record" : "the receive ring", 2);
    rig_post_recv(&b, rig.payload, 64);
    begin(&wqe, M5_OP_SEND, NULL, 0);
    wqe_data(&wqe, rig.payload, rig.key, 8);
    take_away(is_record ? (void *)b.record : b.rq);
    uint64_t index = rig_post(&a, &wqe);
    wait_event(NIC_EVENT_QP_FATAL, 1);
    in_error(&b, true);
    struct cqe cqe = rig_poll(&a.send_cq);
    CHECK(cqe.opcode == M5_CQE_REQUESTER_ERROR && cqe.wqe_counter == (index & 0xffff),
          "the sender's CQE: opcode 0x%x, counter %u", cqe.opcode, cqe.wqe_counter);
    in_error(&a, true);
    close_pair();
}

/* The sender already waits for a receive WQE. */
static void record_in_stall(void)
{
    struct wqe wqe;
    open_pair("the receiver's record, while the sender waits", 7);
    begin(&wqe, M5_OP_SEND, NULL, 0);
    wqe_data(&wqe, rig.payload, rig.key, 8);
    rig_post(&a, &wqe);
    rig_expect_none(&a.send_cq, 5);
    nic_hold(rig.host);
    take_away(b.record);
    nic_release(rig.host);
    wait_event(NIC_EVENT_QP_FATAL, 1);
    struct cqe cqe = rig_poll(&a.send_cq);
    CHECK(cqe.opcode == M5_CQE_REQUESTER_ERROR, "the sender's CQE: opcode 0x%x", cqe.opcode);
    close_pair();
}

/* ---- Completion queues ---- */

static void send_cq(bool signalled)
{
    struct wqe wqe;
    open_pair(signalled ? "the send CQ" : "the send CQ, at an error", 7);
    rig_build(&a, &wqe, 0, 64);
    if (!signalled) {
        wqe.bytes[11] = 0;
        bytes_put32(wqe.bytes + 24, 0xbad00);
        wait_event(NIC_EVENT_QP_ACCESS_ERR, 0);
    }
    take_away(a.send_cq.ring);
    rig_put(&a, &wqe);
    rig_put(&a, &wqe);
    rig_record(&a, a.posted);
    rig_ring(&a, a.posted - 1);
    wait_event(NIC_EVENT_CQ_ERR, 1);
    wait_event(NIC_EVENT_QP_FATAL, 1);
    if (!signalled)
        wait_event(NIC_EVENT_QP_ACCESS_ERR, 1);
    in_error(&a, true);
    close_pair();
}

static void receive_cq(void)
{
    struct wqe wqe;
    open_pair("the receive CQ", 2);
    rig_post_recv(&b, rig.payload, 64);
    take_away(b.recv_cq.ring);
    begin(&wqe, M5_OP_SEND, NULL, 0);
    wqe_data(&wqe, rig.payload, rig.key, 8);
    uint64_t index = rig_post(&a, &wqe);
    wait_event(NIC_EVENT_CQ_ERR, 1);
    wait_event(NIC_EVENT_QP_FATAL, 1);
    in_error(&b, true);
    struct cqe cqe = rig_poll(&a.send_cq);
    CHECK(cqe.wqe_counter == (index & 0xffff), "the sender's CQE: counter %u", cqe.wqe_counter);
    close_pair();
}

/* Read when the CQ looks full. */
static void cq_record(void)
{
    open_pair("the CQ's record", 7);
    for (int i = 0; i < 16; i++)
        post_write(&a);
    uint64_t start = rig_now_ns();
    while (nic_qp_find(nic_hold(rig.host), a.qpn)->sq_done < 16) {
        nic_release(rig.host);
        CHECK(rig_now_ns() - start < RIG_PATIENCE_NS, "16 writes were never executed");
    }
    nic_release(rig.host);
    take_away(a.send_cq.record);
    post_write(&a);
    wait_event(NIC_EVENT_CQ_ERR, 1);
    wait_event(NIC_EVENT_QP_FATAL, 1);
    in_error(&a, true);
    close_pair();
}

/* Read when any CQ of the page is armed. */
static void cq_record_at_arm(void)
{
    open_pair("CQ records, when another CQ is armed", 7);
    /* Both sides of the armed one in whatever order the device looks. */
    take_away(a.recv_cq.record);
    take_away(b.recv_cq.record);
    uint64_t word = (uint64_t)__builtin_bswap32(a.send_cq.cqn) << 32;
    __atomic_store_n(&a.send_cq.record->arm.raw, 0, __ATOMIC_RELEASE);
    uint64_t *reg = (uint64_t *)(void *)(rig.uar + (size_t)a.page * M5_UAR_BYTES + 0x20);
    __atomic_store_n(reg, word, __ATOMIC_RELEASE);
    wait_event(NIC_EVENT_CQ_ERR, 2);
    /* The arm itself was not lost with them. */
    uint32_t before = __atomic_load_n(&rig.completion_events, __ATOMIC_ACQUIRE);
    post_write(&a);
    rig_expect(&a, 0);
    rig_wait32(&rig.completion_events, before + 1, "the completion event of the armed CQ");
    close_pair();
}

/* ---- The program's own faults stay the program's ---- */

static void own_fault(bool with_handler)
{
    printf("a fault of the program's own\n");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        volatile uint8_t *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct sigaction action = {.sa_handler = with_handler ? _exit : SIG_DFL};
        sigaction(SIGSEGV, &action, NULL);
        *nowhere = 1;
        _exit(3);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child, "waitpid failed");
    if (with_handler)
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == SIGSEGV, "the handler: status 0x%x",
              status);
    else
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "no handler: status 0x%x",
              status);
}

int main(void)
{
    struct nic_config config = {.strict = {.enabled = 1, .random = 1}};

    /* Never asleep: a store to a sleeping device's page waits for it, also while it is held. */
    config.poll = NIC_POLL_SPIN;
    rig_start(&rig, &config);
    merged();
    rig_stop(&rig);

    config.poll = NIC_POLL_ADAPTIVE;
    rig_start(&rig, &config);
    local_payload(M5_OP_WRITE);
    local_payload(M5_OP_READ);
    local_payload(M5_OP_SEND);
    local_payload(M5_OP_ATOMIC_FA);
    remote_payload(M5_OP_WRITE);
    remote_payload(M5_OP_READ);
    remote_payload(M5_OP_ATOMIC_CS);
    second_range();
    receive_buffer();
    send_ring();
    record();
    suspected_record();
    suspected_unrung();
    receive_ring(false);
    receive_ring(true);
    record_in_stall();
    send_cq(true);
    send_cq(false);
    receive_cq();
    cq_record();
    cq_record_at_arm();
    own_fault(true);
    own_fault(false);
    rig_stop(&rig);
    return 0;
}
