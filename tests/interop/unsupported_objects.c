/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: what the device does not offer (other transports, shared receive queues, memory windows,
 * device memory, flow steering, DEVX channels, indirect keys, changing or resizing what exists) is
 * refused with an errno that says so, half-creates nothing and crashes nothing, however often it is
 * asked for.
 */
#include "rc_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

enum { OFTEN = 200 };

static void check_refused(int err, const char *what)
{
    CHECK(err, "%s: was not refused, or without an errno", what);
    CHECK(err == EOPNOTSUPP || err == ENOSYS || err == EINVAL || err == EPROTONOSUPPORT ||
              err == ENOMEM || err == EPERM || err == ENODEV,
          "%s: %d (%s)", what, err, strerror(err));
}

/* A pointer or a negative result tells by errno. libmlx5 refuses some kinds itself, without it. */
static void check_pointer(const void *object, const char *what)
{
    CHECK(!object, "%s: was not refused", what);
    check_refused(errno, what);
}

static void check_result(int result, const char *what)
{
    check_refused(result < 0 ? errno : result, what);
}

static void transports(struct rc_pair *pair)
{
    static const struct {
        enum ibv_qp_type type;
        const char *name;
    } types[] = {{IBV_QPT_UD, "UD"},
                 {IBV_QPT_UC, "UC"},
                 {IBV_QPT_RAW_PACKET, "raw packets"},
                 {IBV_QPT_XRC_SEND, "XRC send"},
                 {IBV_QPT_DRIVER, "a driver's transport"},
                 {(enum ibv_qp_type)99, "no transport"}};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct ibv_qp_init_attr attr = {
            .send_cq = pair->a.send_cq,
            .recv_cq = pair->a.recv_cq,
            .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
            .qp_type = types[i].type,
        };

        errno = EINVAL;
        check_pointer(ibv_create_qp(pair->pd, &attr), types[i].name);
    }
}

static void dynamically_connected(struct rc_pair *pair)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = pair->a.send_cq,
        .recv_cq = pair->a.recv_cq,
        .cap = {.max_send_wr = 4, .max_send_sge = 1},
        .qp_type = IBV_QPT_DRIVER,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pair->pd,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
    };
    struct mlx5dv_qp_init_attr dv = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI},
    };

    errno = 0;
    check_pointer(mlx5dv_create_qp(pair->context, &attr, &dv), "DC initiator");
}

static void shared_receive_queues(struct rc_pair *pair)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq_init_attr_ex extended = {
        .attr = {.max_wr = 16, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_BASIC,
        .pd = pair->pd,
    };
    struct ibv_xrcd_init_attr xrcd = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
        .fd = -1,
        .oflags = O_CREAT,
    };

    errno = EINVAL;
    check_pointer(ibv_create_srq(pair->pd, &attr), "SRQ");
    errno = EINVAL;
    check_pointer(ibv_create_srq_ex(pair->context, &extended), "extended SRQ");
    errno = EINVAL;
    check_pointer(ibv_open_xrcd(pair->context, &xrcd), "XRC domain");
}

static void memory(struct rc_pair *pair)
{
    struct ibv_alloc_dm_attr dm = {.length = 4096};
    int err;

    errno = EINVAL;
    check_pointer(ibv_alloc_mw(pair->pd, IBV_MW_TYPE_1), "memory window of type 1");
    errno = EINVAL;
    check_pointer(ibv_alloc_mw(pair->pd, IBV_MW_TYPE_2), "memory window of type 2");
    errno = EINVAL;
    check_pointer(ibv_alloc_dm(pair->context, &dm), "device memory");
    errno = EINVAL;
    check_pointer(
        ibv_reg_mr(pair->pd, pair->a.buffer, 4096, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE),
        "region on demand");
    errno = EINVAL;
    check_pointer(
        ibv_reg_mr(pair->pd, pair->a.buffer, 4096, IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE),
        "region for memory windows");
    errno = EINVAL;
    err = ibv_rereg_mr(pair->a.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0);
    check_result(err, "rereg_mr");
}

static void queues(struct rc_pair *pair)
{
    struct ibv_wq_init_attr wq = {
        .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = pair->pd, .cq = pair->a.recv_cq};
    struct ibv_flow_attr flow = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(flow), .port = 1};
    union ibv_gid group = {.raw = {0xff, 0x02}};
    struct ibv_modify_cq_attr moderation = {.attr_mask = IBV_CQ_ATTR_MODERATE,
                                            .moderate = {.cq_count = 8, .cq_period = 8}};
    int err = ibv_resize_cq(pair->a.send_cq, 1000);

    check_result(err, "resize_cq");
    errno = EINVAL;
    check_pointer(ibv_create_wq(pair->context, &wq), "receive work queue");
    errno = EINVAL;
    check_pointer(ibv_create_flow(pair->a.qp, &flow), "flow");
    err = ibv_attach_mcast(pair->a.qp, &group, 0);
    check_result(err, "multicast");
    /* Moderation only trades latency: it may be accepted. */
    err = ibv_modify_cq(pair->a.send_cq, &moderation);
    if (err)
        check_result(err, "moderation");
}

static void devx(struct rc_pair *pair)
{
    struct mlx5dv_mkey_init_attr mkey = {
        .pd = pair->pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 4};

    errno = 0;
    check_pointer(mlx5dv_devx_create_event_channel(
                      pair->context, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA),
                  "DEVX event channel");
    errno = 0;
    check_pointer(mlx5dv_devx_create_cmd_comp(pair->context), "DEVX command channel");
    errno = 0;
    check_pointer(mlx5dv_create_mkey(&mkey), "indirect memory key");
}

/* An address handle needs no device, but none of these queue pairs can use it. */
static void address_handle(struct rc_pair *pair)
{
    struct ibv_ah_attr attr = {
        .grh = {.sgid_index = RC_GID_INDEX, .hop_limit = 1}, .is_global = 1, .port_num = RC_PORT};
    struct ibv_ah *ah;

    CHECK(ibv_query_gid(pair->context, RC_PORT, RC_GID_INDEX, &attr.grh.dgid) == 0,
          "ibv_query_gid failed");
    ah = ibv_create_ah(pair->pd, &attr);
    if (ah)
        CHECK(ibv_destroy_ah(ah) == 0, "ibv_destroy_ah failed");
}

int main(void)
{
    struct rc_options options = rc_defaults();
    struct rc_pair pair;

    rc_start(&pair, &options);
    for (int i = 0; i < OFTEN; i++) {
        transports(&pair);
        dynamically_connected(&pair);
        shared_receive_queues(&pair);
        memory(&pair);
        queues(&pair);
        devx(&pair);
        address_handle(&pair);
        rc_post(&pair.a, &pair.b, IBV_WR_RDMA_READ, 1, 0, 0, 8, IBV_SEND_SIGNALED);
        rc_expect(pair.a.send_cq, &pair.a, 1, IBV_WC_RDMA_READ);
    }
    rc_destroy(&pair);
    return 0;
}
