/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim: what the device says of itself (ibv_query_device(3), ibv_query_port(3), ibv_query_gid(3),
 * ibv_query_pkey(3)) is sane, the same by every way of asking, and ends where it says that it ends.
 */
#include "rc_pair.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

static void device(struct ibv_context *context)
{
    struct ibv_device_attr attr;
    struct ibv_device_attr_ex extended;
    struct mlx5dv_context dv = {0};

    memset(&attr, 0xff, sizeof(attr));
    CHECK(ibv_query_device(context, &attr) == 0, "ibv_query_device failed");
    CHECK(ibv_query_device_ex(context, NULL, &extended) == 0, "ibv_query_device_ex failed");
    CHECK(memcmp(&attr, &extended.orig_attr, sizeof(attr)) == 0,
          "ibv_query_device and ibv_query_device_ex differ");
    CHECK(attr.vendor_id == 0x02c9, "vendor 0x%x", attr.vendor_id);
    CHECK(attr.phys_port_cnt == 1, "%u ports", attr.phys_port_cnt);
    CHECK(attr.fw_ver[0] && memchr(attr.fw_ver, 0, sizeof(attr.fw_ver)), "no firmware version");
    CHECK(attr.node_guid && attr.node_guid == ibv_get_device_guid(context->device),
          "node GUID 0x%llx, by the list 0x%llx", (unsigned long long)be64toh(attr.node_guid),
          (unsigned long long)be64toh(ibv_get_device_guid(context->device)));
    CHECK(attr.max_mr_size >= 1ull << 40, "regions of at most %llu bytes",
          (unsigned long long)attr.max_mr_size);
    CHECK(attr.page_size_cap & 4096, "page sizes 0x%llx", (unsigned long long)attr.page_size_cap);
    CHECK(attr.max_qp >= 256 && attr.max_qp_wr >= 32768, "%d QPs of %d requests", attr.max_qp,
          attr.max_qp_wr);
    CHECK(attr.max_cq >= 256 && attr.max_cqe >= 65536, "%d CQs of %d entries", attr.max_cq,
          attr.max_cqe);
    CHECK(attr.max_mr >= 256 && attr.max_pd >= 16, "%d regions, %d domains", attr.max_mr,
          attr.max_pd);
    CHECK(attr.max_qp_rd_atom >= 16 && attr.max_qp_init_rd_atom >= 16, "%d and %d reads at a time",
          attr.max_qp_rd_atom, attr.max_qp_init_rd_atom);
    CHECK(attr.atomic_cap == IBV_ATOMIC_HCA || attr.atomic_cap == IBV_ATOMIC_GLOB, "atomics: %d",
          (int)attr.atomic_cap);
    CHECK(attr.max_pkeys >= 1, "%u partitions", attr.max_pkeys);
    /* What is not there must not be announced. */
    CHECK(attr.max_srq == 0 && attr.max_srq_wr == 0 && attr.max_srq_sge == 0,
          "%d SRQs of %d requests", attr.max_srq, attr.max_srq_wr);
    CHECK(attr.max_mw == 0, "%d memory windows", attr.max_mw);
    CHECK(!(attr.device_cap_flags &
            (IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
             IBV_DEVICE_XRC | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_UD_IP_CSUM)),
          "capabilities 0x%x", attr.device_cap_flags);
    CHECK(extended.odp_caps.general_caps == 0, "on-demand paging 0x%llx",
          (unsigned long long)extended.odp_caps.general_caps);
    CHECK(extended.max_dm_size == 0 && extended.tso_caps.max_tso == 0 &&
              extended.rss_caps.supported_qpts == 0 && extended.tm_caps.max_num_tags == 0,
          "features are announced that are not there");
    CHECK(mlx5dv_is_supported(context->device), "libmlx5 does not call the device its own");
    CHECK(mlx5dv_query_device(context, &dv) == 0, "mlx5dv_query_device failed");
    CHECK(dv.flags & MLX5DV_CONTEXT_FLAGS_CQE_V1, "CQE version 0");
    CHECK(context->num_comp_vectors >= 1, "%d completion vectors", context->num_comp_vectors);
}

static void port(struct ibv_context *context)
{
    struct ibv_port_attr attr;
    __be16 pkey = 0;

    memset(&attr, 0xff, sizeof(attr));
    CHECK(ibv_query_port(context, RC_PORT, &attr) == 0, "ibv_query_port failed");
    CHECK(attr.state == IBV_PORT_ACTIVE, "port state %d", (int)attr.state);
    CHECK(attr.phys_state == 5, "physical state %u", attr.phys_state);
    CHECK(attr.link_layer == IBV_LINK_LAYER_ETHERNET, "link layer %u", attr.link_layer);
    CHECK(attr.max_mtu >= attr.active_mtu && attr.active_mtu >= IBV_MTU_1024 &&
              attr.max_mtu <= IBV_MTU_4096,
          "MTU %d of %d", (int)attr.active_mtu, (int)attr.max_mtu);
    CHECK(attr.max_msg_sz >= 1u << 30, "messages of at most %u bytes", attr.max_msg_sz);
    CHECK(attr.lid == 0, "an Ethernet port with LID %u", attr.lid);
    CHECK(attr.gid_tbl_len > RC_GID_INDEX && attr.pkey_tbl_len >= 1, "%d GIDs, %u partitions",
          attr.gid_tbl_len, attr.pkey_tbl_len);
    CHECK(attr.active_width && attr.active_speed, "width %u, speed %u", attr.active_width,
          attr.active_speed);
    CHECK(ibv_query_port(context, 0, &attr) != 0, "there is a port 0");
    CHECK(ibv_query_port(context, 2, &attr) != 0, "there is a port 2");
    CHECK(ibv_query_pkey(context, RC_PORT, 0, &pkey) == 0, "ibv_query_pkey failed");
    CHECK(be16toh(pkey) == 0xffff, "partition key 0x%x", be16toh(pkey));
    CHECK(ibv_get_pkey_index(context, RC_PORT, htobe16(0xffff)) == 0, "ibv_get_pkey_index failed");
}

static void gids(struct ibv_context *context)
{
    static const enum ibv_gid_type types[] = {IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2,
                                              IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2};
    struct ibv_gid_entry table[64], entry;
    struct ibv_port_attr attr;
    union ibv_gid gid;
    ssize_t n;

    CHECK(ibv_query_port(context, RC_PORT, &attr) == 0, "ibv_query_port failed");
    n = ibv_query_gid_table(context, table, 64, 0);
    CHECK(n >= 4 && n <= attr.gid_tbl_len, "%zd GIDs in a table of %d", n, attr.gid_tbl_len);
    for (uint32_t i = 0; i < 4; i++) {
        char text[INET6_ADDRSTRLEN] = "";

        CHECK(ibv_query_gid(context, RC_PORT, (int)i, &gid) == 0, "ibv_query_gid of %u failed", i);
        CHECK(ibv_query_gid_ex(context, RC_PORT, i, &entry, 0) == 0, "ibv_query_gid_ex of %u", i);
        inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
        CHECK(memcmp(&gid, &entry.gid, 16) == 0 && memcmp(&gid, &table[i].gid, 16) == 0,
              "GID %u differs by the way of asking", i);
        CHECK(entry.gid_type == types[i] && table[i].gid_type == types[i], "GID %u is of type %u",
              i, entry.gid_type);
        CHECK(entry.gid_index == i && entry.port_num == RC_PORT, "GID %u has index %u, port %u", i,
              entry.gid_index, entry.port_num);
        if (i < 2)
            CHECK(gid.raw[0] == 0xfe && gid.raw[1] == 0x80, "GID %u is %s", i, text);
        else
            CHECK(strcmp(text, "::ffff:127.0.0.1") == 0, "GID %u is %s", i, text);
    }
    CHECK(ibv_query_gid_ex(context, RC_PORT, (uint32_t)attr.gid_tbl_len, &entry, 0) != 0,
          "there is a GID behind the last");
    CHECK(ibv_query_gid(context, RC_PORT, attr.gid_tbl_len, &gid) != 0,
          "there is a GID behind the last");
    CHECK(ibv_query_gid_ex(context, 2, 0, &entry, 0) != 0, "there is a GID of port 2");
}

int main(void)
{
    struct ibv_context *context = rc_open();

    device(context);
    port(context);
    gids(context);
    CHECK(ibv_close_device(context) == 0, "ibv_close_device failed");
    return 0;
}
