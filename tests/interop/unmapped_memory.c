/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: a program that unmaps or write-protects registered memory and then posts gets a protection
 * error, on the side whose memory it was, never a crash; the device serves on, and faults of the
 * program's own still reach the program's own handler.
 *
 * (A real device pins the pages and would go on using them; the software one cannot.)
 */
#include "rc_pair.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 64, BYTES = PAGE * PAGES };

/* Low, where no mapping that asks for no place is put: nothing comes to lie in the holes we make.
 */
#define BUFFERS_AT 0x40000000u

enum harm { UNMAP_ALL, UNMAP_LAST_PAGE, UNMAP_MIDDLE_PAGE, FORBID_ACCESS, FORBID_WRITING };

static sigjmp_buf own_fault_seen;

static void on_fault(int signal)
{
    (void)signal;
    siglongjmp(own_fault_seen, 1);
}

/* The program faults by itself, and its handler must get it. */
static void fault_by_ourselves(void)
{
    volatile char *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK((const void *)page != MAP_FAILED, "mmap failed");
    if (sigsetjmp(own_fault_seen, 1) == 0) {
        page[7] = 1;
        CHECK(false, "a write to a forbidden page went through");
    }
    munmap((void *)page, PAGE);
}

static void install_handler(void)
{
    struct sigaction action = {.sa_handler = on_fault};

    CHECK(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction failed");
}

static void do_harm(uint8_t *memory, enum harm harm)
{
    int err = 0;

    switch (harm) {
    case UNMAP_ALL:
        err = munmap(memory, BYTES);
        break;
    case UNMAP_LAST_PAGE:
        err = munmap(memory + BYTES - PAGE, PAGE);
        break;
    case UNMAP_MIDDLE_PAGE:
        err = munmap(memory + BYTES / 2, PAGE);
        break;
    case FORBID_ACCESS:
        err = mprotect(memory, BYTES, PROT_NONE);
        break;
    case FORBID_WRITING:
        err = mprotect(memory, BYTES, PROT_READ);
        break;
    }
    CHECK(err == 0, "harm %d could not be done", (int)harm);
}

static void expect_one_of(struct rc_pair *pair, enum ibv_wc_status a, enum ibv_wc_status b,
                          enum harm harm, const char *what)
{
    struct ibv_wc wc = rc_poll(pair->a.send_cq);

    CHECK(wc.wr_id == 7 && (wc.status == a || wc.status == b),
          "%s, harm %d: request %llu, %s; %s expected", what, (int)harm,
          (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), ibv_wc_status_str(a));
}

static void start(struct rc_pair *pair, struct ibv_context *context)
{
    struct rc_options options = rc_defaults();

    options.buffer_bytes = BYTES;
    options.buffers_at = BUFFERS_AT;
    rc_create(pair, context, &options);
    rc_connect(pair);
}

/* The requester's own memory: what it sends from, or reads into. */
static void local(struct ibv_context *context, enum ibv_wr_opcode opcode, enum harm harm)
{
    struct rc_pair pair;

    start(&pair, context);
    memset(pair.a.buffer, 1, BYTES);
    do_harm(pair.a.buffer, harm);
    rc_post_recv(&pair.b, 1, 0, BYTES);
    rc_post(&pair.a, &pair.b, opcode, 7, 0, 0, BYTES, IBV_SEND_SIGNALED);
    expect_one_of(&pair, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR, harm, "local memory");
    rc_destroy(&pair);
}

/* The responder's memory: the requester hears that access failed, or that the responder could not.
 */
static void remote(struct ibv_context *context, enum ibv_wr_opcode opcode, enum harm harm)
{
    bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    struct rc_pair pair;

    start(&pair, context);
    memset(pair.b.buffer, 1, BYTES);
    do_harm(pair.b.buffer, harm);
    if (atomic)
        rc_post_atomic(&pair.a, &pair.b, opcode, 7, 0, BYTES / 2, 1, 0);
    else
        rc_post(&pair.a, &pair.b, opcode, 7, 0, 0, BYTES, IBV_SEND_SIGNALED);
    expect_one_of(&pair, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR, harm, "remote memory");
    rc_destroy(&pair);
}

/* A receive buffer: both sides hear of it. */
static void receive(struct ibv_context *context, enum harm harm)
{
    struct rc_pair pair;

    start(&pair, context);
    do_harm(pair.b.buffer, harm);
    rc_post_recv(&pair.b, 1, 0, BYTES);
    rc_post(&pair.a, &pair.b, IBV_WR_SEND, 7, 0, 0, BYTES, IBV_SEND_SIGNALED);
    expect_one_of(&pair, IBV_WC_REM_OP_ERR, IBV_WC_REM_OP_ERR, harm, "receive memory");
    rc_expect_error(pair.b.recv_cq, &pair.b, 1, IBV_WC_LOC_PROT_ERR);
    rc_destroy(&pair);
}

static void all(struct ibv_context *context)
{
    static const enum harm harms[] = {UNMAP_ALL, UNMAP_LAST_PAGE, UNMAP_MIDDLE_PAGE, FORBID_ACCESS};

    for (int i = 0; i < 4; i++) {
        local(context, IBV_WR_RDMA_WRITE, harms[i]);
        local(context, IBV_WR_SEND, harms[i]);
        local(context, IBV_WR_RDMA_READ, harms[i]);
        remote(context, IBV_WR_RDMA_WRITE, harms[i]);
        remote(context, IBV_WR_RDMA_READ, harms[i]);
        if (harms[i] != UNMAP_LAST_PAGE)
            remote(context, IBV_WR_ATOMIC_FETCH_AND_ADD, harms[i]);
        receive(context, harms[i]);
    }
    local(context, IBV_WR_RDMA_READ, FORBID_WRITING);
    remote(context, IBV_WR_RDMA_WRITE, FORBID_WRITING);
    remote(context, IBV_WR_ATOMIC_FETCH_AND_ADD, FORBID_WRITING);
    receive(context, FORBID_WRITING);
}

/* Reading from memory that may be read is no fault. */
static void read_only_source(struct ibv_context *context)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    rc_create(&pair, context, &options);
    rc_connect(&pair);
    memset(pair.a.buffer, 5, 65536);
    CHECK(mprotect(pair.a.buffer, 65536, PROT_READ) == 0, "mprotect failed");
    rc_post(&pair.a, &pair.b, IBV_WR_RDMA_WRITE, 1, 0, 0, 65536, IBV_SEND_SIGNALED);
    rc_expect(pair.a.send_cq, &pair.a, 1, IBV_WC_RDMA_WRITE);
    rc_verify_constant(pair.b.buffer, 65536, 5, "written from read-only memory");
    rc_destroy(&pair);
}

int main(void)
{
    struct ibv_context *context = rc_open();
    struct rc_options options = rc_defaults();
    struct rc_pair witness;

    rc_create(&witness, context, &options);
    rc_connect(&witness);
    all(context);
    read_only_source(context);
    /* The program's own handler, installed after the device's start, changes nothing for either. */
    install_handler();
    fault_by_ourselves();
    all(context);
    fault_by_ourselves();
    rc_post(&witness.a, &witness.b, IBV_WR_RDMA_READ, 1, 0, 0, 8, IBV_SEND_SIGNALED);
    rc_expect(witness.a.send_cq, &witness.a, 1, IBV_WC_RDMA_READ);
    rc_destroy(&witness);
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
    /* And installed before it. */
    context = rc_open();
    fault_by_ourselves();
    all(context);
    fault_by_ourselves();
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
    return 0;
}
