/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes of a uverbs ioctl, read and answered as the kernel does: a structure shorter than ours
 * reads as if followed by zeros, a longer one is refused if what we do not know of it is not zero;
 * an answer is cut or padded to the caller's length. Follows the kernel's uapi headers
 * rdma/rdma_user_ioctl_cmds.h and rdma/ib_user_ioctl_cmds.h.
 *
 * Included by the files that serve ioctls.
 */
#ifndef SOFTNIC_ADAPTER_ATTRS_H
#define SOFTNIC_ADAPTER_ATTRS_H

#include <rdma/ib_user_ioctl_cmds.h>

#include "verbs.h"

/* The attribute, or NULL. */
struct ib_uverbs_attr *soft_attr(const struct soft_call *call, uint16_t id);

/* Reads an attribute into a structure. -EINVAL: absent. -EFAULT. -EOPNOTSUPP: asks for more than
 * the structure has. */
int soft_in(const struct soft_call *call, uint16_t id, void *to, size_t bytes);

/* A number or a handle; `absent` when the attribute is not there. */
uint64_t soft_in_number(const struct soft_call *call, uint16_t id, uint64_t absent);

/* The bytes of an attribute where they lie, or NULL. */
const void *soft_in_bytes(const struct soft_call *call, uint16_t id, size_t *bytes);
void *soft_out_bytes(const struct soft_call *call, uint16_t id, size_t *bytes);

/* Answers an attribute; one that is absent is not answered. -EFAULT. */
int soft_out(const struct soft_call *call, uint16_t id, const void *from, size_t bytes);

/* Answers an attribute that is a handle or a descriptor. -EINVAL: absent. */
int soft_out_number(const struct soft_call *call, uint16_t id, uint64_t number);

/* The object that a handle attribute names, or NULL. */
void *soft_in_object(const struct soft_call *call, uint16_t id, enum soft_kind kind);

#endif
