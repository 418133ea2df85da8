/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a queue may be: checks a caller's attributes against the device and fills in the defaults.
 */
#include <errno.h>

#include "device.h"
#include "error.h"
#include "queue.h"

/* The limits of a queue, on a device or detached. */
struct limits {
    const char *name;
    uint32_t depth;
    uint32_t cq_depth;
    uint32_t recv_depth;
};

static struct limits limits_of(const struct db_device *device, const struct db_queue_attr *attr)
{
    struct limits limits = {"a detached queue", DB_MAX_DEPTH, DB_MAX_DEPTH, 0};

    if (device)
        limits = (struct limits){device->path.name, device->caps.max_depth,
                                 device->caps.max_cq_depth, device->caps.max_recv_depth};
    if (attr->collapsed && limits.depth > DB_MAX_COLLAPSED_DEPTH)
        limits.depth = DB_MAX_COLLAPSED_DEPTH;
    return limits;
}

static bool power_between(uint32_t value, uint32_t least, uint32_t most)
{
    return value >= least && value <= most && (value & (value - 1)) == 0;
}

static int check_depths(const struct limits *limits, const struct db_queue_attr *attr)
{
    if (!power_between(attr->depth, 1, limits->depth))
        return db_fail(-EINVAL,
                       "depth %u cannot be: on %s a queue%s has 1 to %u blocks, a power of two",
                       attr->depth, limits->name, attr->collapsed ? " with a collapsed CQ" : "",
                       limits->depth);
    if (!power_between(attr->cq_depth, attr->depth, limits->cq_depth))
        return db_fail(-EINVAL,
                       "CQ depth %u cannot be: for depth %u on %s it is %u to %u, a power of two",
                       attr->cq_depth, attr->depth, limits->name, attr->depth, limits->cq_depth);
    if (attr->recv_depth == 0)
        return 0;
    if (limits->recv_depth == 0)
        return db_fail(-EINVAL, "receive depth %u cannot be: %s receives nothing, so it is 0",
                       attr->recv_depth, limits->name);
    if (!power_between(attr->recv_depth, 1, limits->recv_depth))
        return db_fail(-EINVAL,
                       "receive depth %u cannot be: on %s it is 0, or 1 to %u and a power of two",
                       attr->recv_depth, limits->name, limits->recv_depth);
    return 0;
}

static int check_places(const struct db_device *device, const struct db_queue_attr *attr)
{
    int error = db_memory_check(device, attr->ring, attr->gpu, "a send ring");

    if (!error)
        error = db_memory_check(device, attr->cq, attr->gpu, "a completion ring");
    if (!error)
        error = db_memory_check(device, attr->record, attr->gpu, "a doorbell record");
    if (!error && attr->recv_depth > 0 && attr->record == DB_MEMORY_GPU)
        return db_fail(-EOPNOTSUPP, "a queue with receives keeps its doorbell record in host "
                                    "memory, because the CPU posts them");
    return error;
}

static int check_choices(const struct db_device *device, struct db_queue_attr *attr)
{
    bool in_gpu = attr->ring == DB_MEMORY_GPU && attr->record == DB_MEMORY_GPU;

    if (attr->uar > DB_UAR_NON_CACHED)
        return db_fail(-EINVAL, "doorbell register %d is not known; 0 to %d are", (int)attr->uar,
                       (int)DB_UAR_NON_CACHED);
    if (attr->scope > DB_SCOPE_SYSTEM)
        return db_fail(-EINVAL, "scope %d is not known; 0 to %d are", (int)attr->scope,
                       (int)DB_SCOPE_SYSTEM);
    if (attr->scope == DB_SCOPE_GPU && !in_gpu)
        return db_fail(-EINVAL, "GPU scope does not reach a ring or a record in host memory; use "
                                "DB_SCOPE_SAFE or DB_SCOPE_SYSTEM");
    if (attr->scope == DB_SCOPE_SAFE)
        attr->scope = in_gpu ? DB_SCOPE_GPU : DB_SCOPE_SYSTEM;
    if (attr->exchange_record && (attr->without_record || attr->scope != DB_SCOPE_GPU))
        return db_fail(-EINVAL, "an exchanged record needs %s; leave exchange_record false",
                       attr->without_record ? "a record"
                                            : "ring and record in GPU memory, and GPU scope");
    if (attr->without_record && device && !device->caps.without_record)
        return db_fail(-EOPNOTSUPP,
                       "%s offers no queues without a doorbell record (HCA_CAP_2, "
                       "send_dbr_mode_no_dbr_ext); use one with a record",
                       device->path.name);
    return 0;
}

int db_queue_attr_check(const struct db_device *device, const struct db_queue_attr *attr,
                        struct db_queue_attr *full)
{
    struct limits limits = limits_of(device, attr);

    *full = *attr;
    if (full->cq_depth == 0)
        full->cq_depth = full->depth;
    if (full->timeout_ns == 0)
        full->timeout_ns = DB_TIMEOUT_NS;
    int error = check_depths(&limits, full);
    if (!error)
        error = check_places(device, full);
    if (!error)
        error = check_choices(device, full);
    if (full->recv_depth > 0 && full->recv_depth < DB_MIN_RECV_DEPTH)
        full->recv_depth = DB_MIN_RECV_DEPTH;
    return error;
}
