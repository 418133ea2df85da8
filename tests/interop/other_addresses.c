/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: memory registered under an address of the program's choice (ibv_reg_mr_iova(3)) or from
 * zero (IBV_ACCESS_ZERO_BASED) is reached by that address and no other, locally and remotely.
 */
#include "rc_pair.h"

#include <errno.h>
#include <string.h>

enum { AT = 12345, BYTES = 5000 };

/* Writes from, and reads into, memory of `a` known as `local`; at `b` as `remote`. */
static void transfer(struct rc_pair *pair, const struct ibv_mr *local, uint64_t laddr,
                     const struct ibv_mr *remote, uint64_t raddr, enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge = {.addr = laddr, .length = BYTES, .lkey = local->lkey};
    struct ibv_send_wr wr = {
        .wr_id = 1,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = {.remote_addr = raddr, .rkey = remote->rkey},
    };

    rc_post_chain(&pair->a, &wr);
}

static void check_transfer(struct rc_pair *pair, const struct ibv_mr *local, uint64_t laddr,
                           const struct ibv_mr *remote, uint64_t raddr)
{
    rc_fill(pair->a.buffer + AT, BYTES, laddr, 0);
    memset(pair->b.buffer, 0, pair->options.buffer_bytes);
    transfer(pair, local, laddr, remote, raddr, IBV_WR_RDMA_WRITE);
    rc_expect(pair->a.send_cq, &pair->a, 1, IBV_WC_RDMA_WRITE);
    rc_verify(pair->b.buffer + AT, BYTES, laddr, 0, "written");
    memset(pair->a.buffer, 0, pair->options.buffer_bytes);
    transfer(pair, local, laddr, remote, raddr, IBV_WR_RDMA_READ);
    rc_expect(pair->a.send_cq, &pair->a, 1, IBV_WC_RDMA_READ);
    rc_verify(pair->a.buffer + AT, BYTES, laddr, 0, "read");
}

/* The region at `base`, through its first and its last byte, and not beyond, nor by its own
 * address. */
static void region(struct ibv_context *context, bool zero_based, uint64_t base)
{
    unsigned int access = RC_REMOTE_ALL | IBV_ACCESS_LOCAL_WRITE;
    struct rc_options options = rc_defaults();
    struct rc_pair pair;
    struct ibv_mr *a, *b;
    size_t all = options.buffer_bytes;
    uint64_t bad[3];

    rc_create(&pair, context, &options);
    rc_connect(&pair);
    if (zero_based) {
        a = ibv_reg_mr(pair.pd, pair.a.buffer, all, access | IBV_ACCESS_ZERO_BASED);
        b = ibv_reg_mr(pair.pd, pair.b.buffer, all, access | IBV_ACCESS_ZERO_BASED);
    } else {
        a = ibv_reg_mr_iova(pair.pd, pair.a.buffer, all, base, access);
        b = ibv_reg_mr_iova(pair.pd, pair.b.buffer, all, base, access);
    }
    CHECK(a && b, "registering at 0x%llx: %s", (unsigned long long)base, strerror(errno));
    check_transfer(&pair, a, base + AT, b, base + AT);
    check_transfer(&pair, pair.a.mr, (uintptr_t)pair.a.buffer + AT, b, base + AT);
    check_transfer(&pair, a, base + AT, pair.b.mr, (uintptr_t)pair.b.buffer + AT);

    bad[0] = base + all - BYTES + 1;
    bad[1] = base - 1;
    bad[2] = (uintptr_t)pair.b.buffer + AT;
    for (int i = 0; i < 3; i++) {
        transfer(&pair, pair.a.mr, (uintptr_t)pair.a.buffer, b, bad[i], IBV_WR_RDMA_WRITE);
        rc_expect_error(pair.a.send_cq, &pair.a, 1, IBV_WC_REM_ACCESS_ERR);
        rc_to_state(&pair.a, IBV_QPS_RESET);
        rc_to_state(&pair.b, IBV_QPS_RESET);
        rc_connect(&pair);
        transfer(&pair, a, i == 2 ? (uintptr_t)pair.a.buffer + AT : bad[i], pair.b.mr,
                 (uintptr_t)pair.b.buffer, IBV_WR_RDMA_WRITE);
        rc_expect_error(pair.a.send_cq, &pair.a, 1, IBV_WC_LOC_PROT_ERR);
        rc_to_state(&pair.a, IBV_QPS_RESET);
        rc_to_state(&pair.b, IBV_QPS_RESET);
        rc_connect(&pair);
    }
    CHECK(ibv_dereg_mr(a) == 0 && ibv_dereg_mr(b) == 0, "ibv_dereg_mr failed");
    rc_destroy(&pair);
}

int main(void)
{
    struct ibv_context *context = rc_open();

    region(context, true, 0);
    region(context, false, 0);
    region(context, false, 0x123456789000);
    region(context, false, 0x8000000000000000);
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
    return 0;
}
