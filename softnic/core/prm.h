/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The firmware of the software device: PRM commands, as DEVX clients hand them over, come down to
 * the control calls of objects.h. Layouts are those of <doorbell/impl/m5_prm_format.h>.
 *
 * Included by the adapter's DEVX ioctls and by tests. Served: CREATE, MODIFY, QUERY and DESTROY of
 * CQs; CREATE, QUERY and DESTROY of RC QPs and their transitions; QUERY_HCA_CAP,
 * QUERY_ROCE_ADDRESS, QUERY_NIC_VPORT_CONTEXT. All else is refused with status BAD_OPERATION.
 */
#ifndef SOFTNIC_CORE_PRM_H
#define SOFTNIC_CORE_PRM_H

#include <stddef.h>
#include <stdint.h>

#include "nic.h"

enum prm_object {
    PRM_NO_OBJECT,
    PRM_CQ,
    PRM_QP,
};

/* Memory that a program registered for the device (DEVX umem). */
struct prm_umem {
    void *addr;
    uint64_t bytes;
};

struct prm_client {
    struct nic *nic; /* held (nic_hold()) while a command executes */
    void *context;
    /* The umem of that id, or NULL; called while the device is held. */
    const struct prm_umem *(*umem)(void *context, uint32_t id);
    uint32_t
        owner_uid; /* of the client's DEVX context; the commands served here do not look at it */
};

/* What a command created or destroyed. A new object has no owner yet: the caller sets the `owner`
 * of nic_cq_find() or nic_qp_find() before it releases the device, if it wants events. */
struct prm_result {
    enum prm_object object;
    uint32_t number; /* CQN or QPN */
};

/*
 * Executes one PRM command. Does not block. The input is copied first, so the program may change it
 * meanwhile; input beyond the command's layout is ignored; `out` is cleared before it is filled.
 *
 * Returns 0; -EREMOTEIO with status and syndrome in `out`, and nothing changed; or -EINVAL when
 * `in` or `out` is too short to hold a command or an answer at all (16 bytes). Buffers too short
 * for their command are refused with status BAD_INPUT_LEN or BAD_OUTPUT_LEN.
 *
 * The `valid` bits of umems are not looked at: the kernel sets them in every DEVX command, so a
 * queue without a umem (a page list) cannot be asked for, and umem id 0 is refused like any unknown
 * one.
 */
int prm_execute(const struct prm_client *client, const void *in, size_t in_bytes, void *out,
                size_t out_bytes, struct prm_result *result);

/* What a command does to objects, and with it, which DEVX ioctl may carry it. */
enum prm_method {
    PRM_GENERAL, /* to none */
    PRM_CREATE,
    PRM_MODIFY,
    PRM_QUERY,
    PRM_DESTROY,
    PRM_UNKNOWN, /* not served, or too short to tell */
};

enum prm_method prm_method_of(const void *in, size_t in_bytes);

/* One line for a person: why a command was refused with that syndrome. A static string, never NULL.
 */
const char *prm_syndrome_text(uint32_t syndrome);

#endif
