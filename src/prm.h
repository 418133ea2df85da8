/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing and reading the fields of a PRM command, and sending it. Included by the files of src/
 * that speak to the device; the layouts are m5_prm_format.h's.
 *
 * The software device has accessors of its own, on purpose: each side checks the other's.
 */
#ifndef DOORBELL_SRC_PRM_H
#define DOORBELL_SRC_PRM_H

#include <doorbell/impl/m5_prm_format.h>
#include <stddef.h>
#include <stdint.h>

struct db_device;
struct mlx5dv_devx_obj;

/* A field is a run of bits, counted from the most significant one of the structure's first byte;
 * the value's last bit is the run's last. */
static inline void db_prm_set(void *structure, enum m5_prm_field field, uint64_t value)
{
    uint8_t *bytes = structure;

    for (uint32_t i = M5_PRM_WIDTH(field); i-- > 0; value >>= 1) {
        uint32_t bit = M5_PRM_BIT(field) + i;
        uint8_t mask = (uint8_t)(0x80u >> bit % 8);
        bytes[bit / 8] = (uint8_t)((bytes[bit / 8] & ~mask) | (value & 1 ? mask : 0));
    }
}

static inline uint64_t db_prm_get(const void *structure, enum m5_prm_field field)
{
    const uint8_t *bytes = structure;
    uint64_t value = 0;

    for (uint32_t i = 0; i < M5_PRM_WIDTH(field); i++) {
        uint32_t bit = M5_PRM_BIT(field) + i;
        value = value << 1 | ((uint32_t)bytes[bit / 8] >> (7 - bit % 8) & 1u);
    }
    return value;
}

/* Where a field of whole bytes lies: an address, say. */
static inline uint8_t *db_prm_at(void *structure, enum m5_prm_field field)
{
    return (uint8_t *)structure + M5_PRM_BIT(field) / 8;
}

/* A command and the room for its answer, all zero but for the opcode; all the library's commands
 * fit but QUERY_HCA_CAP, whose answer is longer. */
#define DB_PRM_BYTES 0x110

struct db_prm {
    const char *name; /* the PRM's, for the user */
    size_t in_bytes;
    size_t out_bytes;
    uint8_t in[DB_PRM_BYTES];
    uint8_t out[DB_PRM_BYTES];
};

/* db_prm_begin(&prm, CREATE_CQ, create_cq_in, create_cq_out) */
#define db_prm_begin(prm, command, input, output)                                                  \
    do {                                                                                           \
        *(prm) = (struct db_prm){                                                                  \
            .name = #command, .in_bytes = m5_##input##_bytes, .out_bytes = m5_##output##_bytes};   \
        db_prm_set((prm)->in, m5_mbox_in_opcode, M5_CMD_##command);                                \
    } while (0)

/* Each sends the command and returns 0 or a negative errno with the device's refusal in words. */
int db_prm_create(struct db_device *device, struct db_prm *prm, struct mlx5dv_devx_obj **object);
int db_prm_modify(struct db_device *device, struct db_prm *prm, struct mlx5dv_devx_obj *object);
int db_prm_query(struct db_device *device, struct db_prm *prm, struct mlx5dv_devx_obj *object);

/* The same for a command about no object, with an answer of any length. */
int db_prm_ask(struct db_device *device, const char *name, const void *in, size_t in_bytes,
               void *out, size_t out_bytes);

#endif
