/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of a uverbs ioctl (attrs.h). */
#include "attrs.h"

#include <errno.h>
#include <string.h>

struct ib_uverbs_attr *soft_attr(const struct soft_call *call, uint16_t id)
{
    for (unsigned i = 0; i < call->count; i++)
        if (call->attrs[i].attr_id == id)
            return &call->attrs[i];
    return NULL;
}

/* Up to 8 bytes of input lie in the attribute itself. */
static const void *input(const struct ib_uverbs_attr *attr)
{
    return attr->len <= sizeof(attr->data) ? (const void *)&attr->data
                                           : (const void *)(uintptr_t)attr->data;
}

int soft_in(const struct soft_call *call, uint16_t id, void *to, size_t bytes)
{
    const struct ib_uverbs_attr *attr = soft_attr(call, id);
    const uint8_t *from;
    size_t known;

    if (attr == NULL)
        return soft_refuse(EINVAL, "attribute %#x is missing", id);
    from = input(attr);
    if (from == NULL)
        return -EFAULT;
    for (size_t i = bytes; i < attr->len; i++)
        if (from[i] != 0)
            return soft_refuse(EOPNOTSUPP, "attribute %#x sets byte %zu, of which we know nothing",
                               id, i);
    known = attr->len < bytes ? attr->len : bytes;
    memcpy(to, from, known);
    memset((uint8_t *)to + known, 0, bytes - known);
    return 0;
}

uint64_t soft_in_number(const struct soft_call *call, uint16_t id, uint64_t absent)
{
    const struct ib_uverbs_attr *attr = soft_attr(call, id);
    uint64_t value = 0;

    if (attr == NULL)
        return absent;
    if (attr->len == 0 || attr->len >= sizeof(value))
        return attr->data; /* handles and descriptors have no length */
    memcpy(&value, &attr->data, attr->len);
    return value;
}

const void *soft_in_bytes(const struct soft_call *call, uint16_t id, size_t *bytes)
{
    const struct ib_uverbs_attr *attr = soft_attr(call, id);

    if (attr == NULL)
        return NULL;
    *bytes = attr->len;
    return input(attr);
}

void *soft_out_bytes(const struct soft_call *call, uint16_t id, size_t *bytes)
{
    struct ib_uverbs_attr *attr = soft_attr(call, id);

    if (attr == NULL)
        return NULL;
    *bytes = attr->len;
    attr->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return (void *)(uintptr_t)attr->data;
}

int soft_out(const struct soft_call *call, uint16_t id, const void *from, size_t bytes)
{
    size_t room = 0;
    uint8_t *to = soft_out_bytes(call, id, &room);

    if (room == 0)
        return 0;
    if (to == NULL)
        return -EFAULT;
    memcpy(to, from, room < bytes ? room : bytes);
    if (room > bytes)
        memset(to + bytes, 0, room - bytes);
    return 0;
}

int soft_out_number(const struct soft_call *call, uint16_t id, uint64_t number)
{
    struct ib_uverbs_attr *attr = soft_attr(call, id);

    if (attr == NULL)
        return soft_refuse(EINVAL, "attribute %#x is missing", id);
    attr->data = number;
    attr->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    return 0;
}

void *soft_in_object(const struct soft_call *call, uint16_t id, enum soft_kind kind)
{
    const struct ib_uverbs_attr *attr = soft_attr(call, id);

    return attr == NULL ? NULL : soft_object_find(call->context, kind, attr->data);
}
