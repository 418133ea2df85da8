/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the software device says it can do and who it is: capability pages, its port's addresses.
 * All that is told here is served; everything else reads 0.
 *
 * Included by the PRM command files, and by whatever else must tell the same (uverbs answers,
 * sysfs).
 */
#ifndef SOFTNIC_CORE_CAPS_H
#define SOFTNIC_CORE_CAPS_H

#include <stdint.h>

#include "nic.h"

/* Locally administered MAC 02:50:f2:00:00:01, and the GUID with ff:fe in its middle. */
#define NIC_MAC  UINT64_C(0x0250f2000001)
#define NIC_GUID UINT64_C(0x0250f2fffe000001)

#define NIC_ROCE_ADDRESSES 4    /* 0 and 1 link-local, 2 and 3 ::ffff:127.0.0.1; even v1, odd v2 */
#define NIC_PORT_MTU       4200 /* of the Ethernet port, which carries RoCE packets of 4096 bytes */

struct nic_roce_address {
    uint8_t gid[16];
    uint32_t version; /* enum m5_roce_version */
    uint32_t l3_type; /* enum m5_roce_l3_type */
};

/* The port's address of that index, below NIC_ROCE_ADDRESSES; else NULL. */
const struct nic_roce_address *nic_roce_address(uint32_t index);

#endif
