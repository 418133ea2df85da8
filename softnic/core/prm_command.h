/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the PRM command files share: the decoder's own accessors, a command under way, and where its
 * memory lies. Private to prm.c, prm_qp.c and caps.c.
 */
#ifndef SOFTNIC_CORE_PRM_COMMAND_H
#define SOFTNIC_CORE_PRM_COMMAND_H

#include <string.h>

#include <doorbell/impl/m5_prm_format.h>

#include "objects.h"
#include "prm.h"
#include "prm_syndrome.h"

/* ---- Fields ---- */

static inline uint32_t prm_word(const void *structure, uint32_t byte)
{
    struct be32 word;
    memcpy(&word, (const uint8_t *)structure + byte, sizeof(word));
    return port_host32(word);
}

static inline void prm_set_word(void *structure, uint32_t byte, uint32_t value)
{
    struct be32 word = port_be32(value);
    memcpy((uint8_t *)structure + byte, &word, sizeof(word));
}

/* A field of at most 32 bits; none crosses a word. */
static inline uint32_t prm_get(const void *structure, enum m5_prm_field field)
{
    uint32_t low = 32 - M5_PRM_WIDTH(field) - M5_PRM_BIT(field) % 32;
    uint32_t mask = (uint32_t)((UINT64_C(1) << M5_PRM_WIDTH(field)) - 1);
    return prm_word(structure, M5_PRM_BIT(field) / 32 * 4) >> low & mask;
}

static inline void prm_set(void *structure, enum m5_prm_field field, uint32_t value)
{
    uint32_t low = 32 - M5_PRM_WIDTH(field) - M5_PRM_BIT(field) % 32;
    uint32_t mask = (uint32_t)((UINT64_C(1) << M5_PRM_WIDTH(field)) - 1);
    uint32_t byte = M5_PRM_BIT(field) / 32 * 4;
    prm_set_word(structure, byte,
                 (prm_word(structure, byte) & ~(mask << low)) | (value & mask) << low);
}

static inline uint64_t prm_get64(const void *structure, enum m5_prm_field field)
{
    uint32_t byte = M5_PRM_BIT(field) / 8;
    return (uint64_t)prm_word(structure, byte) << 32 | prm_word(structure, byte + 4);
}

static inline void prm_set64(void *structure, enum m5_prm_field field, uint64_t value)
{
    uint32_t byte = M5_PRM_BIT(field) / 8;
    prm_set_word(structure, byte, (uint32_t)(value >> 32));
    prm_set_word(structure, byte + 4, (uint32_t)value);
}

/* Where a field of whole bytes lies: a GID. */
static inline uint8_t *prm_at(void *structure, enum m5_prm_field field)
{
    return (uint8_t *)structure + M5_PRM_BIT(field) / 8;
}

/* ---- A command under way ---- */

/* Long enough for the longest input layout. */
#define PRM_IN_BYTES m5_create_qp_in_bytes

struct prm_call {
    const struct prm_client *client;
    uint8_t in[PRM_IN_BYTES]; /* the device's own copy */
    uint8_t *out;
    struct prm_result *result;
};

/* Executes its command, whose lengths are right. Returns PRM_SYN_OK, or why it did nothing. */
typedef enum prm_syndrome prm_handler(const struct prm_call *call);

prm_handler prm_create_qp, prm_move_qp, prm_query_qp, prm_destroy_qp;
prm_handler prm_query_hca_cap, prm_query_roce_address, prm_query_nic_vport_context;

/* A UAR page's number from the id that commands carry. */
static inline enum prm_syndrome prm_uar(const struct nic *nic, uint32_t id, uint32_t *page)
{
    if (id < NIC_FIRST_UAR || !nic_uar_exists(nic, id - NIC_FIRST_UAR))
        return PRM_SYN_UAR;
    *page = id - NIC_FIRST_UAR;
    return PRM_SYN_OK;
}

/* Where `bytes` of ring lie, when they lie inside that umem and start on a multiple of 64. */
enum prm_syndrome prm_find_ring(const struct prm_call *call, uint32_t umem_id, uint64_t offset,
                                uint64_t bytes, uint8_t **ring);

/* The same for the 8 bytes of a doorbell record. */
enum prm_syndrome prm_find_record(const struct prm_call *call, uint32_t umem_id, uint64_t offset,
                                  void **record);

/* What a control call's negative errno value is to the client. */
enum prm_syndrome prm_core_refusal(int error);

#endif
