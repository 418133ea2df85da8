/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory keys at work: from (key, address, length, access, protection domain) to this process's
 * memory, or a refusal. Part of the one-source execution path.
 */
#ifndef SOFTNIC_CORE_MKEY_H
#define SOFTNIC_CORE_MKEY_H

#include <stdbool.h>

#include "nic.h"

/* Fills `range` and returns true when all of [address, address + bytes) may be used in this way. A
 * length of 0 needs no valid key (IB 9.4.1.1). */
PORT_FN bool nic_mkey_translate(const struct nic *nic, uint32_t key, uint64_t address,
                                uint32_t bytes, uint32_t access, uint32_t pdn,
                                struct nic_range *range)
{
    range->at = (uint8_t *)range; /* any address will do for no bytes; NULL has no offsets */
    range->bytes = bytes;
    if (bytes == 0)
        return true;
    uint32_t slot = key >> 8;
    if (slot >= NIC_MAX_MKEYS)
        return false;
    const struct nic_mkey *mkey = &nic->mkeys[slot];
    if (mkey->key != key || key == 0 || mkey->pdn != pdn || (mkey->access & access) != access)
        return false;
    uint64_t offset = address - mkey->start;
    if (address < mkey->start || offset > mkey->bytes || bytes > mkey->bytes - offset)
        return false;
    range->at = (uint8_t *)(uintptr_t)(mkey->host + offset);
    return true;
}

#endif
