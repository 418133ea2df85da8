/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What queues are made over: protection domains, UAR pages, memory keys; see objects.h. The
 * execution path reads what is set here; the engine stands still meanwhile.
 */
#include <errno.h>

#include "objects.h"

/* ---- Protection domains and UAR pages ---- */

int nic_pd_alloc(struct nic *nic, uint32_t *pdn)
{
    for (uint32_t i = 1; i < NIC_MAX_PDS; i++) {
        if (nic->pd_used[i])
            continue;
        nic->pd_used[i] = 1;
        *pdn = i;
        return 0;
    }
    return -ENOMEM;
}

bool nic_pd_exists(const struct nic *nic, uint32_t pdn)
{
    return pdn < NIC_MAX_PDS && nic->pd_used[pdn];
}

int nic_pd_free(struct nic *nic, uint32_t pdn)
{
    if (!nic_pd_exists(nic, pdn))
        return -EINVAL;
    if (nic->pd_users[pdn])
        return -EBUSY;
    nic->pd_used[pdn] = 0;
    return 0;
}

int nic_uar_alloc(struct nic *nic, uint32_t *page)
{
    for (uint32_t i = 0; i < NIC_UAR_PAGES; i++) {
        if (nic->uar_handed[i])
            continue;
        nic->uar_handed[i] = 1;
        if (i >= nic->uar_used)
            nic->uar_used = i + 1;
        *page = i;
        return 0;
    }
    return -ENOMEM;
}

bool nic_uar_exists(const struct nic *nic, uint32_t page)
{
    return page < NIC_UAR_PAGES && nic->uar_handed[page];
}

int nic_uar_free(struct nic *nic, uint32_t page)
{
    if (!nic_uar_exists(nic, page))
        return -EINVAL;
    if (nic->first_on_uar[page] || nic->first_cq_on_uar[page])
        return -EBUSY;
    nic->uar_handed[page] = 0;
    while (nic->uar_used > 0 && !nic->uar_handed[nic->uar_used - 1])
        nic->uar_used--;
    return 0;
}

/* ---- Memory keys ---- */

int nic_mkey_create(struct nic *nic, const struct nic_mkey_attr *attr, uint32_t *key)
{
    if (!nic_pd_exists(nic, attr->pdn) || attr->bytes > UINT64_MAX - attr->start ||
        attr->bytes > UINTPTR_MAX - (uintptr_t)attr->host)
        return -EINVAL;
    if (attr->access & (NIC_REMOTE_WRITE | NIC_REMOTE_ATOMIC) && !(attr->access & NIC_LOCAL_WRITE))
        return -EINVAL;

    for (uint32_t tried = 0; tried < NIC_MAX_MKEYS; tried++) {
        uint32_t slot = nic->next_mkey;
        nic->next_mkey = slot + 1 < NIC_MAX_MKEYS ? slot + 1 : NIC_FIRST_MKEY;
        struct nic_mkey *mkey = &nic->mkeys[slot];
        if (mkey->key)
            continue;
        mkey->variant++;
        mkey->pdn = attr->pdn;
        mkey->access = attr->access;
        mkey->start = attr->start;
        mkey->bytes = attr->bytes;
        mkey->host = (uintptr_t)attr->host;
        mkey->key = slot << 8 | mkey->variant;
        nic->pd_users[attr->pdn]++;
        *key = mkey->key;
        return 0;
    }
    return -ENOMEM;
}

int nic_mkey_destroy(struct nic *nic, uint32_t key)
{
    uint32_t slot = key >> 8;
    if (key == 0 || slot >= NIC_MAX_MKEYS || nic->mkeys[slot].key != key)
        return -EINVAL;
    nic->pd_users[nic->mkeys[slot].pdn]--;
    nic->mkeys[slot].key = 0;
    return 0;
}
