/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device tells about itself: capabilities (PRM "QUERY_HCA_CAP") and link-layer addresses
 * ("QUERY_ROCE_ADDRESS").
 */
#include <doorbell/impl/qp.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "error.h"
#include "prm.h"

static uint32_t at_most(uint32_t value, uint32_t limit)
{
    return value < limit ? value : limit;
}

/* The page as it is in force. `answer` has room for m5_query_hca_cap_out_bytes; the page within it
 * is returned, or NULL after a refusal. */
static const uint8_t *read_page(struct db_device *device, enum m5_cap_page page, uint8_t *answer)
{
    uint8_t in[m5_query_hca_cap_in_bytes] = {0};

    db_prm_set(in, m5_mbox_in_opcode, M5_CMD_QUERY_HCA_CAP);
    db_prm_set(in, m5_mbox_in_op_mod, (uint64_t)page << 1 | 1);
    memset(answer, 0, m5_query_hca_cap_out_bytes);
    if (db_prm_ask(device, "QUERY_HCA_CAP", in, sizeof(in), answer, m5_query_hca_cap_out_bytes))
        return NULL;
    return answer + m5_query_hca_cap_out_capability;
}

static uint32_t power(const uint8_t *page, enum m5_prm_field log)
{
    return 1u << at_most((uint32_t)db_prm_get(page, log), 31);
}

static int read_caps(struct db_device *device, uint8_t *answer)
{
    struct db_caps *caps = &device->caps;
    const uint8_t *page = read_page(device, M5_CAP_GENERAL, answer);

    if (!page)
        return -EIO;
    bool more = db_prm_get(page, m5_cmd_hca_cap_hca_cap_2);
    caps->max_depth = at_most(power(page, m5_cmd_hca_cap_log_max_qp_sz), DB_MAX_DEPTH);
    caps->max_recv_depth = caps->max_depth;
    caps->max_cq_depth = power(page, m5_cmd_hca_cap_log_max_cq_sz);
    caps->log_reads_out = (uint32_t)db_prm_get(page, m5_cmd_hca_cap_log_max_ra_req_qp);
    caps->log_reads_in = (uint32_t)db_prm_get(page, m5_cmd_hca_cap_log_max_ra_res_qp);
    caps->log_max_msg = (uint32_t)db_prm_get(page, m5_cmd_hca_cap_log_max_msg);
    caps->atomics = db_prm_get(page, m5_cmd_hca_cap_atomic);

    if (more) {
        page = read_page(device, M5_CAP_GENERAL_2, answer);
        if (!page)
            return -EIO;
        caps->without_record = db_prm_get(page, m5_cmd_hca_cap_2_send_dbr_mode_no_dbr_ext);
    }
    if (!device->path.infiniband) {
        page = read_page(device, M5_CAP_ROCE, answer);
        if (!page)
            return -EIO;
        caps->udp_sport = (uint32_t)db_prm_get(page, m5_roce_cap_r_roce_min_src_udp_port);
    }
    return 0;
}

int db_caps_read(struct db_device *device)
{
    uint8_t *answer = malloc(m5_query_hca_cap_out_bytes);

    if (!answer)
        return db_fail(-ENOMEM, "no memory for the capabilities of %s", device->path.name);
    int error = read_caps(device, answer);
    free(answer);
    return error;
}

/* ---- Addresses ---- */

/* The index of `gid` in the port's own table, or -1. The same address may stand there as RoCE v1
 * and v2; both have the same MAC address. */
static int own_index(const struct db_device *device, const uint8_t *gid)
{
    struct ibv_port_attr port;

    if (memcmp(gid, device->path.gid, sizeof(device->path.gid)) == 0)
        return (int)device->path.gid_index;
    if (ibv_query_port(device->context, (uint8_t)device->path.port, &port))
        return -1;
    for (int index = 0; index < port.gid_tbl_len; index++) {
        union ibv_gid own;
        if (ibv_query_gid(device->context, (uint8_t)device->path.port, index, &own) == 0 &&
            memcmp(gid, own.raw, sizeof(own.raw)) == 0)
            return index;
    }
    return -1;
}

static int own_mac(struct db_device *device, uint32_t index, uint8_t *mac)
{
    struct db_prm prm;
    uint8_t *address = prm.out + m5_query_roce_address_out_roce_address;

    db_prm_begin(&prm, QUERY_ROCE_ADDRESS, query_roce_address_in, query_roce_address_out);
    db_prm_set(prm.in, m5_query_roce_address_in_roce_address_index, index);
    db_prm_set(prm.in, m5_query_roce_address_in_vhca_port_num, device->path.port);
    int error = db_prm_ask(device, prm.name, prm.in, prm.in_bytes, prm.out, prm.out_bytes);
    if (error)
        return error;
    memcpy(mac, db_prm_at(address, m5_roce_addr_layout_source_mac_47_32), 6);
    return 0;
}

/* libmlx5 has the kernel look up the next hop when it makes an address handle. */
static int resolved_mac(struct db_device *device, const uint8_t *gid, uint8_t *mac)
{
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = (uint8_t)device->path.port,
        .grh = {.sgid_index = (uint8_t)device->path.gid_index, .hop_limit = 64},
    };
    struct mlx5dv_ah description;
    struct mlx5dv_obj object = {.ah = {.out = &description}};

    memcpy(attr.grh.dgid.raw, gid, sizeof(attr.grh.dgid.raw));
    object.ah.in = ibv_create_ah(device->pd, &attr);
    if (!object.ah.in)
        return -EHOSTUNREACH;
    int error = mlx5dv_init_obj(&object, MLX5DV_OBJ_AH) ? -EHOSTUNREACH : 0;
    if (!error)
        memcpy(mac, description.av->rmac, 6);
    ibv_destroy_ah(object.ah.in);
    return error;
}

int db_device_resolve(struct db_device *device, const uint8_t *gid, uint8_t *mac)
{
    int index = own_index(device, gid);

    if (index >= 0)
        return own_mac(device, (uint32_t)index, mac);
    if (resolved_mac(device, gid, mac))
        return db_fail(-EHOSTUNREACH,
                       "%s finds no neighbour for the peer's GID; see `ip route` and `ip neigh`",
                       device->path.name);
    return 0;
}
