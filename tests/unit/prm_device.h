/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device core that stands still, a program's memory, and PRM commands that are right until a test
 * spoils them. Fields are put and taken bit by bit, so that the device's accessors have an
 * independent partner.
 *
 * Included by prm_commands.c, prm_qp_commands.c and ../fuzz/prm.c, which link prm_device.c.
 */
#ifndef TESTS_UNIT_PRM_DEVICE_H
#define TESTS_UNIT_PRM_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <core/objects.h>
#include <core/prm.h>
#include <core/prm_syndrome.h>
#include <doorbell/impl/m5_prm_format.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void put(uint8_t *structure, enum m5_prm_field field, uint64_t value);
uint64_t get(const uint8_t *structure, enum m5_prm_field field);

/* ---- The device, held from open to close, with one PD and one UAR page ---- */

enum {
    RING_UMEM = 7,
    RECORD_UMEM = 9,
    ODD_UMEM = 11, /* the first ODD_BYTES of the ring memory */
    RING_BYTES = 1 << 16,
    RECORD_BYTES = 256,
    ODD_BYTES = 1023,
};

extern struct nic *nic;
extern uint32_t pdn, uar_id;
extern uint8_t ring_memory[RING_BYTES], record_memory[RECORD_BYTES];

void device_open(void);

/* Also checks that no object holds on to the PD or the UAR page. */
void device_close(void);

/* ---- Commands ---- */

struct command {
    uint8_t in[m5_create_qp_in_bytes];
    uint8_t out[m5_query_hca_cap_out_bytes];
    size_t in_bytes, out_bytes;
    struct prm_result result;
};

/* An input of zeros but for the opcode; an output full of what an answer must clear. */
void begin(struct command *command, enum m5_prm_opcode opcode, size_t in_bytes, size_t out_bytes);

/* 64-byte CQEs, 16 of them at 4096 of the ring umem; record at 64. */
void build_create_cq(struct command *command);

/* 8 receive WQEs of 64 bytes at 8192 of the ring umem, then 32 blocks; record at 128; user index
 * 0xabcdef. */
void build_create_qp(struct command *command, uint32_t send_cqn, uint32_t recv_cqn);

/* Any other command on a CQ or a QP. */
void build_on_cq(struct command *command, enum m5_prm_opcode opcode, uint32_t cqn);
void build_on_qp(struct command *command, enum m5_prm_opcode opcode, uint32_t qpn);

/* prm_execute(); a success must say status 0, syndrome 0. */
int execute(struct command *command);

uint32_t create_cq(void);
void destroy_cq(uint32_t cqn);

/* The command is refused with exactly that syndrome and status, creates nothing, changes no object,
 * no list and no byte of the program's memory, and answers nothing else. */
void refused(struct command *command, enum prm_syndrome syndrome, enum m5_prm_status status);

/* Refused so for every length of input and output below the right one. */
void refused_short(const struct command *good);

/* One field of a good command made bad. */
struct spoiler {
    size_t part; /* byte of the input where the field's structure starts */
    enum m5_prm_field field;
    uint64_t value;
    enum prm_syndrome syndrome;
    enum m5_prm_status status;
};

void refused_each(const struct command *good, const struct spoiler *spoilers, size_t count);

#endif
