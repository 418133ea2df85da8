/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: ibv_query_qp tells what ibv_modify_qp set, state by state; a transition, a set of
 * attributes or a value that the state machine (IBTA volume 1, 10.3.1 and table "QP state
 * transition properties") does not allow is refused with EINVAL and changes nothing.
 */
#include "rc_pair.h"

#include <errno.h>
#include <string.h>

#define ALL_ATTRIBUTES                                                                             \
    (IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT |     \
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |          \
     IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN |              \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_CAP | IBV_QP_DEST_QPN)

static const int init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
static const int rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
static const int rts_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

/* Good values for every attribute, of which a mask takes its part. */
static struct ibv_qp_attr values(struct rc_pair *pair, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {
        .qp_state = state,
        .pkey_index = 0,
        .port_num = RC_PORT,
        .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
        .path_mtu = IBV_MTU_512,
        .dest_qp_num = pair->b.qp->qp_num,
        .rq_psn = 0x123456,
        .sq_psn = 0x654321,
        .max_dest_rd_atomic = 4,
        .max_rd_atomic = 8,
        .min_rnr_timer = 17,
        .timeout = 13,
        .retry_cnt = 5,
        .rnr_retry = 3,
        .ah_attr = {.grh = {.sgid_index = RC_GID_INDEX, .hop_limit = 33, .traffic_class = 0x40},
                    .is_global = 1,
                    .sl = 2,
                    .port_num = RC_PORT},
    };

    CHECK(ibv_query_gid(pair->context, RC_PORT, RC_GID_INDEX, &attr.ah_attr.grh.dgid) == 0,
          "ibv_query_gid failed");
    return attr;
}

static void modify(struct rc_pair *pair, const struct ibv_qp_attr *attr, int mask)
{
    struct ibv_qp_attr copy = *attr;
    int err = ibv_modify_qp(pair->a.qp, &copy, mask);

    CHECK(err == 0, "to state %d with mask 0x%x: %s", (int)attr->qp_state, mask, strerror(err));
}

static struct ibv_qp_attr query(const struct rc_pair *pair, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    memset(&attr, 0xff, sizeof(attr));
    memset(&init, 0xff, sizeof(init));
    CHECK(ibv_query_qp(pair->a.qp, &attr, ALL_ATTRIBUTES, &init) == 0, "ibv_query_qp failed");
    CHECK(attr.qp_state == state && attr.cur_qp_state == state, "state %d, current %d, not %d",
          (int)attr.qp_state, (int)attr.cur_qp_state, (int)state);
    CHECK(pair->a.qp->state == state, "the library holds state %d", (int)pair->a.qp->state);
    CHECK(memcmp(&attr.cap, &pair->a.cap, sizeof(attr.cap)) == 0,
          "capacities %u %u %u %u %u, created with %u %u %u %u %u", attr.cap.max_send_wr,
          attr.cap.max_recv_wr, attr.cap.max_send_sge, attr.cap.max_recv_sge,
          attr.cap.max_inline_data, pair->a.cap.max_send_wr, pair->a.cap.max_recv_wr,
          pair->a.cap.max_send_sge, pair->a.cap.max_recv_sge, pair->a.cap.max_inline_data);
    CHECK(init.send_cq == pair->a.send_cq && init.recv_cq == pair->a.recv_cq && !init.srq &&
              init.qp_type == IBV_QPT_RC,
          "the creation attributes are not those of creation");
    CHECK(init.sq_sig_all == pair->options.signal_all, "sq_sig_all %d", init.sq_sig_all);
    return attr;
}

/* Refused, with the state as before. */
static void refuse(struct rc_pair *pair, struct ibv_qp_attr attr, int mask, const char *what)
{
    enum ibv_qp_state before = rc_state(&pair->a);
    int err = ibv_modify_qp(pair->a.qp, &attr, mask);

    /* ENODATA is the answer to a GID index without a GID. */
    CHECK(err == EINVAL || err == ENODATA, "%s: %d (%s), EINVAL expected", what, err,
          strerror(err));
    CHECK(rc_state(&pair->a) == before, "%s was refused, and yet the state went from %d to %d",
          what, (int)before, (int)rc_state(&pair->a));
}

static void refused_in_reset(struct rc_pair *pair)
{
    struct ibv_qp_attr attr = values(pair, IBV_QPS_INIT);

    refuse(pair, attr, IBV_QP_STATE, "INIT without attributes");
    refuse(pair, attr, init_mask & ~IBV_QP_PORT, "INIT without a port");
    attr.port_num = 2;
    refuse(pair, attr, init_mask, "INIT on port 2");
    attr = values(pair, IBV_QPS_INIT);
    attr.pkey_index = 1000;
    refuse(pair, attr, init_mask, "INIT in partition 1000");
    refuse(pair, values(pair, IBV_QPS_RTR), rtr_mask, "RESET to RTR");
    refuse(pair, values(pair, IBV_QPS_RTS), rts_mask, "RESET to RTS");
}

static void refused_in_init(struct rc_pair *pair)
{
    struct ibv_qp_attr attr = values(pair, IBV_QPS_RTR);

    refuse(pair, attr, rtr_mask & ~IBV_QP_DEST_QPN, "RTR without a destination");
    refuse(pair, attr, rtr_mask & ~IBV_QP_AV, "RTR without an address");
    refuse(pair, attr, rtr_mask & ~IBV_QP_RQ_PSN, "RTR without a PSN");
    refuse(pair, attr, rtr_mask | IBV_QP_RNR_RETRY, "RTR with an attribute of RTS");
    attr.max_dest_rd_atomic = 200;
    refuse(pair, attr, rtr_mask, "RTR with 200 reads at a time");
    attr = values(pair, IBV_QPS_RTR);
    attr.ah_attr.grh.sgid_index = 200;
    refuse(pair, attr, rtr_mask, "RTR from a GID that does not exist");
    attr = values(pair, IBV_QPS_RTR);
    attr.ah_attr.is_global = 0;
    refuse(pair, attr, rtr_mask, "RTR on RoCE without a GID");
    attr = values(pair, IBV_QPS_RTR);
    attr.path_mtu = (enum ibv_mtu)6;
    refuse(pair, attr, rtr_mask, "RTR with an MTU above 4096");
    refuse(pair, values(pair, IBV_QPS_RTS), rts_mask, "INIT to RTS");
}

static void round_trip(struct rc_pair *pair)
{
    struct ibv_qp_attr set, got;

    query(pair, IBV_QPS_RESET);
    refused_in_reset(pair);
    set = values(pair, IBV_QPS_INIT);
    modify(pair, &set, init_mask);
    got = query(pair, IBV_QPS_INIT);
    CHECK(got.port_num == RC_PORT && got.pkey_index == 0 &&
              got.qp_access_flags == set.qp_access_flags,
          "port %u, partition %u, access 0x%x", got.port_num, got.pkey_index, got.qp_access_flags);
    refused_in_init(pair);
    /* INIT to INIT may change the access. */
    set.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    modify(pair, &set, init_mask);
    CHECK(query(pair, IBV_QPS_INIT).qp_access_flags == IBV_ACCESS_REMOTE_WRITE,
          "INIT to INIT did not set the access");

    set = values(pair, IBV_QPS_RTR);
    modify(pair, &set, rtr_mask);
    got = query(pair, IBV_QPS_RTR);
    CHECK(got.path_mtu == set.path_mtu && got.dest_qp_num == set.dest_qp_num &&
              got.rq_psn == set.rq_psn,
          "MTU %d, destination 0x%x, PSN 0x%x", (int)got.path_mtu, got.dest_qp_num, got.rq_psn);
    CHECK(got.max_dest_rd_atomic == 4 && got.min_rnr_timer == 17, "%u reads at a time, timer %u",
          got.max_dest_rd_atomic, got.min_rnr_timer);
    CHECK(got.ah_attr.is_global == 1 && got.ah_attr.port_num == RC_PORT &&
              got.ah_attr.grh.sgid_index == RC_GID_INDEX && got.ah_attr.grh.hop_limit == 33 &&
              got.ah_attr.grh.traffic_class == 0x40 && got.ah_attr.sl == 2 &&
              memcmp(&got.ah_attr.grh.dgid, &set.ah_attr.grh.dgid, 16) == 0,
          "global %u, port %u, GID index %u, hops %u, class 0x%x, level %u, or the GID",
          got.ah_attr.is_global, got.ah_attr.port_num, got.ah_attr.grh.sgid_index,
          got.ah_attr.grh.hop_limit, got.ah_attr.grh.traffic_class, got.ah_attr.sl);

    set = values(pair, IBV_QPS_RTS);
    refuse(pair, set, rts_mask & ~IBV_QP_SQ_PSN, "RTS without a PSN");
    refuse(pair, values(pair, IBV_QPS_INIT), init_mask, "RTR to INIT");
    modify(pair, &set, rts_mask);
    got = query(pair, IBV_QPS_RTS);
    CHECK(got.sq_psn == set.sq_psn && got.timeout == 13 && got.retry_cnt == 5 &&
              got.rnr_retry == 3 && got.max_rd_atomic == 8,
          "PSN 0x%x, timeout %u, retries %u and %u, %u reads at a time", got.sq_psn, got.timeout,
          got.retry_cnt, got.rnr_retry, got.max_rd_atomic);
    refuse(pair, values(pair, IBV_QPS_INIT), init_mask, "RTS to INIT");
    refuse(pair, values(pair, IBV_QPS_RTR), rtr_mask, "RTS to RTR");
    refuse(pair, values(pair, IBV_QPS_RTS), IBV_QP_STATE | IBV_QP_PORT, "RTS with a new port");
    /* RTS to RTS may change the access and the timer. */
    set.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    set.min_rnr_timer = 9;
    modify(pair, &set, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER);
    got = query(pair, IBV_QPS_RTS);
    CHECK(got.qp_access_flags == IBV_ACCESS_REMOTE_READ && got.min_rnr_timer == 9,
          "access 0x%x, timer %u", got.qp_access_flags, got.min_rnr_timer);

    rc_to_state(&pair->a, IBV_QPS_ERR);
    query(pair, IBV_QPS_ERR);
    refuse(pair, values(pair, IBV_QPS_RTS), rts_mask, "ERR to RTS");
    refuse(pair, values(pair, IBV_QPS_INIT), init_mask, "ERR to INIT");
    rc_to_state(&pair->a, IBV_QPS_RESET);
    query(pair, IBV_QPS_RESET);
}

int main(void)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    for (int i = 0; i < 3; i++) {
        options.signal_all = i % 2;
        options.inline_bytes = (uint32_t)i * 60;
        options.send_sge = 1 + (uint32_t)i * 3;
        options.recv_sge = 1 + (uint32_t)i * 2;
        options.send_depth = 5;
        options.recv_depth = 9;
        rc_create(&pair, NULL, &options);
        round_trip(&pair);
        round_trip(&pair);
        rc_destroy(&pair);
    }
    return 0;
}
