/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a library posted what our own code would have: our encoder runs here, on the CPU, and the
 * bytes that a library leaves undefined are left out. The proxy's descriptor is none of ours; its
 * words are stated here (NCCL 2.28.9, gin_proxy_device_host_common.h).
 */
#include <stdio.h>
#include <string.h>

#include <doorbell/device.h>

#include "arm.h"
#include "library.h"

/* Bytes of a WQE of three segments. What lies behind them in its slot is nobody's. */
#define WQE_BYTES 48

static void build_ours(const struct vendors_arm *arm, uint8_t *block)
{
    struct db_qp qp = {.sq = block, .depth = 1, .qpn = ARM_QPN};

    if (arm->post == VENDORS_WQE_POINTER)
        db_build_write(&qp, 0, DB_SIGNALED, VENDORS_RADDR, ARM_RKEY, VENDORS_LADDR, ARM_LKEY,
                       VENDORS_BYTES);
    else
        db_build_write_value(&qp, 0, DB_SIGNALED, VENDORS_RADDR, ARM_RKEY, VENDORS_VALUE);
}

static bool is_compared(const struct vendors_arm *arm, size_t byte)
{
    for (size_t i = 0; i < sizeof(arm->gap) / sizeof(arm->gap[0]); i++)
        if (byte >= arm->gap[i].from && byte < arm->gap[i].to)
            return false;
    return byte < WQE_BYTES;
}

static bool wqe_agrees(const struct vendors_arm *arm, const struct vendors_posted *posted,
                       char *why)
{
    uint8_t ours[M5_BLOCK_BYTES] __attribute__((aligned(64)));
    uint32_t record = port_bswap32(1);
    uint64_t doorbell = db_ctrl_word(ARM_QPN, 1, 0, 0);

    build_ours(arm, ours);
    for (size_t i = 0; i < WQE_BYTES; i++) {
        if (!is_compared(arm, i) || posted->slot[i] == ours[i])
            continue;
        snprintf(why, VENDORS_WHY_BYTES, "byte %zu of its WQE is 0x%02x, of ours 0x%02x", i,
                 posted->slot[i], ours[i]);
        return false;
    }
    if (posted->record != record) {
        snprintf(why, VENDORS_WHY_BYTES, "its doorbell record is 0x%08x, ours 0x%08x",
                 posted->record, record);
        return false;
    }
    if (posted->doorbell != doorbell) {
        snprintf(why, VENDORS_WHY_BYTES, "its doorbell is 0x%016llx, ours 0x%016llx",
                 (unsigned long long)posted->doorbell, (unsigned long long)doorbell);
        return false;
    }
    return true;
}

/* Each 8-byte word begins with a bit that says it is written. */
static bool descriptor_agrees(const struct vendors_posted *posted, char *why)
{
    enum { PUT = 1 };
    const uint64_t want[] = {
        1 | PUT << 1 | (uint64_t)VENDORS_BYTES << 7,
        1 | VENDORS_LADDR << 1,
        1 | (uint64_t)ARM_RKEY << 1, /* source and destination window */
        1 | VENDORS_RADDR << 1,
        1 | (uint64_t)ARM_RKEY << 1,
        1, /* no signal, no counter: only the first bit is defined */
        1,
        1,
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        uint64_t got;
        memcpy(&got, posted->slot + i * sizeof(got), sizeof(got));
        if (want[i] == 1 ? (got & 1) == 1 : got == want[i])
            continue;
        snprintf(why, VENDORS_WHY_BYTES, "word %zu of its descriptor is 0x%016llx, not 0x%016llx",
                 i, (unsigned long long)got, (unsigned long long)want[i]);
        return false;
    }
    return true;
}

void vendors_posted_dump(const struct vendors_arm *arm, const struct vendors_posted *posted,
                         struct vendors_dump *dump)
{
    uint8_t ours[M5_BLOCK_BYTES] __attribute__((aligned(64)));
    bool wqe = arm->post != VENDORS_DESCRIPTOR;

    if (wqe)
        build_ours(arm, ours);
    dump->ours[0] = '\0';
    for (size_t i = 0; i < sizeof(posted->slot); i++) {
        snprintf(dump->posted + 2 * i, 3, "%02x", posted->slot[i]);
        if (wqe && is_compared(arm, i))
            snprintf(dump->ours + 2 * i, 3, "%02x", ours[i]);
        else if (wqe)
            snprintf(dump->ours + 2 * i, 3, "??");
    }
}

bool vendors_posted_agrees(const struct vendors_arm *arm, const struct vendors_posted *posted,
                           char *why)
{
    return arm->post == VENDORS_DESCRIPTOR ? descriptor_agrees(posted, why)
                                           : wqe_agrees(arm, posted, why);
}
