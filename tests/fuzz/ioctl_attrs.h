/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One verbs call as fuzz/ioctl.c makes it up: its attributes with their bytes, the objects that it
 * can name, and the input that decides. Included by ioctl_calls.h alone.
 */
#ifndef DOORBELL_TESTS_FUZZ_IOCTL_ATTRS_H
#define DOORBELL_TESTS_FUZZ_IOCTL_ATTRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct input {
    const uint8_t *at;
    size_t left;
};

static uint64_t take(struct input *input, uint32_t bytes)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes && input->left > 0; i++, input->at++, input->left--)
        value |= (uint64_t)*input->at << (8 * i);
    return value;
}

/* ---- Memory that queues and regions lie in, between unmapped pages ---- */

#define ARENA_BYTES (1u << 20)

static uint8_t *arena;

static uint64_t place(struct input *input, uint64_t align)
{
    return (uintptr_t)arena + take(input, 2) * 16 / align * align % ARENA_BYTES;
}

/* ---- The newest objects ---- */

enum object {
    PD,
    MR,
    CQ,
    QP,
    UMEM, /* by id */
    UMEM_HANDLE,
    UAR, /* by page id */
    UAR_HANDLE,
    DEVX_CQ,
    DEVX_QP,
    CQN,
    QPN,
    PDN,
    CHANNEL,
    ASYNC,
    OBJECTS,
};

static uint64_t newest[OBJECTS];

static uint64_t any(enum object object, struct input *input)
{
    uint64_t other = take(input, 1);
    return other < 0xf0 ? newest[object] : other & 0xf;
}

/* ---- Attributes of a call ---- */

#define MOST_ATTRS 16

struct attr {
    uint16_t id;
    bool is_out;
    bool is_number; /* a handle or a descriptor: no buffer */
    uint32_t bytes; /* of `value` */
    uint64_t number;
    uint8_t value[4200];
    uint32_t fixed; /* the first bytes are addresses: not to be edited */
    uint8_t *buffer;
};

struct call {
    uint16_t object, method;
    uint32_t count;
    struct attr attrs[MOST_ATTRS];
};

static struct call call;

static struct attr *add(uint16_t id, bool is_out, uint32_t bytes)
{
    struct attr *attr = &call.attrs[call.count++];
    CHECK(call.count <= MOST_ATTRS && bytes <= sizeof(attr->value));
    memset(attr, 0, offsetof(struct attr, value) + bytes);
    attr->id = id;
    attr->is_out = is_out;
    attr->bytes = bytes;
    attr->fixed = 0;
    return attr;
}

static uint8_t *add_in(uint16_t id, const void *value, uint32_t bytes)
{
    struct attr *attr = add(id, false, bytes);
    if (value)
        memcpy(attr->value, value, bytes);
    return attr->value;
}

static void add_out(uint16_t id, uint32_t bytes)
{
    add(id, true, bytes);
}

static void add_number(uint16_t id, uint64_t number)
{
    struct attr *attr = add(id, false, 0);
    attr->is_number = true;
    attr->number = number;
}

static void add_word(uint16_t id, uint64_t word, uint32_t bytes)
{
    add_in(id, &word, bytes);
}

static void begin(uint16_t object, uint16_t method)
{
    call.object = object;
    call.method = method;
    call.count = 0;
}

static struct attr *begin_write(uint64_t command, const void *in, uint32_t in_bytes,
                                uint32_t out_bytes)
{
    begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    add_word(UVERBS_ATTR_WRITE_CMD, command, 8);
    add_in(UVERBS_ATTR_CORE_IN, in, in_bytes);
    if (out_bytes)
        add_out(UVERBS_ATTR_CORE_OUT, out_bytes);
    return &call.attrs[1];
}

#endif
