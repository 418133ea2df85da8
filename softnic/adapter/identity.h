/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the software device says it is, as the ioctls and the sysfs files both tell it; its
 * addresses and its GUID come from core/caps.h.
 *
 * Included by device.c, sysfs.c and the libc interposers.
 */
#ifndef SOFTNIC_ADAPTER_IDENTITY_H
#define SOFTNIC_ADAPTER_IDENTITY_H

#include <stdint.h>

#include <doorbell/impl/m5_prm_codes.h>

#include "core/caps.h"
#include "softnic.h"

#define SOFT_UVERBS_NAME "uverbs0"
#define SOFT_UVERBS_PATH "/dev/infiniband/" SOFT_UVERBS_NAME
#define SOFT_DEV_MAJOR   231 /* what Linux gives InfiniBand character devices */
#define SOFT_DEV_MINOR   192

#define SOFT_VENDOR_ID   0x02c9 /* Mellanox, as verbs report it */
#define SOFT_PCI_VENDOR  0x15b3
#define SOFT_PART_ID     4129 /* 0x1021, ConnectX-7 */
#define SOFT_BOARD_ID    "DBL_SOFTNIC"
#define SOFT_FW_MAJOR    28
#define SOFT_FW_MINOR    99
#define SOFT_FW_SUBMINOR 1

#define SOFT_PORTS        1
#define SOFT_COMP_VECTORS 1
#define SOFT_PKEY         0xffff
#define SOFT_GIDS         NIC_ROCE_ADDRESSES
#define SOFT_LINK_WIDTH   2  /* 4 lanes */
#define SOFT_LINK_SPEED   32 /* EDR: 25 Gb/s a lane */
#define SOFT_RATE_TEXT    "100 Gb/sec (4X EDR)"

#define SOFT_GUID_TEXT "0250:f2ff:fe00:0001" /* NIC_GUID */

/* The interface that a GID of that index belongs to, or NULL: the second half are 127.0.0.1's. */
static inline const char *soft_gid_netdev(uint32_t index)
{
    return index < SOFT_GIDS / 2 ? NULL : "lo";
}

#endif
